/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes programs: which nodes are fused, the steps of each node in the graph's order, and for
 * training those of the backward pass in reverse order. When a node's turn comes there, each of its
 * consumers has added a gradient of its output; their sum is propagated.
 */
#include "trainer/cpu/cpu.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct graph_node *node_of(const struct cpu_program *program, uint32_t number)
{
    return &program->model->graph->nodes[number];
}

/* Reserve space for one more element; keep an error in the program. */
static bool grow_rows(struct cpu_program *program, void *rows, uint32_t count, size_t bytes)
{
    if (program->code == 0)
        program->code = memory_room(rows, count, bytes, "parts of a program");
    return program->code == 0;
}

static void check_layouts(struct cpu_program *program)
{
    if (program->code == 0 && program->model->dnnl.code)
        program->code = fail(-program->model->dnnl.code, "backend cpu: out of memory for layouts");
}

static void keep_status(struct cpu_program *program, dnnl_status_t status, uint32_t node)
{
    if (status == dnnl_success)
        return;
    check_layouts(program);
    if (program->code == 0)
        program->code = cpu_check(status, program->model->graph->nodes[node].name);
}

/* Call oneDNN for a node, unless an error is kept; keep its own. */
#define TRY(PROGRAM, NODE, CALL)              \
    do {                                      \
        if ((PROGRAM)->code == 0)             \
            keep_status(PROGRAM, CALL, NODE); \
    } while (0)

/* ---- buffers and tensors ---- */

static uint32_t add_buffer(struct cpu_program *program, enum cpu_place place, uint64_t bytes,
                           void *address)
{
    if (!grow_rows(program, &program->buffers, program->buffer_count, sizeof *program->buffers))
        return 0;
    program->buffers[program->buffer_count] = (struct cpu_buffer){
        .place = place, .life = {.first = UINT32_MAX, .bytes = bytes}, .address = address};
    return program->buffer_count++;
}

static struct cpu_tensor add_tensor(struct cpu_program *program, const struct cpu_layout *layout)
{
    return (struct cpu_tensor){.layout = layout,
                               .buffer = add_buffer(program, CPU_ARENA, layout->bytes, NULL)};
}

static struct cpu_tensor foreign(struct cpu_program *program, const struct cpu_layout *layout,
                                 void *address)
{
    return (struct cpu_tensor){.layout = layout,
                               .buffer = add_buffer(program, CPU_FOREIGN, 0, address)};
}

/* Zeroed memory freed with the program. NULL after an error. */
static void *add_constant(struct cpu_program *program, uint64_t bytes)
{
    struct cpu_constant *constant = NULL;

    if (program->code)
        return NULL;
    if (posix_memalign((void **)&constant, 64, sizeof *constant + bytes)) {
        program->code =
            fail(ENOMEM, "out of memory for a program of %u steps", program->step_count);
        return NULL;
    }
    memset(constant, 0, sizeof *constant + bytes);
    constant->next = program->constants;
    program->constants = constant;
    return constant->bytes;
}

/* The scales that a primitive takes as an argument; layout NULL if it takes none. */
static struct cpu_tensor add_scales(struct cpu_program *program, const struct cpu_scaling *scaling)
{
    const dnnl_dim_t count = scaling->count;

    if (!cpu_dnnl_scales_argument(scaling))
        return (struct cpu_tensor){0};
    float *factors = add_constant(program, (uint64_t)count * sizeof *factors);
    if (factors)
        memcpy(factors, scaling->factors, (uint64_t)count * sizeof *factors);
    return foreign(program, cpu_plain(&program->model->dnnl, 1, &count), factors);
}

/* Extend the buffer's lifetime to the next step added. */
static void touch_buffer(struct cpu_program *program, uint32_t buffer)
{
    if (program->code || buffer >= program->buffer_count)
        return;
    struct lifetime *life = &program->buffers[buffer].life;
    if (life->first == UINT32_MAX)
        life->first = program->step_count;
    life->last = program->step_count;
}

/* ---- steps ---- */

/* Add a step of our own. The result is valid until the next one is added. */
static struct cpu_step *add_step(struct cpu_program *program, enum cpu_step_kind kind,
                                 uint32_t node, uint32_t source, uint32_t target)
{
    static struct cpu_step nowhere; /* written after an error, never read */

    touch_buffer(program, source);
    touch_buffer(program, target);
    if (!grow_rows(program, &program->steps, program->step_count, sizeof *program->steps))
        return &nowhere;
    struct cpu_step *step = &program->steps[program->step_count++];
    *step = (struct cpu_step){.kind = kind, .node = node, .source = source, .target = target};
    return step;
}

static dnnl_memory_t add_memory(struct cpu_program *program, const struct cpu_tensor *tensor,
                                uint32_t node)
{
    dnnl_memory_t memory = NULL;

    if (!grow_rows(program, &program->memories, program->memory_count, sizeof *program->memories))
        return NULL;
    TRY(program, node,
        dnnl_memory_create(&memory, tensor->layout->raw, program->model->dnnl.engine,
                           DNNL_MEMORY_NONE));
    if (memory)
        program->memories[program->memory_count++] =
            (struct cpu_memory){.memory = memory, .buffer = tensor->buffer};
    return memory;
}

/* The layout a primitive expects or produces; empty after an error. */
static const struct cpu_layout *query_layout(const struct cpu_program *program,
                                             dnnl_primitive_desc_t desc, dnnl_query_t what)
{
    static const struct cpu_layout empty;

    return program->code ? &empty : cpu_layout_of(&program->model->dnnl, desc, what);
}

struct cpu_argument {
    int name; /* DNNL_ARG_ */
    const struct cpu_tensor *tensor;
};
#define CPU_ARGUMENTS_OF(...) ((const struct cpu_argument[]){__VA_ARGS__, {0}})

/* Add a primitive and its step. The list of arguments ends with an empty row; tensors without a
 * layout are left out. */
static void add_primitive(struct cpu_program *program, dnnl_primitive_desc_t desc, uint32_t node,
                          const struct cpu_argument *arguments)
{
    struct cpu_step step = {.kind = CPU_PRIMITIVE, .node = node};

    if (program->code == 0) /* one may take oneDNN a second */
        program->code = tick_ask(program->model->config.tick);
    if (program->code)
        return;
    TRY(program, node, dnnl_primitive_create(&step.primitive, desc));
    for (; arguments->tensor; arguments++) {
        if (!arguments->tensor->layout)
            continue;
        assert(step.argument_count < CPU_ARGUMENTS - 1);
        touch_buffer(program, arguments->tensor->buffer);
        step.arguments[step.argument_count++] =
            (dnnl_exec_arg_t){arguments->name, add_memory(program, arguments->tensor, node)};
    }
    const struct cpu_tensor scratch = {.layout =
                                           query_layout(program, desc, dnnl_query_scratchpad_md),
                                       .buffer = program->scratch};
    if (scratch.layout->bytes > 0) {
        struct lifetime *life = &program->buffers[program->scratch].life;
        life->bytes = scratch.layout->bytes > life->bytes ? scratch.layout->bytes : life->bytes;
        step.arguments[step.argument_count++] =
            (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, add_memory(program, &scratch, node)};
    }
    struct cpu_step *added = add_step(program, CPU_PRIMITIVE, node, UINT32_MAX, UINT32_MAX);
    if (program->code)
        dnnl_primitive_destroy(step.primitive);
    else
        *added = step;
}

