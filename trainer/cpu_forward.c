/* SPDX-License-Identifier: Apache-2.0
 * The forward pass of a program: the steps of each node, in the graph's order. */
#include "trainer/cpu.h"

#include <errno.h>

static dnnl_prop_kind_t forward_kind(const struct cpu_program *program)
{
    return program->training ? dnnl_forward_training : dnnl_forward_inference;
}

static const struct cpu_layout *output_any(const struct cpu_program *program, uint32_t number)
{
    return cpu_any(&program->model->dnnl, cpu_plain_images(program, number));
}

static const struct cpu_layout *vector_of(const struct cpu_program *program,
                                          const struct graph_node *node)
{
    return cpu_plain(&program->model->dnnl, 1, (const dnnl_dims_t){node->shape.channels});
}

/* The output of the node's first input. */
static const struct cpu_tensor *input_of(struct cpu_program *program, uint32_t number)
{
    return cpu_floats(program, program->model->graph->nodes[number].inputs[0]);
}

/* ---- convolution and fully connected ---- */

static dnnl_primitive_desc_t describe_weighted(struct cpu_program *program, uint32_t number,
                                               const struct cpu_layout *weight)
{
    struct cpu_dnnl *dnnl = &program->model->dnnl;
    const struct graph_node *node = &program->model->graph->nodes[number];
    const struct cpu_node *own = &program->nodes[number];
    const unsigned behind = (own->relu ? CPU_RELU : 0u) | (own->summand ? CPU_SUM : 0u);
    struct cpu_operation operation = {.kind = CPU_CONVOLUTION,
                                      .pass = forward_kind(program),
                                      .source = cpu_any(dnnl, own->source.layout),
                                      .weight = weight,
                                      .target = output_any(program, number),
                                      .window = cpu_window(node)};

    if (node->bias != UINT32_MAX || own->norm)
        operation.bias = vector_of(program, node);
    if (own->summand)
        operation.target = cpu_floats(program, own->summand)->layout;
    if (node->kind == GRAPH_FULLY_CONNECTED) {
        operation.kind = CPU_INNER_PRODUCT;
        operation.target = cpu_plain_rows(program, number);
    }
    return cpu_describe(program, &operation, NULL, behind, number);
}

/* Weights in oneDNN's preferred layout. If that is padded, nothing else can read it and every step
 * would copy the weights back and forth, so the canonical layout is used. */
static dnnl_primitive_desc_t choose_weighted(struct cpu_program *program, uint32_t number)
{
    struct cpu_model *model = program->model;
    const struct graph_node *node = &model->graph->nodes[number];
    const struct cpu_layout *plain = model->canonical[node->weight];
    dnnl_primitive_desc_t desc = describe_weighted(program, number, cpu_any(&model->dnnl, plain));

    if (program->training && node->kind == GRAPH_FULLY_CONNECTED &&
        cpu_query(program, desc, dnnl_query_weights_md)->bytes > plain->bytes) {
        dnnl_primitive_desc_destroy(desc);
        desc = describe_weighted(program, number, plain);
    }
    return desc;
}

/* Weights and bias of a convolution with the following BN folded in, recomputed when parameters or
 * running statistics change. Folding needs the canonical layout, where a channel is contiguous. */
static void build_fold(struct cpu_program *program, uint32_t number,
                       const struct cpu_layout *wanted, struct cpu_tensor *weight,
                       struct cpu_tensor *bias)
{
    struct cpu_model *model = program->model;
    const struct graph_node *node = &model->graph->nodes[number];
    const struct cpu_layout *plain = model->canonical[node->weight];
    const uint32_t before = program->step_count;

