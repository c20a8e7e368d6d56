/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange: adds up the gradients of all ranks while the backward pass still runs. The arena of
 * gradients is cut into buckets, ranges of about equal size; a bucket is sent as soon as it is
 * final. It knows no network. Who the ranks are, and what else they say to each other, is
 * ranks/ranks.h. One state, one thread.
 */
#ifndef IOBENCH_TRAINER_EXCHANGE_H
#define IOBENCH_TRAINER_EXCHANGE_H

#include "base/plugin.h"
#include "ranks/ranks.h"

#include <stdbool.h>
#include <stdint.h>

struct exchange_config {
    struct ranks *ranks; /* joined */
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
    /* Or the host tells it when the step is done, and it adds up on devices. */
    bool on_device;
    /* Everybody knows its gradients: called once, by all ranks. */
    int (*open)(void *state, const void *settings, const struct exchange_config *config);
    /* After every open, failed ones too, before the gradients go away. failed: the course did. */
    void (*close)(void *state, bool failed);
    /* Gradients [0, done) of this step are final. */
    int (*ready)(void *state, uint64_t done);
    /* Wait until all of the step's sums are there. */
    int (*finish)(void *state);
};

extern const struct plugin *const exchange_registry[];

struct exchange {
    struct plugin_choice choice;
    const struct exchange_ops *ops;
    void *state;
};

/* text: NAME[:options], or "auto": mpi for several ranks, none for one. Opens nothing yet. 0 or a
 * negative errno. */
int exchange_choose(struct exchange *exchange, const char *text, const struct ranks *ranks);
/* The one that was chosen. 0 or a negative errno; call exchange_close() in either case. */
int exchange_open(struct exchange *exchange, const struct exchange_config *config);
void exchange_close(struct exchange *exchange, bool failed);
int exchange_ready(struct exchange *exchange, uint64_t done);
int exchange_finish(struct exchange *exchange);

#endif
