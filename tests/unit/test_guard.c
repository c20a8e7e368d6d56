/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/atomic.h"
#include "base/fail.h"
#include "telemetry/guard.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { S = 1000000000 };

static struct guard_moment read_machine(void)
{
    struct guard_moment moment = {0};

    guard_read(&moment, folder_path("proc"), folder_path("sys"));
    return moment;
}

static void a_quota_of_each_group_above_counts(void **unused)
{
    folder_put("proc/self/cgroup", "3:cpu,cpuacct:/job/step\n0::/else\n");
    folder_put("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
    folder_put("sys/fs/cgroup/cpu/job/cpu.stat",
               "nr_periods 9\nnr_throttled 3\nthrottled_time 700\n");
    folder_put("sys/fs/cgroup/cpu/job/step/cpu.stat",
               "nr_periods 9\nnr_throttled 3\nthrottled_time 50\n");
    assert_int_equal(read_machine().throttled_ns, 750);
    folder_put("proc/self/cgroup", "0::/pod\n");
    folder_put("sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
    folder_put("sys/fs/cgroup/pod/cpu.stat",
               "usage_usec 5\nuser_usec 4\nsystem_usec 1\nnr_periods 9\nnr_throttled 3\n"
               "throttled_usec 21\n");
    assert_int_equal(read_machine().throttled_ns, 21000);
    folder_put("proc/self/cgroup", "");
    assert_int_equal(read_machine().throttled_ns, 0);
}

static void what_the_machine_counts(void **unused)
{
    folder_put("proc/stat", "cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 1 9 10\n");
    folder_put("proc/vmstat", "nr_free_pages 4\ndrop_pagecache 12\ndrop_slab 3\n");
    const struct guard_moment before = read_machine();
    assert_int_equal(before.stolen_ns, (uint64_t)800 * S / (uint64_t)sysconf(_SC_CLK_TCK));
    assert_int_equal(before.drops, 12);
    guard_note_ranks(4); /* each has used what this one has, and more by now */
    assert_true(read_machine().used_ns >= 4 * before.used_ns && before.used_ns > 0);
    guard_note_ranks(1);
    guard_note_drop(); /* of our own */
    folder_put("proc/vmstat", "drop_pagecache 13\n");
    assert_int_equal(read_machine().drops, before.drops);
}

/* Two moments, ten seconds apart, on a machine of four CPUs. */
static struct guard_counts between(const struct guard_moment *to)
{
    const struct guard_moment from = {.cpus = 4};
    struct guard_moment end = *to;
    struct guard_counts counts;

    end.cpus = 4;
    end.clock.raw_ns = end.clock.boot_ns = (uint64_t)10 * S;
    if (end.clock.before_ns == 0)
        end.clock.before_ns = (uint64_t)10 * S;
    end.clock.after_ns = end.clock.before_ns;
    guard_between(&from, &end, &counts);
    return counts;
}

static char said[3][256];

static void hear(void *context, enum guard_grade grade, const char *text)
{
    if (!said[grade][0])
        snprintf(said[grade], sizeof said[grade], "%s", text);
}

static const char *judge(const struct guard_counts *counts, enum guard_grade grade)
{
    memset(said, 0, sizeof said);
    guard_judge(counts, hear, NULL);
    return said[grade];
}

static void nothing_is_said_of_a_quiet_machine(void **unused)
{
    const struct guard_counts counts =
        between(&(struct guard_moment){.used_ns = 40u * (uint64_t)S});

    for (int grade = GUARD_NOTICE; grade <= GUARD_INVALID; grade++)
        assert_string_equal(judge(&counts, (enum guard_grade)grade), "");
    assert_int_equal(guard_check_clock(&counts), 0);
    assert_false(counts.is_throttled || counts.is_starved);
}

static void a_clock_of_half_the_speed_lies(void **unused)
{
    const struct guard_moment slow = {.clock.before_ns = (uint64_t)5 * S, .pauses = 1};
    const struct guard_counts counts = between(&slow);
    struct guard_counts sum = {0};

    guard_add(&sum, &counts);
    guard_add(&sum, &(struct guard_counts){0}); /* of a rank whose clock is true */
    assert_int_equal(guard_check_clock(&sum), -EPROTO);
    assert_non_null(strstr(judge(&sum, GUARD_INVALID),
                           "5.000 s passed on CLOCK_MONOTONIC and 10.000 s on another"));
}

static void a_pause_is_known_by_its_signal_or_by_a_late_thread(void **unused)
{
    const struct guard_counts stopped = between(&(struct guard_moment){.pauses = 1}),
                              frozen = between(&(struct guard_moment){.still_ns = S});

    assert_non_null(strstr(judge(&stopped, GUARD_INVALID), "stopped and continued"));
    assert_non_null(strstr(judge(&frozen, GUARD_INVALID), "stopped and continued"));
}

/* Throttled time is summed over CPUs: 6 s of four may be 1.5 s of one, or more. */
static void a_quota_is_told_from_others(void **unused)
{
    const uint64_t second = S;
    const struct {
        uint64_t throttled_ns, delayed_ns, used_ns;
        double percent;
        const char *degraded, *notice;
    } rows[] = {
        {6 * second, 0, second, 15, "CPU quota: the control group was throttled 15%", ""},
        {3 * second, 0, second, 7.5, "", ""},
        {6 * second, 9 * second, second, 90, "throttled 90% of the time", ""},
        {second / 2, 9 * second, second, 1.25, "", "a thread waited for one 90% of the time"},
        {0, 9 * second, 39 * second, 0, "", ""}, /* its own threads */
        {0, 2 * second, second, 0, "", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct guard_counts counts =
            between(&(struct guard_moment){.throttled_ns = rows[i].throttled_ns,
                                           .delayed_ns = rows[i].delayed_ns,
                                           .used_ns = rows[i].used_ns});
        assert_float_equal(counts.throttled_percent, rows[i].percent, 1e-9);
        assert_non_null(strstr(judge(&counts, GUARD_DEGRADED), rows[i].degraded));
        assert_non_null(strstr(judge(&counts, GUARD_NOTICE), rows[i].notice));
        assert_true((*rows[i].degraded == '\0') == (*said[GUARD_DEGRADED] == '\0'));
        assert_true((*rows[i].notice == '\0') == (*said[GUARD_NOTICE] == '\0'));
        assert_string_equal(said[GUARD_INVALID], "");
    }
}

/* 1 + 2 pauses, 1 + 1 shortages; of drops, which all ranks of a node see, the most. */
static void events_of_ranks_are_summed(void **unused)
{
    struct guard_counts sum = {0};

    guard_add(&sum, &(struct guard_counts){.pauses = 1, .shortages = 1, .drops = 4});
    guard_add(&sum, &(struct guard_counts){.pauses = 2, .shortages = 1, .drops = 3});
    assert_int_equal(sum.pauses, 3);
    assert_int_equal(sum.shortages, 2);
    assert_int_equal(sum.drops, 4);
}

static void the_worst_of_ranks_counts(void **unused)
{
    const struct guard_counts one = between(&(struct guard_moment){
                                  .throttled_ns = 36u * (uint64_t)S, .drops = 2}),
                              two = between(&(struct guard_moment){.stolen_ns = 20u * (uint64_t)S,
                                                                   .drops = 1});
    struct guard_counts sum = {0};

    guard_add(&sum, &one);
    guard_add(&sum, &two);
    assert_true(sum.is_throttled && sum.is_starved);
    assert_int_equal(sum.drops, 2);
    assert_non_null(strstr(judge(&sum, GUARD_NOTICE), "the hypervisor had the CPUs 50%"));
    assert_non_null(strstr(judge(&(struct guard_counts){.drops = 2}, GUARD_NOTICE),
                           "dropped the machine's page cache meanwhile (2)"));
}

/* A thread that waits without a CPU does not stand still, and a guard may be in a guard. */
static void guards_open_and_close(void **unused)
{
    struct guard_moment outer, inner;
    struct guard_counts counts;

    guard_begin(&outer);
    guard_begin(&inner);
    clock_sleep_ns(250000000);
    counts = (struct guard_counts){0};
    guard_end(&inner, &counts);
    assert_int_equal(counts.pauses, 0);
    assert_int_equal(guard_check_clock(&counts), 0);
    raise(SIGCONT);
    guard_end(&outer, &counts);
    assert_int_equal(counts.pauses, 1);
    assert_int_equal(guard_check_clock(&counts), 0);
    guard_begin(&outer);
    counts = (struct guard_counts){0};
    guard_end(&outer, &counts);
    assert_int_equal(counts.pauses, 0);
}

static void *spin(void *until)
{
    while (!flag_get(until))
        ;
    return NULL;
}

/* Two threads on one CPU wait for each other, which the kernel counts unless it was built without.
 */
static void a_thread_that_waits_is_delayed(void **unused)
{
    const uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
    struct guard_counts counts = {0};
    struct flag end = {0};
    pthread_t threads[2];
    cpu_set_t one;
    char text[64];

    file_read_begin("/proc/self/schedstat", text, sizeof text);
    if (!*text || *text == '0')
        skip();
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, spin, &end), 0);
        pthread_setaffinity_np(threads[i], sizeof one, &one);
    }
    while (counts.delayed_percent < 20 && clock_now_ns() < until_ns) {
        struct guard_moment from;
        guard_begin(&from);
        clock_sleep_ns(300000000);
        guard_end(&from, &counts);
    }
    flag_set(&end);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(counts.delayed_percent >= 20);
}

