/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks: the processes of one job: their ranks and nodes, and all communication except gradients.
 * Independent of the benchmark. A single process is a job of one rank, at no cost.
 *
 * All ranks make the same calls in the same order. Whatever may fail on one rank ends in a
 * collective check, ranks_meet(): all ranks learn of the failure, with host and reason, and fail
 * alike, so none waits for a rank that has taken another path. A stuck rank is abandoned after
 * seconds, and the launcher ends the job.
 *
 * A rank is alive while its main thread waits in this module, asks ranks_called_off(), or computes
 * with a heart beating (ranks_heart_start()); stuck if it is stopped, or blocks elsewhere.
 *
 * One state, main thread only.
 */
#ifndef IOBENCH_RANKS_RANKS_H
#define IOBENCH_RANKS_RANKS_H

#include "base/plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANKS_HOST_BYTES = 64, RANKS_LIBRARY_BYTES = 200 };

struct ranks_place {
    uint32_t rank, ranks;
    uint32_t local_rank, local_ranks; /* on this node */
    uint32_t node, nodes;             /* nodes are numbered in order of their lowest ranks */
    uint32_t cpus;                    /* this rank's share of the CPUs it may use, at least 1 */
    char host[RANKS_HOST_BYTES];
};

/* A member runs one transfer at a time and is polled until it is done. */
struct ranks_ops {
    struct plugin plugin;
    int (*join)(void *state, struct ranks_place *place);
    /* Also called after a failed join. orderly: nothing is pending; otherwise the launcher is made
     * to end all ranks. NULL, as those below: there is no other rank. */
    void (*leave)(void *state, bool orderly);
    /* Gather `bytes` from each rank, in rank order, into `all` on every rank. */
    int (*gather)(void *state, const void *mine, uint64_t bytes, void *all);
    /* Send a message, or receive it. */
    int (*move)(void *state, uint32_t other, void *message, uint64_t bytes, bool sends);
    int (*test)(void *state, bool *done); /* poll the last transfer started */
    /* Send a message without waiting for its receipt; receive one, if any, and its sender. */
    int (*call)(void *state, uint32_t to, uint64_t word);
    int (*hear)(void *state, uint32_t *from, uint64_t *word, bool *heard);
    /* Whether another thread may call() meanwhile. NULL: it may not. */
    bool (*is_shared)(const void *state);
    /* See ranks_library(); NULL: no library. Works before join. */
    void (*library)(char *text, size_t bytes);
};

extern const struct plugin *const ranks_registry[];
extern const struct module module_mpi; /* iobench-mpi.so: ranks, a transport and an exchange */

/* A rank, as known to all. */
struct ranks_peer {
    char host[RANKS_HOST_BYTES];
    uint32_t node;
    bool leads;        /* the lowest rank of its node */
    uint64_t gathers;  /* collectives it has reached; on rank 0 only */
    uint64_t heard_ns; /* time of its last heartbeat */
};

struct ranks {
    const struct ranks_ops *ops;
    void *state;
    struct ranks_place place;
    struct ranks_peer *peers; /* all ranks; NULL: ranks_alone() */
    /* Called now and then, on rank 0 only, with the ranks waited for or what they wait for; may be
     * NULL. */
    void (*waiting)(void *context, const char *text);
    void *waiting_context;
    /* Give up on an awaited rank that is unresponsive this long; 0: never. May change between
     * calls. */
    uint64_t rank_timeout_ns;
    uint64_t sign_ns;                       /* time of this rank's last heartbeat */
    uint64_t meetings, gathers;             /* completed */
    uint64_t watch_start_ns, watch_tell_ns; /* of the last ranks_watch(), and when it tells next */
    uint64_t call_off_ns;                   /* when a rank's failure became known; 0: none */
    uint64_t missed_ns;        /* when a rank was found not to come after that; 0: none */
    bool is_culprit;           /* on this rank */
    bool is_broken;            /* a transfer failed or was abandoned: no orderly end is possible */
    bool is_unheard;           /* a collective failed or was abandoned: only this rank knows why */
    bool is_lost;              /* joined, but alone, although the launcher started several */
    struct ranks_heart *heart; /* NULL: it does not beat */
};

/* Was this process started by a launcher, so that ranks_join() will look for others? */
bool ranks_are_launched(void);

/* Let the Open MPI that this process starts run as root, and with more ranks than cores, unless the
 * environment says otherwise. Main thread. */
void ranks_permit(void);

/* Make this process no rank, whatever its launcher says: it was forked by a rank before that one
 * joined. */
void ranks_stay_alone(void);

/* A single process. Needs no ranks_leave(). */
struct ranks ranks_alone(void);

/* Join the processes started together by mpirun or srun, if any. Returns 0 or a negative errno:
 * -ENODEV if the launcher started several that cannot find each other. Call ranks_leave() in either
 * case. */
int ranks_join(struct ranks *ranks);
/* Leave the job. Does not return if another rank is stuck. */
void ranks_leave(struct ranks *ranks, bool failed);

