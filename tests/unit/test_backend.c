/* SPDX-License-Identifier: Apache-2.0
 * The contract of trainer/backend.h, for every backend: repeatable to the bit, resumable, gradients
 * final when reported, and the same sums as the reference kernels.
 */
#include "tests/unit/backends.h"

#include "tests/unit/allocations.h"

#include "kernels/kernels.h"

#include <errno.h>

static void assert_same(const struct graph *graph, struct saved a, struct saved b)
{
    const size_t bytes = graph->parameter_floats * sizeof(float);

    assert_memory_equal(a.parameters, b.parameters, bytes);
    assert_memory_equal(a.momenta, b.momenta, bytes);
    assert_memory_equal(a.statistics, b.statistics, graph->statistic_floats * sizeof(float));
    forget(&a);
    forget(&b);
}

static void same_bits(const char *backend, struct graph *graph)
{
    struct lesson training[2];

    for (int i = 0; i < 2; i++) {
        lesson_start(&training[i], backend, graph, BATCH, 5, 0);
        lesson_load(&training[i]);
        train(&training[i], 0, 3);
    }
    assert_same(graph, save(&training[0]), save(&training[1]));
    lesson_end(&training[0]);
    lesson_end(&training[1]);
}

static void the_same_seed_gives_the_same_bits(void **unused)
{
    each_backend(small, same_bits);
}

static void resumed(const char *backend, struct graph *graph)
{
    struct lesson whole, part, rest;

    lesson_start(&whole, backend, graph, BATCH, 5, 0);
    lesson_load(&whole);
    train(&whole, 0, 4);

    lesson_start(&part, backend, graph, BATCH, 5, 0);
    lesson_load(&part);
    train(&part, 0, 2);
    struct saved saved = save(&part);
    lesson_start(&rest, backend, graph, BATCH, 5, 0);
    assert_int_equal(backend_load(&rest.backend, saved.parameters, saved.momenta, saved.statistics),
                     0);
    train(&rest, 2, 2);
    assert_same(graph, save(&whole), save(&rest));
    forget(&saved);
    lesson_end(&whole);
    lesson_end(&part);
    lesson_end(&rest);
}

static void training_resumes_bit_for_bit(void **unused)
{
    each_backend(small, resumed);
}

/* ---- gradients ---- */

struct watched {
    const float *gradients;
    float *seen;
    uint64_t done;
    int calls;
};

static int keep_final(void *context, uint64_t done)
{
    struct watched *watched = context;

    memcpy(watched->seen + watched->done, watched->gradients + watched->done,
           (done - watched->done) * sizeof(float));
    watched->done = done;
    return ++watched->calls < 100 ? 0 : -ECANCELED;
}

static void final_gradients(const char *backend, struct graph *graph)
{
    const struct backend_config config = {.graph = graph,
                                          .batch_size = BATCH,
                                          .training = true,
                                          .seed = 5,
                                          .gradients_on_host = true,
                                          .exchanged_by_host = true};
    struct lesson training = {.graph = graph};
    struct backend_memory memory;
    struct backend_loss loss;

    lesson_open(&training, backend, &config);
    lesson_load(&training);
    lesson_batch(&training, 0);
    backend_memory(&training.backend, &memory);
    assert_false(memory.on_device);
    struct watched watched = {memory.gradients, calloc(graph->parameter_floats, sizeof(float)), 0,
                              0};
    assert_int_equal(
        backend_step(&training.backend, &training.batch, 0, keep_final, &watched, &loss), 0);
    assert_true(watched.calls >= 3);
    assert_int_equal(watched.done, graph->parameter_floats);
    assert_memory_equal(watched.seen, memory.gradients, graph->parameter_floats * sizeof(float));
    watched = (struct watched){memory.gradients, watched.seen, 0, 99};
    assert_int_equal(
        backend_step(&training.backend, &training.batch, 0, keep_final, &watched, &loss),
        -ECANCELED); /* the exchange's status is returned */
    free(watched.seen);
    lesson_end(&training);
}

