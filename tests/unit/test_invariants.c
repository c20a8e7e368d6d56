/* SPDX-License-Identifier: Apache-2.0
 * Accounts broken by hand, one figure at a time: each is reported, with both figures. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "pipeline/evidence/validity.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <string.h>

#define S(seconds) ((uint64_t)((seconds)*1e9))

/* Two ranks on two nodes; two epochs of 100 records of 50 bytes; batches of 8. */
struct made {
    struct job job;
    struct result result;
    struct result_run run;
    struct result_epoch epochs[2];
    struct result_rank ranks[2];
    struct result_node nodes[2];
};

static struct result_epoch epoch_of(uint64_t number, uint64_t samples, uint64_t batches)
{
    return (struct result_epoch){.epoch = number,
                                 .samples = samples,
                                 .batches = batches,
                                 .record_bytes = 50 * samples,
                                 .request_bytes = 51 * samples,
                                 .requests = samples / 10,
                                 .wall_ns = S(2),
                                 .wait_ns = S(0.5),
                                 .compute_ns = S(1.25),
                                 .upload_ns = S(0.1),
                                 .exchange_ns = S(0.1),
                                 .update_ns = S(0.05),
                                 .first_batch_ns = S(0.25),
                                 .first_step_ns = S(0.5),
                                 .first_compute_ns = S(0.25),
                                 .waits = {.loader_storage_ns = S(1),
                                           .loader_memory_ns = S(1),
                                           .decode_input_ns = S(4),
                                           .decode_slot_ns = S(2)}};
}

/* *made must not move: pointers refer into it. */
static void make(struct made *made)
{
    memset(made, 0, sizeof *made);
    made->job = (struct job){
        .order.ranks = 2, .order.remainder = PLAN_UNEVEN, .order.partition = PLAN_DISJOINT};
    made->result = (struct result){
        .job = &made->job, .ranks = 2, .nodes = 2, .records = 100, .record_bytes_total = 5000};
    for (uint64_t i = 0; i < 2; i++) {
        made->epochs[i] = epoch_of(i, 100, 14);
        made->ranks[i].total = epoch_of(0, 100, 14);
        made->ranks[i].total.wall_ns = S(3.5 + 0.5 * (double)i);
        made->nodes[i].ranks = 1;
    }
    made->run = (struct result_run){.valid = true,
                                    .epochs_run = 2,
                                    .epoch_count = 2,
                                    .epochs = made->epochs,
                                    .rank_count = 2,
                                    .ranks = made->ranks,
                                    .node_count = 2,
                                    .nodes = made->nodes,
                                    .decode = {.images = 200, .bytes = 9000}};
    for (uint64_t i = 0; i < 20; i++)
        histogram_add(&made->run.read_latency_ns, 1000 + i * 1000);
    made->run.epoch_latency_ns[RESULT_EPOCH_FIRST].count = 8;
    made->run.epoch_latency_ns[RESULT_EPOCH_LATER].count = 12;
}

static void expect(int code, const char *figures)
{
    assert_int_equal(code, -EPROTO);
    if (!strstr(fail_reason(), figures))
        fail_msg("'%s' is not in: %s", figures, fail_reason());
    assert_reason("a bug of iobench");
}

static void expect_run(const struct made *made, const char *figures)
{
    expect(invariants_run(&made->result, &made->run), figures);
}

static void a_sound_account_passes(void **unused)
{
    struct result_epoch epoch = epoch_of(0, 100, 13);
    struct made made;

    assert_int_equal(invariants_epoch(&epoch, 100, 8, 3), 0);
    make(&made);
    assert_int_equal(invariants_run(&made.result, &made.run), 0);
    made.run.rank_count = made.run.node_count = 0; /* alone */
    made.result.ranks = 1;
    made.job.order.ranks = 1;
    assert_int_equal(invariants_run(&made.result, &made.run), 0);
}

