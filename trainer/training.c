/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/training.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/gradients.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/random.h"
#include "base/thread.h"
#include "trainer/plugins.h"
#include "trainer/weights.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *training_precision(const struct training *training)
{
    return training->config.ranges ? "int8" : backend_precision(&training->choice);
}

/* Made a part at a time, so that the threads end soon when asked to. */
enum { FIRST_WEIGHTS_PARTS = 32 };

struct first_weights {
    const struct training *training;
    uint64_t threads;
    float *parameters;
    struct flag stopped;
};

static int initialise(void *context, struct workers *workers, uint64_t number)
{
    struct first_weights *weights = context;
    const uint64_t parts = weights->threads * FIRST_WEIGHTS_PARTS;

    (void)workers;
    for (uint64_t i = 0; i < FIRST_WEIGHTS_PARTS && !flag_get(&weights->stopped); i++)
        graph_initialise_part(weights->training->graph, weights->training->config.seed,
                              number * FIRST_WEIGHTS_PARTS + i, parts, weights->parameters);
    return 0;
}

static void stop_initialising(void *context)
{
    flag_set(&((struct first_weights *)context)->stopped);
}

static int initialising_tick(void *context)
{
    return tick_ask(((struct first_weights *)context)->training->config.tick);
}

static uint32_t rank_count(const struct training_config *config)
{
    return config->ranks ? config->ranks->place.ranks : 1;
}

static bool learns_together(const struct training_config *config)
{
    return rank_count(config) > 1 && config->learns;
}

static uint32_t value_bytes(const struct training *training)
{
    const char *precision = training_precision(training);

    return strcmp(precision, "bf16") == 0 || strcmp(precision, "fp16") == 0 ? 2 : 4;
}

uint64_t training_activation_bytes(const struct training *training)
{
    return graph_cost(training->graph).activation_bytes / sizeof(float) * value_bytes(training);
}

static int check_memory(const struct training *training)
{
    const struct training_config *config = &training->config;
    const uint64_t sums_bytes =
        config->accumulate > 1 ? training->graph->parameter_floats * sizeof(float) : 0;
    const uint64_t need_bytes =
        sums_bytes + backend_least_bytes(training->graph, config->learns, config->batch_size,
                                         value_bytes(training));
    const uint64_t available_bytes =
        memory_available_bytes() / (config->ranks ? config->ranks->place.local_ranks : 1);
    char limit[32], need[32];

    if (backend_ops_of(training->choice.plugin)->on_device)
        return 0;
    bytes_text(need_bytes, need, sizeof need);
    if (config->memory_bytes && memory_resident_bytes() + need_bytes > config->memory_bytes)
        return fail(
            ENOMEM,
            "--memory-limit %s: %s takes %s with batches of %u: allow more, or give a smaller "
            "--batch-size",
            bytes_text(config->memory_bytes, limit, sizeof limit), config->network->name, need,
            config->batch_size);
    if (need_bytes > available_bytes)
        return fail(ENOMEM,
                    "%s takes %s with batches of %u, and %s may be used here: give a smaller "
                    "--batch-size",
                    config->network->name, need, config->batch_size,
                    bytes_text(available_bytes, limit, sizeof limit));
    return 0;
}

/* Set up what needs no other rank. */
static int open_alone(struct training *training)
{
    const struct training_config *config = &training->config;
    struct first_weights weights = {
        .training = training, .threads = config->threads ? config->threads : thread_cpu_count()};
    const struct workers_job job = {.name = "weights",
                                    .work = initialise,
                                    .stop = stop_initialising,
                                    .tick = initialising_tick,
                                    .context = &weights};
    struct exchange *exchange = &training->exchange;
    struct backend_config where = {.batch_size = config->batch_size,
                                   .training = config->learns,
                                   .seed = config->seed,
                                   .threads = config->threads,
                                   .accumulates = config->accumulate > 1,
                                   .late = config->late,
                                   .ranges = config->ranges,
                                   .calibration = config->calibration,
                                   .tick = config->tick};
    int code = backend_choose(config->backend, config->precision, &training->choice);

    if (code)
        return code;
    where.graph = training->graph = network_build(config->network, config->side, config->classes);
    if (!training->graph)
        return -EINVAL;
    if (config->learns && config->recipe.zero_gammas)
        training->zero_gammas = graph_start_as_identities(training->graph);
    code = check_memory(training);
    if (code == 0 && learns_together(config))
        code = buckets_by_layer(&training->buckets, training->graph,
                                config->buckets ? config->buckets : GRADIENTS_BUCKETS);
    if (code == 0 && learns_together(config))
        code =
            exchange_choose(exchange, config->exchange ? config->exchange : "auto", config->ranks);
    if (code)
        return code;
    if (learns_together(config)) {
        where.local_rank = config->ranks->place.local_rank;
        where.rank_timeout_ns = config->rank_timeout_ns;
        where.gradients_on_host = !exchange->ops->on_stream && !exchange->ops->on_device;
        where.enqueue = exchange->ops->on_stream ? exchange_ready : NULL;
        where.enqueue_context = exchange;
        where.exchanged_by_host = !where.enqueue;
        if (exchange_wire(exchange) == EXCHANGE_FP32) { /* else it has a copy */
            where.allocate_gradients = exchange->ops->allocate;
            where.release_gradients = exchange->ops->release;
        }
    }
    code = backend_open(&training->backend, &training->choice, &where);
    if (code)
        return code;
    weights.parameters = memory_array(training->graph->parameter_floats, sizeof(float));
    code = weights.parameters ? workers_run(&job, weights.threads) : -ENOMEM;
    if (code == 0)
        code = backend_load(&training->backend, weights.parameters, NULL, NULL);
    free(weights.parameters);
    return code;
}

