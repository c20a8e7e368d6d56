/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 64, NAMES_MAX = 1 << 30 };

/* Find the slot of a string, or the free one where it belongs. */
static uint32_t *slot_of(struct names *names, const char *text, size_t length)
{
    /* The seed is an address, which varies from run to run: colliding names cannot be crafted. */
    uint64_t at = (uint64_t)(uintptr_t)names;

    assert((names->slots & (names->slots - 1)) == 0 && names->count < names->slots);
    for (size_t i = 0; i < length; i++)
        at = random_hash(at, (uint8_t)text[i], length);
    for (;; at++) {
        uint32_t *slot = &names->table[at & (names->slots - 1)];
        names->probes++;
        if (!*slot)
            return slot;
        const char *there = names->texts[*slot - 1];
        if (strncmp(there, text, length) == 0 && there[length] == '\0')
            return slot;
    }
}

int64_t names_number(struct names *names, const char *text, size_t length)
{
    if (names->count >= names->slots / 2) {
        const uint32_t slots = names->slots ? names->slots * 2 : SLOTS_MIN;
        uint32_t *table = names->count < NAMES_MAX ? memory_array(slots, sizeof *table) : NULL;
        if (!table)
            return names->count < NAMES_MAX ? -ENOMEM
                                            : fail(ENOMEM, "more than %d names", NAMES_MAX);
        free(names->table);
        names->table = table;
        names->slots = slots;
        for (uint32_t i = 0; i < names->count; i++)
            *slot_of(names, names->texts[i], strlen(names->texts[i])) = i + 1;
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

bool names_has(struct names *names, const char *text)
{
    return names->count > 0 && *slot_of(names, text, strlen(text));
}

void names_release(struct names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->table);
    *names = (struct names){0};
}
