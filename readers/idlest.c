/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/idlest.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

static const uint32_t NONE = UINT32_MAX;

static void insert(struct idlest *idlest, uint32_t member)
{
    struct idlest_member *it = &idlest->members[member];
    uint32_t *first = &idlest->first[it->reads];

    it->previous = NONE;
    it->next = *first;
    if (*first != NONE)
        idlest->members[*first].previous = member;
    *first = member;
}

static void unlink_member(struct idlest *idlest, uint32_t member)
{
    const struct idlest_member *it = &idlest->members[member];

    if (it->previous == NONE)
        idlest->first[it->reads] = it->next;
    else
        idlest->members[it->previous].next = it->next;
    if (it->next != NONE)
        idlest->members[it->next].previous = it->previous;
}

int idlest_create(struct idlest *idlest, uint32_t members, uint32_t reads_most)
{
    *idlest = (struct idlest){.members = memory_array(members, sizeof *idlest->members),
                              .first = memory_array((size_t)reads_most + 1, sizeof(uint32_t))};
    if (!idlest->members || !idlest->first)
        return -ENOMEM;
    for (uint32_t i = 0; i <= reads_most; i++)
        idlest->first[i] = NONE;
    for (uint32_t i = members; i-- > 0;)
        insert(idlest, i);
    return 0;
}

void idlest_destroy(struct idlest *idlest)
{
    free(idlest->members);
    free(idlest->first);
    *idlest = (struct idlest){0};
}

uint32_t idlest_take(struct idlest *idlest)
{
    uint32_t member = idlest->first[idlest->fewest];

    unlink_member(idlest, member);
    idlest->members[member].reads++;
    insert(idlest, member);
    if (idlest->first[idlest->fewest] == NONE)
        idlest->fewest++; /* the member is there now */
    return member;
}

void idlest_give(struct idlest *idlest, uint32_t member)
{
    unlink_member(idlest, member);
    uint32_t reads = --idlest->members[member].reads;
    insert(idlest, member);
    if (reads < idlest->fewest)
        idlest->fewest = reads;
}
