/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/manual_clock.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "trainer/accelerator.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Wall time and sum of compute_ns over the steps of a trainer. */
struct played {
    uint64_t wall_ns, compute_ns;
    uint64_t shortest_ns, longest_ns; /* of one step */
};

static struct played play(const char *text, uint32_t batch_size, uint32_t count, int steps)
{
    struct plugin_choice choice;
    struct trainer trainer;
    struct trainer_config config = {.batch_size = batch_size};
    struct played played = {0};

    assert_int_equal(plugin_choose("trainer", trainer_registry, text, &choice), 0);
    assert_int_equal(trainer_open(&trainer, &choice, &config), 0);
    uint64_t start = clock_now_ns();
    for (int i = 0; i < steps; i++) {
        struct trainer_batch batch = {.count = count};
        struct trainer_times times;
        assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
        played.compute_ns += times.compute_ns;
        if (i == 0 || times.compute_ns < played.shortest_ns)
            played.shortest_ns = times.compute_ns;
        if (times.compute_ns > played.longest_ns)
            played.longest_ns = times.compute_ns;
    }
    played.wall_ns = clock_now_ns() - start;
    trainer_close(&trainer);
    plugin_release(&choice);
    return played;
}

/* Open for batches of 8. */
static int open_at(const char *text, double load)
{
    struct plugin_choice choice;
    struct trainer trainer = {0};
    struct trainer_config config = {.batch_size = 8, .open_load = load};

    int code = plugin_choose("trainer", trainer_registry, text, &choice);
    if (code == 0) {
        code = trainer_open(&trainer, &choice, &config);
        trainer_close(&trainer);
        plugin_release(&choice);
    }
    return code;
}

static void assert_not_opened(const char *text, const char *reason)
{
    assert_true(open_at(text, 0) < 0);
    assert_reason(reason);
}

/* Many short steps add up exactly: each sleep is shortened by the previous one's excess. */
static void steps_add_up(void **unused)
{
    const double nominal_ns = 200 * 10 / 7950.0 * 1e9; /* 0.25 s */

    manual_clock_late_ns = 60000;
    struct played played = play("replay:h200", 10, 10, 200);
    manual_clock_late_ns = 0;
    /* Steps are in whole nanoseconds; the last one is late. */
    assert_in_range(played.compute_ns, (uint64_t)nominal_ns - 200, (uint64_t)nominal_ns + 60200);
    assert_int_equal(played.shortest_ns, played.longest_ns - 60000);
    /* AU of a loop fed from memory: all time is compute time. */
    assert_int_equal(played.compute_ns, played.wall_ns);
}

/* After a stall of the machine, at most one step is caught up. */
static void a_long_stop_is_not_made_up_for(void **unused)
{
    manual_clock_late_ns = 5000000; /* five steps */
    struct played played = play("replay:rate=1000", 1, 1, 9);
    manual_clock_late_ns = 0;
    assert_int_equal(played.longest_ns, 6000000);
    assert_int_equal(played.compute_ns, 5 * 6000000); /* every other step ends at once */
}

/* Where this thread starts a step late although its batch was ready, the step ends in time; the
 * wait for a batch that was not ready ends when it was; what stalls longer than a step is lost. */
static void a_step_begins_when_its_batch_is_ready(void **unused)
{
    struct plugin_choice choice;
    struct trainer trainer;
    struct trainer_config config = {.batch_size = 10};
    struct trainer_times times;

    assert_int_equal(plugin_choose("trainer", trainer_registry, "replay:rate=1000", &choice), 0);
    assert_int_equal(trainer_open(&trainer, &choice, &config), 0);
    const uint64_t start_ns = clock_now_ns();
    struct trainer_batch batch = {.count = 10, .ready_ns = start_ns};
    manual_clock_ns += 3000000; /* the first step waits for this thread */
    assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
    assert_int_equal(clock_now_ns() - start_ns, 13000000);
    manual_clock_ns += 4000000; /* the decoders have the CPU */
    batch.step = 1;
    assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
    assert_int_equal(clock_now_ns() - start_ns, 23000000);
    assert_int_equal(times.compute_ns, 10000000);
    /* The batch is ready 2 ms after the step; this thread notices 1 ms later. */
    batch = (struct trainer_batch){
        .count = 10, .step = 2, .ready_ns = start_ns + 25000000, .waited_ns = 3000000};
    manual_clock_ns += 3000000;
    assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
    assert_int_equal(clock_now_ns() - start_ns, 35000000);
    assert_int_equal(times.wait_ns, 2000000);
    assert_int_equal(times.compute_ns, 10000000);
    manual_clock_ns += 65000000; /* the machine stops */
    batch = (struct trainer_batch){.count = 10, .step = 3, .ready_ns = start_ns};
    assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
    assert_int_equal(clock_now_ns() - start_ns, 100000000);
    batch.step = 4;
    assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
    assert_int_equal(clock_now_ns() - start_ns, 110000000);
    trainer_close(&trainer);
    plugin_release(&choice);
}