/* The scratchpad is user-managed, so running allocates nothing. */
static dnnl_primitive_attr_t attributes_of(struct cpu_program *program, unsigned behind,
                                           const struct cpu_scaling *scaling, uint32_t node)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t list = NULL;

    TRY(program, node, dnnl_primitive_attr_create(&attributes));
    TRY(program, node,
        dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    if (scaling)
        TRY(program, node, cpu_dnnl_scale(attributes, scaling));
    if (!behind)
        return attributes;
    TRY(program, node, dnnl_post_ops_create(&list));
    TRY(program, node, cpu_dnnl_append(list, behind, scaling ? scaling->summand : 1));
    TRY(program, node, dnnl_primitive_attr_set_post_ops(attributes, list));
    dnnl_post_ops_destroy(list);
    return attributes;
}

/* Create a primitive descriptor. NULL after an error. */
static dnnl_primitive_desc_t describe(struct cpu_program *program,
                                      const struct cpu_operation *operation,
                                      dnnl_primitive_desc_t hint, uint32_t node)
{
    dnnl_primitive_desc_t desc = NULL;

    if (program->code)
        return NULL;
    dnnl_primitive_attr_t attributes =
        attributes_of(program, operation->behind, operation->scaling, node);
    TRY(program, node,
        cpu_dnnl_describe(&program->model->dnnl, operation, attributes, hint, &desc));
    dnnl_primitive_attr_destroy(attributes);
    return desc;
}

/* ---- layouts ---- */

static void add_reorder(struct cpu_program *program, const struct cpu_tensor *from,
                        const struct cpu_tensor *to, uint32_t node)
{
    const float factor = (from->step > 0 ? from->step : 1) / (to->step > 0 ? to->step : 1);
    const struct cpu_scaling scaling = {.argument = DNNL_ARG_FROM, .count = 1, .factors = &factor};
    const bool scales = from->step != to->step; /* NOLINT: both are copies of one number */
    const struct cpu_tensor factors =
        scales ? add_scales(program, &scaling) : (struct cpu_tensor){0};
    dnnl_primitive_attr_t attributes = attributes_of(program, 0, scales ? &scaling : NULL, node);
    const dnnl_engine_t engine = program->model->dnnl.engine;
    dnnl_primitive_desc_t desc = NULL;

    TRY(program, node,
        dnnl_reorder_primitive_desc_create(&desc, from->layout->raw, engine, to->layout->raw,
                                           engine, attributes));
    add_primitive(program, desc, node,
                  CPU_ARGUMENTS_OF({DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to},
                                   {cpu_dnnl_scales_argument(&scaling), &factors}));
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attributes);
}

/* The tensor in that layout; unchanged if it has it already. */
static struct cpu_tensor convert(struct cpu_program *program, const struct cpu_tensor *tensor,
                                 const struct cpu_layout *wanted, uint32_t node)
{
    if (program->code || tensor->layout == wanted)
        return *tensor;
    struct cpu_tensor converted = add_tensor(program, wanted);
    converted.step = tensor->step;
    add_reorder(program, tensor, &converted, node);
    return converted;
}

/* The same for a tensor that depends on parameters only: converted once per change. */
static struct cpu_tensor convert_once(struct cpu_program *program, const struct cpu_tensor *tensor,
                                      const struct cpu_layout *wanted, uint32_t node)
{
    const struct cpu_tensor converted = convert(program, tensor, wanted, node);

    if (program->code || converted.buffer == tensor->buffer)
        return converted;
    program->buffers[converted.buffer].place = CPU_KEPT;
    program->steps[program->step_count - 1].of_parameters = true;
    return converted;
}

/* ---- parameters ---- */

/* A parameter in the layout that a primitive expects. */
static struct cpu_tensor add_parameter(struct cpu_program *program, uint32_t parameter,
                                       const struct cpu_layout *wanted, uint32_t node)
{
    struct cpu_model *model = program->model;

    if (program->code)
        return (struct cpu_tensor){0};
    const struct graph_parameter *row = &model->graph->parameters[parameter];
    if (!model->homes_known && wanted->type == dnnl_f32 &&
        wanted->bytes == row->count * sizeof(float))
        model->home[parameter] = wanted;
    struct cpu_tensor home =
        foreign(program, model->home[parameter], model->parameters + row->offset);
    if (program->code || home.layout == wanted)
        return home;
    return program->training ? convert(program, &home, wanted, node)
                             : convert_once(program, &home, wanted, node);
}

/* Tensor into which a primitive that produces this layout writes a parameter's gradient; and the
 * reorder to its home layout. */
static struct cpu_tensor add_gradient(struct cpu_program *program, uint32_t parameter,
                                      const struct cpu_layout *given)
{
    const struct cpu_model *model = program->model;

    if (model->home[parameter] == given)
        return foreign(program, given,
                       model->gradients + model->graph->parameters[parameter].offset);
    return add_tensor(program, given);
}

static void finish_gradient(struct cpu_program *program, uint32_t parameter,
                            const struct cpu_tensor *gradient, uint32_t node)
{
    const struct cpu_model *model = program->model;

    if (program->code || program->buffers[gradient->buffer].place == CPU_FOREIGN)
        return;
    struct cpu_tensor home = foreign(program, model->home[parameter],
                                     model->gradients + model->graph->parameters[parameter].offset);
    add_reorder(program, gradient, &home, node);
}

/* ---- nodes as layouts and windows, for all passes ---- */

/* A node's output as images: canonical (dnnl_abcd), or in NHWC (dnnl_acdb), which INT8 convolutions
 * prefer. */
static const struct cpu_layout *images_of(const struct cpu_program *program, uint32_t number,
                                          dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    const struct graph_shape *shape = &node_of(program, number)->shape;

    return cpu_tagged(
        &program->model->dnnl, 4,
        (const dnnl_dims_t){program->count, shape->channels, shape->height, shape->width}, type,
        tag);
}

/* The same as rows, for a fully connected layer. */
static const struct cpu_layout *plain_rows(const struct cpu_program *program, uint32_t number,
                                           dnnl_data_type_t type)
{
    const struct graph_shape *shape = &program->model->graph->nodes[number].shape;

    return cpu_dense(&program->model->dnnl, 2,
                     (const dnnl_dims_t){program->count, (dnnl_dim_t)shape->channels *
                                                             shape->height * shape->width},
                     type);
}

