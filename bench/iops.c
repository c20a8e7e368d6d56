/* SPDX-License-Identifier: Apache-2.0
 *
 * Records per second on one core: small records in random order out of the page cache, one read
 * each, through plan, window and delivery, against fio's io_uring engine and against a bare loop
 * around a ring (batches of 32, depth 64, registered file, O_NOATIME: what fio's t/io_uring does,
 * which few distributions package). All take turns, each in a process on the same core, and rates
 * are per second of CPU time, all threads and the kernel's work for them included: the core is the
 * limit, so on an idle machine that is time. All read every record once before any twice, since a
 * record that was just read is still in the processor's cache. The last figure is the ring alone:
 * NOPs in place of reads, a bound that no read reaches.
 *
 *   bench/iops [--rounds N] [--seconds S] [--window N] [--kib 4|16|64] [--side NAME] [FOLDER]
 * makes FOLDER/iops.bench and removes it; --side: only ours, fio, bare or nops, as for a profile
 */
#include "bench/job.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stats.h"
#include "pipeline/engine/engine.h"
#include "readers/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 64, BATCH = 32, ROUNDS_MOST = 31, RECORD_MOST = 64 * 1024 };
/* Buffers of fio and of the bare loop are aligned to it. malloc() places large memory 16 bytes
 * after a page's start, and Zen 3's `rep movsb`, which the kernel copies by, is three times slower
 * if the target lies 1 to 31 bytes behind the source, counted within a page. */
enum { PAGE = 4096 };
static const uint64_t FILE_BYTES = UINT64_C(512) << 20;
static const double GOAL = 0.9;

enum side { OURS, FIO, BARE, NOPS, SIDES };
static const char *const side_names[SIDES] = {"ours", "fio", "bare", "nops"};

struct bench {
    char *path;
    const char *window;
    const char *only; /* the only side to measure; NULL: all */
    uint32_t rounds, record_bytes;
    double seconds; /* of each measurement, about */
};

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* ---- our side ---- */

static struct catalog *make_catalog(const struct bench *bench)
{
    struct catalog *catalog = catalog_create(bench->path, "files");
    int code = catalog ? catalog_begin_shard(catalog, bench->path, NULL, 0) : -ENOMEM;

    for (uint64_t at = 0; code == 0 && at < FILE_BYTES; at += bench->record_bytes)
        code = catalog_add(catalog, at, bench->record_bytes);
    return code == 0 && catalog_seal(catalog) == 0 ? catalog : NULL;
}

/* One run of as many epochs as take the time, after one that shows how long an epoch takes. */
static int run_ours(const struct bench *bench, double *per_s)
{
    const struct engine_hooks hooks = {0};
    const char *const options[][2] = {{"reader", "uring"},     {"decode", "none"},
                                      {"trainer", "none"},     {"shuffle", "epoch"},
                                      {"decode-threads", "1"}, {"iodepth", "64"},
                                      {"memory", "64MiB"},     {"window", bench->window}};
    struct bench_job job;
    struct result result = {.valid = true};
    struct result_epoch *epochs = calloc(RESULT_ROWS, sizeof *epochs);
    struct result_run run = {.epochs = epochs};
    struct catalog *catalog = make_catalog(bench);
    uint64_t samples = 0, count = 1;
    double seconds = 0;
    int code = bench_job_open(&job, options, sizeof options / sizeof *options);

    if (code == 0 && !(catalog && epochs))
        code = -ENOMEM;
    if (code)
        return code;
    struct engine_config config = {.job = &job.job, .plugins = &job.plugins, .catalog = catalog};
    struct engine *engine;
    code = engine_create(&config, &result, &engine);
    for (int run_number = 0; code == 0 && run_number < 2; run_number++) {
        run = (struct result_run){.epochs = epochs};
        const double start = cpu_seconds();
        code = engine_run(engine, count, &hooks, &run, &result);
        seconds = cpu_seconds() - start + 1e-6;
        samples = 0;
        for (uint32_t i = 0; i < run.epoch_count; i++)
            samples += epochs[i].samples;
        count = 1 + (uint64_t)(bench->seconds / seconds);
        count = count < RESULT_ROWS - 1 ? count : RESULT_ROWS - 1;
    }
    *per_s = (double)samples / seconds;
    engine_destroy(engine);
    bench_job_close(&job);
    catalog_destroy(catalog);
    free(epochs);
    return code;
}

/* ---- a bare ring ---- */

/* The records of a file, of which there is a power of two, each once a turn: two odd factors and a
 * shift are the least that scatters them. */
static uint64_t scatter(uint64_t number, uint64_t count)
{
    const uint64_t mask = count - 1;

    number = number * UINT64_C(0x9e3779b97f4a7c15) & mask;
    number ^= number >> 7;
    return number * UINT64_C(0xd1342543de82ef95) & mask;
}

