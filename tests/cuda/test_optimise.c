/* SPDX-License-Identifier: Apache-2.0
 *
 * A device updates all parameters at once as the host does each. Relative L2 distance at most 1e-5
 * in FP32, 2e-3 in FP16, 1.5e-2 in BF16. Built twice, as test_device.c.
 */
#include "tests/cuda/place.h"

#define STREAM place_runtime.stream

static void check(const struct place *place, const float *wanted, const char *what)
{
    static const double most[] = {
        [DEVICE_FP32] = 1e-5, [DEVICE_FP16] = 2e-3, [DEVICE_BF16] = 1.5e-2};
    const double distance = place_distance(place, wanted);

    if (!(distance <= most[place->type]))
        fail_msg("%s, type %d: off by %g", what, (int)place->type, distance);
}

enum { ROWS = 6000, COUNT = 3 * ROWS, PADDED = 8, DENSE = 10003, REST = 37 };
enum { DENSE_AT = COUNT, REST_AT = COUNT + DENSE, ALL = REST_AT + REST };

static void update_on_host(const struct kernel_update *update, uint64_t at, uint64_t count,
                           const float *g, float *w, float *m)
{
    const bool bias = at == REST_AT;
    const double decay = bias && !update->decays_fc_bias ? 0 : update->decay;
    const double eta = bias ? 0 : update->eta;
    const double cap = update->clip_norm / sqrt(kernel_squares(ALL, g));
    const double scale = cap > 0 ? fmin(update->gradient_scale, cap) : update->gradient_scale;

    if (update->adapts)
        kernel_lars(count, update->rate, update->rate_before, update->momentum, decay, eta, scale,
                    g + at, w + at, m + at);
    else
        kernel_sgd(count, update->rate, update->momentum, decay, scale, g + at, w + at, m + at);
}

/* Three parameters: a weight of the first layer, whose rows of 3 are padded; one without padding;
 * and the bias of a fully connected layer. Their gradients are in the layer's type, and in FP32;
 * the arena has something else. */
static void optimised(enum device_type type, const struct kernel_update *update)
{
    enum { W, G, M, COPY, GIVEN, DENSE_COPY, DENSE_GIVEN, REST_GIVEN, PLACES };
    struct place all[] = {[W] = place_random(DEVICE_FP32, 1, ALL, 1, 1),
                          [G] = place_random(DEVICE_FP32, 1, ALL, 1, 2),
                          [M] = place_random(DEVICE_FP32, 1, ALL, 1, 3),
                          [COPY] = place_empty(type, 1, ROWS * PADDED, 1),
                          [GIVEN] = place_empty(type, 1, ROWS * PADDED, 1),
                          [DENSE_COPY] = place_empty(type, 1, DENSE, 1),
                          [DENSE_GIVEN] = place_random(type, 1, DENSE, 1, 5),
                          [REST_GIVEN] = place_random(DEVICE_FP32, 1, REST, 1, 4)};
    float *w = all[W].host, *g = all[G].host, *m = all[M].host, *copy = all[COPY].host;
    const float unscale = 0.25f;
    const struct device_parameter rows[] = {{0, COUNT, all[COPY].device, all[GIVEN].device, type,
                                             type, 3, PADDED, KERNEL_DECAY_WEIGHT, 0, 3},
                                            {DENSE_AT, DENSE, all[DENSE_COPY].device,
                                             all[DENSE_GIVEN].device, type, type, 7, 7,
                                             KERNEL_DECAY_WEIGHT, 3, 2},
                                            {REST_AT, REST, NULL, all[REST_GIVEN].device, type,
                                             DEVICE_FP32, 1, 1, KERNEL_DECAY_FC_BIAS, 5, 1}};
    const uint32_t whole = DEVICE_CHUNK_FLOATS;
    const struct device_chunk chunks[] = {{0, whole, 0},
                                          {0, whole, whole},
                                          {0, COUNT - 2 * whole, 2 * whole},
                                          {1, whole, DENSE_AT},
                                          {1, DENSE - whole, DENSE_AT + whole},
                                          {2, REST, REST_AT}};
    struct device_parameters table = {.parameters = place_bytes(rows, sizeof rows),
                                      .chunks = place_bytes(chunks, sizeof chunks),
                                      .parameter_count = 3,
                                      .chunk_count = 6,
                                      .weights = all[W].device,
                                      .gradients = all[G].device,
                                      .momenta = all[M].device,
                                      .norms = place_bytes(NULL, 16 * sizeof(float)),
                                      .unscale = place_bytes(&unscale, sizeof unscale)};

    put(&all[COPY]); /* zero, as the padding stays */
    for (uint32_t i = 0; i < COUNT; i++)
        g[i] = unscale * (all[GIVEN].host[i / 3 * PADDED + i % 3] = place_round(type, g[i]));
    for (uint32_t i = 0; i < DENSE; i++)
        g[DENSE_AT + i] = unscale * all[DENSE_GIVEN].host[i];
    for (uint32_t i = 0; i < REST; i++)
        g[REST_AT + i] = unscale * all[REST_GIVEN].host[i];
    put(&all[GIVEN]);
    if (update->adapts) { /* through the arena, each parameter on its own */
        must(device_collect(&table, 3, 3, STREAM));
        must(device_collect(&table, 0, 3, STREAM));
        check(&all[G], g, "gradients in the arena");
        table.collected = true;
        must(runtime_zero(all[REST_GIVEN].device, REST * sizeof(float), STREAM));
    }
    must(device_optimise(&table, update, STREAM));
    for (int i = 0; i < 3; i++)
        update_on_host(update, rows[i].offset, rows[i].count, g, w, m);
    check(&all[W], w, "weights");
    check(&all[M], m, "momenta");
    for (uint32_t i = 0; i < COUNT; i++)
        copy[i / 3 * PADDED + i % 3] = w[i];
    check(&all[COPY], copy, "copy");
    check(&all[DENSE_COPY], w + DENSE_AT, "copy without padding");
    void *const memory[] = {(void *)(uintptr_t)table.parameters, (void *)(uintptr_t)table.chunks,
                            table.norms, (void *)(uintptr_t)table.unscale};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        runtime_release(memory[i]);
    for (int i = 0; i < PLACES; i++)
        place_free(&all[i]);
}

static void parameters_are_updated_all_at_once(void **unused)
{
    const struct kernel_update updates[] = {{false, false, 0.5, 0.25, 0.8, 0.3, 0, 0.5, 2},
                                            {true, true, 0.5, 0.25, 0.8, 0.3, 0.2, 0.5, 2},
                                            {true, false, 0.5, 0, 0.8, 0.3, 0.2, 0.5, 1e6}};

    for (int i = 0; i < 3; i++) {
        optimised(DEVICE_FP32, &updates[i]);
        optimised(DEVICE_FP16, &updates[i]);
        optimised(DEVICE_BF16, &updates[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_updated_all_at_once),
    };

    if (runtime_usable()) {
        print_message("skipped: %s\n", fail_reason());
        return 77;
    }
    must(runtime_open(&place_runtime, 0, 0));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    runtime_close(&place_runtime);
    return failed;
}
