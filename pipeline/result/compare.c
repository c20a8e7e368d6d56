/* SPDX-License-Identifier: Apache-2.0
 * Comparison of the ranks of a run, and its straggler. */
#include "pipeline/result/result.h"

#include "base/memory.h"
#include "base/stats.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RATE, WALL_S, BARRIER_S, WORK_S, PHASE_S /* and the phases after the first */ };

static double figure_of(const struct result_rank *rank, int figure)
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

/* The median of an even count is the lower of the two, so it belongs to a real rank. */
static struct result_spread spread_of(const struct result_rank *ranks, uint32_t count, int figure,
                                      double *values)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = figure_of(&ranks[i], figure);
    stats_sort(values, count);
    return (struct result_spread){values[0], values[(count - 1) / 2], values[count - 1]};
}

int result_compare(const struct result_rank *ranks, uint32_t count,
                   struct result_comparison *comparison)
{
    double *values = memory_array(count, sizeof *values), most = 0;
    const struct result_rank *last = &ranks[0];

    assert(count > 0);
    *comparison = (struct result_comparison){.ranks = count};
    if (!values)
        return -ENOMEM;
    comparison->samples_per_s = spread_of(ranks, count, RATE, values);
    comparison->wall_s = spread_of(ranks, count, WALL_S, values);
    comparison->barrier_s = spread_of(ranks, count, BARRIER_S, values);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        comparison->phase_s[phase] = spread_of(ranks, count, PHASE_S + phase, values);
    const double median = spread_of(ranks, count, WORK_S, values).median;
    free(values);

    for (uint32_t i = 0; i < count; i++) {
        comparison->nodes += ranks[i].leads;
        if (figure_of(&ranks[i], WORK_S) > figure_of(last, WORK_S))
            last = &ranks[i];
    }
    comparison->straggler = last->rank;
    comparison->straggler_limit = last->total.limit;
    memcpy(comparison->straggler_host, last->host, sizeof last->host);
    if (median > 0)
        comparison->behind_percent = 100 * (figure_of(last, WORK_S) / median - 1);
    for (int phase = 0; phase < RESULT_PHASES; phase++) {
        const double lost = figure_of(last, PHASE_S + phase) - comparison->phase_s[phase].median;
        if (phase != RESULT_PHASE_EXCHANGE && lost > most) {
            most = lost;
            comparison->behind_phase = (enum result_phase)phase;
        }
    }
    return 0;
}
