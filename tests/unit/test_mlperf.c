/* SPDX-License-Identifier: Apache-2.0
 * Rules of MLPerf Storage against figures computed by hand. */
#include "tests/unit/unit.h"

#include "base/option.h"
#include "base/profiles/profiles.h"
#include "pipeline/settings/job.h"
#include "report/summary.h"
#include "trainer/trainer.h"

#include <math.h>
#include <string.h>

static const uint64_t GIB = UINT64_C(1) << 30;

static struct mlperf judge(const char *name, struct mlperf_facts facts)
{
    struct mlperf judgement = {0};

    assert_int_equal(mlperf_workload_load(name, &judgement.workload), 0);
    if (facts.step_s == 0)
        facts.step_s = judgement.workload.step_s;
    mlperf_judge(&facts, &judgement);
    return judgement;
}

static struct mlperf_facts good(void)
{
    return (struct mlperf_facts){.accelerators = 1,
                                 .hosts = 1,
                                 .memory_bytes = 64 * GIB,
                                 .samples = 3500,
                                 .epochs = 5,
                                 .prefetch = 2,
                                 .threads = 4,
                                 .is_whole = true,
                                 .runs = 6,
                                 .lowest_au_percent = 90};
}

/* 500 steps of 7 samples are 3,500; 5 x 64 GiB are 2,343.6 samples of 146,600,628 bytes, 5 x 256
 * GiB on two hosts 18,750. */
static void the_data_set_is_large_enough(void **unused)
{
    struct mlperf_facts facts = good();
    struct mlperf judgement = judge("unet3d-b200", facts);

    assert_true(judgement.samples_needed == 3500);
    assert_true(judgement.rules[MLPERF_DATASET].met);
    facts.samples = 3499;
    judgement = judge("unet3d-b200", facts);
    assert_false(judgement.rules[MLPERF_DATASET].met);
    assert_string_equal(judgement.rules[MLPERF_DATASET].text,
                        "dataset 477.73 GiB < 477.86 GiB (500 steps)");
    facts.memory_bytes = UINT64_C(700) * 146600628; /* as much as 500 steps */
    judgement = judge("unet3d-b200", facts);
    assert_non_null(strstr(judgement.rules[MLPERF_DATASET].text, "(5 x the memory of the hosts)"));
    facts.accelerators = 2;
    assert_true(judge("unet3d-b200", facts).samples_needed == 7000);
    facts.hosts = 2;
    facts.memory_bytes = 256 * GIB;
    judgement = judge("unet3d-b200", facts);
    assert_true(judgement.samples_needed == 18751);
    assert_non_null(strstr(judgement.rules[MLPERF_DATASET].text, "(5 x the memory of the hosts)"));
    facts.samples = 18751;
    facts.is_whole = false;
    assert_false(judge("unet3d-b200", facts).rules[MLPERF_DATASET].met);
}

/* Each remaining rule fails alone. */
static void each_rule_is_judged(void **unused)
{
    struct mlperf_facts facts[MLPERF_RULES];
    char text[MLPERF_TEXT_BYTES];

    for (int i = 0; i < MLPERF_RULES; i++)
        facts[i] = good();
    facts[MLPERF_DATASET].samples = 1;
    facts[MLPERF_RUNS].runs = 5;
    facts[MLPERF_EPOCHS].epochs = 1;
    facts[MLPERF_AU].lowest_au_percent = 89.9;
    facts[MLPERF_STEP].step_s = 0.15;
    facts[MLPERF_READS].prefetch = 3;
    for (int i = 0; i < MLPERF_RULES; i++) {
        const char *name = i == MLPERF_WORKLOAD ? "unet3d-h100" : "unet3d-b200";
        const struct mlperf judgement = judge(name, facts[i]);
        for (int k = 0; k < MLPERF_RULES; k++)
            assert_int_equal(judgement.rules[k].met, k != i);
        mlperf_sentence(&judgement, text);
        assert_non_null(strstr(text, "would not be a submission: "));
        assert_non_null(strstr(text, judgement.rules[i].text));
        assert_non_null(strstr(text, "In no case an MLPerf result"));
    }
    struct mlperf judgement = judge("unet3d-b200", good());
    assert_non_null(strstr(mlperf_sentence(&judgement, text), "meets the rules that are checked"));
    assert_non_null(strstr(text, "In no case an MLPerf result"));
    facts[0] = good();
    facts[0].lowest_au_percent = NAN;
    assert_false(judge("unet3d-b200", facts[0]).rules[MLPERF_AU].met);
}

/* 43.21 samples/s are one emulated B200, but 0.60 of a real H100 (71.5). */
static void real_gpus_stand_beside(void **unused)
{
    struct mlperf judgement = judge("unet3d-b200", good());
    char text[MLPERF_TEXT_BYTES];

    mlperf_feeds(&judgement, 7 / 0.162, text);
    assert_non_null(strstr(text, "1.00 emulated B200 of 43.2 samples/s"));
    assert_non_null(strstr(text, "1.13 A100 of 38.1, 0.60 H100 of 71.5, 0.57 H200 of 75.3"));
    judgement = judge("cosmoflow-h100", good());
    assert_non_null(strstr(mlperf_feeds(&judgement, 286, text), "none are known"));
}

