/* SPDX-License-Identifier: Apache-2.0
 * The forward pass of a program: the steps of each node, in the graph's order. */
#include "trainer/cpu/cpu.h"

#include <errno.h>

static dnnl_prop_kind_t forward_kind(const struct cpu_program *program)
{
    return program->training ? dnnl_forward_training : dnnl_forward_inference;
}

static const struct cpu_layout *output_any(const struct cpu_program *program, uint32_t number)
{
    const dnnl_data_type_t type = program->model->type;

    return cpu_any(&program->model->dnnl, cpu_plain_images(program, number, type), type);
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
    const struct graph_node *node = &program->model->graph->nodes[number];
    const struct cpu_node *own = &program->nodes[number];
    const dnnl_data_type_t type = program->model->type;
    const bool is_last = number + 1 == program->model->graph->node_count; /* logits are FP32 */
    struct cpu_operation operation = cpu_operation_of(node);

    operation.pass = forward_kind(program);
    operation.behind = (own->relu ? CPU_RELU : 0u) | (own->summand ? CPU_ACCUMULATE : 0u);
    operation.source = cpu_any(&program->model->dnnl, own->source.layout, type);
    operation.weight = weight;
    if (node->bias != UINT32_MAX || own->norm)
        operation.bias = vector_of(program, node);
    if (own->summand)
        operation.target = cpu_floats(program, own->summand)->layout;
    else if (node->kind == GRAPH_FULLY_CONNECTED)
        operation.target = cpu_plain_rows(program, number, is_last ? dnnl_f32 : type);
    else
        operation.target = output_any(program, number);
    return cpu_describe(program, &operation, NULL, number);
}

static void build_weighted(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    struct cpu_model *model = program->model;
    const struct cpu_layout *plain = model->canonical[node->weight];
    struct cpu_node *own = &program->nodes[number];

    if (model->quantised && model->quantised[number].in_int8)
        return cpu_build_int8(program, number);
    own->source = *input_of(program, number);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->source = cpu_reshape(program, &own->source, true, node->inputs[0]);
    dnnl_primitive_desc_t desc =
        describe_weighted(program, number, cpu_any(&model->dnnl, plain, model->type));
    /* Weights in oneDNN's preferred layout. If that is padded, nothing else can read it and every
     * step would copy the weights back and forth, so the canonical layout is used; not in BF16,
     * where every step copies them anyway. */
    if (program->training && model->type == dnnl_f32 && node->kind == GRAPH_FULLY_CONNECTED &&
        cpu_query(program, desc, dnnl_query_weights_md)->bytes > plain->bytes) {
        dnnl_primitive_desc_destroy(desc);
        desc = describe_weighted(program, number, plain);
    }
    own->forward = desc;
    if (program->code)
        return;
    const struct cpu_layout *source = cpu_query(program, desc, dnnl_query_src_md);
    const struct cpu_layout *wanted = cpu_query(program, desc, dnnl_query_weights_md);
    const struct cpu_layout *target = cpu_query(program, desc, dnnl_query_dst_md);
    own->source = cpu_convert(program, &own->source, source, number);
    own->output =
        own->summand ? *cpu_floats(program, own->summand) : cpu_add_tensor(program, target);
    if (program->training && model->type != dnnl_f32 && !model->homes_known)
        cpu_choose_home(program, number);
    struct cpu_tensor weight = {0}, bias = {0};
    if (own->norm) {
        /* Fold in the BN that follows, again when parameters or running statistics change. That
         * needs the canonical layout, where a channel is contiguous. */
        const uint32_t before = program->step_count;
        const struct cpu_tensor home =
            cpu_foreign(program, model->home[node->weight],
                        model->parameters + model->graph->parameters[node->weight].offset);
        const struct cpu_tensor plain_home = cpu_convert(program, &home, plain, number);
        const struct cpu_tensor folded = cpu_add_tensor(program, plain);
        bias = cpu_add_tensor(program, vector_of(program, node));
        struct cpu_step *step =
            cpu_add_step(program, CPU_FOLD, number, plain_home.buffer, folded.buffer);
        step->other = bias.buffer;
        step->norm = own->norm;
        weight = cpu_convert(program, &folded, wanted, number);
        if (program->code)
            return;
        program->buffers[bias.buffer].place = program->buffers[weight.buffer].place = CPU_KEPT;
        for (uint32_t i = before; i < program->step_count; i++)
            program->steps[i].of_parameters = true;
    } else {
        weight = cpu_parameter(program, node->weight, wanted, number);
        if (node->bias != UINT32_MAX)
            bias = cpu_parameter(program, node->bias, model->canonical[node->bias], number);
    }
    cpu_add_primitive(program, desc, number,
                      CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &own->source}, {DNNL_ARG_WEIGHTS, &weight},
                                       {DNNL_ARG_DST, &own->output}, {DNNL_ARG_BIAS, &bias}));
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->output = cpu_reshape(program, &own->output, false, number);
}

