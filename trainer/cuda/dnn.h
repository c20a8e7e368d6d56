/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn: computes convolutions with cuDNN. A plan is made once for a shape: the engines that support
 * it are timed on the device, and the fastest whose results are right is kept, on disk too. One
 * thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_H
#define IOBENCH_TRAINER_CUDA_DNN_H

#include "trainer/cuda/dnn_trial.h"

#include <jansson.h>

struct dnn;

struct dnn_config {
    const struct runtime *runtime; /* with a stream; NULL: no device, see `described` */
    uint32_t described;            /* 80 or 90: plan for an absent A100 or H200, */
    const char *described_part;    /* or for that whose name has this part; NULL: any */
    bool deterministic;
    uint32_t tournament; /* time at most this many engines; 1: take the first, untimed */
    const char *plans;   /* file of chosen plans; NULL: none */
};

int dnn_open(struct dnn **dnn, const struct dnn_config *config);
void dnn_close(struct dnn *dnn);
/* "cuDNN 9.19.0". */
void dnn_name_library(char *text, size_t bytes);

/* A plan as callers see it; dnn.c knows the rest. */
struct dnn_plan {
    uint64_t workspace_bytes;
    int64_t engine;      /* its number in cuDNN */
    uint32_t candidates; /* engines that support the shape */
    double milliseconds; /* of a run, queued behind others; 0: not timed */
};

/* Return the best plan for a shape, always the same; dnn owns it. NULL with a reason: *code is
 * -ENOTSUP if no engine supports the shape, else an error. */
const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code);
/* Describe the first engine since the last call that was not used although it is the fastest: it
 * computes something else, or does not run. Returns false if there is none. */
bool dnn_take_wrong(struct dnn *dnn, char wrong[DNN_WRONG_BYTES]);

/* Start it on the runtime's stream. */
int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors);
/* Write newly chosen plans to the file. */
int dnn_keep(struct dnn *dnn);

/* ---- dnn_choices.c, for dnn.c ----
 *
 * A file of the fastest engine and its knobs for each shape and device. It holds only numbers, from
 * which plans are remade, so a wrong file can cost speed, but not correctness. Needs no CUDA. */

enum { DNN_KNOBS_MAX = 32 };

struct dnn_knob {
    int32_t type; /* not negative; may be unknown to cuDNN */
    int64_t value;
};
struct dnn_choice {
    int64_t engine;
    uint32_t knob_count;
    struct dnn_knob knobs[DNN_KNOBS_MAX];
};

/* Read the rows of the file; a missing, damaged, too large or older file has no rows, and engines
 * are timed again. path may be NULL. NULL: out of memory. */
json_t *dnn_choices_read(const char *path);
bool dnn_choices_get(const json_t *choices, const char *key, struct dnn_choice *choice,
                     uint32_t *candidates, double *milliseconds);
int dnn_choices_put(json_t *choices, const char *key, const struct dnn_choice *choice,
                    uint32_t candidates, double milliseconds);
/* Forget a row that turned out to be wrong, also in the file, once that is written. */
int dnn_choices_drop(json_t *choices, const char *key);
/* Replace the file atomically, keeping rows that other processes added meanwhile. */
int dnn_choices_write(json_t *choices, const char *path);

#endif
