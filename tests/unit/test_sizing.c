/* SPDX-License-Identifier: Apache-2.0
 * The model of a training cluster: hand-computed cases, the closed formula as a check of the
 * simulation where no queue matters, and laws that any plant obeys. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "cmd/size/model.h"

#include <math.h>
#include <string.h>

/* One node, 1,000 batches of 100 samples of 1 MB; the only bottlenecks are those set by a test. */
static struct sizing_plant plain_plant(void)
{
    struct sizing_inputs inputs;

    sizing_inputs_start(&inputs);
    struct sizing_plant plant = sizing_plant_of(&inputs, 1, NULL);
    plant.of[SIZING_GPUS] = 1;
    plant.of[SIZING_BATCH] = 100;
    plant.of[SIZING_SAMPLES] = 100000;
    plant.of[SIZING_SAMPLE_BYTES] = 1e6;
    plant.of[SIZING_EPOCHS] = 1;
    plant.of[SIZING_GPU_RATE] = 1e5;
    return plant;
}

static struct sizing_outcome simulate(const struct sizing_plant *plant)
{
    struct sizing_outcome outcome;

    assert_int_equal(sizing_simulate(plant, 0, 1, &outcome), 0);
    return outcome;
}

/* Storage of 1 GB/s: 1,000 samples/s; the first batch after 0.1 s; the last step is 1 ms. */
static void one_slow_storage(void **unused)
{
    struct sizing_plant plant = plain_plant();

    plant.of[SIZING_STORAGE_RATE] = 1e9;
    plant.of[SIZING_START_S] = 0.5;
    struct sizing_outcome outcome = simulate(&plant);
    assert_share(outcome.first_batch_s, 0.6, 1e-9);
    assert_share(outcome.samples_per_s, 100000 / 100.501, 1e-9);
    assert_share(outcome.stall_share, (100.501 - 1) / 100.501, 1e-6);
    plant.of[SIZING_AMPLIFICATION] = 3; /* 3 MB read for a sample of 1 MB */
    assert_share(simulate(&plant).first_batch_s, 0.8, 1e-9);
}

/* An epoch of 10 samples on 40 nodes: a quarter of a sample each, not a whole piece of a batch. */
static void an_epoch_smaller_than_a_batch(void **unused)
{
    struct sizing_plant plant = plain_plant();

    plant.nodes = 40;
    plant.of[SIZING_SAMPLES] = 10;
    plant.of[SIZING_STORAGE_RATE] = 1e7;
    assert_share(simulate(&plant).first_batch_s, 1, 1e-6);
}

/* A limit ends the epoch after 1,200 draws; the buffer of 500 has been filled again. */
static void a_limited_epoch_fills_the_buffer(void **unused)
{
    struct sizing_plant plant = plain_plant();

    plant.of[SIZING_STORAGE_RATE] = 1e9;
    plant.of[SIZING_SAMPLES] = 1200;
    plant.of[SIZING_BUFFER] = 500;
    assert_share(simulate(&plant).samples_per_s, 1200 / 1.2, 0.01);
    plant.of[SIZING_UNDRAWN] = 4800;
    assert_share(simulate(&plant).samples_per_s, 1200 / 1.7, 0.01);
    plant.of[SIZING_UNDRAWN] = 200;
    assert_share(simulate(&plant).samples_per_s, 1200 / 1.4, 0.01);
}

/* Batches of 4 samples of 1 MB, two in an epoch, at 100 MB/s: 10 ms a sample, 40 us a step. */
static struct sizing_plant short_plant(void)
{
    struct sizing_plant plant = plain_plant();

    plant.of[SIZING_BATCH] = 4;
    plant.of[SIZING_SAMPLES] = 8;
    plant.of[SIZING_READ_BYTES] = 1e6;
    plant.of[SIZING_STORAGE_RATE] = 1e8;
    return plant;
}

/* A link has carried 4 samples after 40 ms. A throttle lets reads begin at 0, 10, 20, 30 ms, and
 * the last of 8 at 70 ms, for which the next epoch's first waits until 80 ms: 10 - 0.04 ms. If a
 * step takes 0.5 s, the throttle is not asked from 80 ms until 1,030 ms; of that it makes up 250
 * ms, in which it would have let 25 reads begin: the next epoch's 8 begin at once. With a credit of
 * 15 ms: reads at 0, 0 (at -15 and -5 ms), 5 and 15 ms. */
