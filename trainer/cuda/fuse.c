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
 * When inferring, where BN is two numbers a channel, a convolution can apply the BN behind it, and
 * a sum and ReLU behind that; one with a bias can add it, and apply ReLU, in training too. Each of
 * them makes the convolution slower. So for each convolution there are two contests between all
 * ways to compute it: one of forward and weights, which share their input, one of the way back. A
 * contender's time is that of all kernels that differ, ours included. The winner is kept in the
 * file of plans, as are the plans.
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

/* ---- how long our own kernels take ---- */

enum pass {
    PASS_STATISTICS,
    PASS_FINISH,
    PASS_APPLY,
    PASS_BACKWARD,
    PASS_SUMS, /* of a second BN, for which dz is there */
    PASS_PARAMETERS,
};

enum { PASS_TENSORS = 4, PASS_FLOATS = CUDA_NORM_ROWS + 8 };

struct pass_trial {
    const struct cuda_model *model;
    enum pass pass;
    struct device_pixels pixels;
    struct device_norm_gradient gradient;
    struct device_norm norm;
    void *tensors[PASS_TENSORS];
    float *floats;
};

static float *trial_row(const struct pass_trial *trial, uint32_t row)
{
    return trial->floats + (uint64_t)row * trial->pixels.channels;
}

static int run_pass(void *context)
{
    const struct pass_trial *trial = context;
    void *stream = trial->model->runtime.stream;
    const struct device_affine affine = {.scale = trial->norm.scale,
                                         .bias = trial->norm.bias,
                                         .other = trial->gradient.d_other,
                                         .relu = true};
    const struct device_norm_gradient dz = {.d_output = trial->gradient.dz};

    switch (trial->pass) {
    case PASS_STATISTICS:
        return device_norm_statistics(&trial->pixels, &trial->norm, trial->tensors[0],
                                      trial->model->partial, stream);
    case PASS_FINISH:
        return device_norm_finish(&trial->pixels, &trial->norm, trial_row(trial, CUDA_SUMS),
                                  trial_row(trial, CUDA_SQUARES), stream);
    case PASS_APPLY:
        return device_affine(&trial->pixels, &affine, trial->tensors[0], trial->tensors[1], stream);
    case PASS_BACKWARD:
    case PASS_SUMS:
        return device_norm_backward(
            &trial->pixels, &trial->norm, trial->pass == PASS_SUMS ? &dz : &trial->gradient,
            trial->tensors[0], NULL, trial_row(trial, CUDA_D_GAMMA), trial_row(trial, CUDA_D_BETA),
            trial_row(trial, CUDA_ABC), trial->model->partial, stream);
    case PASS_PARAMETERS:
        return device_norm_parameters(
            trial->pixels.channels, trial_row(trial, CUDA_D_GAMMA), trial_row(trial, CUDA_D_BETA),
            NULL, trial_row(trial, CUDA_GAMMA), trial_row(trial, CUDA_BETA), stream);
    }
    return -EINVAL;
}

static int trial_open(struct pass_trial *trial)
{
    void *stream = trial->model->runtime.stream;
    const uint64_t bytes =
        trial->pixels.count * trial->pixels.channels * device_type_bytes(trial->pixels.type);
    const uint64_t floats = (uint64_t)PASS_FLOATS * trial->pixels.channels * sizeof(float);
    int code = 0;

    for (int i = 0; i < PASS_TENSORS && code == 0; i++) {
        trial->tensors[i] = runtime_allocate(bytes);
        code = trial->tensors[i] ? runtime_zero(trial->tensors[i], bytes, stream) : -ENOMEM;
    }
    trial->floats = code ? NULL : runtime_allocate(floats);
    if (!trial->floats)
        return code ? code : -ENOMEM;
    trial->norm = (struct device_norm){.epsilon = 1,
                                       .momentum = 0,
                                       .gamma = trial_row(trial, CUDA_GAMMA),
                                       .beta = trial_row(trial, CUDA_BETA),
                                       .running_mean = trial_row(trial, CUDA_NORM_ROWS),
                                       .running_variance = trial_row(trial, CUDA_NORM_ROWS + 1),
                                       .mean = trial_row(trial, CUDA_MEAN),
                                       .inverse = trial_row(trial, CUDA_INVERSE),
                                       .scale = trial_row(trial, CUDA_SCALE),
                                       .bias = trial_row(trial, CUDA_BIAS)};
    return runtime_zero(trial->floats, floats, stream);
}

