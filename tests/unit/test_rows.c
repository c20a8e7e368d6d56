/* SPDX-License-Identifier: Apache-2.0
 * The rows of a run's epochs: few, however many epochs there are, and their sums exact. */
#include "tests/unit/unit.h"

#include "pipeline/result/result.h"

#include <stdlib.h>

static struct result_run run_of(uint64_t epochs, uint64_t odd)
{
    struct result_run run = {.epochs = calloc(result_rows(epochs), sizeof *run.epochs)};

    assert_non_null(run.epochs);
    for (uint64_t i = 0; i < epochs; i++)
        result_run_add(&run, &(struct result_epoch){.epoch = i,
                                                    .samples = i + 1,
                                                    .wall_ns = 10,
                                                    .digest_sum = i == odd ? 8 : 7,
                                                    .digest_xor = 3});
    return run;
}

static void rows_are_bounded_and_add_up(void **unused)
{
    static const uint64_t counts[] = {1,    2,    3,    1000, 1001,  1002,   1003,
                                      1502, 2001, 2002, 2003, 12345, 100000, 1000001};

    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct result_run run = run_of(counts[k], UINT64_MAX);
        uint64_t next = 0, samples = 0, wall_ns = 0;
        assert_int_equal(run.epochs_run, counts[k]);
        assert_true(run.epoch_count <= result_rows(counts[k]));
        assert_true(counts[k] > RESULT_ROWS || run.epoch_count == counts[k]);
        for (uint32_t i = 0; i < run.epoch_count; i++) {
            const struct result_epoch *row = &run.epochs[i];
            const uint64_t merged = row->merged + 1;
            assert_int_equal(row->epoch, next); /* no epoch is missing */
            assert_true(i == 0 ? merged == 1
                               : merged == run.row_epochs ||
                                     (i + 1 == run.epoch_count && merged < run.row_epochs));
            assert_false(row->digests_differ);
            assert_int_equal(row->digest_sum, 7);
            next += merged;
            samples += row->samples;
            wall_ns += row->wall_ns;
        }
        assert_int_equal(next, counts[k]);
        assert_int_equal(samples, counts[k] * (counts[k] + 1) / 2);
        assert_int_equal(wall_ns, counts[k] * 10);
        free(run.epochs);
    }
}

static void an_odd_digest_is_not_lost(void **unused)
{
    for (uint64_t odd = 5000; odd < 5010; odd++) {
        struct result_run run = run_of(20000, odd);
        bool differs = false;
        for (uint32_t i = 0; i < run.epoch_count; i++)
            differs |= run.epochs[i].digests_differ || run.epochs[i].digest_sum != 7;
        assert_true(differs);
        free(run.epochs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_bounded_and_add_up),
        cmocka_unit_test(an_odd_digest_is_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