/* A node's output as rows, for a fully connected layer, or back as planes. */
static struct cpu_tensor reshape(struct cpu_program *program, const struct cpu_tensor *tensor,
                                 bool to_rows, uint32_t number)
{
    const dnnl_data_type_t type = tensor->layout->type;
    const struct cpu_layout *images = images_of(program, number, type, dnnl_abcd);
    const struct cpu_layout *rows = plain_rows(program, number, type);
    struct cpu_tensor plain = convert(program, tensor, to_rows ? images : rows, number);

    plain.layout = to_rows ? rows : images;
    return plain;
}

/* Operation of a node in the forward pass, without layouts. */
static struct cpu_operation operation_of(const struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = node_of(program, number);
    static const enum cpu_operation_kind kinds[] = {[GRAPH_CONVOLUTION] = CPU_CONVOLUTION,
                                                    [GRAPH_FULLY_CONNECTED] = CPU_INNER_PRODUCT,
                                                    [GRAPH_BATCH_NORM] = CPU_NORM,
                                                    [GRAPH_RELU] = CPU_ELTWISE,
                                                    [GRAPH_MAX_POOL] = CPU_POOL,
                                                    [GRAPH_AVERAGE_POOL] = CPU_POOL,
                                                    [GRAPH_LRN] = CPU_LRN,
                                                    [GRAPH_ADD] = CPU_ADD};
    const struct kernel_window *window = &node->window;
    const dnnl_alg_kind_t algorithm = node->kind == GRAPH_RELU       ? dnnl_eltwise_relu
                                      : node->kind == GRAPH_MAX_POOL ? dnnl_pooling_max
                                      : window->count_padding ? dnnl_pooling_avg_include_padding
                                                              : dnnl_pooling_avg_exclude_padding;

    return (struct cpu_operation){.kind = kinds[node->kind],
                                  .pass = program->training ? dnnl_forward_training
                                                            : dnnl_forward_inference,
                                  .algorithm = algorithm,
                                  .window = {.strides = {window->stride, window->stride},
                                             .sides = {window->height, window->width},
                                             .before = {window->pad_top, window->pad_left},
                                             .behind = {window->pad_bottom, window->pad_right}},
                                  .epsilon = (float)node->epsilon,
                                  .flags = dnnl_use_scale | dnnl_use_shift,
                                  .size = node->lrn.size,
                                  .alpha = (float)node->lrn.alpha,
                                  .beta = (float)node->lrn.beta,
                                  .k = (float)node->lrn.k};
}

/* ---- the forward pass ---- */

static struct cpu_tensor change(struct cpu_program *program, const struct cpu_tensor *from,
                                float step, uint32_t number)
{
    struct cpu_tensor to =
        add_tensor(program, images_of(program, number, step > 0 ? dnnl_s8 : dnnl_f32, dnnl_acdb));

    to.step = step;
    add_reorder(program, from, &to, number);
    return to;
}

/* Return a node's output in floating point, however it is stored. */
static const struct cpu_tensor *floats_of(struct cpu_program *program, uint32_t number)
{
    struct cpu_node *own = &program->nodes[number];

    if (!(own->output.step > 0))
        return &own->output;
    if (!own->floats.layout)
        own->floats = change(program, &own->output, 0, number);
    return &own->floats;
}

static const struct cpu_layout *output_any(const struct cpu_program *program, uint32_t number)
{
    const dnnl_data_type_t type = program->model->type;

    return cpu_any(&program->model->dnnl, images_of(program, number, type, dnnl_abcd), type);
}

static const struct cpu_layout *vector_of(const struct cpu_program *program,
                                          const struct graph_node *node)
{
    return cpu_plain(&program->model->dnnl, 1, (const dnnl_dims_t){node->shape.channels});
}

/* The output of the node's first input. */
static const struct cpu_tensor *input_of(struct cpu_program *program, uint32_t number)
{
    return floats_of(program, node_of(program, number)->inputs[0]);
}

/* ---- convolution and fully connected ---- */

/* Build a node in INT8, with the nodes fused into it. A program contains its quantised weights and
 * a factor per channel, so it is built after the parameters are loaded. A node with a step is
 * stored in INT8 only; FP32 consumers convert it. A residual sum is fused into the convolution and
 * computed in place. */
static void build_int8(struct cpu_program *program, uint32_t number)
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
                                  .grouped = node->window.groups > 1,
                                  .summand = 1};
    own->source = program->nodes[node->inputs[0]].output;
    struct cpu_operation operation = operation_of(program, number);
    operation.behind = (own->relu ? CPU_RELU : 0u) | (own->summand ? CPU_ACCUMULATE : 0u);
    operation.source = cpu_any(dnnl, own->source.layout, own->source.layout->type);
    operation.weight = cpu_tagged(dnnl, plain->ndims, plain->dims, dnnl_s8, dnnl_format_tag_any);
    operation.target = cpu_any(dnnl, images_of(program, number, type, dnnl_acdb), type);
    operation.bias = cpu_plain(dnnl, 1, &channels);
    operation.scaling = &scaling;
    if (own->summand) { /* accumulate into it: in INT8 with that step, or in FP32 */
        const struct cpu_tensor *summand = &program->nodes[own->summand].output;
        if (!(step > 0))
            own->output = *floats_of(program, own->summand);
        else
            own->output =
                summand->step > 0 ? *summand : change(program, summand, step, own->summand);
        operation.target = own->output.layout;
        scaling.summand = (step > 0 ? own->output.step : 1) / unit;
    }
    own->output.step = step;

    /* Constants of the program: canonical weights; per channel, a factor of its sum. */
    int8_t *quantised = add_constant(program, parameter->count);
    float *factors = add_constant(program, vector), *bias = add_constant(program, vector);
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
    dnnl_primitive_desc_t desc = own->forward = describe(program, &operation, NULL, number);
    if (program->code)
        return;
    own->source =
        convert(program, &own->source, query_layout(program, desc, dnnl_query_src_md), number);
    const struct cpu_tensor given =
        foreign(program, cpu_tagged(dnnl, plain->ndims, plain->dims, dnnl_s8, tags[plain->ndims]),
                quantised);
    const struct cpu_tensor weight =
        convert_once(program, &given, query_layout(program, desc, dnnl_query_weights_md), number);
    const struct cpu_tensor offset = foreign(program, operation.bias, bias);
    const struct cpu_tensor scales = add_scales(program, &scaling);
    if (!own->summand) {
        own->output = add_tensor(program, query_layout(program, desc, dnnl_query_dst_md));
        own->output.step = step;
    }
    add_primitive(program, desc, number,
                  CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &own->source}, {DNNL_ARG_WEIGHTS, &weight},
                                   {DNNL_ARG_BIAS, &offset}, {DNNL_ARG_DST, &own->output},
                                   {cpu_dnnl_scales_argument(&scaling), &scales}));
}

