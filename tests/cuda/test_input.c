/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch uploads to an emulated device (emulated_runtime.c), where uploads are late: training and
 * inference give the same bits however far ahead batches are uploaded, though each batch is
 * overwritten as soon as it is returned; times and memory are reported as they are.
 */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "trainer/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 16, CLASSES = 10, BATCH = 4, STEPS = 7, LATE_US = 3000 };

static const size_t row_bytes = (size_t)SIDE * SIDE * 3;

/* The results of training. */
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
    const struct training_config config = {
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

    if (training_open(training, &config))
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

/* All steps share the memory of one batch. The last batch is short. */
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

/* ---- gradients that the host exchanges, and inference ---- */

/* Run a few batches on a backend. */
struct course {
    struct plugin_choice choice;
    struct backend backend;
    struct graph *graph;
    uint8_t *rows;
    int32_t labels[BATCH];
    uint32_t told;
    struct backend_loss losses[STEPS];
    uint64_t upload_ns; /* waited for, but for the first batch's */
};

static void set_out(struct course *course, const char *backend, struct backend_config config)
{
    *course = (struct course){.graph = network_build(network_find("lenet"), SIDE, CLASSES)};
    float *weights = calloc(course->graph->parameter_floats, sizeof *weights);

    config.graph = course->graph;
    config.batch_size = BATCH;
    assert_int_equal(plugin_choose("backend", backend_registry, backend, &course->choice), 0);
    if (backend_open(&course->backend, &course->choice, &config))
        fail_msg("%s: %s", backend, fail_reason());
    graph_initialise(course->graph, 7, weights);
    assert_int_equal(backend_load(&course->backend, weights, NULL, NULL), 0);
    free(weights);
    course->rows = backend_allocate(&course->backend, BATCH * row_bytes);
    assert_non_null(course->rows);
}

static struct trainer_batch next_batch(struct course *course, uint64_t step)
{
    draw(step, course->rows, course->labels);
    return (struct trainer_batch){.rows = course->rows,
                                  .labels = course->labels,
                                  .count = step == STEPS - 1 ? BATCH / 2 : BATCH,
                                  .step = step};
}

static void note(struct course *course, const struct backend_loss *loss)
{
    if (!loss->count)
        return;
    assert_true(course->told < STEPS);
    course->upload_ns += course->told ? loss->times.upload_ns : 0;
    course->losses[course->told++] = *loss;
}

/* The last batch is told last. The numbers are those of `wanted`. */
static void arrive(struct course *course, const struct course *wanted, const char *way)
{
    assert_int_equal(course->told, STEPS);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(course->losses[i].count, i == STEPS - 1 ? BATCH / 2 : BATCH);
        if (course->losses[i].loss != wanted->losses[i].loss)
            fail_msg("%s: the loss of batch %d is %.9g, not %.9g", way, i, course->losses[i].loss,
                     wanted->losses[i].loss);
    }
    backend_release(&course->backend, course->rows);
    backend_close(&course->backend);
    plugin_release(&course->choice);
    graph_destroy(course->graph);
}

/* Add the gradients of a second rank: these plus a constant. */
static void exchange_and_update(struct course *course, const struct backend_loss *loss)
{
    struct backend_memory memory;
    const struct kernel_update update = {
        .rate = 0.0005, .rate_before = 0.0005, .momentum = 0.9, .gradient_scale = 0.5};

    backend_memory(&course->backend, &memory);
    assert_int_equal(memory.on_device, !course->backend.config.gradients_on_host);
    for (uint64_t i = 0; !memory.on_device && i < course->graph->parameter_floats; i++)
        memory.gradients[i] = 2 * memory.gradients[i] + 0.001f * (float)loss->counted;
    assert_int_equal(backend_update(&course->backend, &update), 0);
}

/* Wait for the device: an update under way would hide a part of the next upload, on a slow machine
 * all of it. */
static void settle(struct course *course)
{
    assert_int_equal(backend_save(&course->backend, NULL, NULL, NULL, NULL), 0);
}

