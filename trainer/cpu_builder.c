/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more. Keeps the error in the plan. */
static bool grow(struct cpu_plan *plan, void *rows, uint32_t count, size_t bytes)
{
    if (plan->code == 0)
        plan->code = memory_room(rows, count, bytes, "parts of a plan");
    return plan->code == 0;
}

void cpu_keep(struct cpu_plan *plan, dnnl_status_t status, uint32_t node)
{
    if (plan->code || status == dnnl_success)
        return;
    plan->code = cpu_check(status, plan->model->graph->nodes[node].name);
}

/* ---- buffers and tensors ---- */

uint32_t cpu_add_buffer(struct cpu_plan *plan, enum cpu_place place, uint64_t bytes, void *address)
{
    if (!grow(plan, &plan->buffers, plan->buffer_count, sizeof *plan->buffers))
        return 0;
    plan->buffers[plan->buffer_count] = (struct cpu_buffer){
        .place = place, .life = {.first = UINT32_MAX, .bytes = bytes}, .address = address};
    return plan->buffer_count++;
}

struct cpu_tensor cpu_add_tensor(struct cpu_plan *plan, const struct cpu_layout *layout)
{
    return (struct cpu_tensor){.layout = layout,
                               .buffer = cpu_add_buffer(plan, CPU_ARENA, layout->bytes, NULL)};
}

struct cpu_tensor cpu_foreign(struct cpu_plan *plan, const struct cpu_layout *layout, void *address)
{
    return (struct cpu_tensor){.layout = layout,
                               .buffer = cpu_add_buffer(plan, CPU_FOREIGN, 0, address)};
}

void *cpu_add_constant(struct cpu_plan *plan, uint64_t bytes)
{
    struct cpu_constant *constant = NULL;

    if (plan->code)
        return NULL;
    if (posix_memalign((void **)&constant, 64, sizeof *constant + bytes)) {
        plan->code = fail(ENOMEM, "out of memory for a plan of %u steps", plan->step_count);
        return NULL;
    }
    memset(constant, 0, sizeof *constant + bytes);
    constant->next = plan->constants;
    plan->constants = constant;
    return constant->bytes;
}

struct cpu_tensor cpu_add_scales(struct cpu_plan *plan, const struct cpu_scaling *scaling)
{
    const dnnl_dim_t count = scaling->count;

    if (!cpu_dnnl_scales_argument(scaling))
        return (struct cpu_tensor){0};
    float *factors = cpu_add_constant(plan, (uint64_t)count * sizeof *factors);
    if (factors)
        memcpy(factors, scaling->factors, (uint64_t)count * sizeof *factors);
    return cpu_foreign(plan, cpu_plain(&plan->model->dnnl, 1, &count), factors);
}

/* The step that is added next needs it. */
static void touch(struct cpu_plan *plan, uint32_t buffer)
{
    if (plan->code || buffer >= plan->buffer_count)
        return;
    struct lifetime *life = &plan->buffers[buffer].life;
    if (life->first == UINT32_MAX)
        life->first = plan->step_count;
    life->last = plan->step_count;
}

/* ---- steps ---- */

struct cpu_step *cpu_add_step(struct cpu_plan *plan, enum cpu_step_kind kind, uint32_t node,
                              uint32_t source, uint32_t target)
{
    static struct cpu_step nowhere; /* written to after an error, read by nobody */

    touch(plan, source);
    touch(plan, target);
    if (!grow(plan, &plan->steps, plan->step_count, sizeof *plan->steps))
        return &nowhere;
    struct cpu_step *step = &plan->steps[plan->step_count++];
    *step = (struct cpu_step){.kind = kind, .node = node, .source = source, .target = target};
    return step;
}

void cpu_add_sum_relu(struct cpu_plan *plan, uint32_t node, const struct cpu_tensor terms[2],
                      const struct cpu_tensor *output, const struct cpu_tensor *sum)
{
    touch(plan, terms[1].buffer);
    touch(plan, output->buffer);
    struct cpu_step *step =
        cpu_add_step(plan, CPU_SUM_RELU_BACKWARD, node, terms[0].buffer, sum->buffer);
    step->other = terms[1].buffer;
    step->mask = output->buffer;
    step->floats = sum->layout->bytes / sizeof(float);
}

