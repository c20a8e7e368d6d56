/* SPDX-License-Identifier: Apache-2.0
 * The bottleneck of an epoch, from the times of its parts. */
#include "tests/unit/unit.h"

#include "pipeline/result/result.h"

enum { MS = 1000000, WORKERS = 4 };

/* Milliseconds in an epoch of one second; decode_busy: over its four decode threads
 * together, half of it making hints. */
struct row {
    const char *what;
    uint64_t wait, upload, compute, exchange, update, decode_busy;
    bool reads;
    enum result_limit limit;
};

static const struct row rows[] = {
    {"all keep up", 0, 0, 900, 50, 50, 3900, true, RESULT_LIMIT_TRAINER},
    {"no trainer is a limit", 10, 0, 0, 0, 0, 1000, true, RESULT_LIMIT_STORAGE},
    {"nothing is read nor computed", 10, 0, 0, 0, 0, 0, false, RESULT_LIMIT_HARNESS},
    {"a wait below a twentieth", 49, 49, 800, 50, 52, 0, true, RESULT_LIMIT_TRAINER},
    {"records come late", 300, 0, 700, 0, 0, 500, true, RESULT_LIMIT_STORAGE},
    {"a wait of a twentieth", 50, 0, 950, 0, 0, 2000, true, RESULT_LIMIT_STORAGE},
    {"workers are busy", 300, 0, 700, 0, 0, 2001, true, RESULT_LIMIT_DECODE},
    {"nothing is read", 900, 0, 0, 0, 0, 0, false, RESULT_LIMIT_HARNESS},
    {"nothing is read, but computed", 0, 0, 1000, 0, 0, 0, false, RESULT_LIMIT_TRAINER},
    {"uploads come late", 10, 200, 700, 0, 90, 3000, true, RESULT_LIMIT_UPLOAD},
    {"uploads later than records", 100, 200, 700, 0, 0, 0, true, RESULT_LIMIT_UPLOAD},
    {"records later than uploads", 200, 100, 700, 0, 0, 0, true, RESULT_LIMIT_STORAGE},
    {"the exchange is longer than compute", 0, 0, 400, 500, 50, 0, true, RESULT_LIMIT_EXCHANGE},
    {"the exchange with the update is not", 0, 0, 400, 490, 100, 0, true, RESULT_LIMIT_TRAINER},
    {"the exchange beside a wait", 100, 0, 300, 600, 0, 0, true, RESULT_LIMIT_EXCHANGE},
    {"the exchange beside a longer wait", 500, 0, 100, 400, 0, 0, true, RESULT_LIMIT_STORAGE},
    {"the exchange beside an upload", 0, 450, 100, 440, 0, 0, true, RESULT_LIMIT_UPLOAD},
    {"no trainer", 1000, 0, 0, 0, 0, 100, true, RESULT_LIMIT_STORAGE},
};

static void the_longest_wait_is_the_limit(void **unused)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        const struct result_epoch epoch = {.wall_ns = UINT64_C(1000) * MS,
                                           .wait_ns = row->wait * MS,
                                           .upload_ns = row->upload * MS,
                                           .compute_ns = row->compute * MS,
                                           .exchange_ns = row->exchange * MS,
                                           .update_ns = row->update * MS,
                                           .copy_ns = UINT64_C(900) * MS, /* hidden: no limit */
                                           .waits.decode_busy_ns = row->decode_busy * MS / 2,
                                           .waits.decode_hints_ns = row->decode_busy * MS / 2};
        const enum result_limit found = result_epoch_limit(&epoch, WORKERS, row->reads);
        if (found != row->limit)
            fail_msg("%s: the limit is %d, not %d", row->what, (int)found, (int)row->limit);
    }
}

/* A wait is for the sample order if more than half of it was. */
static void a_late_order_is_the_limit(void **unused)
{
    struct result_epoch epoch = {.wall_ns = UINT64_C(1000) * MS,
                                 .wait_ns = UINT64_C(300) * MS,
                                 .order_ns = UINT64_C(150) * MS,
                                 .compute_ns = UINT64_C(700) * MS};

    assert_int_equal(result_epoch_limit(&epoch, WORKERS, true), RESULT_LIMIT_STORAGE);
    epoch.order_ns++;
    assert_int_equal(result_epoch_limit(&epoch, WORKERS, true), RESULT_LIMIT_ORDER);
    epoch.waits.decode_busy_ns = UINT64_C(3900) * MS; /* with records of the epoch before */
    assert_int_equal(result_epoch_limit(&epoch, WORKERS, true), RESULT_LIMIT_ORDER);
    assert_int_equal(result_epoch_limit(&epoch, WORKERS, false), RESULT_LIMIT_HARNESS);
    epoch.wait_ns = epoch.order_ns = UINT64_C(49) * MS; /* of little effect */
    assert_int_equal(result_epoch_limit(&epoch, WORKERS, true), RESULT_LIMIT_TRAINER);
}

/* On a CPU nothing is uploaded: even an epoch of zero length is not limited by uploads. */
static void no_upload_is_no_limit(void **unused)
{
    const struct result_epoch empty = {0};

    assert_int_equal(result_epoch_limit(&empty, WORKERS, true), RESULT_LIMIT_STORAGE);
    assert_int_equal(result_epoch_limit(&empty, WORKERS, false), RESULT_LIMIT_HARNESS);
}