    const struct cpu_tensor home =
        cpu_foreign(program, model->home[node->weight],
                    model->parameters + model->graph->parameters[node->weight].offset);
    const struct cpu_tensor source = cpu_convert(program, &home, plain, number);
    const struct cpu_tensor folded = cpu_add_tensor(program, plain);
    *bias = cpu_add_tensor(program, vector_of(program, node));
    struct cpu_step *step = cpu_add_step(program, CPU_FOLD, number, source.buffer, folded.buffer);
    step->other = bias->buffer;
    step->norm = program->nodes[number].norm;
    *weight = cpu_convert(program, &folded, wanted, number);
    if (program->code)
        return;
    program->buffers[bias->buffer].place = program->buffers[weight->buffer].place = CPU_KEPT;
    for (uint32_t i = before; i < program->step_count; i++)
        program->steps[i].of_parameters = true;
}

static void build_weighted(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    struct cpu_node *own = &program->nodes[number];

    if (program->model->quantised && program->model->quantised[number].in_int8)
        return cpu_build_int8(program, number);
    own->source = *input_of(program, number);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->source = cpu_images_as_rows(program, &own->source, node->inputs[0]);
    dnnl_primitive_desc_t desc = own->forward = choose_weighted(program, number);
    if (program->code)
        return;
    const struct cpu_layout *source = cpu_query(program, desc, dnnl_query_src_md);
    const struct cpu_layout *wanted = cpu_query(program, desc, dnnl_query_weights_md);
    const struct cpu_layout *target = cpu_query(program, desc, dnnl_query_dst_md);
    own->source = cpu_convert(program, &own->source, source, number);
    own->output =
        own->summand ? *cpu_floats(program, own->summand) : cpu_add_tensor(program, target);
    struct cpu_tensor weight = {0}, bias = {0};
    if (own->norm)
        build_fold(program, number, wanted, &weight, &bias);
    else
        weight = cpu_parameter(program, node->weight, wanted, number);
    if (!own->norm && node->bias != UINT32_MAX)
        bias = cpu_parameter(program, node->bias, program->model->canonical[node->bias], number);
    const struct cpu_argument arguments[] = {{DNNL_ARG_SRC, &own->source},
                                             {DNNL_ARG_WEIGHTS, &weight},
                                             {DNNL_ARG_DST, &own->output},
                                             {DNNL_ARG_BIAS, &bias}};
    bool has_bias = own->norm || node->bias != UINT32_MAX;
    cpu_add_primitive(program, desc, number, arguments, has_bias ? 4 : 3);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->output = cpu_rows_as_images(program, &own->output, number);
}

/* ---- batch norm ---- */

static void build_norm(struct cpu_program *program, uint32_t number)
{
    const struct cpu_model *model = program->model;
    const struct graph_node *node = &model->graph->nodes[number];
    struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *vector = vector_of(program, node);
    float *running = model->statistics + node->statistics;

    own->source = *input_of(program, number);
    const struct cpu_operation operation = {
        .kind = CPU_NORM,
        .pass = forward_kind(program),
        .source = own->source.layout,
        .epsilon = (float)node->epsilon,
        .flags = CPU_NORM_FLAGS | (own->relu ? dnnl_fuse_norm_relu : 0u) |
                 (program->training ? 0u : dnnl_use_global_stats)};
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(program, &operation, NULL, 0, number);
    if (program->code)
        return;
    own->output = cpu_add_tensor(program, own->source.layout);
    own->mean =
        program->training ? cpu_add_tensor(program, vector) : cpu_foreign(program, vector, running);
    own->variance = program->training
                        ? cpu_add_tensor(program, vector)
                        : cpu_foreign(program, vector, running + node->shape.channels);
    const struct cpu_tensor gamma = cpu_parameter(program, node->gamma, vector, number);
    const struct cpu_tensor beta = cpu_parameter(program, node->beta, vector, number);
    struct cpu_argument arguments[] = {{DNNL_ARG_SRC, &own->source},
                                       {DNNL_ARG_DST, &own->output},
                                       {DNNL_ARG_MEAN, &own->mean},
                                       {DNNL_ARG_VARIANCE, &own->variance},
                                       {DNNL_ARG_SCALE, &gamma},
                                       {DNNL_ARG_SHIFT, &beta},
                                       {DNNL_ARG_WORKSPACE, &own->workspace}};
    bool keeps_mask = program->training && own->relu;
    if (keeps_mask)
        own->workspace = cpu_add_tensor(program, cpu_query(program, desc, dnnl_query_workspace_md));
    cpu_add_primitive(program, desc, number, arguments, keeps_mask ? 7 : 6);
    if (program->training)
        cpu_add_step(program, CPU_STATISTICS, number, own->mean.buffer, own->variance.buffer);
}

