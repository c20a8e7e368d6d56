/* SPDX-License-Identifier: Apache-2.0
 *
 * hinting: hints (dataset/hints.h) that decode threads make in passing, in the first epoch of a
 * job. They are kept apart from those in use, which do not change while an epoch runs.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_HINTING_H
#define IOBENCH_PIPELINE_ENGINE_HINTING_H

#include "base/atomic.h"
#include "dataset/hints.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: not begun yet. */
struct hinting {
    bool is_over;       /* once and for all */
    uint64_t epoch;     /* that makes hints */
    struct hints *made; /* NULL before hinting_open() and after hinting_close() */
    pthread_mutex_t lock;
    uint64_t records, images; /* looked at, and of them those with a hint */
    struct counter ns;        /* time of the decode threads */
};

/* Return the most memory that making and saving hints takes, besides those in use; 0 if hinting is
 * NULL. */
uint64_t hinting_bytes(const struct hinting *hinting, uint64_t records);

/* Begin, unless it has begun or is over. Returns 0 or -ENOMEM. */
int hinting_open(struct hinting *hinting, uint64_t records, uint64_t epoch);
void hinting_close(struct hinting *hinting);

/* Return whether hints are made in this epoch; false if hinting is NULL. Any thread. */
static inline bool hinting_wants(const struct hinting *hinting, uint64_t epoch)
{
    return hinting && hinting->made && hinting->epoch == epoch;
}

/* Keep the hint of a record; 0 bytes: it can have none. The first of several draws counts. If
 * memory runs out, the record counts as not drawn. Any thread. */
void hinting_put(struct hinting *hinting, uint64_t record, const void *bytes, size_t count);

#endif