static void gradients_said_to_be_final_are(void **unused)
{
    each_backend(small, final_gradients);
}

/* Rows without a label and rows past count do not affect loss and gradients. */
static void partial(const char *backend, struct graph *graph)
{
    struct lesson full, little;

    lesson_start(&full, backend, graph, BATCH, 5, 0);
    lesson_load(&full);
    lesson_batch(&full, 0);
    full.batch.count = BATCH - 1;
    full.labels[1] = -1;
    struct backend_loss loss = lesson_step(&full, 0.1);
    assert_int_equal(loss.counted, BATCH - 2);

    lesson_start(&little, backend, graph, BATCH - 1, 5, 0);
    lesson_load(&little);
    lesson_batch(&little, 0);
    little.labels[1] = -1;
    struct backend_loss right = lesson_step(&little, 0.1);
    assert_true(fabs(loss.loss - right.loss) < 1e-5);
    struct saved a = save(&full), b = save(&little);
    assert_true(distance(a.gradients, b.gradients, graph->parameter_floats) < 1e-4);
    forget(&a);

    for (int i = 0; i < BATCH - 1; i++)
        full.labels[i] = -1;
    loss = lesson_step(&full, 0.1);
    assert_true(loss.loss == 0 && loss.counted == 0);
    a = save(&full);
    for (uint64_t i = 0; i < graph->parameter_floats; i++)
        assert_true(a.gradients[i] == 0);
    forget(&a);
    forget(&b);
    lesson_end(&full);
    lesson_end(&little);
}

static uint64_t allocations_of_step(struct lesson *training)
{
    const uint64_t before = counter_get(&allocations);

    lesson_step(training, 0.1);
    return counter_get(&allocations) - before;
}

/* What was prepared for is not made later, on the clock. */
static void prepared(const char *backend, struct graph *graph)
{
    struct backend_memory opened, ready, after;
    struct lesson training;

    lesson_start(&training, backend, graph, BATCH, 5, 0);
    lesson_load(&training);
    lesson_batch(&training, 0);
    backend_memory(&training.backend, &opened);
    assert_int_equal(backend_prepare(&training.backend, BATCH - 1, true), 0);
    assert_int_equal(backend_prepare(&training.backend, BATCH - 1, false), 0);
    backend_memory(&training.backend, &ready);
    if (strcmp(backend, "cpu") == 0) /* keeps what it computes from the weights */
        assert_true(ready.workspace_bytes > opened.workspace_bytes);
    training.batch.count = BATCH - 1;
    const uint64_t first = allocations_of_step(&training);
    const uint64_t second = allocations_of_step(&training);
    if (allocations_counted) /* making a program for training takes ten times as many as a step */
        assert_true(first <= 2 * second);
    assert_int_equal(backend_infer(&training.backend, &training.batch, NULL, NULL), 0);
    backend_memory(&training.backend, &after);
    assert_int_equal(after.workspace_bytes, ready.workspace_bytes);
    assert_int_equal(after.activation_bytes, ready.activation_bytes);
    assert_int_equal(after.device_bytes, ready.device_bytes);
    lesson_end(&training);
}

static void batches_that_were_prepared_make_nothing(void **unused)
{
    each_backend(small, prepared);
}

/* ---- batches that are ended ---- */

static int count_down(void *context)
{
    return --*(int *)context < 0 ? -EINTR : 0;
}