/* Describe it in the layouts that oneDNN prefers; only FP32 weights stored in the canonical layout
 * keep that. */
static dnnl_primitive_desc_t describe_weighted_backward(struct cpu_program *program,
                                                        uint32_t number, dnnl_prop_kind_t pass,
                                                        const struct cpu_layout *gradient)
{
    struct cpu_model *model = program->model;
    const struct graph_node *node = node_of(program, number);
    const struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *plain = model->canonical[node->weight];
    const bool keeps = model->type == dnnl_f32 && node->kind != GRAPH_CONVOLUTION &&
                       model->home[node->weight] == plain;
    struct cpu_operation operation = operation_of(program, number);

    operation.pass = pass;
    operation.source = cpu_any(&model->dnnl, own->source.layout, model->type);
    operation.weight = keeps ? plain
                             : cpu_any(&model->dnnl, plain,
                                       pass == dnnl_backward_weights ? dnnl_f32 : model->type);
    operation.bias = node->bias == UINT32_MAX ? NULL : model->canonical[node->bias];
    operation.target = cpu_any(&model->dnnl, gradient, model->type);
    return describe(program, &operation, own->forward, number);
}

static const struct cpu_layout *channels_last(const struct cpu_program *program,
                                              const struct cpu_layout *layout)
{
    return cpu_tagged(&program->model->dnnl, layout->ndims, layout->dims, layout->type, dnnl_nhwc);
}

/* Is the gradient of the node's weights, whose forward primitive is there, a product of matrices?
 * Where a convolution has single pixels and its tensors are rows of channels (NHWC), its gradient
 * is that of a fully connected layer with a row per pixel. With AMX oneDNN computes that in a
 * fraction of the instructions: its convolutions rearrange the input for each block of output
 * channels (docs/training.md, "BF16 on CPUs"). */
static bool is_product(const struct cpu_program *program, uint32_t number)
{
    const struct cpu_model *model = program->model;
    const struct cpu_layout *source = program->nodes[number].source.layout;
    const struct cpu_layout *target = program->nodes[number].output.layout;
    const struct graph_node *node = node_of(program, number);
    const struct kernel_window *window = &node->window;

    if (program->code || node->kind != GRAPH_CONVOLUTION || node->window.groups > 1 ||
        window->height != 1 || window->width != 1 || window->stride != 1 || window->pad_top ||
        window->pad_left || window->pad_bottom || window->pad_right)
        return false;
    if (model->weight_gradients != CPU_GRADIENTS_AUTO)
        return model->weight_gradients == CPU_GRADIENTS_PRODUCTS;
    return model->type == dnnl_bf16 && source == channels_last(program, source) &&
           target == channels_last(program, target);
}

static dnnl_primitive_desc_t describe_weighted(struct cpu_program *program, uint32_t number,
                                               const struct cpu_layout *weight)
{
    const struct graph_node *node = node_of(program, number);
    const struct cpu_node *own = &program->nodes[number];
    const dnnl_data_type_t type = program->model->type;
    const bool is_last = number + 1 == program->model->graph->node_count; /* logits are FP32 */
    struct cpu_operation operation = operation_of(program, number);

    operation.behind = (own->relu ? CPU_RELU : 0u) | (own->summand ? CPU_ACCUMULATE : 0u);
    operation.source = cpu_any(&program->model->dnnl, own->source.layout, type);
    operation.weight = weight;
    if (node->bias != UINT32_MAX || own->norm)
        operation.bias = vector_of(program, node);
    if (own->summand)
        operation.target = floats_of(program, own->summand)->layout;
    else if (node->kind == GRAPH_FULLY_CONNECTED)
        operation.target = plain_rows(program, number, is_last ? dnnl_f32 : type);
    else
        operation.target = output_any(program, number);
    return describe(program, &operation, NULL, number);
}

static void build_weighted(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = node_of(program, number);
    struct cpu_model *model = program->model;
    const struct cpu_layout *plain = model->canonical[node->weight];
    struct cpu_node *own = &program->nodes[number];

    if (model->quantised && model->quantised[number].in_int8)
        return build_int8(program, number);
    own->source = *input_of(program, number);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->source = reshape(program, &own->source, true, node->inputs[0]);
    dnnl_primitive_desc_t desc =
        describe_weighted(program, number, cpu_any(&model->dnnl, plain, model->type));
    /* Weights in oneDNN's preferred layout. If that is padded, nothing else can read it and every
     * step would copy the weights back and forth, so the canonical layout is used; not in BF16,
     * where every step copies them anyway. */
    if (program->training && model->type == dnnl_f32 && node->kind == GRAPH_FULLY_CONNECTED &&
        query_layout(program, desc, dnnl_query_weights_md)->bytes > plain->bytes) {
        dnnl_primitive_desc_destroy(desc);
        desc = describe_weighted(program, number, plain);
    }
    own->forward = desc;
    if (program->code)
        return;
    const struct cpu_layout *source = query_layout(program, desc, dnnl_query_src_md);
    const struct cpu_layout *wanted = query_layout(program, desc, dnnl_query_weights_md);
    const struct cpu_layout *target = query_layout(program, desc, dnnl_query_dst_md);
    own->source = convert(program, &own->source, source, number);
    own->output = own->summand ? *floats_of(program, own->summand) : add_tensor(program, target);
    if (program->training && model->type != dnnl_f32 && !model->homes_known &&
        !is_product(program, number)) { /* store the weights in the layout of their gradient */
        dnnl_primitive_desc_t back =
            describe_weighted_backward(program, number, dnnl_backward_weights, own->output.layout);
        const struct cpu_layout *gradient = query_layout(program, back, dnnl_query_diff_weights_md);
        if (!program->code && gradient->bytes == plain->bytes)
            model->home[node->weight] = gradient;
        dnnl_primitive_desc_destroy(back);
    }
    struct cpu_tensor weight = {0}, bias = {0};
    if (own->norm) {
        /* Fold in the BN that follows, again when parameters or running statistics change. That
         * needs the canonical layout, where a channel is contiguous. */
        const uint32_t before = program->step_count;
        const struct cpu_tensor home =
            foreign(program, model->home[node->weight],
                    model->parameters + model->graph->parameters[node->weight].offset);
        const struct cpu_tensor plain_home = convert(program, &home, plain, number);
        const struct cpu_tensor folded = add_tensor(program, plain);
        bias = add_tensor(program, vector_of(program, node));
        struct cpu_step *step =
            add_step(program, CPU_FOLD, number, plain_home.buffer, folded.buffer);
        step->other = bias.buffer;
        step->norm = own->norm;
        weight = convert(program, &folded, wanted, number);
        if (program->code)
            return;
        program->buffers[bias.buffer].place = program->buffers[weight.buffer].place = CPU_KEPT;
        for (uint32_t i = before; i < program->step_count; i++)
            program->steps[i].of_parameters = true;
    } else {
        weight = add_parameter(program, node->weight, wanted, number);
        if (node->bias != UINT32_MAX)
            bias = add_parameter(program, node->bias, model->canonical[node->bias], number);
    }
    add_primitive(program, desc, number,
                  CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &own->source}, {DNNL_ARG_WEIGHTS, &weight},
                                   {DNNL_ARG_DST, &own->output}, {DNNL_ARG_BIAS, &bias}));
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->output = reshape(program, &own->output, false, number);
}

