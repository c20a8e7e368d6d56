/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches on their way to a device, with the host in its place (emulated_runtime.c), where uploads
 * are late: training learns the same bits however far ahead batches are uploaded, though their
 * giver overwrites each one as soon as it is its own again; times and memory are told as they are.
 */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "trainer/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 28, CLASSES = 10, BATCH = 4, STEPS = 7, LATE_US = 3000 };

static const size_t row_bytes = (size_t)SIDE * SIDE * 3;

/* All that training leaves behind. */
struct outcome {
    uint32_t count;
    double losses[STEPS];
    uint64_t waited_ns;
    struct trainer_times total;
    struct backend_memory memory;
    float *state; /* parameters, momenta, statistics */
    size_t floats;
};

static void start(struct training *training, const char *backend, bool late)
{
    const struct training_site site = {
        .network = network_find("lenet"),
        .backend = backend,
        .side = SIDE,
        .classes = CLASSES,
        .batch_size = BATCH,
        .seed = 7,
        .learns = true,
        .late = late,
        .recipe = {.rate = 0.0005, .momentum = 0.9, .weight_decay = 1e-4, .steps = STEPS},
    };

    if (training_open(training, &site))
        fail_msg("%s: %s", backend, fail_reason());
}

static void draw(uint64_t step, uint8_t *rows, int32_t *labels)
{
    struct random random = random_start(step + 1);

    for (size_t i = 0; i < BATCH * row_bytes; i++)
        rows[i] = (uint8_t)random_below(&random, 256);
    for (int i = 0; i < BATCH; i++)
        labels[i] = (int32_t)random_below(&random, CLASSES);
}

static void keep(struct outcome *outcome, const struct backend_loss *loss,
                 const struct trainer_times *times)
{
    outcome->total.wait_ns += times->wait_ns;
    outcome->total.upload_ns += times->upload_ns;
    outcome->total.copy_ns += times->copy_ns;
    outcome->total.compute_ns += times->compute_ns;
    outcome->total.update_ns += times->update_ns;
    if (!loss->counted)
        return;
    assert_true(outcome->count < STEPS);
    outcome->losses[outcome->count++] = loss->loss;
}

/* One batch is all the memory there is: each step's is where the one before was. The last one is
 * short. */
static struct outcome learn(const char *backend, bool late)
{
    struct training training;
    struct outcome outcome = {0};
    struct backend_loss loss;
    struct trainer_times times;
    int32_t labels[BATCH];
    int code;

    start(&training, backend, late);
    uint8_t *rows = training_allocate(&training, BATCH * row_bytes);
    assert_non_null(rows);
    for (uint64_t step = 0; step < STEPS; step++) {
        const uint32_t count = step == STEPS - 1 ? BATCH / 2 : BATCH;
        draw(step, rows, labels);
        const struct trainer_batch batch = {
            .rows = rows, .labels = labels, .count = count, .step = step, .waited_ns = 1000};
        times = (struct trainer_times){.wait_ns = batch.waited_ns};
        outcome.waited_ns += batch.waited_ns;
        if (training_step(&training, &batch, &times, &loss))
            fail_msg("%s: %s", backend, fail_reason());
        keep(&outcome, &loss, &times);
        memset(rows, 0x55, BATCH * row_bytes);
        memset(labels, 0, sizeof labels);
    }
    while ((code = training_finish(&training, &times, &loss)) == 1)
        keep(&outcome, &loss, &times);
    assert_int_equal(code, 0);
    const struct graph *graph = training.graph;
    outcome.floats = 2 * graph->parameter_floats + graph->statistic_floats;
    outcome.state = calloc(outcome.floats + 1, sizeof *outcome.state);
    assert_int_equal(backend_save(&training.backend, outcome.state,
                                  outcome.state + graph->parameter_floats,
                                  outcome.state + 2 * graph->parameter_floats, NULL),
                     0);
    backend_memory(&training.backend, &outcome.memory);
    training_release(&training, rows);
    training_close(&training);
    return outcome;
}

