/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu/cpu.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/kernels.h"
#include "trainer/bf16.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

enum { LINE_FLOATS = 16 };

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

/* ---- threads ----
 *
 * Functions of our own run on oneDNN's threads: those of libgomp, through the entry points that GCC
 * compiles `#pragma omp parallel` to. Not every compiler has omp.h, and a second runtime would
 * create a second set of threads. */

void GOMP_parallel(void (*body)(void *argument), void *argument, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

struct work {
    uint64_t count, unit;
    cpu_part body;
    const void *context;
};

static void do_share(void *argument)
{
    const struct work *work = argument;
    const uint64_t threads = (uint64_t)omp_get_num_threads(), me = (uint64_t)omp_get_thread_num();
    const uint64_t units = (work->count + work->unit - 1) / work->unit;
    const uint64_t first = units * me / threads * work->unit;
    const uint64_t end = units * (me + 1) / threads * work->unit;

    if (first < work->count)
        work->body(work->context, first, end < work->count ? end : work->count);
}

void cpu_share(uint64_t count, uint64_t unit, cpu_part body, const void *context)
{
    struct work work = {count, unit, body, context};

    GOMP_parallel(do_share, &work, 0, 0);
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
