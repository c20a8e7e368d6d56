/* SPDX-License-Identifier: Apache-2.0
 * The forward pass of a plan: the steps of each node, in the graph's order. */
#include "trainer/cpu.h"

#include <errno.h>

static dnnl_prop_kind_t forward_kind(const struct cpu_plan *plan)
{
    return plan->training ? dnnl_forward_training : dnnl_forward_inference;
}

static dnnl_memory_desc_t output_any(const struct cpu_plan *plan, const struct graph_node *node)
{
    const dnnl_dims_t dims = {plan->count, node->shape.channels, node->shape.height,
                              node->shape.width};
    const dnnl_memory_desc_t plain = cpu_plain(4, dims);

    return cpu_any(&plain);
}

/* The output of the node's first input. */
static const struct cpu_tensor *input_of(const struct cpu_plan *plan, uint32_t number)
{
    return &plan->nodes[plan->model->graph->nodes[number].inputs[0]].output;
}

struct cpu_window cpu_window(const struct graph_node *node)
{
    const struct graph_window *window = &node->window;

    return (struct cpu_window){
        .strides = {window->stride, window->stride},
        .sides = {window->height, window->width},
        .before = {window->pad_top, window->pad_left},
        .behind = {window->pad_bottom, window->pad_right},
    };
}

dnnl_alg_kind_t cpu_pool_kind(const struct graph_node *node)
{
    if (node->kind == GRAPH_MAX_POOL)
        return dnnl_pooling_max;
    return node->window.count_padding ? dnnl_pooling_avg_include_padding
                                      : dnnl_pooling_avg_exclude_padding;
}

/* ---- convolution and fully connected ---- */

static dnnl_primitive_desc_t describe_weighted(struct cpu_plan *plan, uint32_t number)
{
    const struct cpu_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[number];
    const struct cpu_tensor *input = input_of(plan, number);
    const dnnl_memory_desc_t source = cpu_any(&input->desc);
    const dnnl_memory_desc_t weight = cpu_any(&model->canonical[node->weight]);
    const struct cpu_node *own = &plan->nodes[number];
    const dnnl_memory_desc_t vector = cpu_plain(1, (const dnnl_dims_t){node->shape.channels});
    const dnnl_memory_desc_t *bias = node->bias == UINT32_MAX && !own->norm ? NULL : &vector;
    const unsigned behind = (own->relu ? CPU_RELU : 0u) | (own->summand ? CPU_SUM : 0u);
    const struct cpu_window window = cpu_window(node);
    dnnl_memory_desc_t target =
        own->summand ? plan->nodes[own->summand].output.desc : output_any(plan, node);

    if (node->kind == GRAPH_CONVOLUTION) {
        dnnl_convolution_desc_t operation;
        cpu_keep(plan,
                 dnnl_convolution_forward_desc_init(
                     &operation, forward_kind(plan), dnnl_convolution_direct, &source, &weight,
                     bias, &target, window.strides, window.before, window.behind),
                 number);
        return cpu_describe(plan, &operation, NULL, behind, number);
    }
    dnnl_inner_product_desc_t operation;
    const dnnl_dims_t dims = {plan->count, node->shape.channels};
    const dnnl_memory_desc_t rows = cpu_plain(2, dims);
    target = cpu_any(&rows);
    cpu_keep(plan,
             dnnl_inner_product_forward_desc_init(&operation, forward_kind(plan), &source, &weight,
                                                  bias, &target),
             number);
    return cpu_describe(plan, &operation, NULL, behind, number);
}

/* Weights and bias of a convolution with the BN behind it in them, made when parameters or running
 * statistics have changed. The factor of a channel is easy to find in the canonical layout only. */
static void build_fold(struct cpu_plan *plan, uint32_t number, const dnnl_memory_desc_t *wanted,
                       struct cpu_tensor *weight, struct cpu_tensor *bias)
{
    struct cpu_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[number];
    const dnnl_memory_desc_t *plain = &model->canonical[node->weight];
    const dnnl_memory_desc_t vector = cpu_plain(1, (const dnnl_dims_t){node->shape.channels});
    const uint32_t before = plan->step_count;

