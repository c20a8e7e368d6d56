/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/ranks.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

int ranks_compare(struct ranks *ranks, uint64_t number, uint32_t *other)
{
    uint64_t *all = memory_array(ranks->place.ranks, sizeof *all);
    int code = ranks_meet(ranks, all ? 0 : -ENOMEM, NULL);

    *other = 0;
    if (code == 0)
        code = ranks_gather(ranks, &number, sizeof number, all);
    for (uint32_t i = ranks->place.ranks - 1; code == 0 && i > 0; i--)
        if (all[i] != all[0])
            *other = i;
    free(all);
    return code;
}
