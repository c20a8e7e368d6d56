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

/* Return the memory that making and saving hints takes at most, besides those in use. NULL is
 * fine: 0. */
uint64_t hinting_bytes(const struct hinting *hinting, uint64_t records);

/* Begin, unless it has begun or is over. Returns 0 or -ENOMEM. */
int hinting_open(struct hinting *hinting, uint64_t records, uint64_t epoch);
void hinting_close(struct hinting *hinting);

/* Are hints made in this epoch? NULL is fine: no. Any thread. */
static inline bool hinting_wants(const struct hinting *hinting, uint64_t epoch)
{
    return hinting && hinting->made && hinting->epoch == epoch;
}

/* Keep the hint of a record; 0 bytes: it can have none. Of several draws the first counts. Without
 * memory it is as if it had not been drawn. Any thread. */
void hinting_put(struct hinting *hinting, uint64_t record, const void *bytes, size_t count);

#endif
