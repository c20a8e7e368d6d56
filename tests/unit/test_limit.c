/* SPDX-License-Identifier: Apache-2.0
 * What an epoch's limit is, from the times of its parts. */
#include "tests/unit/unit.h"

#include "pipeline/result.h"

enum { MS = 1000000, WORKERS = 4 };

/* Milliseconds of an epoch of one second; decode_busy: of its four workers together. */
struct row {
    const char *what;
    uint64_t wait, upload, compute, exchange, update, decode_busy;
    bool reads;
    enum result_limit limit;
};

static const struct row rows[] = {
    {"all keep up", 0, 0, 900, 50, 50, 3900, true, RESULT_LIMIT_TRAINER},
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
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        const struct result_epoch epoch = {.wall_ns = UINT64_C(1000) * MS,
                                           .wait_ns = row->wait * MS,
                                           .upload_ns = row->upload * MS,
                                           .compute_ns = row->compute * MS,
                                           .exchange_ns = row->exchange * MS,
                                           .update_ns = row->update * MS,
                                           .copy_ns = UINT64_C(900) * MS, /* hidden: no limit */
                                           .waits.decode_busy_ns = row->decode_busy * MS};
        const enum result_limit found = result_epoch_limit(&epoch, WORKERS, row->reads);
        if (found != row->limit)
            fail_msg("%s: the limit is %d, not %d", row->what, (int)found, (int)row->limit);
    }
}

/* On a CPU nothing is uploaded: not even an epoch of no time can be limited by that. */
static void no_upload_is_no_limit(void **unused)
{
    const struct result_epoch empty = {0};

    (void)unused;
    assert_int_equal(result_epoch_limit(&empty, WORKERS, true), RESULT_LIMIT_STORAGE);
    assert_int_equal(result_epoch_limit(&empty, WORKERS, false), RESULT_LIMIT_HARNESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_wait_is_the_limit),
        cmocka_unit_test(no_upload_is_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
