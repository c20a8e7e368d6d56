/* SPDX-License-Identifier: Apache-2.0
 *
 * recipe: learning rate by step. Pure; any thread. The values are those used for ResNet-50 on
 * ImageNet: LARS as in the MLPerf Training closed division (reference convergence points, batch 408
 * to 4,096: 34 to 38 epochs to 75.9%), SGD as in Goyal et al. 2017 with cosine decay (Loshchilov
 * and Hutter 2017), batch 256, scaled with the batch.
 */
#ifndef IOBENCH_TRAINER_RECIPE_H
#define IOBENCH_TRAINER_RECIPE_H

#include "trainer/backend.h"
#include "trainer/graph.h"

enum recipe_decay { RECIPE_CONSTANT, RECIPE_COSINE, RECIPE_SQUARE };

struct recipe {
    enum backend_recipe kind;
    enum recipe_decay decay_shape; /* of the rate, after warm-up */
    double rate;                   /* peak */
    uint64_t steps, warmup_steps;  /* total, and those of linear warm-up */
    double momentum, weight_decay, eta, label_smoothing;
    double clip_norm;    /* of the gradients of all parameters; 0: any */
    bool zero_gammas;    /* blocks of residual networks start as identities: Goyal et al. 2017,
                            section 5.1, and MLPerf's reference model */
    bool decays_fc_bias; /* biases of fully connected layers decay like weights (LARS in NVIDIA's
                            MXNet submissions to MLPerf: set_wd_mult() of sgdwlars) */
};

/* Recipe for a global batch size. SGD's rate of a network without batch norm is 0.01, scaled with
 * the square root of smaller batches; that of Inception-v3 is an eighth of ResNet's. */
struct recipe recipe_choose(enum backend_recipe kind, const struct network *network,
                            uint64_t global_batch_size, uint64_t epochs, uint64_t steps_per_epoch);

/* Rate at step 0, 1, ...; positive for each step of the recipe, constant after the last. */
double recipe_rate(const struct recipe *recipe, uint64_t step);

#endif
