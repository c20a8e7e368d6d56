/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/doctor.h"

#include "base/bytes.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/headroom.h"
#include "base/landlock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cachectl/residency.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { SMALL_FILES = 4096, SUDO_WAIT_NS = 2000000000 };
static const uint64_t PROBE_WAIT_NS = 10000000000;
static const uint64_t PINNED_LEAST = 256 << 20, MEMORY_LEAST = 1ull << 30;

/* The first line of a small file, "" when it cannot be read. */
static const char *line_of(const char *path, char *line, size_t bytes)
{
    FILE *file = file_stream_kernel(path);

    line[0] = '\0';
    if (file && !fgets(line, (int)bytes, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static bool in_path(const char *program)
{
    char *folders = getenv("PATH") ? strdup(getenv("PATH")) : NULL, *cursor = folders, *folder;
    bool found = false;

    while (!found && cursor && (folder = strsep(&cursor, ":"))) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, program);
        found = access(path, X_OK) == 0;
    }
    free(folders);
    return found;
}

static size_t count_matches(const char *pattern)
{
    struct folder_names found;

    folder_names_matching(&found, pattern);
    size_t count = found.count;
    folder_names_release(&found);
    return count;
}

static void look_kernel(const char *path, struct finding *finding)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    (void)path;
    if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        return finding_say(finding, DOCTOR_WARN, "the kernel does not say its version");
    bool recent = major > 6 || (major == 6 && minor >= 5);
    finding_say(finding, recent ? DOCTOR_OK : DOCTOR_WARN, "%s %s", name.sysname, name.release);
    if (!recent)
        finding_advise(finding, "Linux 6.5 and later tell faster and more surely what is cached");
}

/* The program itself is a file that can be read everywhere. */
static int index_program(struct catalog **catalog)
{
    *catalog = catalog_create("/proc/self", "none");
    int code = *catalog ? catalog_begin_shard(*catalog, "/proc/self/exe", NULL, 0) : -ENOMEM;

    if (code == 0)
        code = catalog_add(*catalog, 0, SMALL_FILES);
    return code ? code : catalog_seal(*catalog);
}

static int read_one(struct reader *reader, void *buffer, uint32_t bytes)
{
    struct read_request request = {.bytes = bytes, .needed = bytes, .buffer = buffer};
    struct read_request *done;

    int code = reader_submit(reader, &request);
    if (code == 0)
        code = reader_reap(reader, &done, 1, PROBE_WAIT_NS);
    if (code == 0)
        code = fail(ETIMEDOUT, "a read of /proc/self/exe was not answered");
    return code < 0 ? code : request.result;
}

/* What a run of this reader does first: open it, open a file, read. 0 or why not; engine: what ran.
 */
static int try_reader(const struct plugin *plugin, char *engine, size_t engine_bytes)
{
    static char buffer[SMALL_FILES];
    struct plugin_choice choice = {0};
    struct iovec region = {.iov_base = buffer, .iov_len = sizeof buffer};
    struct reader_config site = {.regions = &region,
                                 .region_count = 1,
                                 .depth = 1,
                                 .bytes_max = sizeof buffer,
                                 .timeout_ns = PROBE_WAIT_NS};
    struct reader reader = {0};
    struct catalog *catalog = NULL;

    int code = index_program(&catalog);
    if (code == 0)
        code = plugin_choose("reader", reader_registry, plugin->name, &choice);
    if (code == 0) {
        site.catalog = catalog;
        code = reader_open(&reader, &choice, &site);
        if (code == 0)
            code = read_one(&reader, buffer, (uint32_t)catalog->record_bytes_max);
        snprintf(engine, engine_bytes, "%s", reader.traits.engine);
        reader_close(&reader);
    }
    plugin_release(&choice);
    catalog_destroy(catalog);
    return code < 0 ? code : 0;
}

