/* SPDX-License-Identifier: Apache-2.0
 *
 * Run by mpirun: every shuffle with every partition, with records that do not divide evenly. The
 * ranks take each step together, like a trainer; a rank with more or fewer steps would wait for
 * ever. Each record is used once.
 */
#include "base/fail.h"
#include "base/memory.h"
#include "ranks/ranks.h"
#include "shuffle/quality.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 2, BATCH = 4, SHARDS = 7, OPS = 64, RECORDS_MAX = 128 };

/* One rank's share of a step, for comparison. */
struct step {
    uint64_t number;
    bool ends;
};

static void require(bool good, const char *what, const char *order, const struct plan_scope *scope)
{
    if (good)
        return;
    fprintf(stderr, "FAILED: %s: rank %u of %u, %s, %s, %llu records: %s\n", what, scope->rank,
            scope->ranks, order, plan_partition_names[scope->partition],
            (unsigned long long)scope->catalog->record_count, fail_reason());
    exit(1);
}

/* Draw an epoch; count how often each record was drawn here. */
static uint64_t draw_all(struct plan *plan, uint32_t *drawn)
{
    struct plan_op ops[OPS];
    uint64_t held[RECORDS_MAX * 4] = {0}, draws = 0;
    int count;

    while ((count = plan_next(plan, ops, OPS)) > 0)
        for (int i = 0; i < count; i++)
            if (ops[i].kind == PLAN_FETCH)
                held[ops[i].slot % (RECORDS_MAX * 4)] = ops[i].record;
            else
                draws++, drawn[held[ops[i].slot % (RECORDS_MAX * 4)]]++;
    return draws;
}

/* Take a step on all ranks and check that all took the same one. */
static bool step_together(struct ranks *ranks, const struct step *mine)
{
    struct step all[16];
    bool same = ranks_gather(ranks, mine, sizeof *mine, all) == 0;

    for (uint32_t i = 0; same && i < ranks->place.ranks; i++)
        same = all[i].number == mine->number && all[i].ends == mine->ends;
    return same;
}

static bool dealt_once(struct ranks *ranks, const uint32_t *drawn)
{
    static uint32_t all[16][RECORDS_MAX];
    bool once = ranks_gather(ranks, drawn, sizeof all[0], all) == 0;

    for (uint32_t record = 0; once && record < RECORDS_MAX; record++) {
        uint32_t times = 0;
        for (uint32_t rank = 0; rank < ranks->place.ranks; rank++)
            times += all[rank][record];
        once = times <= 1;
    }
    return once;
}

/* Refusals happen on all ranks, before any rank waits for another. */
static bool opened_alike(struct ranks *ranks, int code)
{
    int all[16];
    bool alike = ranks_gather(ranks, &code, sizeof code, all) == 0;

    for (uint32_t i = 0; i < ranks->place.ranks; i++)
        alike = alike && all[i] == code;
    return alike;
}

/* Returns whether the shuffle supports the partition. */
static bool try_order(struct ranks *ranks, const char *order, const struct plan_scope *scope)
{
    struct plugin_choice choice;
    struct plan plan;

    require(plugin_choose("shuffle", shuffle_registry, order, &choice) == 0, "choose", order,
            scope);
    int code = plan_open(&plan, &choice, scope);
    require(opened_alike(ranks, code), "refused by some", order, scope);
    if (scope->catalog->record_count >= 23 && scope->partition != PLAN_ELASTIC)
        require(code == 0, "open", order, scope); /* elastic does not support buffers */
    for (uint64_t epoch = 0; code == 0 && epoch < EPOCHS; epoch++) {
        uint32_t drawn[RECORDS_MAX] = {0};
        require(plan_begin(&plan, epoch) == 0, "begin", order, scope);
        const uint64_t draws = draw_all(&plan, drawn), steps = (draws + BATCH - 1) / BATCH;
        for (uint64_t i = 0; i <= steps; i++) {
            const struct step mine = {.number = i, .ends = i == steps};
            require(step_together(ranks, &mine), "step", order, scope);
        }
        require(scope->partition == PLAN_REPLICATED || dealt_once(ranks, drawn), "dealt twice",
                order, scope);
    }
    plan_close(&plan);
    plugin_release(&choice);
    return code == 0;
}

int main(void)
{
    static const uint64_t counts[] = {101, 23, 5, 1};
    struct ranks ranks;
    unsigned orders = 0;

    if (ranks_join(&ranks))
        return fprintf(stderr, "FAILED: %s\n", fail_reason()), 1;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct catalog *catalog =
            outline_create(counts[i], counts[i] < SHARDS ? (uint32_t)counts[i] : SHARDS, 1000, 100);
        for (int p = 0; plan_partition_names[p]; p++)
            for (int k = 0; shuffle_registry[k]; k++) {
                const struct plan_scope scope = {.catalog = catalog,
                                                 .seed = 3,
                                                 .rank = ranks.place.rank,
                                                 .ranks = ranks.place.ranks,
                                                 .partition = (enum plan_partition)p,
                                                 .remainder = PLAN_DROP,
                                                 .batch_size = BATCH};
                orders += try_order(&ranks, shuffle_registry[k]->name, &scope);
            }
        catalog_destroy(catalog);
    }
    if (ranks.place.rank == 0)
        printf("%u ranks took the same steps in %u orders\n", ranks.place.ranks, orders);
    ranks_leave(&ranks, false);
    return 0;
}