static int stop_at_third(void *context)
{
    return ++*(int *)context == 3 ? -EINTR : 0;
}

/* A step of ten seconds asks ten times a second whether to end. */
static void a_long_step_can_be_stopped(double load)
{
    struct plugin_choice choice;
    struct trainer trainer;
    struct trainer_config config = {.batch_size = 10, .open_load = load};
    struct trainer_times times;
    int ticks = 0;

    assert_int_equal(plugin_choose("trainer", trainer_registry, "replay:rate=1", &choice), 0);
    assert_int_equal(trainer_open(&trainer, &choice, &config), 0);
    const uint64_t start_ns = clock_now_ns();
    struct trainer_batch batch = {
        .count = 10, .ready_ns = start_ns, .tick = {stop_at_third, &ticks}};
    assert_int_equal(trainer_step(&trainer, &batch, &times), -EINTR);
    assert_int_equal(clock_now_ns() - start_ns, 300000000);
    trainer_close(&trainer);
    plugin_release(&choice);
}

static void long_steps_can_be_stopped(void **unused)
{
    a_long_step_can_be_stopped(0);
    a_long_step_can_be_stopped(1);
}

static void rate_gpus_and_scale(void **unused)
{
    /* 100 samples at 10,000/s take 10 ms; 4 GPUs take a quarter; scale makes that 8 times as
     * long. */
    assert_int_equal(play("replay:rate=10000,gpus=4,scale=8", 100, 100, 2).compute_ns, 40000000);
    /* Half a batch takes half the time. */
    assert_int_equal(play("replay:rate=10000", 100, 50, 4).compute_ns, 20000000);
}

/* Replay an open loop in which a batch becomes ready every batch_ns. Returns the lateness of the
 * last one. */
static uint64_t play_open(double load, uint64_t batch_ns, int steps, uint64_t *counted,
                          uint64_t *nominal_ns)
{
    struct plugin_choice choice;
    struct trainer trainer;
    struct trainer_config config = {.batch_size = 10, .open_load = load};
    struct trainer_times times = {0};
    uint64_t ready_ns = clock_now_ns();

    *counted = 0;
    assert_int_equal(plugin_choose("trainer", trainer_registry, "replay:rate=1000", &choice), 0);
    assert_int_equal(trainer_open(&trainer, &choice, &config), 0);
    for (int i = 0; i < steps; i++) {
        struct trainer_batch batch = {.count = 10, .step = (uint64_t)i, .ready_ns = ready_ns};
        if (ready_ns > clock_now_ns())
            manual_clock_ns = ready_ns; /* the engine waits for the batch */
        assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
        *counted += times.is_due;
        *nominal_ns = times.nominal_ns;
        ready_ns += batch_ns;
    }
    trainer_close(&trainer);
    plugin_release(&choice);
    return times.late_ns;
}

/* A step of one GPU takes 10 ms; 4 take a batch every 2.5 ms. */
static void an_open_loop_keeps_its_schedule(void **unused)
{
    uint64_t counted, nominal_ns;

    /* In time: nothing is late, and each step is as long as the interval. */
    assert_int_equal(play_open(4, 2400000, 110, &counted, &nominal_ns), 0);
    assert_int_equal(nominal_ns, 2500000);
    assert_int_equal(counted, 100); /* the first ten batches set the schedule */
    /* Each batch takes 0.1 ms longer than its interval: after the last batch of the warm-up the
     * lateness of 100 batches adds up. */
    assert_int_equal(play_open(4, 2600000, 110, &counted, &nominal_ns), 100 * 100000);
    /* Loads may be fractional. */
    assert_int_equal(play_open(0.5, 19000000, 20, &counted, &nominal_ns), 0);
    assert_int_equal(nominal_ns, 20000000);
}