static dnnl_memory_t add_memory(struct cpu_plan *plan, const struct cpu_tensor *tensor,
                                uint32_t node)
{
    dnnl_memory_t memory = NULL;

    if (!grow(plan, &plan->memories, plan->memory_count, sizeof *plan->memories))
        return NULL;
    cpu_keep(plan,
             dnnl_memory_create(&memory, tensor->layout->raw, plan->model->dnnl.engine,
                                DNNL_MEMORY_NONE),
             node);
    if (memory)
        plan->memories[plan->memory_count++] =
            (struct cpu_memory){.memory = memory, .buffer = tensor->buffer};
    return memory;
}

void cpu_add_primitive(struct cpu_plan *plan, dnnl_primitive_desc_t desc, uint32_t node,
                       const struct cpu_argument *arguments, int count)
{
    struct cpu_step step = {.kind = CPU_PRIMITIVE, .node = node};

    assert(count < CPU_ARGUMENTS);
    if (plan->code)
        return;
    cpu_keep(plan, dnnl_primitive_create(&step.primitive, desc), node);
    for (int i = 0; i < count; i++) {
        touch(plan, arguments[i].tensor->buffer);
        step.arguments[step.argument_count++] =
            (dnnl_exec_arg_t){arguments[i].name, add_memory(plan, arguments[i].tensor, node)};
    }
    const struct cpu_tensor scratch = {.layout = cpu_query(plan, desc, dnnl_query_scratchpad_md),
                                       .buffer = plan->scratch};
    if (scratch.layout->bytes > 0) {
        struct lifetime *life = &plan->buffers[plan->scratch].life;
        life->bytes = scratch.layout->bytes > life->bytes ? scratch.layout->bytes : life->bytes;
        step.arguments[step.argument_count++] =
            (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, add_memory(plan, &scratch, node)};
    }
    struct cpu_step *added = cpu_add_step(plan, CPU_PRIMITIVE, node, UINT32_MAX, UINT32_MAX);
    if (plan->code)
        dnnl_primitive_destroy(step.primitive);
    else
        *added = step;
}

/* Scratch memory is ours, so that nothing is allocated while it runs. */
dnnl_primitive_attr_t cpu_attributes(struct cpu_plan *plan, unsigned behind,
                                     const struct cpu_scaling *scaling, uint32_t node)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t list = NULL;

    cpu_keep(plan, dnnl_primitive_attr_create(&attributes), node);
    if (!plan->code)
        cpu_keep(plan,
                 dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
                 node);
    if (!plan->code && scaling)
        cpu_keep(plan, cpu_dnnl_scale(attributes, scaling), node);
    if (!plan->code && behind) {
        cpu_keep(plan, dnnl_post_ops_create(&list), node);
        if (!plan->code)
            cpu_keep(plan, cpu_dnnl_append(list, behind, scaling ? scaling->summand : 1), node);
        if (!plan->code)
            cpu_keep(plan, dnnl_primitive_attr_set_post_ops(attributes, list), node);
        dnnl_post_ops_destroy(list);
    }
    return attributes;
}

dnnl_primitive_desc_t cpu_describe(struct cpu_plan *plan, const struct cpu_operation *operation,
                                   dnnl_primitive_desc_t hint, unsigned behind, uint32_t node)
{
    dnnl_primitive_desc_t desc = NULL;

    if (plan->code)
        return NULL;
    dnnl_primitive_attr_t attributes = cpu_attributes(plan, behind, operation->scaling, node);
    if (!plan->code)
        cpu_keep(plan, cpu_dnnl_describe(&plan->model->dnnl, operation, attributes, hint, &desc),
                 node);
    dnnl_primitive_attr_destroy(attributes);
    return desc;
}

const struct cpu_layout *cpu_query(const struct cpu_plan *plan, dnnl_primitive_desc_t desc,
                                   dnnl_query_t what)
{
    static const struct cpu_layout empty;

    return plan->code ? &empty : cpu_layout_of(&plan->model->dnnl, desc, what);
}

