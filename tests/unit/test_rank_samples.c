/* SPDX-License-Identifier: Apache-2.0
 * How --limit-samples is divided among the ranks of a job. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "pipeline/settings/job.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <string.h>

static uint64_t sum(uint64_t limit, uint64_t ranks, enum plan_remainder remainder)
{
    struct job job = {
        .order = {.limit_samples = limit, .ranks = ranks, .remainder = (int)remainder}};
    uint64_t total = 0;

    for (; job.order.rank < ranks; job.order.rank++) {
        const uint64_t share = order_rank_samples(&job.order);
        assert_true(share >= limit / ranks && share <= limit / ranks + 1);
        total += share;
    }
    return total;
}

static void the_shares_add_up(void **unused)
{
    for (uint64_t ranks = 1; ranks <= 17; ranks++)
        for (uint64_t limit = ranks; limit < 100; limit++) {
            assert_int_equal(sum(limit, ranks, PLAN_UNEVEN), limit);
            assert_int_equal(sum(limit, ranks, PLAN_DROP), limit / ranks * ranks);
            assert_int_equal(sum(limit, ranks, PLAN_PAD), (limit + ranks - 1) / ranks * ranks);
        }
}

static void a_limit_per_rank_is_each_rank_s(void **unused)
{
    struct job job = {.order = {.limit_samples_per_rank = 7, .ranks = 3, .rank = 2}};

    assert_int_equal(order_rank_samples(&job.order), 7);
    job.order.limit_samples_per_rank = 0;
    assert_int_equal(order_rank_samples(&job.order), 0); /* all */
}

/* What mpirun says of a rank is not said again; steps that wait for each other are as many on all.
 */
static void ranks_share_a_job(void **unused)
{
    struct job job = {.order = {.ranks = 1, .remainder = PLAN_UNEVEN},
                      .trainer = (char *)(uintptr_t) "none"};

    assert_int_equal(job_share(&job, &(struct ranks_place){.ranks = 1, .rank = 7}), 0);
    assert_true(job.order.ranks == 1 && job.order.rank == 0);
    struct ranks alone = ranks_alone();
    assert_int_equal(options_check_alike(job_options, &job, &alone), 0);
    assert_int_equal(job_share(&job, &(struct ranks_place){.ranks = 4, .rank = 3}), 0);
    assert_true(job.order.ranks == 4 && job.order.rank == 3 && job.order.remainder == PLAN_UNEVEN);
    assert_int_equal(job_share(&job, &(struct ranks_place){.ranks = 4, .rank = 3}), -EINVAL);
    assert_reason("cannot be used under mpirun or srun (4 ranks)");
}

static void check(const char *limit, const char *per_rank, const char *reason)
{
    struct job job = {0};
    struct job_plugins plugins;

    assert_int_equal(option_defaults(job_options, &job), 0);
    assert_int_equal(option_set(job_options, &job, "ranks", "4", "--ranks"), 0);
    assert_int_equal(option_set(job_options, &job, "limit-samples", limit, ""), 0);
    assert_int_equal(option_set(job_options, &job, "limit-samples-per-rank", per_rank, ""), 0);
    fail_clear();
    const int code = job_choose(&job, &plugins);
    assert_int_equal(code != 0, reason != NULL);
    if (reason)
        assert_reason(reason);
    job_release(&plugins);
    option_release(job_options, &job);
}

static void a_share_of_nothing_is_refused(void **unused)
{
    check("4", "all", NULL);
    check("all", "1", NULL);
    check("3", "all", "fewer than the 4 ranks");
    check("8", "2", "only one of");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shares_add_up),
        cmocka_unit_test(a_limit_per_rank_is_each_rank_s),
        cmocka_unit_test(ranks_share_a_job),
        cmocka_unit_test(a_share_of_nothing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
