/* SPDX-License-Identifier: Apache-2.0
 *
 * recipe: how fast to learn at which step. Pure; any thread. The figures are those that ResNet-50
 * on ImageNet is trained with: LARS as in the MLPerf Training closed division (reference
 * convergence points, batch 408 to 4,096: 34 to 38 epochs to 75.9%), SGD as in Goyal et al. 2017
 * with cosine decay (Loshchilov and Hutter 2017), batch 256, scaled with the batch.
 */
#ifndef IOBENCH_TRAINER_RECIPE_H
#define IOBENCH_TRAINER_RECIPE_H

#include "trainer/backend.h"

enum recipe_decay { RECIPE_CONSTANT, RECIPE_COSINE, RECIPE_SQUARE };

struct recipe {
    enum backend_recipe kind;
    enum recipe_decay decay_shape; /* of the rate, after the warm-up */
    double rate;                   /* at its highest */
    uint64_t steps, warmup_steps;  /* in all, and of them with a rate that rises linearly */
    double momentum, weight_decay, eta, label_smoothing;
};

/* What fits this batch of all ranks together. plain_batch: of a network without batch norm (see
 * struct network), else 0. Its rate for SGD is 0.01, and falls with the root of smaller batches. */
struct recipe recipe_choose(enum backend_recipe kind, uint32_t plain_batch,
                            uint64_t global_batch_size, uint64_t epochs, uint64_t steps_per_epoch);

/* Of step 0, 1, ...; above 0 for each of the recipe's steps, and that of the last one behind them.
 */
double recipe_rate(const struct recipe *recipe, uint64_t step);

#endif
