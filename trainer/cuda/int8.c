/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/int8.h"

#include "base/memory.h"
#include "trainer/cuda/int8_model.h"

#include <errno.h>
#include <stdlib.h>

/* ---- rewriting ---- */

/* The new blocks that hold an old block's output, in floating point and in INT8. */
struct copies {
    uint32_t full, int8;
};

struct rewriter {
    const struct cuda_model *model;
    const struct cuda_blocks *from;
    struct cuda_blocks to;
    struct copies *copies; /* of each old block */
    bool *chained;         /* nodes */
    int code;
};

static bool is_set(const struct cuda_model *model, uint32_t node)
{
    return model->quantised[node].step > 0;
}

void cuda_int8_mark(const struct cuda_model *model, bool *kept)
{
    for (uint32_t i = 0; i < model->graph->node_count; i++) {
        if (!model->quantised[i].in_int8)
            continue;
        const struct cuda_chain chain = cuda_chain_of(model, i);
        const uint32_t parts[] = {i, chain.norm, chain.sum, chain.relu};
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
            if (parts[j])
                kept[parts[j]] = true;
    }
}

static uint32_t append(struct rewriter *rewriter, const struct cuda_block *block)
{
    if (rewriter->code == 0)
        rewriter->code = cuda_blocks_append(&rewriter->to, block);
    return rewriter->to.count - 1;
}

/* Append a conversion of another block's output. */
static uint32_t convert(struct rewriter *rewriter, enum cuda_block_kind kind, uint32_t node,
                        uint32_t input)
{
    return append(rewriter, &(struct cuda_block){.kind = kind,
                                                 .node = node,
                                                 .end = node,
                                                 .input_count = 1,
                                                 .inputs = {input},
                                                 .norms = {CUDA_NO_NODE, CUDA_NO_NODE}});
}

/* Return an old block's output in floating point, converted if held in INT8 only. */
static uint32_t full(struct rewriter *rewriter, uint32_t old)
{
    struct copies *copies = &rewriter->copies[old];

    if (copies->full == CUDA_NO_NODE)
        copies->full = convert(rewriter, CUDA_BLOCK_DEQUANTISE, rewriter->to.rows[copies->int8].end,
                               copies->int8);
    return copies->full;
}

static void replace_chain(struct rewriter *rewriter, uint32_t convolution)
{
    const struct cuda_model *model = rewriter->model;
    const struct cuda_chain chain = cuda_chain_of(model, convolution);
    const uint32_t *of_node = rewriter->from->of_node;
    const uint32_t input = of_node[model->graph->nodes[convolution].inputs[0]];
    struct cuda_block block = {.kind = CUDA_BLOCK_CONVOLUTION_INT8,
                               .node = convolution,
                               .end = chain.end,
                               .input_count = chain.sum ? 2 : 1,
                               .inputs = {rewriter->copies[input].int8},
                               .norms = {CUDA_NO_NODE, CUDA_NO_NODE},
                               .relu = chain.relu != 0};

    if (chain.sum)
        block.inputs[1] = rewriter->copies[of_node[chain.other]].int8;
    const uint32_t made = append(rewriter, &block);
    struct copies *copies = &rewriter->copies[of_node[chain.end]];
    *(is_set(model, chain.end) ? &copies->int8 : &copies->full) = made;
}

/* An output that INT8 reads is held in INT8 only. The step may belong to a node of the same output,
 * such as a dropout in inference. */
static void hold(struct rewriter *rewriter, uint32_t node)
{
    const uint32_t old = rewriter->from->of_node[node];
    struct copies *copies = old == CUDA_NO_NODE ? NULL : &rewriter->copies[old];

    if (!copies || !is_set(rewriter->model, node) || copies->full == CUDA_NO_NODE ||
        copies->int8 != CUDA_NO_NODE)
        return;
    copies->int8 = convert(rewriter, CUDA_BLOCK_QUANTISE, node, copies->full);
    copies->full = CUDA_NO_NODE;
}

static void copy(struct rewriter *rewriter, uint32_t old)
{
    struct cuda_block block = rewriter->from->rows[old];

    for (uint32_t i = 0; i < block.input_count; i++)
        block.inputs[i] = full(rewriter, block.inputs[i]);
    rewriter->copies[old].full = append(rewriter, &block);
}