    const struct cpu_tensor home =
        cpu_foreign(plan, &model->home[node->weight],
                    model->parameters + model->graph->parameters[node->weight].offset);
    const struct cpu_tensor source = cpu_convert(plan, &home, plain, number);
    const struct cpu_tensor folded = cpu_add_tensor(plan, plain);
    *bias = cpu_add_tensor(plan, &vector);
    struct cpu_step *step = cpu_add_step(plan, CPU_FOLD, number, source.buffer, folded.buffer);
    step->other = bias->buffer;
    step->norm = plan->nodes[number].norm;
    *weight = cpu_convert(plan, &folded, wanted, number);
    if (plan->code)
        return;
    plan->buffers[bias->buffer].place = plan->buffers[weight->buffer].place = CPU_KEPT;
    for (uint32_t i = before; i < plan->step_count; i++)
        plan->steps[i].of_parameters = true;
}

static void build_weighted(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    dnnl_primitive_desc_t desc = own->forward = describe_weighted(plan, number);

    if (plan->code)
        return;
    const dnnl_memory_desc_t source = cpu_query(plan, desc, dnnl_query_src_md);
    const dnnl_memory_desc_t wanted = cpu_query(plan, desc, dnnl_query_weights_md);
    const dnnl_memory_desc_t target = cpu_query(plan, desc, dnnl_query_dst_md);
    own->source = cpu_convert(plan, input_of(plan, number), &source, number);
    own->output = own->summand ? plan->nodes[own->summand].output : cpu_add_tensor(plan, &target);
    struct cpu_tensor weight = {0}, bias = {0};
    if (own->norm)
        build_fold(plan, number, &wanted, &weight, &bias);
    else
        weight = cpu_parameter(plan, node->weight, &wanted, number);
    if (!own->norm && node->bias != UINT32_MAX)
        bias = cpu_parameter(plan, node->bias, &plan->model->canonical[node->bias], number);
    const struct cpu_argument arguments[] = {{DNNL_ARG_SRC, &own->source},
                                             {DNNL_ARG_WEIGHTS, &weight},
                                             {DNNL_ARG_DST, &own->output},
                                             {DNNL_ARG_BIAS, &bias}};
    bool has_bias = own->norm || node->bias != UINT32_MAX;
    cpu_add_primitive(plan, desc, number, arguments, has_bias ? 4 : 3);
    if (node->kind == GRAPH_FULLY_CONNECTED && !plan->code) {
        /* Those behind it see planes of one pixel. */
        const dnnl_dims_t dims = {plan->count, node->shape.channels, 1, 1};
        dnnl_memory_desc_t flat = own->output.desc;
        cpu_keep(plan, dnnl_memory_desc_reshape(&own->output.desc, &flat, 4, dims), number);
    }
}

/* ---- batch norm ---- */

static void build_norm(struct cpu_plan *plan, uint32_t number)
{
    const struct cpu_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    const unsigned flags = CPU_NORM_FLAGS | (own->relu ? dnnl_fuse_norm_relu : 0u) |
                           (plan->training ? 0u : dnnl_use_global_stats);
    const dnnl_dims_t channels = {node->shape.channels};
    const dnnl_memory_desc_t vector = cpu_plain(1, channels);
    float *running = model->statistics + model->statistic_offsets[number];
    dnnl_batch_normalization_desc_t operation;

    own->source = *input_of(plan, number);
    cpu_keep(plan,
             dnnl_batch_normalization_forward_desc_init(
                 &operation, forward_kind(plan), &own->source.desc, (float)node->epsilon, flags),
             number);
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(plan, &operation, NULL, 0, number);
    if (plan->code)
        return;
    own->output = cpu_add_tensor(plan, &own->source.desc);
    own->mean =
        plan->training ? cpu_add_tensor(plan, &vector) : cpu_foreign(plan, &vector, running);
    own->variance = plan->training ? cpu_add_tensor(plan, &vector)
                                   : cpu_foreign(plan, &vector, running + node->shape.channels);
    const struct cpu_tensor gamma = cpu_parameter(plan, node->gamma, &vector, number);
    const struct cpu_tensor beta = cpu_parameter(plan, node->beta, &vector, number);
    struct cpu_argument arguments[] = {{DNNL_ARG_SRC, &own->source},
                                       {DNNL_ARG_DST, &own->output},
                                       {DNNL_ARG_MEAN, &own->mean},
                                       {DNNL_ARG_VARIANCE, &own->variance},
                                       {DNNL_ARG_SCALE, &gamma},
                                       {DNNL_ARG_SHIFT, &beta},
                                       {DNNL_ARG_WORKSPACE, &own->workspace}};
    bool keeps_mask = plan->training && own->relu;
    if (keeps_mask) {
        const dnnl_memory_desc_t mask = cpu_query(plan, desc, dnnl_query_workspace_md);
        own->workspace = cpu_add_tensor(plan, &mask);
    }
    cpu_add_primitive(plan, desc, number, arguments, keeps_mask ? 7 : 6);
    if (plan->training)
        cpu_add_step(plan, CPU_STATISTICS, number, own->mean.buffer, own->variance.buffer);
}

