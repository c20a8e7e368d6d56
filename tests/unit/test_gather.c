/* SPDX-License-Identifier: Apache-2.0
 * Measurements of several ranks, gathered: every total against sums computed by hand. */
#include "tests/unit/wire.h"

#include "pipeline/result/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 2 };
#define S(seconds) ((uint64_t)((double)(seconds)*1e9))

static void fill(struct result_run *run, uint32_t rank)
{
    const uint64_t r = rank + 1;

    *run = (struct result_run){.epochs_run = EPOCHS,
                               .epoch_count = EPOCHS,
                               .read_errors = r,
                               .short_reads = 10 * r,
                               .memory_peak_bytes = 100 * r,
                               .decode = {.images = 7 * r, .failed = r}};
    run->epochs = calloc(EPOCHS, sizeof *run->epochs);
    for (uint64_t k = 0; k < EPOCHS; k++)
        run->epochs[k] = (struct result_epoch){
            .epoch = k,
            .samples = 100 * r + k,
            .skipped = r,
            .batches = 10 * r,
            .record_bytes = 1000 * r,
            .request_bytes = 1100 * r,
            .requests = 5 * r,
            .wall_ns = S(r), /* rank 2 is the slowest */
            .wait_ns = S(0.1) * r,
            .compute_ns = S(0.3) * r,
            .first_batch_ns = 10 * r,
            .paced_samples = 90 * r,
            .paced_ns = S(0.9) * r,
            .read_samples = 101 * r,
            .read_ns = S(0.8) * r,
            .start_barrier_ns = 30 * r,
            .waits = {.loader_storage_ns = 60 * r},
            .limit = rank == 2 ? RESULT_LIMIT_DECODE : RESULT_LIMIT_STORAGE,
            /* ranks 0 and 2 are node leaders: a node's devices are counted once */
            .device = {.known = true,
                       .of_node = true,
                       .bytes = 400 * r,
                       .beneath_known = true,
                       .beneath_bytes = 300 * r},
            .digest_sum = r,
            .digest_xor = 1 << rank};
    histogram_add(&run->read_latency_ns, 1000 * r);
    histogram_add(&run->epoch_latency_ns[rank == 0 ? RESULT_EPOCH_FIRST : RESULT_EPOCH_LATER],
                  1000 * r);
}

static void clear(struct result_run *run)
{
    free(run->epochs);
    free(run->ranks);
    free(run->nodes);
}

/* The run as rank 0 sees it. */
static void gather_all(struct result_run *run,
                       void (*change)(struct result_run *run, uint32_t rank))
{
    wire.is_kept = false;
    for (uint32_t rank = RANKS; rank-- > 0;) {
        struct ranks ranks = as_rank(rank);
        fill(run, rank);
        if (change)
            change(run, rank);
        wire.is_kept = rank == 0;
        assert_int_equal(gather_run(&ranks, EPOCHS, run), 0);
        if (rank)
            clear(run);
    }
}

static void counts_and_bytes_are_sums(void **unused)
{
    struct result_run run;

    gather_all(&run, NULL);
    assert_int_equal(run.rank_count, RANKS);
    assert_int_equal(run.epoch_count, EPOCHS);
    for (uint64_t k = 0; k < EPOCHS; k++) {
        const struct result_epoch *epoch = &run.epochs[k];
        assert_int_equal(epoch->samples, 600 + 3 * k);
        assert_int_equal(epoch->skipped, 6);
        assert_int_equal(epoch->batches, 60);
        assert_int_equal(epoch->record_bytes, 6000);
        assert_int_equal(epoch->request_bytes, 6600);
        assert_int_equal(epoch->requests, 30);
        assert_int_equal(epoch->digest_sum, 6);
        assert_int_equal(epoch->digest_xor, 7);
        assert_int_equal(epoch->device.bytes, 400 + 1200); /* of both nodes */
        assert_int_equal(epoch->device.beneath_bytes, 300 + 900);
    }
    assert_int_equal(run.read_errors, 6);
    assert_int_equal(run.short_reads, 60);
    assert_int_equal(run.memory_peak_bytes, 600);
    assert_int_equal(run.decode.images, 42);
    assert_int_equal(run.decode.failed, 6);
    assert_int_equal(run.read_latency_ns.count, 3);
    assert_int_equal(run.read_latency_ns.maximum, 3000);
    assert_int_equal(run.epoch_latency_ns[RESULT_EPOCH_FIRST].sum, 1000);
    assert_int_equal(run.epoch_latency_ns[RESULT_EPOCH_LATER].sum, 5000);
    clear(&run);
}

