/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 64, NAMES_MAX = 1 << 30 };

/* The seed is an address, which varies from run to run: colliding names cannot be crafted. */
static uint64_t hash_of(const struct names *names, const char *text, size_t length)
{
    uint64_t hash = (uint64_t)(uintptr_t)names;

    for (size_t i = 0; i < length; i++)
        hash = random_hash(hash, (uint8_t)text[i], length);
    return hash;
}

/* Find the slot of a string, or the free one where it belongs. */
static uint32_t *slot_of(struct names *names, const char *text, size_t length)
{
    for (uint64_t at = hash_of(names, text, length);; at++) {
        uint32_t *slot = &names->table[at & (names->slots - 1)];
        names->probes++;
        if (!*slot)
            return slot;
        const char *there = names->texts[*slot - 1];
        if (strncmp(there, text, length) == 0 && there[length] == '\0')
            return slot;
    }
}

static int grow(struct names *names)
{
    uint32_t slots = names->slots ? names->slots * 2 : SLOTS_MIN;
    uint32_t *table = memory_array(slots, sizeof *table);

    if (!table)
        return -ENOMEM;
    free(names->table);
    names->table = table;
    names->slots = slots;
    for (uint32_t i = 0; i < names->count; i++)
        *slot_of(names, names->texts[i], strlen(names->texts[i])) = i + 1;
    return 0;
}

int64_t names_number(struct names *names, const char *text, size_t length)
{
    if (names->count >= names->slots / 2) {
        if (names->count >= NAMES_MAX)
            return fail(ENOMEM, "more than %d names", NAMES_MAX);
        int code = grow(names);
        if (code)
            return code;
    }
    uint32_t *slot = slot_of(names, text, length);
    if (*slot)
        return *slot - 1;
    if (memory_room(&names->texts, names->count, sizeof *names->texts, "names"))
        return -ENOMEM;
    char *copy = strndup(text, length);
    if (!copy)
        return fail(ENOMEM, "out of memory for a name");
    names->texts[names->count] = copy;
    *slot = ++names->count;
    return names->count - 1;
}

void names_release(struct names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->table);
    *names = (struct names){0};
}
