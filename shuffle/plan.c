/* SPDX-License-Identifier: Apache-2.0 */
#include "shuffle/plan.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const plan_partition_names[] = {"disjoint",   "sticky",  "shards",
                                            "replicated", "elastic", NULL};
const char *const plan_remainder_names[] = {"uneven", "pad", "drop", NULL};

int shuffle_choose(const char *text, bool front_to_back, struct plugin_choice *choice)
{
    const struct plugin *const *row = shuffle_registry;

    while (front_to_back && !((const struct shuffle_ops *)(const void *)*row)->interleaves)
        row++;
    return plugin_choose("shuffle", shuffle_registry,
                         strcmp(text, "auto") == 0 ? (*row)->name : text, choice);
}

int plan_open(struct plan *plan, const struct plugin_choice *choice, const struct plan_scope *scope)
{
    *plan = (struct plan){.ops = (const struct shuffle_ops *)(const void *)choice->plugin,
                          .scope = *scope};
    if (scope->ranks == 0 || scope->rank >= scope->ranks)
        return fail(EINVAL, "--rank %u must be less than --ranks %u", scope->rank, scope->ranks);
    plan->state = memory_zeroed(choice->plugin->state_size);
    if (!plan->state)
        return -ENOMEM;
    plan->traits.slots = 1;
    return plan->ops->open(plan->ops, plan->state, choice->settings, &plan->scope, &plan->traits);
}

void plan_close(struct plan *plan)
{
    if (plan->state)
        plan->ops->close(plan->state);
    free(plan->state);
    free(plan->refetches);
    plan->state = NULL;
    plan->refetches = NULL;
}

int plan_begin(struct plan *plan, uint64_t epoch)
{
    uint64_t start_ns = clock_now_ns();
    int code = plan->ops->begin(plan->state, epoch);

    assert(plan->state && plan->traits.slots > 0);
    plan->begin_ns = clock_now_ns() - start_ns;
    plan->refetch_count = plan->refetch_at = 0;
    return code;
}

static int by_record(const void *a, const void *b)
{
    const struct plan_op *x = a, *y = b;

    return (x->record > y->record) - (x->record < y->record);
}

int plan_seek(struct plan *plan, uint64_t draw)
{
    const uint64_t slots = plan->traits.slots;

    if (draw >= plan_draws(plan))
        return fail(EINVAL, "sample %llu is past the end: the epoch has %llu",
                    (unsigned long long)draw, (unsigned long long)plan_draws(plan));
    if (plan->ops->seek) {
        plan->ops->seek(plan->state, draw);
        return 0;
    }
    uint64_t *held = memory_array(slots, sizeof *held);
    free(plan->refetches);
    plan->refetches = memory_array(slots, sizeof *plan->refetches);
    int code = held && plan->refetches ? 0 : -ENOMEM;
    /* Replay the operations before it; held[slot] becomes the record there plus 1. */
    while (code == 0 && draw > 0) {
        /* An operation is at most one draw, so this never overshoots. */
        struct plan_op ops[256];
        const int count = plan->ops->next(plan->state, ops, draw < 256 ? (uint32_t)draw : 256);
        code = count < 0 ? count : 0;
        assert(count);
        for (int i = 0; i < count; i++) {
            held[ops[i].slot] = ops[i].kind == PLAN_FETCH ? ops[i].record + 1 : 0;
            draw -= ops[i].kind == PLAN_DRAW;
        }
    }
    for (uint64_t slot = 0; code == 0 && slot < slots; slot++)
        if (held[slot])
            plan->refetches[plan->refetch_count++] = (struct plan_op){
                .kind = PLAN_FETCH, .record = held[slot] - 1, .slot = (uint32_t)slot};
    free(held);
    if (code == 0) /* sorted by storage location */
        qsort(plan->refetches, plan->refetch_count, sizeof *plan->refetches, by_record);
    return code;
}

int plan_next(struct plan *plan, struct plan_op *ops, uint32_t max)
{
    int count = 0;

    for (; plan->refetch_at < plan->refetch_count && count < (int)max; count++)
        ops[count] = plan->refetches[plan->refetch_at++];
    if (count == 0)
        count = plan->ops->next(plan->state, ops, max);
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
