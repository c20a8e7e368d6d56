/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/blocks.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
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
    const struct cuda_model *model;
    const struct graph *graph;
    struct node *nodes;
};

/* ---- which nodes form a block ---- */

/* Return the chain that begins at a node, or NULL. */
static const struct cuda_chain *chain_at(const struct maker *maker, uint32_t node)
{
    const struct cuda_chain *chains = maker->model->chains;

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
        own->kept = maker->model->config.calibration != NULL; /* each is observed */
        for (uint32_t j = 0; j < node->input_count; j++)
            if (node->inputs[j] == 0 && (!layer || node->window.groups > 1))
                return fail(ENOTSUP,
                            "backend cuda: %s reads the image itself; only convolutions without "
                            "groups can",
                            node->name);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct cuda_chain *chain = chain_at(maker, i);
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
            const struct kernel_window *window =
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
    const struct cuda_chain *chain = chain_at(maker, number);
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

struct fuser {
    struct cuda_blocks *blocks;
    struct cuda_model *model;
    uint32_t images;
    bool training;
    int code;
};

/* ---- what may be fused ---- */

/* cuDNN reads 16 bytes at once. */
static bool fits(const struct fuser *fuser, uint32_t norm)
{
    return fuser->model->graph->nodes[norm].shape.channels % 8 == 0;
}

uint32_t cuda_norm_after(const struct cuda_blocks *blocks, const struct cuda_block *own)
{
    const struct cuda_block *user = &blocks->rows[own->last_user];

    if (own->user_count != 1 || own->relu ||
        (user->kind != CUDA_BLOCK_SUM && user->kind != CUDA_BLOCK_STEM))
        return CUDA_NONE;
    return user->norms[&blocks->rows[user->inputs[0]] == own ? 0 : 1];
}

/* Return the BN that uses the sums of this convolution's output. */
static uint32_t norm_after(const struct fuser *fuser, uint32_t convolution)
{
    const struct cuda_block *own = &fuser->blocks->rows[convolution];
    const uint32_t norm = cuda_norm_after(fuser->blocks, own);

    if (norm == CUDA_NONE || fuser->model->graph->nodes[own->node].bias != CUDA_NONE ||
        !fits(fuser, norm))
        return CUDA_NONE;
    return norm;
}

static struct cuda_block *input_of(const struct fuser *fuser, uint32_t convolution)
{
    return &fuser->blocks->rows[fuser->blocks->rows[convolution].inputs[0]];
}

/* Return whether the convolution reads the ReLU of a BN, or of a sum that applies one or two. */
static bool takes_norm(const struct fuser *fuser, uint32_t convolution)
{
    const struct cuda_block *before = input_of(fuser, convolution);

    return before->kind == CUDA_BLOCK_SUM && before->relu && before->norms[0] != CUDA_NONE &&
           fits(fuser, before->norms[0]) &&
           (before->norms[1] == CUDA_NONE || fits(fuser, before->norms[1]));
}

/* Return what else the ReLU before the convolution reads. */
static uint32_t before_relu(const struct cuda_block *before)
{
    return before->input_count == 1        ? 0
           : before->norms[1] == CUDA_NONE ? DNN_SUMMED
                                           : DNN_SUMMED | DNN_DUAL;
}

/* ---- which fusions pay ---- */

/* A way to compute a convolution: by one fusion, or none, with steps of our own that read and write
 * so many numbers of an image besides. */
struct way {
    uint32_t fusion;
    uint64_t passes;
    uint32_t saved; /* node whose output a pass less reads or writes */
};

/* Share of the memory's peak rate that our steps reach: 0.82 to 0.91 on an H100. */
static const double passes_share = 0.85;

/* NULL: no engine. */
static const struct dnn_plan *plan_of(struct fuser *fuser, uint32_t convolution, enum dnn_kind kind,
                                      uint32_t fusion)
{
    struct cuda_model *model = fuser->model;
    const uint32_t node = fuser->blocks->rows[convolution].node;
    const struct dnn_shape shape = cuda_shape(model, fuser->images, node, kind, fusion);
    int code = 0;

    if (fuser->code)
        return NULL;
    const struct dnn_plan *found = cuda_find_plan(model, node, NULL, &shape, &code);
    if (!found && code != -ENOTSUP)
        fuser->code = code;
    return found;
}

/* The weight gradient applies BN and ReLU again; a sum was stored. */
static uint32_t weight_fusion(uint32_t fusion)
{
    return fusion & DNN_SUMMED ? 0 : fusion & DNN_PROLOGUE;
}

/* The forward pass shares its input with the weight gradient. */
static bool has_weight_gradient(const struct fuser *fuser, enum dnn_kind kind)
{
    return fuser->training && kind == DNN_FORWARD;
}

/* Return how long a way takes; INFINITY if there is no engine for it, 0 if one was not timed. */
static double way_ms(struct fuser *fuser, uint32_t convolution, enum dnn_kind kind,
                     const struct way *way)
{
    const struct dnn_plan *plan = plan_of(fuser, convolution, kind, way->fusion);
    const struct dnn_plan *weight =
        has_weight_gradient(fuser, kind) && plan
            ? plan_of(fuser, convolution, DNN_WEIGHT, weight_fusion(way->fusion))
            : plan;
    if (!plan || !weight)
        return INFINITY;
    if (plan->milliseconds <= 0 || weight->milliseconds <= 0 ||
        fuser->model->runtime.memory_rate <= 0)
        return 0;
    const uint64_t bytes = way->passes * fuser->images * device_type_bytes(fuser->model->type);
    return plan->milliseconds + (weight == plan ? 0 : weight->milliseconds) +
           (double)bytes / (passes_share * fuser->model->runtime.memory_rate);
}

/* An engine whose workspace is as large as the tensor moves as much through memory as it saves. */
static bool saves(struct fuser *fuser, uint32_t convolution, enum dnn_kind kind, uint32_t fusion,
                  uint32_t saved)
{
    const struct cuda_model *model = fuser->model;
    const struct dnn_plan *plan = plan_of(fuser, convolution, kind, fusion);

    return plan && plan->workspace_bytes <
                       fuser->images * cuda_numbers(model, saved) * device_type_bytes(model->type);
}

/* Return the first fusion that has engines, and unless all are wanted, saves memory traffic. */
static uint32_t choose_by_rule(struct fuser *fuser, uint32_t convolution, enum dnn_kind kind,
                               const struct way *ways, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t fusion = ways[i].fusion, saved = ways[i].saved;
        const uint32_t weight = has_weight_gradient(fuser, kind) ? weight_fusion(fusion) : 0;
        if (fusion && isfinite(way_ms(fuser, convolution, kind, &ways[i])) &&
            (fuser->model->settings->fusion == CUDA_FUSE_ALL ||
             (saves(fuser, convolution, kind, fusion, saved) &&
              (!weight || saves(fuser, convolution, DNN_WEIGHT, weight, saved)))))
            return fusion;
    }
    return 0;
}

