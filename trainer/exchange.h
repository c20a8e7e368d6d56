/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange: sums the gradients of all ranks while the backward pass is still running. The gradient
 * arena is split into buckets; a bucket is sent as soon as it is final.
 * Independent of networks; ranks/ranks.h handles membership and all other communication. One thread
 * per state.
 */
#ifndef IOBENCH_TRAINER_EXCHANGE_H
#define IOBENCH_TRAINER_EXCHANGE_H

#include "base/plugin.h"
#include "ranks/ranks.h"
#include "trainer/exchange.h"

#include <stdbool.h>
#include <stdint.h>

/* The type in which gradients travel, and are added up. */
enum exchange_wire { EXCHANGE_FP32, EXCHANGE_FP16 };

struct exchange_config {
    struct ranks *ranks; /* joined */
    float *gradients;
    bool on_device; /* the gradients are on this device, ready in the order of this stream */
    uint32_t device;
    void *stream;
    uint64_t layout;        /* struct backend_memory */
    struct buckets buckets; /* of all gradients; its memory is the caller's */
};

struct exchange_ops {
    struct plugin plugin;
    /* Sums on devices: ready() enqueues work on streams, so a replayed step includes it; everything
     * is complete in stream order once ready() returns for the last gradients. */
    bool on_stream;
    /* Or sums on devices after the host reports that the step is done. */
    bool on_device;
    /* Each rank sends to the next one. Else halves are summed inside a node first. */
    bool is_ring;
    /* Memory of the device in use that needs no copies to be summed, before open(). NULL: none is
     * better than any other; or nothing is returned, with a reason. */
    void *(*allocate)(uint64_t bytes);
    void (*release)(void *memory);
    /* Collective: called once by all ranks, when gradient memory is known. NULL: nothing to sum,
     * and the rest is NULL. */
    int (*open)(void *state, const void *settings, const struct exchange_config *config);
    /* Call after every open, failed or not, before gradient memory is freed. failed: the training
     * run failed. */
    void (*close)(void *state, bool failed);
    /* Gradients [0, done) of this step are final. NULL: all are final in finish(). */
    int (*ready)(void *state, uint64_t done);
    /* Wait until all of the step's sums are complete. */
    int (*finish)(void *state);
    /* NULL: always FP32. */
    enum exchange_wire (*wire)(const void *settings);
    /* What makes this exchange slower than the user expects, on any rank, in one sentence; "":
     * nothing. NULL: nothing ever does. */
    const char *(*notice)(const void *state);
};

extern const struct plugin *const exchange_registry[];

struct exchange {
    struct plugin_choice choice;
    const struct exchange_ops *ops;
    void *state;
};

/* text: NAME[:OPTIONS], or "auto": mpi for several ranks, none for one. Opens nothing. Returns 0 or
 * a negative errno. */
int exchange_choose(struct exchange *exchange, const char *text, const struct ranks *ranks);
enum exchange_wire exchange_wire(const struct exchange *exchange);
const char *exchange_wire_name(const struct exchange *exchange);
uint32_t exchange_number_bytes(const struct exchange *exchange);
/* Bytes that this rank sends to other nodes in each step: its share of its node's. */
uint64_t exchange_sent_bytes(const struct exchange *exchange, const struct ranks *ranks,
                             double parameters);
/* Open the chosen one. Returns 0 or a negative errno; call exchange_close() in either case. */
int exchange_open(struct exchange *exchange, const struct exchange_config *config);
void exchange_close(struct exchange *exchange, bool failed);
int exchange_ready(void *exchange, uint64_t done); /* a backend_gradients_ready */
int exchange_finish(struct exchange *exchange);
const char *exchange_notice(const struct exchange *exchange);

#endif