/* A process that was stopped knows by its late thread, and by the signal that continues it. */
static void a_stopped_process_stood_still(void **unused)
{
    int status = 1, ready[2];
    char text[64];

    file_read_begin("/proc/self/schedstat", text, sizeof text);
    if (!*text || *text == '0')
        skip();
    for (int i = 0; i < 20 && status; i++) { /* on a busy machine, it may have waited for a CPU */
        assert_int_equal(pipe(ready), 0);
        const pid_t child = fork();
        if (child == 0) {
            struct guard_counts counts = {0};
            struct guard_moment from;
            guard_begin(&from);
            clock_sleep_ns(200000000); /* its thread has looked */
            if (write(ready[1], "", 1) != 1)
                _exit(1);
            clock_sleep_ns(1000000000);
            guard_end(&from, &counts);
            _exit(counts.pauses == 2 ? 0 : 1);
        }
        assert_int_equal(read(ready[0], text, 1), 1);
        kill(child, SIGSTOP);
        clock_sleep_ns(1500000000);
        kill(child, SIGCONT);
        assert_int_equal(waitpid(child, &status, 0), child);
        close(ready[0]);
        close(ready[1]);
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quota_of_each_group_above_counts),
        cmocka_unit_test(what_the_machine_counts),
        cmocka_unit_test(nothing_is_said_of_a_quiet_machine),
        cmocka_unit_test(a_clock_of_half_the_speed_lies),
        cmocka_unit_test(a_pause_is_known_by_its_signal_or_by_a_late_thread),
        cmocka_unit_test(a_quota_is_told_from_others),
        cmocka_unit_test(events_of_ranks_are_summed),
        cmocka_unit_test(the_worst_of_ranks_counts),
        cmocka_unit_test(guards_open_and_close),
        cmocka_unit_test(a_thread_that_waits_is_delayed),
        cmocka_unit_test(a_stopped_process_stood_still),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