/* Return the fusion of the fastest of these ways, of which the last fuses nothing; by rule where
 * one was not timed. */
static uint32_t choose_way(struct fuser *fuser, uint32_t convolution, enum dnn_kind kind,
                           const struct way *ways, size_t count)
{
    double best_ms = INFINITY;
    uint32_t best = 0;

    if (fuser->model->settings->fusion == CUDA_FUSE_ALL)
        return choose_by_rule(fuser, convolution, kind, ways, count);
    for (size_t i = 0; i < count; i++) {
        const double ms = way_ms(fuser, convolution, kind, &ways[i]);
        if (ms <= 0)
            return choose_by_rule(fuser, convolution, kind, ways, count);
        if (ms < best_ms) {
            best_ms = ms;
            best = ways[i].fusion;
        }
    }
    return best;
}

/* Output and weight gradient, which share their input. */
static void fuse_input_and_output(struct fuser *fuser, uint32_t convolution)
{
    const struct cuda_model *model = fuser->model;
    struct cuda_block *own = &fuser->blocks->rows[convolution];
    struct cuda_block *input = input_of(fuser, convolution);
    /* BN and ReLU, whose output nothing else reads; or a sum, whose output the convolution stores
     * before anything else reads it. */
    const uint32_t sum = before_relu(input);
    const bool can = takes_norm(fuser, convolution) &&
                     (sum ? input->first_user == convolution : input->user_count == 1);
    const uint32_t before = can ? DNN_PROLOGUE | sum : 0;
    const uint32_t statistics =
        norm_after(fuser, convolution) != CUDA_NONE ? (uint32_t)DNN_STATISTICS : 0;
    /* Our steps read the output for its sums; and BN, ReLU read and write the input, or read both
     * sides of a sum and write it. */
    const uint64_t sums = statistics ? cuda_numbers(model, own->node) : 0;
    const uint64_t norm =
        before ? cuda_numbers(model, input->end) * (before & DNN_SUMMED ? 3u : 2u) : 0;
    const struct way ways[] = {{before | statistics, 0, before ? input->end : own->node},
                               {statistics, norm, own->node},
                               {before, sums, input->end},
                               {0, sums + norm, own->node}};
    const uint32_t fusion = choose_way(fuser, convolution, DNN_FORWARD, ways, 4);

    own->fusion[DNN_FORWARD] = fusion;
    own->fusion[DNN_WEIGHT] = weight_fusion(fusion);
    if (fusion & DNN_PROLOGUE)
        input->output = fusion & DNN_SUMMED ? CUDA_OUTPUT_BY_USER : CUDA_OUTPUT_RECOMPUTED;
}

