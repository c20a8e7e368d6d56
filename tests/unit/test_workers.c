/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/thread.h"

#include <errno.h>
#include <string.h>

enum { WORKERS = 7, POLL_NS = 1000000 };

struct work {
    struct counter each[WORKERS], ended, ticks;
    struct flag stop;
    uint64_t ended_at_last_tick;
    int tick_code;
};

static void stop(void *context)
{
    flag_set(&((struct work *)context)->stop);
}

static int tick(void *context)
{
    struct work *work = context;

    counter_add(&work->ticks, 1);
    work->ended_at_last_tick = counter_get(&work->ended);
    return work->tick_code ? fail(-work->tick_code, "tick refused") : 0;
}

static int count(void *context, struct workers *workers, uint64_t number)
{
    struct work *work = context;

    assert_true(number < WORKERS);
    counter_add(&work->each[number], 1);
    workers_wake(workers);
    counter_add(&work->ended, 1);
    return 0;
}

static void each_worker_runs_once_and_the_last_tick_sees_all(void **state)
{
    struct work work = {0};
    const struct workers_job job = {"test", count, stop, tick, &work};

    assert_int_equal(workers_run(&job, WORKERS), 0);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(counter_get(&work.each[i]), 1);
    assert_int_equal(work.ended_at_last_tick, WORKERS);
    assert_false(flag_get(&work.stop));
}

static int wait_for_stop(void *context, struct workers *workers, uint64_t number)
{
    struct work *work = context;

    if (number == WORKERS - 1 && !work->tick_code)
        return fail(EIO, "the cause");
    while (!flag_get(&work->stop))
        clock_sleep_ns(POLL_NS);
    return fail(ECANCELED, "a consequence");
}

static void the_first_failure_in_time_is_returned(void **state)
{
    struct work work = {0};
    const struct workers_job job = {"test", wait_for_stop, stop, NULL, &work};

    assert_int_equal(workers_run(&job, WORKERS), -EIO);
    assert_string_equal(fail_reason(), "the cause");
}

static void a_failed_tick_stops_the_workers(void **state)
{
    struct work work = {.tick_code = -ETIMEDOUT};
    const struct workers_job job = {"test", wait_for_stop, stop, tick, &work};

    assert_int_equal(workers_run(&job, WORKERS), -ETIMEDOUT);
    assert_string_equal(fail_reason(), "tick refused");
    assert_true(counter_get(&work.ticks) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_worker_runs_once_and_the_last_tick_sees_all),
        cmocka_unit_test(the_first_failure_in_time_is_returned),
        cmocka_unit_test(a_failed_tick_stops_the_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
