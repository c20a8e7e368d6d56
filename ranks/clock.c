/* SPDX-License-Identifier: Apache-2.0
 *
 * Clock offsets between nodes: each node's lowest rank queries rank 0's clock, one node at a time,
 * as in NTP (RFC 5905, section 8).
 */
#include "base/clock.h"
#include "ranks/ranks.h"

enum { QUESTIONS = 40 };

static int answer(struct ranks *ranks, uint32_t rank)
{
    int code = 0;

    for (int i = 0; i < QUESTIONS && code == 0; i++) {
        uint64_t time_ns;
        code = ranks_receive(ranks, rank, &time_ns, sizeof time_ns);
        time_ns = clock_now_ns();
        if (code == 0)
            code = ranks_send(ranks, rank, &time_ns, sizeof time_ns);
    }
    return code;
}

static int measure_offset(struct ranks *ranks, struct ranks_clock *clock)
{
    uint64_t least_ns = UINT64_MAX;
    int code = 0;

    for (int i = 0; i < QUESTIONS && code == 0; i++) {
        const uint64_t start_ns = clock_now_ns();
        uint64_t time_ns = start_ns;
        code = ranks_send(ranks, 0, &time_ns, sizeof time_ns);
        if (code == 0)
            code = ranks_receive(ranks, 0, &time_ns, sizeof time_ns);
        const uint64_t end_ns = clock_now_ns();
        if (code || end_ns - start_ns >= least_ns)
            continue;
        least_ns = end_ns - start_ns;
        *clock = (struct ranks_clock){.at_ns = start_ns + least_ns / 2,
                                      .ahead_ns = (int64_t)(start_ns + least_ns / 2 - time_ns),
                                      .uncertainty_ns = (least_ns + 1) / 2};
    }
    return code;
}

int ranks_compare_clocks(struct ranks *ranks, struct ranks_clock *clock)
{
    int code = 0;

    *clock = (struct ranks_clock){.at_ns = clock_now_ns()};
    for (uint32_t i = 1; i < ranks->place.ranks && code == 0; i++) {
        if (!ranks->peers[i].leads)
            continue;
        if (ranks->place.rank == 0)
            code = answer(ranks, i);
        else if (ranks->place.rank == i)
            code = measure_offset(ranks, clock);
    }
    return ranks_meet(ranks, code, NULL);
}
