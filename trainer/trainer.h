/* SPDX-License-Identifier: Apache-2.0
 *
 * trainer: what eats the batches. It knows no storage. One state, used by the main thread only.
 * It allocates the memory that rows are decoded into, because a device wants it pinned.
 */
#ifndef IOBENCH_TRAINER_TRAINER_H
#define IOBENCH_TRAINER_TRAINER_H

#include "base/plugin.h"

#include "ranks/ranks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trainer_config {
    uint32_t batch_size;
    size_t row_bytes; /* of one decoded image; 0 when decoding is off */
    uint64_t seed;
    struct ranks *ranks; /* that share the work; NULL: one alone */
    uint64_t silence_ns; /* a rank that is waited for longer has failed; 0: never */
};

struct trainer_batch {
    const void *rows;      /* count x row_bytes */
    const int32_t *labels; /* count */
    uint32_t count;        /* up to batch_size */
    uint64_t epoch, step;
    uint64_t waited_ns; /* for this batch, before it was given */
};

/* Where the time of one step went. Zero where a trainer has no such phase. */
struct trainer_times {
    uint64_t wait_ns;     /* for the batch; what the trainer does not know better is waited_ns */
    uint64_t compute_ns;  /* forward and backward, or the replayed step */
    uint64_t upload_ns;   /* not hidden behind compute */
    uint64_t copy_ns;     /* the upload, hidden or not */
    uint64_t exchange_ns; /* gradient all-reduce not hidden behind compute */
    uint64_t update_ns;
    uint64_t nominal_ns; /* that a replayed step should take; 0: it is a real one */
};

/* What a trainer takes beside the process' own memory; 0 where there is no device. */
struct trainer_memory {
    uint64_t device_bytes; /* of a device */
    uint64_t batch_bytes;  /* of that, where batches are uploaded to */
    uint64_t pinned_bytes; /* of the host, for the device to copy from */
};

struct trainer_ops {
    struct plugin plugin;
    bool replays; /* steps take the time they are said to take: fed from memory they give AU 100% */
    int (*open)(void *state, const void *settings, const struct trainer_config *config);
    void (*close)(void *state);
    /* Memory for rows; NULL ops: ordinary memory. */
    void *(*allocate)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    /* The batch's memory is the caller's again when this returns. A device may compute on: the
     * times are then those of an earlier step, or all 0. */
    int (*step)(void *state, const struct trainer_batch *batch, struct trainer_times *times);
    /* Waits for the oldest step whose times were not told. 1 and its times, or 0: all were. NULL:
     * no step is ever late. */
    int (*finish)(void *state, struct trainer_times *times);
    void (*memory)(void *state, struct trainer_memory *memory); /* NULL: all 0 */
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

/* As plugin_choose(); the name of a network alone means network:NAME. */
int trainer_choose(const char *text, struct plugin_choice *choice);
/* Do ranks wait for each other at each step? Then all must take as many. */
bool trainer_is_synchronous(const char *text);
int trainer_open(struct trainer *trainer, const struct plugin_choice *choice,
                 const struct trainer_config *config);
void trainer_close(struct trainer *trainer);
void *trainer_allocate(struct trainer *trainer, size_t bytes);
void trainer_release(struct trainer *trainer, void *memory);
int trainer_step(struct trainer *trainer, const struct trainer_batch *batch,
                 struct trainer_times *times);
int trainer_finish(struct trainer *trainer, struct trainer_times *times);
void trainer_memory(struct trainer *trainer, struct trainer_memory *memory);

#endif
