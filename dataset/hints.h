/* SPDX-License-Identifier: Apache-2.0
 *
 * hints: some bytes per record that a decoder keeps (decode/decoder.h), opaque here. They may speed
 * up decoding and never change a result: a decoder checks them against the image. 16 bytes per
 * record in memory, besides the hints. Any thread may read them.
 */
#ifndef IOBENCH_DATASET_HINTS_H
#define IOBENCH_DATASET_HINTS_H

#include <stddef.h>
#include <stdint.h>

enum { HINT_BYTES_MAX = 256 };

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

/* Copy 1 to HINT_BYTES_MAX bytes as the hint of a record, which has none. Any thread, different
 * records. Returns 0 or -ENOMEM. */
int hints_put(struct hints *hints, uint64_t record, const void *bytes, size_t count);

#endif
