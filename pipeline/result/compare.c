/* SPDX-License-Identifier: Apache-2.0
 * Comparison of the ranks of a run, and its straggler. */
#include "pipeline/result/result.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef double (*figure)(const struct result_rank *rank, int phase);

static double samples_per_s(const struct result_rank *rank, int phase)
{
    (void)phase;
    return result_epoch_samples_per_s(&rank->total);
}

static double wall_s(const struct result_rank *rank, int phase)
{
    (void)phase;
    return (double)rank->total.wall_ns * 1e-9;
}

static double barrier_s(const struct result_rank *rank, int phase)
{
    (void)phase;
    return (double)(rank->total.start_barrier_ns + rank->total.stop_barrier_ns) * 1e-9;
}

/* Time at work without the exchange, in which each rank waits for the slowest. */
static double work_s(const struct result_rank *rank, int phase)
{
    (void)phase;
    return (double)(rank->total.wall_ns - rank->total.exchange_ns) * 1e-9;
}

static double phase_s(const struct result_rank *rank, int phase)
{
    return (double)result_epoch_phase_ns(&rank->total, (enum result_phase)phase) * 1e-9;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

struct comparing {
    const struct result_rank *ranks;
    uint32_t count;
    double *values;
};

/* The median of an even count is the lower of the two, so it belongs to a real rank. */
static struct result_spread spread_of(const struct comparing *all, figure take, int phase)
{
    for (uint32_t i = 0; i < all->count; i++)
        all->values[i] = take(&all->ranks[i], phase);
    qsort(all->values, all->count, sizeof *all->values, by_value);
    return (struct result_spread){.minimum = all->values[0],
                                  .median = all->values[(all->count - 1) / 2],
                                  .maximum = all->values[all->count - 1]};
}

static void name_straggler(const struct comparing *all, struct result_comparison *comparison)
{
    const struct result_rank *last = &all->ranks[0];
    const double median = spread_of(all, work_s, 0).median;
    double most = 0;

    for (uint32_t i = 1; i < all->count; i++)
        if (work_s(&all->ranks[i], 0) > work_s(last, 0))
            last = &all->ranks[i];
    comparison->straggler = last->rank;
    comparison->straggler_limit = last->total.limit;
    memcpy(comparison->straggler_host, last->host, sizeof last->host);
    if (median > 0)
        comparison->behind_percent = 100 * (work_s(last, 0) / median - 1);
    for (int phase = 0; phase < RESULT_PHASES; phase++) {
        double lost = phase_s(last, phase) - comparison->phase_s[phase].median;
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
    comparison->samples_per_s = spread_of(&all, samples_per_s, 0);
    comparison->wall_s = spread_of(&all, wall_s, 0);
    comparison->barrier_s = spread_of(&all, barrier_s, 0);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        comparison->phase_s[phase] = spread_of(&all, phase_s, phase);
    name_straggler(&all, comparison);
    free(all.values);
    return 0;
}