static void a_throttle_lets_reads_begin(void **unused)
{
    struct sizing_plant plant = short_plant();

    assert_near(simulate(&plant).first_batch_s, 0.04, 1e-9);
    plant.of[SIZING_STORAGE_CREDIT_S] = 0.25;
    assert_near(simulate(&plant).first_batch_s, 0.03, 1e-9);
    assert_near(simulate(&plant).samples_per_s, 8 / 0.07004, 1e-9);
    plant.of[SIZING_EPOCHS] = 2;
    assert_near(simulate(&plant).samples_per_s, 16 / (0.07004 + 0.08), 1e-9);
    plant.of[SIZING_GPU_RATE] = 8;
    assert_near(simulate(&plant).samples_per_s, 16 / (1.03 + 1), 1e-9);
    plant.of[SIZING_STORAGE_CREDIT_S] = 0.015;
    assert_near(simulate(&plant).samples_per_s, 16 / (1.03 + 1.015), 1e-9);
}

/* Reads of 4 samples: a batch of 2 waits for the 4th sample, at 40 ms, and the last batch, of the
 * 2nd read, is there at 80 ms; 20 us a step. */
static void a_read_brings_all_its_samples_at_once(void **unused)
{
    struct sizing_plant plant = short_plant();

    plant.of[SIZING_BATCH] = 2;
    assert_near(simulate(&plant).first_batch_s, 0.02, 1e-9);
    plant.of[SIZING_READ_BYTES] = 4e6;
    const struct sizing_outcome outcome = simulate(&plant);
    assert_near(outcome.first_batch_s, 0.04, 1e-9);
    assert_near(outcome.samples_per_s, 8 / 0.08004, 1e-9);
}

/* From memory, 1 ms of the I/O thread a sample: it looks after 6 reads before it delivers the
 * first; with memory for 5 samples, after 5. A read that takes time is waited for alone: 1 + 3 ms.
 */
static void the_io_thread_begins_all_reads_first(void **unused)
{
    struct sizing_plant plant = short_plant();

    plant.of[SIZING_STORAGE_RATE] = 0;
    plant.of[SIZING_LOAD_S] = 1e-3;
    plant.of[SIZING_CORES] = 1e12; /* its core is not missed in decoding */
    plant.of[SIZING_DEPTH] = 6;
    assert_near(simulate(&plant).first_batch_s, 0.006, 1e-9);
    plant.of[SIZING_RECORD_BYTES] = 5e6;
    assert_near(simulate(&plant).first_batch_s, 0.005, 1e-9);
    plant.of[SIZING_STORAGE_LATENCY_S] = 1e-6;
    plant.of[SIZING_LOAD_S] = 1e-2;
    assert_near(simulate(&plant).first_batch_s, 0.04, 1e-4);
}

/* One core, 10 ms to load and 10 ms to decode a sample, a buffer of 4: five loads are done after
 * 50 ms, with a decoding after each of these and of three more the first batch after 120 ms; all 8
 * are loaded then, and the second batch takes 40 ms. */
static void cores_decode_while_nothing_is_loaded(void **unused)
{
    struct sizing_plant plant = short_plant();

    plant.of[SIZING_STORAGE_RATE] = 0;
    plant.of[SIZING_LOAD_S] = plant.of[SIZING_DECODE_S] = 0.01;
    plant.of[SIZING_CORES] = plant.of[SIZING_DEPTH] = 1;
    plant.of[SIZING_BUFFER] = 4;
    const struct sizing_outcome outcome = simulate(&plant);
    assert_near(outcome.first_batch_s, 0.12, 1e-9);
    assert_near(outcome.samples_per_s, 8 / 0.16004, 1e-9);
}

/* Windows of 4, a buffer of 5: the first draw's place is refilled by sample 5, whose window ends
 * with sample 7, 80 ms after the start; the last, sample 9, by 14, the last that is read: 150 ms.
 */
