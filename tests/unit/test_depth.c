/* SPDX-License-Identifier: Apache-2.0
 * The saturation depth of simulated storage. */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "readers/depth.h"

#include <math.h>

enum { REQUEST_BYTES = 128 * 1024, REAPED = 64 }; /* at most, at once */

/* `ways` parallel reads, latency_ns each; slower beyond `thrash` reads in flight. */
struct storage {
    uint32_t ways;
    uint64_t latency_ns;
    double noise; /* of a burst's throughput, as a share */
    uint32_t thrash;
    uint32_t consumer; /* reads in flight before memory runs out; 0: no limit */
    double drift;      /* of the throughput over seconds, as a share */
    double gusts;      /* of the throughput over tens of milliseconds, as a share */
    double gust_ns;    /* their length; 0: 20 ms */
    double sustained;  /* bytes/s, whatever the depth; 0: no limit */
    double burst;      /* bytes not read at that rate that may be read later, faster */
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

/* bytes_per_s() as a token bucket lets it: *burst bytes are left. */
static double served(const struct storage *storage, uint32_t in_flight, double bytes, double *burst)
{
    double rate = bytes_per_s(storage, in_flight);

    if (storage->sustained <= 0)
        return rate;
    if (*burst <= 0)
        rate = fmin(rate, storage->sustained);
    *burst = fmin(*burst + (storage->sustained / rate - 1) * bytes, storage->burst);
    return rate;
}

static struct depth run(const struct storage *storage, uint32_t most, double seconds)
{
    struct random random = random_start(storage->ways + storage->seed);
    struct depth depth;
    double now_ns = 1, gust = 1, gust_end_ns = 0, burst = 0;

    depth_start(&depth, most);
    while (now_ns < seconds * 1e9 && !depth.is_found) {
        bool full = !storage->consumer || depth.now <= storage->consumer;
        uint32_t in_flight = full ? depth.now : storage->consumer;
        if (now_ns > gust_end_ns) {
            gust = exp(storage->gusts * random_normal(&random));
            gust_end_ns = now_ns + (storage->gust_ns > 0 ? storage->gust_ns : 2e7);
        }
        uint32_t group =
            1 + (uint32_t)random_below(&random, in_flight < REAPED ? in_flight : REAPED);
        double rate = served(storage, in_flight, group * (double)REQUEST_BYTES, &burst) * gust *
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

    assert_int_equal(run(&disk, 64, 20).knee, 4);
    assert_true(run(&flash, 256, 5).is_found);
}

static void a_depth_that_hurts_is_not_chosen(void **unused)
{
    struct storage storage = {.ways = 16, .latency_ns = 100000, .thrash = 20};
    struct depth depth = run(&storage, 256, 60);

    assert_true(depth.is_found);
    assert_int_equal(depth.knee, 16);
}

static void the_limit_of_the_reader_holds(void **unused)
{
    struct storage storage = {.ways = 1000, .latency_ns = 100000};

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

/* What a shallow depth leaves unused, the next one gets, for a while; and gusts outlast an
 * interval. 97% of the throughput need 32 reads in flight: 9 of 10 searches find that or twice as
 * many. */
static void searches_repeat_on_bursty_storage(void **unused)
{
    static const struct storage storages[] = {
        {.soft = 24,
         .latency_ns = 39700000,
         .sustained = 1.5e9,
         .burst = 3e7,
         .gust_ns = 5e7,
         .gusts = 0.2},
        {.soft = 12,
         .latency_ns = 62400000,
         .sustained = 1.5e9,
         .burst = 0,
         .gust_ns = 1e8,
         .gusts = 0.2},
    };

    for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
        uint32_t same = 0, enough = 0;
        for (uint64_t seed = 0; seed < 100; seed++) {
            struct storage storage = storages[i];
            storage.ways = 1000;
            storage.noise = 0.1;
            storage.drift = 0.3;
            storage.seed = seed;
            struct depth depth = run(&storage, 256, 60);
            same += depth.knee == 32 || depth.knee == 64;
            enough += depth.knee >= 32;
        }
        assert_in_range(same, 86, 100); /* 93 and 90; in a fixed order 82 */
        assert_in_range(enough, 95, 100);
    }
}

static void a_slow_consumer_says_nothing_of_the_storage(void **unused)
{
    struct storage storage = {.ways = 64, .latency_ns = 100000, .consumer = 8};
    struct depth depth = run(&storage, 256, 5);

    assert_false(depth.is_found);
    assert_int_equal(depth.now, 16);
}

static void a_fixed_depth_is_found(void **unused)
{
    struct depth depth;

    depth_start(&depth, 12);
    assert_false(depth.is_found);
    depth_fix(&depth);
    assert_true(depth.is_found && !depth.reversed && depth.now == 12 && depth.knee == 12);
    depth_start(&depth, 1);
    assert_true(depth.is_found && depth.now == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_depth_is_found),
        cmocka_unit_test(the_knee_lies_where_throughput_ends_to_grow),
        cmocka_unit_test(slow_and_fast_storage_take_as_long_as_they_must),
        cmocka_unit_test(a_depth_that_hurts_is_not_chosen),
        cmocka_unit_test(the_limit_of_the_reader_holds),
        cmocka_unit_test(a_storage_that_drifts_has_its_knee_all_the_same),
        cmocka_unit_test(a_knee_that_is_not_sharp_is_not_found_too_early),
        cmocka_unit_test(searches_repeat_on_bursty_storage),
        cmocka_unit_test(a_slow_consumer_says_nothing_of_the_storage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