/* End a batch after each of its operations. The one that is not ended is as if none had been. */
static void ended(const char *backend, struct graph *graph)
{
    struct lesson training, other;
    float whole[BATCH * CLASSES], again[BATCH * CLASSES];
    struct backend_loss loss;
    int left = 0, code = -EINTR, operations = 0;

    lesson_start(&training, backend, graph, BATCH, 5, 0);
    lesson_start(&other, backend, graph, BATCH, 5, 0);
    lesson_load(&training);
    lesson_load(&other);
    lesson_batch(&training, 0);
    lesson_batch(&other, 0);
    if (!backend_ops_of(training.choice.plugin)->on_device) {
        assert_int_equal(backend_infer(&other.backend, &other.batch, whole, NULL), 0);
        training.batch.tick = (struct tick){count_down, &left};
        for (; code == -EINTR; operations++) {
            left = operations;
            code = backend_infer(&training.backend, &training.batch, again, NULL);
        }
        assert_int_equal(code, 0);
        assert_true(operations > (int)graph->node_count / 2);
        assert_memory_equal(whole, again, sizeof whole);
        for (int i = 0; i < operations; i++) { /* a step has more of them than an inference */
            left = i;
            assert_int_equal(
                backend_step(&training.backend, &training.batch, 0.1, NULL, NULL, &loss), -EINTR);
        }
    }
    lesson_end(&training);
    lesson_end(&other);
}

static void a_batch_ends_between_operations(void **unused)
{
    each_backend(small, ended);
}

static void partial_batches_count_what_they_have(void **unused)
{
    each_backend(small, partial);
}

/* ---- batches that share an update ---- */

static int count_call(void *context, uint64_t done)
{
    return ++*(int *)context, 0;
}

/* Pass rows [first, end) of a batch. Returns how often gradients were reported. */
static int pass_rows(struct lesson *training, const struct lesson *whole, uint32_t first,
                     uint32_t end, bool continues)
{
    struct backend_loss loss;
    int calls = 0;

    training->batch.rows = whole->rows + (size_t)first * SIDE * SIDE * 3;
    training->batch.labels = whole->labels + first;
    training->batch.count = end - first;
    training->batch.continues = continues;
    assert_int_equal(
        backend_step(&training->backend, &training->batch, 0.1, count_call, &calls, &loss), 0);
    assert_int_equal(loss.count, end - first);
    assert_int_equal(loss.update_due, !continues);
    return calls;
}

static void assert_alike(const struct graph *graph, struct saved a, struct saved b)
{
    assert_true(distance(a.gradients, b.gradients, graph->parameter_floats) < 1e-5);
    assert_true(distance(a.parameters, b.parameters, graph->parameter_floats) < 1e-6);
    assert_true(distance(a.momenta, b.momenta, graph->parameter_floats) < 1e-5);
    forget(&a);
    forget(&b);
}

/* Rows of three batches, the second without a label, move the weights as one batch does. */
static void accumulated(const char *backend, struct graph *graph)
{
    const struct backend_config config = {
        .graph = graph, .batch_size = 4, .training = true, .accumulates = true};
    struct lesson whole, parts = {.graph = graph};

    lesson_start(&whole, backend, graph, 9, 5, 0);
    lesson_load(&whole);
    lesson_open(&parts, backend, &config);
    lesson_load(&parts);
    uint8_t *rows = parts.rows;
    int32_t *labels = parts.labels;
    for (uint64_t step = 0; step < 3; step++) {
        lesson_batch(&whole, step);
        whole.labels[2] = whole.labels[4] = whole.labels[5] = -1;
        lesson_step(&whole, 0.1);
        assert_int_equal(pass_rows(&parts, &whole, 0, 4, true), 0);
        assert_int_equal(pass_rows(&parts, &whole, 4, 6, true), 0);
        assert_true(pass_rows(&parts, &whole, 6, 9, false) > 1);
        lesson_update(&whole, &sgd);
        lesson_update(&parts, &sgd);
        assert_alike(graph, save(&whole), save(&parts));
    }
    whole.batch.count = 4; /* nothing is left of earlier updates */
    lesson_step(&whole, 0.1);
    assert_true(pass_rows(&parts, &whole, 0, 4, false) > 1);
    assert_alike(graph, save(&whole), save(&parts));
    for (int i = 0; i < 9; i++)
        whole.labels[i] = -1;
    pass_rows(&parts, &whole, 0, 4, true);
    pass_rows(&parts, &whole, 4, 8, false);
    struct saved none = save(&parts);
    for (uint64_t i = 0; i < graph->parameter_floats; i++)
        assert_true(none.gradients[i] == 0);
    forget(&none);
    parts.rows = rows;
    parts.labels = labels;
    lesson_end(&whole);
    lesson_end(&parts);
}