/* The first `held` batches report nothing when submitted; then each reports one. */
static void learn_by_host(struct course *course, const char *backend, bool on_host, bool late,
                          uint32_t held)
{
    const struct backend_config config = {.training = true,
                                          .seed = 7,
                                          .gradients_on_host = on_host,
                                          .exchanged_by_host = true,
                                          .late = late};
    struct backend_loss loss;
    int code = 0;

    set_out(course, backend, config);
    for (uint32_t step = 0; step < STEPS; step++) {
        const struct trainer_batch batch = next_batch(course, step);
        assert_int_equal(backend_step(&course->backend, &batch, 0, NULL, NULL, &loss), 0);
        memset(course->rows, 0x55, BATCH * row_bytes);
        assert_int_equal(loss.update_due, step >= held);
        assert_int_equal(loss.count > 0, step >= held);
        if (loss.update_due)
            exchange_and_update(course, &loss);
        note(course, &loss);
        if (held == 0)
            settle(course);
    }
    while ((code = backend_step(&course->backend, NULL, 0, NULL, NULL, &loss)) == 0 && loss.count) {
        assert_true(loss.update_due);
        exchange_and_update(course, &loss);
        note(course, &loss);
    }
    assert_int_equal(code, 0);
}

/* Each step is computed by the weights that the exchange of the step before left; its batch has
 * been there since long. */
static void exchanges_by_the_host_are_the_same_however_far_ahead(void **unused)
{
    static const uint32_t aheads[] = {2, 0, STEPS + 1};

    for (int on_host = 0; on_host < 2; on_host++) {
        struct course wanted;
        learn_by_host(&wanted, "cuda:fp32,plans=none,graph=no", on_host, false, 0);
        arrive(&wanted, &wanted, "in turn");
        for (size_t i = 0; i < (on_host ? sizeof aheads / sizeof *aheads : 1); i++) {
            struct course course;
            char backend[64];
            snprintf(backend, sizeof backend, "cuda:fp32,plans=none,ahead=%u", aheads[i]);
            learn_by_host(&course, backend, on_host, true, aheads[i]);
            if (aheads[i] > 0)
                assert_int_equal(course.upload_ns, 0);
            else
                assert_true(course.upload_ns >= (uint64_t)2 * (STEPS - 1) * LATE_US * 1000);
            arrive(&course, &wanted, backend);
        }
    }
}

static void answer(struct course *course, const char *backend, bool training, bool late)
{
    struct backend_loss loss;
    int code = 0;

    set_out(course, backend,
            (struct backend_config){.training = training, .seed = 7, .late = late});
    for (uint32_t step = 0; step < STEPS; step++) {
        const struct trainer_batch batch = next_batch(course, step);
        assert_int_equal(backend_infer(&course->backend, &batch, NULL, &loss), 0);
        memset(course->rows, 0x55, BATCH * row_bytes);
        assert_false(loss.update_due);
        assert_true(late || loss.count == batch.count);
        note(course, &loss);
    }
    assert_int_equal(course->told < STEPS, late);
    while ((code = backend_step(&course->backend, NULL, 0, NULL, NULL, &loss)) == 0 && loss.count)
        note(course, &loss);
    assert_int_equal(code, 0);
}

/* Once on an inference state and once on a training state, as evaluations do. */
static void answers_are_the_same_however_far_ahead(void **unused)
{
    static const char *const ways[] = {"ahead=0", "ahead=2", "ahead=2,graph=no"};

    for (int training = 0; training < 2; training++) {
        struct course wanted;
        answer(&wanted, "cuda:fp32,plans=none,graph=no", training, false);
        arrive(&wanted, &wanted, "in turn");
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            struct course course;
            char backend[64];
            snprintf(backend, sizeof backend, "cuda:fp32,plans=none,%s", ways[i]);
            answer(&course, backend, training, true);
            arrive(&course, &wanted, ways[i]);
        }
    }
}

