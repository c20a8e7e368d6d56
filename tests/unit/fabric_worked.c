/* SPDX-License-Identifier: Apache-2.0
 * The figures of `iobench net`, worked by hand: three ranks on two nodes, on a clock that stands
 * still but for the transport. */
#include "tests/unit/manual_clock.h"
#include "tests/unit/wire.h"
#include "tests/unit/worked.h"

#include "base/memory.h"
#include "base/random.h"
#include "cmd/net/report.h"
#include "cmd/net/collective.h"
#include "cmd/net/measure.h"
#include "cmd/net/pattern.h"
#include "cmd/net/rhythm.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { MS = 1000000, BYTES = 1000 };

/* ---- a transport that takes its time ---- */

static struct {
    uint64_t wait_ns;   /* each */
    uint64_t longer_ns; /* the next repeat's waits */
    uint64_t half_bytes;
    uint32_t repeats; /* begun, warm-up included */
    struct transport_config config;
} slow;

static int slow_test(void *state, bool *done)
{
    (void)state;
    *done = true;
    manual_clock_ns += slow.wait_ns;
    return 0;
}

/* Before a repeat the ranks agree, by a word: two warm-ups are as long as the first repeat. */
static int slow_start(void *state, const struct transport_message *message, bool sends)
{
    (void)state;
    if (sends && message->bytes == sizeof(uint64_t) && message->from == slow.half_bytes - 128 &&
        ++slow.repeats > 3)
        slow.wait_ns += slow.longer_ns;
    return 0;
}

/* The sums of three ranks, whose own numbers are 1, 2 and 3 more than a common one. */
static int slow_collective(void *state, enum collective kind, uint64_t out, uint64_t in,
                           uint64_t bytes)
{
    const float *mine = (const float *)(const void *)(slow.config.arena + out);
    float *sum = (float *)(void *)(slow.config.arena + in);

    (void)state;
    for (uint64_t i = 0; kind == COLLECTIVE_ALL_REDUCE && i < bytes / sizeof *sum; i++)
        sum[i] = 3 * (mine[i] - (float)(slow.config.ranks->place.rank + 1)) + 6;
    return 0;
}

static const struct transport_ops slow_ops = {.plugin = {.name = "slow"},
                                              .start = slow_start,
                                              .collective = slow_collective,
                                              .test = slow_test};

/* What passes while nothing is sent, passes on this clock as well. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    manual_clock_ns += (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
    return 0;
}

static struct transport transport_of(struct ranks *ranks, uint64_t bytes, uint64_t wait_ns)
{
    memset(&slow, 0, sizeof slow);
    slow.wait_ns = wait_ns;
    slow.half_bytes = bytes / 2;
    slow.config =
        (struct transport_config){.ranks = ranks, .arena = memory_zeroed(bytes), .bytes = bytes};
    return (struct transport){.ops = &slow_ops, .state = &slow, .config = slow.config};
}

/* ---- measured ---- */

static struct stats_summary pair(enum pair_kind kind, uint32_t repeats, uint64_t repeat_ns)
{
    const uint64_t bytes = measure_arena_bytes(BYTES);
    struct ranks ranks = as_rank(0);
    struct transport transport = transport_of(&ranks, bytes, MS);
    struct measure measure = {.repeat_ns = repeat_ns};
    struct stats_summary figure;

    slow.longer_ns = MS;
    assert_int_equal(measure_open(&measure, &transport, bytes, repeats), 0);
    assert_int_equal(measure_pair(&measure, 2, true, kind, BYTES, 1, &figure), 0);
    measure_close(&measure);
    free(transport.config.arena);
    return figure;
}

/* Repeats wait 1, 2, 3, ... ms each time. There and back is one wait: half of it is the latency. A
 * window of 64 messages of 1,000 bytes takes two waits, with its acknowledgement. */
