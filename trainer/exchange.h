/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange: adds up the gradients of all ranks while the backward pass still runs. The arena of
 * gradients is cut into buckets, ranges of about equal size; a bucket is sent as soon as it is
 * final. It knows no network.
 *
 * Which rank this process is, and of how many, is the first thing an exchange tells: it is asked
 * once, before anything is opened. One state, one thread.
 */
#ifndef IOBENCH_TRAINER_EXCHANGE_H
#define IOBENCH_TRAINER_EXCHANGE_H

#include "base/plugin.h"

#include <stdbool.h>
#include <stdint.h>

struct exchange_place {
    uint32_t rank, ranks;
    uint32_t local_rank, local_ranks; /* on this host */
};

struct exchange_site {
    float *gradients;
    bool on_device; /* the gradients lie on this device, ready in the order of this stream */
    uint32_t device;
    void *stream;
    uint64_t floats;
    uint64_t layout; /* struct backend_memory */
    uint32_t buckets;
    uint64_t timeout_ns; /* a rank that is silent for longer ends the job; 0: never */
};

struct exchange_ops {
    struct plugin plugin;
    /* It adds up on devices: ready() puts work on streams, where a replayed step takes it along;
     * all of it is done in the stream's order when the last gradients' ready() returns. */
    bool on_stream;
    /* Join the other ranks. Waits for them. */
    int (*join)(void *state, struct exchange_place *place);
    /* Everybody knows its gradients: called once, by all ranks. */
    int (*open)(void *state, const struct exchange_site *site);
    void (*leave)(void *state, bool failed); /* the gradients go away; NULL: no matter */
    void (*close)(void *state, bool failed); /* of the whole; also after a failed join */
    /* Gradients [0, done) of this step are final. */
    int (*ready)(void *state, uint64_t done);
    /* Wait until all of the step's sums are there. */
    int (*finish)(void *state);
    /* Sums of a few numbers over all ranks; everybody gets them. */
    int (*sum)(void *state, double *values, uint32_t count);
    /* One number of each rank; everybody gets all of them. */
    int (*gather)(void *state, double value, double *values);
};

extern const struct plugin *const exchange_registry[];

struct exchange {
    const struct exchange_ops *ops;
    void *state;
    struct exchange_place place;
};

/* Choose ("auto": mpi when this process was started by an MPI launcher, else none) and join.
 * 0 or a negative errno; call exchange_close() in either case. */
int exchange_join(struct exchange *exchange, const char *text);
int exchange_open(struct exchange *exchange, const struct exchange_site *site);
/* Before the gradients go away: nothing but sum, gather and close is called afterwards. */
void exchange_leave(struct exchange *exchange, bool failed);
/* failed: this rank cannot go on; the others are told. */
void exchange_close(struct exchange *exchange, bool failed);
int exchange_ready(struct exchange *exchange, uint64_t done);
int exchange_finish(struct exchange *exchange);
int exchange_sum(struct exchange *exchange, double *values, uint32_t count);
int exchange_gather(struct exchange *exchange, double value, double *values);

#endif
