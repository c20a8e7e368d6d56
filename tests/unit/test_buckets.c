/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets cover an arena of any size once, in order. Those of a backward pass end with layers, and
 * the last one, which nothing hides, is small.
 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "trainer/exchange.h"
#include "trainer/graph.h"

#include <string.h>

/* Send everything, as if `step` floats became final at a time. */
static void send_all(struct buckets buckets, uint64_t step)
{
    uint64_t sent = 0, start = 0, count = 0;

    for (uint64_t done = 0; done < buckets.floats;) {
        done = done + step < buckets.floats ? done + step : buckets.floats;
        while (buckets_next(&buckets, done, &start, &count)) {
            assert_true(start == sent && start % BUCKET_ALIGNMENT_FLOATS == 0 && count > 0);
            sent += count;
            assert_true(sent <= done);
        }
    }
    assert_true(sent == buckets.floats && buckets.started == buckets.count);
}

static void arenas_are_covered_once(void **unused)
{
    static const uint64_t sizes[] = {1, 127, 128, 129, 1000, 2048, 5001, 61706, 25557032};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t wanted = 1; wanted <= 40; wanted++)
            send_all(buckets_of(sizes[i], wanted), sizes[i] / 7 + 1);
}

/* The layer whose gradients complete bucket i: all but the last few of its floats are in it. */
static const char *last_layer(const struct graph *graph, const struct buckets *buckets, uint32_t i)
{
    const uint64_t end = buckets_start(buckets, i + 1);

    for (uint32_t node = graph->node_count; node-- > 0;) {
        const uint64_t final = graph_final_floats(graph, node);
        if (final >= end && final - end < BUCKET_ALIGNMENT_FLOATS)
            return graph->nodes[node].name;
    }
    return "in a layer";
}

/* Each bucket is sent at the first layer that completes it; how many, or which, does not matter. */
static void follow_backward(const struct graph *graph, struct buckets buckets)
{
    uint64_t start, count;
    uint32_t sent = 0;

    for (uint32_t node = graph->node_count; node-- > 0;) {
        const uint64_t final = graph_final_floats(graph, node);
        while (final > 0 && buckets_next(&buckets, final, &start, &count)) {
            assert_true(start + count <= final && final - start - count < BUCKET_ALIGNMENT_FLOATS);
            sent++;
        }
    }
    assert_int_equal(sent, buckets.count);
}

static void buckets_end_with_layers(void **unused)
{
    for (const struct network *const *n = network_registry; *n; n++) {
        struct graph *graph = network_build(*n, (*n)->side, (*n)->classes);
        for (uint32_t wanted = 1; wanted <= 1024; wanted += wanted < 20 ? 1 : 251) {
            struct buckets buckets;
            assert_int_equal(buckets_by_layer(&buckets, graph, wanted), 0);
            assert_true(buckets.count <= wanted && buckets.count > (wanted > 1 ? 1 : 0));
            send_all(buckets, 4096);
            follow_backward(graph, buckets);
            if (wanted > 1)
                assert_true(buckets_floats(&buckets, buckets.count - 1) <
                            buckets.floats / BUCKET_LAST_SHARE + BUCKET_ALIGNMENT_FLOATS);
            buckets_free(&buckets);
        }
        graph_destroy(graph);
    }
}

/* Golden: what --buckets 4 makes of networks. Where one layer is larger than a quarter there are
 * fewer, and the layers before it do not wait for it. */
static void the_default_cuts_networks_there(void **unused)
{
    static const struct {
        const char *network;
        struct {
            const char *layer;
            uint64_t floats;
        } ends[4];
    } golden[] = {
        {"resnet50",
         {{"stage4.block2.bn2", 7565184},
          {"stage4.block1.conv2", 8923136},
          {"stage3.block1.conv2", 7492096},
          {"stem.conv", 1576616}}},
        {"vgg16",
         {{"fc7", 20878208}, {"fc6", 102764544}, {"conv5_1", 7079424}, {"conv1_1", 7635368}}},
        {"alexnet", {{"fc7", 20878208}, {"fc6", 37752832}, {"conv1", 2334184}}},
        {"lenet", {{"fc2", 4992}, {"fc1", 400512}, {"conv1", 26576}}},
        {"googlenet",
         {{"5b.3x3_reduce", 2149120},
          {"4d.pool_proj", 2264576},
          {"3b.3x3", 2230912},
          {"conv1", 353944}}},
    };

    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const struct network *network = network_find(golden[i].network);
        struct graph *graph = network_build(network, network->side, network->classes);
        struct buckets buckets;
        assert_int_equal(buckets_by_layer(&buckets, graph, 4), 0);
        for (uint32_t j = 0; j < 4; j++) {
            const char *layer = j < buckets.count ? last_layer(graph, &buckets, j) : "";
            const uint64_t floats = j < buckets.count ? buckets_floats(&buckets, j) : 0;
            const char *wanted = golden[i].ends[j].layer ? golden[i].ends[j].layer : "";
            if (strcmp(layer, wanted) != 0 || floats != golden[i].ends[j].floats)
                fail_msg("%s, bucket %u: {\"%s\", %llu}, not {\"%s\", %llu}", network->name, j,
                         layer, (unsigned long long)floats, wanted,
                         (unsigned long long)golden[i].ends[j].floats);
        }
        buckets_free(&buckets);
        graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_are_covered_once),
        cmocka_unit_test(buckets_end_with_layers),
        cmocka_unit_test(the_default_cuts_networks_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
