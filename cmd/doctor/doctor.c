/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench doctor: checks what works on this machine, and how to fix what does not.
 */
#include "cmd/doctor/doctor.h"

#include "base/bytes.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/draft.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/landlock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cachectl/drop.h"
#include "cachectl/residency.h"
#include "cmd/commands.h"
#include "cmd/families.h"
#include "cmd/json_file.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "readers/reader.h"
#include "report/words.h"
#include "telemetry/devices.h"
#include "telemetry/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* path: of the data, or NULL. A table ends with a NULL name. */
struct doctor_check {
    const char *name;
    void (*look)(const char *path, struct doctor_finding *finding);
};

void finding_say(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
{
    va_list arguments;

    finding->state = state;
    va_start(arguments, format);
    vsnprintf(finding->what, sizeof finding->what, format, arguments);
    va_end(arguments);
}

void finding_advise(struct doctor_finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, arguments);
    va_end(arguments);
}

enum { SMALL_FILES = 4096, SUDO_WAIT_NS = 2000000000 };
static const uint64_t PROBE_WAIT_NS = 10000000000;
static const uint64_t PINNED_LEAST = 256 << 20, MEMORY_LEAST = 1ull << 30;

/* Return the first line of a small file; "" if unreadable. */
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

static void look_kernel(const char *path, struct doctor_finding *finding)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    (void)path;
    if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        return finding_say(finding, DOCTOR_WARN, "kernel version unknown");
    bool recent = major > 6 || (major == 6 && minor >= 5);
    finding_say(finding, recent ? DOCTOR_OK : DOCTOR_WARN, "%s %s", name.sysname, name.release);
    if (!recent)
        finding_advise(
            finding,
            "Linux 6.5 and later report cached pages faster and more reliably (cachestat)");
    if (access("/proc/self", F_OK)) {
        finding_say(finding, DOCTOR_WARN, "%s %s, without /proc", name.sysname, name.release);
        finding_advise(finding, "modules of iobench, memory, devices and cached pages cannot be "
                                "found: mount -t proc proc /proc");
    }
}

/* Its first bytes are a record. */
static int index_file(const char *path, struct catalog **catalog)
{
    *catalog = catalog_create(path, "none");
    int code = *catalog ? catalog_begin_shard(*catalog, path, NULL, 0) : -ENOMEM;

    if (code == 0) {
        const uint64_t bytes = (*catalog)->shards[0].bytes;
        code = catalog_add(*catalog, 0, bytes < SMALL_FILES ? bytes : SMALL_FILES);
    }
    return code ? code : catalog_seal(*catalog);
}

/* Open a reader and a file and read the file's first bytes, as a run does. falls_back: see struct
 * reader_config. Returns 0 or a negative errno with a reason. */
static int doctor_try_reader(const struct plugin *plugin, const char *path, bool falls_back,
                             struct reader_traits *traits)
{
    static char buffer[SMALL_FILES] __attribute__((aligned(HEAP_ALIGNMENT)));
    struct plugin_choice choice = {0};
    struct iovec region = {.iov_base = buffer, .iov_len = sizeof buffer};
    struct reader_config site = {.regions = &region,
                                 .region_count = 1,
                                 .depth = 1,
                                 .bytes_max = sizeof buffer,
                                 .timeout_ns = PROBE_WAIT_NS,
                                 .falls_back = falls_back};
    struct reader reader = {0};
    struct catalog *catalog = NULL;

    int code = index_file(path, &catalog);
    if (code == 0)
        code = plugin_choose("reader", reader_registry, plugin->name, &choice);
    if (code == 0) {
        site.catalog = catalog;
        code = reader_open(&reader, &choice, &site);
        if (code == 0) {
            const uint32_t bytes = (uint32_t)catalog->record_bytes_max;
            static struct read_request
                request; /* as the buffer: an answer may come after the wait */
            struct read_request *done;
            request = (struct read_request){.bytes = bytes, .needed = bytes, .buffer = buffer};
            code = reader_submit(&reader, &request);
            if (code == 0)
                code = reader_reap(&reader, &done, 1, PROBE_WAIT_NS);
            if (code == 0)
                code = fail(ETIMEDOUT, "a read timed out");
            code = code < 0 ? code : request.result;
        }
        *traits = reader.traits;
        reader_close(&reader);
    }
    plugin_release(&choice);
    catalog_destroy(catalog);
    return code < 0 ? code : 0;
}