/* ---- one primitive in the input's layout, or of a window ---- */

enum { MORE_MAX = 7 };

/* Add a node's primitive with up to MORE_MAX arguments besides input, output and a workspace, which
 * keeps what the backward pass needs. */
static void build_simple(struct cpu_program *program, uint32_t number,
                         struct cpu_operation operation, const struct cpu_argument *more)
{
    struct cpu_node *own = &program->nodes[number];

    own->source = *input_of(program, number);
    operation.source = own->source.layout;
    operation.target = output_any(program, number);
    dnnl_primitive_desc_t desc = own->forward = describe(program, &operation, NULL, number);
    if (program->code)
        return;
    const struct cpu_layout *kept = query_layout(program, desc, dnnl_query_workspace_md);
    own->output = add_tensor(program, query_layout(program, desc, dnnl_query_dst_md));
    if (program->training && kept->bytes > 0)
        own->workspace = add_tensor(program, kept);
    struct cpu_argument arguments[MORE_MAX + 4] = {{DNNL_ARG_SRC, &own->source},
                                                   {DNNL_ARG_DST, &own->output},
                                                   {DNNL_ARG_WORKSPACE, &own->workspace}};
    for (int i = 0; more && more[i].tensor; i++)
        arguments[3 + i] = more[i];
    add_primitive(program, desc, number, arguments);
}

static void build_plain(struct cpu_program *program, uint32_t number)
{
    build_simple(program, number, operation_of(program, number), NULL);
}

static void build_norm(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = node_of(program, number);
    struct cpu_node *own = &program->nodes[number];
    struct cpu_operation operation = operation_of(program, number);
    const struct cpu_layout *vector = vector_of(program, node);
    float *mean = program->model->statistics + node->statistics;
    float *variance = mean + node->shape.channels;
    const bool training = program->training;

    operation.flags |=
        (own->relu ? dnnl_fuse_norm_relu : 0u) | (training ? 0u : dnnl_use_global_stats);
    own->mean = training ? add_tensor(program, vector) : foreign(program, vector, mean);
    own->variance = training ? add_tensor(program, vector) : foreign(program, vector, variance);
    const struct cpu_tensor gamma = add_parameter(program, node->gamma, vector, number);
    const struct cpu_tensor beta = add_parameter(program, node->beta, vector, number);
    build_simple(program, number, operation,
                 CPU_ARGUMENTS_OF({DNNL_ARG_MEAN, &own->mean}, {DNNL_ARG_VARIANCE, &own->variance},
                                  {DNNL_ARG_SCALE, &gamma}, {DNNL_ARG_SHIFT, &beta}));
    if (training)
        add_step(program, CPU_STATISTICS, number, own->mean.buffer, own->variance.buffer);
}

static void build_add(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = node_of(program, number);
    struct cpu_operation operation = operation_of(program, number);
    const struct cpu_tensor *other = floats_of(program, node->inputs[1]);
    const struct cpu_tensor second =
        convert(program, other, input_of(program, number)->layout, number);

    operation.behind = program->nodes[number].relu ? CPU_RELU : 0;
    build_simple(program, number, operation, CPU_ARGUMENTS_OF({DNNL_ARG_SRC_1, &second}));
}

/* ---- other nodes ---- */

static void build_concat(struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = node_of(program, number);
    struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *sources[GRAPH_INPUTS_MAX];
    struct cpu_argument arguments[GRAPH_INPUTS_MAX + 2] = {0};

    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct cpu_tensor *input = floats_of(program, node->inputs[i]);
        sources[i] = input->layout;
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + (int)i, input};
    }
    own->forward = describe(program,
                            &(struct cpu_operation){.kind = CPU_CONCAT,
                                                    .target = output_any(program, number),
                                                    .inputs = sources,
                                                    .input_count = (int)node->input_count},
                            NULL, number);
    own->output = add_tensor(program, query_layout(program, own->forward, dnnl_query_dst_md));
    arguments[node->input_count] = (struct cpu_argument){DNNL_ARG_DST, &own->output};
    add_primitive(program, own->forward, number, arguments);
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
    const struct cpu_layout *plain = images_of(program, number, dnnl_f32, dnnl_abcd);
    own->source = convert(program, input, plain, number);
    own->output = add_tensor(program, plain);
    add_step(program, CPU_DROPOUT, number, own->source.buffer, own->output.buffer);
    own->output = convert(program, &own->output,
                          images_of(program, number, program->model->type, dnnl_abcd), number);
}

static void build_input(struct cpu_program *program, uint32_t number)
{
    struct cpu_tensor *images = &program->nodes[number].output;

    *images = add_tensor(program, images_of(program, number, dnnl_f32, dnnl_abcd));
    add_step(program, CPU_NORMALISE, number, UINT32_MAX, images->buffer);
    *images = convert(program, images, images_of(program, number, program->model->type, dnnl_abcd),
                      number);
}

static void build_forward(struct cpu_program *program)
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
    const struct quantise_node *quantised = program->model->quantised;
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
        if (program->model->config.calibration && !own->hidden && !(own->output.step > 0) &&
            !program->code) { /* padding of channel blocks is zero */
            const uint32_t output = own->output.buffer;
            add_step(program, CPU_OBSERVE, i, output, output)->floats =
                own->output.layout->bytes / sizeof(float);
        }
        if (quantised && quantised[i].step > 0 && !own->hidden && !(own->output.step > 0))
            own->output = change(program, &own->output, quantised[i].step, i);
    }
    if (program->code)
        return;
    /* The loss reads rows of logits and writes rows of their gradients. */
    struct cpu_node *own = &program->nodes[last];
    const struct cpu_layout *plain = images_of(program, last, dnnl_f32, dnnl_abcd);
    const struct cpu_tensor logits = convert(program, floats_of(program, last), plain, last);
    uint32_t target = UINT32_MAX;
    if (program->training) {
        own->gradients[own->gradient_count] = add_tensor(program, plain);
        target = own->gradients[own->gradient_count++].buffer;
    }
    add_step(program, CPU_LOSS, last, logits.buffer, target);
}

/* ---- the backward pass ---- */

static bool wants_gradient(const struct cpu_program *program, uint32_t number)
{
    return node_of(program, node_of(program, number)->inputs[0])->needs_gradient;
}

