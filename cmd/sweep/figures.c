/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sweep/figures.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const sweep_part_names[SWEEP_PARTS] = {"wait",     "upload", "compute",
                                                   "exchange", "update", "barrier"};

const struct sweep_figures *sweep_at(const struct sweep_table *table, uint32_t cell, uint32_t round)
{
    assert(cell < table->plan->cells && round < table->rounds);
    return &table->figures[(size_t)round * table->plan->cells + cell];
}

/* Nodes may have copies of a set, which are other files. */
static bool is_other_set(const struct sweep_figures *a, const struct sweep_figures *b)
{
    return a->set_samples != b->set_samples || a->set_bytes != b->set_bytes ||
           (a->files && b->files && a->host == b->host && a->files != b->files);
}

const struct sweep_figures *sweep_of_other_set(const struct sweep_table *table,
                                               const struct sweep_figures *figures)
{
    for (size_t i = 0; figures->set && i < (size_t)table->rounds * table->plan->cells; i++) {
        const struct sweep_figures *other = &table->figures[i];
        if (other->is_valid && other->set == figures->set && is_other_set(other, figures))
            return other;
    }
    return NULL;
}

/* ---- a cell ---- */

/* Merge a word with those seen so far. */
static const char *join(const char *so_far, const char *word)
{
    if (!*so_far || strcmp(so_far, word) == 0)
        return word;
    return "mixed";
}

struct sweep_summary sweep_summarise(const struct sweep_table *table, uint32_t cell)
{
    struct sweep_summary summary = {.limit = "", .cache = ""};
    double *rates = memory_array(table->rounds, sizeof *rates), wall_s = 0;
    size_t known = 0;

    for (uint32_t round = 0; rates && round < table->rounds; round++) {
        const struct sweep_figures *figures = sweep_at(table, cell, round);
        summary.measured += figures->is_measured;
        if (figures->is_measured && !figures->is_valid && !summary.reason)
            summary.reason = figures->reason;
        if (!figures->is_valid)
            continue;
        if (figures->samples_per_s > 0)
            rates[known++] = figures->samples_per_s;
        summary.valid++;
        summary.limit = join(summary.limit, figures->limit);
        summary.cache = join(summary.cache, figures->cache);
        summary.randomness = figures->randomness;
        summary.ranks = figures->ranks;
        wall_s += figures->wall_s;
        for (int i = 0; i < SWEEP_PARTS; i++)
            summary.shares[i] += figures->parts_s[i];
    }
    for (int i = 0; i < SWEEP_PARTS; i++)
        summary.shares[i] = wall_s > 0 ? summary.shares[i] / wall_s : NAN;
    if (known)
        summary.samples_per_s = stats_summarise(rates, known);
    free(rates);
    return summary;
}

/* ---- effects ---- */

/* Compare those of the cells from `first` on that have this value with the cells that have the
 * axis's first value and differ in nothing else, over the rounds that measured both. *other_caches:
 * pairs of different caches. */
static struct paired compare_with_first(const struct sweep_table *table, size_t axis, size_t digit,
                                        uint32_t first, uint32_t end, size_t *other_caches)
{
    const size_t most = (size_t)table->rounds * (end - first),
                 room = most < PAIRED_MAX ? most : PAIRED_MAX;
    double *a = memory_array(room, sizeof *a), *b = memory_array(room, sizeof *b);
    size_t count = 0;

    assert(first < end && end <= table->plan->cells);
    *other_caches = 0;
    for (uint32_t round = 0; a && b && round < table->rounds; round++)
        for (uint32_t cell = first; cell < end && count < room; cell++) {
            const struct sweep_figures *one = sweep_at(table,
                                                       sweep_neighbour(table->plan, cell, axis, 0),
                                                       round),
                                       *other = sweep_at(table, cell, round);
            if (sweep_digit(table->plan, cell, axis) != digit || !one->is_valid || !other->is_valid)
                continue;
            *other_caches += strcmp(one->cache, other->cache) != 0;
            a[count] = one->samples_per_s;
            b[count++] = other->samples_per_s;
        }
    const struct paired paired = paired_test(a, b, count, 1, false);
    free(a);
    free(b);
    return paired;
}

struct paired sweep_against_first(const struct sweep_table *table, uint32_t cell, size_t axis)
{
    size_t other_caches;

    return compare_with_first(table, axis, sweep_digit(table->plan, cell, axis), cell, cell + 1,
                              &other_caches);
}

/* Correct the p-values of the effects that could be tested. */
static void correct(struct sweep_effect *effects, size_t count)
{
    double p[PAIRED_HOLM_MAX];
    size_t tested = 0;

    for (size_t i = 0; i < count; i++) {
        effects[i].p_corrected = effects[i].paired.p;
        tested += isfinite(effects[i].paired.p) != 0;
    }
    const bool holm = tested <= PAIRED_HOLM_MAX;
    size_t next = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(effects[i].paired.p) && holm)
            p[next++] = effects[i].paired.p;
        else if (isfinite(effects[i].paired.p))
            effects[i].p_corrected = fmin(1, effects[i].paired.p * (double)tested);
    if (!holm)
        return;
    paired_holm(p, tested);
    next = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(effects[i].paired.p))
            effects[i].p_corrected = p[next++];
}

struct sweep_effect *sweep_effects(const struct sweep_table *table, size_t *count)
{
    const struct sweep_plan *plan = table->plan;
    size_t most = 0;

    *count = 0;
    for (size_t i = 0; i < plan->axis_count; i++)
        most += plan->axes[i].count - 1;
    struct sweep_effect *effects = memory_array(most, sizeof *effects);
    for (size_t i = 0; effects && i < plan->axis_count; i++)
        for (size_t digit = 1; digit < plan->axes[i].count; digit++) {
            struct sweep_effect *effect = &effects[(*count)++];
            *effect = (struct sweep_effect){.axis = i, .digit = digit};
            effect->paired =
                compare_with_first(table, i, digit, 0, plan->cells, &effect->cache_pairs);
        }
    if (effects)
        correct(effects, *count);
    return effects;
}
