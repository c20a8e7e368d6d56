/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/hints.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hints *hints_create(uint64_t records)
{
    struct hints *hints = memory_zeroed(sizeof *hints);

    if (!hints)
        return NULL;
    hints->count = records;
    hints->rows = memory_array(records, sizeof *hints->rows);
    if (hints->rows)
        return hints;
    free(hints);
    return NULL;
}

void hints_destroy(struct hints *hints)
{
    if (!hints)
        return;
    for (uint64_t i = 0; !hints->in_common && i < hints->count; i++)
        free(hints->rows[i].bytes);
    free(hints->in_common);
    free(hints->rows);
    free(hints);
}

int hints_put(struct hints *hints, uint64_t record, const void *bytes, size_t count)
{
    struct hint *hint = &hints->rows[record];

    assert(record < hints->count && count <= HINT_BYTES_MAX && !hint->bytes);
    hint->bytes = memory_zeroed(count + (count == 0)); /* never NULL */
    if (!hint->bytes)
        return -ENOMEM;
    memcpy(hint->bytes, bytes, count);
    hint->count = (uint16_t)count;
    return 0;
}

uint64_t hints_count(const struct hints *hints)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < hints->count; i++)
        count += hints->rows[i].count > 0;
    return count;
}

void hints_replace(struct hints *hints, const struct hints *by)
{
    assert(hints->count == by->count);
    for (uint64_t i = 0; i < by->count; i++)
        if (hints_has(by, i))
            hints->rows[i] = by->rows[i];
}

/* ---- in one piece ---- */

uint8_t *hints_pack(const struct hints *hints, size_t head_bytes, uint16_t absent, size_t *bytes)
{
    const size_t lengths_bytes = (size_t)hints->count * HINT_LENGTH_BYTES;

    *bytes = head_bytes + lengths_bytes;
    for (uint64_t i = 0; i < hints->count; i++)
        *bytes += hints->rows[i].count;
    uint8_t *raw = memory_zeroed(*bytes);
    if (!raw)
        return NULL;
    uint8_t *length = raw + head_bytes, *to = length + lengths_bytes;
    for (uint64_t i = 0; i < hints->count; i++, length += HINT_LENGTH_BYTES) {
        const struct hint *hint = &hints->rows[i];
        bytes_put_le16(length, hint->bytes ? hint->count : absent);
        if (hint->count)
            memcpy(to, hint->bytes, hint->count);
        to += hint->count;
    }
    assert(to == raw + *bytes);
    return raw;
}

int hints_unpack(struct hints *hints, const uint8_t *raw, size_t bytes)
{
    const size_t lengths_bytes = (size_t)hints->count * HINT_LENGTH_BYTES;
    size_t used = lengths_bytes;
    bool is_sound = bytes >= lengths_bytes;

    for (uint64_t i = 0; is_sound && i < hints->count; i++) {
        const uint16_t count = bytes_le16(raw + i * HINT_LENGTH_BYTES);
        if (count == HINT_ABSENT)
            continue;
        is_sound = count <= HINT_BYTES_MAX && count <= bytes - used;
        if (is_sound && !hints_has(hints, i) && hints_put(hints, i, raw + used, count))
            return -ENOMEM;
        used += count;
    }
    return is_sound && used == bytes
               ? 0
               : fail(EPROTO, "a rank sent impossible hints: use the same build on all nodes");
}

/* ---- made in passing ---- */

/* Per record and allocation: what malloc() adds, at most. */
enum { MALLOC_BYTES = 16 };

/* Hints are in memory twice: as made, and packed for a file or a message. */
uint64_t hinting_bytes(const struct hinting *hinting, uint64_t records)
{
    const uint64_t each =
        sizeof(struct hint) + MALLOC_BYTES + HINT_BYTES_MAX + sizeof(uint16_t) + HINT_BYTES_MAX;

    return hinting && !hinting->is_over ? records * each : 0;
}

int hinting_open(struct hinting *hinting, uint64_t records, uint64_t epoch)
{
    if (hinting->is_over || hinting->made)
        return 0;
    hinting->made = hints_create(records);
    if (!hinting->made)
        return -ENOMEM;
    pthread_mutex_init(&hinting->lock, NULL);
    hinting->epoch = epoch;
    return 0;
}

void hinting_close(struct hinting *hinting)
{
    if (hinting->made)
        pthread_mutex_destroy(&hinting->lock);
    hints_destroy(hinting->made);
    hinting->made = NULL;
    hinting->is_over = true;
}

void hinting_put(struct hinting *hinting, uint64_t record, const void *bytes, size_t count)
{
    pthread_mutex_lock(&hinting->lock);
    assert(hinting->made && count <= HINT_BYTES_MAX);
    if (!hints_has(hinting->made, record) && hints_put(hinting->made, record, bytes, count) == 0) {
        hinting->records++;
        hinting->images += count > 0;
    }
    pthread_mutex_unlock(&hinting->lock);
}