/* AU of MLPerf's code, by hand: 10 steps of 0.1 s in 1.5 s, of which the first took 0.4 s (0.3 s to
 * load, 0.1 s to compute): 0.9 / 1.1. The mean over epochs, each without its first step. */
static void au_leaves_out_the_first_step_of_each_epoch(void **unused)
{
    struct result_epoch epochs[] = {{.batches = 10,
                                     .wall_ns = 1500000000,
                                     .compute_ns = 1000000000,
                                     .first_step_ns = 400000000,
                                     .first_compute_ns = 100000000},
                                    {.batches = 10,
                                     .wall_ns = 1000000000,
                                     .compute_ns = 1000000000,
                                     .first_step_ns = 100000000,
                                     .first_compute_ns = 100000000}};
    const struct result_run run = {.epochs = epochs, .epoch_count = 2};

    assert_true(fabs(result_epoch_mlperf_au_percent(&epochs[0]) - 100 * 0.9 / 1.1) < 1e-9);
    assert_true(fabs(result_run_mlperf_au_percent(&run) - (100 * 0.9 / 1.1 + 100) / 2) < 1e-9);
}

/* Two ranks on a node, each an accelerator: an epoch's samples are of both, its times those of the
 * average rank, 10 steps of 0.162 s. The first of the runs, at an AU of 50%, does not count. */
static void a_result_of_two_ranks_is_judged(void **unused)
{
    char workload[] = "unet3d-b200";
    struct job job = {.workload = workload,
                      .batch_size = 7,
                      .epochs = 5,
                      .prefetch_batches = 2,
                      .order.ranks = 2};
    struct result_epoch epochs[6];
    struct result_run runs[6] = {{0}};
    const struct result result = {.job = &job,
                                  .ranks = 2,
                                  .nodes = 1,
                                  .records = 7000,
                                  .threads = 4,
                                  .environment.memory_bytes = 64 * GIB,
                                  .run_count = 6,
                                  .runs = runs};
    struct mlperf judgement;

    for (int i = 0; i < 6; i++) {
        epochs[i] = (struct result_epoch){.samples = 140,
                                          .batches = 20,
                                          .wall_ns = i ? 1700000000 : 3402000000,
                                          .compute_ns = 1620000000,
                                          .nominal_ns = 1620000000,
                                          .first_step_ns = 162000000,
                                          .first_compute_ns = 162000000};
        runs[i] = (struct result_run){.epochs = &epochs[i], .epoch_count = 1};
    }
    assert_int_equal(mlperf_check(&result, &judgement), 0);
    for (int i = 0; i < MLPERF_RULES; i++)
        if (!judgement.rules[i].met)
            fail_msg("%s", judgement.rules[i].text);
    assert_string_equal(judgement.rules[MLPERF_STEP].text,
                        "a batch of 2 of an accelerator's, step 0.162 s of 0.162 s");
}

/* Both forms of step and batch in a profile agree, and the profile can be replayed. */
static void shipped_workloads_agree_with_themselves(void **unused)
{
    int count = 0;

    for (const struct profile_shipped *row = profile_shipped; row->family; row++) {
        struct mlperf_workload workload;
        struct plugin_choice choice;
        char trainer[64], batch[32];
        struct ini ini;
        if (strcmp(row->family, "workload") != 0)
            continue;
        count++;
        assert_int_equal(mlperf_workload_load(row->name, &workload), 0);
        assert_int_equal(profiles_parse(row->name, row->text, &ini), 0);
        snprintf(trainer, sizeof trainer, "replay:rate=%llu,scale=%s",
                 (unsigned long long)workload.batch, profiles_text(&ini, "workload", "step-s"));
        snprintf(batch, sizeof batch, "%llu", (unsigned long long)workload.batch);
        assert_string_equal(profiles_text(&ini, "run", "trainer"), trainer);
        assert_string_equal(profiles_text(&ini, "run", "batch-size"), batch);
        assert_int_equal((uint64_t)profiles_number(&ini, "run", "epochs"), workload.epochs);
        assert_int_equal(trainer_choose(trainer, &choice), 0);
        plugin_release(&choice);
        assert_true(workload.au_percent >= 70 && workload.sample_bytes > 100);
        assert_true(*workload.title && *workload.accelerator && *workload.network);
        ini_release(&ini);
    }
    assert_int_equal(count, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_data_set_is_large_enough),
        cmocka_unit_test(each_rule_is_judged),
        cmocka_unit_test(real_gpus_stand_beside),
        cmocka_unit_test(au_leaves_out_the_first_step_of_each_epoch),
        cmocka_unit_test(a_result_of_two_ranks_is_judged),
        cmocka_unit_test(shipped_workloads_agree_with_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