static void a_window_is_read_before_the_buffer_draws(void **unused)
{
    struct sizing_plant plant = short_plant();

    plant.of[SIZING_BATCH] = 1;
    plant.of[SIZING_SAMPLES] = 10;
    plant.of[SIZING_UNDRAWN] = 100;
    plant.of[SIZING_BUFFER] = 5;
    plant.of[SIZING_WINDOW] = 4;
    const struct sizing_outcome outcome = simulate(&plant);
    assert_near(outcome.first_batch_s, 0.08, 1e-9);
    assert_near(outcome.samples_per_s, 10 / 0.15003, 1e-4);
}

/* Each part as the limit in turn, over many batches. */
static void simulation_agrees_with_the_formula(void **unused)
{
    static const struct {
        enum sizing_input input;
        double value;
        enum sizing_part part;
    } cases[] = {
        {SIZING_GPU_RATE, 700, SIZING_PART_GPU},
        {SIZING_STORAGE_RATE, 5e8, SIZING_PART_STORAGE},
        {SIZING_STORAGE_READS, 300, SIZING_PART_READS},
        {SIZING_PORT_RATE, 4e8, SIZING_PART_CLIENT},
        {SIZING_STORAGE_LATENCY_S, 1, SIZING_PART_DEPTH},
        {SIZING_DECODE_S, 0.1, SIZING_PART_CORES},
        {SIZING_LOAD_S, 2e-3, SIZING_PART_LOADER},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sizing_plant plant = plain_plant();
        plant.of[cases[i].input] = cases[i].value;
        const struct sizing_rates rates = sizing_rates(&plant, 0);
        assert_int_equal(rates.limit, cases[i].part);
        struct sizing_outcome outcome = simulate(&plant);
        if (fabs(outcome.samples_per_s / rates.of[rates.limit] - 1) > 0.01)
            fail_msg("%s: simulated %g, formula %g", sizing_part_names[rates.limit],
                     outcome.samples_per_s, rates.of[rates.limit]);
    }
}

/* Storage and GPUs are equally fast, and sample sizes vary widely: queueing costs time, and
 * prefetching more batches costs less. */
static void queues_matter_where_parts_are_equal(void **unused)
{
    struct sizing_plant plant = plain_plant();

    plant.of[SIZING_GPU_RATE] = 1000;
    plant.of[SIZING_STORAGE_RATE] = 1e9;
    plant.of[SIZING_BATCH] = 1;
    plant.of[SIZING_SAMPLES] = 4000;
    plant.of[SIZING_SAMPLE_SD_BYTES] = 0.5e6;
    plant.of[SIZING_RECORD_BYTES] = 1e6;
    plant.of[SIZING_PREFETCH] = 1;
    const double shallow = simulate(&plant).samples_per_s;
    plant.of[SIZING_PREFETCH] = 64;
    plant.of[SIZING_RECORD_BYTES] = 100e6;
    const double deep = simulate(&plant).samples_per_s;
    assert_true(shallow < 0.95 * sizing_rates(&plant, 0).of[SIZING_PART_GPU]);
    assert_true(deep > 1.02 * shallow);
}

/* Points are returned as they are; between them logarithms are interpolated; beyond them fewer
 * reads get less, smaller reads as many, and nothing gets more. */
static void a_curve_by_hand(void **unused)
{
    struct sizing_curve curve = {0};

    assert_true(isinf(sizing_curve_rate(&curve, 4096, 1, 0)));
    assert_int_equal(sizing_curve_parse(&curve, 65536, "1:160e6, 4:640e6 +-10%,16:640e6"), 0);
    assert_int_equal(sizing_curve_parse(&curve, 4096, " 1:10e6,16:90e6"), 0);
    assert_share(sizing_curve_rate(&curve, 65536, 4, 0), 640e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 65536, 2, 0), 320e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 65536, 0.5, 0), 80e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 65536, 1000, 0), 640e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 4096, 4, 0), 30e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 16384, 1, 0), 40e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 1024, 1, 0), 2.5e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 1 << 20, 16, 0), 640e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 65536, 4, 1.6449), 704e6, 1e-12);
    assert_share(sizing_curve_rate(&curve, 65536, 16, 1.6449), 640e6, 1e-12);
    static const char *const wrong[] = {"",      "1",       "0:5",    "4:1e6,4:2e6", "4:1e6,1:2e6",
                                        "1:-1",  "1:0",     "1:nan",  "1:1e6;2:2e6", "1:1e6 +-x%",
                                        "x:1e6", "1:1e6,,", "1: 5 x", "inf:1",       NULL};
    for (int i = 0; wrong[i]; i++)
        if (sizing_curve_parse(&curve, 512, wrong[i]) == 0)
            fail_msg("accepted: '%s'", wrong[i]);
    assert_int_equal(curve.count, 2);
}

