/* SPDX-License-Identifier: Apache-2.0
 *
 * hints: some bytes per record that a decoder keeps (decode/decoder.h), opaque here. They may speed
 * up decoding and never change a result: a decoder checks them against the image. 16 bytes per
 * record in memory, besides the hints. Any thread may read them.
 */
#ifndef IOBENCH_DATASET_HINTS_H
#define IOBENCH_DATASET_HINTS_H

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

#endif
