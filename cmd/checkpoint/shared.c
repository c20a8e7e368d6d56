/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/shared.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stats.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t shared_first_rank(const struct checkpoint_shared *shared, uint32_t ranks, uint32_t process)
{
    assert(process <= shared->ranks->place.ranks);
    return (uint32_t)((uint64_t)ranks * process / shared->ranks->place.ranks);
}

void shared_show(const struct checkpoint_shared *shared, bool is_read, uint64_t number,
                 uint64_t total)
{
    if (shared->job->progress)
        shared->job->progress(shared->job->progress_context, is_read, number, total,
                              clock_now_ns() - shared->start_ns);
}

/* ---- memory ---- */

int shared_prepare(struct checkpoint_shared *shared, uint32_t ranks, uint32_t chunk_bytes)
{
    struct rank_buffers *buffers = &shared->buffers;
    const uint32_t process = shared->ranks->place.rank;
    const uint32_t first = shared_first_rank(shared, ranks, process);
    const uint32_t count = shared_first_rank(shared, ranks, process + 1) - first;

    shared->first_rank = first;
    if (ranks < shared->ranks->place.ranks)
        return fail(EINVAL, "%u processes for a checkpoint of %u ranks: start at most one per rank",
                    shared->ranks->place.ranks, ranks);
    if (buffers->all && buffers->ranks == count && buffers->chunk_bytes == chunk_bytes)
        return 0;
    rank_buffers_destroy(buffers);
    free(shared->figures);
    *buffers = (struct rank_buffers){
        .ranks = count, .depth = (uint32_t)shared->job->depth, .chunk_bytes = chunk_bytes};
    shared->figures = memory_array(count + 1, sizeof *shared->figures);
    if (!shared->figures)
        return -ENOMEM;
    const uint64_t needed = (uint64_t)count * buffers->depth * chunk_bytes;
    const uint64_t usable = memory_available_bytes() / shared->ranks->place.local_ranks / 4 * 3;
    char need[32], have[32];
    if (needed > usable)
        return fail(
            ENOMEM,
            "%u ranks with %u chunks in flight need %s of memory in this process, which may use "
            "%s: lower --chunk or --iodepth, use --subset, or spread the ranks with mpirun",
            count, buffers->depth, bytes_text(needed, need, sizeof need),
            bytes_text(usable, have, sizeof have));
    int code = rank_buffers_create(buffers);
    for (uint64_t i = 0; code == 0 && i < (uint64_t)count * buffers->depth; i++)
        if (i == 0)
            content_fill(buffers->all[i].iov_base, chunk_bytes, shared->job->seed);
        else
            memcpy(buffers->all[i].iov_base, buffers->all[0].iov_base, chunk_bytes);
    if (code == 0 && count && shared->result->ceiling.made_per_s <= 0) {
        struct guard_moment start;
        guard_begin(&start);
        content_measure(buffers->all[0].iov_base, chunk_bytes, &shared->result->ceiling);
        guard_end(&start, &shared->guard);
    }
    return code;
}

/* ---- ranks ---- */

int shared_agree(struct checkpoint_shared *shared, int code, uint32_t *number)
{
    code = ranks_meet(shared->ranks, code, NULL);
    if (code || shared->ranks->place.ranks == 1)
        return code;
    return ranks_broadcast(shared->ranks, number, sizeof *number);
}

/* What a process reports after a checkpoint. */
struct process_report {
    uint32_t count;
    double process_bytes, device_bytes; /* NAN: unknown */
    struct histogram latency_ns;
    char first_damage[256];
    struct rank_line lines[];
};

int shared_collect(struct checkpoint_shared *shared, uint32_t ranks,
                   const struct storage_bytes *written, struct checkpoint_row *row)
{
    const uint32_t processes = shared->ranks->place.ranks, most = ranks / processes + 1;
    const size_t bytes =
        bytes_align_up(sizeof(struct process_report) + most * sizeof(struct rank_line), 64);
    struct process_report *mine = memory_zeroed(bytes);
    double *times = memory_array(ranks, sizeof *times); /* of all ranks, in nanoseconds */
    int code = mine && times ? 0 : -ENOMEM;

    if (code == 0) {
        mine->process_bytes =
            written && written->process_known ? (double)written->process_write_bytes : (double)NAN;
        mine->device_bytes =
            written && written->device_known ? (double)written->device_write_bytes : (double)NAN;
        if (shared->ranks->place.local_rank) /* the ranks of a node have the same devices */
            mine->device_bytes = 0;
        mine->count = shared->buffers.ranks;
        for (uint32_t i = 0; i < mine->count; i++) {
            const struct rank_figures *figures = &shared->figures[i];
            mine->lines[i] = figures->line;
            histogram_merge(&mine->latency_ns, &figures->latency_ns);
            if (figures->line.damaged && !mine->first_damage[0])
                memcpy(mine->first_damage, figures->first_damage, sizeof mine->first_damage);
        }
    }
    char *reports = ranks_collect(shared->ranks, &code, mine, bytes);
    if (reports) {
        const bool is_read = !written;
        uint32_t count = 0;
        for (uint32_t i = 0; i < shared->ranks->place.ranks; i++) {
            const struct process_report *report =
                (const struct process_report *)(const void *)(reports + i * bytes);
            const char *host =
                shared->ranks->peers ? shared->ranks->peers[i].host : shared->ranks->place.host;
            row->process_bytes += report->process_bytes;
            row->device_bytes += report->device_bytes;
            histogram_merge(&row->latency_ns, &report->latency_ns);
            for (uint32_t k = 0; k < report->count; k++) {
                const struct rank_line *line = &report->lines[k];
                struct checkpoint_rank *rank = &shared->result->each[line->rank];
                assert(line->rank < shared->result->ranks && count < ranks);
                rank->rank = line->rank;
                snprintf(rank->host, sizeof rank->host, "%s", host);
                *(is_read ? &rank->read : &rank->written) += line->bytes;
                *(is_read ? &rank->read_ns : &rank->write_ns) += line->wall_ns;
                row->bytes += line->bytes;
                row->synced_bytes += line->synced_bytes;
                row->damaged += line->damaged;
                row->sync_ns = line->sync_ns > row->sync_ns ? line->sync_ns : row->sync_ns;
                if (line->wall_ns >= row->wall_ns) {
                    row->wall_ns = line->wall_ns;
                    row->slowest = line->rank;
                }
                times[count++] = (double)line->wall_ns;
            }
            if (report->first_damage[0])
                result_invalid(&shared->result->evidence,
                               "content differs from what was written: %s", report->first_damage);
        }
        stats_sort(times, count);
        row->fastest_ns = (uint64_t)times[0];
        row->median_ns = (uint64_t)times[count / 2];
    }
    free(times);
    free(reports);
    free(mine);
    return code;
}
