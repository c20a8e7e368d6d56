/* SPDX-License-Identifier: Apache-2.0
 * lifetimes: static memory planning. Tensors whose lifetimes do not overlap may share space. Pure;
 * any thread. */
#ifndef IOBENCH_TRAINER_LIFETIMES_H
#define IOBENCH_TRAINER_LIFETIMES_H

#include <stdint.h>

struct lifetime {
    uint32_t first, last; /* moments, both inclusive */
    uint64_t bytes;       /* 0: needs no space */
    uint64_t offset;      /* set by lifetimes_plan(); a multiple of 64 */
};

/* Largest first, each at the lowest offset free for its whole life. total: bytes of the arena.
 * Returns 0 or -ENOMEM. */
int lifetimes_plan(struct lifetime *lifetimes, uint32_t count, uint64_t *total);

#endif
