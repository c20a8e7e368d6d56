/* SPDX-License-Identifier: Apache-2.0
 * Comparison of the ranks of a run, and its straggler. */
#include "pipeline/result/result.h"

#include "base/memory.h"
#include "base/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum figure { RATE, WALL_S, BARRIER_S, WORK_S, PHASE_S /* and the phases after the first */ };

static double value_of(const struct result_rank *rank, int figure)
{
    const struct result_epoch *total = &rank->total;

    switch (figure) {
    case RATE:
        return result_epoch_samples_per_s(total);
    case WALL_S:
        return (double)total->wall_ns * 1e-9;
    case BARRIER_S:
        return (double)(total->start_barrier_ns + total->stop_barrier_ns) * 1e-9;
    case WORK_S: /* without the exchange, in which each rank waits for the slowest */
        return (double)(total->wall_ns - total->exchange_ns) * 1e-9;
    default:
        return (double)result_epoch_phase_ns(total, (enum result_phase)(figure - PHASE_S)) * 1e-9;
    }
}

struct comparing {
    const struct result_rank *ranks;
    uint32_t count;
    double *values;
};

/* The median of an even count is the lower of the two, so it belongs to a real rank. */
static struct result_spread spread_of(const struct comparing *all, int figure)
{
    for (uint32_t i = 0; i < all->count; i++)
        all->values[i] = value_of(&all->ranks[i], figure);
    stats_sort(all->values, all->count);
    return (struct result_spread){.minimum = all->values[0],
                                  .median = all->values[(all->count - 1) / 2],
                                  .maximum = all->values[all->count - 1]};
}

static void name_straggler(const struct comparing *all, struct result_comparison *comparison)
{
    const struct result_rank *last = &all->ranks[0];
    const double median = spread_of(all, WORK_S).median;
    double most = 0;

    for (uint32_t i = 1; i < all->count; i++)
        if (value_of(&all->ranks[i], WORK_S) > value_of(last, WORK_S))
            last = &all->ranks[i];
    comparison->straggler = last->rank;
    comparison->straggler_limit = last->total.limit;
    memcpy(comparison->straggler_host, last->host, sizeof last->host);
    if (median > 0)
        comparison->behind_percent = 100 * (value_of(last, WORK_S) / median - 1);
    for (int phase = 0; phase < RESULT_PHASES; phase++) {
        double lost = value_of(last, PHASE_S + phase) - comparison->phase_s[phase].median;
        if (phase != RESULT_PHASE_EXCHANGE && lost > most) {
            most = lost;
            comparison->behind_phase = (enum result_phase)phase;
        }
    }
}

int result_compare(const struct result_rank *ranks, uint32_t count,
                   struct result_comparison *comparison)
{
    const struct comparing all = {ranks, count, memory_array(count, sizeof *all.values)};

    *comparison = (struct result_comparison){.ranks = count};
    if (!all.values)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        comparison->nodes += ranks[i].leads;
    comparison->samples_per_s = spread_of(&all, RATE);
    comparison->wall_s = spread_of(&all, WALL_S);
    comparison->barrier_s = spread_of(&all, BARRIER_S);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        comparison->phase_s[phase] = spread_of(&all, PHASE_S + phase);
    name_straggler(&all, comparison);
    free(all.values);
    return 0;
}