/* ---- one primitive in the input's layout, or of a window ---- */

enum { MORE_MAX = 4 };

/* Add a node's primitive with up to MORE_MAX arguments besides input, output and a workspace, which
 * keeps what the backward pass needs. */
static void build_simple(struct cpu_program *program, uint32_t number,
                         struct cpu_operation operation, const struct cpu_argument *more)
{
    struct cpu_node *own = &program->nodes[number];

    own->source = *input_of(program, number);
    operation.pass = forward_kind(program);
    operation.source = own->source.layout;
    operation.target = output_any(program, number);
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(program, &operation, NULL, number);
    if (program->code)
        return;
    const struct cpu_layout *kept = cpu_query(program, desc, dnnl_query_workspace_md);
    own->output = cpu_add_tensor(program, cpu_query(program, desc, dnnl_query_dst_md));
    if (program->training && kept->bytes > 0)
        own->workspace = cpu_add_tensor(program, kept);
    struct cpu_argument arguments[MORE_MAX + 4] = {{DNNL_ARG_SRC, &own->source},
                                                   {DNNL_ARG_DST, &own->output},
                                                   {DNNL_ARG_WORKSPACE, &own->workspace}};
    for (int i = 0; more && more[i].tensor; i++)
        arguments[3 + i] = more[i];
    cpu_add_primitive(program, desc, number, arguments);
}

static void build_plain(struct cpu_program *program, uint32_t number)
{
    build_simple(program, number, cpu_operation_of(&program->model->graph->nodes[number]), NULL);
}

static void build_norm(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    struct cpu_node *own = &program->nodes[number];
    struct cpu_operation operation = cpu_operation_of(node);
    const struct cpu_layout *vector = vector_of(program, node);
    float *mean = program->model->statistics + node->statistics;
    float *variance = mean + node->shape.channels;
    const bool training = program->training;

    operation.flags |=
        (own->relu ? dnnl_fuse_norm_relu : 0u) | (training ? 0u : dnnl_use_global_stats);
    own->mean = training ? cpu_add_tensor(program, vector) : cpu_foreign(program, vector, mean);
    own->variance =
        training ? cpu_add_tensor(program, vector) : cpu_foreign(program, vector, variance);
    const struct cpu_tensor gamma = cpu_parameter(program, node->gamma, vector, number);
    const struct cpu_tensor beta = cpu_parameter(program, node->beta, vector, number);
    build_simple(program, number, operation,
                 CPU_ARGUMENTS_OF({DNNL_ARG_MEAN, &own->mean}, {DNNL_ARG_VARIANCE, &own->variance},
                                  {DNNL_ARG_SCALE, &gamma}, {DNNL_ARG_SHIFT, &beta}));
    if (training)
        cpu_add_step(program, CPU_STATISTICS, number, own->mean.buffer, own->variance.buffer);
}

static void build_add(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    struct cpu_operation operation = cpu_operation_of(node);
    const struct cpu_tensor *other = cpu_floats(program, node->inputs[1]);
    const struct cpu_tensor second =
        cpu_convert(program, other, input_of(program, number)->layout, number);

    operation.behind = program->nodes[number].relu ? CPU_RELU : 0;
    build_simple(program, number, operation, CPU_ARGUMENTS_OF({DNNL_ARG_SRC_1, &second}));
}

/* ---- other nodes ---- */

