/* SPDX-License-Identifier: Apache-2.0
 *
 * hints: some bytes per record that a decoder keeps (decode/decoder.h), opaque here. They may speed
 * up decoding and never change a result: a decoder checks them against the image. 16 bytes per
 * record in memory, besides the hints. Any thread may read them.
 */
#ifndef IOBENCH_DATASET_HINTS_H
#define IOBENCH_DATASET_HINTS_H

#include "base/atomic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HINT_BYTES_MAX = 384, HINT_LENGTH_BYTES = 2, HINT_ABSENT = 0xffff };

struct hint {
    uint8_t *bytes;
    uint16_t count;
};

struct hints {
    uint64_t count;     /* of records */
    struct hint *rows;  /* one per record */
    uint8_t *in_common; /* memory of all rows, else NULL: each has its own */
};

struct hints *hints_create(uint64_t records); /* NULL with a reason */
void hints_destroy(struct hints *hints);      /* NULL is fine */

/* Copy at most HINT_BYTES_MAX bytes as the hint of a record, which was not put before. 0 bytes: it
 * was looked at, and can have none. Any thread, different records. Returns 0 or -ENOMEM. */
int hints_put(struct hints *hints, uint64_t record, const void *bytes, size_t count);
static inline bool hints_has(const struct hints *hints, uint64_t record) /* put, or loaded */
{
    return hints->rows[record].bytes != NULL;
}

/* Return how many records have a hint. */
uint64_t hints_count(const struct hints *hints);

/* Replace loaded hints by those that were put into others, which must outlive these. */
void hints_replace(struct hints *hints, const struct hints *by);

/* Pack all hints into one piece of memory, to free(): room for a head, a u16 length per record,
 * `absent` for those that were not put, then the hints. NULL with a reason. */
uint8_t *hints_pack(const struct hints *hints, size_t head_bytes, uint16_t absent, size_t *bytes);
/* Put those of another process, packed without a head and with HINT_ABSENT, for records that have
 * none. Returns 0, -ENOMEM, or -EPROTO with a reason if the bytes are not what hints_pack() made of
 * as many records. */
int hints_unpack(struct hints *hints, const uint8_t *raw, size_t bytes);

/* ---- made in passing, by decode threads in the first epoch of a job ---- */

/* They are kept apart from those in use, which do not change while an epoch runs. Zeroed: not begun
 * yet. */
struct hinting {
    bool is_over;       /* hints were made; no more will be */
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