static void look_uring(const char *path, struct finding *finding)
{
    const struct plugin *const *row = reader_registry;
    char engine[sizeof((struct reader_traits){0}.engine)];

    (void)path;
    while (*row && !reader_of(*row)->remedy)
        row++;
    if (!*row) {
        finding_say(finding, DOCTOR_NO, "not built in");
        finding_advise(finding, "build with liburing-dev; meanwhile use --reader pread");
    } else if (try_reader(*row, engine, sizeof engine)) {
        finding_say(finding, DOCTOR_NO, "%s", fail_reason());
        finding_advise(finding, "%s; meanwhile use --reader pread", reader_of(*row)->remedy);
    } else {
        finding_say(finding, DOCTOR_OK, "a ring was made and a file read: %s", engine);
    }
}

static void look_memlock(const char *path, struct finding *finding)
{
    struct rlimit limit;
    char text[32];

    (void)path;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return finding_say(finding, DOCTOR_WARN, "the limit is not known");
    if (limit.rlim_cur == RLIM_INFINITY || geteuid() == 0)
        return finding_say(finding, DOCTOR_OK, "no limit%s", geteuid() == 0 ? " for root" : "");
    bool enough = limit.rlim_cur >= PINNED_LEAST;
    finding_say(finding, enough ? DOCTOR_OK : DOCTOR_WARN, "%s may be pinned",
                bytes_text(limit.rlim_cur, text, sizeof text));
    if (!enough)
        finding_advise(finding, "buffers are not registered with the kernel, which costs some CPU: "
                                "raise 'ulimit -l'");
}

static void look_files(const char *path, struct finding *finding)
{
    struct rlimit limit;

    (void)path;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return finding_say(finding, DOCTOR_WARN, "the limit is not known");
    bool enough = limit.rlim_max >= SMALL_FILES;
    finding_say(finding, enough ? DOCTOR_OK : DOCTOR_WARN, "%llu may be open at once",
                (unsigned long long)limit.rlim_max);
    if (!enough)
        finding_advise(finding, "data sets of many shards open and close them all the time: raise "
                                "'ulimit -Hn'");
}

static void look_cpus(const char *path, struct finding *finding)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned usable = thread_cpu_count();
    double load = 0;

    (void)path;
    if (getloadavg(&load, 1) != 1)
        load = 0;
    bool busy = load > 0.25 * usable + 0.25;
    finding_say(finding, busy || usable < (unsigned)online ? DOCTOR_WARN : DOCTOR_OK,
                "%u of %ld usable, load %.2f", usable, online, load);
    if (busy)
        finding_advise(finding, "something else is running: figures will be low and differ");
    else if (usable < (unsigned)online)
        finding_advise(finding, "a CPU quota or affinity holds decoding back");
}

static void look_memory(const char *path, struct finding *finding)
{
    struct headroom headroom;
    char text[32];

    (void)path;
    headroom_find(&headroom, "/proc", "/sys");
    const bool little = headroom.available_bytes < MEMORY_LEAST;
    finding_say(finding, little ? DOCTOR_WARN : DOCTOR_OK, "%s available, by %s",
                bytes_text(headroom.available_bytes, text, sizeof text), headroom.cause);
    if (little)
        finding_advise(finding, "a shuffle buffer may not fit");
}

static void look_clock(const char *path, struct finding *finding)
{
    const char *source = clock_source();
    bool slow = strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
                strcmp(source, "jiffies") == 0;

    (void)path;
    finding_say(finding, slow ? DOCTOR_WARN : DOCTOR_OK, "%s", source);
    if (slow)
        finding_advise(finding, "each time stamp is a trip into the kernel: latencies suffer");
}

static void look_drop(const char *path, struct finding *finding)
{
    static const char *const sudo[] = {"/usr/bin/sudo", "-n", "true", NULL};
    const struct child_task task = {.argv = sudo, .timeout_ns = SUDO_WAIT_NS};
    struct child_result child;

    (void)path;
    if (access("/proc/sys/vm/drop_caches", W_OK) == 0)
        return finding_say(finding, DOCTOR_OK, "this user may empty all caches");
    if (access(sudo[0], X_OK) == 0 && child_run(&task, &child) == 0 && child.status == 0)
        return finding_say(finding, DOCTOR_OK, "by sudo, without a password");
    finding_say(finding, DOCTOR_WARN, "only file by file (posix_fadvise)");
    finding_advise(finding, "names and inodes stay cached: run as root, or let sudo run cachectl "
                            "without a password");
}