/* The curve of one storage is shared by the reads of all nodes, or each node has its own; two such
 * storages serve twice the reads. */
static void a_curve_limits_the_plant(void **unused)
{
    struct sizing_inputs inputs;
    struct ini ini;

    assert_int_equal(
        profiles_parse("t", "[storage]\nsource=t\nscope=job\ncurve-1e6=1:100e6, 100:10e9\n", &ini),
        0);
    sizing_inputs_start(&inputs);
    assert_int_equal(sizing_inputs_apply(&inputs, &ini, NULL), 0);
    ini_release(&ini);
    inputs.of[SIZING_READ_BYTES].value = 1e6;
    inputs.of[SIZING_SAMPLE_BYTES].value = 1e6;
    inputs.of[SIZING_GPU_RATE].value = 1e6;
    inputs.of[SIZING_DEPTH].value = 5;
    struct sizing_plant plant = sizing_plant_of(&inputs, 4, NULL);
    struct sizing_rates rates = sizing_rates(&plant, 0);
    assert_int_equal(rates.limit, SIZING_PART_DEPTH);
    assert_share(rates.of[SIZING_PART_DEPTH], 2000, 1e-9); /* 20 reads in flight */
    assert_share(rates.of[SIZING_PART_STORAGE], 10000, 1e-9);
    assert_share(simulate(&plant).samples_per_s, 2000, 0.01);
    plant.of[SIZING_DEPTH] = 50; /* 200 in flight: the last point */
    assert_share(sizing_rates(&plant, 0).of[SIZING_PART_DEPTH], 10000, 1e-9);
    plant.storages = 2;
    assert_share(sizing_rates(&plant, 0).of[SIZING_PART_DEPTH], 20000, 1e-9);
    /* Deep queues may be slower: what a storage can give is its best. */
    assert_int_equal(sizing_curve_parse(&inputs.curve, 1e6, "1:100e6, 20:2e9, 100:1e9"), 0);
    plant = sizing_plant_of(&inputs, 4, NULL);
    assert_share(sizing_rates(&plant, 0).of[SIZING_PART_STORAGE], 2000, 1e-9);
    assert_share(simulate(&plant).samples_per_s, 2000, 0.01);
    assert_int_equal(sizing_curve_parse(&inputs.curve, 1e6, "1:100e6, 100:10e9"), 0);
    inputs.is_node_storage = 1;
    plant = sizing_plant_of(&inputs, 4, NULL);
    assert_share(sizing_rates(&plant, 0).of[SIZING_PART_DEPTH], 4 * 500, 1e-9);
    assert_share(sizing_rates(&plant, 0).of[SIZING_PART_STORAGE], 4 * 10000, 1e-9);
}

/* One batch is ready and one in the step: decoding and computing take 0.1 s each, in parallel. */
static void a_batch_is_decoded_during_a_step(void **unused)
{
    struct sizing_plant plant = plain_plant();

    plant.of[SIZING_GPU_RATE] = 1000;
    plant.of[SIZING_CORES] = 1;
    plant.of[SIZING_DECODE_S] = 1e-3;
    plant.of[SIZING_PREFETCH] = 1;
    assert_share(simulate(&plant).samples_per_s, 1000, 0.01);
}