/* ---- provenance of records ---- */

enum { MIB = 1048576 };

struct source {
    const char *what;
    enum result_limit before;
    bool first;
    struct result_cold cold;
    struct result_bytes device;
    uint64_t rate_mib;
    enum result_limit limit;
};

/* An epoch of 100 MiB in one second. */
static const struct source sources[] = {
    {"all left storage",
     RESULT_LIMIT_STORAGE,
     true,
     {0},
     {.known = true, .bytes = 100 * MIB},
     0,
     RESULT_LIMIT_STORAGE},
    {"half left storage",
     RESULT_LIMIT_STORAGE,
     false,
     {0},
     {.known = true, .bytes = 50 * MIB},
     0,
     RESULT_LIMIT_STORAGE},
    {"nothing left storage",
     RESULT_LIMIT_STORAGE,
     true,
     {.state = RESULT_CACHE_WARM},
     {.known = true},
     0,
     RESULT_LIMIT_PAGE_CACHE},
    {"nothing left it in a later epoch",
     RESULT_LIMIT_STORAGE,
     false,
     {0},
     {.known = true},
     0,
     RESULT_LIMIT_PAGE_CACHE},
    {"the disk beneath gave nothing",
     RESULT_LIMIT_STORAGE,
     false,
     {0},
     {.known = true, .bytes = 100 * MIB, .beneath_known = true},
     0,
     RESULT_LIMIT_PAGE_CACHE},
    {"a cold storage that compresses",
     RESULT_LIMIT_STORAGE,
     true,
     {0},
     {.known = true, .bytes = 10 * MIB},
     0,
     RESULT_LIMIT_STORAGE},
    {"no counter",
     RESULT_LIMIT_STORAGE,
     false,
     {.state = RESULT_CACHE_UNVERIFIED},
     {0},
     0,
     RESULT_LIMIT_STORAGE},
    {"no counter, all in memory",
     RESULT_LIMIT_STORAGE,
     true,
     {.state = RESULT_CACHE_WARM, .residue_percent = 100},
     {0},
     0,
     RESULT_LIMIT_PAGE_CACHE},
    {"as fast as allowed",
     RESULT_LIMIT_STORAGE,
     true,
     {0},
     {.known = true, .bytes = 100 * MIB},
     105,
     RESULT_LIMIT_RATE},
    {"as fast as allowed, out of memory",
     RESULT_LIMIT_STORAGE,
     false,
     {0},
     {.known = true},
     100,
     RESULT_LIMIT_RATE},
    {"slower than allowed",
     RESULT_LIMIT_STORAGE,
     true,
     {0},
     {.known = true, .bytes = 100 * MIB},
     120,
     RESULT_LIMIT_STORAGE},
    {"decoding", RESULT_LIMIT_DECODE, false, {0}, {.known = true}, 100, RESULT_LIMIT_DECODE},
};

static void storage_is_not_blamed_for_others(void **unused)
{
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const struct source *row = &sources[i];
        struct result_epoch epoch = {.limit = row->before,
                                     .wall_ns = UINT64_C(1000) * MS,
                                     .record_bytes = 100 * MIB,
                                     .request_bytes = 100 * MIB,
                                     .device = row->device};
        result_epoch_name_source(&epoch, row->first, &row->cold, row->rate_mib * MIB);
        if (epoch.limit != row->limit)
            fail_msg("%s: the limit is %d, not %d", row->what, (int)epoch.limit, (int)row->limit);
    }
}

/* A quota is the limit of all that it throttles; others that had the CPUs are it instead of
 * storage. */
static void no_storage_limits_a_starved_process(void **unused)
{
    const struct result_cold cold = {.state = RESULT_CACHE_COLD};
    struct result_epoch epoch = {.wall_ns = UINT64_C(1000) * MS,
                                 .wait_ns = UINT64_C(900) * MS,
                                 .record_bytes = 100 * MIB,
                                 .request_bytes = 100 * MIB,
                                 .guard.is_starved = true};

    epoch.limit = result_epoch_limit(&epoch, WORKERS, true);
    result_epoch_name_source(&epoch, true, &cold, 100 * MIB);
    assert_int_equal(epoch.limit, RESULT_LIMIT_RATE);
    epoch.limit = RESULT_LIMIT_STORAGE;
    result_epoch_name_source(&epoch, true, &cold, 0);
    assert_int_equal(epoch.limit, RESULT_LIMIT_CPU);
    epoch.guard.is_throttled = true;
    epoch.waits.decode_busy_ns = UINT64_C(3900) * MS;
    assert_int_equal(result_epoch_limit(&epoch, WORKERS, true), RESULT_LIMIT_QUOTA);
    assert_int_equal(result_epoch_limit(&epoch, WORKERS, false), RESULT_LIMIT_QUOTA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_wait_is_the_limit),
        cmocka_unit_test(a_late_order_is_the_limit),
        cmocka_unit_test(no_upload_is_no_limit),
        cmocka_unit_test(storage_is_not_blamed_for_others),
        cmocka_unit_test(no_storage_limits_a_starved_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
