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
    const int variant = flight->batch.continues && model->config.enqueue; /* without the exchange */
    const bool again = program->labelled == (flight->batch.labels != NULL) &&
                       program->label_smoothing == flight->batch.label_smoothing;
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
        program->labelled = flight->batch.labels != NULL;
        program->label_smoothing = flight->batch.label_smoothing;
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

/* ---- kernels ---- */

/* A kernel whose arguments are all in the step: at->FIELD, or the model's, or the batch's. */
#define KERNEL(NAME, FIELD, OPERATION, FUNCTION, ...)                                          \
    static int launch_##NAME(const struct cuda_model *model, const struct cuda_flight *flight, \
                             const struct cuda_step *step)                                     \
    {                                                                                          \
        const __typeof__(step->FIELD) *at = &step->FIELD;                                      \
        (void)flight;                                                                          \
        return FUNCTION(__VA_ARGS__, model->runtime.stream);                                   \
    }                                                                                          \
    const struct cuda_kernel cuda_kernel_##NAME = {OPERATION, #FUNCTION, launch_##NAME}

/* clang-format off */
KERNEL(input, input, "normalise images", device_normalise, &at->to, flight->rows, at->output);
KERNEL(bias, affine, "bias", device_affine, &at->pixels, &at->with, at->x, at->y);
KERNEL(affine, affine, "BN", device_affine, &at->pixels, &at->with, at->x, at->y);
KERNEL(sum, sum, "sum", device_sum, at->type, at->count, at->a, at->b, at->relu, at->output);
KERNEL(gradient_sum, sum, "sum of gradients", device_sum, at->type, at->count, at->a, at->b,
       at->relu, at->output);
KERNEL(statistics, statistics, "BN statistics", device_norm_statistics, &at->pixels, &at->norm,
       at->x, model->partial);
KERNEL(norm_finish, statistics, "BN statistics", device_norm_finish, &at->pixels, &at->norm,
       at->sums, at->squares);
KERNEL(norm_infer, statistics, "BN coefficients", device_norm_infer, at->pixels.channels,
       &at->norm);
KERNEL(norm_backward, norm_backward, "BN gradient sums", device_norm_backward, &at->pixels,
       &at->norm, &at->gradient, at->x, at->d_gamma, at->d_beta, at->abc, model->partial);
KERNEL(norm_apply, norm_apply, "BN gradient", device_norm_backward_apply, &at->pixels, at->abc,
       at->dz, at->x, at->d_input);
KERNEL(relu_backward, sum, "ReLU gradient", device_relu_backward, at->type, at->count, at->a, at->b,
       at->output);
KERNEL(bias_gradient, bias_gradient, "bias gradient", device_bias_gradient, &at->pixels,
       at->d_output, at->d_bias, model->partial);
KERNEL(stem, stem, "BN, ReLU, max-pool", device_stem, &at->window, at->type, at->scale, at->bias,
       at->x, at->output, at->winners);
KERNEL(stem_backward, norm_backward, "BN, ReLU, max-pool gradient", device_stem_backward,
       &at->window, at->pixels.type, &at->norm, at->winners, at->x, at->gradient.d_output,
       at->gradient.d_other, at->gradient.dz, at->d_gamma, at->d_beta, at->abc,
       model->partial);
KERNEL(max_pool, pool, "max-pool", device_max_pool, &at->window, at->type, at->from, at->to,
       at->winners);
KERNEL(max_pool_backward, pool, "max-pool gradient", device_max_pool_backward, &at->window,
       at->type, at->winners, at->from, at->to);
KERNEL(average_pool, pool, "average-pool", device_average_pool, &at->window, at->type, at->from,
       at->to);
KERNEL(average_pool_backward, pool, "average-pool gradient", device_average_pool_backward,
       &at->window, at->type, at->from, at->to);
KERNEL(lrn, lrn, "LRN", device_lrn, &at->lrn, at->type, at->input, at->output);
KERNEL(lrn_backward, lrn, "LRN gradient", device_lrn_backward, &at->lrn, at->type, at->input,
       at->d_output, at->output);
KERNEL(dropout, dropout, "dropout", device_dropout, &at->pixels, at->plane, at->key, at->rate,
       at->input, at->output);
KERNEL(dropout_backward, dropout, "dropout gradient", device_dropout, &at->pixels, at->plane,
       at->key, at->rate, at->input, at->output);
KERNEL(join, copy, "concatenation", device_copy_part, &at->part, at->from, at->to);
KERNEL(split, copy, "concatenation gradient", device_copy_part, &at->part, at->from, at->to);
KERNEL(quantise, quantise, "to INT8", device_quantise, at->type, at->count, at->from, at->step,
       at->to);
