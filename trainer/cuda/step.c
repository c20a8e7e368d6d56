/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/step.h"

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

/* By cuDNN, or by the plain kernel of its kind. */
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

    if (flight->labelled)
        code = device_cross_entropy(model->type, step->loss.images, step->loss.classes,
                                    step->loss.logits, cuda_labels(model, model->header),
                                    flight->label_smoothing, &model->header->gradient_scale,
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
    if (code || !config->enqueue || flight->continues)
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
