/* SPDX-License-Identifier: Apache-2.0
 * Small trees of /sys and /proc: each line of the input makes an entry, "PATH=TEXT" a file,
 * "PATH>TARGET" a link; then the devices below are looked up. Names stay within the tree. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "telemetry/devices.h"
#include "telemetry/probe.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { LINES_MOST = 24, MADE_MOST = 256, NAME_BYTES = 160 };

static char made[MADE_MOST][NAME_BYTES];
static unsigned made_count;

static bool below(const char *name)
{
    return *name && *name != '/' && !strstr(name, "..");
}

static void keep(const char *name)
{
    if (made_count < MADE_MOST)
        snprintf(made[made_count++], NAME_BYTES, "%s", name);
}

static void make_parents(int root, char *name)
{
    for (char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (made_count < MADE_MOST && mkdirat(root, name, 0700) == 0)
            keep(name);
        *slash = '/';
    }
}

/* A link leads up to the root at most. */
static void make(int root, char *line)
{
    char *mark = line + strcspn(line, "=>");
    const bool link = *mark == '>';

    if (!*mark || mark - line >= NAME_BYTES || made_count == MADE_MOST)
        return;
    *mark++ = '\0';
    if (!below(line) || (link && (*mark == '/' || strstr(mark, "../../../../.."))))
        return;
    make_parents(root, line);
    if (link) {
        if (symlinkat(mark, root, line) == 0)
            keep(line);
        return;
    }
    int file = openat(root, line, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    FUZZ_CHECK(write(file, mark, strlen(mark)) >= 0);
    close(file);
    keep(line);
}

static void look(const char *root)
{
    char proc[128], sys[128], text[256];
    const struct telemetry_roots roots = {.proc = proc, .sys = sys};
    const char *const paths[] = {root};
    const struct probe_site site = {.roots = &roots, .paths = paths, .path_count = 1};
    static struct plugin_choice choice;
    struct device_list list = {0};
    struct probe probe;
    uint64_t values[64];

    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(sys, sizeof sys, "%s/sys", root);
    devices_of_device(&roots, 8, 1, 0, &list);
    devices_of_path(&roots, root, &list);
    FUZZ_CHECK(list.count <= DEVICES_MAX && list.visits <= 1024);
    FUZZ_CHECK(strlen(devices_text(&list, text, sizeof text)) < sizeof text);
    if (!choice.plugin)
        FUZZ_CHECK(plugin_choose("probe", probe_registry, "cgroup", &choice) == 0);
    fail_clear();
    if (probe_open(&probe, &choice, &site) == 0)
        probe_sample(&probe, values);
    else
        FUZZ_CHECK(*fail_reason());
    probe_close(&probe);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = malloc(count + 1);
    char path[128];

    FUZZ_CHECK(text);
    if (count)
        memcpy(text, bytes, count);
    text[count] = '\0';
    snprintf(path, sizeof path, "%s", fuzz_path("tree/x/y/z"));
    char command[160];
    static int root = -1;
    if (root < 0) {
        snprintf(command, sizeof command, "mkdir -p '%s'", path);
        FUZZ_CHECK(system(command) == 0);
        root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        FUZZ_CHECK(root >= 0);
    }
    made_count = 0;
    unsigned lines = 0;
    for (char *save, *line = strtok_r(text, "\n", &save); line && lines++ < LINES_MOST;
         line = strtok_r(NULL, "\n", &save))
        make(root, line);
    look(path);
    while (made_count-- > 0)
        if (unlinkat(root, made[made_count], 0))
            FUZZ_CHECK(unlinkat(root, made[made_count], AT_REMOVEDIR) == 0);
    free(text);
    return 0;
}
