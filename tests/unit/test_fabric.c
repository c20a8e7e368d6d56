/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/collective.h"
#include "cmd/net/matrix.h"
#include "cmd/net/measure.h"
#include "cmd/net/pattern.h"
#include "cmd/net/survey.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

enum { RANKS = 8, LINKS = RANKS * RANKS, MOST = 16 };

struct scene {
    struct matrix matrix;
    uint32_t nodes[RANKS];
    double rates[LINKS], latencies[LINKS];
};

/* Links differ by a few percent, as measured ones do. */
static void set_scene(struct scene *scene, uint32_t ranks, uint32_t ranks_per_node)
{
    *scene = (struct scene){0};
    scene->matrix = (struct matrix){.ranks = ranks,
                                    .nodes = ranks / ranks_per_node,
                                    .node_of = scene->nodes,
                                    .bytes_per_s = scene->rates,
                                    .latency_s = scene->latencies};
    for (uint32_t from = 0; from < ranks; from++)
        for (uint32_t to = 0; to < ranks; to++) {
            const bool is_within = from / ranks_per_node == to / ranks_per_node;
            scene->rates[from * ranks + to] =
                from == to ? NAN
                           : (is_within ? 1e10 : 1e9) * (1 + 0.03 * ((from * 5 + to * 3) % 7));
        }
    for (uint32_t i = 0; i < ranks; i++)
        scene->nodes[i] = i / ranks_per_node;
}

static void slow_down(struct scene *scene, uint32_t from, uint32_t to)
{
    scene->rates[from * scene->matrix.ranks + to] /= 4;
}

static void test_nothing_stands_out(void **state)
{
    struct suspect suspects[MOST];
    struct scene scene;

    (void)state;
    for (uint32_t ranks = 2; ranks <= RANKS; ranks++) {
        set_scene(&scene, ranks, 1);
        assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 0);
    }
    set_scene(&scene, 8, 2);
    assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 0);
}

static void test_slow_node(void **state)
{
    struct suspect suspects[MOST];
    struct scene scene;

    (void)state;
    for (uint32_t ranks = 3; ranks <= RANKS; ranks++) {
        set_scene(&scene, ranks, 1);
        for (uint32_t i = 0; i < ranks; i++) {
            slow_down(&scene, 1, i);
            slow_down(&scene, i, 1);
        }
        assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 2);
        assert_int_equal(suspects[0].kind, SUSPECT_SENDER);
        assert_int_equal(suspects[0].from, 1);
        assert_int_equal(suspects[1].kind, SUSPECT_RECEIVER);
        assert_int_equal(suspects[1].from, 1);
        assert_true(suspects[0].bytes_per_s < 0.35 * suspects[0].typical);
    }
    /* Three nodes on a busy machine: the slow one does not hide in the spread that it causes. */
    set_scene(&scene, 3, 1);
    const double measured[] = {NAN, 80.5, 19.2, 70.4, NAN, 19.2, 19.2, 19.3, NAN};
    memcpy(scene.rates, measured, sizeof measured);
    assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 2);
    assert_int_equal(suspects[0].from, 2);
    assert_int_equal(suspects[1].kind, SUSPECT_RECEIVER);
    /* Two ranks a node: links within the nodes hide nothing. */
    set_scene(&scene, 8, 2);
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t slow = 4; slow < 6 && i / 2 != 2; slow++)
            slow_down(&scene, slow, i);
    assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 1);
    assert_int_equal(suspects[0].kind, SUSPECT_SENDER);
    assert_int_equal(suspects[0].from, 2);
}

static void test_slow_link(void **state)
{
    struct suspect suspects[MOST];
    struct scene scene;

    (void)state;
    set_scene(&scene, 4, 1);
    slow_down(&scene, 1, 2);
    slow_down(&scene, 2, 1);
    assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 2);
    assert_int_equal(suspects[0].kind, SUSPECT_LINK);
    assert_int_equal(suspects[0].from, 1);
    assert_int_equal(suspects[0].to, 2);
    /* One direction only: also uneven. */
    set_scene(&scene, 4, 1);
    slow_down(&scene, 3, 0);
    assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 2);
    assert_int_equal(suspects[1].kind, SUSPECT_ASYMMETRY);
    assert_int_equal(suspects[1].from, 3);
    assert_int_equal(suspects[1].to, 0);
    set_scene(&scene, 2, 1);
    slow_down(&scene, 1, 0);
    assert_int_equal(matrix_judge(&scene.matrix, suspects, MOST), 1);
    assert_int_equal(suspects[0].kind, SUSPECT_ASYMMETRY);
}

static void test_rounds_meet_every_pair_once(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 33; ranks++) {
        int met[33][33] = {{0}};
        for (uint32_t round = 0; round < survey_rounds(ranks); round++)
            for (uint32_t rank = 0; rank < ranks; rank++) {
                const uint32_t partner = survey_partner(ranks, round, rank);
                assert_true(partner < ranks);
                assert_int_equal(survey_partner(ranks, round, partner), rank);
                met[rank][partner] += partner != rank;
            }
        for (uint32_t a = 0; a < ranks; a++)
            for (uint32_t b = 0; b < ranks; b++)
                assert_int_equal(met[a][b], a != b);
    }
}

static void test_bus_factors(void **state)
{
    (void)state;
    assert_true(fabs(collective_bus_factor(COLLECTIVE_ALL_REDUCE, 8) - 1.75) < 1e-12);
    assert_true(fabs(collective_bus_factor(COLLECTIVE_REDUCE_SCATTER, 8) - 0.875) < 1e-12);
    assert_true(fabs(collective_bus_factor(COLLECTIVE_ALL_GATHER, 8) - 0.875) < 1e-12);
    assert_true(fabs(collective_bus_factor(COLLECTIVE_ALL_TO_ALL, 8) - 0.875) < 1e-12);
    assert_true(fabs(collective_bus_factor(COLLECTIVE_BROADCAST, 8) - 1) < 1e-12);
}

