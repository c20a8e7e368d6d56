/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/step.h"

/* ---- both passes ---- */

static int launch_input(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_normalise(&step->input.to, run->pass->rows, step->input.output, run->stream);
}

static int launch_sum(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_sum(step->sum.type, step->sum.count, step->sum.a, step->sum.b, step->sum.relu,
                      step->sum.output, run->stream);
}

static int launch_dropout(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_dropout(&step->dropout.pixels, step->dropout.plane, step->dropout.key,
                          step->dropout.rate, step->dropout.input, step->dropout.output,
                          run->stream);
}

static int launch_copy(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_copy_part(&step->copy.part, step->copy.from, step->copy.to, run->stream);
}

/* ---- convolutions ---- */

static int launch_convolution_int8(const struct cuda_run *run, const struct cuda_step *step)
{
    const struct dnn_shape *shape = &step->convolution.shape;
    void *const *at = step->convolution.tensors.at;
    const struct device_int8 with = {.scale = at[DNN_SCALE],
                                     .bias = at[DNN_BIAS],
                                     .other = at[DNN_OTHER],
                                     .last = at[DNN_LAST],
                                     .relu = (shape->fusion & DNN_RECTIFIED) != 0,
                                     .to_int8 = shape->int8_output,
                                     .type = shape->type};

    return device_convolution_int8(&shape->window, &with, at[DNN_INPUT], at[DNN_WEIGHTS],
                                   at[DNN_OUTPUT], run->stream);
}

/* By cuDNN, or by the plain kernel of its kind. */
static int launch_convolution(const struct cuda_run *run, const struct cuda_step *step)
{
    const struct dnn_shape *shape = &step->convolution.shape;
    const struct kernel_window *window = &shape->window;
    struct dnn_tensors tensors = step->convolution.tensors;
    void *input = tensors.at[DNN_INPUT], *weights = tensors.at[DNN_WEIGHTS];
    void *output = tensors.at[DNN_OUTPUT];

    if (step->convolution.plan) {
        tensors.workspace = run->model->workspace;
        return dnn_run(run->model->dnn, step->convolution.plan, &tensors);
    }
    if (shape->int8)
        return launch_convolution_int8(run, step);
    switch (shape->kind) {
    case DNN_FORWARD:
        break;
    case DNN_DATA:
        return device_convolution_data(window, shape->type, output, weights, input, run->stream);
    case DNN_WEIGHT:
        return device_convolution_weight(window, shape->type, input, output, weights, run->stream);
    }
    return device_convolution(window, shape->type, input, weights, output, run->stream);
}

static int launch_gradient(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_gradient(run->model->type, step->gradient.count, step->gradient.channels,
                           step->gradient.padded, step->gradient.from, cuda_unscale(run->model),
                           step->gradient.to, run->stream);
}

static int launch_bias_gradient(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_bias_gradient(&step->bias_gradient.pixels, step->bias_gradient.d_output,
                                cuda_unscale(run->model), step->bias_gradient.d_bias,
                                run->model->partial, run->stream);
}

/* ---- normalisation ---- */

static int launch_affine(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_affine(&step->affine.pixels, &step->affine.with, step->affine.x, step->affine.y,
                         run->stream);
}

static int launch_statistics(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_norm_statistics(&step->statistics.pixels, &step->statistics.norm,
                                  step->statistics.x, run->model->partial, run->stream);
}

static int launch_norm_finish(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_norm_finish(&step->statistics.pixels, &step->statistics.norm,
                              step->statistics.sums, step->statistics.squares, run->stream);
}

static int launch_norm_infer(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_norm_infer(step->statistics.pixels.channels, &step->statistics.norm, run->stream);
}

static int launch_norm_backward(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_norm_backward(
        &step->norm_backward.pixels, &step->norm_backward.norm, &step->norm_backward.gradient,
        step->norm_backward.x, cuda_unscale(run->model), step->norm_backward.d_gamma,
        step->norm_backward.d_beta, step->norm_backward.abc, run->model->partial, run->stream);
}

