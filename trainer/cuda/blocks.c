/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/blocks.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { WINNERS_MAX = 255 };

/* A node's state while blocks are made. */
struct node {
    bool inside; /* computed by another block */
    bool kept;   /* absorbs nothing and is not absorbed */
    uint32_t relu, pool;
    uint32_t norms[2];
};

struct maker {
    const struct cuda_blocks_config *config;
    const struct graph *graph;
    struct node *nodes;
};

/* ---- which nodes form a block ---- */

/* Return the chain that begins at a node, or NULL. */
static const struct cuda_chain *chain_of(const struct maker *maker, uint32_t node)
{
    const struct cuda_chain *chains = maker->config->chains;

    return chains && chains[node].end ? &chains[node] : NULL;
}

/* Return the only consumer of a node, if it is of that kind and not kept; else CUDA_NONE. */
static uint32_t only_consumer(const struct maker *maker, uint32_t node, enum graph_kind kind)
{
    const uint32_t found = graph_only_consumer(maker->graph, node, kind);

    return found && !maker->nodes[found].kept ? found : CUDA_NONE;
}

static int look_at_graph(struct maker *maker)
{
    static const bool takes_relu[GRAPH_DROPOUT + 1] = {[GRAPH_CONVOLUTION] = true,
                                                       [GRAPH_FULLY_CONNECTED] = true,
                                                       [GRAPH_BATCH_NORM] = true,
                                                       [GRAPH_ADD] = true};
    const struct graph *graph = maker->graph;
    struct node *nodes = maker->nodes;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        const bool layer = node->kind == GRAPH_CONVOLUTION || node->kind == GRAPH_FULLY_CONNECTED;
        struct node *own = &nodes[i];
        own->relu = own->pool = own->norms[0] = own->norms[1] = CUDA_NONE;
        own->kept = maker->config->keeps_nodes;
        for (uint32_t j = 0; j < node->input_count; j++)
            if (node->inputs[j] == 0 && (!layer || node->groups > 1))
                return fail(ENOTSUP,
                            "backend cuda: %s reads the image itself; only convolutions without "
                            "groups can",
                            node->name);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct cuda_chain *chain = chain_of(maker, i);
        if (!chain)
            continue;
        const uint32_t parts[] = {chain->norm, chain->sum, chain->relu};
        nodes[i].kept = true;
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
            if (parts[j])
                nodes[parts[j]].kept = nodes[parts[j]].inside = true;
    }
    /* Let a node compute the ReLU after it, a BN also the max-pool after that if nothing else reads
     * their outputs, and a sum the BNs that only it reads. */
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        struct node *own = &nodes[i];
        if (own->kept || !takes_relu[node->kind])
            continue;
        own->relu = only_consumer(maker, i, GRAPH_RELU);
        if (own->relu != CUDA_NONE)
            nodes[own->relu].inside = true;
        if (node->kind == GRAPH_BATCH_NORM && own->relu != CUDA_NONE) {
            const uint32_t pool = only_consumer(maker, own->relu, GRAPH_MAX_POOL);
            const struct graph_window *window =
                pool == CUDA_NONE ? NULL : &graph->nodes[pool].window;
            if (window && window->height * window->width <= WINNERS_MAX) {
                own->pool = pool;
                nodes[pool].inside = true;
            }
        }
        for (uint32_t j = 0; node->kind == GRAPH_ADD && j < 2; j++) {
            const uint32_t input = node->inputs[j];
            if (only_consumer(maker, input, GRAPH_ADD) != i || nodes[input].kept ||
                graph->nodes[input].kind != GRAPH_BATCH_NORM)
                continue;
            own->norms[j] = input;
            nodes[input].inside = true;
        }
    }
    return 0;
}

/* ---- blocks ---- */

static int append_block(struct cuda_blocks *blocks, const struct cuda_block *block)
{
    int code = memory_room(&blocks->rows, blocks->count, sizeof *blocks->rows, "blocks");

    if (code == 0)
        blocks->rows[blocks->count++] = *block;
    return code;
}

