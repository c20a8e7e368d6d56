/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu/cpu.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reserve space for one more element; keep an error in the program. */
static bool grow_rows(struct cpu_program *program, void *rows, uint32_t count, size_t bytes)
{
    if (program->code == 0)
        program->code = memory_room(rows, count, bytes, "parts of a program");
    return program->code == 0;
}

void cpu_check_layouts(struct cpu_program *program)
{
    if (program->code == 0 && program->model->dnnl.code)
        program->code = fail(-program->model->dnnl.code, "backend cpu: out of memory for layouts");
}

static void keep_status(struct cpu_program *program, dnnl_status_t status, uint32_t node)
{
    if (program->code || status == dnnl_success)
        return;
    cpu_check_layouts(program);
    if (program->code == 0)
        program->code = cpu_check(status, program->model->graph->nodes[node].name);
}

/* ---- buffers and tensors ---- */

uint32_t cpu_add_buffer(struct cpu_program *program, enum cpu_place place, uint64_t bytes,
                        void *address)
{
    if (!grow_rows(program, &program->buffers, program->buffer_count, sizeof *program->buffers))
        return 0;
    program->buffers[program->buffer_count] = (struct cpu_buffer){
        .place = place, .life = {.first = UINT32_MAX, .bytes = bytes}, .address = address};
    return program->buffer_count++;
}

struct cpu_tensor cpu_add_tensor(struct cpu_program *program, const struct cpu_layout *layout)
{
    return (struct cpu_tensor){.layout = layout,
                               .buffer = cpu_add_buffer(program, CPU_ARENA, layout->bytes, NULL)};
}

struct cpu_tensor cpu_foreign(struct cpu_program *program, const struct cpu_layout *layout,
                              void *address)
{
    return (struct cpu_tensor){.layout = layout,
                               .buffer = cpu_add_buffer(program, CPU_FOREIGN, 0, address)};
}

void *cpu_add_constant(struct cpu_program *program, uint64_t bytes)
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

struct cpu_tensor cpu_add_scales(struct cpu_program *program, const struct cpu_scaling *scaling)
{
    const dnnl_dim_t count = scaling->count;

