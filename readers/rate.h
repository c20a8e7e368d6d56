/* SPDX-License-Identifier: Apache-2.0
 *
 * rate: limits reads to a number of bytes per second. Time lost to late wake-ups is made up, at
 * most RATE_CREDIT_NS of it; longer pauses are not. Knows no clock. One thread.
 */
#ifndef IOBENCH_READERS_RATE_H
#define IOBENCH_READERS_RATE_H

#include <stdint.h>

enum { RATE_CREDIT_NS = 250000000 };

struct rate {
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t next_ns;     /* start of the next read; 0 before the first */
};

/* Return the wait from now_ns until the next read may start. */
uint64_t rate_wait_ns(struct rate *rate, uint64_t now_ns);
/* A read has started. */
void rate_spend(struct rate *rate, uint64_t bytes);

#endif
