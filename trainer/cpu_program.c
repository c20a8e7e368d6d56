/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/kernels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

enum { LINE_FLOATS = 16 };

/* ---- building ---- */

/* Can the node's primitive also compute the ReLU that follows? */
static bool takes_relu(const struct graph *graph, uint32_t number)
{
    static const bool takes[GRAPH_DROPOUT + 1] = {[GRAPH_CONVOLUTION] = true,
                                                  [GRAPH_FULLY_CONNECTED] = true,
                                                  [GRAPH_BATCH_NORM] = true,
                                                  [GRAPH_ADD] = true};

    return takes[graph->nodes[number].kind] && graph_only_consumer(graph, number, GRAPH_RELU);
}

/* With running statistics, BN is a factor and an offset per channel: folded into the weights and
 * bias of the preceding convolution. */
static void fold_norms(struct cpu_program *program)
{
    const struct graph *graph = program->model->graph;

    for (uint32_t i = 1; i < graph->node_count; i++) {
        const uint32_t norm = graph_only_consumer(graph, i, GRAPH_BATCH_NORM);
        struct cpu_node *own = &program->nodes[i];
        if (graph->nodes[i].kind != GRAPH_CONVOLUTION || !norm)
            continue;
        own->norm = norm;
        own->hidden = true;
        own->relu = program->nodes[norm].relu;
        program->nodes[norm].absorbed = true;
    }
}

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

/* The later of two convolutions accumulates into the other operand, in place. */
static void fold_additions(struct cpu_program *program)
{
    const struct graph *graph = program->model->graph;

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
        program->nodes[convolution].summand = first;
        program->nodes[second].hidden = true;
        program->nodes[convolution].relu = program->nodes[i].relu;
        program->nodes[i].absorbed = true;
    }
}

static void look_at_graph(struct cpu_program *program)
{
    const struct graph *graph = program->model->graph;

    for (uint32_t i = 0; i < graph->node_count && !program->code; i++) {
        const struct graph_node *node = &graph->nodes[i];
        struct cpu_node *own = &program->nodes[i];
        own->relu = own->hidden = takes_relu(graph, i);
        if (own->relu)
            program->nodes[node->consumer].absorbed = true;
        own->gradients = memory_array(node->consumers + 1, sizeof *own->gradients);
        if (!own->gradients)
            program->code = -ENOMEM;
    }
    if (program->code || program->training)
        return;
    fold_norms(program);
    fold_additions(program);
}

