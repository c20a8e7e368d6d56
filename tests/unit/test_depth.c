/* SPDX-License-Identifier: Apache-2.0
 * The saturation depth of simulated storage. */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "readers/depth.h"

#include <math.h>

enum { REQUEST_BYTES = 128 * 1024 };

/* `ways` parallel reads, latency_ns each; slower beyond `thrash` reads in flight. */
struct storage {
    uint32_t ways;
    uint64_t latency_ns;
    double noise; /* of a burst's throughput, as a share */
    uint32_t thrash;
    uint32_t consumer; /* reads in flight before memory runs out; 0: no limit */
    double drift;      /* of the throughput over seconds, as a share */
    double gusts;      /* of the throughput over tens of milliseconds, as a share */
    uint32_t soft;     /* no sharp knee: half the throughput is reached at this depth */
    uint64_t seed;
};

static double bytes_per_s(const struct storage *storage, uint32_t in_flight)
{
    uint32_t busy = in_flight < storage->ways ? in_flight : storage->ways;
    double rate = busy * (double)REQUEST_BYTES / ((double)storage->latency_ns * 1e-9);

    if (storage->soft)
        rate *= (double)storage->ways / (in_flight + storage->soft);
    return storage->thrash && in_flight > storage->thrash ? rate * 0.8 : rate;
}

static struct depth run(const struct storage *storage, uint32_t most, double seconds)
{
    struct random random = random_start(storage->ways + storage->seed);
    struct depth depth;
    double now_ns = 1, gust = 1, gust_end_ns = 0;

    depth_start(&depth, most);
    while (now_ns < seconds * 1e9 && !depth.is_found) {
        bool full = !storage->consumer || depth.now <= storage->consumer;
        uint32_t in_flight = full ? depth.now : storage->consumer;
        if (now_ns > gust_end_ns) {
            gust = exp(storage->gusts * random_normal(&random));
            gust_end_ns = now_ns + 2e7;
        }
        uint32_t group = 1 + (uint32_t)random_below(&random, in_flight);
        double rate = bytes_per_s(storage, in_flight) * gust *
                      (1 + storage->noise * random_normal(&random)) *
                      (1 + storage->drift * sin(now_ns * 1e-9 * 3 + (double)storage->seed));
        now_ns += group * (double)REQUEST_BYTES / rate * 1e9;
        depth_feed(&depth, group, (uint64_t)group * REQUEST_BYTES, full, (uint64_t)now_ns);
    }
    return depth;
}

static void the_knee_lies_where_throughput_ends_to_grow(void **unused)
{
    static const uint32_t ways[] = {1, 2, 5, 8, 24, 32, 100};

    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct storage storage = {.ways = ways[i], .latency_ns = 100000, .noise = 0.02};
        struct depth depth = run(&storage, 256, 60);
        assert_true(depth.is_found);
        assert_int_equal(depth.now, depth.knee);
        assert_true(bytes_per_s(&storage, depth.knee) >= 0.95 * bytes_per_s(&storage, ways[i]));
        assert_true(depth.knee <= ways[i] + (ways[i] + 1) / 2);
    }
}

static void slow_and_fast_storage_take_as_long_as_they_must(void **unused)
{
    struct storage disk = {.ways = 4, .latency_ns = 10000000};
    struct storage flash = {.ways = 64, .latency_ns = 50000};

    (void)unused;
    assert_int_equal(run(&disk, 64, 20).knee, 4);
    assert_true(run(&flash, 256, 5).is_found);
}

static void a_depth_that_hurts_is_not_chosen(void **unused)
{
    struct storage storage = {.ways = 16, .latency_ns = 100000, .thrash = 20};
    struct depth depth = run(&storage, 256, 60);

    (void)unused;
    assert_true(depth.is_found);
    assert_int_equal(depth.knee, 16);
}

static void the_limit_of_the_reader_holds(void **unused)
{
    struct storage storage = {.ways = 1000, .latency_ns = 100000};

    (void)unused;
    for (uint32_t most = 1; most < 40; most++) {
        struct depth depth = run(&storage, most, 60);
        assert_true(depth.is_found);
        assert_true(depth.knee <= most && depth.knee >= DEPTH_KNEE_SHARE * most);
    }
}

/* Up and down by half within two seconds. */
static void a_storage_that_drifts_has_its_knee_all_the_same(void **unused)
{
    uint32_t right = 0;

    (void)unused;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct storage storage = {
            .ways = 16, .latency_ns = 1000000, .noise = 0.1, .drift = 0.5, .seed = seed};
        struct depth depth = run(&storage, 256, 60);
        assert_true(depth.is_found);
        right += depth.knee == 16;
    }
    assert_in_range(right, 90, 100);
}

/* The throughput at depth 64, less 3%. */
static void a_knee_that_is_not_sharp_is_not_found_too_early(void **unused)
{
    uint32_t right = 0;

    (void)unused;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct storage storage = {.ways = 1000,
                                  .latency_ns = 1000000,
                                  .soft = 1,
                                  .drift = 0.3,
                                  .gusts = 0.1,
                                  .seed = seed};
        struct depth depth = run(&storage, 256, 60);
        right += bytes_per_s(&storage, depth.knee) >= 0.97 * bytes_per_s(&storage, 64);
    }
    assert_in_range(right, 190, 200);
}

static void a_slow_consumer_says_nothing_of_the_storage(void **unused)
{
    struct storage storage = {.ways = 64, .latency_ns = 100000, .consumer = 8};
    struct depth depth = run(&storage, 256, 5);

    (void)unused;
    assert_false(depth.is_found);
    assert_int_equal(depth.now, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_knee_lies_where_throughput_ends_to_grow),
        cmocka_unit_test(slow_and_fast_storage_take_as_long_as_they_must),
        cmocka_unit_test(a_depth_that_hurts_is_not_chosen),
        cmocka_unit_test(the_limit_of_the_reader_holds),
        cmocka_unit_test(a_storage_that_drifts_has_its_knee_all_the_same),
        cmocka_unit_test(a_knee_that_is_not_sharp_is_not_found_too_early),
        cmocka_unit_test(a_slow_consumer_says_nothing_of_the_storage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
