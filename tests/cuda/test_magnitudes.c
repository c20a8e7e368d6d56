/* SPDX-License-Identifier: Apache-2.0
 *
 * The histograms of a device are those of the host, number by number, in each number type: over
 * tensors of any size, that grow, shrink, are all zeros, or are no numbers. Built twice, as
 * test_device.c.
 */
#include "tests/cuda/place.h"

/* Observe the same values on both. */
struct pair {
    struct magnitudes host, *device;
    uint32_t *scratch;
};

static struct pair pair_start(void)
{
    const struct magnitudes none = {0};
    const uint32_t zero = 0;

    return (struct pair){.device = place_bytes(&none, sizeof none),
                         .scratch = place_bytes(&zero, sizeof zero)};
}

static void pair_end(struct pair *pair)
{
    runtime_release(pair->device);
    runtime_release(pair->scratch);
}

static void observe(struct pair *pair, const struct place *place)
{
    struct magnitudes found;
    uint32_t scratch;

    magnitudes_observe(&pair->host, place_count(place), place->host);
    must(device_magnitudes(place->type, place_count(place), place->device, pair->device,
                           pair->scratch, place_runtime.stream));
    fetch_bytes(&found, pair->device, sizeof found);
    fetch_bytes(&scratch, pair->scratch, sizeof scratch);
    if (memcmp(&found, &pair->host, sizeof found) != 0)
        fail_msg("type %d, %zu values: range %g and %g, largest %g and %g, zeros %llu and %llu",
                 (int)place->type, place_count(place), found.range, pair->host.range, found.largest,
                 pair->host.largest, (unsigned long long)found.zeros,
                 (unsigned long long)pair->host.zeros);
    assert_int_equal(scratch, 0);
}

/* Random numbers of growing size; every third one is 0. */
static void observe_random(struct pair *pair, enum device_type type, size_t count, float scale)
{
    struct place place = place_random(type, 1, 1, count, count);

    for (size_t i = 0; i < count; i++)
        place.host[i] = i % 3 ? place.host[i] * scale : 0;
    put(&place);
    observe(pair, &place);
    place_free(&place);
}

static void histograms_are_those_of_the_host(void **unused)
{
    static const struct {
        size_t count;
        float scale;
    } tensors[] = {{1000, 0},  {1001, 0.5f}, {4096, 1},    {100000, 0.3f}, {17, 1.5f},
                   {3000, 40}, {64, 1000},   {300000, 10}, {8, 1e-3f},     {1, 0}};

    for (int type = DEVICE_FP32; type <= DEVICE_BF16; type++) {
        struct pair pair = pair_start();
        uint64_t sum = 0, wanted = 0;
        for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
            observe_random(&pair, (enum device_type)type, tensors[i].count, tensors[i].scale);
            wanted += tensors[i].count;
        }
        for (uint32_t i = 0; i < MAGNITUDES_BINS; i++)
            sum += pair.host.counts[i];
        assert_int_equal(sum + pair.host.zeros, wanted);
        assert_true(pair.host.largest > 500 && pair.host.range >= pair.host.largest);
        pair_end(&pair);
    }
}

/* Grow until all bins merge into one, more often than a number has bits. */
static void a_range_can_double_often(void **unused)
{
    struct pair pair = pair_start();

    observe_random(&pair, DEVICE_FP32, 1000, 1e-20f);
    observe_random(&pair, DEVICE_FP32, 1000, 1e-18f);
    observe_random(&pair, DEVICE_FP32, 1000, 1);
    observe_random(&pair, DEVICE_FP32, 1000, 1e30f);
    assert_true(pair.host.counts[0] > 1900);
    pair_end(&pair);
}

static void no_number_is_never_forgotten(void **unused)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pair pair = pair_start();
        struct place place = place_random(DEVICE_FP32, 1, 1, 1000, 1);
        observe_random(&pair, DEVICE_FP32, 1000, 1);
        place.host[700] = bad[i];
        put(&place);
        observe(&pair, &place);
        assert_true(isinf(pair.host.largest));
        observe_random(&pair, DEVICE_FP32, 1000, 10);
        assert_true(isinf(pair.host.largest));
        place_free(&place);
        pair_end(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histograms_are_those_of_the_host),
        cmocka_unit_test(a_range_can_double_often),
        cmocka_unit_test(no_number_is_never_forgotten),
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