static int launch_norm_parameters(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_norm_parameters(step->norm_parameters.channels, step->norm_parameters.gamma,
                                  step->norm_parameters.beta, cuda_unscale(run->model),
                                  step->norm_parameters.d_gamma, step->norm_parameters.d_beta,
                                  run->stream);
}

static int launch_norm_apply(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_norm_backward_apply(&step->norm_apply.pixels, step->norm_apply.abc,
                                      step->norm_apply.dz, step->norm_apply.x,
                                      step->norm_apply.d_input, run->stream);
}

static int launch_relu_backward(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_relu_backward(step->relu_backward.type, step->relu_backward.count,
                                step->relu_backward.output, step->relu_backward.d_output,
                                step->relu_backward.d_input, run->stream);
}

/* ---- pools and LRN ---- */

static int launch_stem(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_stem(&step->stem.window, step->stem.type, step->stem.scale, step->stem.bias,
                       step->stem.x, step->stem.output, step->stem.winners, run->stream);
}

static int launch_stem_backward(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_stem_backward(
        &step->stem_backward.window, step->stem_backward.type, &step->stem_backward.norm,
        step->stem_backward.winners, step->stem_backward.x, step->stem_backward.d_output,
        step->stem_backward.d_other, step->stem_backward.dz, cuda_unscale(run->model),
        step->stem_backward.d_gamma, step->stem_backward.d_beta, step->stem_backward.abc,
        run->model->partial, run->stream);
}

static int launch_max_pool(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_max_pool(&step->pool.window, step->pool.type, step->pool.from, step->pool.to,
                           step->pool.winners, run->stream);
}

static int launch_max_pool_backward(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_max_pool_backward(&step->pool.window, step->pool.type, step->pool.winners,
                                    step->pool.from, step->pool.to, run->stream);
}

static int launch_average_pool(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_average_pool(&step->pool.window, step->pool.type, step->pool.from, step->pool.to,
                               run->stream);
}

static int launch_average_pool_backward(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_average_pool_backward(&step->pool.window, step->pool.type, step->pool.from,
                                        step->pool.to, run->stream);
}

static int launch_lrn(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_lrn(&step->lrn.lrn, step->lrn.type, step->lrn.input, step->lrn.output,
                      run->stream);
}

static int launch_lrn_backward(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_lrn_backward(&step->lrn.lrn, step->lrn.type, step->lrn.input, step->lrn.d_output,
                               step->lrn.output, run->stream);
}

/* ---- loss, INT8, exchange ---- */

static int launch_loss(const struct cuda_run *run, const struct cuda_step *step)
{
    const struct cuda_model *model = run->model;
    const uint64_t numbers = (uint64_t)step->loss.images * step->loss.classes;
    int code = 0;

    if (run->pass->labelled)
        code = device_cross_entropy(model->type, step->loss.images, step->loss.classes,
                                    step->loss.logits, cuda_labels(model, model->header),
                                    run->pass->label_smoothing, &model->header->gradient_scale,
                                    step->loss.d_logits, model->per_image, &model->report->loss,
                                    run->stream);
    if (code || step->loss.training)
        return code;
    code = device_gradient(model->type, numbers, 1, 1, step->loss.logits, NULL, model->logits,
                           run->stream);
    return code ? code
                : runtime_copy(model->logits_result, model->logits, numbers * sizeof(float),
                               run->stream);
}

static int launch_quantise(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_quantise(step->quantise.type, step->quantise.count, step->quantise.from,
                           step->quantise.step, step->quantise.to, run->stream);
}

static int launch_dequantise(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_dequantise(step->quantise.type, step->quantise.count, step->quantise.from,
                             step->quantise.step, step->quantise.to, run->stream);
}

static int launch_observe(const struct cuda_run *run, const struct cuda_step *step)
{
    return device_magnitudes(step->observe.type, step->observe.count, step->observe.values,
                             step->observe.magnitudes, run->model->scratch, run->stream);
}