static void forget_nodes(struct cpu_program *program)
{
    for (uint32_t i = 0; program->nodes && i < program->model->graph->node_count; i++) {
        dnnl_primitive_desc_destroy(program->nodes[i].forward);
        free(program->nodes[i].gradients);
    }
    free(program->nodes);
    program->nodes = NULL;
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

static void build(struct cpu_program *program)
{
    program->nodes = memory_array(program->model->graph->node_count, sizeof *program->nodes);
    if (!program->nodes) {
        program->code = -ENOMEM;
        return;
    }
    program->scratch = cpu_add_buffer(program, CPU_ARENA, 0, NULL);
    look_at_graph(program);
    if (program->code)
        return;
    cpu_build_forward(program);
    program->model->homes_known = true;
    if (program->training)
        cpu_build_backward(program);
    if (program->code == 0)
        program->code = program->model->dnnl.code;
    if (program->code == 0)
        place_buffers(program);
}

struct cpu_program *cpu_program_create(struct cpu_model *model, uint32_t count, bool training)
{
    struct cpu_program *program = memory_zeroed(sizeof *program);

    if (!program)
        return NULL;
    program->model = model;
    program->count = count;
    program->training = training;
    build(program);
    forget_nodes(program);
    if (program->code) {
        cpu_program_destroy(program);
        return NULL;
    }
    return program;
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

struct pixels {
    size_t plane;
    const uint8_t *rows;
    float *values;
};

static void normalise_images(const void *context, uint64_t first, uint64_t end)
{
    const struct pixels *pixels = context;
    const size_t offset = first * 3 * pixels->plane;

    kernel_normalise((uint32_t)(end - first), pixels->plane, pixels->rows + offset, backend_mean,
                     backend_deviation, pixels->values + offset);
}

static void normalise(const struct cpu_program *program, const struct cpu_step *step,
                      const struct backend_pass *pass)
{
    const struct graph_shape *shape = &program->model->graph->nodes[0].shape;

    cpu_share(program->count, 1, normalise_images,
              &(struct pixels){(size_t)shape->height * shape->width, pass->batch->rows,
                               program->buffers[step->target].address});
}

struct relu_sum {
    const float *a, *b, *output;
    float *sum;
};

VECTOR_CLONES
static void sum_relu_part(const void *context, uint64_t first, uint64_t end)
{
    const struct relu_sum *work = context;
    const float *a = work->a, *b = work->b, *output = work->output;
    float *sum = work->sum;

    for (uint64_t i = first; i < end; i++)
        sum[i] = output[i] <= 0 ? 0 : a[i] + b[i];
}

/* Sum the gradients from a ReLU's two consumers and apply the ReLU's backward pass: one pass over
 * memory, where oneDNN's sum and eltwise take two. */
static void sum_through_relu(const struct cpu_program *program, const struct cpu_step *step)
{
    const struct cpu_buffer *buffers = program->buffers;

    cpu_share(step->floats, LINE_FLOATS, sum_relu_part,
              &(struct relu_sum){buffers[step->source].address, buffers[step->other].address,
                                 buffers[step->mask].address, buffers[step->target].address});
}

static void keep_statistics(const struct cpu_program *program, const struct cpu_step *step)
{
    const struct graph_node *node = &program->model->graph->nodes[step->node];
    float *running = program->model->statistics + node->statistics;
    size_t count = (size_t)program->count * node->shape.height * node->shape.width;

    kernel_batch_norm_statistics(
        node->shape.channels, count, node->momentum, program->buffers[step->source].address,
        program->buffers[step->target].address, running, running + node->shape.channels);
}

static void fold(const struct cpu_program *program, const struct cpu_step *step)
{
    const struct cpu_model *model = program->model;

    graph_fold_norm(model->graph, step->node, step->norm, model->parameters, model->statistics,
                    program->buffers[step->source].address, program->buffers[step->target].address,
                    program->buffers[step->other].address);
}

static int observe(const struct cpu_program *program, const struct cpu_step *step)
{
    return calibration_observe(program->model->calibration, step->node,
                               program->buffers[step->source].address, step->floats);
}

static void drop(const struct cpu_program *program, const struct cpu_step *step,
                 const struct backend_pass *pass)
{
    const struct graph_node *node = &program->model->graph->nodes[step->node];
    size_t count =
        (size_t)program->count * node->shape.channels * node->shape.height * node->shape.width;
    uint64_t key = kernel_dropout_key(program->model->seed, pass->batch->step, step->node);
    const float *source = program->buffers[step->source].address;
    float *target = program->buffers[step->target].address;

    if (step->kind == CPU_DROPOUT) {
        kernel_dropout(count, key, node->dropout_rate, source, target);
        return;
    }
    memset(target, 0, count * sizeof *target); /* the kernel accumulates */
    kernel_dropout_backward(count, key, node->dropout_rate, source, target);
}

static void find_loss(const struct cpu_program *program, const struct cpu_step *step,
                      const struct backend_pass *pass, struct backend_loss *loss)
{
    const uint32_t classes = program->model->graph->classes;
    const float *logits = program->buffers[step->source].address;

    if (pass->logits)
        memcpy(pass->logits, logits, (size_t)program->count * classes * sizeof *logits);
    *loss = (struct backend_loss){.count = program->count};
    if (!pass->batch->labels)
        return;
    const struct kernel_loss found = kernel_cross_entropy(
        program->count, classes, logits, pass->batch->labels, pass->label_smoothing,
        program->training ? program->buffers[step->target].address : NULL);
    *loss = backend_loss_of(program->count, &found);
}

static int run_step(const struct cpu_program *program, const struct cpu_step *step,
                    const struct backend_pass *pass, struct backend_loss *loss)
{
    switch (step->kind) {
    case CPU_PRIMITIVE:
        return dnnl_primitive_execute(step->primitive, program->model->dnnl.stream,
                                      step->argument_count, step->arguments)
                   ? fail(EIO, "backend cpu: oneDNN failed to compute %s",
                          program->model->graph->nodes[step->node].name)
                   : 0;
    case CPU_NORMALISE:
        normalise(program, step, pass);
        break;
    case CPU_STATISTICS:
        keep_statistics(program, step);
        break;
    case CPU_FOLD:
        fold(program, step);
        break;
    case CPU_SUM_RELU_BACKWARD:
        sum_through_relu(program, step);
        break;
    case CPU_DROPOUT:
    case CPU_DROPOUT_BACKWARD:
        drop(program, step, pass);
        break;
    case CPU_OBSERVE:
        return observe(program, step);
    case CPU_LOSS:
        find_loss(program, step, pass, loss);
        break;
    case CPU_READY:
        return pass->ready ? pass->ready(pass->context, step->ready_floats) : 0;
    }
    return 0;
}

int cpu_program_run(struct cpu_program *program, const struct backend_pass *pass,
                    struct backend_loss *loss)
{
    bool parameters_changed = program->parameter_version != program->model->parameter_version;
    int code = 0;

    uint64_t since_ns = program->took_ns ? clock_now_ns() : 0;

    for (uint32_t i = 0; i < program->step_count && code == 0; i++) {
        if (parameters_changed || !program->steps[i].of_parameters)
            code = run_step(program, &program->steps[i], pass, loss);
        schedule_lap(program->took_ns ? &program->took_ns[i] : NULL, &since_ns);
    }
    program->parameter_version = program->model->parameter_version;
    return code;
}
