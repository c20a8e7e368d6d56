/* SPDX-License-Identifier: Apache-2.0
 *
 * lifetimes: memory planned once. Each tensor is needed from one moment to another; two that are
 * never needed together may share their place. Pure; any thread.
 */
#ifndef IOBENCH_TRAINER_LIFETIMES_H
#define IOBENCH_TRAINER_LIFETIMES_H

#include <stdint.h>

struct lifetime {
    uint32_t first, last; /* moments, both inclusive */
    uint64_t bytes;       /* 0: needs no place */
    uint64_t offset;      /* set by lifetimes_plan(); a multiple of 64 */
};

/* Largest first, each at the lowest place that is free for its whole life. total: bytes of the
 * arena. 0 or -ENOMEM. */
int lifetimes_plan(struct lifetime *lifetimes, uint32_t count, uint64_t *total);

#endif
