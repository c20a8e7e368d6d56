/* SPDX-License-Identifier: Apache-2.0
 *
 * Our readers against fio's io_uring engine, in turn, on the same file, with the same block sizes
 * and depth: 1 MiB in order and extents as large as ImageNet's in random order, direct and
 * through a cold page cache.
 *
 * Each run is a process of its own. CPU time is that of the reads alone: ours of the whole process,
 * the kernel's workers included, and fio's of its reading thread, which needs no worker for these
 * files. Past the page cache a read costs so little that each run reads the file twice.
 * The page cache is emptied of the file before each run and proven to be so. A virtual machine may
 * report free memory to its host (page_reporting, after two seconds), which takes it away; whoever
 * uses it next waits for new pages of the host, and longer than for the disk. So before a run
 * through the page cache the free memory is given time to be reported, and then the file is read
 * and dropped once more: the run gets the memory that this leaves, and both sides the same.
 * Still some runs wait, and take twice as long; for small differences keep the host from it (root):
 * echo 11 >/sys/module/page_reporting/parameters/page_reporting_order
 *
 *   bench/io [--long] [--rounds N] [--case NAME] [--reader NAME[:...]] [FOLDER]
 * makes FOLDER/io.bench and removes it
 */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/random.h"
#include "base/stats.h"
#include "cachectl/residency.h"
#include "dataset/catalog.h"
#include "readers/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 32, BLOCK = 1 << 20, ROUNDS_MOST = 15, DIRECT_PASSES = 2, REPORT_SECONDS = 3 };

/* Mean 115 KiB, distributed like ImageNet's files; shares in percent. fio gets the same text. */
static const struct {
    uint32_t kib, percent;
} sizes[] = {{32, 10}, {64, 22}, {96, 25}, {128, 20}, {160, 11}, {224, 8}, {384, 4}};
enum { SIZES = sizeof sizes / sizeof *sizes };

struct io_case {
    const char *name;
    bool direct, random;
    double goal; /* of our throughput relative to fio's */
};

static const struct io_case cases[] = {
    {"seq-direct", true, false, 0.98},
    {"random-direct", true, true, 0.98},
    {"seq-buffered-cold", false, false, 1.0},
    {"random-buffered-cold", false, true, 1.0},
};

struct bench {
    char *path;
    uint64_t bytes;
    uint32_t rounds;
    const char *reader; /* NULL: uring */
    const char *only;   /* the only case to run; NULL: all */
    struct catalog *catalog;
    struct residency_probe *probe;
};

/* Cost of the reads of one process. */
struct outcome {
    double seconds, bytes, cpu_seconds;
};

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* ---- our side ---- */

static uint32_t draw_size(struct random *random)
{
    uint64_t percent = random_below(random, 100);

    for (int i = 0; i < SIZES; i++) {
        if (percent < sizes[i].percent)
            return sizes[i].kib * 1024;
        percent -= sizes[i].percent;
    }
    return sizes[SIZES - 1].kib * 1024;
}

static uint32_t plan(const struct bench *bench, const struct io_case *way, uint64_t total,
                     struct extent *extents)
{
    struct random random = random_start(clock_now_ns());
    uint32_t count = 0;

    for (uint64_t done = 0; done < total; count++) {
        struct extent *extent = &extents[count];
        extent->bytes = way->random ? draw_size(&random) : BLOCK;
        extent->offset = way->random
                             ? random_below(&random, (bench->bytes - extent->bytes) / 4096) * 4096
                             : done % bench->bytes;
        done += extent->bytes;
    }
    return count;
}

static int read_all(struct reader *reader, const struct extent *extents, uint32_t count,
                    uint8_t *memory, struct outcome *outcome)
{
    struct read_request requests[DEPTH], *idle[DEPTH], *done[DEPTH];
    uint32_t idle_count = DEPTH, next = 0, finished = 0;
    const uint64_t start_ns = clock_now_ns();
    const double start_cpu = cpu_seconds();

    for (uint32_t i = 0; i < DEPTH; i++)
        idle[i] = &requests[i];
    while (finished < count) {
        while (idle_count > 0 && next < count) {
            struct read_request *request = idle[--idle_count];
            *request = (struct read_request){
                .offset = extents[next].offset,
                .bytes = extents[next].bytes,
                .needed = extents[next].bytes,
                .buffer = memory + (size_t)(request - requests) * BLOCK,
            };
            next++;
            int code = reader_submit(reader, request);
            if (code)
                return code;
        }
        int got = reader_reap(reader, done, DEPTH, 1000000000);
        if (got < 0)
            return got;
        for (int i = 0; i < got; i++) {
            if (done[i]->result < 0)
                return done[i]->result;
            outcome->bytes += done[i]->result;
            reader_release(reader, done[i]);
            idle[idle_count++] = done[i];
        }
        finished += (uint32_t)got;
    }
    outcome->seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    outcome->cpu_seconds = cpu_seconds() - start_cpu;
    return 0;
}