/* Milliseconds of one of our kernels on the pixels of a node's output. two: of two gradients, or
 * two sides of a sum. */
static double pass_time(struct cuda_plan *plan, enum pass pass, uint32_t node, bool two)
{
    struct pass_trial trial = {
        .model = plan->model, .pass = pass, .pixels = cuda_pixels(plan, node)};
    double milliseconds = 0;
    int code = plan->code ? plan->code : trial_open(&trial);

    trial.gradient = (struct device_norm_gradient){.d_output = trial.tensors[1],
                                                   .d_other = two ? trial.tensors[2] : NULL,
                                                   .mask = trial.tensors[3],
                                                   .dz = trial.tensors[1]};
    if (code == 0)
        code = dnn_time(plan->model->dnn, run_pass, &trial, &milliseconds);
    for (int i = 0; i < PASS_TENSORS; i++)
        runtime_release(trial.tensors[i]);
    runtime_release(trial.floats);
    cuda_keep_code(plan, code);
    return milliseconds;
}

/* ---- contests ---- */

enum { SHAPES_MAX = 2, PASSES_MAX = 2, CONTENDERS_MAX = 4 };

/* One way to compute a group: cuDNN's part, and the kernels of ours that it takes beside. */
struct contender {
    struct dnn_shape shapes[SHAPES_MAX];
    uint32_t shape_count;
    struct {
        enum pass pass;
        uint32_t node;
        bool two;
    } passes[PASSES_MAX];
    uint32_t pass_count;
};

static bool possible(struct cuda_plan *plan, const struct contender *contender)
{
    for (uint32_t i = 0; i < contender->shape_count && !plan->code; i++) {
        int code = 0;
        if (dnn_find(plan->model->dnn, &contender->shapes[i], &code))
            continue;
        if (code != -ENOTSUP)
            cuda_keep_code(plan, code);
        return false;
    }
    return plan->code == 0;
}

/* All of it; asked of contenders that are possible. */
static double time_of(struct cuda_plan *plan, const struct contender *contender)
{
    double sum = 0;
    int code = 0;

    for (uint32_t i = 0; i < contender->shape_count; i++)
        sum += dnn_milliseconds(dnn_find(plan->model->dnn, &contender->shapes[i], &code));
    for (uint32_t i = 0; i < contender->pass_count; i++)
        sum += pass_time(plan, contender->passes[i].pass, contender->passes[i].node,
                         contender->passes[i].two);
    return sum;
}

/* The one that is used. The first is unfused, the last fuses most, and its first shape is what the
 * contest is known by. */
static uint32_t winner_of(struct cuda_plan *plan, const struct contender *contenders,
                          uint32_t count)
{
    struct dnn *dnn = plan->model->dnn;
    const struct dnn_shape *name = &contenders[count - 1].shapes[0];
    const bool timed = plan->model->settings->fusion == CUDA_FUSE_FASTEST && dnn_has_clock(dnn);
    uint32_t winner = 0, competed = 0;
    double best = 0;

    if (timed && dnn_recall_winner(dnn, name, &winner) && winner < count &&
        (winner == 0 || possible(plan, &contenders[winner])))
        return winner;
    winner = 0;
    for (uint32_t i = count; i-- > 0 && !plan->code;) {
        if (i > 0 && !possible(plan, &contenders[i]))
            continue;
        if (!timed)
            return i;
        if (i == 0 && (competed == 0 || !possible(plan, &contenders[0])))
            break; /* nothing to compare with */
        const double milliseconds = time_of(plan, &contenders[i]);
        if (competed++ == 0 || milliseconds < best) {
            best = milliseconds;
            winner = i;
        }
    }
    if (timed && !plan->code)
        cuda_keep_code(plan, dnn_keep_winner(dnn, name, winner, competed, best));
    return winner;
}

