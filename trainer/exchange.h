/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange: sums the gradients of all ranks while the backward pass is still running. The gradient
 * arena is split into buckets; a bucket is sent as soon as it is final.
 * Of networks it knows where layers end; ranks/ranks.h handles membership and all other
 * communication. One thread per state.
 */
#ifndef IOBENCH_TRAINER_EXCHANGE_H
#define IOBENCH_TRAINER_EXCHANGE_H

#include "base/plugin.h"
#include "ranks/ranks.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- buckets: a gradient arena split into parts, each sent once final ----
 *
 * Parts are about equal, or end with layers: then one is sent as soon as the gradients of its last
 * layer are there, and the last one is small, as no backward pass is left to hide it. Parts begin
 * at multiples of 512 bytes, which suits devices and network adapters, so up to 127 floats of a
 * layer travel with the next one. Pure. */

enum { BUCKET_ALIGNMENT_FLOATS = 128, BUCKET_LAST_SHARE = 16 };

struct graph;

struct buckets {
    uint64_t floats;
    uint64_t *ends;          /* of each bucket; NULL: all are equal */
    uint32_t count, started; /* of this step */
};

static inline struct buckets buckets_of(uint64_t floats, uint32_t wanted)
{
    const uint64_t most = floats / BUCKET_ALIGNMENT_FLOATS;
    const uint32_t count = wanted < most ? wanted : (uint32_t)most;

    return (struct buckets){.floats = floats, .count = count > 0 ? count : 1};
}

/* Cut the gradients of a sealed graph at layers: at most one bucket a layer, the last of several at
 * most a sixteenth of all, or one layer. Returns 0 or -ENOMEM; free it. */
int buckets_by_layer(struct buckets *buckets, const struct graph *graph, uint32_t wanted);
void buckets_free(struct buckets *buckets);

/* Return the offset at which bucket i begins; i == count: the end. */
static inline uint64_t buckets_start(const struct buckets *buckets, uint32_t i)
{
    if (i == buckets->count)
        return buckets->floats;
    if (buckets->ends)
        return i ? buckets->ends[i - 1] : 0;
    const uint64_t start = buckets->floats / buckets->count * i;
    return start - start % BUCKET_ALIGNMENT_FLOATS;
}

static inline uint64_t buckets_floats(const struct buckets *buckets, uint32_t i)
{
    return buckets_start(buckets, i + 1) - buckets_start(buckets, i);
}

/* Return the next bucket if it is within [0, done). */
static inline bool buckets_next(struct buckets *buckets, uint64_t done, uint64_t *start,
                                uint64_t *count)
{
    if (buckets->started == buckets->count || buckets_start(buckets, buckets->started + 1) > done)
        return false;
    *start = buckets_start(buckets, buckets->started);
    *count = buckets_floats(buckets, buckets->started++);
    return true;
}

/* ---- exchanges ---- */

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