int training_open(struct training *training, const struct training_config *config)
{
    struct backend_memory memory;

    *training = (struct training){.config = *config};
    int code = open_alone(training);
    if (code && config->ranks) /* the others need not go on */
        ranks_call_off(config->ranks);
    if (config->ranks) /* all ranks open the exchange, or none */
        code = ranks_meet(config->ranks, code, NULL);
    if (code || !learns_together(config))
        return code;
    backend_memory(&training->backend, &memory);
    const struct exchange_config where = {.ranks = config->ranks,
                                          .gradients = memory.gradients,
                                          .on_device = memory.on_device,
                                          .device = memory.device,
                                          .stream = memory.stream,
                                          .layout = memory.layout,
                                          .buckets = training->buckets};
    return exchange_open(&training->exchange, &where);
}

void training_close(void *state)
{
    struct training *training = state;

    if (training->backend.ops)
        backend_forget(&training->backend);
    exchange_close(&training->exchange, training->failed);
    if (training->backend.ops)
        backend_close(&training->backend);
    buckets_free(&training->buckets);
    graph_destroy(training->graph);
    plugin_release(&training->choice);
}

static uint32_t batches_per_update(const struct training_config *config)
{
    return config->accumulate ? config->accumulate : 1;
}

/* Time a step by the device's clock if it has one, else by the host's; only that knows the host's
 * own work. */
static void take_times(const struct backend_loss *loss, const struct trainer_times *host,
                       struct trainer_times *times)
{
    if (loss->count && loss->times.compute_ns == 0) {
        times->compute_ns = host->compute_ns;
        times->exchange_ns = host->exchange_ns;
        times->update_ns = host->update_ns;
    } else {
        *times = loss->times;
        times->exchange_ns += host->exchange_ns;
    }
}

static uint64_t next_step(const struct training *training)
{
    return training->given * batches_per_update(&training->config) + training->begun;
}

int training_step(struct training *training, const struct trainer_batch *batch,
                  struct trainer_times *times, struct backend_loss *loss)
{
    const struct training_config *config = &training->config;
    const struct recipe *recipe = &config->recipe;
    struct exchange *exchange = training->exchange.state ? &training->exchange : NULL;
    const bool by_host = exchange && !exchange->ops->on_stream;
    struct trainer_batch given = batch ? *batch : (struct trainer_batch){0};

    if (batch) {
        given.step = next_step(training);
        given.continues = !batch->last && training->begun + 1 < batches_per_update(config);
        training->begun = given.continues ? training->begun + 1 : 0;
        training->given += !given.continues;
    }
    const uint64_t start_ns = clock_now_ns();
    int code = backend_step(&training->backend, batch ? &given : NULL, recipe->label_smoothing,
                            by_host ? exchange_ready : NULL, exchange, loss);
    if (code)
        return code;
    const uint64_t computed_ns = clock_now_ns();
    code = loss->update_due && exchange ? exchange_finish(exchange) : 0;
    const uint64_t exchanged_ns = clock_now_ns();
    if (code == 0 && loss->update_due) {
        const struct kernel_update update = {.adapts = recipe->kind == BACKEND_LARS,
                                             .rate = recipe_rate(recipe, training->step),
                                             .rate_before = training->rate_before,
                                             .momentum = recipe->momentum,
                                             .decay = recipe->weight_decay,
                                             .eta = recipe->eta,
                                             .decays_fc_bias = recipe->decays_fc_bias,
                                             .clip_norm = recipe->clip_norm,
                                             .gradient_scale = 1.0 / rank_count(config)};
        assert(training->step < training->given);
        training->rate_before = update.rate;
        training->step++;
        code = backend_update(&training->backend, &update);
    }
    take_times(loss,
               &(struct trainer_times){.compute_ns = computed_ns - start_ns,
                                       .exchange_ns = by_host ? exchanged_ns - computed_ns : 0,
                                       .update_ns = clock_now_ns() - exchanged_ns},
               times);
    if (code == 0 && loss->counted > 0 && !isfinite(loss->loss))
        code = fail(ERANGE,
                    "the loss is NaN or infinite at step %llu: use a lower rate (or loss-scale)",
                    (unsigned long long)training->step);
    return code;
}

