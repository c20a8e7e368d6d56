/* SPDX-License-Identifier: Apache-2.0
 *
 * Run by mpirun, with the number of buckets, an exchange, a backend and steps: the ranks train
 * about 20 steps together, each on its share of a global batch; then rank 0 does the same alone,
 * with one state per share if there is BN, which uses only its share ("ghost batches"), else with
 * the whole batch; the weights, and the mean of the shares' running statistics, must agree within
 * the rounding of FP32 sums in a different order.
 *
 * With "sums" instead of steps: the sums of an exchange between devices, number by number, with the
 * host's memory as a device's.
 */
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "tests/cuda/half.h"
#include "trainer/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 16, CLASSES = 10, GLOBAL_BATCH = 12, ROW = SIDE * SIDE * 3 };

static const double clip_norm = 0.1;  /* of the ranks' mean gradients, which are always clipped */
static const double few_steps = 1e-5; /* tolerance after fewer than ten, for any network */
static uint64_t steps = 20;
static const char *exchange = "auto", *backend = "auto", *backend_alone = "auto";
static uint8_t rows[GLOBAL_BATCH * ROW];
static int32_t labels[GLOBAL_BATCH];

static void make_batch(uint64_t step)
{
    struct random random = random_start(random_hash(9, step, 0));

    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)random_below(&random, 256);
    for (int i = 0; i < GLOBAL_BATCH; i++)
        labels[i] = (int32_t)random_below(&random, CLASSES);
}

static void require(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "FAILED: %s\n", fail_reason());
    exit(1);
}

/* Weights, followed by running statistics. */
static float *make_results(const struct graph *graph)
{
    float *results =
        memory_array(graph->parameter_floats + graph->statistic_floats, sizeof *results);

    require(results ? 0 : -1);
    return results;
}

/* together: NULL if a share is computed alone. */
static struct training_config config_of(const char *network, uint32_t batch, struct ranks *together,
                                        uint32_t buckets)
{
    return (struct training_config){.network = network_find(network),
                                    .backend = together ? backend : backend_alone,
                                    .side = SIDE,
                                    .classes = CLASSES,
                                    .batch_size = batch,
                                    .seed = 4,
                                    .threads = 1,
                                    .learns = true,
                                    .ranks = together,
                                    .exchange = exchange,
                                    .buckets = buckets,
                                    .rank_timeout_ns = 60000000000,
                                    .late = true,
                                    .recipe = {.decay_shape = RECIPE_CONSTANT,
                                               .rate = 0.002,
                                               .momentum = 0.9,
                                               .weight_decay = 1e-4,
                                               .clip_norm = clip_norm}};
}

static struct trainer_batch share_of(uint32_t rank, uint32_t ranks)
{
    uint32_t count = GLOBAL_BATCH / ranks;

    return (struct trainer_batch){
        .rows = rows + (size_t)rank * count * ROW, .labels = labels + rank * count, .count = count};
}

static float *learn_together(const char *network, struct ranks *ranks, uint32_t buckets)
{
    const struct ranks_place *place = &ranks->place;
    const struct training_config config =
        config_of(network, GLOBAL_BATCH / place->ranks, ranks, buckets);
    struct training training;

    require(training_open(&training, &config));
    struct trainer_times times;
    struct backend_loss loss;
    for (uint64_t step = 0; step < steps; step++) {
        make_batch(step);
        struct trainer_batch batch = share_of(place->rank, place->ranks);
        require(training_step(&training, &batch, &times, &loss));
    }
    int code;
    do
        code = training_finish(&training, &times, &loss);
    while (code == 1);
    require(code);
    float *results = make_results(training.graph);
    require(training_average_statistics(&training));
    require(backend_save(&training.backend, results, NULL,
                         results + training.graph->parameter_floats, NULL));
    training_close(&training);
    return results;
}

/* Update each state by the sum of all shares' gradients. */
static void update_all(struct training *shares, uint32_t ranks)
{
    const struct kernel_update update = {.rate = 0.002,
                                         .momentum = 0.9,
                                         .decay = 1e-4,
                                         .gradient_scale = 1.0 / ranks,
                                         .clip_norm = clip_norm};
    const uint64_t floats = shares[0].graph->parameter_floats;
    struct backend_memory memory[GLOBAL_BATCH];

    for (uint32_t i = 0; i < ranks; i++)
        backend_memory(&shares[i].backend, &memory[i]);
    for (uint64_t j = 0; j < floats; j++) {
        double sum = 0;
        for (uint32_t i = 0; i < ranks; i++)
            sum += (double)memory[i].gradients[j];
        for (uint32_t i = 0; i < ranks; i++)
            memory[i].gradients[j] = (float)sum;
    }
    for (uint32_t i = 0; i < ranks; i++)
        require(backend_update(&shares[i].backend, &update));
}

/* Train the batch in shares, each with its own state. */
static void learn_alone(const char *network, uint32_t count, float *results)
{
    const struct training_config config = config_of(network, GLOBAL_BATCH / count, NULL, 0);
    struct training shares[GLOBAL_BATCH];

    for (uint32_t i = 0; i < count; i++)
        require(training_open(&shares[i], &config));
    for (uint64_t step = 0; step < steps; step++) {
        make_batch(step);
        for (uint32_t i = 0; i < count; i++) {
            struct trainer_batch share = share_of(i, count);
            const struct trainer_batch batch = {
                .rows = share.rows, .labels = share.labels, .count = share.count, .step = step};
            struct backend_loss loss;
            require(backend_step(&shares[i].backend, &batch, 0, NULL, NULL, &loss));
        }
        update_all(shares, count);
    }
    const struct graph *graph = shares[0].graph;
    float *of_share = make_results(graph), *statistics = results + graph->parameter_floats;
    for (uint32_t i = 0; i < count; i++) {
        require(backend_save(&shares[i].backend, i ? NULL : results, NULL, of_share, NULL));
        for (uint64_t j = 0; j < graph->statistic_floats; j++)
            statistics[j] += of_share[j] / (float)count;
    }
    free(of_share);
    for (uint32_t i = 0; i < count; i++)
        training_close(&shares[i]);
}

