/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/hints.h"

#include "base/memory.h"

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

    hint->bytes = memory_zeroed(count);
    if (!hint->bytes)
        return -ENOMEM;
    memcpy(hint->bytes, bytes, count);
    hint->count = (uint16_t)count;
    return 0;
}