/* Add a gradient of the node's output. */
static void give(struct cpu_program *program, uint32_t number, const struct cpu_tensor *gradient)
{
    struct cpu_node *node = &program->nodes[number];

    assert(program->code || node->gradient_count < node_of(program, number)->consumers + 1);
    node->gradients[node->gradient_count++] = *gradient;
}

static struct cpu_tensor add_up(struct cpu_program *program, uint32_t number)
{
    struct cpu_node *node = &program->nodes[number];
    const struct cpu_layout *layout = node->output.layout;
    struct cpu_tensor terms[CPU_INPUTS_MAX];
    struct cpu_argument arguments[CPU_ARGUMENTS] = {0};
    int count = (int)node->gradient_count;
    const struct cpu_layout *inputs[CPU_INPUTS_MAX];

    if (count == 1 || program->code)
        return node->gradients[0];
    for (int i = 0; i < count; i++) {
        terms[i] = convert(program, &node->gradients[i], layout, number);
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + i, &terms[i]};
        inputs[i] = layout;
    }
    dnnl_primitive_desc_t desc =
        describe(program,
                 &(struct cpu_operation){
                     .kind = CPU_SUM, .target = layout, .inputs = inputs, .input_count = count},
                 NULL, number);
    struct cpu_tensor sum = add_tensor(program, layout);
    arguments[count] = (struct cpu_argument){DNNL_ARG_DST, &sum};
    add_primitive(program, desc, number, arguments);
    dnnl_primitive_desc_destroy(desc);
    return sum;
}

/* Use the output, which is kept; the input is not. */
static struct cpu_tensor through_relu(struct cpu_program *program, uint32_t number,
                                      const struct cpu_tensor *given)
{
    const struct cpu_tensor *output = &program->nodes[number].output;
    const struct cpu_tensor gradient = convert(program, given, output->layout, number);
    struct cpu_tensor result = add_tensor(program, output->layout);
    struct cpu_operation operation = {.kind = CPU_ELTWISE,
                                      .pass = dnnl_forward_training,
                                      .algorithm = dnnl_eltwise_relu_use_dst_for_bwd,
                                      .source = output->layout};

    dnnl_primitive_desc_t forward = describe(program, &operation, NULL, number);
    operation.pass = dnnl_backward_data;
    dnnl_primitive_desc_t desc = describe(program, &operation, forward, number);
    add_primitive(program, desc, number,
                  CPU_ARGUMENTS_OF({DNNL_ARG_DST, output}, {DNNL_ARG_DIFF_DST, &gradient},
                                   {DNNL_ARG_DIFF_SRC, &result}));
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_desc_destroy(forward);
    return result;
}

/* Pixels by channels: the bytes of images with channels last. */
static struct cpu_tensor pixels_of(struct cpu_program *program, const struct cpu_tensor *images,
                                   uint32_t number)
{
    const dnnl_dim_t *dims = images->layout->dims;
    struct cpu_tensor rows =
        convert(program, images, channels_last(program, images->layout), number);

    rows.layout =
        cpu_dense(&program->model->dnnl, 2,
                  (const dnnl_dims_t){dims[0] * dims[2] * dims[3], dims[1]}, images->layout->type);
    return rows;
}

/* given: the gradient of the node's output. */
static void build_product_backward(struct cpu_program *program, uint32_t number,
                                   const struct cpu_tensor *given)
{
    struct cpu_model *model = program->model;
    const struct graph_node *node = node_of(program, number);
    const struct cpu_tensor input = pixels_of(program, &program->nodes[number].source, number);
    const struct cpu_tensor gradient = pixels_of(program, given, number);
    const dnnl_dims_t sides = {gradient.layout->dims[1], input.layout->dims[1]};
    struct cpu_operation operation = {.kind = CPU_INNER_PRODUCT,
                                      .pass = dnnl_forward_training,
                                      .source = input.layout,
                                      .weight = cpu_dense(&model->dnnl, 2, sides, model->type),
                                      .target = gradient.layout};
    if (node->bias != UINT32_MAX)
        operation.bias = model->canonical[node->bias];

    dnnl_primitive_desc_t forward = describe(program, &operation, NULL, number);
    operation.pass = dnnl_backward_weights;
    operation.weight = cpu_plain(&model->dnnl, 2, sides);
    dnnl_primitive_desc_t desc = describe(program, &operation, forward, number);
    /* Its layout is the canonical one of 1 x 1 weights. */
    struct cpu_tensor weight = add_gradient(program, node->weight, model->canonical[node->weight]);
    struct cpu_tensor product = weight, bias = {0};
    product.layout = operation.weight;
    if (node->bias != UINT32_MAX)
        bias = add_gradient(program, node->bias, model->canonical[node->bias]);
    add_primitive(program, desc, number,
                  CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &input}, {DNNL_ARG_DIFF_DST, &gradient},
                                   {DNNL_ARG_DIFF_WEIGHTS, &product}, {DNNL_ARG_DIFF_BIAS, &bias}));
    finish_gradient(program, node->weight, &weight, number);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_desc_destroy(forward);
}

static void build_weighted_backward(struct cpu_program *program, uint32_t number,
                                    const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(program, number);
    const bool rows = node->kind == GRAPH_FULLY_CONNECTED;
    const struct cpu_tensor whole = rows ? reshape(program, given, true, number) : *given;
    dnnl_primitive_desc_t desc;

    if (is_product(program, number)) {
        build_product_backward(program, number, &whole);
    } else {
        desc = describe_weighted_backward(program, number, dnnl_backward_weights, whole.layout);
        if (program->code)
            return;
        const struct cpu_tensor input =
            convert(program, &program->nodes[number].source,
                    query_layout(program, desc, dnnl_query_src_md), number);
        const struct cpu_tensor gradient =
            convert(program, &whole, query_layout(program, desc, dnnl_query_diff_dst_md), number);
        const struct cpu_tensor weight = add_gradient(
            program, node->weight, query_layout(program, desc, dnnl_query_diff_weights_md));
        struct cpu_tensor bias = {0};
        if (node->bias != UINT32_MAX)
            bias = add_gradient(program, node->bias, program->model->canonical[node->bias]);
        add_primitive(program, desc, number,
                      CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &input}, {DNNL_ARG_DIFF_DST, &gradient},
                                       {DNNL_ARG_DIFF_WEIGHTS, &weight},
                                       {DNNL_ARG_DIFF_BIAS, &bias}));
        finish_gradient(program, node->weight, &weight, number);
        dnnl_primitive_desc_destroy(desc);
    }
    if (!wants_gradient(program, number) || program->code)
        return;
    desc = describe_weighted_backward(program, number, dnnl_backward_data, whole.layout);
    if (program->code)
        return;
    const struct cpu_tensor weight = add_parameter(
        program, node->weight, query_layout(program, desc, dnnl_query_weights_md), number);
    const struct cpu_tensor gradient =
        convert(program, &whole, query_layout(program, desc, dnnl_query_diff_dst_md), number);
    struct cpu_tensor d_input =
        add_tensor(program, query_layout(program, desc, dnnl_query_diff_src_md));
    add_primitive(program, desc, number,
                  CPU_ARGUMENTS_OF({DNNL_ARG_WEIGHTS, &weight}, {DNNL_ARG_DIFF_DST, &gradient},
                                   {DNNL_ARG_DIFF_SRC, &d_input}));
    dnnl_primitive_desc_destroy(desc);
    if (rows)
        d_input = reshape(program, &d_input, false, node->inputs[0]);
    give(program, node->inputs[0], &d_input);
}

