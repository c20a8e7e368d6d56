/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sweep_scaling.h"

#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char per_rank[] = "limit-samples-per-rank";

size_t sweep_scaling_axis(const struct sweep_plan *plan)
{
    static const char *const names[] = {"ranks", "nodes"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct sweep_axis *axis = sweep_axis_named(plan, names[i]);
        if (axis && axis->count > 1 && !axis->row)
            return (size_t)(axis - plan->axes);
    }
    return SWEEP_NO_AXIS;
}

const char *sweep_scaling_name(const struct sweep *sweep)
{
    return sweep_axis_named(&sweep->plan, per_rank) ? "Weak" : "Strong";
}

int sweep_scaling_check(const struct sweep *sweep)
{
    const bool weak = sweep_axis_named(&sweep->plan, per_rank);
    const int wanted = sweep->settings->scaling;

    if (wanted == SWEEP_SCALING_AUTO)
        return 0;
    if (sweep_scaling_axis(&sweep->plan) == SWEEP_NO_AXIS)
        return fail(EINVAL, "--scaling needs several values of --ranks or --nodes");
    if (wanted == SWEEP_WEAK && !weak)
        return fail(EINVAL, "--scaling weak keeps the samples of a rank: say how many with --%s",
                    per_rank);
    if (wanted == SWEEP_STRONG && weak)
        return fail(EINVAL,
                    "--scaling strong keeps the samples of the job: use --limit-samples "
                    "instead of --%s",
                    per_rank);
    return 0;
}

struct sweep_scale sweep_scale_of(const struct sweep_table *table, uint32_t cell, size_t axis)
{
    const uint32_t first = sweep_neighbour(table->plan, cell, axis, 0);
    struct sweep_scale scale = {.ranks = sweep_value(table->plan, cell, axis),
                                .summary = sweep_summarise(table, cell),
                                .speed_up = sweep_against_first(table, cell, axis)};
    const double more =
        strtod(scale.ranks, NULL) / strtod(sweep_value(table->plan, first, axis), NULL);

    scale.efficiency = scale.speed_up.pairs ? scale.speed_up.ratio / more : NAN;
    return scale;
}
