/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/doctor/doctor.h"

#include "base/bytes.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "cachectl/residency.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "telemetry/devices.h"
#include "telemetry/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t FREE_LEAST = 2ull << 30;

static void look_access(const char *path, struct doctor_finding *finding)
{
    if (access(path, R_OK) == 0)
        return finding_say(finding, DOCTOR_OK, "readable");
    finding_say(finding, DOCTOR_NO, "%s", fail_errno_text(errno));
    finding_advise(finding, "this user cannot measure anything below it");
}

static void look_format(const char *path, struct doctor_finding *finding)
{
    const struct plugin *format = format_detect(path);

    if (format)
        return finding_say(finding, DOCTOR_OK, "%s (%s)", format->name, format->summary);
    finding_say(finding, DOCTOR_WARN, "%s", fail_reason());
    finding_advise(finding, "create a data set in any format with 'iobench pack'");
}

/* File systems with caches besides the page cache of this machine. */
static const struct {
    const char *type;
    const char *advice;
} special[] = {
    {"tmpfs", "memory, not storage: never cold"},
    {"ramfs", "memory, not storage: never cold"},
    {"overlay", "container layers: put the data on a separate volume"},
    {"zfs", "ZFS caches outside the page cache (ARC): runs cannot be verified cold"},
};

static void look_file_system(const char *path, struct doctor_finding *finding)
{
    struct mount mount;

    if (mount_of_path(&telemetry_roots_usual, path, &mount))
        return finding_say(finding, DOCTOR_WARN, "%s", fail_reason());
    finding_say(finding, DOCTOR_OK, "%s at %.80s (%.80s)", mount.type, mount.point, mount.options);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (strcmp(special[i].type, mount.type) == 0) {
            finding->state = DOCTOR_WARN;
            finding_advise(finding, "%s", special[i].advice);
        }
    }
}

static void look_devices(const char *path, struct doctor_finding *finding)
{
    struct device_list *list = calloc(1, sizeof *list);
    char names[160];

    if (!list)
        return finding_say(finding, DOCTOR_WARN, "out of memory");
    if (devices_of_path(&telemetry_roots_usual, path, list))
        finding_say(finding, DOCTOR_WARN, "%s", fail_reason());
    else if (list->memory[0])
        finding_say(finding, DOCTOR_WARN, "%s", list->memory);
    else if (list->count == 0)
        finding_say(finding, DOCTOR_OK, "none: a network file system");
    else
        finding_say(finding, DOCTOR_OK, "%s", devices_text(list, names, sizeof names));
    if (list->memory[0])
        finding_advise(finding, "memory, not storage: never cold");
    if (list->elsewhere[0]) {
        finding->state = DOCTOR_WARN;
        finding_advise(finding,
                       "%s: the server may cache too; drop its caches with --server-drop-cmd, "
                       "verify with --server-check-cmd",
                       list->elsewhere);
    }
    free(list);
}

static void look_read_ahead(const char *path, struct doctor_finding *finding)
{
    char text[24];

    /* Of the file system's device, else of the disk beneath: a partition has none of its own. */
    static const char pattern[] = "%s/class/bdi/%u:%u/read_ahead_kb";
    const char *sys = telemetry_roots_usual.sys;
    struct device_list *list = calloc(1, sizeof *list);
    struct mount mount;
    bool found =
        mount_of_path(&telemetry_roots_usual, path, &mount) == 0 &&
        procfile_peek(text, sizeof text, pattern, sys, mount.device_major, mount.device_minor);
    if (!found && list && devices_of_path(&telemetry_roots_usual, path, list) == 0 && list->count)
        found = procfile_peek(text, sizeof text, pattern, sys, list->devices[0].device_major,
                              list->devices[0].device_minor);
    free(list);
    if (!found)
        return finding_say(finding, DOCTOR_OK, "unknown: not in /sys/class/bdi");
    const bool is_off = strcmp(text, "0") == 0;
    finding_say(finding, is_off ? DOCTOR_WARN : DOCTOR_OK, "%s KiB", text);
    if (is_off)
        finding_advise(finding, "reads in file order wait for each piece: write 128 or more to "
                                "read_ahead_kb of the device in /sys/class/bdi");
}

static void look_free(const char *path, struct doctor_finding *finding)
{
    uint64_t bytes;
    char text[32];

    if (file_free_bytes(path, &bytes))
        return finding_say(finding, DOCTOR_WARN, "%s", fail_reason());
    finding_say(finding, bytes < FREE_LEAST ? DOCTOR_WARN : DOCTOR_OK, "%s",
                bytes_text(bytes, text, sizeof text));
    if (bytes < FREE_LEAST)
        finding_advise(finding, "too little for a useful data set");
}

/* Find a regular file of the data: path itself, the first file in the folder, or a temporary one.
 */
struct sample_file {
    char *path; /* NULL: none */
    struct file_draft made;
};

static int keep_file(void *context, const char *name, unsigned char type)
{
    char **found = context;

    if (type != DT_REG)
        return 0;
    *found = strdup(name);
    return 1;
}

