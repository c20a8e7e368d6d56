/* SPDX-License-Identifier: Apache-2.0
 *
 * Which convolutions compute what stands around them.
 *
 * Between two convolutions stand BN and ReLU, perhaps a sum. Alone they read and write whole
 * tensors, and that is most of what a step waits for. A convolution can
 *   - leave the sums that the BN behind it takes (statistics),
 *   - apply BN and ReLU to its input while it reads it, in both passes; then what lies between is
 *     never stored (prologue). Or a sum of one or two BNs and ReLU, which it stores for those who
 *     come later: the other side of the next block, and the way back,
 *   - on the way back go through the ReLU before it, and leave the sums of the gradients of the BN
 *     before that (norm), or of the two that meet in a sum, with a second gradient added.
 * In inference, where BN is a scale and a bias per channel, a convolution can apply the BN after
 * it, and a sum and ReLU after that; one with a bias can add it and apply ReLU, in training too.
 *
 * The choice is a rule, not a measurement: fuse as much as cuDNN has an engine for, unless the
 * engine's workspace undoes what the fusion saves.
 */
#include "trainer/cuda/cuda.h"

#include <errno.h>
#include <stddef.h>

/* ---- what may be fused ---- */

static const struct graph_node *row_of(const struct cuda_plan *plan, uint32_t node)
{
    return &plan->model->graph->nodes[node];
}

/* cuDNN reads 16 bytes at once. */
static bool fits(const struct cuda_plan *plan, uint32_t norm)
{
    return row_of(plan, norm)->shape.channels % 8 == 0 &&
           (uintptr_t)cuda_norm_row(plan->model, norm, CUDA_MEAN) % 16 == 0;
}

/* The BN that takes the sums of this convolution's output. */
static uint32_t norm_behind(const struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];

    if (own->consumers != 1 || row_of(plan, node)->bias != CUDA_NONE ||
        row_of(plan, own->consumer)->kind != GRAPH_BATCH_NORM || !fits(plan, own->consumer))
        return CUDA_NONE;
    return own->consumer;
}

/* The first node that takes the output of `node`; its gradient is the last to come. */
static uint32_t first_consumer(const struct cuda_plan *plan, uint32_t node)
{
    for (uint32_t i = node + 1; i < plan->model->graph->node_count; i++)
        for (uint32_t j = 0; j < row_of(plan, i)->input_count; j++)
            if (row_of(plan, i)->inputs[j] == node)
                return i;
    return CUDA_NONE;
}

/* What ends with the ReLU that the convolution takes: a BN, or a sum that applies one or two; and
 * that BN. */
static void look_before(struct cuda_plan *plan, uint32_t node)
{
    struct cuda_node *own = &plan->nodes[node];
    const uint32_t relu = row_of(plan, node)->inputs[0];

    if (row_of(plan, relu)->kind != GRAPH_RELU || !plan->nodes[relu].absorbed)
        return;
    const uint32_t end = row_of(plan, relu)->inputs[0];
    const struct cuda_node *before = &plan->nodes[end];
    const uint32_t norm = row_of(plan, end)->kind == GRAPH_BATCH_NORM ? end : before->norm;

    if (before->relu != relu || norm == CUDA_NONE || !fits(plan, norm) ||
        (before->norm_other != CUDA_NONE && !fits(plan, before->norm_other)))
        return;
    own->end_before = end;
    own->norm_before = norm;
}

/* What the ReLU before the convolution takes. */
static uint32_t before_relu(const struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];

    return own->norm_before == own->end_before                    ? 0
           : plan->nodes[own->end_before].norm_other == CUDA_NONE ? DNN_SUMMED
                                                                  : DNN_SUMMED | DNN_DUAL;
}

/* What the convolution can apply to its input; 0: nothing. BN and ReLU, whose output nobody else
 * looks at; or a sum's, whose output it stores before anybody else does. */
static uint32_t prologue(const struct cuda_plan *plan, uint32_t node)
{
    const uint32_t input = row_of(plan, node)->inputs[0];

    if (plan->nodes[node].norm_before == CUDA_NONE)
        return 0;
    const uint32_t sum = before_relu(plan, node);
    const bool can = sum ? first_consumer(plan, input) == node : plan->nodes[input].consumers == 1;
    return can ? DNN_PROLOGUE | sum : 0;
}

