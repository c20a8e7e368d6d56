/* SPDX-License-Identifier: Apache-2.0 */
#include "shuffle/coalesce.h"

enum {
    AUTO_READS = 24, /* full reads in a window: with 1 MiB, 2 or 3 of each of ten files */
    AUTO_MAX = 16384,
};

static uint64_t mean_bytes(const struct catalog *catalog)
{
    return catalog->record_bytes_total / catalog->record_count + 1;
}

static uint64_t window_wanted(const struct catalog *catalog, uint32_t window, uint64_t read_bytes)
{
    uint64_t wanted = window;

    if (window == 0) {
        wanted = AUTO_READS * read_bytes / mean_bytes(catalog);
        wanted = wanted < AUTO_MAX ? wanted : AUTO_MAX;
    }
    wanted = wanted < catalog->record_count ? wanted : catalog->record_count;
    return wanted ? wanted : 1;
}

struct coalesce coalesce_rules(const struct catalog *catalog, uint32_t window, uint64_t read_bytes,
                               uint64_t memory_bytes)
{
    const uint64_t wanted = window_wanted(catalog, window, read_bytes);
    struct coalesce rules = {
        .window_bytes = memory_bytes / 4, .read_bytes = read_bytes, .alignment = 1};
    /* Sizes differ: a quarter is kept free, so that few windows end because of their bytes. */
    const uint64_t held = rules.window_bytes / 4 * 3 / mean_bytes(catalog);

    rules.window = (uint32_t)(wanted < held ? wanted : held);
    if (rules.window == 0)
        rules.window = 1;
    return rules;
}

uint64_t coalesce_memory_bytes(const struct catalog *catalog, uint32_t window, uint64_t read_bytes)
{
    const uint64_t bytes = window_wanted(catalog, window, read_bytes) * mean_bytes(catalog);

    return (bytes + bytes / 3 + mean_bytes(catalog)) * 4;
}
