/* SPDX-License-Identifier: Apache-2.0
 * trainer: consumes batches; independent of storage. One state, main thread only. Allocates the
 * memory that rows are decoded into, because a device needs it pinned. */
#ifndef IOBENCH_TRAINER_TRAINER_H
#define IOBENCH_TRAINER_TRAINER_H

#include "base/plugin.h"
#include "base/stop.h"

#include "ranks/ranks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trainer_config {
    uint32_t batch_size;
    size_t row_bytes; /* of one decoded image; 0 without decoding */
    uint64_t seed;
    struct ranks *ranks;      /* that share the work; NULL: a single rank */
    uint64_t rank_timeout_ns; /* abort if a rank is unresponsive this long; 0: never */
    /* Open loop, for trainers that replay: this many of them take batches in turns, each due at a
     * fixed time whether or not it is ready; 0: closed loop, each step follows the one before. */
    double open_load;
    /* Asked while the trainer is made, which may take minutes; nonzero ends that, as its result.
     * Outlives the trainer. */
    struct tick tick;
};

/* A batch, from the data path through a trainer and its backend to the kernels. */
struct trainer_batch {
    const void *rows;      /* count x row_bytes; of a network: height x width x 3, RGB */
    const int32_t *labels; /* count; -1: no label, no gradient */
    uint32_t count;        /* up to batch_size */
    uint64_t epoch, step;
    bool last;          /* of the epoch */
    uint64_t waited_ns; /* time spent waiting for this batch before it was passed */
    uint64_t ready_ns;  /* when it was complete */
    /* A step that waits or computes on the host asks at least ten times a second, a backend between
     * operations; nonzero ends the step, as its result. */
    struct tick tick;

    /* Set by training.h: the update waits for more batches. Gradients will be those of the mean
     * loss over the labelled rows of them all. Needs backend_config.accumulates. */
    bool continues;
    /* Set by backend.h for backend_ops.run(). */
    bool learns; /* false: forward only, by running statistics */
    double label_smoothing;
    int (*ready)(void *context, uint64_t done); /* see backend_gradients_ready */
    void *context;
    bool adds;         /* ops.accumulates: to the gradients of the update's earlier batches */
    uint64_t labelled; /* rows, of those and this batch */
    float *logits;     /* inference only: count x classes, or NULL */
};

/* Breakdown of one step's time; 0 for phases a trainer does not have. */
struct trainer_times {
    uint64_t wait_ns;     /* for the batch; waited_ns unless the trainer knows better */
    uint64_t compute_ns;  /* forward and backward, or the replayed step */
    uint64_t upload_ns;   /* upload not hidden by compute */
    uint64_t copy_ns;     /* the upload, hidden or not */
    uint64_t exchange_ns; /* gradient all-reduce not hidden by compute */
    uint64_t update_ns;
    uint64_t nominal_ns; /* nominal time of a replayed step; 0: a real one */
    bool is_due;         /* open loop, after its warm-up: late_ns is known */
    uint64_t late_ns;    /* from when the batch was due until it was ready; 0: in time */
};

/* Memory besides the process's own; 0 without a device. */
struct trainer_memory {
    uint64_t device_bytes; /* of a device */
    uint64_t batch_bytes;  /* the part that batches are uploaded to */
    uint64_t pinned_bytes; /* pinned host memory, for the device to copy from */
};

struct trainer_ops {
    struct plugin plugin;
    bool replays; /* steps take their nominal time: fed from memory, AU is 100% */
    /* Returns 0, or -EINVAL with a reason: these settings ask for nothing that exists. Called when
     * they are chosen, before any work. NULL: all are possible. */
    int (*check)(const void *settings);
    /* NULL: steps take no time, and the rest is NULL. */
    int (*open)(void *state, const void *settings, const struct trainer_config *config);
    void (*close)(void *state);
    /* Memory for rows; ops NULL: ordinary memory. */
    void *(*allocate)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    /* Batches of `count` samples will come: make what they need, off the clock. NULL: nothing. */
    int (*prepare)(void *state, uint32_t count);
    /* The batch belongs to the caller again on return. A device may still be computing: times are
     * then those of an earlier step, or all 0. */
    int (*step)(void *state, const struct trainer_batch *batch, struct trainer_times *times);
    /* Wait for the oldest step whose times are not yet reported. Returns 1 and its times, or 0 if
     * none is left, with what remained of the last one's. NULL: steps are never late. */
    int (*finish)(void *state, struct trainer_times *times);
    void (*memory)(void *state, struct trainer_memory *memory); /* NULL: all 0 */
    /* What made steps slower than the user expects, in one sentence; "": nothing. NULL: "". */
    const char *(*notice)(void *state);
};

extern const struct plugin *const trainer_registry[];

static inline const struct trainer_ops *trainer_of(const struct plugin *plugin)
{
    return (const struct trainer_ops *)(const void *)plugin; /* plugin is the first member */
}

struct trainer {
    const struct trainer_ops *ops;
    void *state;
};

/* Like plugin_choose(); the bare name of a network means network:NAME. */
int trainer_choose(const char *text, struct plugin_choice *choice);
/* Do ranks synchronise at each step? Then all must run the same number of steps. */
bool trainer_is_synchronous(const char *text);
int trainer_open(struct trainer *trainer, const struct plugin_choice *choice,
                 const struct trainer_config *config);
void trainer_close(struct trainer *trainer);
void *trainer_allocate(struct trainer *trainer, size_t bytes);
void trainer_release(struct trainer *trainer, void *memory);
int trainer_prepare(struct trainer *trainer, uint32_t count);
int trainer_step(struct trainer *trainer, const struct trainer_batch *batch,
                 struct trainer_times *times);
int trainer_finish(struct trainer *trainer, struct trainer_times *times);
void trainer_memory(struct trainer *trainer, struct trainer_memory *memory);
const char *trainer_notice(const struct trainer *trainer);

#endif