static void build_concat(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
    struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *sources[GRAPH_INPUTS_MAX];
    struct cpu_argument arguments[GRAPH_INPUTS_MAX + 2] = {0};

    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct cpu_tensor *input = cpu_floats(program, node->inputs[i]);
        sources[i] = input->layout;
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + (int)i, input};
    }
    own->forward = cpu_describe(program,
                                &(struct cpu_operation){.kind = CPU_CONCAT,
                                                        .target = output_any(program, number),
                                                        .inputs = sources,
                                                        .input_count = (int)node->input_count},
                                NULL, number);
    own->output = cpu_add_tensor(program, cpu_query(program, own->forward, dnnl_query_dst_md));
    arguments[node->input_count] = (struct cpu_argument){DNNL_ARG_DST, &own->output};
    cpu_add_primitive(program, own->forward, number, arguments);
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
    const struct cpu_layout *plain = cpu_plain_images(program, number, dnnl_f32);
    own->source = cpu_convert(program, input, plain, number);
    own->output = cpu_add_tensor(program, plain);
    cpu_add_step(program, CPU_DROPOUT, number, own->source.buffer, own->output.buffer);
    own->output = cpu_convert(program, &own->output,
                              cpu_plain_images(program, number, program->model->type), number);
}

/* ---- the whole pass ---- */

static void build_input(struct cpu_program *program, uint32_t number)
{
    struct cpu_tensor *images = &program->nodes[number].output;

    *images = cpu_add_tensor(program, cpu_plain_images(program, number, dnnl_f32));
    cpu_add_step(program, CPU_NORMALISE, number, UINT32_MAX, images->buffer);
    *images = cpu_convert(program, images, cpu_plain_images(program, number, program->model->type),
                          number);
}

void cpu_build_forward(struct cpu_program *program)
{
    static void (*const build[])(struct cpu_program * program, uint32_t number) = {
        [GRAPH_INPUT] = build_input,
        [GRAPH_CONVOLUTION] = build_weighted,
        [GRAPH_FULLY_CONNECTED] = build_weighted,
        [GRAPH_BATCH_NORM] = build_norm,
        [GRAPH_RELU] = build_plain,
        [GRAPH_MAX_POOL] = build_plain,
        [GRAPH_AVERAGE_POOL] = build_plain,
        [GRAPH_LRN] = build_plain,
        [GRAPH_ADD] = build_add,
        [GRAPH_CONCAT] = build_concat,
        [GRAPH_DROPOUT] = build_dropout,
    };
    const struct graph *graph = program->model->graph;
    const uint32_t last = graph->node_count - 1;

    for (uint32_t i = 0; i < graph->node_count && !program->code; i++) {
        const struct graph_node *node = &graph->nodes[i];
        struct cpu_node *own = &program->nodes[i];
        if (own->absorbed) { /* computed by another node: for a sum, by its last input */
            uint32_t from = node->inputs[0];
            for (uint32_t j = 1; j < node->input_count; j++)
                from = node->inputs[j] > from ? node->inputs[j] : from;
            own->output = program->nodes[from].output;
            own->floats = program->nodes[from].floats;
        } else {
            build[node->kind](program, i);
        }
        if (i == 0)
            continue; /* the images are neither observed nor held in INT8 */
        if (program->model->calibration && !own->hidden && !(own->output.step > 0) &&
            !program->code) { /* padding of channel blocks is zero */
            const uint32_t output = own->output.buffer;
            cpu_add_step(program, CPU_OBSERVE, i, output, output)->floats =
                own->output.layout->bytes / sizeof(float);
        }
        cpu_hold_as_planned(program, i);
    }
    if (program->code)
        return;
    /* The loss reads rows of logits and writes rows of their gradients. */
    struct cpu_node *own = &program->nodes[last];
    const struct cpu_layout *plain = cpu_plain_images(program, last, dnnl_f32);
    const struct cpu_tensor logits = cpu_convert(program, cpu_floats(program, last), plain, last);
    uint32_t target = UINT32_MAX;
    if (program->training) {
        own->gradients[own->gradient_count] = cpu_add_tensor(program, plain);
        target = own->gradients[own->gradient_count++].buffer;
    }
    cpu_add_step(program, CPU_LOSS, last, logits.buffer, target);
}
