/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sweep/sweep.h"

#include "base/fail.h"
#include "report/pictures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *sweep_scaling_kind(const struct sweep_plan *plan, uint32_t cell)
{
    const struct sweep_axis *both = sweep_axis_named(plan, SWEEP_SCALING);

    if (both)
        return sweep_value(plan, cell, (size_t)(both - plan->axes));
    return sweep_axis_named(plan, per_rank) ? "weak" : "strong";
}

bool sweep_scaling_has(const struct sweep_plan *plan, uint32_t cell, const char *option)
{
    const char *other =
        strcmp(sweep_scaling_kind(plan, cell), "weak") == 0 ? "limit-samples" : per_rank;

    return !sweep_axis_named(plan, SWEEP_SCALING) || strcmp(option, other) != 0;
}

int sweep_scaling_plan(struct sweep *sweep)
{
    const bool weak = sweep_axis_named(&sweep->plan, per_rank);
    const int wanted = sweep->settings->scaling;

    if (wanted != SWEEP_SCALING_AUTO && sweep_scaling_axis(&sweep->plan) == SWEEP_NO_AXIS)
        return fail(EINVAL, "--scaling needs several values of --ranks or --nodes");
    if (wanted == SWEEP_STRONG_WEAK) {
        const struct sweep_axis *job = sweep_axis_named(&sweep->plan, "limit-samples");
        const struct sweep_axis *rank = sweep_axis_named(&sweep->plan, per_rank);
        if (!rank || rank->count > 1 || (job && job->count > 1))
            return fail(EINVAL,
                        "--scaling strong,weak needs one --%s, and at most one --limit-samples for "
                        "the job",
                        per_rank);
        return sweep_add(&sweep->plan, SWEEP_SCALING, NULL, NULL, "strong,weak");
    }
    if (weak && sweep_axis_named(&sweep->plan, "limit-samples"))
        return fail(EINVAL,
                    "only one of --limit-samples and --%s applies, unless --scaling is strong,weak",
                    per_rank);
    if (wanted == SWEEP_WEAK && !weak)
        return fail(EINVAL, "--scaling weak needs --%s, the samples of each rank", per_rank);
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

    scale.efficiency =
        scale.speed_up.pairs
            ? pictures_efficiency(scale.speed_up.ratio, strtod(scale.ranks, NULL),
                                  strtod(sweep_value(table->plan, first, axis), NULL))
            : NAN;
    return scale;
}
