/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule: a program's steps as trainer/schedule.h describes them, for a GPU that need not be
 * present.
 */
#ifndef IOBENCH_TRAINER_CUDA_SCHEDULE_H
#define IOBENCH_TRAINER_CUDA_SCHEDULE_H

#include "trainer/cuda_settings.h"
#include "trainer/schedule.h"

int cuda_schedule(const void *settings, const struct schedule_request *request,
                  struct schedule *schedule);

#endif
