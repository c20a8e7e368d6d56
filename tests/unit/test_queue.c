/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>

enum { TOTAL = 200000, PRODUCERS = 3, CONSUMERS = 3 };

struct side {
    struct queue *queue;
    uintptr_t first, sum, count;
};

static int produce(void *argument)
{
    struct side *side = argument;
    void *group[7];
    uint32_t used = 0;

    for (uintptr_t i = side->first; i <= TOTAL; i += PRODUCERS) {
        group[used++] = (void *)i;
        if (used == 7 || i + PRODUCERS > TOTAL) {
            if (queue_push_many(side->queue, group, used))
                return -1;
            used = 0;
        }
    }
    return 0;
}

static int consume(void *argument)
{
    struct side *side = argument;
    void *group[5];
    int count;

    while ((count = queue_pop_many(side->queue, group, 5, true)) > 0)
        for (int i = 0; i < count; i++, side->count++)
            side->sum += (uintptr_t)group[i];
    return count;
}

static void every_entry_arrives_once(void **unused)
{
    struct queue *queue = queue_create(16, sizeof(void *));
    struct side producers[PRODUCERS], consumers[CONSUMERS];
    struct thread makers[PRODUCERS] = {0}, takers[CONSUMERS] = {0};
    uintptr_t sum = 0, count = 0;

    for (int i = 0; i < CONSUMERS; i++) {
        consumers[i] = (struct side){.queue = queue};
        assert_int_equal(thread_start(&takers[i], "taker", consume, &consumers[i]), 0);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct side){.queue = queue, .first = (uintptr_t)i + 1};
        assert_int_equal(thread_start(&makers[i], "maker", produce, &producers[i]), 0);
    }
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(thread_join(&makers[i]), 0);
    queue_close(queue);
    for (int i = 0; i < CONSUMERS; i++) {
        assert_int_equal(thread_join(&takers[i]), 0);
        sum += consumers[i].sum;
        count += consumers[i].count;
    }
    assert_int_equal(count, TOTAL);
    assert_int_equal(sum, (uintptr_t)TOTAL * (TOTAL + 1) / 2);
    queue_destroy(queue);
}

static void order_is_kept_with_one_producer(void **unused)
{
    struct queue *queue = queue_create(3, sizeof(void *));
    void *got[8];
    uintptr_t next = 0;

    for (uintptr_t i = 0; i < 100; i++) {
        assert_int_equal(queue_push(queue, &i), 0);
        if (i % 3 == 2)
            for (int n = queue_pop_many(queue, got, 8, false), k = 0; k < n; k++)
                assert_int_equal((uintptr_t)got[k], next++);
    }
    assert_int_equal(next, 99);
    queue_destroy(queue);
}

static void cancel_wakes_everybody(void **unused)
{
    struct queue *queue = queue_create(1, sizeof(void *));
    struct side side = {.queue = queue};
    struct thread taker = {0};
    void *entry = NULL;

    assert_int_equal(thread_start(&taker, "taker", consume, &side), 0);
    queue_cancel(queue);
    assert_int_equal(thread_join(&taker), -ECANCELED);
    assert_int_equal(queue_push(queue, &entry), -ECANCELED);
    queue_reset(queue);
    assert_int_equal(queue_push(queue, &entry), 0);
    queue_destroy(queue);
}

/* Entries keep all their bytes, also where a group wraps around the end. */
static void values_of_any_size(void **unused)
{
    struct wide {
        char bytes[13];
    } in[4] = {{"one"}, {"two"}, {"three"}, {"twelve bytes"}}, out[4] = {0};
    struct queue *queue = queue_create(4, sizeof *in);

    assert_int_equal(queue_push_many(queue, in, 3), 0);
    assert_int_equal(queue_pop_many(queue, out, 2, false), 2);
    assert_int_equal(queue_push_many(queue, in + 1, 3), 0);
    assert_int_equal(queue_pop_many(queue, out, 4, false), 4);
    assert_string_equal(out[0].bytes, "three");
    assert_memory_equal(out + 1, in + 1, 3 * sizeof *in);
    queue_destroy(queue);
}

static int wake(void *queue)
{
    queue_wake(queue);
    return 0;
}

static void a_pop_waits_no_longer_than_asked(void **unused)
{
    struct queue *queue = queue_create(1, sizeof(void *));
    void *got = NULL, *entry = &got;
    const uint64_t start_ns = clock_now_ns();

    assert_int_equal(queue_pop_within(queue, &got, 1, 1000000), 0);
    assert_true(queue_wait_ns(queue) >= 1000000);
    assert_true(queue_wait_ns(queue) <= clock_now_ns() - start_ns);
    assert_int_equal(queue_push(queue, &entry), 0);
    assert_int_equal(queue_pop_within(queue, &got, 1, UINT64_C(3600000000000)), 1);
    assert_ptr_equal(got, entry);
    assert_int_equal(queue_pop_within(queue, &got, 1, 0), 0);
    queue_destroy(queue);
}

static void a_wake_ends_one_pop(void **unused)
{
    struct queue *queue = queue_create(1, sizeof(void *));
    struct thread thread = {0};
    void *got = NULL, *entry = &got;

    queue_wake(queue);
    assert_int_equal(queue_pop_within(queue, &got, 1, UINT64_MAX), 0);
    assert_int_equal(thread_start(&thread, "waker", wake, queue), 0);
    assert_int_equal(queue_pop_within(queue, &got, 1, UINT64_MAX), 0);
    assert_int_equal(thread_join(&thread), 0);
    assert_int_equal(queue_push(queue, &entry), 0);
    queue_wake(queue);
    assert_int_equal(queue_pop_within(queue, &got, 1, UINT64_MAX), 1);
    queue_destroy(queue);
}

/* Two clock readings: the time before the first does not count. */
static void waits_count_while_they_last(void **unused)
{
    struct stall stall = {0};

    stall_begin(&stall, 100);
    assert_int_equal(stall_ns(&stall, 130), 30);
    stall_begin(&stall, 140);
    assert_int_equal(stall_ns(&stall, 150), 60);
    stall_end(&stall, 160);
    assert_int_equal(stall_ns(&stall, 170), 60 + 30);
    stall_end(&stall, 180);
    assert_int_equal(stall_ns(&stall, 1000), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_count_while_they_last),
        cmocka_unit_test(every_entry_arrives_once),
        cmocka_unit_test(order_is_kept_with_one_producer),
        cmocka_unit_test(cancel_wakes_everybody),
        cmocka_unit_test(a_pop_waits_no_longer_than_asked),
        cmocka_unit_test(values_of_any_size),
        cmocka_unit_test(a_wake_ends_one_pop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