    if (!cpu_dnnl_scales_argument(scaling))
        return (struct cpu_tensor){0};
    float *factors = cpu_add_constant(program, (uint64_t)count * sizeof *factors);
    if (factors)
        memcpy(factors, scaling->factors, (uint64_t)count * sizeof *factors);
    return cpu_foreign(program, cpu_plain(&program->model->dnnl, 1, &count), factors);
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

struct cpu_step *cpu_add_step(struct cpu_program *program, enum cpu_step_kind kind, uint32_t node,
                              uint32_t source, uint32_t target)
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

void cpu_add_sum_relu(struct cpu_program *program, uint32_t node, const struct cpu_tensor terms[2],
                      const struct cpu_tensor *output, const struct cpu_tensor *sum)
{
    touch_buffer(program, terms[1].buffer);
    touch_buffer(program, output->buffer);
    struct cpu_step *step =
        cpu_add_step(program, CPU_SUM_RELU_BACKWARD, node, terms[0].buffer, sum->buffer);
    step->other = terms[1].buffer;
    step->mask = output->buffer;
    step->floats = sum->layout->bytes / dnnl_data_type_size(sum->layout->type);
}

static dnnl_memory_t add_memory(struct cpu_program *program, const struct cpu_tensor *tensor,
                                uint32_t node)
{
    dnnl_memory_t memory = NULL;

    if (!grow_rows(program, &program->memories, program->memory_count, sizeof *program->memories))
        return NULL;
    keep_status(program,
                dnnl_memory_create(&memory, tensor->layout->raw, program->model->dnnl.engine,
                                   DNNL_MEMORY_NONE),
                node);
    if (memory)
        program->memories[program->memory_count++] =
            (struct cpu_memory){.memory = memory, .buffer = tensor->buffer};
    return memory;
}

void cpu_add_primitive(struct cpu_program *program, dnnl_primitive_desc_t desc, uint32_t node,
                       const struct cpu_argument *arguments)
{
    struct cpu_step step = {.kind = CPU_PRIMITIVE, .node = node};

    if (program->code == 0) /* one may take oneDNN a second */
        program->code = tick_ask(program->model->config->tick);
    if (program->code)
        return;
    keep_status(program, dnnl_primitive_create(&step.primitive, desc), node);
    for (; arguments->tensor; arguments++) {
        if (!arguments->tensor->layout)
            continue;
        assert(step.argument_count < CPU_ARGUMENTS - 1);
        touch_buffer(program, arguments->tensor->buffer);
        step.arguments[step.argument_count++] =
            (dnnl_exec_arg_t){arguments->name, add_memory(program, arguments->tensor, node)};
    }
    const struct cpu_tensor scratch = {.layout = cpu_query(program, desc, dnnl_query_scratchpad_md),
                                       .buffer = program->scratch};
    if (scratch.layout->bytes > 0) {
        struct lifetime *life = &program->buffers[program->scratch].life;
        life->bytes = scratch.layout->bytes > life->bytes ? scratch.layout->bytes : life->bytes;
        step.arguments[step.argument_count++] =
            (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, add_memory(program, &scratch, node)};
    }
    struct cpu_step *added = cpu_add_step(program, CPU_PRIMITIVE, node, UINT32_MAX, UINT32_MAX);
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

    keep_status(program, dnnl_primitive_attr_create(&attributes), node);
    if (!program->code)
        keep_status(program,
                    dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
                    node);
    if (!program->code && scaling)
        keep_status(program, cpu_dnnl_scale(attributes, scaling), node);
    if (!program->code && behind) {
        keep_status(program, dnnl_post_ops_create(&list), node);
        if (!program->code)
            keep_status(program, cpu_dnnl_append(list, behind, scaling ? scaling->summand : 1),
                        node);
        if (!program->code)
            keep_status(program, dnnl_primitive_attr_set_post_ops(attributes, list), node);
        dnnl_post_ops_destroy(list);
    }
    return attributes;
}

dnnl_primitive_desc_t cpu_describe(struct cpu_program *program,
                                   const struct cpu_operation *operation,
                                   dnnl_primitive_desc_t hint, uint32_t node)
{
    dnnl_primitive_desc_t desc = NULL;

    if (program->code)
        return NULL;
    dnnl_primitive_attr_t attributes =
        attributes_of(program, operation->behind, operation->scaling, node);
    if (!program->code)
        keep_status(program,
                    cpu_dnnl_describe(&program->model->dnnl, operation, attributes, hint, &desc),
                    node);
    dnnl_primitive_attr_destroy(attributes);
    return desc;
}

const struct cpu_layout *cpu_query(const struct cpu_program *program, dnnl_primitive_desc_t desc,
                                   dnnl_query_t what)
{
    static const struct cpu_layout empty;

    return program->code ? &empty : cpu_layout_of(&program->model->dnnl, desc, what);
}

/* ---- layouts ---- */

void cpu_add_reorder(struct cpu_program *program, const struct cpu_tensor *from,
                     const struct cpu_tensor *to, uint32_t node)
{
    const float factor = (from->step > 0 ? from->step : 1) / (to->step > 0 ? to->step : 1);
    const struct cpu_scaling scaling = {.argument = DNNL_ARG_FROM, .count = 1, .factors = &factor};
    const bool scales = from->step != to->step; /* NOLINT: both are copies of one number */
    const struct cpu_tensor factors =
        scales ? cpu_add_scales(program, &scaling) : (struct cpu_tensor){0};
    dnnl_primitive_attr_t attributes = attributes_of(program, 0, scales ? &scaling : NULL, node);
    const dnnl_engine_t engine = program->model->dnnl.engine;
    dnnl_primitive_desc_t desc = NULL;

    if (!program->code)
        keep_status(program,
                    dnnl_reorder_primitive_desc_create(&desc, from->layout->raw, engine,
                                                       to->layout->raw, engine, attributes),
                    node);
    cpu_add_primitive(program, desc, node,
                      CPU_ARGUMENTS_OF({DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to},
                                       {cpu_dnnl_scales_argument(&scaling), &factors}));
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attributes);
}

struct cpu_tensor cpu_convert(struct cpu_program *program, const struct cpu_tensor *tensor,
                              const struct cpu_layout *wanted, uint32_t node)
{
    if (program->code || tensor->layout == wanted)
        return *tensor;
    struct cpu_tensor converted = cpu_add_tensor(program, wanted);
    converted.step = tensor->step;
    cpu_add_reorder(program, tensor, &converted, node);
    return converted;
}

struct cpu_tensor cpu_convert_once(struct cpu_program *program, const struct cpu_tensor *tensor,
                                   const struct cpu_layout *wanted, uint32_t node)
{
    const struct cpu_tensor converted = cpu_convert(program, tensor, wanted, node);

    if (program->code || converted.buffer == tensor->buffer)
        return converted;
    program->buffers[converted.buffer].place = CPU_KEPT;
    program->steps[program->step_count - 1].of_parameters = true;
    return converted;
}