/* ---- one primitive in the input's layout, or of a window ---- */

/* Add a node's backward primitive with up to MORE_MAX arguments besides both gradients and the
 * workspace. */
static void build_simple_backward(struct cpu_program *program, uint32_t number,
                                  struct cpu_operation operation, const struct cpu_tensor *given,
                                  const struct cpu_argument *more)
{
    const struct cpu_node *own = &program->nodes[number];

    operation.source = own->source.layout;
    operation.target = own->output.layout;
    dnnl_primitive_desc_t desc = describe(program, &operation, own->forward, number);
    if (program->code)
        return;
    const struct cpu_tensor gradient = convert(program, given, own->output.layout, number);
    const struct cpu_tensor d_input = add_tensor(program, own->source.layout);
    struct cpu_argument arguments[MORE_MAX + 4] = {{DNNL_ARG_DIFF_DST, &gradient},
                                                   {DNNL_ARG_DIFF_SRC, &d_input},
                                                   {DNNL_ARG_WORKSPACE, &own->workspace}};
    for (int i = 0; more && more[i].tensor; i++)
        arguments[3 + i] = more[i];
    add_primitive(program, desc, number, arguments);
    dnnl_primitive_desc_destroy(desc);
    if (wants_gradient(program, number))
        give(program, node_of(program, number)->inputs[0], &d_input);
}

static void build_norm_backward(struct cpu_program *program, uint32_t number,
                                const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(program, number);
    const struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *vector = own->mean.layout;
    const struct cpu_tensor gamma = add_parameter(program, node->gamma, vector, number);
    const struct cpu_tensor beta = CPU_NORM_BACKWARD_TAKES_SHIFT
                                       ? add_parameter(program, node->beta, vector, number)
                                       : (struct cpu_tensor){0};
    const struct cpu_tensor d_gamma = add_gradient(program, node->gamma, vector);
    const struct cpu_tensor d_beta = add_gradient(program, node->beta, vector);
    struct cpu_operation operation = operation_of(program, number);

    operation.pass = dnnl_backward;
    operation.flags |= own->relu ? dnnl_fuse_norm_relu : 0u;
    build_simple_backward(
        program, number, operation, given,
        CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &own->source}, {DNNL_ARG_MEAN, &own->mean},
                         {DNNL_ARG_VARIANCE, &own->variance}, {DNNL_ARG_SCALE, &gamma},
                         {DNNL_ARG_SHIFT, &beta}, {DNNL_ARG_DIFF_SCALE, &d_gamma},
                         {DNNL_ARG_DIFF_SHIFT, &d_beta}));
}

/* ---- other nodes ---- */

/* Each input's gradient is its channels of the output's gradient. */
static void build_concat_backward(struct cpu_program *program, uint32_t number,
                                  const struct cpu_tensor *given)
{
    struct cpu_dnnl *dnnl = &program->model->dnnl;
    const struct graph_node *node = node_of(program, number);
    struct cpu_tensor whole = convert(program, given, program->nodes[number].output.layout, number);
    dnnl_dims_t offset = {0};

    for (uint32_t i = 0; i < node->input_count && !program->code; i++) {
        const struct cpu_layout *input = program->nodes[node->inputs[i]].output.layout;
        struct cpu_tensor part = {.layout = cpu_cut(dnnl, whole.layout, input->dims, offset)};
        if (!part.layout) {
            /* A blocked layout cannot be split within a block; the canonical layout can. */
            whole = convert(program, &whole,
                            cpu_dense(dnnl, 4, whole.layout->dims, whole.layout->type), number);
            part.layout = cpu_cut(dnnl, whole.layout, input->dims, offset);
            if (!part.layout) {
                program->code = fail(ENOSYS,
                                     "backend cpu: %s: its layout cannot be cut into that of its "
                                     "inputs; use the reference backend",
                                     node->name);
                return;
            }
        }
        part.buffer = whole.buffer;
        const struct cpu_tensor own = convert(program, &part, input, number);
        give(program, node->inputs[i], &own);
        offset[1] += input->dims[1];
    }
}

static void build_dropout_backward(struct cpu_program *program, uint32_t number,
                                   const struct cpu_tensor *given)
{
    const struct cpu_node *own = &program->nodes[number];
    const struct cpu_tensor gradient = convert(program, given, own->source.layout, number);
    const struct cpu_tensor d_input = add_tensor(program, own->source.layout);

    add_step(program, CPU_DROPOUT_BACKWARD, number, gradient.buffer, d_input.buffer);
    give(program, node_of(program, number)->inputs[0], &d_input);
}