static void look_uring(const char *path, struct doctor_finding *finding)
{
    const struct plugin *const *row = reader_registry;
    struct reader_traits traits;

    (void)path;
    while (*row && !reader_of(*row)->remedy)
        row++;
    if (!*row) {
        finding_say(finding, DOCTOR_NO, "not built in");
        finding_advise(finding, "build with liburing-dev; until then use --reader pread");
    } else if (doctor_try_reader(*row, "/proc/self/exe", false, &traits)) { /* it is everywhere */
        finding_say(finding, DOCTOR_NO, "%s", fail_reason());
        finding_advise(finding, "%s; meanwhile use --reader pread", reader_of(*row)->remedy);
    } else {
        finding_say(finding, DOCTOR_OK, "opened a ring and read a file: %s", traits.engine);
    }
}

static void look_memlock(const char *path, struct doctor_finding *finding)
{
    struct rlimit limit;
    char text[32];

    (void)path;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return finding_say(finding, DOCTOR_WARN, "limit unknown");
    if (limit.rlim_cur == RLIM_INFINITY || geteuid() == 0)
        return finding_say(finding, DOCTOR_OK, "no limit%s", geteuid() == 0 ? " for root" : "");
    bool enough = limit.rlim_cur >= PINNED_LEAST;
    finding_say(finding, enough ? DOCTOR_OK : DOCTOR_WARN, "limit %s",
                bytes_text(limit.rlim_cur, text, sizeof text));
    if (!enough)
        finding_advise(finding, "buffers cannot be registered with the kernel, which costs CPU "
                                "time: raise 'ulimit -l'");
}

static void look_files(const char *path, struct doctor_finding *finding)
{
    struct rlimit limit;

    (void)path;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return finding_say(finding, DOCTOR_WARN, "limit unknown");
    bool enough = limit.rlim_max >= SMALL_FILES;
    finding_say(finding, enough ? DOCTOR_OK : DOCTOR_WARN, "limit %llu",
                (unsigned long long)limit.rlim_max);
    if (!enough)
        finding_advise(finding,
                       "data sets of many shards will reopen files constantly: raise 'ulimit -Hn'");
}

static void look_cpus(const char *path, struct doctor_finding *finding)
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
        finding_advise(finding, "other processes are running: figures will be low and noisy");
    else if (usable < (unsigned)online)
        finding_advise(finding, "a CPU quota or affinity mask limits decoding");
}

static void look_memory(const char *path, struct doctor_finding *finding)
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

static void look_clock(const char *path, struct doctor_finding *finding)
{
    const char *source = clock_source();
    bool slow = strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
                strcmp(source, "jiffies") == 0;

    (void)path;
    finding_say(finding, slow ? DOCTOR_WARN : DOCTOR_OK, "%s", source);
    if (slow)
        finding_advise(finding, "reading this clock takes a system call: latencies suffer");
}

static void look_drop(const char *path, struct doctor_finding *finding)
{
    static const char *const sudo[] = {"/usr/bin/sudo", "-n", "true", NULL};
    const struct child_task task = {.argv = sudo, .timeout_ns = SUDO_WAIT_NS};
    struct child_result child;

    (void)path;
    if (drop_is_permitted())
        return finding_say(finding, DOCTOR_OK, "this user can drop all caches");
    if (access(sudo[0], X_OK) == 0 && child_run(&task, &child) == 0 && child.status == 0)
        return finding_say(finding, DOCTOR_OK, "via passwordless sudo");
    finding_say(finding, DOCTOR_WARN, "only file by file (posix_fadvise)");
    finding_advise(
        finding,
        "dentries and inodes stay cached: run as root, or allow passwordless sudo for cachectl");
}

static void look_residency(const char *path, struct doctor_finding *finding)
{
    struct residency_probe *probe = residency_probe_create();
    struct residency residency;

    (void)path;
    if (!probe)
        return finding_say(finding, DOCTOR_NO, "%s", fail_reason());
    residency_file(probe, "/proc/self/exe", &residency);
    residency_probe_destroy(probe);
    if (residency.state == RESIDENCY_UNVERIFIED) {
        finding_say(finding, DOCTOR_NO, "page cache residency unknown: %s", residency.reason);
        finding_advise(finding, "no run can be verified cold; run as the owner of the data");
    } else {
        finding_say(finding, DOCTOR_OK, "via %s", residency_method_text(residency.method));
    }
}