static void rewrite(struct rewriter *rewriter)
{
    const struct cuda_blocks *from = rewriter->from;
    uint32_t next = 0;

    for (uint32_t i = 0; i < from->count; i++)
        rewriter->copies[i] = (struct copies){CUDA_NO_NODE, CUDA_NO_NODE};
    for (uint32_t node = 0; node < rewriter->model->graph->node_count && !rewriter->code; node++) {
        if (next < from->count - 1 && from->rows[next].node == node) {
            if (rewriter->model->quantised[node].in_int8)
                replace_chain(rewriter, node);
            else if (!rewriter->chained[node])
                copy(rewriter, next);
            next++;
        }
        hold(rewriter, node);
    }
    if (!rewriter->code)
        copy(rewriter, next); /* the head */
}

int cuda_int8_rewrite(const struct cuda_model *model, struct cuda_blocks *blocks)
{
    const uint32_t node_count = model->graph->node_count;
    struct rewriter rewriter = {.model = model,
                                .from = blocks,
                                .copies = memory_array(blocks->count, sizeof *rewriter.copies),
                                .chained = memory_array(node_count, sizeof *rewriter.chained)};

    if (rewriter.copies && rewriter.chained) {
        cuda_int8_mark(model, rewriter.chained);
        rewrite(&rewriter);
        cuda_blocks_free(blocks);
        *blocks = rewriter.to;
    } else {
        rewriter.code = -ENOMEM;
    }
    free(rewriter.copies);
    free(rewriter.chained);
    return rewriter.code;
}

/* ---- steps ---- */

void cuda_emit_convolution_int8(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct cuda_int8 *parameters = &model->int8[own->node];
    const bool sum = own->input_count > 1;
    const uint32_t fusion = DNN_SCALED | DNN_BIASED | (own->relu ? DNN_RECTIFIED : 0u) |
                            (sum ? DNN_ADDED | DNN_RESCALED : 0u);
    struct cuda_step step = cuda_step_of(&cuda_kernel_convolution_int8, own->node);
    struct dnn_shape *shape = &step.convolution.shape;
    void **at = step.convolution.tensors.at;

    *shape = cuda_shape(model, builder->program->count, own->node, DNN_FORWARD, fusion);
    shape->int8 = true;
    shape->int8_output = is_set(model, own->end);
    at[DNN_WEIGHTS] = parameters->weight;
    at[DNN_SCALE] = parameters->scale;
    at[DNN_BIAS] = parameters->bias;
    at[DNN_LAST] = parameters->last;
    cuda_reads(&step, &at[DNN_INPUT], cuda_input(builder, own, 0));
    cuda_reads(&step, &at[DNN_OTHER], cuda_input(builder, own, 1));
    cuda_value(builder, own)->buffer =
        shape->int8_output ? cuda_add_buffer(builder, cuda_numbers_of(builder, own->end))
                           : cuda_add_tensor(builder, own->end);
    cuda_writes(&step, &at[DNN_OUTPUT], cuda_value(builder, own)->buffer);
    cuda_find_dnn(builder, &step);
    cuda_add_step(builder, &step);
}

static void emit_conversion(struct cuda_builder *builder, const struct cuda_kernel *kernel,
                            const struct cuda_block *own, uint32_t buffer)
{
    struct cuda_step step = cuda_step_of(kernel, own->node);

    cuda_value(builder, own)->buffer = buffer;
    step.quantise.type = builder->model->type;
    step.quantise.count = cuda_numbers_of(builder, own->node);
    step.quantise.step = builder->model->quantised[own->node].step;
    cuda_reads(&step, &step.quantise.from, cuda_input(builder, own, 0));
    cuda_writes(&step, &step.quantise.to, buffer);
    cuda_add_step(builder, &step);
}

void cuda_emit_quantise(struct cuda_builder *builder, const struct cuda_block *own)
{
    emit_conversion(builder, &cuda_kernel_quantise, own,
                    cuda_add_buffer(builder, cuda_numbers_of(builder, own->node)));
}

void cuda_emit_dequantise(struct cuda_builder *builder, const struct cuda_block *own)
{
    emit_conversion(builder, &cuda_kernel_dequantise, own, cuda_add_tensor(builder, own->node));
}