static void some_file(const char *path, struct sample_file *file)
{
    struct folder folder;
    char *name = NULL;

    *file = (struct sample_file){.path = NULL};
    if (!file_is_folder(path)) {
        file->path = strdup(path);
        return;
    }
    if (folder_open(&folder, path) == 0)
        folder_list(&folder, keep_file, &name);
    folder_close(&folder);
    char *wanted = file_join(path, name ? name : "iobench-doctor");
    if (name) {
        file->path = wanted;
    } else if (wanted) {
        if (file_draft_open(&file->made, wanted, NULL) == 0)
            file->path = strdup(file->made.draft_path);
        free(wanted);
    }
    free(name);
}

static void release_file(struct sample_file *file)
{
    file_draft_abandon(&file->made);
    free(file->path);
}

static void look_residency(const char *path, struct doctor_finding *finding)
{
    struct residency_probe *probe = residency_probe_create();
    struct residency residency = {0};
    struct sample_file file;

    some_file(path, &file);
    if (!probe || !file.path || file.made.path) {
        finding_say(finding, DOCTOR_WARN, "not tested: no file found");
    } else {
        residency_file(probe, file.path, &residency);
        if (residency.state == RESIDENCY_UNVERIFIED) {
            finding_say(finding, DOCTOR_NO, "%s", residency.reason);
            finding_advise(finding,
                           "no run can be verified cold here; run as the owner of the data");
        } else {
            finding_say(finding, DOCTOR_OK, "by %s",
                        residency.method ? residency_method_text(residency.method)
                                         : "its being empty");
        }
    }
    release_file(&file);
    residency_probe_destroy(probe);
}

static void look_direct(const char *path, struct doctor_finding *finding)
{
    struct sample_file file;

    some_file(path, &file);
    int fd = file.path ? file_open_quietly(file.path, O_RDONLY | O_DIRECT) : -ENOENT;
    if (!file.path) {
        finding_say(finding, DOCTOR_WARN, "not tested: cannot create a file here");
        finding_advise(finding, "pass a file of the data set instead");
    } else if (fd < 0) {
        finding_say(finding, DOCTOR_NO, "O_DIRECT: %s", fail_errno_text(fd));
        finding_advise(finding, "--direct does not work here");
    } else {
        struct statx status = {0};
#ifdef STATX_DIOALIGN
        if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
            (status.stx_mask & STATX_DIOALIGN) && status.stx_dio_offset_align)
            finding_say(finding, DOCTOR_OK, "works, in multiples of %u bytes",
                        status.stx_dio_offset_align);
        else
#endif
            finding_say(finding, DOCTOR_OK, "opens; alignment found by trial");
        (void)status;
    }
    if (fd >= 0)
        close(fd);
    release_file(&file);
}

/* What --reader auto would be, and if that reads another way than usual, as on FUSE, why. */
static void look_reader(const char *path, struct doctor_finding *finding)
{
    const struct plugin *reader = reader_auto(store_of(path)->scheme, false);
    struct reader_traits traits = {0};
    struct sample_file file;

    some_file(path, &file);
    if (!file.path || file.made.path) {
        finding_say(finding, DOCTOR_WARN, "not tested: no file found");
    } else if (doctor_try_reader(reader, file.path, true, &traits)) {
        finding_say(finding, DOCTOR_NO, "%s: %s", reader->name, fail_reason());
        finding_advise(finding, "--reader pread works everywhere");
    } else {
        finding_say(finding, *traits.notice ? DOCTOR_WARN : DOCTOR_OK, "auto is %s: %s",
                    reader->name, traits.engine);
        finding_advise(finding, "%s", traits.notice);
    }
    release_file(&file);
}

/* Commands to the disk itself, which only some disks and file systems allow. */
static void look_passthrough(const char *path, struct doctor_finding *finding)
{
    struct reader_traits traits = {0};
    struct sample_file file;

    finding_say(finding, DOCTOR_OK, "not built in");
    some_file(path, &file);
    for (const struct plugin *const *row = reader_registry; *row; row++) {
        if (!reader_of(*row)->is_passthrough)
            continue;
        if (!file.path || file.made.path)
            finding_say(finding, DOCTOR_OK, "not tested: no file found");
        else if (plugin_usable(*row) || doctor_try_reader(*row, file.path, false, &traits))
            finding_say(finding, DOCTOR_OK, "not here: %s", fail_reason());
        else
            finding_say(finding, DOCTOR_OK, "--reader %s: %s", (*row)->name, traits.engine);
    }
    release_file(&file);
}

const struct doctor_check doctor_path[] = {
    {"access", look_access},
    {"format", look_format},
    {"file system", look_file_system},
    {"devices", look_devices},
    {"O_DIRECT", look_direct},
    {"reader", look_reader},
    {"passthrough", look_passthrough},
    {"verify cold", look_residency},
    {"read-ahead", look_read_ahead},
    {"free space", look_free},
    {0},
};