static void messages_between_two_ranks(void **unused)
{
    (void)unused;
    struct stats_summary figure = pair(PAIR_LATENCY, 1, 0);
    assert_equal(figure.median, 0.0005);
    figure = pair(PAIR_LATENCY, 5, 0); /* 0.5, 1, 1.5, 2, 2.5 ms */
    assert_equal(figure.median, 0.0015);
    assert_equal(figure.minimum, 0.0005);
    assert_equal(figure.maximum, 0.0025);
    figure = pair(PAIR_LATENCY, 2, 3 * MS); /* four times there and back */
    assert_equal(figure.minimum, 0.0005);
    assert_equal(figure.maximum, 0.001);
    figure = pair(PAIR_FORTH, 2, 0); /* 64,000 bytes in 2 and in 4 ms */
    assert_equal(figure.maximum, 32e6);
    assert_equal(figure.minimum, 16e6);
    assert_equal(figure.median, 24e6);
    assert_equal(pair(PAIR_BACK, 1, 0).median, 32e6);
    assert_equal(pair(PAIR_BOTH, 1, 0).median, 64e6); /* the sum of both directions */
}

/* Ranks that need 1, 3 and 2 ms: the slowest counts, on all of them. */
static void collectives_take_as_long_as_the_slowest(void **unused)
{
    static const uint64_t took_ms[RANKS] = {1, 3, 2};
    const uint64_t bytes = measure_arena_bytes(BYTES);
    struct stats_summary seconds = {0};

    (void)unused;
    wire.is_kept = false;
    for (uint32_t i = 0; i < 2 * RANKS; i++) {
        struct ranks ranks = as_rank(i % RANKS);
        struct transport transport = transport_of(&ranks, bytes, took_ms[i % RANKS] * MS);
        struct measure measure = {.repeat_ns = 0};
        assert_int_equal(measure_open(&measure, &transport, bytes, 2), 0);
        assert_int_equal(measure_collective(&measure, COLLECTIVE_ALL_GATHER, 24 * 40, 1, &seconds),
                         0);
        assert_equal(seconds.median, i < RANKS ? (double)took_ms[i] * 1e-3 : 3e-3);
        assert_int_equal(seconds.count, 2);
        measure_close(&measure);
        free(transport.config.arena);
        wire.is_kept = i + 1 >= RANKS;
    }
}

/* All bytes of a broadcast are verified, not only a rank's share: the last one arrives damaged. */
static void a_broadcast_is_verified_whole(void **unused)
{
    enum { WHOLE = RANKS * 320 };
    const uint64_t bytes = measure_arena_bytes(BYTES);
    const struct pattern sent = {0, random_hash(1, COLLECTIVE_BROADCAST, 0)};

    (void)unused;
    for (unsigned damage = 0; damage < 2; damage++) {
        wire.is_kept = false;
        struct ranks ranks = as_rank(1);
        struct transport transport = transport_of(&ranks, bytes, MS);
        struct measure measure = {.verify = true};
        struct stats_summary seconds;
        assert_int_equal(measure_open(&measure, &transport, bytes, 1), 0);
        unsigned char *arrived = transport.config.arena + measure.half_bytes;
        pattern_fill(&sent, arrived, WHOLE);
        arrived[WHOLE - 1] ^= (unsigned char)damage;
        const int code = measure_collective(&measure, COLLECTIVE_BROADCAST, WHOLE, 1, &seconds);
        assert_int_equal(code, damage ? -EBADMSG : 0);
        assert_int_equal(measure.verified_bytes, WHOLE);
        measure_close(&measure);
        free(transport.config.arena);
    }
}

static bool at_once(void *context)
{
    (void)context;
    return true;
}

/* Steps of 300 ms: two buckets are final after 200 and 300 ms. All-reduces of 30 ms: the last ends
 * at 330. Of 150 ms: 200 to 350 and 350 to 500. Of 60 ms: 360. The slowest rank's are told. */
