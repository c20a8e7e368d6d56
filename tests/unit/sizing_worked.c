/* SPDX-License-Identifier: Apache-2.0
 * The closed formulas of `iobench size`, worked by hand for 6 GPUs in two nodes of 4. The same
 * cluster as in tests/cli/size_worked.sh, which compares what is printed. */
#include "tests/unit/unit.h"

#include "cmd/size/model.h"

static struct sizing_inputs hand(void)
{
    static const struct {
        enum sizing_input input;
        double value;
    } rows[] = {
        {SIZING_GPU_RATE, 100},
        {SIZING_BATCH, 50},
        {SIZING_GRADIENT_BYTES, 2e9},
        {SIZING_SAMPLE_BYTES, 1e6},
        {SIZING_SAMPLES, 8000},
        {SIZING_READ_BYTES, 5e5},
        {SIZING_AMPLIFICATION, 1.5},
        {SIZING_DECODE_S, 0.02},
        {SIZING_LOAD_S, 0.004},
        {SIZING_GPUS, 4},
        {SIZING_CORES, 16},
        {SIZING_CACHE_BYTES, 2e9},
        {SIZING_DEPTH, 64},
        {SIZING_PREFETCH, 2},
        {SIZING_PORT_RATE, 1e9},
        {SIZING_PORT_SHARED, 1},
        {SIZING_FABRIC_RATE, 5e9},
        {SIZING_FABRIC_LATENCY_S, 0.01},
        {SIZING_FABRIC_EFFICIENCY, 0.8},
        {SIZING_STORAGE_RATE, 3e9},
        {SIZING_STORAGE_WRITE_RATE, 3e9},
        {SIZING_STORAGE_READS, 4500},
        {SIZING_STORAGE_LATENCY_S, 0.02},
        {SIZING_STORAGE_CLIENT_RATE, 2e9},
        {SIZING_SERVER_CACHE_BYTES, 2e9},
        {SIZING_SERVER_CACHE_RATE, 12e9},
        {SIZING_EPOCHS, 2},
        {SIZING_CHECKPOINT_BYTES, 90e9},
    };
    struct sizing_inputs inputs;

    sizing_inputs_start(&inputs);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        inputs.of[rows[i].input].value = rows[i].value;
    return inputs;
}

/* A step computes for 50 / 100 = 0.5 s, a third of it forward. A ring of 2 nodes sends 2 x 1/2 of
 * 2 GB at 5 GB/s x 0.8: 0.5 s, and 2 x 1 messages of 10 ms. 1/6 + 0.52 s. */
static const double STEP_S = 0.5 / 3 + 0.52;

static void parts_of_the_rates(void **unused)
{
    const struct sizing_inputs inputs = hand();
    struct sizing_plant plant = sizing_plant_of(&inputs, 2, NULL);

    plant.of[SIZING_GPUS] = 3;
    assert_equal(sizing_exchange_s(&plant), 0.52);
    assert_equal(sizing_step_s(&plant), STEP_S);
    assert_equal(sizing_hidden_exchange_rate(&plant), 6e9); /* 2 GB in two thirds of 0.5 s */
    /* (0.02 + 0.004) s on 16 cores; on 8 threads decoding takes longer; 2 cores: 0.012. */
    assert_equal(sizing_decode_s(&plant), 0.0015);
    plant.of[SIZING_THREADS] = 8;
    assert_equal(sizing_decode_s(&plant), 0.0025);
    plant.of[SIZING_THREADS] = 0;
    plant.of[SIZING_CORES] = 2;
    assert_equal(sizing_decode_s(&plant), 0.012);
    plant.of[SIZING_CORES] = 16;
    /* Reads lose half of the port while gradients use it, 0.52 s of each step. */
    assert_equal(sizing_node_bytes_per_s(&plant, 0), 1e9 * (1 - 0.52 / STEP_S / 2));
    plant.of[SIZING_PORT_SHARED] = 0;
    assert_equal(sizing_node_bytes_per_s(&plant, 0), 1e9);
    plant.of[SIZING_PORT_RATE] = 0;
    assert_equal(sizing_node_bytes_per_s(&plant, 0), 1.125e9); /* 4,500 x 0.5 MB for two */
    plant.of[SIZING_STORAGE_READS] = 0;
    assert_equal(sizing_node_bytes_per_s(&plant, 0), 1.5e9); /* 3 GB/s for two */
    plant.of[SIZING_STORAGE_RATE] = 0;
    assert_equal(sizing_node_bytes_per_s(&plant, 0), 1.6e9); /* 64 x 0.5 MB in 20 ms */
    plant.of[SIZING_STORAGE_LATENCY_S] = 0;
    assert_equal(sizing_node_bytes_per_s(&plant, 0), 2e9); /* of a client */
    /* Three nodes: 2 x 2/3 x 2 GB / 4 GB/s, 2 x ceil(log2 3) messages. One: nothing. */
    plant.nodes = 3;
    assert_equal(sizing_exchange_s(&plant), 2.0 / 3 + 0.04);
    plant.nodes = 1;
    assert_near(sizing_exchange_s(&plant), 0, 0);
    assert_equal(sizing_step_s(&plant), 0.5);
}

