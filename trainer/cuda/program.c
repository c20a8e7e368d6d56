/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/program.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Moments are before the first step, after it, before the second, when the graph begins, and after
 * each step from then on. */
static uint32_t moment_before(uint32_t step)
{
    return step + (step > 0);
}

static uint32_t moment_after(uint32_t step)
{
    return moment_before(step) + 1;
}

void cuda_program_destroy(struct cuda_program *program)
{
    if (!program)
        return;
    cuda_program_forget(program); /* it records the moments */
    for (uint32_t i = 0; program->moments && i < moment_after(program->step_count); i++)
        runtime_event_destroy(program->moments[i]);
    free(program->moments);
    free(program->took_ns);
    free(program->buffers);
    free(program->steps);
    free(program);
}

void cuda_program_bind(struct cuda_program *program, void *arena)
{
    if (program->bound == arena)
        return;
    cuda_program_forget(program);
    for (uint32_t i = 0; i < program->step_count; i++) {
        struct cuda_step *step = &program->steps[i];
        for (uint32_t j = 0; j < step->operand_count; j++) {
            const struct lifetime *buffer = &program->buffers[step->operands[j].buffer];
            void *address = (char *)arena + buffer->offset;
            assert(buffer->offset + buffer->bytes <= program->arena_bytes);
            memcpy((char *)step + step->operands[j].place, &address, sizeof address);
        }
    }
    program->bound = arena;
}

void cuda_program_forget(struct cuda_program *program)
{
    for (int i = 0; i < 2; i++) {
        runtime_graph_destroy(program->graphs[i]);
        program->graphs[i] = NULL;
    }
}

/* ---- timing ---- */

int cuda_program_time(struct cuda_program *program)
{
    int code = 0;

    cuda_program_forget(program); /* it records no moments */
    program->moments = memory_array(moment_after(program->step_count), sizeof *program->moments);
    program->took_ns = memory_array(program->step_count, sizeof *program->took_ns);
    if (!program->moments || !program->took_ns)
        return -ENOMEM;
    for (uint32_t i = 0; i < moment_after(program->step_count) && code == 0; i++)
        code = runtime_event_create(&program->moments[i]);
    return code;
}

int cuda_program_add_times(struct cuda_program *program)
{
    int code = 0;

    for (uint32_t i = 0; program->moments && i < program->step_count && code == 0; i++) {
        double milliseconds = 0;
        code = runtime_event_elapsed(program->moments[moment_before(i)],
                                     program->moments[moment_after(i)], &milliseconds);
        program->took_ns[i] += milliseconds * 1e6;
    }
    return code;
}

static int mark(const struct cuda_program *program, uint32_t moment, void *stream)
{
    return program->moments ? runtime_event_stamp(program->moments[moment], stream) : 0;
}

/* ---- running ---- */

static int run_steps(const struct cuda_program *program, const struct cuda_flight *flight,
                     uint32_t first, uint32_t end)
{
    const struct cuda_model *model = program->model;
    int code = mark(program, moment_before(first), model->runtime.stream);

    for (uint32_t i = first; i < end && code == 0; i++) {
        const struct cuda_step *step = &program->steps[i];
        runtime_range_push(model->graph->nodes[step->node].name);
        code = step->kernel->launch(model, flight, step);
        runtime_range_pop();
        code = code ? code : mark(program, moment_after(i), model->runtime.stream);
    }
    return code;
}

/* The first step reads the images from this batch's slot; all others find theirs at the same
 * addresses every time, so they can be a graph. */
int cuda_program_start(struct cuda_program *program, const struct cuda_flight *flight)
{
    const struct cuda_model *model = program->model;
    const int variant = flight->continues && model->config.enqueue; /* without the exchange */
    const bool again = program->labelled == flight->labelled &&
                       program->label_smoothing == flight->label_smoothing;
    void **graph = &program->graphs[variant];

    assert(program->steps[0].kernel == &cuda_kernel_input);
    int code = run_steps(program, flight, 0, 1);
    if (code)
        return code;
    /* The first run is eager: it loads kernels, which may not be allowed during capture. */
    if (!again)
        cuda_program_forget(program);
    if (!again || !program->has_run[variant] || !model->settings->graph ||
        !model->runtime.captures) {
        program->has_run[variant] = true;
        program->labelled = flight->labelled;
        program->label_smoothing = flight->label_smoothing;
        return run_steps(program, flight, 1, program->step_count);
    }
    if (!*graph) {
        code = runtime_capture_begin(model->runtime.stream);
        if (code)
            return code;
        code = run_steps(program, flight, 1, program->step_count);
        int ended = runtime_capture_end(model->runtime.stream, graph);
        code = code ? code : ended;
        if (code) {
            cuda_program_forget(program); /* half a step must never run */
            return code;
        }
    }
    return runtime_graph_launch(*graph, model->runtime.stream);
}