/* Twice as much of anything never makes the job slower. */
static void more_is_never_slower(void **unused)
{
    static const int figures[] = {SIZING_GPU_RATE,      SIZING_CORES,       SIZING_STORAGE_RATE,
                                  SIZING_STORAGE_READS, SIZING_PORT_RATE,   SIZING_RECORD_BYTES,
                                  SIZING_PREFETCH,      SIZING_CACHE_BYTES, SIZING_DEPTH};

    for (uint64_t seed = 0; seed < 50; seed++) {
        struct random random = random_start(seed);
        struct sizing_plant plant = plain_plant();
        plant.of[SIZING_SAMPLES] = 5000;
        plant.of[SIZING_EPOCHS] = 2;
        plant.of[SIZING_GPU_RATE] = 500 + 1000 * random_unit(&random);
        plant.of[SIZING_STORAGE_RATE] = 1e9 * (0.5 + random_unit(&random));
        plant.of[SIZING_STORAGE_READS] = 500 + 1000 * random_unit(&random);
        plant.of[SIZING_PORT_RATE] = 1e9 * (0.5 + random_unit(&random));
        plant.of[SIZING_DECODE_S] = 0.06 * random_unit(&random);
        plant.of[SIZING_RECORD_BYTES] = 2e6 + 1e9 * random_unit(&random);
        plant.of[SIZING_CACHE_BYTES] = 6e9 * random_unit(&random);
        plant.of[SIZING_STORAGE_LATENCY_S] = 1e-3;
        const double before = simulate(&plant).samples_per_s;
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            struct sizing_plant more = plant;
            more.of[figures[i]] *= 2;
            if (simulate(&more).samples_per_s < before * (1 - 1e-9))
                fail_msg("seed %llu: twice as much of %s is slower", (unsigned long long)seed,
                         sizing_input_table[figures[i]].key);
        }
    }
}

static void caches_by_epoch_and_order(void **unused)
{
    struct sizing_plant plant = plain_plant();

    plant.of[SIZING_CACHE_BYTES] = 50e9; /* half of the data */
    assert_true(sizing_hits(&plant, 0) == 0);
    assert_share(sizing_hits(&plant, 1), 0.5 + 0.5 * log(0.5), 1e-12);
    plant.nodes = 4;
    assert_share(sizing_hits(&plant, 1), 0.25, 1e-12); /* of its reads in the first epoch */
    assert_share(sizing_hits(&plant, 2), 1 - 0.75 * 0.75, 1e-12);
    assert_share(sizing_hits(&plant, 9), 0.5, 1e-12);
    plant.of[SIZING_FIXED] = 1;
    assert_share(sizing_hits(&plant, 1), 1, 1e-12); /* a quarter of the data, cache for half */
    plant.nodes = 1;
    plant.of[SIZING_SEQUENTIAL] = 1;
    assert_true(sizing_hits(&plant, 1) == 0);
    plant.of[SIZING_CACHE_BYTES] = 100e9;
    assert_true(sizing_hits(&plant, 1) == 1);
    plant.of[SIZING_SEQUENTIAL] = 0;
    plant.nodes = 1;
    plant.of[SIZING_STORAGE_RATE] = 1e9;
    plant.of[SIZING_EPOCHS] = 3;
    struct sizing_outcome outcome = simulate(&plant);
    assert_share(outcome.first_samples_per_s, 1000, 0.01);
    assert_true(outcome.later_samples_per_s > 15000); /* 20 GB/s of memory */
}

/* The formula's hit rate against a simulated LRU cache with random orders. */
static void the_formula_is_that_of_an_lru_cache(void **unused)
{
    enum { ITEMS = 2000, KEPT = 1200, EPOCHS = 20 };
    static uint64_t used[ITEMS];
    uint64_t clock = 0, hits = 0;

    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        struct permutation order = permutation_start((uint64_t)epoch + 5, ITEMS);
        for (uint64_t i = 0; i < ITEMS; i++) {
            const uint64_t item = permutation_at(&order, i);
            unsigned later = 0;
            for (int k = 0; k < ITEMS; k++)
                later += used[k] > used[item];
            hits += epoch > 0 && later < KEPT;
            used[item] = ++clock;
        }
    }
    struct sizing_plant plant = plain_plant();
    plant.of[SIZING_CACHE_BYTES] = (double)KEPT / ITEMS * 100e9;
    assert_share((double)hits / ((EPOCHS - 1) * ITEMS), sizing_hits(&plant, 1), 0.02);
}