/* A late batch does not delay later ones: the schedule is fixed. */
static void an_open_loop_recovers(void **unused)
{
    struct plugin_choice choice;
    struct trainer trainer;
    struct trainer_config config = {.batch_size = 10, .open_load = 1};
    struct trainer_times times;

    assert_int_equal(plugin_choose("trainer", trainer_registry, "replay:rate=1000", &choice), 0);
    assert_int_equal(trainer_open(&trainer, &choice, &config), 0);
    const uint64_t start_ns = clock_now_ns();
    for (uint64_t i = 0; i < 20; i++) {
        const bool stalls = i == 15;
        const uint64_t due_ns = start_ns + i * 10000000;
        struct trainer_batch batch = {
            .count = 10, .step = i, .ready_ns = stalls ? due_ns + 7000000 : start_ns};
        if (batch.ready_ns > clock_now_ns())
            manual_clock_ns = batch.ready_ns;
        assert_int_equal(trainer_step(&trainer, &batch, &times), 0);
        assert_int_equal(times.late_ns, stalls ? 7000000 : 0);
        assert_int_equal(clock_now_ns(), due_ns + 10000000);
    }
    trainer_close(&trainer);
    plugin_release(&choice);
}

static void a_file_is_played(void **unused)
{
    char path[] = "/tmp/iobench-profile-XXXXXX", text[128];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "step,step_ms,loss\n1,5,9\n2,15,8\n", 31), 31);
    close(fd);
    snprintf(text, sizeof text, "replay:file=%s", path);
    assert_int_equal(play(text, 8, 8, 4).compute_ns, 40000000); /* 5 + 15 + 5 + 15 */
    assert_int_equal(play(text, 8, 2, 4).compute_ns, 10000000); /* a quarter batch */
    unlink(path);
}

static void bad_requests_are_refused(void **unused)
{
    assert_not_opened("replay:rate=1e-300", "at most an hour");
    assert_not_opened("replay:rate=0.001", "at most an hour");
    assert_int_equal(open_at("replay:rate=0.0033", 0), 0); /* 40 minutes, at half the load 81 */
    assert_int_equal(open_at("replay:rate=0.0033", 1), 0);
    assert_int_equal(open_at("replay:rate=0.0033", 0.5), -EINVAL);
    assert_not_opened("replay", "expected a GPU");
    assert_not_opened("replay:h200,rate=5", "expected a GPU");
    assert_not_opened("replay:k80", "unknown GPU 'k80' (known: v100, a100, h100, h200)");
    assert_not_opened("replay:h200,precision=fp32", "no FP32 rate");
    assert_not_opened("replay:h200,gpus=0", "gpus");
    assert_not_opened("replay:rate=-1", "rate: -1 is not within");
    assert_not_opened("replay:file=/nowhere/at/all", "/nowhere/at/all");
}

static void every_accelerator_has_a_source(void **unused)
{
    for (const struct accelerator *row = accelerator_table(); row->name; row++) {
        assert_true(row->mixed_samples_per_s > 0);
        assert_non_null(row->mixed_source);
        assert_int_equal(row->fp32_samples_per_s > 0, row->fp32_source != NULL);
    }
    assert_ptr_equal(accelerator_find("H200"), accelerator_find("h200"));
    assert_null(accelerator_find("h20"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_add_up),
        cmocka_unit_test(a_long_stop_is_not_made_up_for),
        cmocka_unit_test(a_step_begins_when_its_batch_is_ready),
        cmocka_unit_test(long_steps_can_be_stopped),
        cmocka_unit_test(rate_gpus_and_scale),
        cmocka_unit_test(an_open_loop_keeps_its_schedule),
        cmocka_unit_test(an_open_loop_recovers),
        cmocka_unit_test(a_file_is_played),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(every_accelerator_has_a_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
