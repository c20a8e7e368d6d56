/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu/cpu.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/kernels.h"
#include "trainer/bf16.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

enum { LINE_FLOATS = 16 };

/* ---- building ---- */

/* The convolution whose output the node passes, without a ReLU, to its only consumer; or 0. */
static uint32_t sole_convolution(const struct cpu_program *program, uint32_t number)
{
    const struct graph_node *node = &program->model->graph->nodes[number];
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
    /* Whose primitives can also compute the ReLU that follows. */
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
    struct lifetime *lives = memory_array(program->buffer_count, sizeof *lives);

    if (!lives) {
        program->code = -ENOMEM;
        return;
    }
    program->buffers[program->scratch].life.first = 0;
    program->buffers[program->scratch].life.last = program->step_count;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        struct cpu_buffer *buffer = &program->buffers[i];
        if (buffer->place == CPU_KEPT) {
            buffer->life.offset = program->kept_bytes;
            program->kept_bytes += (buffer->life.bytes + 63) / 64 * 64;
        } else if (buffer->place == CPU_ARENA) {
            lives[i] = buffer->life;
        }
    }
    program->code = lifetimes_plan(lives, program->buffer_count, &program->arena_bytes);
    for (uint32_t i = 0; i < program->buffer_count; i++)
        if (program->buffers[i].place == CPU_ARENA)
            program->buffers[i].life.offset = lives[i].offset;
    free(lives);
    if (program->code == 0 && program->kept_bytes &&
        posix_memalign(&program->kept, 64, program->kept_bytes))
        program->code = fail(ENOMEM, "out of memory: %llu bytes of weights",
                             (unsigned long long)program->kept_bytes);
}

int cpu_program_create(struct cpu_model *model, uint32_t count, bool training,
                       struct cpu_program **created)
{
    struct cpu_program *program = memory_zeroed(sizeof *program);

    if (!program)
        return -ENOMEM;
    program->model = model;
    program->count = count;
    program->training = training;
    program->nodes = memory_array(model->graph->node_count, sizeof *program->nodes);
    if (!program->nodes)
        program->code = -ENOMEM;
    program->scratch = cpu_add_buffer(program, CPU_ARENA, 0, NULL);
    if (!program->code)
        look_at_graph(program);
    if (!program->code) {
        cpu_build_forward(program);
        model->homes_known = true;
        if (training)
            cpu_build_backward(program);
        cpu_check_layouts(program);
    }
    if (!program->code)
        place_buffers(program);
    for (uint32_t i = 0; program->nodes && i < model->graph->node_count; i++) {
        dnnl_primitive_desc_destroy(program->nodes[i].forward);
        free(program->nodes[i].gradients);
    }
    free(program->nodes);
    program->nodes = NULL;
    const int code = program->code;
    if (code)
        cpu_program_destroy(program);
    else
        *created = program;
    return code;
}

void cpu_program_destroy(struct cpu_program *program)
{
    if (!program)
        return;
    for (uint32_t i = 0; i < program->step_count; i++)
        dnnl_primitive_destroy(program->steps[i].primitive);
    for (uint32_t i = 0; i < program->memory_count; i++)
        dnnl_memory_destroy(program->memories[i].memory);
    while (program->constants) {
        struct cpu_constant *next = program->constants->next;
        free(program->constants);
        program->constants = next;
    }
    free(program->memories);
    free(program->buffers);
    free(program->steps);
    free(program->kept);
    free(program->took_ns);
    free(program);
}

int cpu_program_bind(struct cpu_program *program, void *arena)
{
    int code = 0;

    if (program->bound == arena)
        return 0;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        struct cpu_buffer *buffer = &program->buffers[i];
        if (buffer->place != CPU_FOREIGN)
            buffer->address =
                (char *)(buffer->place == CPU_KEPT ? program->kept : arena) + buffer->life.offset;
    }
    for (uint32_t i = 0; i < program->memory_count && code == 0; i++)
        code = cpu_check(
            dnnl_memory_set_data_handle(program->memories[i].memory,
                                        program->buffers[program->memories[i].buffer].address),
            "memory");
    if (code == 0)
        program->bound = arena;
    return code;
}

/* ---- running ---- */

static float *address_of(const struct cpu_program *program, uint32_t buffer)
{
    return buffer < program->buffer_count ? program->buffers[buffer].address : NULL;
}

struct images {
    const uint8_t *rows;
    float *values;
    size_t plane;
};

static void normalise_images(const void *context, uint64_t first, uint64_t end)
{
    const struct images *images = context;
    const size_t offset = first * 3 * images->plane;

    kernel_normalise((uint32_t)(end - first), images->plane, images->rows + offset, backend_mean,
                     backend_deviation, images->values + offset);
}

