/* SPDX-License-Identifier: Apache-2.0
 *
 * stall: how long threads waited at one place, exact at any moment: ongoing waits count up to now.
 * The share of a window is the difference of two readings, so it never exceeds the window times the
 * threads. Guarded by the lock of that place, under which now_ns never decreases.
 */
#ifndef IOBENCH_BASE_STALL_H
#define IOBENCH_BASE_STALL_H

#include <assert.h>
#include <stdint.h>

struct stall {
    uint64_t sum_ns; /* of ended waits, minus the starts of ongoing ones; modulo 2^64 */
    uint64_t waiters;
};

static inline void stall_begin(struct stall *stall, uint64_t now_ns)
{
    stall->sum_ns -= now_ns;
    stall->waiters++;
}

static inline void stall_end(struct stall *stall, uint64_t now_ns)
{
    assert(stall->waiters > 0);
    stall->sum_ns += now_ns;
    stall->waiters--;
}

static inline uint64_t stall_ns(const struct stall *stall, uint64_t now_ns)
{
    return stall->sum_ns + stall->waiters * now_ns;
}

#endif