/* Return how far apart numbers are, relative to the largest. */
static double distance(const float *a, const float *b, uint64_t count)
{
    double most = 0, difference = 0;

    for (uint64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)a[i]));
        const double apart = fabs((double)a[i] - (double)b[i]);
        if (isnan(apart))
            return apart;
        difference = fmax(difference, apart);
    }
    return count ? difference / most : 0;
}

/* Rank 0 repeats the training alone. Returns 0 if the weights and statistics agree. */
static int compare(const char *network, uint32_t ranks, uint32_t shares, double tolerance,
                   const float *together)
{
    struct graph *graph = network_build(network_find(network), SIDE, CLASSES);
    const uint64_t floats = graph->parameter_floats;
    float *alone = make_results(graph);

    learn_alone(network, shares, alone);
    const double weights = distance(alone, together, floats);
    const double statistics = distance(alone + floats, together + floats, graph->statistic_floats);
    printf("%u ranks: %s differs by %.2g of the largest weight and %.2g of the largest running "
           "statistic from %u %s alone\n",
           ranks, network, weights, statistics, shares, shares == 1 ? "batch" : "shares");
    free(alone);
    graph_destroy(graph);
    return weights < tolerance && statistics < tolerance ? 0 : 1;
}

/* ---- sums ---- */

enum { FLOATS = 20032 }; /* 256 bytes, many times */

/* From 2^-34 to 2^2, so that some are below what FP16 has at all. */
static float gradient_of(uint32_t rank, uint64_t i)
{
    const uint64_t random = random_hash(5, rank, i);
    const double digits = 1 + (double)(random >> 12) / (double)(1ull << 52);

    return (float)ldexp(random & 1 ? digits : -digits, (int)(i % 36) - 34);
}

/* In FP16: each rank's scaled by 1024 over the power of two from their number on, and rounded; the
 * sum rounded after each rank. */
static float sum_of(uint32_t ranks, uint64_t i, enum exchange_wire wire)
{
    const float scale = wire == EXCHANGE_FP32 ? 1 : ranks > 4 ? 128 : ranks > 2 ? 256 : 512;
    float sum = 0;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        const float scaled = gradient_of(rank, i) * scale;
        sum = wire == EXCHANGE_FP32
                  ? sum + scaled
                  : place_round(DEVICE_FP16, sum + place_round(DEVICE_FP16, scaled));
    }
    return sum / scale;
}

static int check_sums(struct ranks *ranks, const char *name, uint32_t buckets)
{
    float *gradients = aligned_alloc(256, FLOATS * sizeof *gradients);
    const struct exchange_config config = {.ranks = ranks,
                                           .gradients = gradients,
                                           .on_device = true,
                                           .buckets = buckets_of(FLOATS, buckets)};
    struct exchange summed;
    uint64_t wrong = 0;

    require(gradients ? 0 : fail(12, "out of memory"));
    require(exchange_choose(&summed, name, ranks));
    require(exchange_open(&summed, &config));
    for (int step = 0; step < 2; step++) {
        for (uint64_t i = 0; i < FLOATS; i++)
            gradients[i] = gradient_of(ranks->place.rank, i);
        require(exchange_ready(&summed, FLOATS));
        require(exchange_finish(&summed));
        for (uint64_t i = 0; i < FLOATS; i++)
            wrong += gradients[i] != sum_of(ranks->place.ranks, i, exchange_wire(&summed));
    }
    struct ranks apart = *ranks; /* a node each */
    apart.place.nodes = ranks->place.ranks;
    apart.place.node = UINT32_MAX;
    if (ranks->place.rank == 0)
        printf("%u ranks: %s: %llu of %d sums are wrong; %llu bytes sent\n", ranks->place.ranks,
               name, (unsigned long long)wrong, 2 * FLOATS,
               (unsigned long long)exchange_sent_bytes(&summed, &apart, FLOATS));
    exchange_close(&summed, false);
    free(gradients);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    /* BN uses a share, and amplifies rounding over 20 steps; without it, shares make no difference.
     * The tolerance is relative to the largest weight. */
    static const struct {
        const char *network;
        bool in_shares;
        double tolerance;
    } cases[] = {{"tiny", true, 1e-3}, {"lenet", false, 1e-6}};
    struct ranks ranks;
    int status = 0;

    exchange = argc > 2 ? argv[2] : exchange;
    if (argc > 3) {
        backend = argv[3];
        backend_alone = "reference";
    }
    steps = argc > 4 ? (uint64_t)atoi(argv[4]) : steps;
    require(ranks_join(&ranks));
    if (GLOBAL_BATCH % ranks.place.ranks)
        require(fail(22, "%u ranks do not divide the batch", ranks.place.ranks));
    if (argc > 4 && strcmp(argv[4], "sums") == 0) {
        status = check_sums(&ranks, exchange, (uint32_t)atoi(argv[1]));
        ranks_leave(&ranks, status != 0);
        return status;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t count = ranks.place.ranks, shares = cases[i].in_shares ? count : 1;
        float *weights =
            learn_together(cases[i].network, &ranks, argc > 1 ? (uint32_t)atoi(argv[1]) : 4);
        if (ranks.place.rank == 0)
            status |= compare(cases[i].network, count, shares,
                              steps < 10 ? few_steps : cases[i].tolerance, weights);
        free(weights);
    }
    ranks_leave(&ranks, status != 0);
    return status;
}