static void add_shape(const struct cuda_plan *plan, struct contender *contender, uint32_t node,
                      enum dnn_kind kind, uint32_t fusion)
{
    struct dnn_shape *shape = &contender->shapes[contender->shape_count++];

    *shape = cuda_shape(plan, node, kind);
    shape->fusion = fusion;
}

static void add_pass(struct contender *contender, enum pass pass, uint32_t node, bool two)
{
    contender->passes[contender->pass_count].pass = pass;
    contender->passes[contender->pass_count].node = node;
    contender->passes[contender->pass_count++].two = two;
}

/* ---- the two groups of a convolution ---- */

/* The gradient of its weights applies BN and ReLU again; a sum it finds stored. */
static uint32_t weight_fusion(uint32_t fusion)
{
    return fusion & DNN_SUMMED ? 0 : fusion & DNN_PROLOGUE;
}

/* Its output, and the gradient of its weights. */
static void fuse_input_and_output(struct cuda_plan *plan, uint32_t node)
{
    static const uint32_t ways[] = {0, DNN_PROLOGUE, DNN_STATISTICS, DNN_PROLOGUE | DNN_STATISTICS};
    struct cuda_node *own = &plan->nodes[node];
    const uint32_t behind = norm_behind(plan, node), before = prologue(plan, node);
    const uint32_t may = before | (behind != CUDA_NONE ? (uint32_t)DNN_STATISTICS : 0);
    struct contender contenders[CONTENDERS_MAX] = {0};
    uint32_t fusions[CONTENDERS_MAX], count = 0;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct contender *one = &contenders[count];
        const uint32_t way = ways[i] | (ways[i] & DNN_PROLOGUE ? before : 0);
        if (way & ~may)
            continue;
        fusions[count++] = way;
        add_shape(plan, one, node, DNN_FORWARD, way);
        add_shape(plan, one, node, DNN_WEIGHT, weight_fusion(way));
        if (may & DNN_STATISTICS)
            add_pass(one, way & DNN_STATISTICS ? PASS_FINISH : PASS_STATISTICS, behind, false);
        if (may & ~way & DNN_PROLOGUE)
            add_pass(one, PASS_APPLY, own->norm_before, (before & DNN_SUMMED) != 0);
    }
    if (count < 2)
        return;
    const uint32_t fusion = fusions[winner_of(plan, contenders, count)];
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
    struct cuda_node *own = &plan->nodes[node];
    const uint32_t fusion = back_fusion(plan, node);
    struct contender contenders[2] = {0};

    if (!fusion)
        return;
    add_shape(plan, &contenders[0], node, DNN_DATA, 0);
    add_pass(&contenders[0], PASS_BACKWARD, own->norm_before, (fusion & DNN_ADDED) != 0);
    add_shape(plan, &contenders[1], node, DNN_DATA, fusion);
    add_pass(&contenders[1], PASS_PARAMETERS, own->norm_before, false);
    if (fusion & DNN_DUAL) {
        const uint32_t beside = plan->nodes[own->end_before].norm_other;
        add_pass(&contenders[0], PASS_SUMS, beside, false);
        add_pass(&contenders[1], PASS_PARAMETERS, beside, false);
    }
    if (winner_of(plan, contenders, 2) == 1)
        own->fusion[DNN_DATA] = fusion;
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
    struct contender contenders[2] = {0};
    uint32_t end = node, fusion = own_epilogue(plan, node);

    if (!fusion)
        fusion = norm_epilogue(plan, node, &end);
    /* Engines for these are compiled when they are asked for, which takes a device. */
    if (!fusion || plan->nodes[node].fusion[DNN_FORWARD] || !dnn_has_clock(plan->model->dnn))
        return;
    add_shape(plan, &contenders[0], node, DNN_FORWARD, 0);
    add_pass(&contenders[0], PASS_APPLY, end, (fusion & DNN_ADDED) != 0);
    add_shape(plan, &contenders[1], node, DNN_FORWARD, fusion);
    if (winner_of(plan, contenders, 2) == 1)
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