int training_finish(struct training *training, struct trainer_times *times,
                    struct backend_loss *loss)
{
    int code = training_step(training, NULL, times, loss);

    return code ? code : loss->count > 0;
}

void *training_allocate(void *training, size_t bytes)
{
    return backend_allocate(&((struct training *)training)->backend, bytes);
}

void training_release(void *training, void *memory)
{
    backend_release(&((struct training *)training)->backend, memory);
}

void training_memory(void *training, struct trainer_memory *memory)
{
    struct backend_memory found;

    backend_memory(&((struct training *)training)->backend, &found);
    *memory = (struct trainer_memory){.device_bytes = found.device_bytes,
                                      .batch_bytes = found.batch_bytes,
                                      .pinned_bytes = found.pinned_bytes};
}

const char *training_notice(void *state)
{
    struct training *training = state;
    const char *backend = backend_notice(&training->backend);
    const char *exchange = exchange_notice(&training->exchange);

    snprintf(training->notice, sizeof training->notice, "%s%s%s", backend,
             *backend && *exchange ? "; " : "", exchange);
    return training->notice;
}

int training_infer(struct training *training, const struct trainer_batch *batch,
                   struct trainer_times *times, struct backend_loss *loss)
{
    struct trainer_batch given = *batch;
    given.step = next_step(training);
    const uint64_t start_ns = clock_now_ns();
    int code = backend_infer(&training->backend, &given, NULL, loss);

    take_times(loss, &(struct trainer_times){.compute_ns = clock_now_ns() - start_ns}, times);
    return code;
}

/* ---- running statistics ---- */

int training_prepare(struct training *training, uint32_t count, bool learns)
{
    return backend_prepare(&training->backend, count, learns);
}

int training_average_statistics(struct training *training)
{
    struct ranks *ranks = training->config.ranks;
    const uint32_t count = rank_count(&training->config);
    const uint64_t floats = training->graph->statistic_floats;

    if (!learns_together(&training->config) || floats == 0)
        return 0;
    float *mine = memory_array(floats, sizeof *mine);
    int code = mine ? backend_save(&training->backend, NULL, NULL, mine, NULL) : -ENOMEM;
    float *all = ranks_collect(ranks, &code, mine, floats * sizeof *mine);
    if (all) {
        for (uint64_t i = 0; i < floats; i++) {
            double sum = 0;
            for (uint32_t rank = 0; rank < count; rank++)
                sum += (double)all[rank * floats + i];
            mine[i] = (float)(sum / count);
        }
        code = ranks_meet(ranks, backend_load(&training->backend, NULL, NULL, mine), NULL);
    }
    free(mine);
    free(all);
    return code;
}

/* ---- checkpoints ---- */

static struct checkpoint describe_checkpoint(const struct training *training)
{
    const struct training_config *config = &training->config;
    struct checkpoint checkpoint = {.side = config->side,
                                    .classes = config->classes,
                                    .parameter_floats = training->graph->parameter_floats,
                                    .statistic_floats = training->graph->statistic_floats,
                                    .seed = config->seed,
                                    .batch_size = (uint64_t)config->batch_size *
                                                  batches_per_update(config) * rank_count(config),
                                    .step = training->step,
                                    .rate_before = training->rate_before};

    snprintf(checkpoint.network, sizeof checkpoint.network, "%s", config->network->name);
    return checkpoint;
}

/* Save to a checkpoint, or load from it. Momenta that are not trained are zeros. */
static int pass_weights(struct training *training, float *floats, bool save)
{
    float *momenta = floats + training->graph->parameter_floats;
    float *statistics = momenta + training->graph->parameter_floats;
    float *trained = training->config.learns ? momenta : NULL;

    return save ? backend_save(&training->backend, floats, trained, statistics, NULL)
                : backend_load(&training->backend, floats, trained, statistics);
}

struct writing {
    const char *path;
    struct checkpoint checkpoint;
    float *floats;
};

static int write_checkpoint(void *context)
{
    const struct writing *writing = context;

    return checkpoint_write(writing->path, &writing->checkpoint, writing->floats);
}