/* ---- what has no parameters ---- */

static void build_relu(struct cpu_plan *plan, uint32_t number)
{
    struct cpu_node *own = &plan->nodes[number];
    dnnl_eltwise_desc_t operation;

    own->source = *input_of(plan, number);
    cpu_keep(plan,
             dnnl_eltwise_forward_desc_init(&operation, forward_kind(plan), dnnl_eltwise_relu,
                                            &own->source.desc, 0, 0),
             number);
    own->forward = cpu_describe(plan, &operation, NULL, 0, number);
    own->output = cpu_add_tensor(plan, &own->source.desc);
    cpu_add_primitive(
        plan, own->forward, number,
        (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source}, {DNNL_ARG_DST, &own->output}},
        2);
}

static void build_pool(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    const struct cpu_window window = cpu_window(node);
    const dnnl_memory_desc_t any = output_any(plan, node);
    dnnl_pooling_desc_t operation;

    own->source = *input_of(plan, number);
    cpu_keep(plan,
             dnnl_pooling_forward_desc_init(&operation, forward_kind(plan), cpu_pool_kind(node),
                                            &own->source.desc, &any, window.strides, window.sides,
                                            window.before, window.behind),
             number);
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(plan, &operation, NULL, 0, number);
    if (plan->code)
        return;
    const dnnl_memory_desc_t target = cpu_query(plan, desc, dnnl_query_dst_md);
    own->output = cpu_add_tensor(plan, &target);
    bool keeps_place = plan->training && node->kind == GRAPH_MAX_POOL;
    if (keeps_place) {
        const dnnl_memory_desc_t place = cpu_query(plan, desc, dnnl_query_workspace_md);
        own->workspace = cpu_add_tensor(plan, &place);
    }
    cpu_add_primitive(plan, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source},
                                                    {DNNL_ARG_DST, &own->output},
                                                    {DNNL_ARG_WORKSPACE, &own->workspace}},
                      keeps_place ? 3 : 2);
}

static void build_lrn(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    dnnl_lrn_desc_t operation;

    own->source = *input_of(plan, number);
    cpu_keep(plan,
             dnnl_lrn_forward_desc_init(&operation, forward_kind(plan), dnnl_lrn_across_channels,
                                        &own->source.desc, node->window.height,
                                        (float)node->lrn_alpha, (float)node->lrn_beta,
                                        (float)node->lrn_k),
             number);
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(plan, &operation, NULL, 0, number);
    if (plan->code)
        return;
    own->output = cpu_add_tensor(plan, &own->source.desc);
    const dnnl_memory_desc_t kept = cpu_query(plan, desc, dnnl_query_workspace_md);
    bool keeps = plan->training && dnnl_memory_desc_get_size(&kept) > 0;
    if (keeps)
        own->workspace = cpu_add_tensor(plan, &kept);
    cpu_add_primitive(plan, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source},
                                                    {DNNL_ARG_DST, &own->output},
                                                    {DNNL_ARG_WORKSPACE, &own->workspace}},
                      keeps ? 3 : 2);
}

static void build_add(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    const struct cpu_tensor *other = &plan->nodes[node->inputs[1]].output;
    dnnl_binary_desc_t operation;

    own->source = *input_of(plan, number);
    const struct cpu_tensor second = cpu_convert(plan, other, &own->source.desc, number);
    cpu_keep(plan,
             dnnl_binary_desc_init(&operation, dnnl_binary_add, &own->source.desc,
                                   &own->source.desc, &own->source.desc),
             number);
    own->forward = cpu_describe(plan, &operation, NULL, own->relu, number);
    own->output = cpu_add_tensor(plan, &own->source.desc);
    cpu_add_primitive(plan, own->forward, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC_0, &own->source},
                                                    {DNNL_ARG_SRC_1, &second},
                                                    {DNNL_ARG_DST, &own->output}},
                      3);
}