static void prepare(struct io_uring *ring, const struct bench *bench, bool nops, uint8_t *memory,
                    uint32_t slot, uint64_t number)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

    if (nops) {
        io_uring_prep_nop(sqe);
    } else {
        const uint64_t record = scatter(number, FILE_BYTES / bench->record_bytes);
        io_uring_prep_read(sqe, 0, memory + (size_t)slot * bench->record_bytes, bench->record_bytes,
                           record * bench->record_bytes);
        sqe->flags = IOSQE_FIXED_FILE;
    }
    sqe->user_data = slot;
}

static int run_ring(const struct bench *bench, bool nops, double *per_s)
{
    struct io_uring ring;
    struct io_uring_cqe *cqe;
    const size_t bytes = (size_t)DEPTH * RECORD_MOST;
    uint8_t *memory = memory_pages(bytes); /* on huge pages, as ours */
    unsigned flags, head;
    uint64_t finished = 0, number = 0;
    double seconds = 0;
    int fd = open(bench->path, O_RDONLY | O_CLOEXEC | O_NOATIME), code = -ENOMEM;

    if (memory)
        memset(memory, 0, bytes);
    if (fd >= 0 && memory)
        code = uring_make_ring(&ring, DEPTH, 0, &flags);
    if (code == 0)
        code = io_uring_register_files(&ring, &fd, 1);
    if (code)
        return fail(-code, "io_uring: %s", fail_errno_text(code));
    const double start = cpu_seconds();
    for (uint32_t slot = 0; slot < DEPTH; slot++)
        prepare(&ring, bench, nops, memory, slot, number++);
    for (int turn = 1; seconds < bench->seconds; turn++) {
        unsigned count = 0;
        code = io_uring_submit_and_wait(&ring, BATCH);
        if (code < 0)
            return fail(-code, "io_uring_enter: %s", fail_errno_text(code));
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            if (cqe->res < (nops ? 0 : (int)bench->record_bytes))
                return fail(EIO, "a read of the bare ring failed or was short");
            prepare(&ring, bench, nops, memory, (uint32_t)cqe->user_data, number++);
            count++;
        }
        io_uring_cq_advance(&ring, count);
        finished += count;
        if (turn % 256 == 0)
            seconds = cpu_seconds() - start;
    }
    *per_s = (double)finished / seconds;
    io_uring_queue_exit(&ring);
    close(fd);
    free(memory);
    return 0;
}

/* ---- fio's side ---- */

static int run_fio(const struct bench *bench, double *per_s)
{
    char command[4800];
    json_error_t error;

    snprintf(
        command, sizeof command,
        "fio --name=iops --ioengine=io_uring --output-format=json --thread --registerfiles=1 "
        "--iomem_align=%d --iodepth=%d --iodepth_batch_submit=%d --iodepth_batch_complete_max=%d "
        "--gtod_reduce=1 --rw=randread --random_generator=lfsr --randrepeat=0 --bs=%u --size=%llu "
        "--invalidate=0 --time_based --runtime=%.0fms --filename='%s'",
        PAGE, DEPTH, BATCH, BATCH, bench->record_bytes, (unsigned long long)FILE_BYTES,
        bench->seconds * 1000, bench->path);
    FILE *stream = popen(command, "r");
    json_t *root = stream ? json_loadf(stream, 0, &error) : NULL;
    json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
    const double percent = json_number_value(json_object_get(job, "usr_cpu")) +
                           json_number_value(json_object_get(job, "sys_cpu"));
    /* The percentage is of the whole job's time, `iops` of the reads' alone. */
    *per_s = json_number_value(json_object_get(json_object_get(job, "read"), "total_ios")) * 1e3 /
             (percent / 100 * json_number_value(json_object_get(job, "job_runtime")) + 1e-9);
    json_decref(root);
    if (stream)
        pclose(stream);
    return percent > 0 ? 0 : fail(EIO, "fio gave no figure");
}

/* ---- one measurement: a process on one core ---- */

/* Read the file, as others may have emptied the page cache. */
static int fill_cache(const struct bench *bench)
{
    static uint8_t block[1 << 20];
    const int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;

    while (fd >= 0 && (got = read(fd, block, sizeof block)) > 0)
        ;
    if (fd >= 0)
        close(fd);
    return got == 0 ? 0 : fail(EIO, "%s: cannot be read", bench->path);
}

static void child(const struct bench *bench, enum side side, int fd)
{
    cpu_set_t core;
    double per_s = 0;
    int code;

    CPU_ZERO(&core);
    CPU_SET((unsigned)sched_getcpu(), &core);
    sched_setaffinity(0, sizeof core, &core);
    if (side == OURS)
        code = run_ours(bench, &per_s);
    else
        code = side == FIO ? run_fio(bench, &per_s) : run_ring(bench, side == NOPS, &per_s);
    if (code)
        fprintf(stderr, "iops: %s: %s (%d)\n", side_names[side], fail_reason(), code);
    else if (write(fd, &per_s, sizeof per_s) != sizeof per_s)
        code = -EIO;
    _exit(code ? 1 : 0);
}

