/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks: the processes of one job: who each is, on which node, and what they say to each other
 * besides gradients. It knows no benchmark. One process, started plainly, is a job of one rank and
 * pays nothing.
 *
 * All ranks make the same calls in the same order. What may fail on one of them ends in
 * ranks_meet(): there all of them learn of it, with host and reason, and all fail alike; so nobody
 * waits for a rank that has gone another way. One that is stuck and does not come is left after
 * seconds, and the launcher ends the job.
 *
 * One state, used by the main thread only.
 */
#ifndef IOBENCH_RANKS_RANKS_H
#define IOBENCH_RANKS_RANKS_H

#include "base/plugin.h"

#include <stdbool.h>
#include <stdint.h>

enum { RANKS_HOST_BYTES = 64 };

struct ranks_place {
    uint32_t rank, ranks;
    uint32_t local_rank, local_ranks; /* on this node */
    uint32_t node, nodes;             /* nodes are numbered by their lowest ranks */
    uint32_t cpus;                    /* this rank's share of the CPUs it may run on, at least 1 */
    char host[RANKS_HOST_BYTES];
};

/* A member starts one transfer at a time and is asked until it is done. */
struct ranks_ops {
    struct plugin plugin;
    int (*join)(void *state, struct ranks_place *place);
    /* Also after a failed join. orderly: nothing is under way; else the launcher is made to end
     * all ranks. */
    void (*leave)(void *state, bool orderly);
    /* `bytes` of each rank, in the order of ranks, into `all` of everybody. */
    int (*gather)(void *state, const void *mine, uint64_t bytes, void *all);
    int (*send)(void *state, uint32_t to, const void *message, uint64_t bytes);
    int (*receive)(void *state, uint32_t from, void *message, uint64_t bytes);
    int (*test)(void *state, bool *done); /* the transfer that was started last */
    /* A word to another rank that does not wait for it, and whether one came, and from whom. */
    int (*call)(void *state, uint32_t to, uint64_t word);
    int (*hear)(void *state, uint32_t *from, uint64_t *word, bool *heard);
};

extern const struct plugin *const ranks_registry[];

/* A rank, as all know it. */
struct ranks_peer {
    char host[RANKS_HOST_BYTES];
    uint32_t node;
    bool leads;        /* the lowest rank of its node */
    uint64_t gathers;  /* it came to so many; rank 0 alone knows */
    uint64_t heard_ns; /* when it last said a word */
};

struct ranks {
    const struct ranks_ops *ops;
    void *state;
    struct ranks_place place;
    struct ranks_peer *peers; /* all ranks; NULL: ranks_alone() */
    /* Told now and then which ranks are waited for, or what they wait for, on rank 0 alone; NULL:
     * nobody. */
    void (*waiting)(void *context, const char *text);
    void *waiting_context;
    uint64_t silence_ns;        /* abort waiting for a rank that is unresponsive for longer; 0:
                                   never. May change between calls */
    uint64_t sign_ns;           /* when this one last gave one */
    uint64_t meetings, gathers; /* that are over */
    uint64_t call_off_ns;       /* when it was known that a rank had failed; 0: none has */
    bool is_culprit;            /* this one */
    bool is_broken;             /* a transfer was given up: an orderly end cannot be had */
    bool is_unheard;            /* a meeting was: only this rank knows what it knows */
};

/* Was this process started by a launcher that ranks_join() will ask for the others? */
bool ranks_are_launched(void);

/* One process, alone. Needs no leaving. */
struct ranks ranks_alone(void);

/* Join those that were started with this process by mpirun or srun, else be alone; -ENODEV when the
 * launcher started several that cannot find each other. 0 or a negative errno; call ranks_leave()
 * in either case. */
int ranks_join(struct ranks *ranks);
/* The end of this process. Does not return when another rank is stuck. */
void ranks_leave(struct ranks *ranks, bool failed);

/* How many processes were started with this one, as the launcher says it; 1 when there is none.
 * *says: the environment variable that has it, else NULL. */
int ranks_started(const char **says);

/* Rank 0 of this job, as the launcher says it, before anybody has joined: who prints. */
bool ranks_speaks(void);

/* How did it go? 0 when it is 0 on all ranks; else all get a code below 0 with a reason, which
 * names rank and host of the first that failed when not all failed alike. waited_ns: for the
 * others; may be NULL. */
int ranks_meet(struct ranks *ranks, int code, uint64_t *waited_ns);
/* This rank fails and will say so at the next meeting: the others need not go on until then. */
void ranks_call_off(struct ranks *ranks);
/* Did a rank call off what is going on? To be asked in loops, by which the others know that this
 * one lives; costs a microsecond. */
bool ranks_called_off(struct ranks *ranks);

/* `bytes` of each rank into `all` (ranks x bytes) of everybody. */
int ranks_gather(struct ranks *ranks, const void *mine, uint64_t bytes, void *all);
/* Sums over all ranks, the same bits for everybody. count: at most 8. */
int ranks_sum(struct ranks *ranks, double *values, uint32_t count);
int ranks_send(struct ranks *ranks, uint32_t to, const void *message, uint64_t bytes);
int ranks_receive(struct ranks *ranks, uint32_t from, void *message, uint64_t bytes);

/* For what is made once and then found by all, on shared storage or on each node's own: rank 0
 * does it first, then the first rank of each other node, then the rest. All fail alike. */
int ranks_in_turn(struct ranks *ranks, int (*act)(void *context), void *context);

/* Work of this rank alone that may block, as on a slow disk, while others wait for it in the next
 * call: it is done on a thread of its own, and meanwhile they hear that this rank lives. Rank 0
 * says `what` it does after 5 s, 10, 20, .... What act returned, with its reason. */
int ranks_do(struct ranks *ranks, const char *what, int (*act)(void *context), void *context);

/* Memory that the ranks of a node see together: each_bytes for each of them, in the order of their
 * local ranks, zero at first. All ranks call, and all fail alike; unshare in either case. */
struct ranks_memory {
    void *start;
    uint64_t each_bytes, bytes;
};
int ranks_share(struct ranks *ranks, uint64_t each_bytes, struct ranks_memory *memory);
void ranks_unshare(struct ranks_memory *memory);
void *ranks_memory_of(const struct ranks_memory *memory, uint32_t local_rank);

/* How the monotonic clock of a node lies to that of rank 0, by the fastest of many questions and
 * answers (as in NTP): its middle is when the answer was made, give or take half of it. */
struct ranks_clock {
    uint64_t at_ns;          /* here */
    int64_t ahead_ns;        /* this clock of that of rank 0 */
    uint64_t uncertainty_ns; /* it is that, give or take this */
};
/* All ranks call; for the lowest rank of each node. 0 or a negative errno. */
int ranks_compare_clocks(struct ranks *ranks, struct ranks_clock *clock);

#endif
