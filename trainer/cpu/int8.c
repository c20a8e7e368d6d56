/* SPDX-License-Identifier: Apache-2.0
 *
 * INT8 convolutions. A program contains their quantised weights and a factor per channel, so it is
 * built after the parameters are loaded. A node with a step is stored in INT8 only; FP32 consumers
 * convert it. A residual sum is fused into the convolution and computed in place.
 */
#include "trainer/cpu/cpu.h"

/* A node's output in NHWC, which INT8 convolutions prefer. */
static const struct cpu_layout *pixels_of(const struct cpu_program *program, uint32_t number,
                                          dnnl_data_type_t type)
{
    const struct graph_shape *shape = &program->model->graph->nodes[number].shape;

    return cpu_tagged(
        &program->model->dnnl, 4,
        (const dnnl_dims_t){program->count, shape->channels, shape->height, shape->width}, type,
        dnnl_acdb);
}

static struct cpu_tensor change(struct cpu_program *program, const struct cpu_tensor *from,
                                float step, uint32_t number)
{
    struct cpu_tensor to =
        cpu_add_tensor(program, pixels_of(program, number, step > 0 ? dnnl_s8 : dnnl_f32));

    to.step = step;
    cpu_add_reorder(program, from, &to, number);
    return to;
}

const struct cpu_tensor *cpu_floats(struct cpu_program *program, uint32_t number)
{
    struct cpu_node *own = &program->nodes[number];

    if (!(own->output.step > 0))
        return &own->output;
    if (!own->floats.layout)
        own->floats = change(program, &own->output, 0, number);
    return &own->floats;
}

void cpu_hold_as_planned(struct cpu_program *program, uint32_t number)
{
    const struct quantise_node *quantised = program->model->quantised;
    struct cpu_node *own = &program->nodes[number];

    if (quantised && quantised[number].step > 0 && !own->hidden && !(own->output.step > 0))
        own->output = change(program, &own->output, quantised[number].step, number);
}

void cpu_build_int8(struct cpu_program *program, uint32_t number)
{
    static const dnnl_format_tag_t tags[] = {[4] = dnnl_abcd, [5] = dnnl_abcde};
    struct cpu_model *model = program->model;
    struct cpu_dnnl *dnnl = &model->dnnl;
    const struct graph *graph = model->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct graph_parameter *parameter = &graph->parameters[node->weight];
    const struct cpu_layout *plain = model->canonical[node->weight];
    struct cpu_node *own = &program->nodes[number];
    const dnnl_dim_t channels = node->shape.channels;
    const uint64_t vector = node->shape.channels * sizeof(float);
    uint32_t end = number; /* the node whose output the primitive writes */

    while (program->nodes[end].hidden)
        end = graph->nodes[end].consumer;
    const float step = model->quantised[end].step, unit = step > 0 ? step : 1;
    const dnnl_data_type_t type = step > 0 ? dnnl_s8 : dnnl_f32;
    struct cpu_scaling scaling = {.argument = DNNL_ARG_WEIGHTS,
                                  .count = (int)channels,
                                  .grouped = node->groups > 1,
                                  .summand = 1};
    own->source = program->nodes[node->inputs[0]].output;
    struct cpu_operation operation = cpu_operation_of(node);
    operation.pass = dnnl_forward_inference;
    operation.behind = (own->relu ? CPU_RELU : 0u) | (own->summand ? CPU_ACCUMULATE : 0u);
    operation.source = cpu_any(dnnl, own->source.layout, own->source.layout->type);
    operation.weight = cpu_tagged(dnnl, plain->ndims, plain->dims, dnnl_s8, dnnl_format_tag_any);
    operation.target = cpu_any(dnnl, pixels_of(program, number, type), type);
    operation.bias = cpu_plain(dnnl, 1, &channels);
    operation.scaling = &scaling;
    if (own->summand) { /* accumulate into it: in INT8 with that step, or in FP32 */
        const struct cpu_tensor *summand = &program->nodes[own->summand].output;
        if (!(step > 0))
            own->output = *cpu_floats(program, own->summand);
        else
            own->output =
                summand->step > 0 ? *summand : change(program, summand, step, own->summand);
        operation.target = own->output.layout;
        scaling.summand = (step > 0 ? own->output.step : 1) / unit;
    }
    own->output.step = step;

    /* Constants of the program: canonical weights; per channel, a factor of its sum. */
    int8_t *quantised = cpu_add_constant(program, parameter->count);
    float *factors = cpu_add_constant(program, vector), *bias = cpu_add_constant(program, vector);
    if (!program->code)
        program->code =
            quantise_layer(graph, number, own->norm, model->parameters, model->statistics,
                           model->parameters + parameter->offset, quantised, factors, bias);
    for (uint32_t i = 0; !program->code && i < node->shape.channels; i++) {
        factors[i] *= own->source.step;
        bias[i] /= CPU_SCALES_TAKE_BIAS ? factors[i] : unit;
        factors[i] /= unit;
    }
    scaling.factors = factors;
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(program, &operation, NULL, number);
    if (program->code)
        return;
    own->source =
        cpu_convert(program, &own->source, cpu_query(program, desc, dnnl_query_src_md), number);
    const struct cpu_tensor given = cpu_foreign(
        program, cpu_tagged(dnnl, plain->ndims, plain->dims, dnnl_s8, tags[plain->ndims]),
        quantised);
    const struct cpu_tensor weight =
        cpu_convert_once(program, &given, cpu_query(program, desc, dnnl_query_weights_md), number);
    const struct cpu_tensor offset = cpu_foreign(program, operation.bias, bias);
    const struct cpu_tensor scales = cpu_add_scales(program, &scaling);
    if (!own->summand) {
        own->output = cpu_add_tensor(program, cpu_query(program, desc, dnnl_query_dst_md));
        own->output.step = step;
    }
    cpu_add_primitive(program, desc, number,
                      CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &own->source}, {DNNL_ARG_WEIGHTS, &weight},
                                       {DNNL_ARG_BIAS, &offset}, {DNNL_ARG_DST, &own->output},
                                       {cpu_dnnl_scales_argument(&scaling), &scales}));
}
