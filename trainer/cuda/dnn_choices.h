/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_choices: which engine and knobs won a tournament, by what it depends on, in a file. Only
 * numbers are kept: the plan is rebuilt for the graph at hand, so a file, whoever wrote it, can
 * make things slow, but not wrong. For trainer/cuda/dnn*.c alone. Needs nothing of CUDA.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_CHOICES_H
#define IOBENCH_TRAINER_CUDA_DNN_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

/* Of the engines' configurations, of what one comes down to. */
enum { DNN_CONFIGS_MAX = 64, DNN_KNOBS_MAX = 32 };

struct dnn_knob {
    int32_t type; /* not negative; cuDNN may not know it */
    int64_t value;
};
struct dnn_choice {
    int64_t engine;
    uint32_t knob_count;
    struct dnn_knob knobs[DNN_KNOBS_MAX];
};

struct dnn_choices;

/* Those of the file; none where it is not there, damaged, too large or of another version: that
 * only costs the tournament again. path may be NULL. NULL: out of memory. */
struct dnn_choices *dnn_choices_read(const char *path);
void dnn_choices_free(struct dnn_choices *choices);
bool dnn_choices_get(const struct dnn_choices *choices, const char *key, struct dnn_choice *choice,
                     uint32_t *candidates, double *milliseconds);
int dnn_choices_put(struct dnn_choices *choices, const char *key, const struct dnn_choice *choice,
                    uint32_t candidates, double milliseconds);
/* What others have added meanwhile stays. The file is whole at every moment. */
int dnn_choices_write(struct dnn_choices *choices, const char *path);

#endif
