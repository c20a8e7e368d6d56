/* SPDX-License-Identifier: Apache-2.0 */
#include "shuffle/plan.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int plan_open(struct plan *plan, const struct plugin_choice *choice, const struct plan_scope *scope)
{
    *plan = (struct plan){.ops = (const struct shuffle_ops *)(const void *)choice->plugin,
                          .scope = *scope};
    if (scope->ranks == 0 || scope->rank >= scope->ranks)
        return fail(EINVAL, "--rank %u is not one of --ranks %u (they count from 0)", scope->rank,
                    scope->ranks);
    plan->state = memory_zeroed(choice->plugin->state_size);
    if (!plan->state)
        return -ENOMEM;
    plan->traits.slots = 1;
    return plan->ops->open(plan->state, choice->settings, &plan->scope, &plan->traits);
}

void plan_close(struct plan *plan)
{
    if (plan->state)
        plan->ops->close(plan->state);
    free(plan->state);
    plan->state = NULL;
}

int plan_begin(struct plan *plan, uint64_t epoch)
{
    uint64_t start_ns = clock_now_ns();
    int code = plan->ops->begin(plan->state, epoch);

    plan->begin_ns = clock_now_ns() - start_ns;
    return code;
}

int plan_next(struct plan *plan, struct plan_op *ops, uint32_t max)
{
    int count = plan->ops->next(plan->state, ops, max);

    assert(count <= (int)max);
    for (int i = 0; i < count; i++)
        assert(ops[i].slot < plan->traits.slots &&
               (ops[i].kind == PLAN_DRAW || ops[i].record < plan->scope.catalog->record_count));
    return count;
}

uint64_t plan_draws(struct plan *plan)
{
    return plan->ops->draws(plan->state);
}
