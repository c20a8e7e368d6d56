/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/observe.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t bytes_of(const struct cuda_model *model)
{
    return model->graph->node_count * sizeof *model->magnitudes;
}

int cuda_observe_open(struct cuda_model *model)
{
    void *stream = model->runtime.stream;

    if (!model->config.calibration)
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

/* The images are not observed: some of their channels are padding. */
int cuda_observe_rewrite(const struct cuda_model *model, struct cuda_blocks *blocks)
{
    struct cuda_blocks to = {0};
    uint32_t *moved = memory_array(blocks->count, sizeof *moved); /* new index of each block */
    uint32_t next = 0;
    int code = moved ? 0 : -ENOMEM;

    for (uint32_t node = 0; code == 0 && next < blocks->count; node++) {
        if (node >= model->graph->node_count || blocks->rows[next].node == node) {
            struct cuda_block *block = &blocks->rows[next];
            for (uint32_t i = 0; i < block->input_count; i++)
                block->inputs[i] = moved[block->inputs[i]];
            moved[next++] = to.count;
            code = cuda_blocks_append(&to, block);
        }
        if (code == 0 && node > 0 && node < model->graph->node_count)
            code = cuda_blocks_append(&to,
                                      &(struct cuda_block){.kind = CUDA_BLOCK_OBSERVE,
                                                           .node = node,
                                                           .end = node,
                                                           .input_count = 1,
                                                           .inputs = {moved[blocks->of_node[node]]},
                                                           .norms = {CUDA_NO_NODE, CUDA_NO_NODE}});
    }
    free(moved);
    cuda_blocks_free(blocks);
    *blocks = to;
    return code;
}

void cuda_emit_observe(struct cuda_builder *builder, const struct cuda_block *own)
{
    struct cuda_step step = cuda_step_of(&cuda_kernel_observe, own->node);

    step.observe.type = builder->model->type;
    step.observe.count = cuda_numbers_of(builder, own->node);
    step.observe.magnitudes = &builder->model->magnitudes[own->node];
    cuda_reads(&step, &step.observe.values, cuda_input(builder, own, 0));
    cuda_add_step(builder, &step);
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