/* What the way back of the convolution can go through; 0: nothing. */
static uint32_t back_fusion(const struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];
    const uint32_t input = row_of(plan, node)->inputs[0];
    const uint32_t consumers = plan->nodes[input].consumers;

    if (own->norm_before == CUDA_NONE || consumers > 2 || first_consumer(plan, input) != node)
        return 0;
    return DNN_NORM | (consumers > 1 ? (uint32_t)DNN_ADDED : 0) | before_relu(plan, node);
}

/* ---- which fusions pay ---- */

/* Whether the convolution is computed with this fusion, which saves one pass over the output of
 * `saved`. An engine whose workspace is as large as that tensor moves as much through memory as it
 * saves: by default it is not used. */
static bool pays(struct cuda_plan *plan, uint32_t node, enum dnn_kind kind, uint32_t fusion,
                 uint32_t saved)
{
    const struct cuda_model *model = plan->model;
    struct dnn_shape shape = cuda_shape(plan, node, kind);
    int code = 0;

    if (plan->code)
        return false;
    shape.fusion = fusion;
    const struct dnn_plan *found = dnn_find(model->dnn, &shape, &code);
    if (!found && code != -ENOTSUP)
        cuda_keep_code(plan, code);
    return found && (model->settings->fusion == CUDA_FUSE_ALL ||
                     dnn_workspace_bytes(found) <
                         plan->count * cuda_numbers(model, saved) * device_type_bytes(model->type));
}

/* The weight gradient applies BN and ReLU again; a sum was stored. */
static uint32_t weight_fusion(uint32_t fusion)
{
    return fusion & DNN_SUMMED ? 0 : fusion & DNN_PROLOGUE;
}

/* Output and weight gradient, which share their input. */
static void fuse_input_and_output(struct cuda_plan *plan, uint32_t node)
{
    struct cuda_node *own = &plan->nodes[node];
    const uint32_t behind = norm_behind(plan, node), before = prologue(plan, node);
    const uint32_t input = row_of(plan, node)->inputs[0];
    const uint32_t statistics = behind != CUDA_NONE ? (uint32_t)DNN_STATISTICS : 0;
    const uint32_t ways[] = {before | statistics, statistics, before}; /* the best one first */
    uint32_t fusion = 0;

    for (size_t i = 0; i < sizeof ways / sizeof *ways && !fusion; i++) {
        const uint32_t weight = weight_fusion(ways[i]);
        if (ways[i] &&
            pays(plan, node, DNN_FORWARD, ways[i], ways[i] & DNN_PROLOGUE ? input : node) &&
            (!weight || pays(plan, node, DNN_WEIGHT, weight, input)))
            fusion = ways[i];
    }
    own->fusion[DNN_FORWARD] = fusion;
    own->fusion[DNN_WEIGHT] = weight_fusion(fusion);
    if (fusion & DNN_STATISTICS)
        plan->nodes[behind].counted = true;
    if (fusion & DNN_SUMMED)
        plan->nodes[own->end_before].applied = true;
    else if (fusion & DNN_PROLOGUE)
        plan->nodes[own->norm_before].unstored = true;
}

/* The gradient of its input. */
static void fuse_back(struct cuda_plan *plan, uint32_t node)
{
    const uint32_t fusion = back_fusion(plan, node);

    if (fusion && pays(plan, node, DNN_DATA, fusion, row_of(plan, node)->inputs[0]))
        plan->nodes[node].fusion[DNN_DATA] = fusion;
}

/* ---- what is behind, where BN is two numbers a channel ---- */

/* A bias and the ReLU behind it. */
static uint32_t own_epilogue(const struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_model *model = plan->model;
    const uint32_t bias = row_of(plan, node)->bias;
    uint32_t fusion = plan->nodes[node].relu != CUDA_NONE ? (uint32_t)DNN_RECTIFIED : 0;

    if (bias == CUDA_NONE)
        return fusion;
    if ((uintptr_t)(model->parameters + model->graph->parameters[bias].offset) % 16)
        return 0;
    return fusion | DNN_BIASED;
}