static void look_io_counters(const char *path, struct doctor_finding *finding)
{
    char line[64];

    (void)path;
    if (line_of("/proc/self/io", line, sizeof line)[0])
        return finding_say(finding, DOCTOR_OK, "/proc/self/io is readable");
    finding_say(finding, DOCTOR_WARN, "/proc/self/io cannot be read");
    finding_advise(
        finding,
        "storage bytes are then taken from the block devices, including all other traffic");
}

static void look_sandbox(const char *path, struct doctor_finding *finding)
{
    const int abi = landlock_abi();

    (void)path;
    if (abi)
        return finding_say(finding, DOCTOR_OK,
                           "Landlock ABI %d; used for root, for others with --sandbox yes", abi);
    finding_say(finding, DOCTOR_WARN,
                "kernel without Landlock: root parses data with full privileges");
    finding_advise(
        finding,
        "needs Linux 5.13 with CONFIG_SECURITY_LANDLOCK; read untrusted data as another user");
}

static void look_gpus(const char *path, struct doctor_finding *finding)
{
    size_t count = count_matches("/proc/driver/nvidia/gpus/*");

    (void)path;
    if (count)
        return finding_say(finding, DOCTOR_OK, "%zu NVIDIA", count);
    finding_say(finding, DOCTOR_NO, "none found");
    finding_advise(finding, "not required: --trainer replay:h200 simulates one");
}

/* Only a look: nothing here reads by cuFile. */
static void look_gpu_storage(const char *path, struct doctor_finding *finding)
{
    static const char *const places[] = {"/usr/lib/*/libcufile.so.0", "/usr/lib64/libcufile.so.0",
                                         "/usr/local/cuda*/lib64/libcufile.so.0",
                                         "/usr/local/cuda*/targets/*/lib/libcufile.so.0"};
    size_t libraries = 0;

    (void)path;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        libraries += count_matches(places[i]);
    if (libraries && count_matches("/proc/driver/nvidia-fs"))
        return finding_say(finding, DOCTOR_OK, "cuFile, and the driver nvidia-fs is loaded");
    finding_say(finding, DOCTOR_NO,
                libraries ? "cuFile, without the driver nvidia-fs" : "no cuFile (libcufile.so.0)");
    finding_advise(finding, "not required: no reader uses it; frameworks do, and without nvidia-fs "
                            "it copies through host memory (package nvidia-gds)");
}

static void look_mpi(const char *path, struct doctor_finding *finding)
{
    (void)path;
    if (in_path("mpirun"))
        return finding_say(finding, DOCTOR_OK, "mpirun found");
    finding_say(finding, DOCTOR_NO, "no mpirun");
    finding_advise(finding,
                   "not required on one node; start ranks by hand with --ranks N --rank I");
}

