/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/job.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "cmd/checkpoint/shared.h"
#include "dataset/store.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/result/gather.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check for space for the checkpoints that exist at the same time, before anything is removed. */
static int check_space(const struct checkpoint_shared *shared)
{
    const struct checkpoint_job *job = shared->job;
    const uint64_t each_bytes = shared->result->files.bytes;
    const uint64_t most = job->writes <= job->keep ? job->writes : job->keep + 1;
    const uint64_t each = each_bytes < UINT64_MAX / 4 / most ? each_bytes : UINT64_MAX / 4 / most;
    char need_text[32], each_text[32], have[32], older[32], removed[96] = "";
    uint64_t available,
        *old = NULL; /* what the removal of each that is there frees, oldest first */
    size_t old_count = 0, old_removed = 0;
    int code = store_free_bytes(job->path, &available);

    assert(job->writes > 0 && most > 0);
    if (code == 0 && shared->store.folder.fd >= 0)
        code = snapshot_sizes(&shared->store, &old, &old_count);
    if (code) {
        free(old);
        return code;
    }
    /* The moment at which it needs most: `at_once` of its own are there, the last of them not yet
     * whole, and older ones have been removed: each but those to be kept goes before the next one
     * is written. */
    uint64_t at_once = 0, need = 0, freed = 0, freed_so_far = 0;
    for (uint64_t own = 1; own <= most; own++) {
        const uint64_t bytes = each * own + each / 100;
        while (old_removed < old_count && old_count - old_removed + own - 1 > job->keep)
            freed_so_far += old[old_removed++];
        if (own == 1 || bytes + freed > need + freed_so_far) {
            at_once = own;
            need = bytes;
            freed = freed_so_far;
        }
    }
    free(old);
    if (need <= available + freed)
        return 0;
    if (freed)
        snprintf(removed, sizeof removed, " and %s in older ones that it removes by then",
                 bytes_text(freed, older, sizeof older));
    return fail(ENOSPC,
                "%s: needs %s for %llu checkpoints of %s at a time, only %s free%s: lower --keep, "
                "or write a part with --scale, --bytes or --subset",
                job->path, bytes_text(need, need_text, sizeof need_text),
                (unsigned long long)at_once, bytes_text(each_bytes, each_text, sizeof each_text),
                bytes_text(available, have, sizeof have), removed);
}

/* Remove this job's remaining checkpoints; keeps the reason. */
static int remove_own(void *context)
{
    struct checkpoint_shared *shared = context;
    const struct checkpoint_result *result = shared->result;
    uint32_t *numbers;
    size_t count;
    int code = snapshot_list(&shared->store, &numbers, &count);

    for (size_t i = 0; i < count && code == 0; i++)
        for (uint64_t k = 0; k < result->write_count; k++)
            if (result->writes[k].number == numbers[i])
                code = snapshot_remove(&shared->store, numbers[i]);
    free(numbers);
    return code;
}

enum checkpoint_durability checkpoint_durability(const struct checkpoint_row *row)
{
    if (row->synced_bytes < row->bytes)
        return CHECKPOINT_NOT_DURABLE;
    return row->device_bytes >= (double)row->bytes ? CHECKPOINT_DURABLE : CHECKPOINT_UNVERIFIED;
}

int checkpoint_run(const struct checkpoint_job *job, struct ranks *ranks,
                   struct checkpoint_result *result)
{
    struct checkpoint_shared shared = {.job = job,
                                       .result = result,
                                       .ranks = ranks,
                                       .store = {.folder.fd = -1, .lock.fd = -1},
                                       .start_ns = clock_now_ns()};
    char reason[FAIL_REASON_BYTES];

    *result = (struct checkpoint_result){
        .processes = ranks->place.ranks,
        .nodes = ranks->place.nodes,
        .evidence = {.valid = true, .ranks = ranks->place.ranks, .nodes = ranks->place.nodes}};
    result->writes = memory_array(job->writes + 1, sizeof *result->writes);
    result->reads = memory_array(job->reads + 1, sizeof *result->reads);
    int code = result->writes && result->reads ? 0 : -ENOMEM;
    if (code == 0 && job->writes)
        code = model_list(&job->model, &result->files);
    result->ranks = result->files.ranks;
    result->each = code ? NULL : memory_array(result->ranks + 1, sizeof *result->each);
    if (code == 0 && !result->each)
        code = -ENOMEM;
    code = ranks_meet(ranks, code, NULL);
    if (code == 0) {
        /* The first process creates and locks the folder before the others open it. */
        const bool leads = ranks->place.rank == 0;
        const bool is_there = leads && file_exists(job->path);
        if (leads && job->writes && !is_there) /* if refused, makes no folder */
            code = check_space(&shared);
        if (code == 0 && leads && job->writes)
            code = snapshot_check_size(&result->files, (uint32_t)job->chunk_bytes);
        if (code == 0 && leads)
            code = snapshot_open(&shared.store, job->path, job->writes > 0);
        if (code == 0 && is_there && job->writes)
            code = check_space(&shared);
        /* A job that was killed before it pruned left one too many: without pruning here each
         * further such job would add one. */
        if (code == 0 && leads && job->writes)
            code = snapshot_prune(&shared.store, job->keep);
        code = ranks_meet(ranks, code, NULL);
        if (code == 0 && !leads)
            code = snapshot_open(&shared.store, job->path, false);
        if (code == 0)
            shared.storage = storage_open(&telemetry_roots_usual, &job->path, 1);
        if (code == 0 && !shared.storage)
            code = -ENOMEM;
        code = ranks_meet(shared.ranks, code, NULL);
    }
    ranks->rank_timeout_ns = job->rank_timeout_ns; /* removing old drafts may take any time */
    if (code == 0 && job->writes)
        code = writes_run(&shared);
    if (code == 0)
        code = reads_run(&shared);
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = gather_guard(ranks, &shared.guard);
    if (code == 0)
        validity_guard(&shared.guard, "checkpoints", &result->evidence);
    if (code == 0)
        code = gather_notices(ranks, &result->evidence);
    snprintf(reason, sizeof reason, "%s", fail_reason());
    if (ranks->place.rank == 0 && shared.store.folder.fd >= 0 && !job->leave) {
        const int removed = ranks_do(ranks, "removing checkpoints", remove_own, &shared);
        if (code)
            fail(code, "%s", reason);
        else
            code = removed;
    }
    /* fsync returned, and yet the devices did not write it. */
    for (uint64_t i = 0; i < result->write_count; i++) {
        const struct checkpoint_row *row = &result->writes[i];
        if (checkpoint_durability(row) == CHECKPOINT_UNVERIFIED &&
            row->device_bytes < 0.98 * (double)row->bytes)
            result_degraded(&result->evidence,
                            "checkpoint %u: synced, but the devices wrote only %.1f%% of its bytes",
                            row->number, 100 * row->device_bytes / (double)row->bytes);
    }
    storage_close(shared.storage);
    snapshot_close(&shared.store);
    rank_buffers_destroy(&shared.buffers);
    free(shared.figures);
    return code;
}

void checkpoint_destroy(struct checkpoint_result *result)
{
    free(result->files.list);
    free(result->writes);
    free(result->reads);
    free(result->each);
    result_destroy(&result->evidence);
}
