/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks: a graph rewritten into blocks, groups of nodes computed together. A sum applies the BNs
 * of its sides and the ReLU after it; a BN alone, with or without ReLU, is a sum of one side, and
 * so is a ReLU that no other block computes; a stem is BN, ReLU and max-pool. Tensors inside a
 * block are never stored. Blocks are in the order of their nodes; inputs are blocks. Knows
 * no step.
 *
 * Fusions: which convolutions compute what surrounds them.
 *
 * Between two convolutions are BN and ReLU, perhaps also a sum. As separate steps they read and
 * write whole tensors, which is most of what a step waits for. A convolution can
 * - compute the sums that the BN after it needs (statistics),
 * - apply BN and ReLU to its input while reading it, in both passes, so that the tensor between is
 *   never stored (prologue); or a sum of one or two BNs and ReLU, which it stores for later users:
 *   the other side of the next block, and the backward pass,
 * - in the backward pass go through the ReLU before it, and compute the gradient sums of the BN
 *   before that (norm), or of the two BNs of a sum, with a second gradient added.
 *
 * In inference, where BN is a scale and a bias per channel, a convolution can apply the BN after
 * it, and a sum and ReLU after that; a convolution with a bias can add it and apply ReLU, in
 * training too.
 *
 * On a device the fastest is chosen: an engine that fuses, by the time it took when it was chosen,
 * or one that does not and the steps of our own around it, by the bytes they move. Where engines
 * were not timed, the choice is a rule: fuse as much as cuDNN has engines for, unless the engine's
 * workspace undoes what the fusion saves.
 */
#ifndef IOBENCH_TRAINER_CUDA_BLOCKS_H
#define IOBENCH_TRAINER_CUDA_BLOCKS_H

#include "trainer/cuda/model.h"

enum cuda_block_kind {
    CUDA_BLOCK_INPUT,
    CUDA_BLOCK_CONVOLUTION, /* or a fully connected layer; bias and ReLU */
    CUDA_BLOCK_SUM,         /* of one or two sides, each through a BN of its own or not; ReLU */
    CUDA_BLOCK_STEM,        /* BN, ReLU, max-pool */
    CUDA_BLOCK_POOL,
    CUDA_BLOCK_JOIN, /* concatenation */
    CUDA_BLOCK_LRN,
    CUDA_BLOCK_DROPOUT,
    CUDA_BLOCK_HEAD,             /* the loss; always the last one */
    CUDA_BLOCK_CONVOLUTION_INT8, /* with the nodes of its chain */
};

/* Who computes a sum's output. */
enum cuda_output {
    CUDA_OUTPUT_STORED,     /* a step of its own */
    CUDA_OUTPUT_BY_USER,    /* the convolution that reads it also stores it */
    CUDA_OUTPUT_RECOMPUTED, /* never stored: the convolution that reads it applies BN and ReLU */
    CUDA_OUTPUT_BY_INPUT,   /* the convolution before it, in inference */
};

struct cuda_block {
    enum cuda_block_kind kind;
    uint32_t node; /* the node at whose place it is computed, and which names it */
    uint32_t end;  /* the node whose output it computes */
    uint32_t input_count;
    uint32_t inputs[GRAPH_INPUTS_MAX];
    uint32_t norms[2]; /* of a sum or a stem: the BN of each side, or CUDA_NONE */
    bool relu;
    bool needs_gradient;
    uint32_t user_count, first_user, last_user; /* blocks that read the output, counted per edge */
    /* The fusions. */
    uint32_t fusion[DNN_WEIGHT + 1]; /* of a convolution, by enum dnn_kind: bits of enum
                                      * dnn_fusion */
    enum cuda_output output;
};

struct cuda_blocks {
    struct cuda_block *rows;
    uint32_t count;
    uint32_t *of_node; /* the block that outputs a node; CUDA_NONE: inside a block */
};

/* Make blocks of the model's graph, count their users and choose fusions. Returns -ENOMEM, or
 * -ENOTSUP if a graph is not supported; call cuda_blocks_free() in either case. */
int cuda_blocks_make(struct cuda_blocks *blocks, struct cuda_model *model, uint32_t images,
                     bool training);
void cuda_blocks_free(struct cuda_blocks *blocks);
/* Return the BN after a convolution, in the sum or stem that reads its output; or CUDA_NONE. */
uint32_t cuda_norm_after(const struct cuda_blocks *blocks, const struct cuda_block *convolution);

#endif