static struct graph *without_batch_norm(void)
{
    struct graph *graph = graph_create((struct graph_shape){3, SIDE, SIDE}, CLASSES);
    uint32_t x = graph_convolution(graph, "conv1", 0, 16, graph_square(3, 1, 1), 1, true);

    x = graph_relu(graph, graph_convolution(graph, "conv2", graph_relu(graph, x), 16,
                                            graph_square(3, 1, 1), 1, true));
    graph_fully_connected(graph, "fc", graph_max_pool(graph, x, graph_square(2, 2, 0)), CLASSES);
    assert_int_equal(graph_seal(graph), 0);
    return graph;
}

static void batches_that_share_an_update_are_as_one(void **unused)
{
    each_backend(without_batch_norm, accumulated);
}

static void bad_labels(const char *backend, struct graph *graph)
{
    struct lesson training;
    struct backend_loss loss;

    lesson_start(&training, backend, graph, BATCH, 5, 0);
    lesson_load(&training);
    lesson_batch(&training, 7);
    training.labels[2] = CLASSES;
    assert_refused(backend_step(&training.backend, &training.batch, 0, NULL, NULL, &loss), -EINVAL,
                   "row 2 of step 7 has label 6");
    training.labels[2] = -2;
    assert_int_equal(backend_infer(&training.backend, &training.batch, NULL, &loss), -EINVAL);
    lesson_end(&training);
}

static void labels_that_are_no_class_are_refused(void **unused)
{
    each_backend(small, bad_labels);
}

/* ---- inference, dropout ---- */

static void inferred(const char *backend, struct graph *graph)
{
    struct lesson training;
    float logits[2][BATCH * CLASSES];

    lesson_start(&training, backend, graph, BATCH, 5, 0);
    lesson_load(&training);
    train(&training, 0, 2);
    struct saved before = save(&training);
    assert_int_equal(backend_infer(&training.backend, &training.batch, logits[0], NULL), 0);
    assert_same(graph, before, save(&training));

    /* A backend opened only for inference gives the same results with less memory. */
    const struct backend_config config = {.graph = graph, .batch_size = BATCH};
    struct backend alone;
    struct backend_memory with, without;
    before = save(&training);
    assert_int_equal(backend_open(&alone, &training.choice, &config), 0);
    assert_int_equal(backend_load(&alone, before.parameters, NULL, before.statistics), 0);
    assert_int_equal(backend_infer(&alone, &training.batch, logits[1], NULL), 0);
    assert_true(distance(logits[1], logits[0], BATCH * CLASSES) < 1e-5);
    backend_memory(&training.backend, &with);
    backend_memory(&alone, &without);
    assert_true(without.activation_bytes < with.activation_bytes);
    forget(&before);
    backend_close(&alone);
    lesson_end(&training);
}