static void times_are_means_and_the_slowest_rank(void **unused)
{
    struct result_run run;

    gather_all(&run, NULL);
    assert_int_equal(run.epochs[0].wall_ns, S(3));
    assert_int_equal(run.epochs[0].limit, RESULT_LIMIT_DECODE);
    assert_int_equal(run.epochs[0].first_batch_ns, 30);
    assert_int_equal(run.epochs[0].paced_samples, 540);
    assert_int_equal(run.epochs[0].paced_ns, S(0.9) * 3);
    assert_int_equal(run.epochs[0].read_samples, 606);
    assert_int_equal(run.epochs[0].read_ns, S(0.8) * 3);
    assert_int_equal(run.epochs[0].wait_ns, S(0.2));
    assert_int_equal(run.epochs[0].compute_ns, S(0.6));
    assert_int_equal(run.epochs[0].start_barrier_ns, 60);
    assert_int_equal(run.epochs[0].waits.loader_storage_ns, 120);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(run.ranks[i].rank, i);
        assert_int_equal(run.ranks[i].node, i == 2);
        assert_int_equal(run.ranks[i].total.samples, 200 * (i + 1) + 1);
        assert_int_equal(run.ranks[i].total.wall_ns, 2 * S(i + 1));
        assert_int_equal(run.ranks[i].read_max_ns, 1000 * (i + 1));
    }
    clear(&run);
}

/* Ranks that start at 0, 0.5 and 0.1 s, and learn at 1.41 s that the last one ended at 1.4 s. */
static void start_apart(struct result_run *run, uint32_t rank)
{
    static const uint64_t start_ms[RANKS] = {0, 500, 100}, wall_ms[RANKS] = {1000, 900, 1000};

    run->epochs[0].wall_ns = wall_ms[rank] * 1000000;
    run->epochs[0].met_ns = (1410 - start_ms[rank]) * 1000000;
}

static void an_epoch_lasts_from_the_first_start_to_the_last_end(void **unused)
{
    struct result_run run;

    gather_all(&run, start_apart);
    assert_int_equal(run.epochs[0].wall_ns, UINT64_C(1400000000));
    assert_int_equal(run.ranks[1].total.wall_ns, UINT64_C(900000000) + S(2)); /* a rank's own */
    clear(&run);
    struct result_rank ranks[RANKS] = {0}; /* as while training, epoch by epoch */
    for (uint32_t i = 0; i < RANKS; i++) {
        struct result_run own;
        fill(&own, i);
        start_apart(&own, i);
        ranks[i].total = own.epochs[0];
        clear(&own);
    }
    assert_int_equal(gather_epoch_ns(&ranks->total, sizeof *ranks, RANKS), UINT64_C(1400000000));
    assert_int_equal(gather_epoch_ns(&ranks->total, sizeof *ranks, 1), UINT64_C(1000000000));
}

static void count_for_itself(struct result_run *run, uint32_t rank)
{
    for (uint64_t k = 0; k < EPOCHS; k++)
        run->epochs[k].device.of_node = false;
}

static void count_nothing(struct result_run *run, uint32_t rank)
{
    if (rank == 1)
        run->epochs[0].device = (struct result_bytes){.reason = "not here"};
    run->epochs[1].device.beneath_known = rank != 2;
}

static void end_early(struct result_run *run, uint32_t rank)
{
    if (rank == 1)
        run->epochs_run = run->epoch_count = 1;
}

