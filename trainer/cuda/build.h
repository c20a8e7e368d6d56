/* SPDX-License-Identifier: Apache-2.0
 * build: the calls that emit a program's steps. The first error is kept in the builder, so that
 * emission reads as a list. */
#ifndef IOBENCH_TRAINER_CUDA_BUILD_H
#define IOBENCH_TRAINER_CUDA_BUILD_H

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/program.h"

/* A block's output while steps are emitted. */
struct cuda_value {
    uint32_t buffer;          /* CUDA_NONE: held in INT8 only, or never stored */
    uint32_t int8, int8_node; /* the same in INT8, and the node whose step it has */
    uint32_t winners;         /* of a max-pool */
    uint32_t open;            /* where a sum's ReLU was, in bits */
    uint32_t gradient_count;
    uint32_t gradients[GRAPH_INPUTS_MAX + 1]; /* of the output, still to be summed */
    uint32_t dz; /* its gradient before the ReLU, if a convolution computed it; else CUDA_NONE */
};

struct cuda_builder {
    struct cuda_program *program;
    struct cuda_model *model;
    struct cuda_blocks blocks;
    struct cuda_value *values; /* of each block */
    int code;                  /* first error; its reason is the thread's */
};

static inline struct cuda_value *cuda_value(const struct cuda_builder *builder,
                                            const struct cuda_block *block)
{
    return &builder->values[block - builder->blocks.rows];
}

static inline const struct cuda_block *cuda_row(const struct cuda_builder *builder, uint32_t block)
{
    return &builder->blocks.rows[block];
}

uint32_t cuda_add_buffer(struct cuda_builder *builder, uint64_t bytes);
/* A tensor of a node's shape. */
uint32_t cuda_add_tensor(struct cuda_builder *builder, uint32_t node);

struct cuda_step cuda_step_of(const struct cuda_kernel *kernel, uint32_t node);
/* pointer: the address of one of the step's arguments, which will point to the buffer; NULL for
 * CUDA_NONE. */
void cuda_reads(struct cuda_step *step, void *pointer, uint32_t buffer);
void cuda_writes(struct cuda_step *step, void *pointer, uint32_t buffer);
/* Buffers of the step live at least until it. */
void cuda_add_step(struct cuda_builder *builder, const struct cuda_step *step);

/* ---- convolutions ---- */

/* A block's convolution of that kind, with what is fused but without tensors. */
struct cuda_step cuda_convolution_of(const struct cuda_builder *builder,
                                     const struct cuda_kernel *kernel, const struct cuda_block *own,
                                     enum dnn_kind kind);
/* Add it with a cuDNN plan for its shape. Having none is not an error. */
void cuda_add_convolution(struct cuda_builder *builder, struct cuda_step *step);

/* ---- shapes, by the program's images ---- */

struct device_pixels cuda_pixels_of(const struct cuda_builder *builder, uint32_t node);
uint64_t cuda_numbers_of(const struct cuda_builder *builder, uint32_t node);

/* The n-th part of a concatenation, as a dense tensor. */
struct device_part cuda_part_of(const struct cuda_builder *builder, const struct cuda_block *block,
                                uint32_t n);

/* The output of a block's n-th input, converted if it is held in INT8. */
uint32_t cuda_input(struct cuda_builder *builder, const struct cuda_block *block, uint32_t n);
/* Add a gradient of a block's output to those still to be summed. */
void cuda_leave_gradient(struct cuda_builder *builder, uint32_t block, uint32_t gradient);

/* ---- steps of both passes; tensors that a pass does not have are CUDA_NONE ---- */

void cuda_add_sum(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                  bool relu, uint32_t a, uint32_t b, uint32_t output);
void cuda_add_pool(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                   uint32_t from, uint32_t to, uint32_t winners);
void cuda_add_lrn(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                  uint32_t input, uint32_t d_output, uint32_t output);
void cuda_add_dropout(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                      uint32_t input, uint32_t output);

/* ---- int8.c ---- */

/* Does nothing unless the config has ranges. Close it in either case. */
int cuda_int8_open(struct cuda_model *model);
void cuda_int8_close(struct cuda_model *model);
/* Call after the parameters changed. */
int cuda_int8_load(struct cuda_model *model);
/* The nodes that one INT8 convolution computes. */
struct cuda_chain cuda_chain_of(const struct cuda_model *model, uint32_t convolution);
/* Hold the output of a block in INT8 only, if INT8 convolutions read it. */
void cuda_hold_int8(struct cuda_builder *builder, uint32_t block);
void cuda_emit_convolution_int8(struct cuda_builder *builder, const struct cuda_block *own);

/* ---- forward.c, backward.c: blocks into steps ---- */

/* Visit the blocks in order, or in reverse after that; each has one function per pass. */
void cuda_emit_forward(struct cuda_builder *builder);
void cuda_emit_backward(struct cuda_builder *builder);

/* ---- compile.c ---- */

/* Rewrite the model's graph into blocks, fuse them, emit steps and place buffers. NULL with a
 * reason. Destroy it with cuda_program_destroy(). */
struct cuda_program *cuda_compile(struct cuda_model *model, uint32_t count, bool training);
/* List the steps, as trainer/schedule.h describes them, with their mean times over `passes` runs;
 * 0: not timed. */
int cuda_list_steps(const struct cuda_program *program, uint32_t passes, double update_ns,
                    struct schedule *schedule);
/* The same without timing, for a GPU that need not be present. */
int cuda_schedule(const void *settings, const struct schedule_request *request,
                  struct schedule *schedule);

#endif
