/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/hinting.h"

#include <assert.h>
#include <errno.h>

/* Per record and allocation: what malloc() adds, at most. */
enum { MALLOC_BYTES = 16 };

/* Once as made, once as a file or a message. */
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