static int measure(const struct bench *bench, enum side side, double *per_s)
{
    int ends[2], status;

    if (fill_cache(bench))
        return -EIO;
    if (pipe(ends))
        return fail(errno, "pipe: %s", fail_errno_text(errno));
    fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0)
        return fail(errno, "fork: %s", fail_errno_text(errno));
    if (pid == 0)
        child(bench, side, ends[1]);
    close(ends[1]);
    const bool got = read(ends[0], per_s, sizeof *per_s) == sizeof *per_s;
    close(ends[0]);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) || !got)
        return fail(EIO, "%s: no figure (status %d)", side_names[side], status);
    return 0;
}

static void claim(const struct bench *bench, unsigned side, double ratios[SIDES][ROUNDS_MOST])
{
    const struct stats_summary summary = stats_summarise(ratios[side], bench->rounds);

    printf("claim iops_%uk_over_%s %.3f x (%.3f .. %.3f) goal >=%.1f %s\n",
           bench->record_bytes / 1024, side_names[side], summary.median, summary.low, summary.high,
           GOAL, summary.median >= GOAL ? "ok" : "short");
}

static bool is_wanted(const struct bench *bench, unsigned side)
{
    return !bench->only || strcmp(bench->only, side_names[side]) == 0;
}

static int run_size(const struct bench *bench, bool has_fio)
{
    double ratios[SIDES][ROUNDS_MOST], figures[SIDES][ROUNDS_MOST] = {{0}};

    for (uint32_t round = 0; round < bench->rounds; round++) {
        for (unsigned turn = 0; turn < SIDES; turn++) { /* each goes first in turn */
            const unsigned side = (turn + round) % SIDES;
            if ((side == FIO && !has_fio) || !is_wanted(bench, side))
                continue;
            int code = measure(bench, side, &figures[side][round]);
            if (code)
                return code;
        }
        for (unsigned side = 0; side < SIDES; side++)
            ratios[side][round] = figures[OURS][round] / (figures[side][round] + 1e-9);
    }
    for (unsigned side = 0; side < SIDES; side++) {
        const double median = stats_summarise(figures[side], bench->rounds).median;
        if (median > 0)
            printf("%2u KiB %-5s %9.0f/s of CPU, %7.1f ns each\n", bench->record_bytes / 1024,
                   side_names[side], median, 1e9 / median);
    }
    for (unsigned side = FIO; side <= BARE && !bench->only; side++)
        if (side != FIO || has_fio)
            claim(bench, side, ratios);
    return 0;
}

static int make_file(const struct bench *bench)
{
    enum { BLOCK = 1 << 20 };
    static uint64_t block[BLOCK / sizeof(uint64_t)];
    struct random random = random_start(1);
    int fd = open(bench->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), code = 0;

    if (fd < 0)
        return fail(errno, "%s: %s", bench->path, fail_errno_text(errno));
    for (uint64_t at = 0; code == 0 && at < FILE_BYTES; at += BLOCK) {
        for (size_t i = 0; i < BLOCK / sizeof *block; i++)
            block[i] = random_next(&random);
        code = file_write_at(fd, block, BLOCK, at, bench->path);
    }
    if (code == 0 && fsync(fd)) /* nothing is written back while reads are timed */
        code = fail(errno, "%s: %s", bench->path, fail_errno_text(errno));
    close(fd);
    return code;
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {4096, 16384, 65536};
    struct bench bench = {.window = "1", .rounds = 5, .seconds = 1};
    const char *folder = ".";
    unsigned long kib = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            const unsigned long rounds = strtoul(argv[++i], NULL, 10);
            bench.rounds = rounds < 1 ? 1 : rounds < ROUNDS_MOST ? (uint32_t)rounds : ROUNDS_MOST;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            bench.seconds = strtod(argv[++i], NULL);
        } else if (strcmp(argv[i], "--window") == 0 && i + 1 < argc) {
            bench.window = argv[++i];
        } else if (strcmp(argv[i], "--side") == 0 && i + 1 < argc) {
            bench.only = argv[++i];
        } else if (strcmp(argv[i], "--kib") == 0 && i + 1 < argc) {
            kib = strtoul(argv[++i], NULL, 10);
        } else {
            folder = argv[i];
        }
    }
    bench.path = file_join(folder, "iops.bench");
    const bool has_fio = system("fio --version >/dev/null 2>&1") == 0;
    int code = bench.path ? make_file(&bench) : -ENOMEM;
    for (size_t i = 0; code == 0 && i < sizeof sizes / sizeof *sizes; i++) {
        bench.record_bytes = sizes[i];
        code = kib && kib * 1024 != sizes[i] ? 0 : run_size(&bench, has_fio);
    }
    if (code)
        fprintf(stderr, "iops: %s\n", fail_reason());
    if (bench.path)
        unlink(bench.path);
    free(bench.path);
    return code ? 1 : 0;
}
