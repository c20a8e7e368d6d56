/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/proof.h"

#include "pipeline/gather.h"

#include <stdio.h>
#include <string.h>

int proof_make_cold(struct witness *witness, const struct job *job, struct ranks *ranks,
                    void (*progress)(void *context, uint64_t elapsed_ns), void *context,
                    struct result_run *run)
{
    const struct ranks_place *place = &ranks->place;
    struct result_cold mine = {0};
    int code = 0;

    ranks->silence_ns = 0; /* dropping takes the time it takes */
    if (job->memory_limit_bytes && run->number == 0 && place->local_rank == 0)
        code = witness_evict(witness);
    if (code == 0 && place->local_rank == 0)
        code = witness_make_cold(witness, place->rank == 0, progress, context, &mine);
    code = ranks_meet(ranks, code, NULL);
    int gathered = gather_cold(ranks, &mine, run);
    return code ? code : gathered;
}

/* Bytes that left storage must match the bytes delivered when the cache was cold: a check of the
 * whole chain, from eviction to counting. */
static void cross_check(const struct plugin *reader, const struct result_run *run,
                        struct result *result)
{
    double percent = result_run_device_percent(run);

    if (run->cold.state != RESULT_CACHE_COLD || percent < 0 || run->epochs[0].skipped ||
        strcmp(reader->name, "null") == 0)
        return;
    if (percent < 98)
        result_notice(
            result,
            "run %llu: only %.1f%% of the delivered bytes left storage although the cache "
            "was cold: something else cached them",
            (unsigned long long)run->number + 1, percent);
}

void proof_check(const struct job *job, const struct plugin *reader, struct result_run *run,
                 struct result *result)
{
    cross_check(reader, run, result);
    if (job->drop_caches != JOB_DROP_NO && run->cold.state == RESULT_CACHE_WARM) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason,
                 "the cache was to be cold, but %.2f%% of it was resident: %.180s",
                 run->cold.residue_percent, run->cold.reason);
    }
    if (run->valid && run->epochs[0].skipped)
        result_notice(result, "run %llu: degraded: records were skipped",
                      (unsigned long long)run->number + 1);
}