static int run_ours(const struct bench *bench, const struct io_case *way, uint64_t total,
                    struct outcome *outcome)
{
    char text[128];
    size_t bytes = (size_t)DEPTH * BLOCK;
    struct plugin_choice choice = {0};
    struct reader reader;

    snprintf(text, sizeof text, "%s%sdirect=%s,readahead=%s",
             bench->reader ? bench->reader : "uring",
             bench->reader && strchr(bench->reader, ':') ? "," : ":", way->direct ? "yes" : "no",
             way->random ? "no" : "auto");
    struct extent *extents = calloc(total / (32 * 1024) + 1, sizeof *extents);
    struct heap *heap = heap_create(bytes, bytes, 4096); /* the memory a loader reads into */
    if (!extents || !heap)
        return fail(ENOMEM, "out of memory");
    memset(heap_base(heap), 1, bytes); /* before the clock starts, as fio fills its own */
    struct iovec region = {.iov_base = heap_base(heap), .iov_len = bytes};
    struct reader_config site = {.catalog = bench->catalog,
                                 .regions = &region,
                                 .region_count = 1,
                                 .depth = DEPTH,
                                 .in_order = !way->random,
                                 .timeout_ns = UINT64_C(30000000000)};
    int code = plugin_choose("reader", reader_registry, text, &choice);
    if (code)
        return code;
    uint32_t count = plan(bench, way, total, extents);
    code = reader_open(&reader, &choice, &site);
    if (code == 0)
        code = read_all(&reader, extents, count, heap_base(heap), outcome);
    reader_close(&reader);
    plugin_release(&choice);
    heap_destroy(heap);
    free(extents);
    return code;
}

/* ---- fio's side ---- */

