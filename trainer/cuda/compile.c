/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/compile.h"

#include "base/memory.h"
#include "trainer/cuda/build.h"
#include "trainer/cuda/fuse.h"
#include "trainer/cuda/int8_model.h"

#include <errno.h>
#include <stdlib.h>

static int make_blocks(const struct cuda_model *model, struct cuda_blocks *blocks, bool training)
{
    const uint32_t node_count = model->graph->node_count;
    struct cuda_chain *chains = memory_array(node_count, sizeof *chains);

    if (!chains)
        return -ENOMEM;
    for (uint32_t i = 0; model->quantised && i < node_count; i++)
        if (model->quantised[i].in_int8)
            chains[i] = cuda_chain_of(model, i);
    int code = cuda_blocks_make(
        blocks, &(struct cuda_blocks_config){.graph = model->graph,
                                             .training = training,
                                             .keeps_nodes = model->config.calibration != NULL,
                                             .chains = chains});
    free(chains);
    return code;
}

static int emit(struct cuda_builder *builder)
{
    const uint32_t count = builder->blocks.count;

    builder->values = memory_array(count, sizeof *builder->values);
    if (!builder->values)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        builder->values[i] = (struct cuda_value){.buffer = CUDA_NONE,
                                                 .int8 = CUDA_NONE,
                                                 .winners = CUDA_NONE,
                                                 .open = CUDA_NONE,
                                                 .dz = CUDA_NONE};
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
    int code = make_blocks(model, &builder.blocks, training);
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