static void bytes_of_processes_and_of_nobody(void **unused)
{
    struct result_run run;

    gather_all(&run, count_for_itself);
    assert_int_equal(run.epochs[0].device.bytes, 400 + 800 + 1200);
    clear(&run);
    gather_all(&run, count_nothing);
    assert_false(run.epochs[0].device.known);
    assert_string_equal(run.epochs[0].device.reason, "not here");
    assert_true(run.epochs[1].device.known);
    assert_false(run.epochs[1].device.beneath_known);
    clear(&run);
    gather_all(&run, end_early);
    assert_int_equal(run.epochs_run, 1);
    assert_int_equal(run.epoch_count, 1);
    clear(&run);
}

/* ---- caches ---- */

static void gather_states(const enum residency_state *states, struct result_run *run)
{
    wire.is_kept = false;
    for (uint32_t rank = RANKS; rank-- > 0;) {
        struct ranks ranks = as_rank(rank);
        struct result_cold mine = {.pages = states[rank],
                                   .dropped = rank != 2,
                                   .metadata_dropped = rank != 1,
                                   .resident_bytes = 10 * (rank + 1),
                                   .total_bytes = 1000,
                                   .read_bytes = 400,
                                   .residue_percent = rank + 1.0};
        snprintf(mine.reason, sizeof mine.reason, "reason %u", rank);
        *run = (struct result_run){0};
        wire.is_kept = rank == 0;
        assert_int_equal(gather_cold(&ranks, &mine, run), 0);
        if (rank)
            clear(run);
    }
}

/* One of several nodes was not dropped: the result is as warm as that node. */
static void the_worst_node_counts(void **unused)
{
    const enum residency_state cold = RESIDENCY_COLD, warm = RESIDENCY_WARM,
                               unverified = RESIDENCY_UNVERIFIED;
    struct result_run run;

    gather_states((const enum residency_state[]){cold, cold, cold}, &run);
    assert_int_equal(run.cold.state, RESULT_CACHE_COLD);
    assert_int_equal(run.node_count, 2);
    assert_int_equal(run.nodes[0].ranks, 2);
    assert_int_equal(run.nodes[1].ranks, 1);
    assert_int_equal(run.cold.resident_bytes, 10 + 20 + 30); /* each of what it reads */
    assert_int_equal(run.cold.read_bytes, 3 * 400);
    assert_int_equal(run.nodes[0].cold.read_bytes, 2 * 400);
    assert_true(run.cold.residue_percent == 5);
    assert_true(run.cold.metadata_dropped); /* of a node its first rank knows */
    assert_false(run.cold.dropped);
    clear(&run);
    gather_states((const enum residency_state[]){cold, cold, warm}, &run);
    assert_int_equal(run.cold.state, RESULT_CACHE_WARM);
    assert_string_equal(run.cold.reason, "b: reason 2");
    clear(&run);
    gather_states((const enum residency_state[]){unverified, cold, cold}, &run);
    assert_int_equal(run.cold.state, RESULT_CACHE_UNVERIFIED);
    clear(&run);
    /* A rank may read other files than the first of its node. */
    gather_states((const enum residency_state[]){cold, warm, cold}, &run);
    assert_int_equal(run.cold.state, RESULT_CACHE_WARM);
    assert_int_equal(run.nodes[0].cold.state, RESULT_CACHE_WARM);
    assert_int_equal(run.nodes[1].cold.state, RESULT_CACHE_COLD);
    assert_string_equal(run.cold.reason, "rank 1: reason 1");
    clear(&run);
}

/* ---- comparing ---- */

