/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu/cpu.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/kernels.h"
#include "trainer/bf16.h"

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
    cpu_check_layouts(program);
    if (program->code == 0)
        place_buffers(program);
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
    build(program);
    forget_nodes(program);
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

/* One step of one batch. */
struct cpu_run {
    const struct cpu_program *program;
    const struct cpu_step *step;
    const struct backend_pass *pass;
    struct backend_loss *loss;
    const struct cpu_model *model;
    const struct graph_node *node;
    float *source, *target, *other; /* of the step */
};

static int execute(const struct cpu_run *run)
{
    return dnnl_primitive_execute(run->step->primitive, run->model->dnnl.stream,
                                  run->step->argument_count, run->step->arguments)
               ? fail(EIO, "backend cpu: oneDNN failed to compute %s", run->node->name)
               : 0;
}

static void normalise_images(const void *context, uint64_t first, uint64_t end)
{
    const struct cpu_run *run = context;
    const size_t plane = (size_t)run->node->shape.height * run->node->shape.width;
    const size_t offset = first * 3 * plane;

    kernel_normalise((uint32_t)(end - first), plane, run->pass->batch->rows + offset, backend_mean,
                     backend_deviation, run->target + offset);
}

static int normalise(const struct cpu_run *run)
{
    cpu_share(run->program->count, 1, normalise_images, run);
    return 0;
}

VECTOR_CLONES
static void sum_relu_part(const void *context, uint64_t first, uint64_t end)
{
    const struct cpu_run *run = context;
    const float *a = run->source, *b = run->other;
    const float *output = run->program->buffers[run->step->mask].address;
    float *sum = run->target;

    for (uint64_t i = first; i < end; i++)
        sum[i] = output[i] <= 0 ? 0 : a[i] + b[i];
}

VECTOR_CLONES
static void sum_relu_part_bf16(const void *context, uint64_t first, uint64_t end)
{
    const struct cpu_run *run = context;
    const uint16_t *a = (const void *)run->source, *b = (const void *)run->other;
    const uint16_t *output = run->program->buffers[run->step->mask].address;
    uint16_t *sum = (void *)run->target;

    for (uint64_t i = first; i < end; i++)
        sum[i] = bf16_to_float(output[i]) <= 0
                     ? 0
                     : bf16_of_float(bf16_to_float(a[i]) + bf16_to_float(b[i]));
}

/* Sum the gradients from a ReLU's two consumers and apply the ReLU's backward pass: one pass over
 * memory, where oneDNN's sum and eltwise take two. */
static int sum_through_relu(const struct cpu_run *run)
{
    const bool halves = run->model->type == dnnl_bf16;

    cpu_share(run->step->floats, 2 * LINE_FLOATS, halves ? sum_relu_part_bf16 : sum_relu_part, run);
    return 0;
}

static int keep_statistics(const struct cpu_run *run)
{
    const struct graph_shape *shape = &run->node->shape;
    float *running = run->model->statistics + run->node->statistics;

    kernel_batch_norm_statistics(
        shape->channels, (size_t)run->program->count * shape->height * shape->width,
        run->node->momentum, run->source, run->target, running, running + shape->channels);
    return 0;
}

static int fold(const struct cpu_run *run)
{
    graph_fold_norm(run->model->graph, run->step->node, run->step->norm, run->model->parameters,
                    run->model->statistics, run->source, run->target, run->other);
    return 0;
}

static int observe(const struct cpu_run *run)
{
    return calibration_observe(run->model->calibration, run->step->node, run->source,
                               run->step->floats);
}

static int drop(const struct cpu_run *run)
{
    const size_t count = run->program->count * graph_node_floats(run->node);
    const uint64_t key =
        kernel_dropout_key(run->model->seed, run->pass->batch->step, run->step->node);

    if (run->step->kind == CPU_DROPOUT) {
        kernel_dropout(count, key, run->node->dropout_rate, run->source, run->target);
        return 0;
    }
    memset(run->target, 0, count * sizeof *run->target); /* the kernel accumulates */
    kernel_dropout_backward(count, key, run->node->dropout_rate, run->source, run->target);
    return 0;
}

static int find_loss(const struct cpu_run *run)
{
    const uint32_t classes = run->model->graph->classes, count = run->program->count;
    const struct backend_pass *pass = run->pass;

    if (pass->logits)
        memcpy(pass->logits, run->source, (size_t)count * classes * sizeof *run->source);
    *run->loss = (struct backend_loss){.count = count};
    if (!pass->batch->labels)
        return 0;
    const struct kernel_loss found =
        kernel_cross_entropy(count, classes, run->source, pass->batch->labels,
                             pass->label_smoothing, run->program->training ? run->target : NULL);
    *run->loss = backend_loss_of(count, &found);
    return 0;
}

static int report_ready(const struct cpu_run *run)
{
    return run->pass->ready ? run->pass->ready(run->pass->context, run->step->ready_floats) : 0;
}

static float *address_of(const struct cpu_program *program, uint32_t buffer)
{
    return buffer < program->buffer_count ? program->buffers[buffer].address : NULL;
}

static int run_step(const struct cpu_program *program, const struct cpu_step *step,
                    const struct backend_pass *pass, struct backend_loss *loss)
{
    static int (*const kinds[])(const struct cpu_run *run) = {
        [CPU_PRIMITIVE] = execute,
        [CPU_NORMALISE] = normalise,
        [CPU_STATISTICS] = keep_statistics,
        [CPU_FOLD] = fold,
        [CPU_SUM_RELU_BACKWARD] = sum_through_relu,
        [CPU_DROPOUT] = drop,
        [CPU_DROPOUT_BACKWARD] = drop,
        [CPU_OBSERVE] = observe,
        [CPU_LOSS] = find_loss,
        [CPU_READY] = report_ready,
    };

    return kinds[step->kind](&(struct cpu_run){.program = program,
                                               .step = step,
                                               .pass = pass,
                                               .loss = loss,
                                               .model = program->model,
                                               .node = &program->model->graph->nodes[step->node],
                                               .source = address_of(program, step->source),
                                               .target = address_of(program, step->target),
                                               .other = address_of(program, step->other)});
}

int cpu_program_run(struct cpu_program *program, const struct backend_pass *pass,
                    struct backend_loss *loss)
{
    bool parameters_changed = program->parameter_version != program->model->parameter_version;
    int code = 0;

    uint64_t since_ns = program->took_ns ? clock_now_ns() : 0;

    for (uint32_t i = 0; i < program->step_count && code == 0; i++) {
        code = tick_ask(pass->batch->tick);
        if (code == 0 && (parameters_changed || !program->steps[i].of_parameters))
            code = run_step(program, &program->steps[i], pass, loss);
        schedule_lap(program->took_ns ? &program->took_ns[i] : NULL, &since_ns);
    }
    if (code == 0) /* else some that are computed once may be missing */
        program->parameter_version = program->model->parameter_version;
    return code;
}
