/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 63 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Return the edits (insert, delete, replace, swap adjacent letters) from a to b: the optimal string
 * alignment distance. Names longer than the limit are far from everything. */
static unsigned distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    unsigned cost[NAME_MAX_BYTES + 1][NAME_MAX_BYTES + 1];

    if (m > NAME_MAX_BYTES || n > NAME_MAX_BYTES)
        return NAME_MAX_BYTES;
    for (unsigned i = 0; i <= m; i++)
        cost[i][0] = i;
    for (unsigned j = 0; j <= n; j++)
        cost[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        for (size_t j = 1; j <= n; j++) {
            unsigned replace = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            cost[i][j] = least(replace, 1 + least(cost[i - 1][j], cost[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = least(cost[i][j], 1 + cost[i - 2][j - 2]);
        }
    }
    return cost[m][n];
}

struct nearest nearest_start(const char *wanted)
{
    size_t length = strlen(wanted);

    /* Accept up to a third of the letters wrong, but never all letters of a short name. */
    return (struct nearest){
        .wanted = wanted, .dashes = "", .distance = length < 3 ? 2 : (unsigned)length / 3 + 2};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    size_t length = strlen(nearest->wanted);
    unsigned edits = distance(nearest->wanted, name);

    /* A prefix ("--batch" of "--batch-size") is closer than a typo. */
    if (length >= 3 && strncmp(nearest->wanted, name, length) == 0)
        edits = 1;
    if (edits < nearest->distance) {
        nearest->distance = edits;
        nearest->best = name;
    }
    if (nearest->known_bytes < sizeof nearest->known)
        nearest->known_bytes += (size_t)snprintf(nearest->known + nearest->known_bytes,
                                                 sizeof nearest->known - nearest->known_bytes,
                                                 "%s%s", nearest->known_bytes ? ", " : "", name);
}

const char *nearest_hint(struct nearest *nearest)
{
    nearest->hint[0] = '\0';
    if (nearest->best)
        snprintf(nearest->hint, sizeof nearest->hint, "; did you mean '%s%s'?", nearest->dashes,
                 nearest->best);
    return nearest->hint;
}

int nearest_fail(struct nearest *nearest, int code, const char *what)
{
    return fail(code, "%s '%s' (known: %s)%s", what, nearest->wanted, nearest->known,
                nearest_hint(nearest));
}

/* ---- names ---- */

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
