/* SPDX-License-Identifier: Apache-2.0
 *
 * rate: limits reads to a rate in bytes/s. Time lost by a late wake-up is made up, up to
 * RATE_CREDIT_NS; what nobody asked for in longer pauses is lost. It knows no clock. One thread.
 */
#ifndef IOBENCH_READERS_RATE_H
#define IOBENCH_READERS_RATE_H

#include <stdint.h>

enum { RATE_CREDIT_NS = 250000000 };

struct rate {
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t next_ns;     /* when the next read may start; 0 before the first */
};

/* How long to wait from now_ns until the next read may start; 0: it may. */
uint64_t rate_wait_ns(struct rate *rate, uint64_t now_ns);
/* It has started. */
void rate_spend(struct rate *rate, uint64_t bytes);

#endif
