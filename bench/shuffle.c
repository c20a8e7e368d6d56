/* SPDX-License-Identifier: Apache-2.0
 *
 * Cost of generating orders. The bijection: one permuted number takes six rounds of two
 * multiplications, about 30 cycles when neighbours overlap; the goal of 10 M draws/s per core holds
 * for the worst count, just above a power of two, where every second number is skipped. Then each
 * strategy on 100 M records for 8 ranks: time to the first draw, memory of its tables, and its
 * speed on 1.28 M records. Times are CPU times of this thread, independent of other work on the
 * machine.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stats.h"
#include "shuffle/quality.h"
#include "shuffle/plan.h"

#include <stdio.h>

enum { ROUNDS = 5, NUMBERS = 4000000, RANKS = 8, OPS = 256 };

static const char *const strategies[] = {
    "none",       "epoch", "buffer:10000",   "block", "mxnet", "mxnet-chunk", "tfdata", "dali",
    "webdataset", "ffcv",  "corgipile:0.01", "py1s",  "py2s",  "py1br",       "py1e",   "naive",
};

static double permutation_speed(uint64_t count)
{
    double speeds[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        const struct permutation permutation = permutation_start((uint64_t)round, count);
        const uint64_t start_ns = clock_cpu_ns();
        uint64_t sum = 0, index = 0;
        for (int i = 0; i < NUMBERS; i++) {
            sum += permutation_at(&permutation, index);
            if (++index == count)
                index = 0;
        }
        speeds[round] = NUMBERS * 1e3 / (double)(clock_cpu_ns() - start_ns);
        if (sum == 1) /* never true: keeps the compiler from removing the loop */
            puts("");
    }
    return stats_summarise(speeds, ROUNDS).median;
}

struct start {
    double seconds; /* of the slowest rank: open, begin, first draw */
    uint64_t state_bytes, slots;
    double draws_per_us;
};

/* Opens a plan, begins epoch 0 and runs to the given draw. */
static int run_plan(const struct catalog *catalog, const char *strategy, uint32_t rank,
                    uint32_t ranks, uint64_t draws, struct start *start)
{
    const struct plan_scope scope = {
        .catalog = catalog, .seed = 1, .rank = rank, .ranks = ranks, .batch_size = 256};
    struct plugin_choice choice;
    struct plan plan = {0};
    struct plan_op ops[OPS];
    uint64_t drawn = 0;
    const uint64_t start_ns = clock_cpu_ns();
    int code = plugin_choose("shuffle", shuffle_registry, strategy, &choice);

    if (code == 0)
        code = plan_open(&plan, &choice, &scope);
    if (code == 0)
        code = plan_begin(&plan, 0);
    while (code == 0 && drawn < draws) {
        int count = plan_next(&plan, ops, OPS);
        if (count <= 0)
            break;
        for (int i = 0; i < count; i++)
            drawn += ops[i].kind == PLAN_DRAW;
    }
    const double seconds = (double)(clock_cpu_ns() - start_ns) * 1e-9;
    start->draws_per_us = (double)drawn / seconds * 1e-6;
    start->seconds = seconds > start->seconds ? seconds : start->seconds;
    start->state_bytes = plan.traits.state_bytes;
    start->slots = plan.traits.slots;
    if (plan.ops)
        plan_close(&plan);
    plugin_release(&choice);
    return code;
}

static int compare_strategies(uint64_t records, double *slowest, uint64_t *largest)
{
    struct catalog *many = outline_create(records, (uint32_t)(records / 1250), 110000, 0);
    struct catalog *few = outline_create(1281167, 1024, 110000, 0);
    int code = many && few ? 0 : -1;

    printf("%-16s %14s %12s %12s %14s\n", "", "first draw ms", "tables MiB", "slots", "M draws/s");
    for (size_t s = 0; code == 0 && s < sizeof strategies / sizeof *strategies; s++) {
        struct start start = {0}, speed = {0};
        for (uint32_t rank = 0; code == 0 && rank < RANKS; rank++)
            code = run_plan(many, strategies[s], rank, RANKS, 1, &start);
        if (code == 0)
            code = run_plan(few, strategies[s], 0, 1, UINT64_MAX, &speed);
        printf("%-16s %14.1f %12.1f %12llu %14.1f\n", strategies[s], start.seconds * 1e3,
               (double)start.state_bytes / (1 << 20), (unsigned long long)start.slots,
               speed.draws_per_us);
        *slowest = start.seconds > *slowest ? start.seconds : *slowest;
        *largest = start.state_bytes > *largest ? start.state_bytes : *largest;
    }
    catalog_destroy(many);
    catalog_destroy(few);
    return code;
}

int main(void)
{
    static const uint64_t counts[] = {1000, 1281167, (1 << 20) + 1, 1000000000, (1 << 30) + 1};
    const uint64_t records = memory_available_bytes() > UINT64_C(3) << 30 ? 100000000 : 10000000;
    double worst = 1e9, slowest = 0;
    uint64_t largest = 0;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double speed = permutation_speed(counts[i]);
        printf("permutation of %-11llu median %.1f M draws/s\n", (unsigned long long)counts[i],
               speed);
        worst = speed < worst ? speed : worst;
    }
    printf("\n%llu records for %d ranks (speed: 1281167 for one)\n", (unsigned long long)records,
           RANKS);
    if (compare_strategies(records, &slowest, &largest)) {
        fprintf(stderr, "shuffle: %s\n", fail_reason());
        return 1;
    }
    printf("claim shuffle_permutation %.1f Mdraws/s goal >=10 %s\n", worst,
           worst >= 10 ? "ok" : "short");
    printf("claim shuffle_start %.3f s goal <=1 %s\n", slowest, slowest <= 1 ? "ok" : "short");
    printf("claim shuffle_state %.1f MiB goal <=1024 %s\n", (double)largest / (1 << 20),
           largest <= UINT64_C(1) << 30 ? "ok" : "short");
    return 0;
}
