/* SPDX-License-Identifier: Apache-2.0
 *
 * Does telemetry tell the truth, and what does it cost?
 *  - cost: every probe that works here, ten times a second, in percent of one core;
 *  - known bytes: a file read with O_DIRECT against each witness of what left storage;
 *  - known rates: a reader in a control group that may read 50, 200, 500 MB/s and counts what it
 *    reads, against the rates of the probes cgroup and process (root, and the blkio or io
 *    controller);
 * bench/telemetry_rates.py asks the same of the whole program, with iostat and tcpdump beside it.
 *
 *   bench/telemetry [--long] [FOLDER]     makes FOLDER/telemetry.bench and removes it
 */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stats.h"
#include "telemetry/series.h"
#include "telemetry/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, ROUNDS = 5 };

static const uint64_t second_ns = UINT64_C(1000000000);

struct bench {
    const char *path;
    uint64_t bytes;
    uint64_t seconds;     /* of one measurement */
    struct counter *told; /* bytes, shared with a reading child */
};

static int explain(void)
{
    fprintf(stderr, "telemetry: %s\n", fail_reason());
    return 1;
}

/* Deviation from the true value in percent. */
static double off_percent(double figure, double truth)
{
    return truth > 0 ? 100 * fabs(figure / truth - 1) : 100;
}

static void claim(const char *name, double off, double goal)
{
    printf("claim %s %.2f %% off goal <=%g %s\n", name, off, goal, off <= goal ? "ok" : "short");
}

static int make_file(const struct bench *bench)
{
    uint64_t *block = aligned_alloc(4096, BLOCK);
    int fd = open(bench->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), code = 0;

    if (fd < 0 || !block) {
        free(block);
        return fail(errno, "%s: cannot make the file: %s", bench->path, fail_errno_text(errno));
    }
    for (uint64_t at = 0; at < bench->bytes && code == 0; at += BLOCK) {
        for (size_t i = 0; i < BLOCK / sizeof *block; i++)
            block[i] = (at + i) * UINT64_C(0x9e3779b97f4a7c15);
        code = file_write_at(fd, block, BLOCK, at, bench->path);
    }
    if (code == 0 && fsync(fd))
        code = fail(errno, "%s: %s", bench->path, fail_errno_text(errno));
    close(fd);
    free(block);
    return code;
}

/* Reads the file with O_DIRECT, once, or for ever if counts is given. Returns bytes. */
static uint64_t read_file(const struct bench *bench, struct counter *told)
{
    void *block = aligned_alloc(4096, BLOCK);
    int fd = open(bench->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    uint64_t bytes = 0;

    while (fd >= 0 && block) {
        ssize_t got = pread(fd, block, BLOCK, (off_t)(bytes % bench->bytes));
        if (got <= 0)
            break;
        bytes += (uint64_t)got;
        if (told)
            counter_add(told, (uint64_t)got);
        else if (bytes >= bench->bytes)
            break;
    }
    if (fd >= 0)
        close(fd);
    free(block);
    return bytes;
}

static struct sampler *start_sampler(const struct bench *bench, const char *names, int pid)
{
    const struct sampler_site site = {.probes = {.roots = &telemetry_roots_usual,
                                                 .paths = &bench->path,
                                                 .path_count = 1,
                                                 .pids = &pid,
                                                 .pid_count = 1},
                                      .names = names};
    struct sampler *sampler = sampler_open(&site);

    if (sampler && sampler_start(sampler)) {
        sampler_close(sampler);
        return NULL;
    }
    return sampler;
}

/* ---- cost ---- */

static int measure_cost(const struct bench *bench)
{
    struct sampler *sampler = start_sampler(bench, NULL, 0);

    if (!sampler)
        return explain();
    clock_sleep_ns(bench->seconds * second_ns);
    sampler_stop(sampler);
    struct sampler_figures figures = sampler_figures(sampler);
    double percent = 100 * (double)figures.cpu_ns / (double)figures.wall_ns;
    printf("cost: %u metrics, %llu samples, %llu late, the longest %.0f us, %.0f us of CPU each\n",
           sampler_series(sampler)->metric_count, (unsigned long long)figures.samples,
           (unsigned long long)figures.late, (double)figures.longest_ns / 1e3,
           (double)figures.cpu_ns / 1e3 / (double)figures.samples);
    printf("claim telemetry_cost %.3f %% of a core goal <=0.5 %s\n", percent,
           percent <= 0.5 ? "ok" : "short");
    sampler_close(sampler);
    return 0;
}

/* ---- known bytes ---- */

static int measure_bytes(const struct bench *bench)
{
    struct storage *storage = storage_open(&telemetry_roots_usual, &bench->path, 1);
    double process[ROUNDS], device[ROUNDS];
    struct storage_bytes before, after;
    struct storage_share share = {0};

    if (!storage)
        return explain();
    for (int i = 0; i < ROUNDS; i++) {
        storage_read(storage, &before);
        uint64_t bytes = read_file(bench, NULL);
        storage_read(storage, &after);
        storage_between(storage, &before, &after, &share);
        process[i] = share.known ? off_percent((double)share.bytes, (double)bytes) : 100;
        device[i] = share.parts.device_known
                        ? off_percent((double)share.parts.device_read_bytes, (double)bytes)
                        : 100;
    }
    printf("bytes: %llu MB read direct, %d times; witness %s%s\n",
           (unsigned long long)(bench->bytes / 1000000), ROUNDS, share.method, share.reason);
    printf("bytes: the devices, which serve everybody, were %.2f%% off\n",
           stats_summarise(device, ROUNDS).median);
    claim("telemetry_bytes", stats_summarise(process, ROUNDS).maximum, 1);
    storage_close(storage);
    return 0;
}

/* ---- known rates ---- */

struct group {
    char path[256];
    bool version1;
};

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

static bool make_group(struct group *group, const struct device *device, uint64_t bytes_per_s)
{
    char limit[128];

    group->version1 = file_is_folder("/sys/fs/cgroup/blkio");
    snprintf(group->path, sizeof group->path, "/sys/fs/cgroup/%siobench-bench-%d",
             group->version1 ? "blkio/" : "", (int)getpid());
    if (!group->version1)
        write_text("/sys/fs/cgroup", "cgroup.subtree_control", "+io");
    if (mkdir(group->path, 0755))
        return false;
    snprintf(limit, sizeof limit, group->version1 ? "%u:%u %llu" : "%u:%u rbps=%llu",
             device->device_major, device->device_minor, (unsigned long long)bytes_per_s);
    if (write_text(group->path, group->version1 ? "blkio.throttle.read_bps_device" : "io.max",
                   limit))
        return true;
    rmdir(group->path);
    return false;
}

/* A child in the group that reads when told to. */
static pid_t start_reader(const struct bench *bench, const struct group *group, int *go)
{
    int ends[2];
    char text[32], byte;

    if (pipe(ends))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        if (read(ends[0], &byte, 1) == 1)
            read_file(bench, bench->told);
        _exit(0);
    }
    close(ends[0]);
    *go = ends[1];
    snprintf(text, sizeof text, "%d", (int)pid);
    return write_text(group->path, "cgroup.procs", text) ? pid : -1;
}