static void test_every_byte_counts(void **state)
{
    const struct pattern pattern = {3, 7}, stale = {3, 6}, other = {2, 7};
    unsigned char data[77];

    (void)state;
    pattern_fill(&pattern, data, sizeof data);
    assert_int_equal(pattern_check(&pattern, 0, data, sizeof data), 0);
    assert_int_equal(pattern_check(&pattern, 16, data + 16, sizeof data - 16), 0);
    assert_int_equal(pattern_check(&pattern, 8, data, 32), -EBADMSG);
    assert_int_equal(pattern_check(&stale, 0, data, sizeof data), -EBADMSG);
    assert_int_equal(pattern_check(&other, 0, data, sizeof data), -EBADMSG);
    for (size_t i = 0; i < sizeof data; i++) {
        char place[64];
        data[i] ^= 1;
        assert_int_equal(pattern_check(&pattern, 0, data, sizeof data), -EBADMSG);
        snprintf(place, sizeof place, "rank 3 arrived damaged at byte %zu:", i);
        assert_non_null(strstr(fail_reason(), place));
        data[i] ^= 1;
    }
}

static void test_sums(void **state)
{
    enum { FLOATS = 100, MANY = 5000 };
    static float one[FLOATS], sum[FLOATS];

    (void)state;
    for (uint32_t rank = 0; rank < MANY; rank++) {
        const struct pattern pattern = {rank, 9};
        pattern_fill_floats(&pattern, (unsigned char *)one, sizeof one);
        for (int i = 0; i < FLOATS; i++)
            sum[i] += one[i];
    }
    assert_int_equal(pattern_check_sum(9, MANY, 0, (unsigned char *)sum, sizeof sum), 0);
    assert_int_equal(pattern_check_sum(9, MANY, 40, (unsigned char *)(sum + 10), 80), 0);
    assert_int_equal(pattern_check_sum(8, MANY, 0, (unsigned char *)sum, sizeof sum), -EBADMSG);
    sum[55] += 1;
    assert_int_equal(pattern_check_sum(9, MANY, 0, (unsigned char *)sum, sizeof sum), -EBADMSG);
    assert_non_null(strstr(fail_reason(), "byte 220"));
    sum[55] = NAN;
    assert_int_equal(pattern_check_sum(9, MANY, 0, (unsigned char *)sum, sizeof sum), -EBADMSG);
}

/* A transport that completes two messages at a time, and counts them. */
struct counting_state {
    uint32_t pending, most_pending, acks, data;
};

enum { DATA_BYTES = 1000, WORD_BYTES = 8 };

static int counting_start(void *state, const struct transport_message *message, bool sends)
{
    struct counting_state *counting = state;

    counting->acks += !sends && message->bytes == WORD_BYTES;
    counting->data += message->bytes == DATA_BYTES;
    counting->pending++;
    if (counting->pending > counting->most_pending)
        counting->most_pending = counting->pending;
    return 0;
}

static int counting_test(void *state, bool *done)
{
    struct counting_state *counting = state;

    counting->pending -= counting->pending < 2 ? counting->pending : 2;
    *done = counting->pending == 0;
    return 0;
}

static uint32_t counting_pending(const void *state)
{
    const struct counting_state *counting = state;

    return counting->pending;
}

/* Return how many windows were acknowledged. */
static uint32_t count_acks(bool has_flow_control, struct counting_state *counting)
{
    enum { REPEATS = 3, WORDS = REPEATS + 2 }; /* words before each repeat and warm-up */
    const struct transport_ops ops = {.start = counting_start,
                                      .test = counting_test,
                                      .pending = has_flow_control ? counting_pending : NULL};
    const uint64_t bytes = measure_arena_bytes(DATA_BYTES);
    struct ranks ranks = {.place = {.ranks = 2}};
    struct transport transport = {
        .ops = &ops,
        .state = counting,
        .config = {.ranks = &ranks, .arena = memory_zeroed(bytes), .bytes = bytes}};
    struct measure measure = {.repeat_ns = 200000};
    struct stats_summary figure;

    assert_int_equal(measure_open(&measure, &transport, bytes, REPEATS), 0);
    assert_int_equal(measure_pair(&measure, 1, true, PAIR_FORTH, DATA_BYTES, 1, &figure), 0);
    measure_close(&measure);
    free(transport.config.arena);
    return counting->acks - WORDS;
}

static void test_flow_control_needs_no_acks(void **state)
{
    struct counting_state counting = {0};

    (void)state;
    const uint32_t acks = count_acks(false, &counting);
    assert_int_equal(counting.data, acks * TRANSPORT_DEPTH);
    assert_int_equal(counting.most_pending, TRANSPORT_DEPTH);
    counting = (struct counting_state){0};
    /* One for each repeat and each warm-up; there are at least as many windows. */
    assert_int_equal(count_acks(true, &counting), 5);
    assert_true(counting.data >= 5 * TRANSPORT_DEPTH);
    assert_int_equal(counting.data % TRANSPORT_DEPTH, 0);
    assert_int_equal(counting.most_pending, TRANSPORT_DEPTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_stands_out),
        cmocka_unit_test(test_slow_node),
        cmocka_unit_test(test_slow_link),
        cmocka_unit_test(test_rounds_meet_every_pair_once),
        cmocka_unit_test(test_bus_factors),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_flow_control_needs_no_acks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
