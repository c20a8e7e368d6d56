/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/recipe.h"

#include <math.h>
#include <stddef.h>

/* LARS rate, weight decay and warm-up for a global batch size. */
struct lars_point {
    double batch_size, rate, weight_decay, warmup_epochs;
};

static const struct lars_point lars_points[] = {
    {408, 3.0, 5e-5, 2},  {816, 5.3, 5e-5, 2},   {1024, 6.0, 2.5e-5, 2}, {1632, 7.5, 5e-5, 2},
    {2048, 9.0, 5e-5, 3}, {3200, 11.0, 5e-5, 2}, {4096, 13.0, 2e-4, 3},
};

enum { LARS_POINTS = sizeof lars_points / sizeof *lars_points };

struct recipe recipe_choose(enum backend_recipe kind, const struct network *network,
                            uint64_t global_batch_size, uint64_t epochs, uint64_t steps_per_epoch)
{
    const double batch_size = (double)global_batch_size, most = 5;
    struct recipe recipe = {.kind = kind,
                            .steps = epochs * steps_per_epoch,
                            .label_smoothing = 0.1,
                            .zero_gammas = true};
    double warmup_epochs = fmin(most, (double)epochs / 10);

    if (kind == BACKEND_LARS) {
        /* The rate is interpolated linearly between the points, through 0 before the first and
         * extrapolated after the last; the rest comes from the nearest point below. */
        size_t i = 0;
        while (i + 2 < LARS_POINTS && batch_size >= lars_points[i + 1].batch_size)
            i++;
        const struct lars_point *low = &lars_points[i], *high = &lars_points[i + 1];
        struct lars_point point = batch_size >= high->batch_size ? *high : *low;
        point.rate = batch_size < low->batch_size
                         ? low->rate * (batch_size / low->batch_size)
                         : low->rate + (high->rate - low->rate) * (batch_size - low->batch_size) /
                                           (high->batch_size - low->batch_size);
        recipe.decay_shape = RECIPE_SQUARE;
        recipe.rate = point.rate;
        recipe.momentum = 0.9;
        recipe.weight_decay = point.weight_decay;
        recipe.eta = 0.001;
        recipe.decays_fc_bias = true;
        warmup_epochs = fmin(point.warmup_epochs, (double)epochs / 2);
    } else {
        recipe.decay_shape = RECIPE_COSINE;
        recipe.rate = network->plain_batch ? 0.01 * sqrt(fmin(1, batch_size / network->plain_batch))
                                           : 0.256 * batch_size / 256;
        if (network->rate_share > 0)
            recipe.rate *= network->rate_share;
        recipe.momentum = 0.875;
        recipe.weight_decay = 1.0 / 32768;
    }
    recipe.warmup_steps = (uint64_t)llround(warmup_epochs * (double)steps_per_epoch);
    return recipe;
}

double recipe_rate(const struct recipe *recipe, uint64_t step)
{
    if (step < recipe->warmup_steps)
        return recipe->rate * (double)(step + 1) / (double)recipe->warmup_steps;
    if (recipe->decay_shape == RECIPE_CONSTANT || recipe->steps <= recipe->warmup_steps)
        return recipe->rate;
    if (step >= recipe->steps)
        step = recipe->steps - 1;
    double done = (double)(step - recipe->warmup_steps) /
                  (double)(recipe->steps - recipe->warmup_steps); /* below 1 */
    return recipe->decay_shape == RECIPE_COSINE ? recipe->rate * (1 + cos(M_PI * done)) / 2
                                                : recipe->rate * (1 - done) * (1 - done);
}
