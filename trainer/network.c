/* SPDX-License-Identifier: Apache-2.0
 * The network trainer: trains a network for real, at a constant rate. A network's name alone
 * selects it, too: trainer_choose(). */
#include "trainer/plugins.h"

#include "base/fail.h"
#include "base/option.h"
#include "trainer/training.h"

#include <errno.h>
#include <stddef.h>

struct network_arguments {
    char *name, *backend;
    uint64_t classes, threads, accumulate;
    double rate;
};

static const struct option_spec network_options[] = {
    {"name", 0, OPTION_TEXT, offsetof(struct network_arguments, name), .fallback = "resnet50",
     .metavar = "NAME", .summary = "which network; 'iobench list networks' names them"},
    {"backend", 0, OPTION_TEXT, offsetof(struct network_arguments, backend), .fallback = "auto",
     .metavar = "NAME", .summary = "what computes it: cpu (oneDNN) or reference"},
    {"classes", 0, OPTION_COUNT, offsetof(struct network_arguments, classes), .fallback = "auto",
     .zero = "auto", .maximum = 1 << 24, .summary = "of the data set; auto is the network's own"},
    {"threads", 0, OPTION_COUNT, offsetof(struct network_arguments, threads), .fallback = "auto",
     .zero = "auto", .maximum = 4096, .summary = "that compute; auto is one a CPU"},
    {"rate", 0, OPTION_REAL, offsetof(struct network_arguments, rate), .fallback = "0.01",
     .minimum = 0, .maximum = 1e6, .summary = "learning rate, the same for all steps"},
    {"accumulate", 0, OPTION_COUNT, offsetof(struct network_arguments, accumulate), .fallback = "1",
     .minimum = 1, .maximum = 1 << 20, .summary = "batches whose gradients share an update"},
    {0},
};

static int network_open(void *state, const void *settings_given,
                        const struct trainer_config *config)
{
    const struct network_arguments *settings = settings_given;
    const struct network *network = network_find(settings->name);
    uint32_t side = training_side(config->row_bytes);

    if (!network)
        return -EINVAL;
    if (side == 0)
        return fail(EINVAL,
                    "trainer %s: rows of %zu bytes are not square images: use --decode jpeg",
                    network->name, config->row_bytes);
    const struct training_config where = {
        .network = network,
        .backend = settings->backend,
        .side = side,
        .classes = settings->classes ? (uint32_t)settings->classes : network->classes,
        .batch_size = config->batch_size,
        .accumulate = (uint32_t)settings->accumulate,
        .seed = config->seed,
        .threads = settings->threads ? (uint32_t)settings->threads
                   : config->ranks   ? config->ranks->place.cpus
                                     : 0,
        .learns = true,
        .late = true,
        .ranks = config->ranks,
        .rank_timeout_ns = config->rank_timeout_ns,
        .recipe = {.decay_shape = RECIPE_CONSTANT,
                   .rate = settings->rate,
                   .momentum = 0.9,
                   .weight_decay = 1e-4},
        .tick = config->tick,
    };
    return training_open(state, &where);
}

static int network_prepare(void *state, uint32_t count)
{
    return training_prepare(state, count, true);
}

static int network_step(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    struct backend_loss loss;

    return training_step(state, batch, times, &loss);
}

static int network_finish(void *state, struct trainer_times *times)
{
    struct backend_loss loss;

    return training_finish(state, times, &loss);
}

const struct trainer_ops trainer_network = {
    .plugin = {.name = "network",
               .summary = "trains a network for real; resnet50 is short for network:resnet50",
               .options = network_options,
               .settings_size = sizeof(struct network_arguments),
               .state_size = sizeof(struct training)},
    .open = network_open,
    .close = training_close,
    .allocate = training_allocate,
    .release = training_release,
    .prepare = network_prepare,
    .step = network_step,
    .finish = network_finish,
    .memory = training_memory,
    .notice = training_notice,
};