/* A cache of 2 of 8 GB: none hits in the first epoch; in new shares a quarter, of what was read;
 * fixed shares fit by half: 1/2 + 1/2 ln 1/2; in order never. The servers': a quarter at 12 GB/s,
 * the rest at 3. */
static void epochs_and_caches(void **unused)
{
    const struct sizing_inputs inputs = hand();
    struct sizing_plant plant = sizing_plant_of(&inputs, 2, NULL);

    plant.of[SIZING_GPUS] = 3;
    const struct sizing_rates first = sizing_rates(&plant, 0), later = sizing_rates(&plant, 1);
    assert_equal(first.of[SIZING_PART_GPU], 300 / STEP_S);
    assert_equal(first.of[SIZING_PART_STORAGE], 2000); /* 3 GB/s by 1.5 MB */
    assert_equal(first.of[SIZING_PART_READS], 1500);   /* 2.25 GB/s */
    assert_equal(first.of[SIZING_PART_CLIENT], 2e9 * (1 - 0.52 / STEP_S / 2) / 1.5e6);
    assert_equal(first.of[SIZING_PART_DEPTH], 3.2e9 / 1.5e6);
    assert_equal(first.of[SIZING_PART_CORES], 2 / 0.0015);
    assert_equal(first.of[SIZING_PART_LOADER], 500);
    assert_int_equal(first.limit, SIZING_PART_GPU);
    assert_int_equal(first.next, SIZING_PART_LOADER);
    assert_near(sizing_hits(&plant, 0), 0, 0);
    assert_equal(sizing_hits(&plant, 1), 0.25);
    assert_equal(later.of[SIZING_PART_STORAGE], 1 / (0.25 / 12e9 + 0.75 / 3e9) / (1.5e6 * 0.75));
    assert_equal(later.of[SIZING_PART_READS], 2000);
    assert_equal(later.of[SIZING_PART_LOADER], 500);
    plant.of[SIZING_FIXED] = 1;
    assert_equal(sizing_hits(&plant, 1), 0.5 + 0.5 * log(0.5));
    plant.of[SIZING_SEQUENTIAL] = 1;
    assert_near(sizing_hits(&plant, 1), 0, 0);
    plant.of[SIZING_CACHE_BYTES] = 4e9;
    assert_equal(sizing_hits(&plant, 1), 1);
}