static void a_rhythm_of_all_reduces(void **unused)
{
    static const uint64_t took_ms[RANKS] = {30, 150, 60};
    static const double time_s[] = {0.33, 0.5, 0.36}, late_s[] = {0.03, 0.2, 0.06},
                        busy_s[] = {0.06, 0.3, 0.12};

    (void)unused;
    wire.is_kept = false;
    for (uint32_t i = 0; i < 2 * RANKS; i++) {
        const uint32_t told = i < RANKS ? i : 1;
        struct ranks ranks = as_rank(i % RANKS);
        struct rhythm rhythm = {.step_ns = 300 * (uint64_t)MS};
        struct rhythm_figures figures;
        assert_int_equal(rhythm_add(&rhythm, 1210, RANKS), 0); /* whole words: 1,200 */
        assert_int_equal(rhythm_add(&rhythm, 5, RANKS), 0);    /* at least one each: 12 */
        assert_int_equal(rhythm.bytes, 1212);
        struct transport transport =
            transport_of(&ranks, 2 * rhythm.bytes, took_ms[i % RANKS] * MS);
        rhythm.transport = &transport;
        assert_int_equal(rhythm_run(&rhythm, at_once, NULL, &figures), 0);
        assert_int_equal(figures.steps, 1);
        assert_near(figures.time_s, time_s[told], 1e-9);
        assert_near(figures.late_s, late_s[told], 1e-9);
        assert_near(figures.busy_s, busy_s[told], 1e-9);
        free(transport.config.arena);
        wire.is_kept = i + 1 >= RANKS;
    }
}

/* ---- reported ---- */

static struct stats_summary of(const double *values, size_t count, double unit)
{
    double scaled[8];

    for (size_t i = 0; i < count; i++)
        scaled[i] = values[i] * unit;
    return stats_summarise(scaled, count);
}

/* Latency 2 us of one value; 100 and 300 MB/s: 200, and no interval; 1, 2, 3, 4 and 5 GB/s: 3, and
 * by their logarithms, whose mean is 0.957 and standard error 0.284 (x 2.776), 1.18 .. 5.73: half
 * of that is 76% of 3. Between nodes 1,000 MB/s are less than half of the median. Collectives of
 * 3,000 bytes in 1 ms, 3 MB/s, by nccl-tests' factors for 3 ranks. */
