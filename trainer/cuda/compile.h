/* SPDX-License-Identifier: Apache-2.0
 *
 * compile: turns a model's graph into a program: rewrites it into blocks, fuses them, emits steps
 * and places buffers.
 */
#ifndef IOBENCH_TRAINER_CUDA_COMPILE_H
#define IOBENCH_TRAINER_CUDA_COMPILE_H

#include "trainer/cuda/program.h"

/* NULL with a reason. Destroy it with cuda_program_destroy(). */
struct cuda_program *cuda_compile(struct cuda_model *model, uint32_t count, bool training);
/* List the steps, as trainer/schedule.h describes them, with their mean times over `passes` runs;
 * 0: not timed. */
int cuda_list_steps(const struct cuda_program *program, uint32_t passes, double update_ns,
                    struct schedule *schedule);
/* The same without timing, for a GPU that need not be present. */
int cuda_schedule(const void *settings, const struct schedule_request *request,
                  struct schedule *schedule);

#endif