/* ---- parameters ---- */

struct cpu_tensor cpu_parameter(struct cpu_program *program, uint32_t parameter,
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
        cpu_foreign(program, model->home[parameter], model->parameters + row->offset);
    if (program->code || home.layout == wanted)
        return home;
    return program->training ? cpu_convert(program, &home, wanted, node)
                             : cpu_convert_once(program, &home, wanted, node);
}

struct cpu_tensor cpu_gradient(struct cpu_program *program, uint32_t parameter,
                               const struct cpu_layout *given)
{
    const struct cpu_model *model = program->model;

    if (model->home[parameter] == given)
        return cpu_foreign(program, given,
                           model->gradients + model->graph->parameters[parameter].offset);
    return cpu_add_tensor(program, given);
}

void cpu_gradient_done(struct cpu_program *program, uint32_t parameter,
                       const struct cpu_tensor *gradient, uint32_t node)
{
    const struct cpu_model *model = program->model;

    if (program->code || program->buffers[gradient->buffer].place == CPU_FOREIGN)
        return;
    struct cpu_tensor home =
        cpu_foreign(program, model->home[parameter],
                    model->gradients + model->graph->parameters[parameter].offset);
    cpu_add_reorder(program, gradient, &home, node);
}

/* ---- nodes as layouts and windows, for all passes ---- */

const struct cpu_layout *cpu_plain_images(const struct cpu_program *program, uint32_t number,
                                          dnnl_data_type_t type)
{
    const struct graph_shape *shape = &program->model->graph->nodes[number].shape;

    return cpu_dense(
        &program->model->dnnl, 4,
        (const dnnl_dims_t){program->count, shape->channels, shape->height, shape->width}, type);
}

const struct cpu_layout *cpu_plain_rows(const struct cpu_program *program, uint32_t number,
                                        dnnl_data_type_t type)
{
    const struct graph_shape *shape = &program->model->graph->nodes[number].shape;

    return cpu_dense(&program->model->dnnl, 2,
                     (const dnnl_dims_t){program->count, (dnnl_dim_t)shape->channels *
                                                             shape->height * shape->width},
                     type);
}

struct cpu_tensor cpu_reshape(struct cpu_program *program, const struct cpu_tensor *tensor,
                              bool to_rows, uint32_t number)
{
    const dnnl_data_type_t type = tensor->layout->type;
    const struct cpu_layout *images = cpu_plain_images(program, number, type);
    const struct cpu_layout *rows = cpu_plain_rows(program, number, type);
    struct cpu_tensor plain = cpu_convert(program, tensor, to_rows ? images : rows, number);

    plain.layout = to_rows ? rows : images;
    return plain;
}

struct cpu_operation cpu_operation_of(const struct graph_node *node)
{
    static const enum cpu_operation_kind kinds[] = {[GRAPH_CONVOLUTION] = CPU_CONVOLUTION,
                                                    [GRAPH_FULLY_CONNECTED] = CPU_INNER_PRODUCT,
                                                    [GRAPH_BATCH_NORM] = CPU_NORM,
                                                    [GRAPH_RELU] = CPU_ELTWISE,
                                                    [GRAPH_MAX_POOL] = CPU_POOL,
                                                    [GRAPH_AVERAGE_POOL] = CPU_POOL,
                                                    [GRAPH_LRN] = CPU_LRN,
                                                    [GRAPH_ADD] = CPU_ADD};
    const struct graph_window *window = &node->window;
    const dnnl_alg_kind_t algorithm = node->kind == GRAPH_RELU       ? dnnl_eltwise_relu
                                      : node->kind == GRAPH_MAX_POOL ? dnnl_pooling_max
                                      : window->count_padding ? dnnl_pooling_avg_include_padding
                                                              : dnnl_pooling_avg_exclude_padding;

    return (struct cpu_operation){.kind = kinds[node->kind],
                                  .algorithm = algorithm,
                                  .window = {.strides = {window->stride, window->stride},
                                             .sides = {window->height, window->width},
                                             .before = {window->pad_top, window->pad_left},
                                             .behind = {window->pad_bottom, window->pad_right}},
                                  .epsilon = (float)node->epsilon,
                                  .flags = dnnl_use_scale | dnnl_use_shift,
                                  .size = window->height,
                                  .alpha = (float)node->lrn_alpha,
                                  .beta = (float)node->lrn_beta,
                                  .k = (float)node->lrn_k};
}