/* 2 (N - 1) / N of 1 GB over 10 GB/s; two thirds of a step of 1 s hide it up to 0.667 s. */
static void gradients_by_hand(void **unused)
{
    struct sizing_plant plant = plain_plant();

    plant.nodes = 8;
    plant.of[SIZING_GRADIENT_BYTES] = 1e9;
    plant.of[SIZING_FABRIC_RATE] = 10e9;
    plant.of[SIZING_FABRIC_EFFICIENCY] = 1;
    plant.of[SIZING_FABRIC_LATENCY_S] = 0;
    plant.of[SIZING_GPU_RATE] = 100;
    assert_share(sizing_exchange_s(&plant), 2 * 7.0 / 8 / 10, 1e-12);
    assert_share(sizing_step_s(&plant), 1, 1e-12);
    plant.of[SIZING_FABRIC_RATE] = 1e9;
    assert_share(sizing_step_s(&plant), 1.0 / 3 + 1.75, 1e-12);
    plant.nodes = 1;
    assert_share(sizing_step_s(&plant), 1, 1e-12);
}

/* 100 GB at 1 GB/s: 100 s; Young: sqrt(2 x 100 s x MTBF of 8 GPUs). */
static void checkpoints_by_hand(void **unused)
{
    struct sizing_plant plant = plain_plant();
    const double mtbf = 54.0 * 86400 * 16384 / 419 / 8;

    plant.of[SIZING_GPUS] = 8;
    plant.of[SIZING_CHECKPOINT_BYTES] = 100e9;
    plant.of[SIZING_STORAGE_WRITE_RATE] = 1e9;
    assert_share(sizing_checkpoint_s(&plant), 100, 1e-12);
    assert_share(sizing_checkpoint_interval_s(&plant), sqrt(200 * mtbf), 1e-12);
    plant.of[SIZING_CHECKPOINT_INTERVAL_S] = 900;
    assert_share(simulate(&plant).checkpoint_share, 0.1, 1e-9);
}

static struct sizing_inputs cluster(void)
{
    static const char *const profiles[][2] = {{"network", "resnet50"},
                                              {"gpu", "h200"},
                                              {"node", "dgx-h200"},
                                              {"storage", "parallel-k3000"}};
    struct sizing_inputs inputs;

    sizing_inputs_start(&inputs);
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        struct ini ini;
        assert_int_equal(profiles_load(profiles[i][0], profiles[i][1], NULL, &ini), 0);
        assert_int_equal(sizing_inputs_apply(&inputs, &ini, "resnet50"), 0);
        ini_release(&ini);
    }
    return inputs;
}

static struct sizing_answer answer_of(const struct sizing_inputs *inputs, double gpus)
{
    struct sizing_answer answer;
    const struct sizing_request request = {
        .inputs = inputs, .gpus = gpus, .busy = 1, .draws = 40, .seed = 3};

    assert_int_equal(sizing_answer(&request, &answer), 0);
    return answer;
}

static void uncertainty_is_carried_through(void **unused)
{
    struct sizing_inputs inputs = cluster();
    const struct sizing_answer answer = answer_of(&inputs, 512), again = answer_of(&inputs, 512);

    assert_memory_equal(&answer.samples_per_s, &again.samples_per_s, sizeof answer.samples_per_s);
    assert_true(answer.samples_per_s.low < answer.samples_per_s.median);
    assert_true(answer.samples_per_s.median < answer.samples_per_s.high);
    assert_true(answer.upgrade_count > 3);
    for (unsigned i = 1; i < answer.upgrade_count; i++)
        assert_true(answer.upgrades[i].gain <= answer.upgrades[i - 1].gain);
    for (int i = 0; i < SIZING_INPUT_COUNT; i++)
        inputs.of[i].spread = 0;
    const struct sizing_answer sure = answer_of(&inputs, 512);
    assert_share(sure.samples_per_s.high, sure.samples_per_s.low, 1e-12);
}

/* The goal is a share of what the GPUs do: however fast they are, enough storage keeps them busy.
 */
