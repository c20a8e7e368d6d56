/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/doctor/doctor.h"

#include "base/bytes.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/heap.h"
#include "base/memory.h"
#include "base/landlock.h"
#include "base/thread.h"
#include "cachectl/drop.h"
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

int doctor_try_reader(const struct plugin *plugin, const char *path, bool falls_back,
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

const struct doctor_check doctor_machine[] = {
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