/* Return the number of processes the launcher started together; 1 without a launcher. *says: the
 * environment variable that holds it, or NULL. */
int ranks_started(const char **says);

/* Is this rank 0, the one that prints, according to the launcher? Works before joining. */
bool ranks_speaks(void);
/* Is this the first of its host's processes, according to the launcher? Returns true if the
 * launcher does not say: any process may be the first. Works before joining. */
bool ranks_leads_host(void);

/* Name the library for ranks that this program was built with, "Open MPI v4.1.4", and what it uses,
 * as far as known, after "; ". text: RANKS_LIBRARY_BYTES, "" if there is none. Works before
 * joining, too, but then it uses nothing yet. Returns text. */
const char *ranks_library(char *text);

/* Collective: 0 if every rank passed 0; otherwise every rank gets a negative code with a reason
 * that names rank and host of the first failure, unless all failed alike. waited_ns: time spent
 * waiting for others; may be NULL. */
int ranks_meet(struct ranks *ranks, int code, uint64_t *waited_ns);
/* Abort: this rank failed and will report it at the next collective check, so the others need not
 * go on until then. */
void ranks_call_off(struct ranks *ranks);
/* Did a rank abort? Call it in loops: it also sends heartbeats. Costs about 1 us. */
bool ranks_called_off(struct ranks *ranks);
/* Start a thread that sends heartbeats while the calling one, the main thread, uses its CPU
 * without asking: a long step is not a stuck rank. Nothing without peers, or where MPI admits no
 * second thread. Started again, it beats until it is stopped as often. Returns 0 or a negative
 * errno; stop it in either case. */
int ranks_heart_start(struct ranks *ranks);
void ranks_heart_stop(struct ranks *ranks);
/* Let others have the CPU while waiting for another rank: at first it yields, as ranks arrive
 * together; after a millisecond it naps, a 64th of the wait so far, 50 to 500 us. */
void ranks_pause(uint64_t waited_ns);

/* For waits outside this module, which began at start_ns: call it now and then; rank 0 reports them
 * after 5 s, 10, 20, .... Returns 0;
 * -ECANCELED if another rank failed; or -ETIMEDOUT if rank 0, or on rank 0 any rank, has been
 * unresponsive for rank_timeout_ns. */
int ranks_watch(struct ranks *ranks, uint64_t start_ns);

/* Collective: gathers `bytes` from each rank into `all` (ranks x bytes) on every rank. */
int ranks_gather(struct ranks *ranks, const void *mine, uint64_t bytes, void *all);
/* Collective: ranks_meet() of *code, then the same into an array for the caller to free(). NULL
 * unless *code is 0 after it. */
void *ranks_collect(struct ranks *ranks, int *code, const void *mine, uint64_t bytes);
/* Collective: *other is the first rank whose number is not that of rank 0; 0 if all are the same.
 */
int ranks_compare(struct ranks *ranks, uint64_t number, uint32_t *other);
/* Collective: all ranks get what rank 0 has. */
int ranks_broadcast(struct ranks *ranks, void *data, uint64_t bytes);
/* Collective: sums over all ranks, with the same bits on every rank. count: at most 8. */
int ranks_sum(struct ranks *ranks, double *values, uint32_t count);
/* Send a message to a rank, or receive it from there. */
int ranks_move(struct ranks *ranks, uint32_t other, void *message, uint64_t bytes, bool sends);

/* Collective, for anything created once and then found by all ranks, on shared storage or on
 * each node: rank 0 acts first, then the first rank of every other node, then the rest. All fail
 * alike. */
int ranks_in_turn(struct ranks *ranks, int (*act)(void *context), void *context);

/* Run work that may block, as on a slow disk, on a separate thread, while this thread sends
 * heartbeats and other ranks wait in the next call. Rank 0 reports `what` it does after 5 s, 10,
 * 20, .... Returns act's code, with its reason. */
int ranks_do(struct ranks *ranks, const char *what, int (*act)(void *context), void *context);

/* Collective: memory shared by the ranks of a node: each_bytes per rank, in order of local ranks,
 * initially zero. All fail alike; call unshare in either case. */
struct ranks_memory {
    void *start;
    uint64_t each_bytes, bytes;
};
int ranks_share(struct ranks *ranks, uint64_t each_bytes, struct ranks_memory *memory);
void ranks_unshare(struct ranks_memory *memory);
void *ranks_memory_of(const struct ranks_memory *memory, uint32_t local_rank);

/* Offset of a node's monotonic clock from that of rank 0, by the fastest of many queries (as in
 * NTP): the answer was made in the middle, within half the round trip. */
struct ranks_clock {
    uint64_t at_ns;          /* local */
    int64_t ahead_ns;        /* local clock minus rank 0's */
    uint64_t uncertainty_ns; /* bound of the error */
};
/* Collective; measures for the lowest rank of each node. Returns 0 or a negative errno. */
int ranks_compare_clocks(struct ranks *ranks, struct ranks_clock *clock);

#endif
