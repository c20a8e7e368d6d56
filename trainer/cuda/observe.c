/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/build.h"

static uint64_t bytes_of(const struct cuda_model *model)
{
    return model->graph->node_count * sizeof *model->magnitudes;
}

int cuda_observe_open(struct cuda_model *model)
{
    if (model->config.calibration) {
        model->magnitudes = cuda_zeros(model, bytes_of(model));
        model->scratch = cuda_zeros(model, sizeof *model->scratch);
    }
    return model->code;
}

/* Nodes that compute nothing, such as a dropout in inference, share the output of another. */
void cuda_emit_observations(struct cuda_builder *builder, uint32_t block)
{
    for (uint32_t node = 1; node < builder->model->graph->node_count; node++) {
        struct cuda_step step = cuda_step_of(&cuda_kernel_observe, node);
        if (builder->blocks.of_node[node] != block)
            continue;
        step.observe.type = builder->model->type;
        step.observe.count = cuda_numbers_of(builder, node);
        step.observe.magnitudes = &builder->model->magnitudes[node];
        cuda_reads(&step, &step.observe.values, builder->values[block].buffer);
        cuda_add_step(builder, &step);
    }
}

int cuda_observe_fetch(const struct cuda_model *model)
{
    struct calibration *calibration = model->config.calibration;
    int code = runtime_copy(calibration->histograms, model->magnitudes, bytes_of(model),
                            model->runtime.stream);

    if (code == 0)
        code = runtime_wait(model->runtime.stream);
    return code ? code : calibration_check(calibration);
}
