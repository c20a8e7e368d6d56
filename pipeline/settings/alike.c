/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/settings/alike.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 128 };

static bool is_among(const char *const *names, const char *option)
{
    while (*names && strcmp(*names, option) != 0)
        names++;
    return *names != NULL;
}

/* 0 if it may differ. A path may, but not whether there is one. */
static uint32_t value_of(const struct option_spec *row, const void *settings)
{
    static const char *const resources[] = {
        "data",   "json",       "csv",        "series",         "profile", "trace",
        "label",  "ranks",      "rank",       "decode-threads", "memory",  "limit-rate",
        "reader", "io-timeout", "io-threads", "iodepth",        "backend", "compute-threads",
        "export", NULL};
    static const char *const paths[] = {"eval-data", "checkpoint", "init", NULL};
    char text[4096];

    if (is_among(resources, row->name))
        return 0;
    option_text(row, settings, text, sizeof text);
    return is_among(paths, row->name) ? text[0] != '\0' : crc32c(0, text, strlen(text));
}

int options_check_alike(const struct option_spec *table, const void *settings, struct ranks *ranks)
{
    uint32_t mine[OPTIONS_MAX] = {0}, count = 0;

    if (ranks->place.ranks == 1)
        return 0;
    uint32_t *all = memory_array(ranks->place.ranks, sizeof mine);
    for (const struct option_spec *row = table; row->name && count < OPTIONS_MAX; row++)
        mine[count++] = value_of(row, settings);
    int code = ranks_meet(ranks, all ? 0 : -ENOMEM, NULL);
    if (code == 0)
        code = ranks_gather(ranks, mine, sizeof mine, all);
    for (uint32_t i = 0; code == 0 && i < ranks->place.ranks * OPTIONS_MAX; i++)
        if (all[i] != all[i % OPTIONS_MAX])
            code = fail(EINVAL,
                        "--%s of rank %u differs from rank 0's: all ranks of a job need the same "
                        "options",
                        table[i % OPTIONS_MAX].name, i / OPTIONS_MAX);
    free(all);
    return code;
}
