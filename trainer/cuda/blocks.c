/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/blocks.h"

#include "base/fail.h"
#include "base/memory.h"

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

static void absorb_chain(struct maker *maker, uint32_t node)
{
    const struct cuda_chain *chain = chain_of(maker, node);
    const uint32_t parts[] = {chain->norm, chain->sum, chain->relu};

    maker->nodes[node].kept = true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i])
            maker->nodes[parts[i]].kept = maker->nodes[parts[i]].inside = true;
}

/* Return the only consumer of a node, if it is of that kind and not kept; else CUDA_NO_NODE. */
static uint32_t only_consumer(const struct maker *maker, uint32_t node, enum graph_kind kind)
{
    const uint32_t found = graph_only_consumer(maker->graph, node, kind);

    return found && !maker->nodes[found].kept ? found : CUDA_NO_NODE;
}

static void absorb_relu(struct maker *maker, uint32_t node)
{
    const uint32_t relu = only_consumer(maker, node, GRAPH_RELU);

    maker->nodes[node].relu = relu;
    if (relu != CUDA_NO_NODE)
        maker->nodes[relu].inside = true;
}

/* Absorb a max-pool after BN and ReLU, if nothing else reads their outputs. */
static void absorb_pool(struct maker *maker, uint32_t norm)
{
    const uint32_t relu = maker->nodes[norm].relu;
    const uint32_t pool =
        relu == CUDA_NO_NODE ? CUDA_NO_NODE : only_consumer(maker, relu, GRAPH_MAX_POOL);

    if (pool == CUDA_NO_NODE)
        return;
    const struct graph_window *window = &maker->graph->nodes[pool].window;
    if (window->height * window->width > WINNERS_MAX)
        return;
    maker->nodes[norm].pool = pool;
    maker->nodes[pool].inside = true;
}

/* Absorb BNs that only the sum reads. */
static void absorb_norms(struct maker *maker, uint32_t sum)
{
    const uint32_t *inputs = maker->graph->nodes[sum].inputs;

    for (uint32_t i = 0; i < 2; i++) {
        if (only_consumer(maker, inputs[i], GRAPH_ADD) != sum || maker->nodes[inputs[i]].kept ||
            maker->graph->nodes[inputs[i]].kind != GRAPH_BATCH_NORM)
            continue;
        maker->nodes[sum].norms[i] = inputs[i];
        maker->nodes[inputs[i]].inside = true;
    }
}

static void absorb(struct maker *maker, uint32_t node)
{
    static const bool takes_relu[GRAPH_DROPOUT + 1] = {[GRAPH_CONVOLUTION] = true,
                                                       [GRAPH_FULLY_CONNECTED] = true,
                                                       [GRAPH_BATCH_NORM] = true,
                                                       [GRAPH_ADD] = true};
    const enum graph_kind kind = maker->graph->nodes[node].kind;

    if (maker->nodes[node].kept || !takes_relu[kind])
        return;
    absorb_relu(maker, node);
    if (kind == GRAPH_BATCH_NORM)
        absorb_pool(maker, node);
    if (kind == GRAPH_ADD)
        absorb_norms(maker, node);
}

static int look_at_graph(struct maker *maker)
{
    const struct graph *graph = maker->graph;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        const bool layer = node->kind == GRAPH_CONVOLUTION || node->kind == GRAPH_FULLY_CONNECTED;
        struct node *own = &maker->nodes[i];
        own->relu = own->pool = own->norms[0] = own->norms[1] = CUDA_NO_NODE;
        own->kept = maker->config->keeps_nodes;
        for (uint32_t j = 0; j < node->input_count; j++)
            if (node->inputs[j] == 0 && (!layer || node->groups > 1))
                return fail(ENOTSUP,
                            "backend cuda: %s reads the image itself; only convolutions without "
                            "groups can",
                            node->name);
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (chain_of(maker, i))
            absorb_chain(maker, i);
    for (uint32_t i = 0; i < graph->node_count; i++)
        absorb(maker, i);
    return 0;
}

/* ---- blocks ---- */

static int append(struct cuda_blocks *blocks, const struct cuda_block *block)
{
    int code = memory_room(&blocks->rows, blocks->count, sizeof *blocks->rows, "blocks");

    if (code == 0)
        blocks->rows[blocks->count++] = *block;
    return code;
}

static enum cuda_block_kind kind_of(const struct maker *maker, uint32_t node)
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

    return maker->nodes[node].pool != CUDA_NO_NODE ? CUDA_BLOCK_STEM
                                                   : kinds[maker->graph->nodes[node].kind];
}

