/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_choices: a file of the fastest engine and its knobs for each shape and device. It holds only
 * numbers, from which plans are remade, so a wrong file can cost speed, but not correctness. For
 * trainer/cuda/dnn*.c only. Needs no CUDA.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_CHOICES_H
#define IOBENCH_TRAINER_CUDA_DNN_CHOICES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Most configurations per shape, and most knobs of one. */
enum { DNN_CONFIGS_MAX = 64, DNN_KNOBS_MAX = 32 };

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