KERNEL(dequantise, quantise, "from INT8", device_dequantise, at->type, at->count, at->from,
       at->step, at->to);
KERNEL(observe, observe, "magnitudes", device_magnitudes, at->type, at->count, at->values,
       at->magnitudes, model->scratch);
/* clang-format on */

/* ---- convolutions ---- */

/* Launch a convolution by cuDNN, or by the plain kernel of its kind. */
static int launch_convolution(const struct cuda_model *model, const struct cuda_flight *flight,
                              const struct cuda_step *step)
{
    const struct dnn_shape *shape = &step->convolution.shape;
    const struct kernel_window *window = &shape->window;
    struct dnn_tensors tensors = step->convolution.tensors;
    void *const *at = tensors.at, *stream = model->runtime.stream;
    void *input = at[DNN_INPUT], *weights = at[DNN_WEIGHTS], *output = at[DNN_OUTPUT];

    (void)flight;
    if (step->convolution.plan) {
        tensors.workspace = model->workspace;
        return dnn_run(model->dnn, step->convolution.plan, &tensors);
    }
    if (shape->int8) {
        const struct device_int8 with = {.scale = at[DNN_SCALE],
                                         .bias = at[DNN_BIAS],
                                         .other = at[DNN_OTHER],
                                         .last = at[DNN_LAST],
                                         .relu = (shape->fusion & DNN_RECTIFIED) != 0,
                                         .to_int8 = shape->int8_output,
                                         .type = shape->type};
        return device_convolution_int8(window, &with, input, weights, output, stream);
    }
    if (shape->kind == DNN_DATA)
        return device_convolution_data(window, shape->type, output, weights, input, stream);
    if (shape->kind == DNN_WEIGHT)
        return device_convolution_weight(window, shape->type, input, output, weights, stream);
    return device_convolution(window, shape->type, input, weights, output, stream);
}

#define CONVOLUTION(NAME, OPERATION, PLAIN) \
    const struct cuda_kernel cuda_kernel_##NAME = {OPERATION, #PLAIN, launch_convolution}

CONVOLUTION(convolution, "convolution", device_convolution);
CONVOLUTION(convolution_int8, "INT8 convolution", device_convolution_int8);
CONVOLUTION(data, "input gradient", device_convolution_data);
CONVOLUTION(weight, "weight gradient", device_convolution_weight);

bool cuda_step_convolves(const struct cuda_step *step)
{
    return step->kernel->launch == launch_convolution;
}

/* ---- loss and exchange ---- */

static int launch_loss(const struct cuda_model *model, const struct cuda_flight *flight,
                       const struct cuda_step *step)
{
    const uint64_t numbers = (uint64_t)step->loss.images * step->loss.classes;
    void *stream = model->runtime.stream;
    int code = 0;

    if (flight->batch.labels)
        code = device_cross_entropy(model->type, step->loss.images, step->loss.classes,
                                    step->loss.logits, cuda_labels(model, model->header),
                                    flight->batch.label_smoothing, &model->header->gradient_scale,
                                    step->loss.d_logits, model->per_image, &model->report->loss,
                                    stream);
    if (code == 0 && !step->loss.training)
        code = device_widen(model->type, numbers, step->loss.logits, 1, model->logits, stream);
    if (code == 0 && !step->loss.training)
        code = runtime_copy(model->logits_result, model->logits, numbers * sizeof(float), stream);
    return code;
}

const struct cuda_kernel cuda_kernel_loss = {"loss", "device_cross_entropy", launch_loss};

/* An exchange sums what is in the arena. If it joins the stream, so does the graph captured from
 * it. */
static int launch_ready(const struct cuda_model *model, const struct cuda_flight *flight,
                        const struct cuda_step *step)
{
    const struct backend_config *config = &model->config;
    const bool last = step->ready.floats == model->graph->parameter_floats;
    void *stream = model->runtime.stream;
    int code = 0;

    if (model->table.collected)
        code =
            device_collect(&model->table, step->ready.first_chunk, step->ready.chunk_count, stream);
    if (code || !config->enqueue || flight->batch.continues)
        return code;
    if (last)
        code = device_stamp(&model->report->gradients_ns, stream);
    if (code == 0)
        code = config->enqueue(config->enqueue_context, step->ready.floats);
    if (last && code == 0)
        code = device_stamp(&model->report->exchanged_ns, stream);
    return code;
}

const struct cuda_kernel cuda_kernel_ready = {"gradients ready", "exchange", launch_ready};
