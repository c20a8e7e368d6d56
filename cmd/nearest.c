/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/nearest.h"

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
    return (struct nearest){.wanted = wanted,
                            .distance = length < 3 ? 2 : (unsigned)length / 3 + 2};
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
}

void nearest_offer_table(struct nearest *nearest, const struct option_spec *table)
{
    for (; table && table->name; table++)
        nearest_offer(nearest, table->name);
}