/* ---- nodes without parameters ---- */

static void build_relu(struct cpu_program *program, uint32_t number)
{
    struct cpu_node *own = &program->nodes[number];

    own->source = *input_of(program, number);
    own->forward = cpu_describe(program,
                                &(struct cpu_operation){.kind = CPU_ELTWISE,
                                                        .pass = forward_kind(program),
                                                        .algorithm = dnnl_eltwise_relu,
                                                        .source = own->source.layout},
                                NULL, 0, number);
    own->output = cpu_add_tensor(program, own->source.layout);
    cpu_add_primitive(
        program, own->forward, number,
        (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source}, {DNNL_ARG_DST, &own->output}},
        2);
}

/* A primitive with one input; a workspace keeps what its backward pass needs. */
static void build_windowed(struct cpu_program *program, uint32_t number,
                           const struct cpu_operation *operation)
{
    struct cpu_node *own = &program->nodes[number];

    own->source = *input_of(program, number);
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(program, operation, NULL, 0, number);
    if (program->code)
        return;
    const struct cpu_layout *kept = cpu_query(program, desc, dnnl_query_workspace_md);
    bool keeps = program->training && kept->bytes > 0;
    own->output = cpu_add_tensor(program, cpu_query(program, desc, dnnl_query_dst_md));
    if (keeps)
        own->workspace = cpu_add_tensor(program, kept);
    cpu_add_primitive(program, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source},
                                                    {DNNL_ARG_DST, &own->output},
                                                    {DNNL_ARG_WORKSPACE, &own->workspace}},
                      keeps ? 3 : 2);
}

static void build_pool(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];

    build_windowed(program, number,
                   &(struct cpu_operation){.kind = CPU_POOL,
                                           .pass = forward_kind(program),
                                           .algorithm = cpu_pool_kind(node),
                                           .source = input_of(program, number)->layout,
                                           .target = output_any(program, number),
                                           .window = cpu_window(node)});
}

static void build_lrn(struct cpu_program *program, uint32_t number)
{
    const struct cpu_operation operation =
        cpu_lrn(&program->model->graph->nodes[number], forward_kind(program),
                input_of(program, number)->layout);

    build_windowed(program, number, &operation);
}

static void build_add(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    struct cpu_node *own = &program->nodes[number];
    const struct cpu_tensor *other = cpu_floats(program, node->inputs[1]);

    own->source = *input_of(program, number);
    const struct cpu_tensor second = cpu_convert(program, other, own->source.layout, number);
    own->forward = cpu_describe(
        program, &(struct cpu_operation){.kind = CPU_ADD, .source = own->source.layout}, NULL,
        own->relu, number);
    own->output = cpu_add_tensor(program, own->source.layout);
    cpu_add_primitive(program, own->forward, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC_0, &own->source},
                                                    {DNNL_ARG_SRC_1, &second},
                                                    {DNNL_ARG_DST, &own->output}},
                      3);
}

static void build_concat(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *sources[GRAPH_INPUTS_MAX];
    struct cpu_argument arguments[GRAPH_INPUTS_MAX + 1];

    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct cpu_tensor *input = cpu_floats(program, node->inputs[i]);
        sources[i] = input->layout;
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + (int)i, input};
    }
    if (program->code)
        return;
    cpu_keep(program,
             cpu_dnnl_describe_concat(&program->model->dnnl, output_any(program, number),
                                      (int)node->input_count, sources, program->attributes,
                                      &own->forward),
             number);
    own->output = cpu_add_tensor(program, cpu_query(program, own->forward, dnnl_query_dst_md));
    arguments[node->input_count] = (struct cpu_argument){DNNL_ARG_DST, &own->output};
    cpu_add_primitive(program, own->forward, number, arguments, (int)node->input_count + 1);
}