/* Sum the gradients from a ReLU's two consumers and apply the ReLU's backward pass: one pass over
 * memory, where oneDNN's sum and eltwise take two. */
struct sum_relu {
    const void *a, *b, *output;
    void *sum;
};

VECTOR_CLONES
static void sum_relu_part(const void *context, uint64_t first, uint64_t end)
{
    const struct sum_relu *with = context;
    const float *a = with->a, *b = with->b, *output = with->output;
    float *sum = with->sum;

    for (uint64_t i = first; i < end; i++)
        sum[i] = output[i] <= 0 ? 0 : a[i] + b[i];
}

VECTOR_CLONES
static void sum_relu_part_bf16(const void *context, uint64_t first, uint64_t end)
{
    const struct sum_relu *with = context;
    const uint16_t *a = with->a, *b = with->b, *output = with->output;
    uint16_t *sum = with->sum;

    for (uint64_t i = first; i < end; i++)
        sum[i] = bf16_to_float(output[i]) <= 0
                     ? 0
                     : bf16_of_float(bf16_to_float(a[i]) + bf16_to_float(b[i]));
}

static int run_step(const struct cpu_program *program, const struct cpu_step *step,
                    const struct trainer_batch *batch, struct backend_loss *loss)
{
    const struct cpu_model *model = program->model;
    const struct graph_node *node = &model->graph->nodes[step->node];
    const size_t plane = (size_t)node->shape.height * node->shape.width;
    const size_t count = program->count * graph_node_floats(node);
    const uint32_t channels = node->shape.channels, classes = model->graph->classes;
    float *source = address_of(program, step->source), *target = address_of(program, step->target);
    float *other = address_of(program, step->other), *running;
    struct kernel_loss found = {0};

    switch (step->kind) {
    case CPU_PRIMITIVE:
        return dnnl_primitive_execute(step->primitive, model->dnnl.stream, step->argument_count,
                                      step->arguments)
                   ? fail(EIO, "backend cpu: oneDNN failed to compute %s", node->name)
                   : 0;
    case CPU_NORMALISE:
        cpu_share(program->count, 1, normalise_images,
                  &(struct images){batch->rows, target, plane});
        return 0;
    case CPU_STATISTICS:
        running = model->statistics + node->statistics;
        kernel_batch_norm_statistics(channels, program->count * plane, node->momentum, source,
                                     target, running, running + channels);
        return 0;
    case CPU_FOLD:
        graph_fold_norm(model->graph, step->node, step->norm, model->parameters, model->statistics,
                        source, target, other);
        return 0;
    case CPU_SUM_RELU_BACKWARD:
        cpu_share(step->floats, 2 * LINE_FLOATS,
                  model->type == dnnl_bf16 ? sum_relu_part_bf16 : sum_relu_part,
                  &(struct sum_relu){source, other, program->buffers[step->mask].address, target});
        return 0;
    case CPU_DROPOUT:
        kernel_dropout(count, kernel_dropout_key(model->seed, batch->step, step->node),
                       node->dropout_rate, source, target);
        return 0;
    case CPU_DROPOUT_BACKWARD:
        memset(target, 0, count * sizeof *target); /* the kernel accumulates */
        kernel_dropout_backward(count, kernel_dropout_key(model->seed, batch->step, step->node),
                                node->dropout_rate, source, target);
        return 0;
    case CPU_OBSERVE:
        return calibration_observe(model->calibration, step->node, source, step->floats);
    case CPU_LOSS:
        if (batch->logits)
            memcpy(batch->logits, source, (size_t)program->count * classes * sizeof *source);
        if (batch->labels)
            found = kernel_cross_entropy(program->count, classes, source, batch->labels,
                                         batch->label_smoothing, program->training ? target : NULL);
        *loss = backend_loss_of(program->count, &found);
        return 0;
    case CPU_READY:
        break;
    }
    return batch->ready ? batch->ready(batch->context, step->ready_floats) : 0;
}

int cpu_program_run(struct cpu_program *program, const struct trainer_batch *batch,
                    struct backend_loss *loss)
{
    const bool parameters_changed = program->parameter_version != program->model->parameter_version;
    uint64_t since_ns = program->took_ns ? clock_now_ns() : 0;
    int code = 0;

    assert(batch->count == program->count && batch->learns == program->training && program->bound);
    for (uint32_t i = 0; i < program->step_count && code == 0; i++) {
        code = tick_ask(batch->tick);
        if (code == 0 && (parameters_changed || !program->steps[i].of_parameters))
            code = run_step(program, &program->steps[i], batch, loss);
        schedule_lap(program->took_ns ? &program->took_ns[i] : NULL, &since_ns);
    }
    if (code == 0) /* else some that are computed once may be missing */
        program->parameter_version = program->model->parameter_version;
    return code;
}
