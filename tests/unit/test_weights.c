/* SPDX-License-Identifier: Apache-2.0
 * Names of layers in torchvision's models: the lists of its code, written independently here. */
#include "tests/unit/folder.h"

#include "base/bytes.h"
#include "trainer/graph.h"
#include "trainer/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_norm(const char *name)
{
    return strstr(name, "bn") || strstr(name, "downsample.1");
}

/* Require that some layer of the network has this name there, and count it. */
static void has(const struct graph *graph, const struct network *network, unsigned *count,
                const char *name)
{
    unsigned found = 0;

    for (uint32_t i = 1; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        char theirs[GRAPH_NAME_BYTES] = "";
        if (node->kind == GRAPH_CONVOLUTION || node->kind == GRAPH_BATCH_NORM ||
            node->kind == GRAPH_FULLY_CONNECTED)
            network->torchvision_name(network, node->name, theirs);
        found += strcmp(theirs, name) == 0 && (node->kind == GRAPH_BATCH_NORM) == is_norm(name);
    }
    if (found != 1)
        print_error("%s: %u layers are named %s\n", network->name, found, name);
    assert_int_equal(found, 1);
    (*count)++;
}

static unsigned layers_of(const struct graph *graph)
{
    unsigned count = 0;

    for (uint32_t i = 1; i < graph->node_count; i++)
        count += graph->nodes[i].kind == GRAPH_CONVOLUTION ||
                 graph->nodes[i].kind == GRAPH_BATCH_NORM ||
                 graph->nodes[i].kind == GRAPH_FULLY_CONNECTED;
    return count;
}

static void resnets(void **state)
{
    static const char *const names[] = {"resnet50", "resnet101", "resnet152"};
    static const unsigned depths[][4] = {{3, 4, 6, 3}, {3, 4, 23, 3}, {3, 8, 36, 3}};

    (void)state;
    for (unsigned n = 0; n < 3; n++) {
        const struct network *network = network_find(names[n]);
        struct graph *graph = network_build(network, 224, 1000);
        unsigned count = 0;
        char name[64];
        assert_non_null(graph);
        has(graph, network, &count, "conv1");
        has(graph, network, &count, "bn1");
        has(graph, network, &count, "fc");
        for (unsigned stage = 1; stage <= 4; stage++) {
            snprintf(name, sizeof name, "layer%u.0.downsample.0", stage);
            has(graph, network, &count, name);
            snprintf(name, sizeof name, "layer%u.0.downsample.1", stage);
            has(graph, network, &count, name);
            for (unsigned block = 0; block < depths[n][stage - 1]; block++)
                for (unsigned layer = 1; layer <= 3; layer++) {
                    snprintf(name, sizeof name, "layer%u.%u.conv%u", stage, block, layer);
                    has(graph, network, &count, name);
                    snprintf(name, sizeof name, "layer%u.%u.bn%u", stage, block, layer);
                    has(graph, network, &count, name);
                }
        }
        assert_int_equal(count, layers_of(graph));
        graph_destroy(graph);
    }
}

static void vggs(void **state)
{
    /* Positions of the convolutions in `features`, those of the linear layers in `classifier`. */
    static const unsigned features[2][16] = {
        {0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28},
        {0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34}};

    (void)state;
    for (unsigned n = 0; n < 2; n++) {
        const struct network *network = network_find(n ? "vgg19" : "vgg16");
        struct graph *graph = network_build(network, 224, 1000);
        unsigned count = 0;
        char name[64];
        assert_non_null(graph);
        for (unsigned i = 0; i < (n ? 16 : 13); i++) {
            snprintf(name, sizeof name, "features.%u", features[n][i]);
            has(graph, network, &count, name);
        }
        has(graph, network, &count, "classifier.0");
        has(graph, network, &count, "classifier.3");
        has(graph, network, &count, "classifier.6");
        assert_int_equal(count, layers_of(graph));
        graph_destroy(graph);
    }
}

/* ---- safetensors ---- */

/* Of 8 bytes of data. */
static int open_made(struct safetensors *file, const char *header)
{
    uint8_t bytes[600] = {0};
    const size_t length = strlen(header);

    bytes_put_le64(bytes, length);
    memcpy(bytes + 8, header, length);
    folder_write("weights", bytes, 8 + length + 8);
    return safetensors_open(file, folder_path("weights"));
}

static void headers_that_are_wrong(void **unused)
{
#define TENSOR(type, shape, ends) \
    "{\"a\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" ends "]}}"
    static const struct {
        const char *header, *reason;
    } rows[] = {
        {TENSOR("F32", "1,2", "0,8"), NULL},
        {TENSOR("F64", "", "0,8"), NULL},
        {TENSOR("U8", "1,1,1,1,1,1,1,8", "0,8"), NULL},
        {TENSOR("F33", "2", "0,8"), "tensor 'a' has no dtype that is known"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "tensor 'a' has no dtype that is known"},
        {TENSOR("U8", "1,1,1,1,1,1,1,1,8", "0,8"), "tensor 'a' has no shape of up to 8 dimensions"},
        {TENSOR("F32", "2.0", "0,8"), "tensor 'a' has no shape of up to 8 dimensions"},
        {TENSOR("F32", "-2", "0,8"), "tensor 'a' has no shape of up to 8 dimensions"},
        {TENSOR("F32", "2", "0"), "tensor 'a' has no two data_offsets in order"},
        {TENSOR("F32", "2", "0,8,9"), "tensor 'a' has no two data_offsets in order"},
        {TENSOR("F32", "2", "8,0"), "tensor 'a' has no two data_offsets in order"},
        {TENSOR("F32", "4611686018427387904", "0,8"), "the shape of tensor 'a' is too large"},
        {TENSOR("F16", "2", "0,8"), "tensor 'a' has 8 bytes of data, its shape and F16 4"},
        {TENSOR("F32", "1", "4,8"), "tensor 'a' begins at 4 of the data, not at 0"},
        {TENSOR("F32", "1", "0,4"),
         "tensors of 4 bytes, but 8 bytes after the header: what they are is not said"},
        {TENSOR("F32", "3", "0,12"),
         "tensors of 12 bytes, but 8 bytes after the header: it is cut"},
        {"[]", "not a safetensors file: the header at 8 is no JSON object (but something else)"}};

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct safetensors file;
        const int code = open_made(&file, rows[i].header);
        assert_int_equal(code, rows[i].reason ? -EBADMSG : 0);
        if (rows[i].reason)
            assert_reason(rows[i].reason);
        else
            assert_int_equal(file.count, 1);
        safetensors_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(resnets), cmocka_unit_test(vggs),
                                       cmocka_unit_test(headers_that_are_wrong)};

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
