/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/fuse.h"

#include <errno.h>
#include <math.h>

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
    const struct dnn_plan *found = cuda_find_plan(model, node, &shape, &code);
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
    if (!fusion || own->fusion[DNN_FORWARD] || !dnn_has_device(model->dnn))
        return;
    /* Our steps read and write the output, and read what is added. */
    const struct way ways[] = {
        {fusion, 0, own->node},
        {0, (fusion & DNN_ADDED ? 3u : 2u) * cuda_numbers(model, own->node), own->node}};
    own->fusion[DNN_FORWARD] = choose_way(fuser, convolution, DNN_FORWARD, ways, 2);
    if (own->fusion[DNN_FORWARD] & DNN_SCALED)
        fuser->blocks->rows[own->last_user].output = CUDA_OUTPUT_BY_INPUT;
}

int cuda_fuse(struct cuda_blocks *blocks, struct cuda_model *model, uint32_t images, bool training)
{
    struct fuser fuser = {.blocks = blocks, .model = model, .images = images, .training = training};

    if (!model->dnn || model->settings->fusion == CUDA_FUSE_NONE || model->config.calibration)
        return 0;
    for (uint32_t i = 0; i < blocks->count && !fuser.code; i++) {
        const struct graph_node *node = &model->graph->nodes[blocks->rows[i].node];
        if (blocks->rows[i].kind != CUDA_BLOCK_CONVOLUTION)
            continue;
        if (training && node->kind == GRAPH_CONVOLUTION && node->groups == 1) {
            fuse_input_and_output(&fuser, i);
            fuse_back(&fuser, i);
        }
        if (node->groups == 1)
            fuse_epilogue(&fuser, i);
    }
    return fuser.code;
}

/* ---- tensors ---- */

void cuda_fused_rows(const struct cuda_model *model, uint32_t fusion, const uint32_t before[2],
                     uint32_t after, struct dnn_tensors *tensors)
{
    static const struct {
        enum dnn_fusion fusion;
        enum dnn_tensor which;
        uint32_t row;
        bool after;
    } rows[] = {{DNN_PROLOGUE, DNN_IN_SCALE, CUDA_TYPED_SCALE, false},
                {DNN_PROLOGUE, DNN_IN_BIAS, CUDA_TYPED_BIAS, false},
                {DNN_STATISTICS, DNN_SUMS, CUDA_SUMS, true},
                {DNN_STATISTICS, DNN_SQUARES, CUDA_SQUARES, true},
                {DNN_SCALED, DNN_SCALE, CUDA_SCALE, true},
                {DNN_SCALED, DNN_BIAS, CUDA_BIAS, true},
                {DNN_NORM, DNN_MEAN, CUDA_MEAN, false},
                {DNN_NORM, DNN_INVERSE, CUDA_INVERSE, false},
                {DNN_NORM, DNN_GAMMA, CUDA_GAMMA, false},
                {DNN_NORM, DNN_BETA, CUDA_BETA, false},
                {DNN_NORM, DNN_D_GAMMA, CUDA_D_GAMMA, false},
                {DNN_NORM, DNN_D_BETA, CUDA_D_BETA, false},
                {DNN_NORM, DNN_A, CUDA_ABC, false},
                {DNN_NORM, DNN_B, CUDA_ABC + 1, false},
                {DNN_NORM, DNN_C, CUDA_ABC + 2, false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const enum cuda_norm_row row = (enum cuda_norm_row)rows[i].row;
        if (!(fusion & rows[i].fusion))
            continue;
        tensors->at[rows[i].which] = cuda_norm_row(model, rows[i].after ? after : before[0], row);
        if (fusion & DNN_DUAL && !rows[i].after)
            tensors->at[dnn_beside(rows[i].which)] = cuda_norm_row(model, before[1], row);
    }
}
