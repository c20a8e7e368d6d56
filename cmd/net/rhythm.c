/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/rhythm.h"

#include "base/clock.h"
#include "base/fail.h"
#include "cmd/net/measure.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { FORWARD_SHARE = 3, /* the backward pass takes twice as long */ NAP_NS = 50000 };

int rhythm_add(struct rhythm *rhythm, uint64_t bytes, uint32_t ranks)
{
    const uint64_t unit = sizeof(float) * (uint64_t)ranks;
    const uint64_t whole = bytes < unit ? unit : bytes / unit * unit;

    assert(ranks > 0);
    if (rhythm->count == RHYTHM_BUCKETS)
        return fail(EINVAL, "more than %d buckets of gradients", RHYTHM_BUCKETS);
    rhythm->buckets[rhythm->count++] = whole;
    rhythm->bytes += whole;
    return 0;
}

int rhythm_run(struct rhythm *rhythm, bool (*ended)(void *context), void *context,
               struct rhythm_figures *figures)
{
    struct transport *transport = rhythm->transport;
    struct ranks *ranks = transport->config.ranks;
    unsigned char *arena = transport->config.arena;
    const struct pattern mine = {ranks->place.rank, ++rhythm->turn};
    double ready = 0;

    *figures = (struct rhythm_figures){0};
    assert(transport->config.bytes >= 2 * rhythm->bytes);
    pattern_fill_floats(&mine, arena, rhythm->bytes);
    int code = ranks_meet(ranks, transport_copy(transport, false, 0, rhythm->bytes), NULL);
    while (code == 0 && ready < ranks->place.ranks) {
        const uint64_t start_ns = clock_now_ns(), forward_ns = rhythm->step_ns / FORWARD_SHARE;
        const uint64_t backward_ns = rhythm->step_ns - forward_ns;
        uint64_t at = 0;
        for (uint32_t i = 0; i < rhythm->count && code == 0; i++) {
            const uint64_t final_ns = start_ns + forward_ns + backward_ns * (i + 1) / rhythm->count;
            uint64_t begin_ns;
            while ((begin_ns = clock_now_ns()) < final_ns && code == 0) {
                /* Not silently: others look for this rank's heartbeats. */
                const uint64_t left_ns = final_ns - begin_ns;
                const struct timespec nap = {.tv_nsec = left_ns < NAP_NS ? (long)left_ns : NAP_NS};
                if (ranks_called_off(ranks))
                    code = fail(ECANCELED, "another rank failed");
                else
                    nanosleep(&nap, NULL);
            }
            if (code == 0)
                code = transport_collective(transport, COLLECTIVE_ALL_REDUCE, at,
                                            rhythm->bytes + at, rhythm->buckets[i]);
            figures->busy_s += (double)(clock_now_ns() - begin_ns) * 1e-9;
            at += rhythm->buckets[i];
        }
        const uint64_t took_ns = clock_now_ns() - start_ns;
        figures->time_s += (double)took_ns * 1e-9;
        figures->late_s += (double)(took_ns - rhythm->step_ns) * 1e-9;
        figures->steps++;
        if (code)
            ranks_call_off(ranks);
        code = ranks_meet(ranks, code, NULL);
        ready = ended(context);
        if (code == 0)
            code = ranks_sum(ranks, &ready, 1);
    }
    if (code)
        return code;
    code = transport_copy(transport, true, rhythm->bytes, rhythm->bytes);
    if (rhythm->turn == rhythm->damage)
        arena[rhythm->bytes] ^= 1;
    if (code == 0)
        code = pattern_check_sum(rhythm->turn, ranks->place.ranks, 0, arena + rhythm->bytes,
                                 rhythm->bytes);
    struct rhythm_figures *all = ranks_collect(ranks, &code, figures, sizeof *figures);
    for (uint32_t i = 0; all && i < ranks->place.ranks; i++)
        if (all[i].time_s > figures->time_s)
            *figures = all[i];
    free(all);
    return code;
}
