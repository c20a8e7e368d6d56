/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/key_set.h"

#include "base/memory.h"
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>

enum { CAPACITY_LEAST = 256 }; /* a power of two, as is every capacity */

/* Return the slot that holds the hash, or the free one where it belongs. */
static uint64_t *slot_of(const struct key_set *set, uint64_t hash)
{
    uint64_t at = hash & (set->capacity - 1);

    while (set->slots[at] && set->slots[at] != hash)
        at = (at + 1) & (set->capacity - 1);
    return &set->slots[at];
}

/* At most half of the slots are used. */
static int make_room(struct key_set *set)
{
    const struct key_set old = *set;

    if (2 * (set->count + 1) <= set->capacity)
        return 0;
    set->capacity = old.capacity ? 2 * old.capacity : CAPACITY_LEAST;
    set->slots = memory_array(set->capacity, sizeof *set->slots);
    if (!set->slots) {
        *set = old;
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < old.capacity; i++)
        if (old.slots[i])
            *slot_of(set, old.slots[i]) = old.slots[i];
    free(old.slots);
    return 0;
}

static uint64_t hash_of(const char *key)
{
    const uint64_t hash = random_hash_text(1, key);

    return hash ? hash : 1;
}

bool key_set_has(const struct key_set *set, const char *key)
{
    return set->count && *slot_of(set, hash_of(key));
}

int key_set_add(struct key_set *set, const char *key)
{
    const uint64_t hash = hash_of(key);

    if (make_room(set))
        return -ENOMEM;
    uint64_t *slot = slot_of(set, hash);
    if (*slot)
        return 0;
    *slot = hash;
    set->count++;
    return 1;
}

void key_set_release(struct key_set *set)
{
    free(set->slots);
    *set = (struct key_set){0};
}