static void a_goal_is_that_of_the_gpus_drawn(void **unused)
{
    struct sizing_inputs inputs;
    struct sizing_answer answer;
    const struct sizing_request request = {
        .inputs = &inputs, .gpus = 8, .busy = 0.9, .draws = 40, .seed = 3};

    sizing_inputs_start(&inputs);
    assert_int_equal(quantity_parse("1000 +-50%", &inputs.of[SIZING_GPU_RATE]), 0);
    assert_int_equal(sizing_answer(&request, &answer), 0);
    assert_true(answer.samples_per_s.low < 0.8 * answer.goal_samples_per_s);
    assert_true(answer.probability == 1);
}

static void needs_are_products(void **unused)
{
    const struct sizing_inputs inputs = cluster();
    const struct sizing_answer answer = answer_of(&inputs, 64);

    assert_true(answer.plant.nodes == 8);
    assert_share(answer.goal_samples_per_s, 64 * 7950.0, 1e-12);
    assert_share(answer.storage_bytes_per_s, 64 * 7950.0 * 114660, 1e-12);
    assert_share(answer.storage_reads_per_s, 64 * 7950.0 * 114660 / 1048576, 1e-12);
    assert_share(answer.start_bytes, 64 * 400.0 * 114660 * 3, 1e-12);
}

/* 12 GPUs on two nodes of 8 are 12, not 16: neither rates nor needs are those of full nodes. */
static void nodes_that_are_not_full(void **unused)
{
    const struct sizing_inputs inputs = cluster();

    const struct sizing_answer answer = answer_of(&inputs, 12), full = answer_of(&inputs, 16);
    assert_true(answer.plant.nodes == 2 && answer.plant.of[SIZING_GPUS] == 6);
    assert_true(answer.samples_per_s.high <= 1.001 * answer.goal_samples_per_s);
    assert_true(answer.start_bytes < 0.8 * full.start_bytes);
    assert_true(answer_of(&inputs, 9).plant.of[SIZING_GPUS] == 4.5);
    assert_true(answer_of(&inputs, 3).plant.of[SIZING_GPUS] == 3);
}

static void the_largest_cluster(void **unused)
{
    struct sizing_inputs inputs = cluster();

    inputs.of[SIZING_GPUS].value = 1; /* 16,384 nodes */
    const struct sizing_answer answer = answer_of(&inputs, 16384);
    assert_true(answer.plant.nodes == 16384);
    assert_int_equal(answer.first.limit, SIZING_PART_STORAGE);
    assert_true(answer.outcome.samples_per_s < 1.001 * answer.first.of[SIZING_PART_STORAGE] ||
                answer.outcome.later_samples_per_s > answer.outcome.first_samples_per_s);
    inputs.of[SIZING_BATCH].value = 0;
    struct sizing_answer refused;
    const struct sizing_request request = {.inputs = &inputs, .gpus = 1, .busy = 1, .draws = 1};
    assert_int_not_equal(sizing_answer(&request, &refused), 0);
    assert_reason("batch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slow_storage),
        cmocka_unit_test(an_epoch_smaller_than_a_batch),
        cmocka_unit_test(a_limited_epoch_fills_the_buffer),
        cmocka_unit_test(a_throttle_lets_reads_begin),
        cmocka_unit_test(a_read_brings_all_its_samples_at_once),
        cmocka_unit_test(the_io_thread_begins_all_reads_first),
        cmocka_unit_test(cores_decode_while_nothing_is_loaded),
        cmocka_unit_test(a_window_is_read_before_the_buffer_draws),
        cmocka_unit_test(simulation_agrees_with_the_formula),
        cmocka_unit_test(queues_matter_where_parts_are_equal),
        cmocka_unit_test(a_curve_by_hand),
        cmocka_unit_test(a_curve_limits_the_plant),
        cmocka_unit_test(a_batch_is_decoded_during_a_step),
        cmocka_unit_test(more_is_never_slower),
        cmocka_unit_test(caches_by_epoch_and_order),
        cmocka_unit_test(the_formula_is_that_of_an_lru_cache),
        cmocka_unit_test(gradients_by_hand),
        cmocka_unit_test(checkpoints_by_hand),
        cmocka_unit_test(uncertainty_is_carried_through),
        cmocka_unit_test(a_goal_is_that_of_the_gpus_drawn),
        cmocka_unit_test(needs_are_products),
        cmocka_unit_test(nodes_that_are_not_full),
        cmocka_unit_test(the_largest_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