static int add_block(const struct maker *maker, struct cuda_blocks *blocks, uint32_t number)
{
    static const enum cuda_block_kind kinds[] = {[GRAPH_INPUT] = CUDA_BLOCK_INPUT,
                                                 [GRAPH_CONVOLUTION] = CUDA_BLOCK_CONVOLUTION,
                                                 [GRAPH_FULLY_CONNECTED] = CUDA_BLOCK_CONVOLUTION,
                                                 [GRAPH_BATCH_NORM] = CUDA_BLOCK_SUM,
                                                 [GRAPH_RELU] = CUDA_BLOCK_SUM,
                                                 [GRAPH_ADD] = CUDA_BLOCK_SUM,
                                                 [GRAPH_MAX_POOL] = CUDA_BLOCK_POOL,
                                                 [GRAPH_AVERAGE_POOL] = CUDA_BLOCK_POOL,
                                                 [GRAPH_CONCAT] = CUDA_BLOCK_JOIN,
                                                 [GRAPH_LRN] = CUDA_BLOCK_LRN,
                                                 [GRAPH_DROPOUT] = CUDA_BLOCK_DROPOUT};
    const struct graph_node *node = &maker->graph->nodes[number];
    const struct node *own = &maker->nodes[number];
    const struct cuda_chain *chain = chain_of(maker, number);
    const bool is_stem = own->pool != CUDA_NONE;
    /* the side of a sum that passes through a BN comes first */
    const bool swapped = own->norms[0] == CUDA_NONE && own->norms[1] != CUDA_NONE;
    struct cuda_block block = {.kind = is_stem ? CUDA_BLOCK_STEM : kinds[node->kind],
                               .node = number,
                               .end = is_stem                  ? own->pool
                                      : own->relu != CUDA_NONE ? own->relu
                                                               : number,
                               .input_count = node->input_count,
                               .norms = {CUDA_NONE, CUDA_NONE},
                               .relu = own->relu != CUDA_NONE || node->kind == GRAPH_RELU,
                               .needs_gradient = node->needs_gradient};

    for (uint32_t i = 0; i < node->input_count; i++)
        block.inputs[i] = node->inputs[i];
    if (node->kind == GRAPH_BATCH_NORM)
        block.norms[0] = number;
    for (uint32_t i = 0; node->kind == GRAPH_ADD && i < 2; i++) {
        block.norms[i] = own->norms[swapped ? 1 - i : i];
        block.inputs[i] = node->inputs[swapped ? 1 - i : i];
        if (block.norms[i] != CUDA_NONE)
            block.inputs[i] = maker->graph->nodes[block.norms[i]].inputs[0];
    }
    if (chain) {
        block.kind = CUDA_BLOCK_CONVOLUTION_INT8;
        block.end = chain->end;
        block.relu = chain->relu != 0;
        assert(block.input_count == 1); /* of a convolution */
        if (chain->sum)
            block.inputs[block.input_count++] = chain->other;
    }
    for (uint32_t i = 0; i < block.input_count; i++)
        block.inputs[i] = blocks->of_node[block.inputs[i]];
    blocks->of_node[block.end] = blocks->count;
    return append_block(blocks, &block);
}

int cuda_blocks_make(struct cuda_blocks *blocks, const struct cuda_blocks_config *config)
{
    const struct graph *graph = config->graph;
    const uint32_t last = graph->node_count - 1;
    struct maker maker = {.config = config,
                          .graph = graph,
                          .nodes = memory_array(graph->node_count, sizeof *maker.nodes)};

    *blocks =
        (struct cuda_blocks){.of_node = memory_array(graph->node_count, sizeof *blocks->of_node)};
    int code = maker.nodes && blocks->of_node ? look_at_graph(&maker) : -ENOMEM;
    for (uint32_t i = 0; i < graph->node_count && code == 0; i++)
        blocks->of_node[i] = CUDA_NONE;
    for (uint32_t i = 0; i < graph->node_count && code == 0; i++) {
        if (maker.nodes[i].inside)
            continue;
        if (graph->nodes[i].kind == GRAPH_DROPOUT && !config->training)
            blocks->of_node[i] = blocks->of_node[graph->nodes[i].inputs[0]];
        else
            code = add_block(&maker, blocks, i);
    }
    if (code == 0)
        code = append_block(blocks, &(struct cuda_block){.kind = CUDA_BLOCK_HEAD,
                                                         .node = last,
                                                         .end = last,
                                                         .input_count = 1,
                                                         .inputs = {blocks->of_node[last]}});
    free(maker.nodes);
    for (uint32_t i = 0; i < blocks->count && code == 0; i++) /* count users */
        for (uint32_t j = 0; j < blocks->rows[i].input_count && code == 0; j++) {
            struct cuda_block *input = &blocks->rows[blocks->rows[i].inputs[j]];
            if (input->user_count++ == 0)
                input->first_user = i;
            input->last_user = i;
            if (input->user_count > GRAPH_INPUTS_MAX)
                code = fail(ENOTSUP, "backend cuda: more than %d layers read %s", GRAPH_INPUTS_MAX,
                            graph->nodes[input->end].name);
        }
    return code;
}

void cuda_blocks_free(struct cuda_blocks *blocks)
{
    free(blocks->rows);
    free(blocks->of_node);
    *blocks = (struct cuda_blocks){0};
}