static void look_residency(const char *path, struct finding *finding)
{
    struct residency_probe *probe = residency_probe_create();
    struct residency residency;

    (void)path;
    if (!probe)
        return finding_say(finding, DOCTOR_NO, "%s", fail_reason());
    residency_file(probe, "/proc/self/exe", &residency);
    residency_probe_destroy(probe);
    if (residency.state == RESIDENCY_UNVERIFIED) {
        finding_say(finding, DOCTOR_NO, "what is cached cannot be told: %s", residency.reason);
        finding_advise(finding, "no run can be proven cold; run as the owner of the data");
    } else {
        finding_say(finding, DOCTOR_OK, "by %s", residency_method_text(residency.method));
    }
}

static void look_io_counters(const char *path, struct finding *finding)
{
    char line[64];

    (void)path;
    if (line_of("/proc/self/io", line, sizeof line)[0])
        return finding_say(finding, DOCTOR_OK, "/proc/self/io is there");
    finding_say(finding, DOCTOR_WARN, "/proc/self/io cannot be read");
    finding_advise(finding, "bytes that left storage are then taken from the devices, with all "
                            "other traffic on them");
}

static void look_sandbox(const char *path, struct finding *finding)
{
    const int abi = landlock_abi();

    (void)path;
    if (abi)
        return finding_say(finding, DOCTOR_OK,
                           "landlock ABI %d; root runs in it, others with --sandbox yes", abi);
    finding_say(finding, DOCTOR_WARN,
                "no Landlock in this kernel: root parses with all its rights");
    finding_advise(finding, "Linux 5.13 with CONFIG_SECURITY_LANDLOCK has it; read data of unknown "
                            "origin as another user");
}

static void look_gpus(const char *path, struct finding *finding)
{
    size_t count = count_matches("/proc/driver/nvidia/gpus/*");

    (void)path;
    if (count)
        return finding_say(finding, DOCTOR_OK, "%zu NVIDIA", count);
    finding_say(finding, DOCTOR_NO, "none found");
    finding_advise(finding, "not needed: --trainer replay:h200 takes the time of one");
}

static void look_infiniband(const char *path, struct finding *finding)
{
    struct folder_names found;
    char state[64], rate[64], file[512];

    (void)path;
    folder_names_matching(&found, "/sys/class/infiniband/*/ports/*");
    const size_t ports = found.count;
    if (ports == 0)
        return finding_say(finding, DOCTOR_NO, "no InfiniBand or RoCE port");
    snprintf(file, sizeof file, "%s/state", found.list[0]);
    line_of(file, state, sizeof state);
    snprintf(file, sizeof file, "%s/rate", found.list[0]);
    line_of(file, rate, sizeof rate);
    folder_names_release(&found);
    bool active = strstr(state, "ACTIVE") != NULL;
    finding_say(finding, active ? DOCTOR_OK : DOCTOR_WARN, "%zu ports, the first: %s, %s", ports,
                state, rate);
    if (!active)
        finding_advise(finding, "a port that is down: see ibstat");
}

static void look_mpi(const char *path, struct finding *finding)
{
    (void)path;
    if (in_path("mpirun"))
        return finding_say(finding, DOCTOR_OK, "mpirun is there");
    finding_say(finding, DOCTOR_NO, "no mpirun");
    finding_advise(finding, "not needed on one node; ranks can be started by hand with --ranks N "
                            "--rank I");
}

const struct doctor_check doctor_machine[] = {
    {"kernel", look_kernel},
    {"io_uring", look_uring},
    {"pinned memory", look_memlock},
    {"open files", look_files},
    {"CPUs", look_cpus},
    {"memory", look_memory},
    {"clock", look_clock},
    {"empty caches", look_drop},
    {"prove cold", look_residency},
    {"bytes read", look_io_counters},
    {"sandbox", look_sandbox},
    {"GPUs", look_gpus},
    {"InfiniBand", look_infiniband},
    {"MPI", look_mpi},
    {0},
};
