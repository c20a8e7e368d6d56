/* SPDX-License-Identifier: Apache-2.0
 * Names of layers in torchvision's models, a saved page; headers of weights that are wrong. */
#include "tests/unit/folder.h"
#include "tests/unit/golden.h"

#include "base/bytes.h"
#include "trainer/graph.h"
#include "trainer/weights.h"

#include <errno.h>

static void names_of_layers(void **unused)
{
    golden_begin();
    for (const struct network *const *network = network_registry; *network; network++) {
        struct graph *graph = network_build(*network, (*network)->side, (*network)->classes);
        fprintf(golden, "%s%s\n", (*network)->name, (*network)->torchvision_name ? "" : ": none");
        for (uint32_t i = 1; i < graph->node_count && (*network)->torchvision_name; i++) {
            const struct graph_node *node = &graph->nodes[i];
            char theirs[GRAPH_NAME_BYTES] = "";
            if (node->kind != GRAPH_CONVOLUTION && node->kind != GRAPH_BATCH_NORM &&
                node->kind != GRAPH_FULLY_CONNECTED)
                continue;
            (*network)->torchvision_name(*network, node->name, theirs);
            fprintf(golden, "  %s: %s\n", node->name, theirs);
        }
        graph_destroy(graph);
    }
    golden_end("torchvision-names.txt");
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
        {TENSOR("F33", "2", "0,8"), "tensor 'a' has no known dtype"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "tensor 'a' has no known dtype"},
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

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_of_layers),
                                       cmocka_unit_test(headers_that_are_wrong)};

    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