/* Logits belong to the batch just given. */
static void logits_are_never_late(void **unused)
{
    struct course course;
    struct backend_loss loss;
    float logits[2][BATCH * CLASSES] = {{0}};

    for (int late = 0; late < 2; late++) {
        set_out(&course, "cuda:fp32,plans=none", (struct backend_config){.late = late});
        for (uint32_t step = 0; step < 3; step++) {
            const struct trainer_batch batch = next_batch(&course, step);
            assert_int_equal(backend_infer(&course.backend, &batch, logits[late], &loss), 0);
            assert_int_equal(loss.count, BATCH);
        }
        course.told = STEPS; /* contents are irrelevant */
        backend_release(&course.backend, course.rows);
        backend_close(&course.backend);
        plugin_release(&course.choice);
        graph_destroy(course.graph);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
}

/* One step without an update, told; so the device has nothing to do when the next one is given. */
static struct trainer_times step_apart(struct training *training, struct trainer_batch *batch,
                                       uint64_t waited_ns)
{
    struct backend_loss loss;

    batch->waited_ns = waited_ns;
    assert_int_equal(backend_step(&training->backend, batch, 0, NULL, NULL, &loss), 0);
    if (training->backend.config.late) {
        assert_int_equal(loss.count, 0);
        assert_int_equal(backend_step(&training->backend, NULL, 0, NULL, NULL, &loss), 0);
        struct backend_loss none;
        assert_int_equal(backend_step(&training->backend, NULL, 0, NULL, NULL, &none), 0);
        assert_int_equal(none.count, 0);
    }
    assert_int_equal(loss.counted, BATCH);
    return loss.times;
}

/* By the device's clock. No upload is hidden here: header and rows are copied one after the other.
 * The host's wait counts only while the device was idle. */
static void times_are_told_as_they_are(void **unused)
{
    const uint64_t upload_ns = (uint64_t)2 * LATE_US * 1000, pause_ns = 20000000;
    const uint64_t hour_ns = UINT64_C(3600000000000);

    for (int late = 0; late < 2; late++) {
        struct training training;
        int32_t labels[BATCH];
        start(&training, "cuda:fp32,plans=none", late);
        uint8_t *rows = training_allocate(&training, BATCH * row_bytes);
        draw(0, rows, labels);
        struct trainer_batch batch = {.rows = rows, .labels = labels, .count = BATCH};
        struct trainer_times times = step_apart(&training, &batch, 5000);
        assert_int_equal(times.wait_ns, 5000); /* it is the first */
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

    assert_true(found.total.wait_ns <= found.waited_ns);
    assert_true(found.total.copy_ns >= (uint64_t)2 * STEPS * LATE_US * 1000);
    assert_true(found.total.compute_ns > 0 && found.total.update_ns > 0);
    free(found.state);
}

/* The last update belongs to the epoch that it ends, not to the evaluation or epoch after it. */
static void last_update_is_told_at_the_end(void **unused)
{
    struct training training;
    struct trainer_times times = {0};
    struct backend_loss loss;
    int32_t labels[BATCH];
    int code;

    start(&training, "cuda:fp32,plans=none", true);
    uint8_t *rows = training_allocate(&training, BATCH * row_bytes);
    draw(0, rows, labels);
    const struct trainer_batch batch = {.rows = rows, .labels = labels, .count = BATCH};
    assert_int_equal(training_step(&training, &batch, &times, &loss), 0);
    assert_int_equal(times.update_ns, 0);
    while ((code = training_finish(&training, &times, &loss)) == 1)
        assert_int_equal(times.update_ns, 0);
    assert_int_equal(code, 0);
    assert_true(times.update_ns > 0);
    assert_int_equal(training_finish(&training, &times, &loss), 0);
    assert_int_equal(times.update_ns, 0);
    assert_int_equal(training_infer(&training, &batch, &times, &loss), 0);
    do {
        assert_int_equal(times.update_ns, 0);
    } while ((code = training_finish(&training, &times, &loss)) == 1);
    assert_int_equal(code, 0);
    assert_int_equal(times.update_ns, 0);
    training_release(&training, rows);
    training_close(&training);
}

static void memory_of_slots_and_pinned_batches_is_told(void **unused)
{
    struct outcome one = learn("cuda:fp32,plans=none,ahead=0", true);
    struct outcome three = learn("cuda:fp32,plans=none,ahead=2", true);

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
        cmocka_unit_test(exchanges_by_the_host_are_the_same_however_far_ahead),
        cmocka_unit_test(answers_are_the_same_however_far_ahead),
        cmocka_unit_test(logits_are_never_late),
        cmocka_unit_test(times_are_told_as_they_are),
        cmocka_unit_test(times_of_late_steps_come),
        cmocka_unit_test(last_update_is_told_at_the_end),
        cmocka_unit_test(memory_of_slots_and_pinned_batches_is_told),
    };
    char late[16];

    snprintf(late, sizeof late, "%d", LATE_US);
    setenv("IOBENCH_EMULATED_LATE_US", late, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
