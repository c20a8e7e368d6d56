/* SPDX-License-Identifier: Apache-2.0
 * team: real ranks, threads of one process, joined by a transport of memory on a manual clock. One
 * runs at a time, until it sleeps or yields, and time passes when none can go on: each run is the
 * same, to the nanosecond. One call of
 * the transport may fail. A program that links it has this transport for its ranks. */
#ifndef IOBENCH_TESTS_TEAM_H
#define IOBENCH_TESTS_TEAM_H

#include "tests/unit/unit.h"

#include "ranks/ranks.h"

#include <stdio.h>

enum { TEAM_MOST = 4 };
enum team_call {
    TEAM_JOIN,
    TEAM_GATHER,
    TEAM_SEND,
    TEAM_RECEIVE,
    TEAM_DONE,
    TEAM_CALL,
    TEAM_SHM,
    TEAM_CALLS
};

struct team {
    uint32_t ranks, per_node;
    int (*act)(struct ranks *ranks);   /* of each, once it has joined */
    uint64_t rank_timeout_ns, step_ns; /* step_ns: passes at each look at the clock */
    enum {
        TEAM_LATE,
        TEAM_PROMPT,
        TEAM_SLOW
    } clock;              /* each sleep lasts 5 ms longer; or time passes, but slower
                         than the machine's, as other threads work */
    uint32_t lies;        /* this rank says that its node is, */
    const uint32_t *node; /* NULL: none does */
    enum team_call fails; /* the nth of a rank; 0: none */
    uint32_t rank, nth;
    bool has_failed, hangs; /* hangs: was ended after 300 s */
    /* What becomes of each: act's code or that of joining, its reason, how it left. */
    int codes[TEAM_MOST];
    char reasons[TEAM_MOST][FAIL_REASON_BYTES];
    bool orderly[TEAM_MOST];
    uint64_t ended_ns[TEAM_MOST];
};

extern _Thread_local uint32_t team_rank; /* of this thread; TEAM_MOST: none */
extern const char *const team_calls[];
/* Runs all of them to their end. */
void team_run(struct team *team);
/* Of one that waits: the next rank runs. Time passes only while no rank can go on. */
void team_pass(uint64_t duration_ns);
/* Something moved, in another transport of the test's. */
void team_moved(void);
/* "0 -EIO reason; 1 2 ok": equal ones together. */
void team_print(const struct team *team, FILE *page);

#endif