/* BN that is inferred, the sum that applies it if its other side is there by then, and ReLU. *end:
 * what it ends with. */
static uint32_t norm_epilogue(const struct cuda_plan *plan, uint32_t node, uint32_t *end)
{
    const uint32_t norm = norm_behind(plan, node);
    uint32_t fusion = DNN_SCALED | DNN_BIASED;

    if (norm == CUDA_NONE || plan->training || plan->nodes[norm].pool != CUDA_NONE)
        return 0;
    *end = norm;
    if (plan->nodes[norm].absorbed) {
        *end = plan->nodes[norm].consumer;
        const uint32_t *inputs = row_of(plan, *end)->inputs;
        const uint32_t other = inputs[inputs[0] == norm ? 1 : 0];
        if (plan->nodes[*end].norm_other != CUDA_NONE || other > node)
            return 0;
        fusion |= DNN_ADDED;
    }
    return fusion | (plan->nodes[*end].relu != CUDA_NONE ? (uint32_t)DNN_RECTIFIED : 0);
}

static void fuse_epilogue(struct cuda_plan *plan, uint32_t node)
{
    uint32_t end = node, fusion = own_epilogue(plan, node);

    if (!fusion)
        fusion = norm_epilogue(plan, node, &end);
    /* Engines for these are compiled when they are asked for, which takes a device. */
    if (fusion && !plan->nodes[node].fusion[DNN_FORWARD] && dnn_has_device(plan->model->dnn) &&
        pays(plan, node, DNN_FORWARD, fusion, end))
        plan->nodes[node].fusion[DNN_FORWARD] = fusion;
}

static void fuse_training(struct cuda_plan *plan, uint32_t node)
{
    look_before(plan, node);
    fuse_input_and_output(plan, node);
    fuse_back(plan, node);
}

void cuda_fuse(struct cuda_plan *plan)
{
    const struct cuda_model *model = plan->model;

    if (!model->dnn || model->settings->fusion == CUDA_FUSE_NONE || model->site.calibration)
        return;
    for (uint32_t i = 1; i < model->graph->node_count && !plan->code; i++) {
        const struct graph_node *node = &model->graph->nodes[i];
        const bool is_convolution = node->kind == GRAPH_CONVOLUTION && node->groups == 1;
        if (plan->nodes[i].chained) /* INT8 has forms of its own */
            continue;
        if (plan->training && is_convolution)
            fuse_training(plan, i);
        if (is_convolution || node->kind == GRAPH_FULLY_CONNECTED)
            fuse_epilogue(plan, i);
    }
}

/* ---- running ---- */

void cuda_add_tensors(const struct cuda_plan *plan, const struct cuda_step *step,
                      struct dnn_tensors *tensors)
{
    static const struct {
        enum dnn_fusion fusion;
        enum dnn_tensor which;
        uint32_t row;
        bool behind;
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
    const uint32_t fusion = step->shape.fusion;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const enum cuda_norm_row row = (enum cuda_norm_row)rows[i].row;
        if (!(fusion & rows[i].fusion))
            continue;
        tensors->at[rows[i].which] =
            cuda_norm_row(plan->model, rows[i].behind ? step->norm_behind : step->norm, row);
        if (fusion & DNN_DUAL && !rows[i].behind)
            tensors->at[dnn_beside(rows[i].which)] =
                cuda_norm_row(plan->model, step->norm_other, row);
    }
    if (fusion & DNN_BIASED && !(fusion & DNN_SCALED))
        tensors->at[DNN_BIAS] = cuda_at(plan, step->extra);
    if (fusion & DNN_NORM)
        tensors->at[DNN_X] = cuda_at(plan, step->extra);
    if (fusion & DNN_ADDED)
        tensors->at[DNN_OTHER] = cuda_at(plan, step->other);
    if (fusion & DNN_SUMMED)
        tensors->at[DNN_RESIDUAL] = cuda_at(plan, step->mask);
    if (fusion & DNN_SUMMED && fusion & DNN_PROLOGUE)
        tensors->at[DNN_SUM] = cuda_at(plan, step->extra);
}