static double rate_between(const struct series *series, const char *probe, uint64_t from_ns,
                           uint64_t to_ns)
{
    uint32_t metric = series_find(series, probe, NULL, "read_bytes");
    uint64_t first_ns = 0, last_ns = 0;

    if (metric == series->metric_count)
        return NAN;
    for (uint64_t row = 0; row < series->row_count; row++) {
        uint64_t time_ns = series_time_ns(series, row);
        if (time_ns <= from_ns || first_ns == 0)
            first_ns = time_ns;
        if (time_ns <= to_ns)
            last_ns = time_ns;
    }
    return series_total(series, metric, from_ns, to_ns) / ((double)(last_ns - first_ns) / 1e9);
}

static int measure_rate(const struct bench *bench, const struct device *device, uint64_t mb_per_s)
{
    struct group group;
    char name[64];
    int go = -1;

    if (!make_group(&group, device, mb_per_s * 1000000)) {
        printf("rate: not measured: no control group can be made that limits %s\n", device->name);
        return 0;
    }
    pid_t pid = start_reader(bench, &group, &go);
    struct sampler *sampler = pid > 0 ? start_sampler(bench, "cgroup,process", pid) : NULL;
    if (sampler && write(go, "x", 1) == 1) {
        clock_sleep_ns(second_ns); /* the first slice may carry extra */
        /* Samples at both ends: a limit lets data through in bursts of 100 ms. */
        sampler_sample(sampler);
        uint64_t from_ns = clock_now_ns(), from_bytes = counter_get(bench->told);
        clock_sleep_ns(bench->seconds * second_ns);
        sampler_sample(sampler);
        uint64_t to_ns = clock_now_ns();
        double truth =
            (double)(counter_get(bench->told) - from_bytes) * 1e3 / (double)(to_ns - from_ns);
        sampler_stop(sampler);
        const struct series *series = sampler_series(sampler);
        double by_group = rate_between(series, "cgroup", from_ns, to_ns) / 1e6;
        double by_process = rate_between(series, "process", from_ns, to_ns) / 1e6;
        printf("rate: %llu MB/s allowed, %.2f read: %.2f by the control group, %.2f by the "
               "process\n",
               (unsigned long long)mb_per_s, truth, by_group, by_process);
        snprintf(name, sizeof name, "telemetry_rate_%llu", (unsigned long long)mb_per_s);
        claim(name, fmax(off_percent(by_group, truth), off_percent(by_process, truth)), 1);
    }
    close(go);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    rmdir(group.path);
    if (!sampler)
        return explain();
    sampler_close(sampler);
    return 0;
}

/* ---- */

static int run(const struct bench *bench, bool longer)
{
    static const uint64_t rates[] = {50, 200, 500};
    struct device_list devices = {0};
    int status = make_file(bench) ? explain() : 0;

    if (status == 0)
        status = measure_cost(bench);
    if (status == 0)
        status = measure_bytes(bench);
    if (devices_of_path(&telemetry_roots_usual, bench->path, &devices) || devices.count != 1) {
        printf("rate: not measured: there is not one device beneath the file\n");
        return status;
    }
    for (size_t i = longer ? 0 : 1; i < sizeof rates / sizeof rates[0] && status == 0; i++)
        status = measure_rate(bench, &devices.devices[0], rates[i]);
    return status;
}

int main(int argc, char **argv)
{
    struct bench bench = {.bytes = UINT64_C(256) << 20, .seconds = 3};
    const char *folder = "/var/tmp";
    bool longer = false;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--long") == 0)
            longer = true;
        else
            folder = argv[i];
    if (longer)
        bench.seconds = 10;
    char *path = file_join(folder, "telemetry.bench");
    if (!path)
        return explain();
    bench.path = path;
    bench.told =
        mmap(NULL, sizeof *bench.told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bench.told == MAP_FAILED)
        return 1;
    int status = run(&bench, longer);
    unlink(path);
    free(path);
    return status;
}