/* An element's canonical index decides whether it is dropped. */
static void build_dropout(struct cpu_program *program, uint32_t number)
{
    struct cpu_node *own = &program->nodes[number];
    const struct cpu_tensor *input = input_of(program, number);

    if (!program->training) {
        own->output = *input;
        return;
    }
    const struct cpu_layout *plain = cpu_plain_images(program, number);
    own->source = cpu_convert(program, input, plain, number);
    own->output = cpu_add_tensor(program, plain);
    cpu_add_step(program, CPU_DROPOUT, number, own->source.buffer, own->output.buffer);
}

/* ---- the whole pass ---- */

static void build_input(struct cpu_program *program)
{
    program->nodes[0].output = cpu_add_tensor(program, cpu_plain_images(program, 0));
    cpu_add_step(program, CPU_NORMALISE, 0, UINT32_MAX, program->nodes[0].output.buffer);
}

/* The loss reads rows of logits and writes rows of their gradients. */
static void build_loss(struct cpu_program *program)
{
    const uint32_t last = program->model->graph->node_count - 1;
    struct cpu_node *own = &program->nodes[last];
    const struct cpu_layout *plain = cpu_plain_images(program, last);
    const struct cpu_tensor logits = cpu_convert(program, cpu_floats(program, last), plain, last);
    uint32_t target = UINT32_MAX;

    if (program->training) {
        own->gradients[own->gradient_count] = cpu_add_tensor(program, plain);
        target = own->gradients[own->gradient_count++].buffer;
    }
    cpu_add_step(program, CPU_LOSS, last, logits.buffer, target);
}

/* A node computed by another one: for a sum, by its last input. */
static void build_absorbed(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    uint32_t from = node->inputs[0];

    for (uint32_t i = 1; i < node->input_count; i++)
        from = node->inputs[i] > from ? node->inputs[i] : from;
    program->nodes[number].output = program->nodes[from].output;
    program->nodes[number].floats = program->nodes[from].floats;
}

/* For calibration. Padding of channel blocks is zero. */
static void build_observation(struct cpu_program *program, uint32_t number)
{
    const struct cpu_tensor *output = &program->nodes[number].output;

    if (!program->model->calibration || program->nodes[number].hidden || output->step > 0 ||
        program->code)
        return;
    struct cpu_step *step =
        cpu_add_step(program, CPU_OBSERVE, number, output->buffer, output->buffer);
    step->floats = output->layout->bytes / sizeof(float);
}

static void build_node(struct cpu_program *program, uint32_t i)
{
    switch (program->model->graph->nodes[i].kind) {
    case GRAPH_CONVOLUTION:
    case GRAPH_FULLY_CONNECTED:
        build_weighted(program, i);
        break;
    case GRAPH_BATCH_NORM:
        build_norm(program, i);
        break;
    case GRAPH_RELU:
        build_relu(program, i);
        break;
    case GRAPH_MAX_POOL:
    case GRAPH_AVERAGE_POOL:
        build_pool(program, i);
        break;
    case GRAPH_ADD:
        build_add(program, i);
        break;
    case GRAPH_CONCAT:
        build_concat(program, i);
        break;
    case GRAPH_LRN:
        build_lrn(program, i);
        break;
    case GRAPH_DROPOUT:
        build_dropout(program, i);
        break;
    case GRAPH_INPUT:
        break;
    }
}

void cpu_build_forward(struct cpu_program *program)
{
    build_input(program);
    for (uint32_t i = 1; i < program->model->graph->node_count && !program->code; i++) {
        if (program->nodes[i].absorbed)
            build_absorbed(program, i);
        else
            build_node(program, i);
        build_observation(program, i);
        cpu_hold_as_planned(program, i);
    }
    if (!program->code)
        build_loss(program);
}