static void exec_fio(const struct bench *bench, const struct io_case *way, uint64_t total)
{
    char file[4200], size[64], io_size[64], split[256] = "--bssplit=";
    const char *arguments[32];
    int count = 0;

    for (int i = 0; i < SIZES; i++)
        snprintf(split + strlen(split), sizeof split - strlen(split), "%s%uk/%u", i ? ":" : "",
                 sizes[i].kib, sizes[i].percent);
    snprintf(file, sizeof file, "--filename=%s", bench->path);
    snprintf(size, sizeof size, "--size=%llu", (unsigned long long)bench->bytes);
    snprintf(io_size, sizeof io_size, "--io_size=%llu", (unsigned long long)total);
    arguments[count++] = "fio";
    arguments[count++] = "--name=io";
    arguments[count++] = "--ioengine=io_uring";
    arguments[count++] = "--output-format=json";
    arguments[count++] = "--iodepth=32";
    arguments[count++] = "--thread";
    arguments[count++] = "--registerfiles=1";
    arguments[count++] = "--iomem_align=4096"; /* as in bench/iops.c */
    arguments[count++] = file;
    arguments[count++] = size;
    arguments[count++] = io_size;
    arguments[count++] = way->direct ? "--direct=1" : "--direct=0";
    if (way->direct)
        arguments[count++] = "--fixedbufs=1";
    if (way->random) {
        arguments[count++] = "--rw=randread";
        arguments[count++] = "--norandommap";
        arguments[count++] = "--randrepeat=0";
        arguments[count++] = "--ba=4k";
        arguments[count++] = split;
    } else {
        arguments[count++] = "--rw=read";
        arguments[count++] = "--bs=1m";
    }
    arguments[count] = NULL;
    /* fio's buffers on huge pages, like ours: a disk limits the segments per request, so 1 MiB in
     * single pages may be split. */
    setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
    execvp("fio", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static int parse_fio(FILE *stream, struct outcome *outcome)
{
    json_error_t error;
    json_t *root = json_loadf(stream, 0, &error);
    json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
    json_t *read = json_object_get(job, "read");
    const double percent = json_number_value(json_object_get(job, "usr_cpu")) +
                           json_number_value(json_object_get(job, "sys_cpu"));

    outcome->bytes = json_number_value(json_object_get(read, "io_bytes"));
    outcome->seconds = outcome->bytes / json_number_value(json_object_get(read, "bw_bytes"));
    outcome->cpu_seconds =
        percent / 100 * json_number_value(json_object_get(job, "job_runtime")) / 1000;
    json_decref(root);
    return outcome->bytes > 0 ? 0 : fail(EIO, "cannot parse fio's output: %s", error.text);
}

/* ---- one run of either ---- */

static int evict(const struct bench *bench, int fd)
{
    struct residency residency;

    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    residency_file(bench->probe, bench->path, &residency);
    return residency.state == RESIDENCY_WARM
               ? fail(EBUSY, "%s: %.1f%% still in the page cache", bench->path, residency.percent)
               : 0;
}

static int read_through_cache(const struct bench *bench, int fd)
{
    int code = 0;
    void *memory = malloc(BLOCK);

    for (uint64_t at = 0; memory && code == 0 && at < bench->bytes; at += BLOCK)
        if (pread(fd, memory, BLOCK, (off_t)at) != BLOCK)
            code = fail(EIO, "%s: a short read", bench->path);
    free(memory);
    return memory ? code : fail(ENOMEM, "out of memory");
}

static int make_cold(const struct bench *bench, const struct io_case *way)
{
    int fd = open(bench->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return fail(errno, "%s: %s", bench->path, fail_errno_text(errno));
    int code = evict(bench, fd);
    if (code == 0 && !way->direct) {
        sleep(REPORT_SECONDS);
        code = read_through_cache(bench, fd);
        if (code == 0)
            code = evict(bench, fd);
    }
    close(fd);
    return code;
}

static void child(const struct bench *bench, const struct io_case *way, bool fio, uint64_t total,
                  int pipe_fd)
{
    struct outcome outcome = {0};

    if (fio) {
        dup2(pipe_fd, STDOUT_FILENO);
        exec_fio(bench, way, total);
    }
    int code = run_ours(bench, way, total, &outcome);
    if (code)
        fprintf(stderr, "io: %s\n", fail_reason());
    else if (write(pipe_fd, &outcome, sizeof outcome) != sizeof outcome)
        code = -EIO;
    _exit(code ? 1 : 0);
}

static int run_once(const struct bench *bench, const struct io_case *way, bool fio, uint64_t total,
                    struct outcome *outcome)
{
    int ends[2], status;
    int code = make_cold(bench, way);

    if (code)
        return code;
    if (pipe(ends))
        return fail(errno, "pipe: %s", fail_errno_text(errno));
    pid_t pid = fork();
    if (pid < 0)
        return fail(errno, "fork: %s", fail_errno_text(errno));
    if (pid == 0)
        child(bench, way, fio, total, ends[1]);
    close(ends[1]);
    FILE *stream = fdopen(ends[0], "r");
    if (fio)
        code = parse_fio(stream, outcome);
    else if (fread(outcome, sizeof *outcome, 1, stream) != 1)
        code = fail(EIO, "our own run failed");
    fclose(stream);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
        return code ? code : fail(EIO, "%s failed", fio ? "fio" : "our own run");
    return code;
}

static double cpu_per_gib(const struct outcome *outcome)
{
    return outcome->cpu_seconds / (outcome->bytes / (double)(1U << 30));
}

static double median(double *values, uint32_t count)
{
    return stats_summarise(values, count).median;
}

static int run_case(const struct bench *bench, const struct io_case *way)
{
    const uint64_t total = bench->bytes * (way->direct ? DIRECT_PASSES : 1);
    double speed[ROUNDS_MOST], cpu[ROUNDS_MOST];
    int code = 0;

    for (uint32_t round = 0; code == 0 && round < bench->rounds; round++) {
        struct outcome ours, theirs;
        bool first = round % 2; /* sides alternate in going first */
        code = run_once(bench, way, first, total, first ? &theirs : &ours);
        if (code == 0)
            code = run_once(bench, way, !first, total, first ? &ours : &theirs);
        if (code)
            break;
        const double our_cpu = cpu_per_gib(&ours), fio_cpu = cpu_per_gib(&theirs);
        speed[round] = ours.bytes / ours.seconds / (theirs.bytes / theirs.seconds);
        cpu[round] = fio_cpu / our_cpu;
        printf("%-21s round %2u  ours %7.0f MiB/s %6.3f CPU s/GiB   fio %7.0f MiB/s %6.3f CPU "
               "s/GiB   ratio %.3f\n",
               way->name, round + 1, ours.bytes / ours.seconds / BLOCK, our_cpu,
               theirs.bytes / theirs.seconds / BLOCK, fio_cpu, speed[round]);
        fflush(stdout);
    }
    if (code)
        return code;
    struct stats_summary ratios = stats_summarise(speed, bench->rounds);
    double ratio = ratios.median, saving = median(cpu, bench->rounds);
    printf("%-21s ratio median %.3f, 95%% between %.3f and %.3f\n", way->name, ratio, ratios.low,
           ratios.high);
    printf("claim io-%s %.3f of-fio goal >=%.2f %s\n", way->name, ratio, way->goal,
           ratio >= way->goal ? "ok" : "short");
    printf("claim io-%s-cpu %.3f fio's-per-ours goal >=1 %s\n", way->name, saving,
           saving >= 1 ? "ok" : "short");
    return 0;
}

/* ---- the file ---- */

/* Incompressible, all blocks different. */
static int make_file(struct bench *bench)
{
    struct random random = random_start(1);
    uint64_t *block = malloc(BLOCK);
    int fd = open(bench->path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    int code = block ? 0 : fail(ENOMEM, "out of memory");

    if (fd < 0)
        code = fail(errno, "%s: %s", bench->path, fail_errno_text(errno));
    for (uint64_t at = 0; code == 0 && at < bench->bytes; at += BLOCK) {
        for (size_t i = 0; i < BLOCK / sizeof *block; i++)
            block[i] = random_next(&random);
        code = file_write_at(fd, block, BLOCK, at, bench->path);
    }
    if (code == 0 && fsync(fd))
        code = fail(errno, "%s: %s", bench->path, fail_errno_text(errno));
    if (fd >= 0)
        close(fd);
    free(block);
    if (code)
        return code;
    bench->catalog = catalog_create(bench->path, "bench");
    code = bench->catalog ? catalog_begin_shard(bench->catalog, bench->path, NULL, 0) : -ENOMEM;
    return code ? code : catalog_add(bench->catalog, 0, BLOCK);
}

static int run_all(struct bench *bench)
{
    int code = make_file(bench);

    for (size_t i = 0; code == 0 && i < sizeof cases / sizeof *cases; i++)
        if (!bench->only || strcmp(bench->only, cases[i].name) == 0)
            code = run_case(bench, &cases[i]);
    unlink(bench->path);
    catalog_destroy(bench->catalog);
    return code;
}

int main(int argc, char **argv)
{
    struct bench bench = {.bytes = UINT64_C(1) << 30, .rounds = 7};
    const char *folder = ".";

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--long") == 0) {
            bench.bytes = UINT64_C(4) << 30;
            bench.rounds = ROUNDS_MOST;
        } else if (strcmp(argv[i], "--reader") == 0 && i + 1 < argc) {
            bench.reader = argv[++i];
        } else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc) {
            bench.only = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            unsigned long rounds = strtoul(argv[++i], NULL, 10);
            bench.rounds = rounds < 1 ? 1 : rounds < ROUNDS_MOST ? (uint32_t)rounds : ROUNDS_MOST;
        } else {
            folder = argv[i];
        }
    }
    if (system("fio --version >/dev/null 2>&1")) {
        printf("io: fio is not installed; nothing to compare with\n");
        return 77;
    }
    bench.path = file_join(folder, "io.bench");
    bench.probe = residency_probe_create();
    int code = bench.path && bench.probe ? run_all(&bench) : -ENOMEM;
    if (code)
        fprintf(stderr, "io: %s\n", fail_reason());
    residency_probe_destroy(bench.probe);
    free(bench.path);
    return code ? 1 : 0;
}