static const struct doctor_check doctor_machine[] = {
    {"kernel", look_kernel},
    {"io_uring", look_uring},
    {"pinned memory", look_memlock},
    {"open files", look_files},
    {"CPUs", look_cpus},
    {"memory", look_memory},
    {"clock", look_clock},
    {"drop caches", look_drop},
    {"verify cold", look_residency},
    {"bytes read", look_io_counters},
    {"sandbox", look_sandbox},
    {"GPUs", look_gpus},
    {"GPU storage", look_gpu_storage},
    {"MPI", look_mpi},
    {0},
};

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
    bool found = mount_of_path(&telemetry_roots_usual, path, &mount) == 0 &&
                 file_peek(text, sizeof text, pattern, sys, mount.device_major, mount.device_minor);
    if (!found && list && devices_of_path(&telemetry_roots_usual, path, list) == 0 && list->count)
        found = file_peek(text, sizeof text, pattern, sys, list->devices[0].device_major,
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

static void look_residency_of(const char *path, struct doctor_finding *finding)
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
static void look_auto_reader(const char *path, struct doctor_finding *finding)
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

static const struct doctor_check doctor_path[] = {
    {"access", look_access},
    {"format", look_format},
    {"file system", look_file_system},
    {"devices", look_devices},
    {"O_DIRECT", look_direct},
    {"reader", look_auto_reader},
    {"passthrough", look_passthrough},
    {"verify cold", look_residency_of},
    {"read-ahead", look_read_ahead},
    {"free space", look_free},
    {0},
};

enum { COLUMN = 26 };

struct doctor_settings {
    char *json; /* file or "-" for standard output; NULL: a table */
    bool launch, fabric;
    char *proc_root, *sysfs_root;
};

static const struct option_spec doctor_options[] = {
    {"json", 0, OPTION_TEXT, offsetof(struct doctor_settings, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .begins = "[{\"section\": \"\", \"name\"", .implied = "-",
     .summary = "write JSON instead; to standard output without FILE"},
    {"fabric", 0, OPTION_FLAG, offsetof(struct doctor_settings, fabric), "no",
     .summary = "only the fabric: ports, interfaces, NFS mounts, GPU to adapter"},
    {"launch", 0, OPTION_FLAG, offsetof(struct doctor_settings, launch), "no",
     .summary = "only the job, under mpirun or srun: MPI, transport, nodes, CPUs, clocks"},
    {"proc-root", 0, OPTION_TEXT, offsetof(struct doctor_settings, proc_root), "/proc",
     .metavar = "DIR", .summary = "mount point of proc, for the fabric"},
    {"sysfs-root", 0, OPTION_TEXT, offsetof(struct doctor_settings, sysfs_root), "/sys",
     .metavar = "DIR", .summary = "mount point of sysfs, such as the host's in a container"},
    {0},
};

static const char *const state_names[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_NO] = "no"};

static void tell(const char *section, const char *name, const struct doctor_finding *finding,
                 json_t *all)
{
    char left[96];

    if (all) {
        json_t *entry = json_object();
        json_put_text(entry, "section", section);
        json_put_text(entry, "name", name);
        json_put_text(entry, "state", state_names[finding->state]);
        json_put_text(entry, "what", finding->what);
        json_object_set_new(entry, "advice",
                            finding->advice[0] ? json_text(finding->advice) : json_null());
        json_array_append_new(all, entry);
        return;
    }
    snprintf(left, sizeof left, "  %-4s  %s", state_names[finding->state], name);
    words_print(stdout, left, COLUMN, finding->what[0] ? escape_shown(finding->what) : "unknown");
    if (finding->advice[0])
        words_print(stdout, "", COLUMN, escape_shown(finding->advice));
}

/* Returns false if the first check failed and the rest were skipped. */
static bool look_all(const char *section, const struct doctor_check *checks, const char *path,
                     json_t *all)
{
    if (!all)
        printf("%s\n", section);
    for (int i = 0; checks[i].name; i++) {
        struct doctor_finding finding = {0};
        fail_clear();
        checks[i].look(path, &finding);
        tell(section, checks[i].name, &finding, all);
        if (i == 0 && finding.state == DOCTOR_NO)
            return false;
    }
    return true;
}

/* A section without a fixed list of checks. */
struct section {
    const char *name;
    json_t *all;
    bool is_bad; /* something does not work */
};

static void add_finding(void *context, const char *name, const struct doctor_finding *finding)
{
    struct section *section = context;

    section->is_bad |= finding->state == DOCTOR_NO;
    tell(section->name, name, finding, section->all);
}

static void look_fabric(const struct doctor_settings *settings, json_t *all)
{
    struct section section = {.name = "Fabric", .all = all};
    const struct telemetry_roots roots = {.proc = settings->proc_root, .sys = settings->sysfs_root};

    if (!all)
        printf("%s\n", section.name);
    doctor_look_fabric(&roots, &(struct doctor_report){add_finding, &section});
}

/* What this machine offers to one reader. */
struct offers {
    const char *reader;
    json_t *all;
    uint32_t count;
};

static void tell_offer(void *context, const struct reader_offer *offer)
{
    struct offers *offers = context;
    struct doctor_finding finding = {0};
    char name[96];

    if (!offers->all && offers->count++ == 0)
        puts("\nReaders");
    snprintf(name, sizeof name, "%s %s", offers->reader, offer->name);
    if (offer->code == 0) {
        finding_say(&finding, DOCTOR_OK, "%s", offer->found);
    } else {
        finding_say(&finding, DOCTOR_WARN, "missing: %s", fail_errno_text(offer->code));
        finding_advise(&finding, "%s", offer->remedy);
    }
    tell("Readers", name, &finding, offers->all);
}

/* This machine, its fabric and the paths. */
static int look_here(const struct invocation *invocation, json_t *all)
{
    const struct doctor_settings *settings = invocation->settings;
    const char *path = invocation->count ? invocation->operands[0] : NULL;
    int status = COMMAND_OK;

    look_all("This machine", doctor_machine, path, all);
    struct offers offers = {.all = all};
    for (const struct plugin *const *row = reader_registry; *row; row++) {
        offers.reader = (*row)->name;
        reader_offers(*row, tell_offer, &offers);
    }
    if (!all)
        putchar('\n');
    look_fabric(settings, all);
    /* List plug-ins that are built in but unusable here. */
    bool any = false;
    for (const struct family *family = family_table; family->name; family++) {
        for (int i = 0; family->registry[i]; i++) {
            struct doctor_finding finding = {0};
            char name[96];
            if (plugin_usable(family->registry[i]) == 0)
                continue;
            if (!any && !all)
                puts("\nPlug-ins not usable here");
            any = true;
            finding_say(&finding, DOCTOR_NO, "%s", fail_reason());
            snprintf(name, sizeof name, "%s %s", family->name, family->registry[i]->name);
            tell("plug-ins", name, &finding, all);
        }
    }
    for (int i = 0; i < invocation->count; i++) {
        if (!all)
            putchar('\n');
        if (!look_all(invocation->operands[i], doctor_path, invocation->operands[i], all))
            status = COMMAND_FAILED;
    }
    if (!all && !path)
        puts("\nTo check the storage of a data set too: iobench doctor PATH\n"
             "To check how a job is started: mpirun ... iobench doctor --launch");
    return status;
}

static int doctor_run(const struct invocation *invocation)
{
    const struct doctor_settings *settings = invocation->settings;
    const bool speaks = ranks_speaks(); /* joining changes what the environment says */
    json_t *all = settings->json ? json_array() : NULL;
    int status = COMMAND_OK;

    if (settings->launch && (settings->fabric || invocation->count)) {
        fail(EINVAL, "--launch looks at the job only: no --fabric, no PATH");
        status = command_misused(invocation);
    } else if (settings->launch) {
        /* Exits with 1 if the processes do not form one job, so that scripts can ask. */
        struct section section = {.name = "Launch", .all = all};
        if (!all && speaks)
            printf("%s\n", section.name);
        const int code = doctor_look_launch(&(struct doctor_report){add_finding, &section});
        if (code && !section.is_bad && speaks)
            status = command_failed(invocation);
        else
            status = code || section.is_bad ? COMMAND_FAILED : COMMAND_OK;
    } else if (settings->fabric) {
        look_fabric(settings, all);
    } else {
        status = look_here(invocation, all);
    }
    if (all && status != COMMAND_USAGE && (!settings->launch || speaks))
        return json_file_write(settings->json, all) ? command_failed(invocation) : status;
    json_decref(all);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "check what works on this machine, and how to fix what does not",
    .operands = "[PATH...]",
    .operands_maximum = -1,
    .description =
        "Checks what a measurement needs: io_uring, limits, permission to drop caches and means to "
        "verify them cold, GPUs; what each reader can use; of the fabric each port, network "
        "interface, NFS mount and the way "
        "between GPU and adapter; and of each PATH the file system, devices, O_DIRECT, the reader "
        "that "
        "--reader auto is there, passthrough and free space. Each line is ok, warn or no, with a "
        "remedy.\n"
        "--launch, under mpirun or srun, checks the job instead: which MPI and transport, ranks "
        "and "
        "nodes, the CPUs of each rank, clocks, and why processes do not find each other. It exits "
        "with 1 if something does not work.",
    .examples = "iobench doctor /mnt/imagenet\tbefore the first run on a machine\n"
                "iobench doctor --fabric\tits ports, interfaces and NFS mounts\n"
                "mpirun -n 16 --hostfile hosts iobench doctor --launch\tbefore the first job\n",
    .options = doctor_options,
    .settings_size = sizeof(struct doctor_settings),
    .run = doctor_run,
};