static void training_is_the_same_however_far_ahead(void **unused)
{
    static const char *const ways[] = {"ahead=0", "ahead=1", "ahead=2", "ahead=2,graph=no",
                                       "ahead=5"};
    struct outcome wanted = learn("cuda:fp32,plans=none,graph=no", false);

    (void)unused;
    assert_int_equal(wanted.count, STEPS);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char backend[64];
        snprintf(backend, sizeof backend, "cuda:fp32,plans=none,%s", ways[i]);
        struct outcome found = learn(backend, true);
        assert_int_equal(found.count, STEPS);
        for (int step = 0; step < STEPS; step++)
            if (found.losses[step] != wanted.losses[step])
                fail_msg("%s: the loss of step %d is %.9g, not %.9g", ways[i], step,
                         found.losses[step], wanted.losses[step]);
        assert_memory_equal(found.state, wanted.state, wanted.floats * sizeof *wanted.state);
        free(found.state);
    }
    free(wanted.state);
}

/* One step without an update, told; so the device has nothing to do when the next one is given. */
static struct backend_times step_apart(struct training *training, struct backend_batch *batch,
                                       uint64_t waited_ns)
{
    struct backend_loss loss;

    batch->waited_ns = waited_ns;
    assert_int_equal(backend_step(&training->backend, batch, 0, NULL, NULL, &loss), 0);
    if (training->backend.site.late) {
        assert_int_equal(loss.counted, 0);
        assert_int_equal(backend_finish(&training->backend, &loss), 1);
        struct backend_loss none;
        assert_int_equal(backend_finish(&training->backend, &none), 0);
    }
    assert_int_equal(loss.counted, BATCH);
    return loss.times;
}

/* By the device's clock. Nothing hides an upload here: header and rows are copied one after the
 * other. What the host waited is the device's wait only as far as the device had nothing to do. */
static void times_are_told_as_they_are(void **unused)
{
    const uint64_t upload_ns = (uint64_t)2 * LATE_US * 1000, pause_ns = 20000000;
    const uint64_t hour_ns = UINT64_C(3600000000000);

    (void)unused;
    for (int late = 0; late < 2; late++) {
        struct training training;
        int32_t labels[BATCH];
        start(&training, "cuda:fp32,plans=none", late);
        uint8_t *rows = training_allocate(&training, BATCH * row_bytes);
        draw(0, rows, labels);
        struct backend_batch batch = {.rows = rows, .labels = labels, .count = BATCH};
        struct backend_times times = step_apart(&training, &batch, 5000);
        assert_int_equal(times.wait_ns, 5000); /* nothing was before it */
        assert_true(times.upload_ns >= upload_ns && times.copy_ns >= upload_ns);
        assert_true(times.compute_ns > 0 && times.exchange_ns == 0);
        clock_sleep_ns(pause_ns);
        times = step_apart(&training, &batch, hour_ns);
        assert_true(times.wait_ns >= pause_ns && times.wait_ns < hour_ns);
        assert_true(times.upload_ns >= upload_ns);
        times = step_apart(&training, &batch, 0);
        assert_int_equal(times.wait_ns, 0);
        training_release(&training, rows);
        training_close(&training);
    }
}

/* All steps' times are told, also the late ones'. */
static void times_of_late_steps_come(void **unused)
{
    struct outcome found = learn("cuda:fp32,plans=none", true);

    (void)unused;
    assert_true(found.total.wait_ns <= found.waited_ns);
    assert_true(found.total.copy_ns >= (uint64_t)2 * STEPS * LATE_US * 1000);
    assert_true(found.total.compute_ns > 0 && found.total.update_ns > 0);
    free(found.state);
}

static void memory_of_slots_and_pinned_batches_is_told(void **unused)
{
    struct outcome one = learn("cuda:fp32,plans=none,ahead=0", true);
    struct outcome three = learn("cuda:fp32,plans=none,ahead=2", true);

    (void)unused;
    assert_true(one.memory.batch_bytes >= BATCH * row_bytes);
    assert_int_equal(three.memory.batch_bytes, 3 * one.memory.batch_bytes);
    assert_int_equal(three.memory.device_bytes - one.memory.device_bytes,
                     2 * one.memory.batch_bytes);
    assert_true(one.memory.pinned_bytes >= BATCH * row_bytes);
    assert_true(three.memory.pinned_bytes > one.memory.pinned_bytes);
    assert_true(one.memory.device_bytes >
                one.memory.activation_bytes + one.memory.workspace_bytes + one.memory.batch_bytes);
    free(one.state);
    free(three.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_is_the_same_however_far_ahead),
        cmocka_unit_test(times_are_told_as_they_are),
        cmocka_unit_test(times_of_late_steps_come),
        cmocka_unit_test(memory_of_slots_and_pinned_batches_is_told),
    };
    char late[16];

    snprintf(late, sizeof late, "%d", LATE_US);
    setenv("IOBENCH_EMULATED_LATE_US", late, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