/* The side of a sum that passes through a BN comes first. */
static void set_sides(const struct maker *maker, uint32_t node, struct cuda_block *block)
{
    const struct graph_node *row = &maker->graph->nodes[node];
    const struct node *own = &maker->nodes[node];
    const bool swapped = own->norms[0] == CUDA_NO_NODE && own->norms[1] != CUDA_NO_NODE;

    for (uint32_t i = 0; i < row->input_count && i < 2; i++) {
        block->norms[i] = row->kind == GRAPH_BATCH_NORM ? node : own->norms[swapped ? 1 - i : i];
        block->inputs[i] = row->inputs[swapped ? 1 - i : i];
        if (row->kind != GRAPH_BATCH_NORM && block->norms[i] != CUDA_NO_NODE)
            block->inputs[i] = maker->graph->nodes[block->norms[i]].inputs[0];
    }
}

static int add_block(const struct maker *maker, struct cuda_blocks *blocks, uint32_t node)
{
    const struct graph_node *row = &maker->graph->nodes[node];
    const struct node *own = &maker->nodes[node];
    struct cuda_block block = {.kind = kind_of(maker, node),
                               .node = node,
                               .end = own->pool != CUDA_NO_NODE   ? own->pool
                                      : own->relu != CUDA_NO_NODE ? own->relu
                                                                  : node,
                               .input_count = row->input_count,
                               .norms = {CUDA_NO_NODE, CUDA_NO_NODE},
                               .relu = own->relu != CUDA_NO_NODE || row->kind == GRAPH_RELU,
                               .needs_gradient = row->needs_gradient};

    for (uint32_t i = 0; i < row->input_count; i++)
        block.inputs[i] = row->inputs[i];
    if (block.kind == CUDA_BLOCK_SUM || block.kind == CUDA_BLOCK_STEM)
        set_sides(maker, node, &block);
    const struct cuda_chain *chain = chain_of(maker, node);
    if (chain) {
        block.kind = CUDA_BLOCK_CONVOLUTION_INT8;
        block.end = chain->end;
        block.relu = chain->relu != 0;
        if (chain->sum)
            block.inputs[block.input_count++] = chain->other;
    }
    for (uint32_t i = 0; i < block.input_count; i++)
        block.inputs[i] = blocks->of_node[block.inputs[i]];
    blocks->of_node[block.end] = blocks->count;
    return append(blocks, &block);
}

static int add_head(const struct maker *maker, struct cuda_blocks *blocks)
{
    const uint32_t last = maker->graph->node_count - 1;

    return append(blocks, &(struct cuda_block){.kind = CUDA_BLOCK_HEAD,
                                               .node = last,
                                               .end = last,
                                               .input_count = 1,
                                               .inputs = {blocks->of_node[last]}});
}

static int make_blocks(const struct maker *maker, struct cuda_blocks *blocks)
{
    const struct graph *graph = maker->graph;
    int code = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        blocks->of_node[i] = CUDA_NO_NODE;
    for (uint32_t i = 0; i < graph->node_count && code == 0; i++) {
        if (maker->nodes[i].inside)
            continue;
        if (graph->nodes[i].kind == GRAPH_DROPOUT && !maker->config->training)
            blocks->of_node[i] = blocks->of_node[graph->nodes[i].inputs[0]];
        else
            code = add_block(maker, blocks, i);
    }
    return code ? code : add_head(maker, blocks);
}

/* Count users. */
static int count_users(struct cuda_blocks *blocks, const struct graph *graph)
{
    for (uint32_t i = 0; i < blocks->count; i++)
        for (uint32_t j = 0; j < blocks->rows[i].input_count; j++) {
            struct cuda_block *input = &blocks->rows[blocks->rows[i].inputs[j]];
            if (input->user_count++ == 0)
                input->first_user = i;
            input->last_user = i;
            if (input->user_count > GRAPH_INPUTS_MAX)
                return fail(ENOTSUP, "backend cuda: more than %d layers read %s", GRAPH_INPUTS_MAX,
                            graph->nodes[input->end].name);
        }
    return 0;
}

int cuda_blocks_make(struct cuda_blocks *blocks, const struct cuda_blocks_config *config)
{
    const struct graph *graph = config->graph;
    struct maker maker = {.config = config,
                          .graph = graph,
                          .nodes = memory_array(graph->node_count, sizeof *maker.nodes)};

    *blocks =
        (struct cuda_blocks){.of_node = memory_array(graph->node_count, sizeof *blocks->of_node)};
    int code = maker.nodes && blocks->of_node ? look_at_graph(&maker) : -ENOMEM;
    if (code == 0)
        code = make_blocks(&maker, blocks);
    free(maker.nodes);
    return code ? code : count_users(blocks, graph);
}

void cuda_blocks_free(struct cuda_blocks *blocks)
{
    free(blocks->rows);
    free(blocks->of_node);
    *blocks = (struct cuda_blocks){0};
}
