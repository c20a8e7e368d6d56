/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/cuda.h"

#include <errno.h>

static uint64_t bytes_of(const struct cuda_model *model)
{
    return model->graph->node_count * sizeof *model->magnitudes;
}

int cuda_observe_open(struct cuda_model *model)
{
    void *stream = model->runtime.stream;

    if (!model->site.calibration)
        return 0;
    model->magnitudes = cuda_allocate(model, bytes_of(model));
    model->scratch = cuda_allocate(model, sizeof *model->scratch);
    if (!model->magnitudes || !model->scratch)
        return -ENOMEM;
    int code = runtime_zero(model->magnitudes, bytes_of(model), stream);
    return code ? code : runtime_zero(model->scratch, sizeof *model->scratch, stream);
}

void cuda_observe_close(struct cuda_model *model)
{
    runtime_release(model->magnitudes);
    runtime_release(model->scratch);
}

/* in: the output. */
static int run_observe(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;

    return device_magnitudes(model->type, plan->count * cuda_numbers(model, step->node),
                             cuda_at(plan, step->in), &model->magnitudes[step->node],
                             model->scratch, model->runtime.stream);
}

/* But for the images, which have channels of no meaning. */
void cuda_observe_build(struct cuda_plan *plan, uint32_t node)
{
    struct cuda_step step = cuda_step_of(run_observe, node);

    if (!plan->model->magnitudes || node == 0)
        return;
    step.in = cuda_value(plan, node);
    cuda_add_step(plan, &step);
}

int cuda_observe_fetch(const struct cuda_model *model)
{
    struct calibration *calibration = model->site.calibration;
    int code = runtime_copy(calibration->histograms, model->magnitudes, bytes_of(model),
                            model->runtime.stream);

    if (code == 0)
        code = runtime_wait(model->runtime.stream);
    return code ? code : calibration_check(calibration);
}