/* Never refuse what fits. */
static void least_memory_is_less_than_is_taken(void **unused)
{
    static const char *const names[] = {"tiny", "resnet50", "alexnet"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int learns = 0; learns < 2; learns++) {
            struct graph *graph = lesson_graph(names[i], 64, CLASSES);
            const struct backend_config config = {
                .graph = graph, .batch_size = 32, .training = learns};
            struct plugin_choice choice;
            struct backend backend;
            struct backend_memory memory;
            if (backend_choose("cpu", NULL, &choice)) {
                print_message("no backend cpu in this build\n");
                graph_destroy(graph);
                plugin_release(&choice);
                skip();
            }
            assert_int_equal(backend_open(&backend, &choice, &config), 0);
            backend_memory(&backend, &memory);
            const uint64_t taken = memory.activation_bytes + memory.workspace_bytes +
                                   (learns ? 3 : 1) * graph->parameter_floats * sizeof(float);
            const uint64_t least = backend_least_bytes(graph, learns, 32, sizeof(float));
            assert_true(least <= taken);
            if (learns)
                assert_true(least > taken / 2);
            backend_close(&backend);
            plugin_release(&choice);
            graph_destroy(graph);
        }
}

static void inference_changes_nothing(void **unused)
{
    each_backend(small, inferred);
}

static double loss_of(const char *backend, struct graph *graph, uint64_t seed, uint64_t step)
{
    struct lesson training;

    lesson_start(&training, backend, graph, BATCH, seed, 0);
    lesson_load(&training);
    lesson_batch(&training, 0);
    training.batch.step = step;
    double loss = lesson_step(&training, 0).loss;
    lesson_end(&training);
    return loss;
}

static void dropped(const char *backend, struct graph *graph)
{
    const double loss = loss_of(backend, graph, 5, 0);

    assert_true(fabs(loss_of("reference", graph, 5, 0) - loss) < 1e-4 * loss);
    assert_true(fabs(loss_of(backend, graph, 6, 0) - loss) > 1e-3 * loss);
    assert_true(fabs(loss_of(backend, graph, 5, 1) - loss) > 1e-3 * loss);
}

static void dropout_is_the_same_on_every_backend(void **unused)
{
    each_backend(small, dropped);
}

/* Each allocation of opening fails in turn. */
static void without_memory_a_backend_says_so(void **unused)
{
    struct graph *graph = small();
    float *ranges = calloc(graph->node_count, sizeof *ranges);

    for (uint32_t i = 0; i < graph->node_count; i++)
        ranges[i] = 1;
    for (int inference = 0; inference < 2; inference++) {
        const struct backend_config config = {.graph = graph,
                                              .batch_size = BATCH,
                                              .training = !inference,
                                              .threads = 1,
                                              .ranges = inference ? ranges : NULL};
        uint64_t refused = 0;
        for (int code = -ENOMEM; code && allocations_counted; refused++) {
            struct plugin_choice choice;
            struct backend backend;
            assert_int_equal(plugin_choose("backend", backend_registry, "reference", &choice), 0);
            const uint64_t before = counter_get(&allocations);
            allocation_refused = before + refused + 1;
            code = backend_open(&backend, &choice, &config);
            const bool was_refused = counter_get(&allocations) >= allocation_refused;
            allocation_refused = 0;
            assert_int_equal(code, was_refused ? -ENOMEM : 0);
            backend_close(&backend);
            plugin_release(&choice);
        }
        assert_true(refused > 5 || !allocations_counted);
    }
    free(ranges);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_bits),
        cmocka_unit_test(training_resumes_bit_for_bit),
        cmocka_unit_test(gradients_said_to_be_final_are),
        cmocka_unit_test(batches_that_were_prepared_make_nothing),
        cmocka_unit_test(a_batch_ends_between_operations),
        cmocka_unit_test(partial_batches_count_what_they_have),
        cmocka_unit_test(batches_that_share_an_update_are_as_one),
        cmocka_unit_test(labels_that_are_no_class_are_refused),
        cmocka_unit_test(inference_changes_nothing),
        cmocka_unit_test(least_memory_is_less_than_is_taken),
        cmocka_unit_test(dropout_is_the_same_on_every_backend),
        cmocka_unit_test(updates_are_as_the_kernels_have_them),
        cmocka_unit_test(gradients_are_clipped_by_the_norm_of_all),
        cmocka_unit_test(threads_do_not_change_the_norm),
        cmocka_unit_test(without_memory_a_backend_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
