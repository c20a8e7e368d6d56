/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/compile.h"

#include "base/memory.h"
#include "trainer/cuda/fuse.h"
#include "trainer/cuda/int8.h"

#include <errno.h>
#include <stdlib.h>

static int rewrite(const struct cuda_model *model, struct cuda_blocks *blocks, bool training)
{
    const uint32_t node_count = model->graph->node_count;
    bool *kept = memory_array(node_count, sizeof *kept);

    if (!kept)
        return -ENOMEM;
    for (uint32_t i = 0; i < node_count; i++)
        kept[i] = model->config.calibration != NULL;
    if (model->quantised)
        cuda_int8_mark(model, kept);
    int code = cuda_blocks_make(blocks, model->graph, training, kept);
    if (code == 0 && model->quantised)
        code = cuda_int8_rewrite(model, blocks);
    free(kept);
    return code ? code : cuda_blocks_link(blocks, model->graph);
}

static int emit(struct cuda_builder *builder)
{
    const uint32_t count = builder->blocks.count;

    builder->values = memory_array(count, sizeof *builder->values);
    if (!builder->values)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        builder->values[i] =
            (struct cuda_value){.buffer = CUDA_NONE, .winners = CUDA_NONE, .dz = CUDA_NONE};
    cuda_emit_forward(builder);
    if (builder->program->training && !builder->code)
        cuda_emit_backward(builder);
    free(builder->values);
    return builder->code;
}

struct cuda_program *cuda_compile(struct cuda_model *model, uint32_t count, bool training)
{
    struct cuda_program *program = memory_zeroed(sizeof *program);
    struct cuda_builder builder = {.program = program, .model = model};

    if (!program)
        return NULL;
    *program = (struct cuda_program){.model = model, .count = count, .training = training};
    int code = rewrite(model, &builder.blocks, training);
    if (code == 0)
        code = cuda_fuse(&builder.blocks, model, count, training);
    if (code == 0)
        code = emit(&builder);
    if (code == 0)
        code = cuda_program_place(program);
    cuda_blocks_free(&builder.blocks);
    if (code) {
        cuda_program_destroy(program);
        return NULL;
    }
    return program;
}