/* Without it our steps read the gradient, a second one if there is, and the input of the BN for
 * sums; before a sum or with a second gradient they write dz; a second BN reads that and its input.
 */
static void fuse_back(struct fuser *fuser, uint32_t convolution)
{
    const struct cuda_block *before = input_of(fuser, convolution);
    const bool can = takes_norm(fuser, convolution) && before->user_count <= 2 &&
                     before->first_user == convolution;
    const uint32_t fusion =
        can ? DNN_NORM | (before->user_count > 1 ? (uint32_t)DNN_ADDED : 0) | before_relu(before)
            : 0;
    const uint32_t saved = before->end;
    const uint64_t tensors = 2u + (fusion & DNN_ADDED ? 1u : 0) +
                             (fusion & (DNN_ADDED | DNN_SUMMED) ? 1u : 0) +
                             (fusion & DNN_DUAL ? 2u : 0);
    const struct way ways[] = {{fusion, 0, saved},
                               {0, tensors * cuda_numbers(fuser->model, saved), saved}};

    if (fusion)
        fuser->blocks->rows[convolution].fusion[DNN_DATA] =
            choose_way(fuser, convolution, DNN_DATA, ways, 2);
}

/* ---- operations that follow, if BN is two numbers per channel ---- */

/* A bias and ReLU; or BN in inference, the sum that applies it if its other side is computed by
 * then, and ReLU. */
static void fuse_epilogue(struct fuser *fuser, uint32_t convolution)
{
    const struct cuda_model *model = fuser->model;
    struct cuda_block *own = &fuser->blocks->rows[convolution];
    const struct cuda_block *user = &fuser->blocks->rows[own->last_user];
    const uint32_t bias = model->graph->nodes[own->node].bias;
    uint32_t fusion = own->relu ? (uint32_t)DNN_RECTIFIED : 0;

    if (bias != CUDA_NONE)
        fusion = (uintptr_t)cuda_parameter(model, bias) % 16 ? 0 : fusion | DNN_BIASED;
    if (!fusion && !fuser->training && norm_after(fuser, convolution) != CUDA_NONE &&
        user->kind == CUDA_BLOCK_SUM) {
        const bool adds = user->input_count > 1;
        if (!adds || (user->norms[1] == CUDA_NONE && user->inputs[1] <= convolution))
            fusion = DNN_SCALED | DNN_BIASED | (adds ? (uint32_t)DNN_ADDED : 0) |
                     (user->relu ? (uint32_t)DNN_RECTIFIED : 0);
    }
    /* Engines for these are compiled on request, which requires a device. */
    if (!fusion || own->fusion[DNN_FORWARD] || model->outlined)
        return;
    /* Our steps read and write the output, and read what is added. */
    const struct way ways[] = {
        {fusion, 0, own->node},
        {0, (fusion & DNN_ADDED ? 3u : 2u) * cuda_numbers(model, own->node), own->node}};
    own->fusion[DNN_FORWARD] = choose_way(fuser, convolution, DNN_FORWARD, ways, 2);
    if (own->fusion[DNN_FORWARD] & DNN_SCALED)
        fuser->blocks->rows[own->last_user].output = CUDA_OUTPUT_BY_INPUT;
}

static int fuse_blocks(struct cuda_blocks *blocks, struct cuda_model *model, uint32_t images,
                       bool training)
{
    struct fuser fuser = {.blocks = blocks, .model = model, .images = images, .training = training};

    if (!model->dnn || model->settings->fusion == CUDA_FUSE_NONE || model->config.calibration)
        return 0;
    for (uint32_t i = 0; i < blocks->count && !fuser.code; i++) {
        const struct graph_node *node = &model->graph->nodes[blocks->rows[i].node];
        if (blocks->rows[i].kind != CUDA_BLOCK_CONVOLUTION)
            continue;
        if (training && node->kind == GRAPH_CONVOLUTION && node->window.groups == 1) {
            fuse_input_and_output(&fuser, i);
            fuse_back(&fuser, i);
        }
        if (node->window.groups == 1)
            fuse_epilogue(&fuser, i);
    }
    return fuser.code;
}

/* ---- the blocks of a graph ---- */

int cuda_blocks_make(struct cuda_blocks *blocks, struct cuda_model *model, uint32_t images,
                     bool training)
{
    const struct graph *graph = model->graph;
    const uint32_t last = graph->node_count - 1;
    struct maker maker = {.model = model,
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
        if (graph->nodes[i].kind == GRAPH_DROPOUT && !training)
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
    return code ? code : fuse_blocks(blocks, model, images, training);
}

void cuda_blocks_free(struct cuda_blocks *blocks)
{
    free(blocks->rows);
    free(blocks->of_node);
    *blocks = (struct cuda_blocks){0};
}
