/* SPDX-License-Identifier: Apache-2.0
 * Random reads of one size at one depth: where they go, how many are in flight, what is counted. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "readers/reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, DEPTH = 8, REAPED = 5 };

/* A storage that completes the oldest reads at once and keeps count. */
static struct {
    struct read_request *waiting[DEPTH];
    uint32_t count, most;
    uint64_t done, seen[3]; /* reads of each file */
    bool is_interrupted, fails;
} storage;

static uint64_t set_ns; /* the time, 1 ms later with each turn; 0: that of the kernel */

int clock_gettime(clockid_t id, struct timespec *now)
{
    if (set_ns == 0)
        return (int)syscall(SYS_clock_gettime, id, now);
    *now = (struct timespec){.tv_sec = (time_t)(set_ns / 1000000000),
                             .tv_nsec = (long)(set_ns % 1000000000)};
    return 0;
}

static int fake_open(void *state, const void *settings, const struct reader_config *config,
                     struct reader_traits *traits)
{
    assert_int_equal(config->depth, DEPTH);
    *traits = (struct reader_traits){.alignment = 512, .engine = "fake"};
    return 0;
}

static void fake_close(void *state) {}

static int fake_submit(void *state, struct read_request *request)
{
    assert_true(storage.count < DEPTH);
    assert_int_equal(request->bytes, BYTES);
    assert_int_equal(request->offset % BYTES, 0);
    assert_true(request->offset + BYTES <= (request->shard == 0 ? 3 * BYTES : 9 * BYTES));
    assert_int_not_equal(request->shard, 1); /* smaller than a read */
    for (uint32_t i = 0; i < storage.count; i++)
        assert_ptr_not_equal(storage.waiting[i]->buffer, request->buffer);
    storage.waiting[storage.count++] = request;
    storage.most = storage.count > storage.most ? storage.count : storage.most;
    storage.seen[request->shard]++;
    return 0;
}

static int fake_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    set_ns += set_ns ? 1000000 : 0;
    if (storage.done > 50 && storage.is_interrupted)
        stop_ask(0);
    for (uint32_t i = 0; i < REAPED && i < storage.count; i++) {
        done[i] = storage.waiting[i];
        done[i]->data = done[i]->buffer;
        done[i]->result = storage.fails ? -EIO : BYTES;
    }
    const uint32_t count = storage.count < REAPED ? storage.count : REAPED;
    storage.count -= count;
    memmove(storage.waiting, storage.waiting + count, storage.count * sizeof *storage.waiting);
    storage.done += count;
    return (int)count;
}

static const struct reader_ops fake = {.plugin = {.name = "fake"},
                                       .open = fake_open,
                                       .close = fake_close,
                                       .submit = fake_submit,
                                       .reap = fake_reap};

static struct catalog *files(uint64_t first, uint64_t second, uint64_t third)
{
    struct catalog *catalog = catalog_create("set", "files");
    const uint64_t bytes[] = {first, second, third};

    for (int i = 0; i < 3; i++) {
        const struct store_status status = {.kind = STORE_FILE, .bytes = bytes[i]};
        assert_int_equal(catalog_begin_shard(catalog, "file", &status, 0), 0);
    }
    return catalog;
}

static int measure(const struct catalog *catalog, uint64_t duration_ns,
                   struct service_figures *figures)
{
    struct plugin_choice choice = {.plugin = &fake.plugin};
    struct service service = {.catalog = catalog,
                              .reader = &choice,
                              .read_bytes = BYTES,
                              .depth = DEPTH,
                              .duration_ns = duration_ns,
                              .memory = {memory_pages(DEPTH * BYTES), DEPTH * BYTES}};

    memset(&storage.waiting, 0, sizeof storage.waiting);
    storage.count = storage.most = 0;
    storage.done = 0;
    int code = service_measure(&service, figures);
    free(service.memory.iov_base);
    return code;
}

/* What is reported is at most all bytes over the time asked for, and at least what was read after
 * the warm-up over all the time that it took. */
static void rates_are_bytes_over_time(void **unused)
{
    struct catalog *catalog = files(3 * BYTES + 5, 4095, 9 * BYTES);
    struct service_figures figures;

    assert_int_equal(service_places(catalog, BYTES), 12);
    do {
        const uint64_t start_ns = clock_now_ns();
        assert_int_equal(measure(catalog, 20000000, &figures), 0);
        const double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
        assert_true(figures.bytes_per_s <= (double)storage.done * BYTES / 20e-3);
        assert_true(figures.bytes_per_s >=
                    ((double)storage.done - DEPTH - REAPED) * BYTES / seconds);
        assert_int_equal(storage.most, DEPTH);
        assert_true(figures.latency_s > 0 && figures.latency_s < seconds);
        assert_string_equal(figures.engine, "fake");
    } while (storage.seen[0] + storage.seen[2] < 5000); /* a busy machine stops us at times */
    /* Equally often anywhere: 3 and 9 places. */
    const double share = (double)storage.seen[0] / (double)(storage.seen[0] + storage.seen[2]);
    assert_true(share > 0.2 && share < 0.3);
    catalog_destroy(catalog);
}

/* Five of eight reads complete in each turn of 1 ms: three have waited for two turns, two for one.
 * The reads of the two turns of the warm-up do not count. */
static void latencies_are_of_the_reads_on_the_clock(void **unused)
{
    struct catalog *catalog = files(3 * BYTES, 0, 9 * BYTES);
    struct service_figures figures;

    set_ns = 1000000000;
    assert_int_equal(measure(catalog, 100000000, &figures), 0);
    set_ns = 0;
    assert_int_equal(figures.bytes, 102 * REAPED * BYTES);
    assert_true(fabs(figures.bytes_per_s / (REAPED * BYTES / 1e-3) - 1) < 1e-9);
    assert_true(fabs(figures.latency_s / 1.6e-3 - 1) < 1e-9);
    assert_true(fabs(figures.latency_cv / (sqrt(0.24) / 1.6) - 1) < 1e-6);
    catalog_destroy(catalog);
}

/* However short the time, twice as many reads as are in flight are counted. */
static void a_short_time_still_measures(void **unused)
{
    struct catalog *catalog = files(3 * BYTES, 0, 9 * BYTES);
    struct service_figures figures;

    assert_int_equal(measure(catalog, 1, &figures), 0);
    assert_true(storage.done >= 3 * DEPTH && storage.done < 3 * DEPTH + 3 * REAPED);
    catalog_destroy(catalog);
}

static void failures_are_passed_up(void **unused)
{
    struct catalog *catalog = files(100, 4095, 5);
    struct service_figures figures;

    assert_int_equal(measure(catalog, 1, &figures), -ENODATA);
    assert_reason("no file is as large as a read of 4096 bytes");
    catalog_destroy(catalog);
    catalog = files(3 * BYTES, 0, 9 * BYTES);
    storage.fails = true;
    assert_int_equal(measure(catalog, 1, &figures), -EIO);
    storage.fails = false;
    storage.is_interrupted = true;
    assert_int_equal(measure(catalog, UINT64_C(3600000000000), &figures), -EINTR);
    catalog_destroy(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_bytes_over_time),
        cmocka_unit_test(latencies_are_of_the_reads_on_the_clock),
        cmocka_unit_test(a_short_time_still_measures),
        cmocka_unit_test(failures_are_passed_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
