/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/proof.h"

#include "base/bytes.h"
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
    if (witness)
        witness_begin_run(witness);
    int gathered = gather_cold(ranks, &mine, run);
    return code ? code : gathered;
}

static const double DEVICE_SHARE_LEAST = 98; /* percent */

/* Bytes that left storage must match the bytes delivered when the cache was cold: a check of the
 * whole chain, from eviction to counting. Somebody who reads the same files during the run makes
 * its later reads warm, which no look at the cache before it can see. */
static void cross_check(const struct job *job, const struct plugin *reader, struct result_run *run,
                        struct result *result)
{
    const double percent = result_run_device_percent(run);
    char what[160];

    if (run->cold.state != RESULT_CACHE_COLD || percent < 0 || run->epochs[0].skipped ||
        strcmp(reader->name, "null") == 0 || percent >= DEVICE_SHARE_LEAST)
        return;
    snprintf(
        what, sizeof what,
        "only %.1f%% of the bytes left storage although the cache was cold: another process read "
        "the files meanwhile, or the file system compresses",
        percent);
    if (job->drop_caches == JOB_DROP_STRICT) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason, "%s", what);
    } else if (job->drop_caches != JOB_DROP_NO) {
        result_degraded(result, "run %llu: %s", (unsigned long long)run->number + 1, what);
    } else {
        result_notice(result, "run %llu: %s", (unsigned long long)run->number + 1, what);
    }
}

/* Disks cannot have given less than the process was charged for, but for what is under way: one of
 * the two counters is wrong. */
static void compare_witnesses(const struct result_run *run, struct result *result)
{
    const uint64_t under_way_bytes = 1 << 20;
    const struct result_bytes *device = &run->epochs[0].device;
    char charged[32], given[32];

    if (!device->known || !device->beneath_known || device->of_node ||
        device->bytes <= device->beneath_bytes + device->beneath_bytes / 50 + under_way_bytes)
        return;
    result_degraded(result,
                    "run %llu: %s left storage by %s, %s by the disks' own counters: the files are "
                    "cached beneath the file system, or a counter is wrong",
                    (unsigned long long)run->number + 1,
                    bytes_text(device->bytes, charged, sizeof charged), device->method,
                    bytes_text(device->beneath_bytes, given, sizeof given));
}

/* Sleeps in place of training that end late are no compute of a GPU: AU and rate are then this
 * machine's. One that ends late is made up for by the next, unless there is no processor for it. */
static void check_overrun(const struct result_run *run, struct result *result)
{
    uint64_t compute_ns = 0, nominal_ns = 0;

    for (uint32_t i = 0; i < run->epoch_count; i++) {
        compute_ns += run->epochs[i].compute_ns;
        nominal_ns += run->epochs[i].nominal_ns;
    }
    if (nominal_ns && compute_ns > nominal_ns + nominal_ns / 20)
        result_degraded(result,
                        "run %llu: replayed steps took %.1f%% longer than the GPU's: no processor "
                        "was free to end them in time",
                        (unsigned long long)run->number + 1,
                        100 * ((double)compute_ns / (double)nominal_ns - 1));
}

void proof_check(const struct job *job, const struct plugin *reader, struct result_run *run,
                 struct result *result)
{
    cross_check(job, reader, run, result);
    compare_witnesses(run, result);
    check_overrun(run, result);
    if (job->drop_caches != JOB_DROP_NO && run->cold.state == RESULT_CACHE_WARM) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason,
                 "the cache was to be cold, but %.2f%% of it was resident: %.180s",
                 run->cold.residue_percent, run->cold.reason);
    }
    char where[32];
    snprintf(where, sizeof where, "run %llu", (unsigned long long)run->number + 1);
    findings_tell(&run->findings, where, result);
}