static void build_backward(struct cpu_program *program)
{
    for (uint32_t i = program->model->graph->node_count; i-- > 1 && !program->code;) {
        const struct graph_node *node = node_of(program, i);
        const struct cpu_node *own = &program->nodes[i];
        const uint32_t before = node->inputs[0];
        const bool relu = own->relu && node->kind != GRAPH_BATCH_NORM;
        struct cpu_tensor gradient;
        struct cpu_operation operation;
        if (!node->needs_gradient)
            continue;
        if (own->absorbed && own->gradient_count == 2 &&
            node_of(program, before)->kind != GRAPH_BATCH_NORM) {
            /* the node before the ReLU computes its backward pass, and sums */
            give(program, before, &own->gradients[0]);
            give(program, before, &own->gradients[1]);
        } else if (own->absorbed) {
            gradient = add_up(program, i);
            give(program, before, &gradient);
        } else if (relu && own->gradient_count == 2) { /* both in one step */
            const struct cpu_tensor terms[] = {
                convert(program, &own->gradients[0], own->output.layout, i),
                convert(program, &own->gradients[1], own->output.layout, i)};
            gradient = add_tensor(program, own->output.layout);
            touch_buffer(program, terms[1].buffer);
            touch_buffer(program, own->output.buffer);
            struct cpu_step *step =
                add_step(program, CPU_SUM_RELU_BACKWARD, i, terms[0].buffer, gradient.buffer);
            step->other = terms[1].buffer;
            step->mask = own->output.buffer;
            step->floats = gradient.layout->bytes / dnnl_data_type_size(gradient.layout->type);
        } else {
            gradient = add_up(program, i);
            if (relu)
                gradient = through_relu(program, i, &gradient);
        }
        switch (own->absorbed ? GRAPH_INPUT : node->kind) {
        case GRAPH_INPUT:
            break;
        case GRAPH_CONVOLUTION:
        case GRAPH_FULLY_CONNECTED:
            build_weighted_backward(program, i, &gradient);
            break;
        case GRAPH_BATCH_NORM:
            build_norm_backward(program, i, &gradient);
            break;
        case GRAPH_MAX_POOL:
        case GRAPH_AVERAGE_POOL:
        case GRAPH_LRN: /* also reads its input */
            operation = operation_of(program, i);
            operation.pass = dnnl_backward_data;
            build_simple_backward(
                program, i, operation, &gradient,
                node->kind == GRAPH_LRN ? CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &own->source}) : NULL);
            break;
        case GRAPH_RELU:
            gradient = through_relu(program, i, &gradient);
            give(program, before, &gradient);
            break;
        case GRAPH_ADD:
            give(program, before, &gradient);
            give(program, node->inputs[1], &gradient);
            break;
        case GRAPH_CONCAT:
            build_concat_backward(program, i, &gradient);
            break;
        case GRAPH_DROPOUT:
            build_dropout_backward(program, i, &gradient);
            break;
        }
        const uint64_t floats = graph_final_floats(program->model->graph, i);
        if (floats > 0) /* all gradients up to this node's are final */
            add_step(program, CPU_READY, i, UINT32_MAX, UINT32_MAX)->ready_floats = floats;
    }
}

/* ---- the whole program ---- */

/* The convolution whose output the node passes, without a ReLU, to its only consumer; or 0. */
static uint32_t sole_convolution(const struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = node_of(program, number);
    const struct cpu_node *own = &program->nodes[number];

    if (node->consumers != 1 || own->relu)
        return 0;
    if (node->kind == GRAPH_BATCH_NORM && own->absorbed)
        return node->inputs[0];
    return node->kind == GRAPH_CONVOLUTION && !own->norm ? number : 0;
}

/* Is `last` the only user of the node's output from node `moment` on? */
static bool is_spent(const struct cpu_program *program, uint32_t number, uint32_t moment,
                     uint32_t last)
{
    const struct graph *graph = program->model->graph;
    enum graph_kind kind = graph->nodes[number].kind;

    if (kind != GRAPH_RELU && kind != GRAPH_BATCH_NORM && kind != GRAPH_CONVOLUTION)
        return false; /* others may alias another node's output */
    for (uint32_t i = moment; i < graph->node_count; i++)
        for (uint32_t j = 0; i != last && j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == number)
                return false;
    return true;
}

static void look_at_graph(struct cpu_program *program)
{
    /* Nodes whose primitives can also compute the ReLU that follows. */
    static const bool takes_relu[GRAPH_DROPOUT + 1] = {[GRAPH_CONVOLUTION] = true,
                                                       [GRAPH_FULLY_CONNECTED] = true,
                                                       [GRAPH_BATCH_NORM] = true,
                                                       [GRAPH_ADD] = true};
    const struct graph *graph = program->model->graph;
    struct cpu_node *nodes = program->nodes;

    for (uint32_t i = 0; i < graph->node_count && !program->code; i++) {
        nodes[i].relu = nodes[i].hidden =
            takes_relu[graph->nodes[i].kind] && graph_only_consumer(graph, i, GRAPH_RELU);
        if (nodes[i].relu)
            nodes[graph->nodes[i].consumer].absorbed = true;
        nodes[i].gradients =
            memory_array(graph->nodes[i].consumers + 1, sizeof *nodes[i].gradients);
        if (!nodes[i].gradients)
            program->code = -ENOMEM;
    }
    if (program->code || program->training)
        return;
    /* With running statistics, BN is a factor and an offset per channel: folded into the weights
     * and bias of the preceding convolution. */
    for (uint32_t i = 1; i < graph->node_count; i++) {
        const uint32_t norm = graph_only_consumer(graph, i, GRAPH_BATCH_NORM);
        if (graph->nodes[i].kind != GRAPH_CONVOLUTION || !norm)
            continue;
        nodes[i].norm = norm;
        nodes[i].hidden = true;
        nodes[i].relu = nodes[norm].relu;
        nodes[norm].absorbed = true;
    }
    /* The later of two convolutions accumulates into the other operand, in place. */
    for (uint32_t i = 1; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        if (node->kind != GRAPH_ADD)
            continue;
        uint32_t first = node->inputs[0], second = node->inputs[1];
        if (sole_convolution(program, first) > sole_convolution(program, second)) {
            first = node->inputs[1];
            second = node->inputs[0];
        }
        const uint32_t convolution = sole_convolution(program, second);
        if (convolution <= first || !is_spent(program, first, convolution, i))
            continue;
        nodes[convolution].summand = first;
        nodes[second].hidden = true;
        nodes[convolution].relu = nodes[i].relu;
        nodes[i].absorbed = true;
    }
}

/* Assign offsets in the arena and in the program's own memory. */
static void place_buffers(struct cpu_program *program)
{
    program->buffers[program->scratch].life.first = 0;
    program->buffers[program->scratch].life.last = program->step_count;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        struct lifetime *life = &program->buffers[i].life;
        if (program->buffers[i].place != CPU_KEPT)
            continue;
        life->offset = program->kept_bytes;
        program->kept_bytes += (life->bytes + 63) / 64 * 64;
        life->bytes = 0; /* needs no space in the arena */
    }
    program->code = lifetimes_plan(&program->buffers->life, sizeof *program->buffers,
                                   program->buffer_count, &program->arena_bytes);
    if (program->code == 0 && program->kept_bytes &&
        posix_memalign(&program->kept, 64, program->kept_bytes))
        program->code = fail(ENOMEM, "out of memory: %llu bytes of weights",
                             (unsigned long long)program->kept_bytes);
}

int cpu_program_build(struct cpu_program *program)
{
    struct cpu_model *model = program->model;

    program->nodes = memory_array(model->graph->node_count, sizeof *program->nodes);
    if (!program->nodes)
        program->code = -ENOMEM;
    program->scratch = add_buffer(program, CPU_ARENA, 0, NULL);
    if (!program->code)
        look_at_graph(program);
    if (!program->code) {
        build_forward(program);
        model->homes_known = true;
        if (program->training)
            build_backward(program);
        check_layouts(program);
    }
    if (!program->code)
        place_buffers(program);
    for (uint32_t i = 0; program->nodes && i < model->graph->node_count; i++) {
        dnnl_primitive_desc_destroy(program->nodes[i].forward);
        free(program->nodes[i].gradients);
    }
    free(program->nodes);
    program->nodes = NULL;
    return program->code;
}