static void what_the_goal_needs(void **unused)
{
    const struct sizing_inputs inputs = hand();
    const struct sizing_request request = {
        .inputs = &inputs, .gpus = 6, .busy = 0.9, .draws = 20, .seed = 1};
    const double mtbf_s = 54.0 * 86400 * 16384 / 419 / 6; /* of 6 GPUs, as Llama 3's */
    struct sizing_answer answer;

    assert_int_equal(sizing_answer(&request, &answer), 0);
    assert_equal(answer.plant.nodes, 2);
    assert_equal(answer.plant.of[SIZING_GPUS], 3);
    assert_equal(answer.goal_samples_per_s, 540); /* 0.9 x 6 x 100 */
    assert_equal(answer.storage_bytes_per_s, 810e6);
    assert_equal(answer.storage_reads_per_s, 1620);
    assert_equal(answer.node_bytes_per_s, 405e6);
    assert_equal(answer.cores, 6.48);         /* 270 x 0.024 s */
    assert_equal(answer.start_bytes, 1.35e9); /* 2 x 3 x 50 x 1.5 MB, three batches */
    assert_equal(answer.start_bytes_per_s, 1.35e9 / STEP_S);
    assert_equal(answer.fabric_bytes_per_s, 6e9);
    assert_equal(answer.checkpoint_s, 45); /* 90 GB through two ports of 1 GB/s */
    assert_equal(answer.checkpoint_bytes_per_s, 2e9);
    assert_equal(sizing_mtbf_s(&answer.plant), mtbf_s);
    assert_equal(answer.checkpoint_interval_s, sqrt(2 * 45 * mtbf_s));
    /* A hundredth of the time: s / (i + s) = 0.01 with i = sqrt(2 mtbf s). */
    assert_equal(answer.checkpoint_write_per_s, 90e9 * 99 * 99 / (2 * mtbf_s));
    assert_equal(answer.checkpoint_read_per_s, 90e9 / (0.01 * mtbf_s));
    assert_equal(answer.outcome.checkpoint_share, 45 / (45 + sqrt(2 * 45 * mtbf_s)));
    assert_near(answer.probability, 0, 0); /* 437 of 540 samples/s */
    /* Nothing is uncertain: each range is a point. */
    assert_equal(answer.samples_per_s.low, answer.samples_per_s.high);
    assert_equal(answer.samples_per_s.median, answer.samples_per_s.high);
    assert_equal(answer.checkpoint_share.median, answer.outcome.checkpoint_share);
    assert_int_equal(answer.upgrade_count, SIZING_PART_COUNT);
    assert_int_equal(answer.upgrades[0].part, SIZING_PART_GPU);
    assert_int_equal(answer.upgrades[1].part, SIZING_PART_LOADER);

    /* Saved each hour: 45 s of 3,645; to lose a hundredth it may take 36.36 s. */
    struct sizing_inputs hourly = inputs;
    hourly.of[SIZING_CHECKPOINT_INTERVAL_S].value = 3600;
    const struct sizing_request asked = {
        .inputs = &hourly, .gpus = 6, .busy = 0.5, .draws = 20, .seed = 1};
    assert_int_equal(sizing_answer(&asked, &answer), 0);
    assert_equal(answer.checkpoint_interval_s, 3600);
    assert_equal(answer.outcome.checkpoint_share, 45 / 3645.0);
    assert_equal(answer.checkpoint_write_per_s, 90e9 * 99 / 3600);
    assert_equal(answer.probability, 1); /* 300 samples/s */
}

/* 1 MB reads: 2 of 100 MB/s +-10% alone, 8 in flight 400 MB/s; 4 are the geometric middle, 200. */
static void a_curve_of_two_points(void **unused)
{
    struct sizing_curve curve = {0};

    assert_int_equal(sizing_curve_parse(&curve, 1e6, "2:1e8, 8:4e8"), 0);
    assert_equal(sizing_curve_rate(&curve, 1e6, 2, 0), 100e6);
    assert_equal(sizing_curve_rate(&curve, 1e6, 1, 0), 50e6);
    assert_equal(sizing_curve_rate(&curve, 1e6, 4, 0), 200e6);
    assert_equal(sizing_curve_rate(&curve, 1e6, 8, 0), 400e6);
    assert_equal(sizing_curve_rate(&curve, 1e6, 99, 0), 400e6);
    assert_equal(sizing_curve_rate(&curve, 1e5, 2, 0), 10e6);
    assert_equal(sizing_curve_rate(&curve, 1e7, 2, 0), 100e6);
    /* 4 MB reads of 400 MB/s at depth 2: 2 MB are in the middle, 200. */
    assert_int_equal(sizing_curve_parse(&curve, 4e6, "2:4e8"), 0);
    assert_equal(sizing_curve_rate(&curve, 2e6, 2, 0), 200e6);
    assert_equal(sizing_curve_best(&curve, 1e6, 0), 400e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_the_rates),
        cmocka_unit_test(epochs_and_caches),
        cmocka_unit_test(what_the_goal_needs),
        cmocka_unit_test(a_curve_of_two_points),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