int training_save(struct training *training, const char *path,
                  const struct training_position *position)
{
    struct writing writing = {.path = path, .checkpoint = describe_checkpoint(training)};
    char what[256];

    writing.checkpoint.position = *position;
    writing.floats = memory_array(checkpoint_floats(&writing.checkpoint), sizeof(float));
    int code = writing.floats ? pass_weights(training, writing.floats, true) : -ENOMEM;
    /* A checkpoint from which nothing can go on must not replace a good one. */
    for (uint64_t i = 0; i < training->graph->parameter_floats && code == 0; i++)
        if (!isfinite(writing.floats[i]))
            code = fail(ERANGE,
                        "%s: not written: weights are NaN or infinite after step %llu: use a lower "
                        "rate (or loss-scale)",
                        path, (unsigned long long)training->step);
    if (code == 0 && training->config.ranks) { /* a slow disk may take longer than they tolerate */
        snprintf(what, sizeof what, "the checkpoint %.200s is being written", path);
        code = ranks_do(training->config.ranks, what, write_checkpoint, &writing);
    } else if (code == 0) {
        code = write_checkpoint(&writing);
    }
    free(writing.floats);
    return code;
}

static uint64_t hash_weights(const float *floats, uint64_t count, uint64_t place)
{
    return random_hash(place, crc32c(0, floats, count * sizeof *floats), count) | 1;
}

int training_load(struct training *training, const char *path, struct training_position *position)
{
    const struct checkpoint wanted = describe_checkpoint(training);
    struct checkpoint found;
    float *floats = memory_array(checkpoint_floats(&wanted), sizeof *floats);
    int code = floats ? checkpoint_read(path, &wanted, &found, floats) : -ENOMEM;

    /* It could resume with another batch size or seed, but not as if uninterrupted. */
    if (code == 0 && training->config.learns && found.seed != wanted.seed)
        code = fail(EINVAL, "%s: made with --seed %llu: resume with the same seed", path,
                    (unsigned long long)found.seed);
    if (code == 0 && training->config.learns && found.batch_size != wanted.batch_size)
        code = fail(EINVAL, "%s: made with %llu samples per update over all ranks, not %llu", path,
                    (unsigned long long)found.batch_size, (unsigned long long)wanted.batch_size);
    if (code == 0)
        code = pass_weights(training, floats, false);
    if (code == 0)
        training->loaded = hash_weights(floats, checkpoint_floats(&wanted),
                                        random_hash(found.position.epoch, found.step, 0));
    free(floats);
    if (code)
        return code;
    training->step = training->given = found.step;
    training->rate_before = found.rate_before;
    *position = found.position;
    return 0;
}

/* ---- weights of other programs ---- */

int training_import(struct training *training, const char *path)
{
    const struct graph *graph = training->graph;
    const uint64_t floats = graph->parameter_floats + graph->statistic_floats;
    float *parameters = memory_array(floats, sizeof *parameters);
    float *statistics = parameters + graph->parameter_floats;
    int code = parameters
                   ? weights_read(path, training->config.network, graph, parameters, statistics)
                   : -ENOMEM;

    if (code == 0)
        code = backend_load(&training->backend, parameters, NULL, statistics);
    if (code == 0)
        training->loaded = hash_weights(parameters, floats, 0);
    free(parameters);
    return code;
}

int training_export(struct training *training, const char *path)
{
    const struct graph *graph = training->graph;
    float *parameters =
        memory_array(graph->parameter_floats + graph->statistic_floats, sizeof(float));
    float *statistics = parameters + graph->parameter_floats;
    int code =
        parameters ? backend_save(&training->backend, parameters, NULL, statistics, NULL) : -ENOMEM;

    if (code == 0)
        code = weights_write(path, training->config.network, graph, parameters, statistics);
    free(parameters);
    return code;
}

/* ---- the network trainer: trains a network for real, at a constant rate ----
 *
 * A network's name alone selects it, too: trainer_choose(). */

struct network_arguments {
    char *name, *backend;
    uint64_t classes, threads, accumulate;
    double rate;
};

static const struct option_spec network_options[] = {
    {"name", 0, OPTION_TEXT, offsetof(struct network_arguments, name), .fallback = "resnet50",
     .metavar = "NAME", .summary = "which network; 'iobench list networks' names them"},
    {"backend", 0, OPTION_TEXT, offsetof(struct network_arguments, backend), .fallback = "auto",
     .metavar = "NAME", .summary = "compute backend: cpu (oneDNN) or reference"},
    {"classes", 0, OPTION_COUNT, offsetof(struct network_arguments, classes), .fallback = "auto",
     .zero = "auto", .maximum = 1 << 24,
     .summary = "number of classes of the data set; auto is the network's own"},
    {"threads", 0, OPTION_COUNT, offsetof(struct network_arguments, threads), .fallback = "auto",
     .zero = "auto", .maximum = 4096, .summary = "compute threads; auto is one per CPU"},
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
    uint32_t side = (uint32_t)lround(sqrt((double)config->row_bytes / 3));

    if (!network)
        return -EINVAL;
    if (side == 0 || (size_t)side * side * 3 != config->row_bytes)
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