/* An exchange joins the stream, and the graph captured from it. */
static int launch_ready(const struct cuda_run *run, const struct cuda_step *step)
{
    const struct cuda_model *model = run->model;
    const struct backend_config *config = &model->config;
    const bool last = step->ready.floats == model->graph->parameter_floats;
    int code = 0;

    if (!config->enqueue)
        return 0;
    if (last)
        code = device_stamp(&model->report->gradients_ns, run->stream);
    if (code == 0)
        code = config->enqueue(config->enqueue_context, step->ready.floats);
    if (last && code == 0)
        code = device_stamp(&model->report->exchanged_ns, run->stream);
    return code;
}

/* ---- the table ---- */

#define KERNEL(NAME, OPERATION, KERNEL_NAME, LAUNCH) \
    const struct cuda_kernel cuda_kernel_##NAME = {OPERATION, KERNEL_NAME, LAUNCH}

KERNEL(input, "normalise images", "device_normalise", launch_input);
KERNEL(convolution, "convolution", "device_convolution", launch_convolution);
KERNEL(convolution_int8, "INT8 convolution", "device_convolution_int8", launch_convolution);
KERNEL(bias, "bias", "device_affine", launch_affine);
KERNEL(statistics, "BN statistics", "device_norm_statistics", launch_statistics);
KERNEL(norm_finish, "BN statistics", "device_norm_finish", launch_norm_finish);
KERNEL(norm_infer, "BN coefficients", "device_norm_infer", launch_norm_infer);
KERNEL(affine, "BN", "device_affine", launch_affine);
KERNEL(sum, "sum", "device_sum", launch_sum);
KERNEL(stem, "BN, ReLU, max-pool", "device_stem", launch_stem);
KERNEL(max_pool, "max-pool", "device_max_pool", launch_max_pool);
KERNEL(average_pool, "average-pool", "device_average_pool", launch_average_pool);
KERNEL(lrn, "LRN", "device_lrn", launch_lrn);
KERNEL(dropout, "dropout", "device_dropout", launch_dropout);
KERNEL(join, "concatenation", "device_copy_part", launch_copy);
KERNEL(loss, "loss", "device_cross_entropy", launch_loss);
KERNEL(quantise, "to INT8", "device_quantise", launch_quantise);
KERNEL(dequantise, "from INT8", "device_dequantise", launch_dequantise);
KERNEL(observe, "magnitudes", "device_magnitudes", launch_observe);
KERNEL(gradient_sum, "sum of gradients", "device_sum", launch_sum);
KERNEL(weight, "weight gradient", "device_convolution_weight", launch_convolution);
KERNEL(gradient, "weight gradient to FP32", "device_gradient", launch_gradient);
KERNEL(data, "input gradient", "device_convolution_data", launch_convolution);
KERNEL(bias_gradient, "bias gradient", "device_bias_gradient", launch_bias_gradient);
KERNEL(relu_backward, "ReLU gradient", "device_relu_backward", launch_relu_backward);
KERNEL(norm_backward, "BN gradient sums", "device_norm_backward", launch_norm_backward);
KERNEL(norm_parameters, "BN parameter gradients", "device_norm_parameters", launch_norm_parameters);
KERNEL(norm_apply, "BN gradient", "device_norm_backward_apply", launch_norm_apply);
KERNEL(stem_backward, "BN, ReLU, max-pool gradient", "device_stem_backward", launch_stem_backward);
KERNEL(max_pool_backward, "max-pool gradient", "device_max_pool_backward",
       launch_max_pool_backward);
KERNEL(average_pool_backward, "average-pool gradient", "device_average_pool_backward",
       launch_average_pool_backward);
KERNEL(lrn_backward, "LRN gradient", "device_lrn_backward", launch_lrn_backward);
KERNEL(dropout_backward, "dropout gradient", "device_dropout", launch_dropout);
KERNEL(split, "concatenation gradient", "device_copy_part", launch_copy);
KERNEL(ready, "gradients ready", "exchange", launch_ready);

bool cuda_step_convolves(const struct cuda_step *step)
{
    return step->kernel->launch == launch_convolution;
}