/* Each figure of an epoch in turn; 3 decode threads had 6 s. */
static void a_broken_epoch_is_told(void **unused)
{
    const struct result_epoch sound = epoch_of(0, 100, 13);
    struct result_epoch epoch;

#define BREAK(field, value, figures) \
    epoch = sound;                   \
    epoch.field = value;             \
    expect(invariants_epoch(&epoch, 100, 8, 3), figures)

    BREAK(samples, 99, "99 samples delivered or skipped, but 100 draws");
    BREAK(skipped, 1, "101 samples delivered or skipped, but 100 draws");
    BREAK(batches, 12, "12 batches, but 13 are");
    BREAK(waits.decode_input_ns, S(4.1), "decoders waited, s: 6.1, but their threads had, s: 6");
    BREAK(waits.decode_slot_ns, S(2.1), "6.1, but their threads had, s: 6");
    BREAK(waits.decode_hints_ns, S(0.1), "6.1, but their threads had, s: 6");
    BREAK(waits.loader_storage_ns, S(1.1), "the loader waited, s: 2.1, but the epoch took 2");
    BREAK(waits.loader_memory_ns, S(1.2), "the loader waited, s: 2.2, but the epoch took 2");
    BREAK(wait_ns, S(0.6), "the trainer's parts add up to, s: 2.1, but the epoch took");
    BREAK(first_batch_ns, S(0.51), "first batch came after, s: 0.51, but the trainer waited 0.506");
    BREAK(compute_ns, S(2), "add up to, s: 2.75, but the epoch took");
    BREAK(upload_ns, S(0.2), "add up to");
    BREAK(exchange_ns, S(0.2), "add up to");
    BREAK(update_ns, S(0.2), "add up to");
    BREAK(update_ns, S(0.05) + 21000001, "add up to"); /* 1% and 1 ms more, to a nanosecond */
    epoch.update_ns--;
    assert_int_equal(invariants_epoch(&epoch, 100, 8, 3), 0);
    BREAK(first_step_ns, S(2.5), "first step ended after, s: 2.5, but the epoch took 2");
    BREAK(first_compute_ns, S(1.5), "the first step's compute, s: 1.5, but that of all steps 1.25");
#undef BREAK
}

static void a_broken_run_is_told(void **unused)
{
    struct made made;

#define BREAK(field, value, figures) \
    make(&made);                     \
    made.field = value;              \
    expect_run(&made, figures)

    BREAK(epochs[1].samples, 101,
          "epoch 2: 101 samples delivered or skipped by all ranks, but 100");
    BREAK(epochs[0].record_bytes, 5200, "bytes delivered: 5200, but bytes requested 5100");
    BREAK(epochs[0].record_bytes, 4999, "4999 bytes delivered, but 5000 bytes of all records");
    BREAK(epochs[0].waits.loader_storage_ns, S(1.5), "the loader waited, s: 2.5");
    BREAK(run.epochs_run, 3, "2 epochs in rows, but 3 were run");
    BREAK(run.read_errors, 1, "21 have a latency or failed, but 20 were requested");
    BREAK(run.read_latency_ns.count, 19, "19 have a latency or failed, but 20 were requested");
    BREAK(run.read_latency_ns.maximum, 500, "sum, ns: 210000, but as many of the longest 10000");
    BREAK(run.epoch_latency_ns[RESULT_EPOCH_LATER].count, 11,
          "19 of the first epoch and of later ones, but 20 have a latency");
    BREAK(run.decode.images, 199, "199 images decoded, but 200 samples delivered");
    BREAK(run.decode.failed, 1, "199 images decoded, but 200 samples delivered");
    BREAK(run.decode.bytes, 10001, "image bytes: 10001, but record bytes 10000");
    BREAK(run.rank_count, 1, "1 ranks reported, but 2 are in the job");
    BREAK(nodes[0].ranks, 2, "3 ranks of all nodes, but 2 are in the job");
    BREAK(ranks[0].total.samples, 90, "190 samples of all ranks, but 200 of all epochs");
    BREAK(ranks[1].total.record_bytes, 1, "5001 bytes of all ranks, but 10000 of all epochs");
    BREAK(ranks[1].total.requests, 9, "19 requests of all ranks, but 20 of all epochs");
    BREAK(ranks[0].total.wall_ns, S(4.5), "slowest rank took, s: 4.5, but all epochs together 4");
#undef BREAK
}

/* Checks that need a record count are skipped without one. */
static void plans_that_leave_out_or_repeat(void **unused)
{
    struct made made;

    make(&made);
    made.job.order.remainder = PLAN_DROP;
    made.epochs[0].samples = 99;
    made.run.decode.images = 199;
    made.ranks[0].total.samples = 99;
    assert_int_equal(invariants_run(&made.result, &made.run), 0);
    make(&made);
    made.job.order.limit_samples = 50;
    made.result.records = 1000;
    assert_int_equal(invariants_run(&made.result, &made.run), 0);
    make(&made);
    made.job.order.partition = PLAN_REPLICATED;
    expect_run(&made, "but 200 records of the data set");
    make(&made);
    made.epochs[0].merged = 1; /* rows of several epochs */
    expect_run(&made, "but 200 records of the data set");
}

static void a_contradiction_makes_the_run_invalid(void **unused)
{
    struct made made;

    make(&made);
    validity_account(&made.result, &made.run);
    assert_true(made.run.valid);
    made.ranks[0].total.samples = 90;
    validity_account(&made.result, &made.run);
    assert_false(made.run.valid);
    assert_non_null(strstr(made.run.invalid_reason, "190 samples of all ranks, but 200"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_account_passes),
        cmocka_unit_test(a_broken_epoch_is_told),
        cmocka_unit_test(a_broken_run_is_told),
        cmocka_unit_test(plans_that_leave_out_or_repeat),
        cmocka_unit_test(a_contradiction_makes_the_run_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
