/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight: the reads in flight.
 *
 * Wraps the reader: how many reads to keep in flight (queue depth), the rate limit, the wait for
 * storage, the watchdog for a reader that hangs, and the figures. Knows neither records nor memory.
 * The loader's thread, except inflight_wait_ns().
 */
#ifndef IOBENCH_PIPELINE_LOADER_INFLIGHT_H
#define IOBENCH_PIPELINE_LOADER_INFLIGHT_H

#include "base/pace.h"
#include "base/stall.h"
#include "pipeline/loader/config.h"
#include "pipeline/result/meter.h"
#include "readers/depth.h"
#include "readers/rate.h"
#include "readers/reader.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { INFLIGHT_GROUP = 64 }; /* reads reaped at once */

struct inflight {
    struct reader reader;
    struct depth depth;            /* the queue depth; fixed, or being searched for */
    bool is_full;                  /* as many reads are in flight as the depth says */
    struct rate rate;              /* the rate limit */
    struct loader_figures figures; /* of the current epoch, less plan_ns */
    uint64_t read_end_ns;          /* end of the last read of this run; 0: none yet */
    /* private */
    const char *name; /* of the reader, for messages */
    struct meter *meter;
    struct pace arrived; /* bytes of the current epoch, over time */
    uint64_t heard_ns;   /* last answer of the reader, or first read it got since it was idle */
    pthread_mutex_t lock;
    struct stall waits; /* for storage; under lock */
};

/* depth: at most this many reads in flight; searched for if find_depth. */
void inflight_create(struct inflight *inflight, uint32_t depth, bool find_depth, const char *name,
                     struct meter *meter);
void inflight_destroy(struct inflight *inflight);
void inflight_reset(struct inflight *inflight, uint64_t rate_limit_bytes);

/* True if another read may start now. */
bool inflight_has_room(struct inflight *inflight);
/* Submit a read. Returns 0, -EAGAIN if the reader is full or has no free file or mapping, or a
 * negative errno. */
int inflight_submit(struct inflight *inflight, struct read_request *request);
/* Count a read submitted for the first time. */
void inflight_count(struct inflight *inflight, const struct read_request *request);
/* Reap up to INFLIGHT_GROUP reads; wait for one at most wait_ns. Returns their count or a negative
 * errno: -ETIMEDOUT if the reader hangs. */
int inflight_reap(struct inflight *inflight, struct read_request **done, uint64_t wait_ns);

/* Complete the figures of an epoch whose reads have all ended. */
void inflight_end_epoch(struct inflight *inflight);
/* Return the figures of the epoch and start those of the next. */
struct loader_figures inflight_take_figures(struct inflight *inflight);

/* Return how long the loader has waited for storage so far, waits under way included. Any thread.
 */
uint64_t inflight_wait_ns(struct inflight *inflight);

#endif