static void build_concat(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    dnnl_memory_desc_t sources[GRAPH_INPUTS_MAX];
    struct cpu_argument arguments[GRAPH_INPUTS_MAX + 1];

    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct cpu_tensor *input = &plan->nodes[node->inputs[i]].output;
        sources[i] = input->desc;
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + (int)i, input};
    }
    if (plan->code)
        return;
    const dnnl_memory_desc_t any = output_any(plan, node);
    cpu_keep(plan,
             dnnl_concat_primitive_desc_create(&own->forward, &any, (int)node->input_count, 1,
                                               sources, plan->attributes, plan->model->engine),
             number);
    const dnnl_memory_desc_t target = cpu_query(plan, own->forward, dnnl_query_dst_md);
    own->output = cpu_add_tensor(plan, &target);
    arguments[node->input_count] = (struct cpu_argument){DNNL_ARG_DST, &own->output};
    cpu_add_primitive(plan, own->forward, number, arguments, (int)node->input_count + 1);
}

/* Which elements are dropped is told by their place in the canonical order. */
static void build_dropout(struct cpu_plan *plan, uint32_t number)
{
    struct cpu_node *own = &plan->nodes[number];
    const struct cpu_tensor *input = input_of(plan, number);

    if (!plan->training) {
        own->output = *input;
        return;
    }
    const dnnl_memory_desc_t plain = cpu_plain(input->desc.ndims, input->desc.dims);
    own->source = cpu_convert(plan, input, &plain, number);
    own->output = cpu_add_tensor(plan, &plain);
    cpu_add_step(plan, CPU_DROPOUT, number, own->source.buffer, own->output.buffer);
}

/* ---- the whole ---- */

static void build_input(struct cpu_plan *plan)
{
    const struct graph_shape *shape = &plan->model->graph->nodes[0].shape;
    const dnnl_dims_t dims = {plan->count, shape->channels, shape->height, shape->width};
    const dnnl_memory_desc_t plain = cpu_plain(4, dims);

    plan->nodes[0].output = cpu_add_tensor(plan, &plain);
    cpu_add_step(plan, CPU_NORMALISE, 0, UINT32_MAX, plan->nodes[0].output.buffer);
}

/* The loss wants rows of logits, and makes rows of their gradients. */
static void build_loss(struct cpu_plan *plan)
{
    const uint32_t last = plan->model->graph->node_count - 1;
    struct cpu_node *own = &plan->nodes[last];
    const dnnl_memory_desc_t plain = cpu_plain(4, own->output.desc.dims);
    const struct cpu_tensor logits = cpu_convert(plan, &own->output, &plain, last);
    uint32_t target = UINT32_MAX;

    if (plan->training) {
        own->gradients[own->gradient_count] = cpu_add_tensor(plan, &plain);
        target = own->gradients[own->gradient_count++].buffer;
    }
    cpu_add_step(plan, CPU_LOSS, last, logits.buffer, target);
}

void cpu_build_forward(struct cpu_plan *plan)
{
    const struct graph *graph = plan->model->graph;

    build_input(plan);
    for (uint32_t i = 1; i < graph->node_count && !plan->code; i++) {
        if (plan->nodes[i].absorbed) {
            plan->nodes[i].output = *input_of(plan, i);
            continue;
        }
        switch (graph->nodes[i].kind) {
        case GRAPH_CONVOLUTION:
        case GRAPH_FULLY_CONNECTED:
            build_weighted(plan, i);
            break;
        case GRAPH_BATCH_NORM:
            build_norm(plan, i);
            break;
        case GRAPH_RELU:
            build_relu(plan, i);
            break;
        case GRAPH_MAX_POOL:
        case GRAPH_AVERAGE_POOL:
            build_pool(plan, i);
            break;
        case GRAPH_ADD:
            build_add(plan, i);
            break;
        case GRAPH_CONCAT:
            build_concat(plan, i);
            break;
        case GRAPH_LRN:
            build_lrn(plan, i);
            break;
        case GRAPH_DROPOUT:
            build_dropout(plan, i);
            break;
        case GRAPH_INPUT:
            break;
        }
    }
    if (!plan->code)
        build_loss(plan);
}