/* ---- layouts ---- */

void cpu_add_reorder(struct cpu_plan *plan, const struct cpu_tensor *from,
                     const struct cpu_tensor *to, uint32_t node)
{
    const float factor = (from->step > 0 ? from->step : 1) / (to->step > 0 ? to->step : 1);
    const struct cpu_scaling scaling = {.argument = DNNL_ARG_FROM, .count = 1, .factors = &factor};
    const bool scales = from->step != to->step; /* NOLINT: both are copies of one number */
    const struct cpu_tensor factors =
        scales ? cpu_add_scales(plan, &scaling) : (struct cpu_tensor){0};
    dnnl_primitive_attr_t attributes = cpu_attributes(plan, 0, scales ? &scaling : NULL, node);
    const dnnl_engine_t engine = plan->model->dnnl.engine;
    dnnl_primitive_desc_t desc = NULL;

    if (!plan->code)
        cpu_keep(plan,
                 dnnl_reorder_primitive_desc_create(&desc, from->layout->raw, engine,
                                                    to->layout->raw, engine, attributes),
                 node);
    cpu_add_primitive(plan, desc, node,
                      (const struct cpu_argument[]){{DNNL_ARG_FROM, from},
                                                    {DNNL_ARG_TO, to},
                                                    {cpu_dnnl_scales_argument(&scaling), &factors}},
                      factors.layout ? 3 : 2);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attributes);
}

struct cpu_tensor cpu_convert(struct cpu_plan *plan, const struct cpu_tensor *tensor,
                              const struct cpu_layout *wanted, uint32_t node)
{
    if (plan->code || tensor->layout == wanted)
        return *tensor;
    struct cpu_tensor converted = cpu_add_tensor(plan, wanted);
    converted.step = tensor->step;
    cpu_add_reorder(plan, tensor, &converted, node);
    return converted;
}

struct cpu_tensor cpu_convert_once(struct cpu_plan *plan, const struct cpu_tensor *tensor,
                                   const struct cpu_layout *wanted, uint32_t node)
{
    const struct cpu_tensor converted = cpu_convert(plan, tensor, wanted, node);

    if (plan->code || converted.buffer == tensor->buffer)
        return converted;
    plan->buffers[converted.buffer].place = CPU_KEPT;
    plan->steps[plan->step_count - 1].of_parameters = true;
    return converted;
}

/* ---- parameters ---- */

struct cpu_tensor cpu_parameter(struct cpu_plan *plan, uint32_t parameter,
                                const struct cpu_layout *wanted, uint32_t node)
{
    struct cpu_model *model = plan->model;

    if (plan->code)
        return (struct cpu_tensor){0};
    const struct graph_parameter *row = &model->graph->parameters[parameter];
    if (!model->homes_known && wanted->bytes == row->count * sizeof(float))
        model->home[parameter] = wanted;
    struct cpu_tensor home =
        cpu_foreign(plan, model->home[parameter], model->parameters + row->offset);
    if (plan->code || home.layout == wanted)
        return home;
    return plan->training ? cpu_convert(plan, &home, wanted, node)
                          : cpu_convert_once(plan, &home, wanted, node);
}

struct cpu_tensor cpu_gradient(struct cpu_plan *plan, uint32_t parameter,
                               const struct cpu_layout *given)
{
    const struct cpu_model *model = plan->model;

    if (model->home[parameter] == given)
        return cpu_foreign(plan, given,
                           model->gradients + model->graph->parameters[parameter].offset);
    return cpu_add_tensor(plan, given);
}

void cpu_gradient_done(struct cpu_plan *plan, uint32_t parameter, const struct cpu_tensor *gradient,
                       uint32_t node)
{
    const struct cpu_model *model = plan->model;

    if (plan->code || plan->buffers[gradient->buffer].place == CPU_FOREIGN)
        return;
    struct cpu_tensor home =
        cpu_foreign(plan, model->home[parameter],
                    model->gradients + model->graph->parameters[parameter].offset);
    cpu_add_reorder(plan, gradient, &home, node);
}
