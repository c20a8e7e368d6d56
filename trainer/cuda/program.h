/* SPDX-License-Identifier: Apache-2.0
 *
 * program: a graph compiled for one number of images, to train or to infer: a list of steps and the
 * buffers between them. All programs of a model share one arena. The second run is captured as a
 * CUDA graph, which later runs launch at once.
 */
#ifndef IOBENCH_TRAINER_CUDA_PROGRAM_H
#define IOBENCH_TRAINER_CUDA_PROGRAM_H

#include "trainer/cuda/step.h"
#include "trainer/lifetimes.h"

struct cuda_program {
    struct cuda_program *next;
    struct cuda_model *model;
    uint32_t count; /* images */
    bool training;
    struct cuda_step *steps;
    uint32_t step_count;
    struct lifetime *buffers; /* of tensors in the arena; times are steps */
    uint32_t buffer_count;
    uint64_t arena_bytes, workspace_bytes;
    void *bound; /* the arena it is bound to */
    /* By whether the update waits for more batches, if that changes the steps: whether they have
     * run, and captured for this label smoothing, with labels or without. */
    bool has_run[2];
    void *graphs[2];
    double label_smoothing;
    bool labelled;
    void **moments;  /* events around each step (program.c); NULL: steps are not timed */
    double *took_ns; /* of each step, in all timed runs */
};

/* Rewrite the model's graph into blocks, fuse them, emit steps and place buffers (build.c). NULL
 * with a reason. */
struct cuda_program *cuda_compile(struct cuda_model *model, uint32_t count, bool training);
void cuda_program_destroy(struct cuda_program *program);
/* Point the steps' tensors into the arena, of at least arena_bytes. */
void cuda_program_bind(struct cuda_program *program, void *arena);
/* Drop the captured graphs: memory they refer to has moved. */
void cuda_program_forget(struct cuda_program *program);
/* Put all steps on the compute stream. */
int cuda_program_start(struct cuda_program *program, const struct cuda_flight *flight);
/* Time each step of the following runs, by events of the graph. */
int cuda_program_time(struct cuda_program *program);
/* Add the times of the last run, which is done. No-op if steps are not timed. */
int cuda_program_add_times(struct cuda_program *program);
#endif