static void the_report(void **unused)
{
    static const double one[] = {2}, two[] = {100, 300}, five[] = {5, 2, 4, 1, 3}, ms[] = {1};
    static const double bus[COLLECTIVES] = {4.0 / 3, 2.0 / 3, 2.0 / 3, 1, 2.0 / 3};
    static uint32_t nodes[] = {0, 0, 1};
    static struct ranks_peer peers[RANKS] = {
        {.host = "a", .node = 0}, {.host = "a", .node = 0}, {.host = "b", .node = 1}};
    /* Within node a 8 and 6 GB/s, between nodes 1 to 4: medians 7 and 2.5. */
    double rates[RANKS * RANKS] = {NAN, 8e9, 1e9, 6e9, NAN, 2e9, 3e9, 4e9, NAN};
    double latencies[RANKS * RANKS] = {NAN, 1e-6, 10e-6, 3e-6, NAN, 20e-6, 30e-6, 40e-6, NAN};
    struct ranks ranks = as_rank(0);
    const struct survey_settings settings = {
        .repeats = 5, .verify = true, .pair_bytes = 1 << 20, .repeat_ns = 20 * MS, .seed = 9};
    const struct net_asked asked = {.settings = &settings,
                                    .ranks = &ranks,
                                    .transport = "slow",
                                    .command = "x",
                                    .verdict.valid = true};
    struct fabric_survey survey = {.other = 2,
                                   .size_count = 1,
                                   .sizes[0] = {.bytes = 2048,
                                                .pair = {of(one, 1, 1e-6), of(two, 2, 1e6),
                                                         of(one, 1, 1e6), of(five, 5, 1e9)}},
                                   .collectives[0] = {.bytes = 3000},
                                   .has_sizes = true,
                                   .has_collectives = true,
                                   .has_pairs = true,
                                   .is_alone = true,
                                   .matrix = {RANKS, 2, nodes, rates, latencies},
                                   .verified_bytes = 3 << 20,
                                   .transport = "slow one"};

    (void)unused;
    ranks.peers = peers;
    for (int kind = 0; kind < COLLECTIVES; kind++)
        survey.collectives[0].seconds[kind] = of(ms, 1, 1e-3);
    printed_begin();
    net_report_text(&asked, &survey);
    char *text = printed_end();
    assert_says(text, " net: valid, 3 ranks on 2 nodes\n");
    assert_says(text, " Figures medians of 5; %: half of the 95% interval\n");
    assert_says(text, " Data 3.00 MiB received and verified, nothing damaged\n");
    assert_says(text, " Messages between rank 0 on a and rank 2 on b\n"
                      " size latency us forth MB/s back MB/s both MB/s\n"
                      " 2.00 KiB 2.00 200 2.00 3,000 76%\n");
    assert_says(text, " from\\to 0 1 2\n 0 - 8,000 1,000\n 1 6,000 - 2,000\n 2 3,000 4,000 -\n");
    assert_says(text, " Median 2,500 MB/s, 25.0 us between nodes\n");
    assert_says(text, " Median 7,000 MB/s, 2.00 us within nodes\n");
    assert_says(text, " Slow rank 0 on a to rank 2 on b: 1,000 MB/s, others 2,500\n");
    assert_says(text, " Collectives of 3 ranks: time of the slowest rank, us\n");
    assert_says(text, " 2.93 KiB 1,000 1,000 1,000 1,000 1,000\n");
    assert_says(text, " 2.93 KiB 4.00 2.00 2.00 3.00 2.00\n"); /* 3 MB/s by the factors */
    free(text);
    assert_equal(net_report_all_reduce(&survey), 4e6);

    json_t *document = net_report_json(&asked, &survey);
    ASSERT_FIGURES(
        document, {"nodes", 2}, {"verified_bytes", 3145728}, {"settings.repeats", 5},
        {"settings.repeat_s", 0.02}, {"settings.pair_bytes", 1048576}, {"messages.to_rank", 2},
        {"messages.sizes.0.bytes", 2048}, {"messages.sizes.0.latency_s", 2e-6},
        {"messages.sizes.0.forth_bytes_per_s", 200e6},
        {"messages.sizes.0.forth_low_bytes_per_s", 100e6},
        {"messages.sizes.0.forth_high_bytes_per_s", 300e6},
        {"messages.sizes.0.back_bytes_per_s", 2e6}, {"messages.sizes.0.both_bytes_per_s", 3e9},
        {"pairs.bytes_per_s.0.0", NAN}, {"pairs.bytes_per_s.0.1", 8e9},
        {"pairs.bytes_per_s.2.0", 3e9}, {"pairs.latency_s.1.2", 20e-6}, {"ranks.2.node", 1});
    for (size_t i = 0; i < COLLECTIVES; i++) {
        const json_t *row = json_array_get(json_object_get(document, "collectives"), i);
        ASSERT_FIGURES(row, {"bytes", 3000}, {"time_s", 1e-3}, {"algorithm_bytes_per_s", 3e6},
                       {"bus_bytes_per_s", 3e6 * bus[i]});
        assert_string_equal(load_text(row, "name"), collective_name((enum collective)i));
    }
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_between_two_ranks),
        cmocka_unit_test(collectives_take_as_long_as_the_slowest),
        cmocka_unit_test(a_broadcast_is_verified_whole),
        cmocka_unit_test(a_rhythm_of_all_reduces),
        cmocka_unit_test(the_report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
