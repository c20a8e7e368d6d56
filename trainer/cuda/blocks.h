/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks: a graph rewritten into blocks, groups of nodes computed together. A sum applies the BNs
 * of its sides and the ReLU after it; a BN alone, with or without ReLU, is a sum of one side, and
 * so is a ReLU that no other block computes; a stem is BN, ReLU and max-pool. Tensors inside a
 * block are never stored. Blocks are in the order of their nodes; inputs are blocks. Knows no
 * device and no step.
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
    /* Chosen by fuse.h. */
    uint32_t fusion[DNN_WEIGHT + 1]; /* of a convolution, by enum dnn_kind: bits of enum
                                      * dnn_fusion */
    enum cuda_output output;
};

struct cuda_blocks {
    struct cuda_block *rows;
    uint32_t count;
    uint32_t *of_node; /* the block that outputs a node; CUDA_NONE: inside a block */
};

struct cuda_blocks_config {
    const struct graph *graph;
    bool training;
    bool keeps_nodes;                /* each node is a block of its own */
    const struct cuda_chain *chains; /* of each node; NULL: none */
};

/* Make blocks and count their users. Returns -ENOMEM, or -ENOTSUP if a graph is not supported; call
 * cuda_blocks_free() in either case. */
int cuda_blocks_make(struct cuda_blocks *blocks, const struct cuda_blocks_config *config);
void cuda_blocks_free(struct cuda_blocks *blocks);

#endif
