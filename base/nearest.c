/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include "base/fail.h"

#include <stdio.h>
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