static void the_straggler_is_the_longest_at_work(void **unused)
{
    struct result_rank ranks[4] = {{.rank = 0, .leads = true, .host = "a"},
                                   {.rank = 1, .host = "a"},
                                   {.rank = 2, .leads = true, .host = "b"},
                                   {.rank = 3, .host = "b"}};
    struct result_comparison found;

    /* Rank 3 takes as long as the others but waits in the exchange; rank 2 works longest. */
    for (uint64_t i = 0; i < 4; i++)
        ranks[i].total = (struct result_epoch){.samples = 10 * (i + 1),
                                               .wall_ns = S(10),
                                               .exchange_ns = i == 2 ? S(1) : S(4 + i),
                                               .wait_ns = i == 2 ? S(5) : S(1),
                                               .compute_ns = S(2),
                                               .start_barrier_ns = S(i),
                                               .stop_barrier_ns = S(1),
                                               .limit = RESULT_LIMIT_DECODE};
    assert_int_equal(result_compare(ranks, 4, &found), 0);
    assert_int_equal(found.nodes, 2);
    assert_int_equal(found.straggler, 2);
    assert_string_equal(found.straggler_host, "b");
    assert_true(found.behind_percent > 79.9 && found.behind_percent < 80.1); /* 9 s of 5 s */
    assert_int_equal(found.behind_phase, RESULT_PHASE_WAIT);
    assert_int_equal(found.straggler_limit, RESULT_LIMIT_DECODE);
    assert_true(found.samples_per_s.minimum == 1 && found.samples_per_s.median == 2 &&
                found.samples_per_s.maximum == 4);
    assert_true(found.barrier_s.minimum == 1 && found.barrier_s.maximum == 4);
    /* Its exchange is longest, too, but in that a rank waits for others. */
    for (uint64_t i = 0; i < 4; i++)
        ranks[i].total = (struct result_epoch){.samples = 10,
                                               .wall_ns = i == 1 ? S(20) : S(10),
                                               .exchange_ns = i == 1 ? S(8) : S(1),
                                               .compute_ns = i == 1 ? S(5) : S(2)};
    assert_int_equal(result_compare(ranks, 4, &found), 0);
    assert_int_equal(found.straggler, 1);
    assert_int_equal(found.behind_phase, RESULT_PHASE_COMPUTE);
}

/* Only rank 0 prints. */
static void notices_of_other_ranks_are_told_once(void **unused)
{
    static struct result result;
    struct ranks_peer peers[RANKS] = {{.host = "a"}, {.host = "a"}, {.host = "b"}};

    wire.is_kept = false;
    for (uint32_t rank = RANKS; rank-- > 0;) {
        struct ranks ranks = as_rank(rank);
        ranks.peers = peers;
        result = (struct result){0};
        result_notice(&result, "all ranks: %u windows of 1.%u", rank + 9, rank);
        if (rank)
            result_notice(&result, "io_uring is refused; %u threads read instead", 32 * rank);
        if (rank == 2) {
            result_notice(&result, "io_uring is refused");
            result_degraded(&result, "no processor was free");
        }
        wire.is_kept = rank == 0;
        assert_int_equal(gather_notices(&ranks, &result), 0);
        if (rank)
            assert_int_equal(result.notice_count, rank + 1);
    }
    assert_int_equal(result.notice_count, 3);
    assert_string_equal(result.notices[0], "all ranks: 9 windows of 1.0");
    assert_string_equal(result.notices[1],
                        "rank 1 on a and 1 other: io_uring is refused; 32 threads "
                        "read instead");
    assert_string_equal(result.notices[2], "rank 2 on b: io_uring is refused");
    assert_string_equal(result.degraded_reason, "rank 2 on b: no processor was free");
}

static void notices_of_another_build_are_refused(void **unused)
{
    struct ranks_peer peers[RANKS] = {{.host = "a"}};
    static struct result result;

    for (int fault = 0; fault < 2; fault++) {
        struct ranks ranks = as_rank(0);
        ranks.peers = peers;
        result = (struct result){.notice_count = fault ? 1 : RESULT_NOTICES + 1};
        memset(result.notices[0], 'x', sizeof result.notices[0]);
        assert_int_equal(gather_notices(&ranks, &result), -EPROTO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_bytes_are_sums),
        cmocka_unit_test(times_are_means_and_the_slowest_rank),
        cmocka_unit_test(an_epoch_lasts_from_the_first_start_to_the_last_end),
        cmocka_unit_test(bytes_of_processes_and_of_nobody),
        cmocka_unit_test(the_worst_node_counts),
        cmocka_unit_test(the_straggler_is_the_longest_at_work),
        cmocka_unit_test(notices_of_other_ranks_are_told_once),
        cmocka_unit_test(notices_of_another_build_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
