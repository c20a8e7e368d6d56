/* SPDX-License-Identifier: Apache-2.0
 * Which runs are not what they seem. */
#include "tests/unit/allocations.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "cachectl/cold.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/evidence/witness.h"
#include "readers/reader.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <string.h>

static const struct reader_ops uring_ops = {.plugin = {.name = "uring"}},
                               nvme_ops = {.plugin = {.name = "nvme"}, .is_passthrough = true},
                               null_ops = {.plugin = {.name = "null", .idle = true}};
static const struct job_plugins uring = {.reader = {.plugin = &uring_ops.plugin}},
                                direct = {.reader = {.plugin = &uring_ops.plugin}, .direct = true},
                                nvme = {.reader = {.plugin = &nvme_ops.plugin}, .direct = true},
                                null_reader = {.reader = {.plugin = &null_ops.plugin}};

struct verdict {
    struct result result;
    struct result_run run;
};

/* A run of 1,000 delivered bytes that began cold; `device` bytes left storage. */
static void judge(struct verdict *verdict, enum job_drop drop, const struct job_plugins *plugins,
                  uint64_t device)
{
    static struct result_epoch epoch;
    const struct job job = {.cold.drop_caches = (int)drop};

    epoch = (struct result_epoch){.record_bytes = 1000, .device = {.known = true, .bytes = device}};
    *verdict = (struct verdict){.result = {.valid = true},
                                .run = {.valid = true,
                                        .epoch_count = 1,
                                        .epochs = &epoch,
                                        .cold = {.dropped = true, .metadata_dropped = true}}};
    validity_check(&job, plugins, &verdict->run, &verdict->result);
}

/* Another process reads the same files during the run. */
static void bytes_that_no_storage_gave(void **unused)
{
    struct verdict verdict;

    judge(&verdict, JOB_DROP_STRICT, &uring, 980);
    assert_true(verdict.run.valid);
    judge(&verdict, JOB_DROP_STRICT, &uring, 979);
    assert_false(verdict.run.valid);
    assert_non_null(strstr(verdict.run.invalid_reason, "only 97.9% of the bytes left storage"));
    judge(&verdict, JOB_DROP_YES, &uring, 979);
    assert_true(verdict.run.valid);
    assert_non_null(strstr(verdict.result.degraded_reason, "run 1: only 97.9%"));
    judge(&verdict, JOB_DROP_YES, &uring, 980);
    assert_string_equal(verdict.result.degraded_reason, "");
    judge(&verdict, JOB_DROP_NO, &uring, 500);
    assert_string_equal(verdict.result.degraded_reason, "");
    assert_int_equal(verdict.result.notice_count, 1);
    /* A loop device with its file in memory: the process read everything, the disk only half. */
    judge(&verdict, JOB_DROP_STRICT, &uring, 1000);
    verdict.run = (struct result_run){.valid = true,
                                      .epoch_count = 1,
                                      .epochs = verdict.run.epochs,
                                      .cold = {.metadata_dropped = true}};
    verdict.run.epochs[0].device.beneath_known = true;
    verdict.run.epochs[0].device.beneath_bytes = 500;
    validity_check(&(struct job){.cold.drop_caches = JOB_DROP_STRICT}, &uring, &verdict.run,
                   &verdict.result);
    assert_false(verdict.run.valid);
    assert_non_null(strstr(verdict.run.invalid_reason, "only 50.0%"));
    judge(&verdict, JOB_DROP_STRICT, &null_reader, 0);
    assert_true(verdict.run.valid);
}

/* Ranks of a node that read the same files share the page cache: each byte is read once. */
static void ranks_that_share_a_cache_read_less(void **unused)
{
    static const struct {
        enum plan_partition partition;
        uint32_t ranks, nodes;
        uint64_t least;
    } cases[] = {{PLAN_REPLICATED, 2, 1, 490},
                 {PLAN_REPLICATED, 8, 2, 245},
                 {PLAN_REPLICATED, 2, 2, 980},
                 {PLAN_DISJOINT, 2, 1, 980}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t lack = 0; lack < 2; lack++) {
            struct result_epoch epoch = {.record_bytes = 1000,
                                         .device = {.known = true, .bytes = cases[i].least - lack}};
            struct result_run run = {.valid = true,
                                     .epoch_count = 1,
                                     .epochs = &epoch,
                                     .cold = {.dropped = true, .metadata_dropped = true}};
            struct result result = {
                .valid = true, .ranks = cases[i].ranks, .nodes = cases[i].nodes};
            const struct job job = {.cold.drop_caches = JOB_DROP_STRICT,
                                    .order.partition = (int)cases[i].partition};
            validity_check(&job, &uring, &run, &result);
            assert_int_equal(run.valid, !lack);
        }
}

/* More bytes than the disks delivered cannot have been read from them. */
static void bytes_counted_twice(void **unused)
{
    const uint64_t bytes = 100000000;
    const struct job job = {.cold.drop_caches = JOB_DROP_YES};
    struct result_epoch epoch = {
        .record_bytes = bytes,
        .device = {.known = true, .bytes = 2 * bytes, .beneath_known = true}};
    struct result_run run = {
        .valid = true, .epoch_count = 1, .epochs = &epoch, .cold = {.dropped = true}};
    struct result result = {.valid = true};

    epoch.device.beneath_bytes = 195 * bytes / 100;
    validity_check(&job, &uring, &run, &result);
    assert_non_null(strstr(result.degraded_reason, "by the disks' own counters"));
    result.degraded_reason[0] = '\0';
    epoch.device.beneath_bytes = 197 * bytes / 100; /* the rest may still be in flight */
    validity_check(&job, &uring, &run, &result);
    assert_string_equal(result.degraded_reason, "");
    epoch.device.of_node = true; /* by a witness other than this process */
    epoch.device.beneath_bytes = bytes;
    validity_check(&job, &uring, &run, &result);
    assert_string_equal(result.degraded_reason, "");
}

/* Returns the label of a run of 1,000 bytes, delivered and requested, all from storage. */
static enum result_cache label(struct result_cold cold, enum job_drop drop,
                               const struct job_plugins *plugins, uint64_t device, bool valid)
{
    struct result_epoch epoch = {
        .record_bytes = 1000, .request_bytes = 1000, .device = {.known = true, .bytes = device}};
    const struct job job = {.cold.drop_caches = (int)drop};
    struct result_run run = {.valid = true, .epoch_count = 1, .epochs = &epoch, .cold = cold};
    struct result result = {.valid = true};

    validity_check(&job, plugins, &run, &result);
    assert_int_equal(run.valid, valid);
    if (!valid)
        assert_non_null(strstr(run.invalid_reason, "cold"));
    return run.cold.state;
}

static void a_state_follows_from_its_evidence(void **unused)
{
    enum { COLD, WARM, UNKNOWN }; /* enum residency_state */
    static const struct {
        int pages, server;
        bool metadata, bypassed;
        enum result_cache state;
    } cases[] = {{COLD, SERVER_NONE, true, false, RESULT_CACHE_COLD},
                 {COLD, SERVER_COLD, true, true, RESULT_CACHE_COLD},
                 {COLD, SERVER_COLD, false, false, RESULT_CACHE_DATA_COLD},
                 {COLD, SERVER_UNVERIFIED, false, false, RESULT_CACHE_CLIENT_COLD},
                 {COLD, SERVER_WARM, true, true, RESULT_CACHE_WARM},
                 {WARM, SERVER_NONE, true, false, RESULT_CACHE_WARM},
                 {WARM, SERVER_COLD, false, true, RESULT_CACHE_BYPASSED},
                 {WARM, SERVER_UNVERIFIED, true, true, RESULT_CACHE_CLIENT_COLD},
                 {UNKNOWN, SERVER_NONE, true, false, RESULT_CACHE_UNVERIFIED},
                 {UNKNOWN, SERVER_WARM, true, false, RESULT_CACHE_WARM},
                 {UNKNOWN, SERVER_NONE, false, true, RESULT_CACHE_BYPASSED}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(result_cold_state(&(struct result_cold){
                             .pages = (enum residency_state)cases[i].pages,
                             .server.state = (enum server_state)cases[i].server,
                             .metadata_dropped = cases[i].metadata,
                             .bypassed = cases[i].bypassed}),
                         cases[i].state);
}

/* Each part of a cold cache that is unverified is in the label, and alone fails strict. */
static void nothing_unproven_is_called_cold(void **unused)
{
    struct result_cold cold = {.dropped = true, .metadata_dropped = true};

    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, true), RESULT_CACHE_COLD);
    cold.metadata_dropped = false;
    assert_int_equal(label(cold, JOB_DROP_YES, &uring, 1000, true), RESULT_CACHE_DATA_COLD);
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, false), RESULT_CACHE_DATA_COLD);
    cold.metadata_dropped = true;
    cold.server.state = SERVER_UNVERIFIED;
    assert_int_equal(label(cold, JOB_DROP_YES, &uring, 1000, true), RESULT_CACHE_CLIENT_COLD);
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, false), RESULT_CACHE_CLIENT_COLD);
    cold.server.state = SERVER_COLD;
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, true), RESULT_CACHE_COLD);
    cold.server.state = SERVER_WARM;
    assert_int_equal(label(cold, JOB_DROP_NO, &uring, 1000, true), RESULT_CACHE_WARM);
    assert_int_equal(label(cold, JOB_DROP_YES, &uring, 1000, false), RESULT_CACHE_WARM);
    cold.server.state = SERVER_NONE;
    cold.pages = RESIDENCY_UNVERIFIED;
    assert_int_equal(label(cold, JOB_DROP_YES, &uring, 1000, true), RESULT_CACHE_UNVERIFIED);
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, false), RESULT_CACHE_UNVERIFIED);
}

/* Direct reads bypass the page cache, warm or not, if their bytes left storage. */
static void direct_reads_pass_a_warm_cache_by(void **unused)
{
    struct result_cold cold = {.pages = RESIDENCY_WARM, .metadata_dropped = true};

    assert_int_equal(label(cold, JOB_DROP_YES, &uring, 1000, false), RESULT_CACHE_WARM);
    assert_int_equal(label(cold, JOB_DROP_YES, &direct, 1000, true), RESULT_CACHE_BYPASSED);
    assert_int_equal(label(cold, JOB_DROP_STRICT, &direct, 1000, true), RESULT_CACHE_BYPASSED);
    assert_int_equal(label(cold, JOB_DROP_NO, &direct, 1000, true), RESULT_CACHE_BYPASSED);
    assert_int_equal(label(cold, JOB_DROP_YES, &direct, 979, false), RESULT_CACHE_WARM);
    /* Nothing counts commands to a disk, and no cache is on their way. */
    assert_int_equal(label(cold, JOB_DROP_STRICT, &nvme, 0, true), RESULT_CACHE_BYPASSED);
    cold.pages = RESIDENCY_UNVERIFIED;
    assert_int_equal(label(cold, JOB_DROP_STRICT, &direct, 1000, true), RESULT_CACHE_BYPASSED);
    cold.metadata_dropped = false;
    assert_int_equal(label(cold, JOB_DROP_STRICT, &direct, 1000, false), RESULT_CACHE_BYPASSED);
    cold.server.state = SERVER_UNVERIFIED;
    assert_int_equal(label(cold, JOB_DROP_YES, &direct, 1000, true), RESULT_CACHE_CLIENT_COLD);
}

/* Bytes read by the server's disks show whether the server was cold. */
static void server_disks_are_a_witness(void **unused)
{
    struct result_cold cold = {.metadata_dropped = true,
                               .server = {.state = SERVER_COLD, .disk_known = true}};

    cold.server.disk_read_bytes = 980;
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, true), RESULT_CACHE_COLD);
    cold.server.disk_read_bytes = 979;
    label(cold, JOB_DROP_STRICT, &uring, 1000, false);
    cold.total_bytes = 500; /* read twice, by two nodes: once from disk */
    cold.server.disk_read_bytes = 490;
    label(cold, JOB_DROP_STRICT, &uring, 1000, true);
    /* A server that cannot measure its residency. */
    cold.server.state = SERVER_UNVERIFIED;
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, false), RESULT_CACHE_CLIENT_COLD);
    cold.server.looked = true;
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 1000, true), RESULT_CACHE_COLD);
    cold.server.disk_read_bytes = 489;
    label(cold, JOB_DROP_STRICT, &uring, 1000, false);
    cold.server.disk_read_bytes = 751; /* others read from it too */
    label(cold, JOB_DROP_STRICT, &uring, 1000, false);
    cold.server.disk_read_bytes = 490;
    cold.server.start.resident_known = true; /* known, but not cold, or of another set */
    label(cold, JOB_DROP_STRICT, &uring, 1000, false);
}

/* Counted for all processes, more than half as much again as was read and read ahead. */
static void reads_of_others_prove_nothing(void **unused)
{
    struct result_epoch epoch = {
        .record_bytes = 1000, .request_bytes = 1000, .device = {.known = true, .of_node = true}};
    const struct result_cold cold = {.dropped = true, .metadata_dropped = true};
    struct result_run run;
    struct result result;

    for (int i = 0; i < 8; i++) {
        const bool above = i & 1, ahead = i & 2, direct_reads = i & 4;
        run = (struct result_run){.valid = true, .epoch_count = 1, .epochs = &epoch, .cold = cold};
        result = (struct result){.valid = true};
        run.cold.explained_bytes = ahead ? 2000 : 0;
        run.cold.pages = direct_reads ? RESIDENCY_WARM : RESIDENCY_COLD;
        epoch.device.bytes = (ahead ? UINT64_C(3000) : 1500) + above;
        validity_check(&(struct job){.cold.drop_caches = JOB_DROP_STRICT},
                       direct_reads ? &direct : &uring, &run, &result);
        assert_int_equal(run.valid, !above);
        assert_int_equal(run.cold.state, !above && !direct_reads ? RESULT_CACHE_COLD
                                         : !above                ? RESULT_CACHE_BYPASSED
                                         : direct_reads          ? RESULT_CACHE_WARM
                                                                 : RESULT_CACHE_UNVERIFIED);
        if (above && !direct_reads)
            assert_non_null(strstr(run.invalid_reason, "others read, too"));
    }
    /* The process's own count is exact, however much it reads ahead. */
    epoch.device = (struct result_bytes){.known = true, .bytes = 5000};
    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 5000, true), RESULT_CACHE_COLD);
}

/* Records of 1,000 bytes in pages of 4,096: these leave storage, unless half of them were warm. */
static void pages_leave_storage(void **unused)
{
    struct result_cold cold = {.metadata_dropped = true, .read_bytes = 4096};

    assert_int_equal(label(cold, JOB_DROP_STRICT, &uring, 4096, true), RESULT_CACHE_COLD);
    label(cold, JOB_DROP_STRICT, &uring, 4014, false);
    assert_int_equal(label(cold, JOB_DROP_STRICT, &direct, 1000, true), RESULT_CACHE_COLD);
}

static void steps_that_end_late(void **unused)
{
    const struct job job = {0};
    struct result_epoch epochs[2] = {{.compute_ns = 1050, .nominal_ns = 1000},
                                     {.compute_ns = 1050, .nominal_ns = 1000}};
    struct result_run run = {.valid = true, .epoch_count = 2, .epochs = epochs};
    struct result result = {.valid = true};

    validity_check(&job, &uring, &run, &result);
    assert_string_equal(result.degraded_reason, "");
    epochs[1].compute_ns = 1150;
    validity_check(&job, &uring, &run, &result);
    assert_non_null(strstr(result.degraded_reason, "10.0% longer than the GPU's"));
    /* In an open loop a step lasts until the next batch is due. */
    result.degraded_reason[0] = '\0';
    validity_check(&(struct job){.open_load = 2}, &uring, &run, &result);
    assert_string_equal(result.degraded_reason, "");
}

/* Other ranks are known by their epochs only. */
static void a_rank_without_descriptors_makes_a_run_invalid(void **unused)
{
    struct result_epoch epochs[2] = {{.guard.shortages = 0}, {.guard.shortages = 1}};
    struct result_run run = {.valid = true, .epoch_count = 1, .epochs = epochs};
    struct result result = {.valid = true};

    validity_check(&(struct job){0}, &uring, &run, &result);
    assert_true(run.valid);
    run.epoch_count = 2;
    validity_check(&(struct job){0}, &uring, &run, &result);
    assert_false(run.valid);
    assert_non_null(strstr(run.invalid_reason, "too many open files on another rank"));
    shortage_note(EIO, "damaged");
    fail(-EMFILE, "few: cannot open");
    shortage_note(-ENFILE, "/proc/self/io");
    assert_int_equal(shortage_code(), EMFILE);
    run.valid = true;
    validity_check(&(struct job){0}, &uring, &run, &result);
    assert_non_null(strstr(run.invalid_reason, "may be missing or wrong: few: cannot open"));
}

/* What the machine did makes a run invalid, or, off the clock of runs, the result; the first reason
 * stays. */
static void a_clock_that_lies_is_of_its_run(void **unused)
{
    const struct guard_counts lies = {.passed_ns = 5000000000, .other_ns = 10000000000},
                              paused = {.pauses = 1};
    struct verdict verdict = {.result = {.valid = true}};

    validity_guard(&lies, "the calibration", &verdict.result);
    assert_false(verdict.result.valid);
    assert_non_null(
        strstr(verdict.result.invalid_reason, "the calibration: the clock is unreliable: 5.000 s"));
    judge(&verdict, JOB_DROP_NO, &uring, 1000);
    assert_true(verdict.run.valid);
    verdict.run.epochs[0].guard = paused;
    validity_check(&(struct job){0}, &uring, &verdict.run, &verdict.result);
    assert_false(verdict.run.valid);
    assert_non_null(strstr(verdict.run.invalid_reason, "stopped and continued"));
    assert_true(verdict.result.valid);
    verdict.run.epochs[0].guard = lies;
    validity_check(&(struct job){0}, &uring, &verdict.run, &verdict.result);
    assert_non_null(strstr(verdict.run.invalid_reason, "stopped and continued"));
}

/* Nothing of an nfs:// set is cached here: its caches were dropped if the server's command did it.
 */
static void a_drop_that_failed_is_none(void **unused)
{
    static const struct {
        const char *command;
        bool dropped;
    } cases[] = {{"exit 3", false}, {"true", true}};
    struct catalog *catalog = catalog_create("nfs://server/set", "raw");
    struct ranks ranks = ranks_alone();

    assert_non_null(catalog);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cold_settings settings = {.drop_caches = JOB_DROP_YES,
                                               .server_drop_command = (char *)cases[i].command,
                                               .drop_timeout_ns = 600000000000};
        struct witness *witness = witness_open(&settings, catalog, &uring_ops.plugin);
        struct result_run run = {0};
        assert_non_null(witness);
        assert_int_equal(witness_make_cold(witness, &uring, &ranks, NULL, NULL, &run), 0);
        assert_true(run.cold.server.drop.made);
        assert_string_equal(run.cold.method, "no page cache on this side");
        assert_int_equal(run.cold.dropped, cases[i].dropped);
        assert_true(run.cold.state != RESULT_CACHE_COLD); /* by no command's word */
        witness_close(witness);
    }
    catalog_destroy(catalog);
}

/* Files whose own pages are cold, on a disk of which a quarter is in memory. */
static bool is_staged;

int __real_cold_make(const struct cold_request *request, struct cold_result *result);
int __wrap_cold_make(const struct cold_request *request, struct cold_result *result);
int __wrap_cold_make(const struct cold_request *request, struct cold_result *result)
{
    if (!is_staged)
        return __real_cold_make(request, result);
    *result = (struct cold_result){
        .label = RESIDENCY_COLD, .dropped = true, .system_wide = true, .data_bytes = 4000};
    return 0;
}

void __wrap_beneath_look(const struct device_list *devices, uint64_t set_bytes,
                         struct beneath *beneath);
void __real_beneath_look(const struct device_list *devices, uint64_t set_bytes,
                         struct beneath *beneath);
void __wrap_beneath_look(const struct device_list *devices, uint64_t set_bytes,
                         struct beneath *beneath)
{
    if (is_staged)
        *beneath = (struct beneath){RESIDENCY_WARM, set_bytes / 4, "loop device"};
    else
        __real_beneath_look(devices, set_bytes, beneath);
}

static void pages_that_are_warm_beneath_are_warm(void **unused)
{
    struct catalog *catalog = catalog_create("/tmp", "raw");
    struct ranks ranks = ranks_alone();
    struct result_run run = {0};

    assert_non_null(catalog);
    struct witness *witness = witness_open(&(struct cold_settings){0}, catalog, &uring_ops.plugin);
    assert_non_null(witness);
    is_staged = true;
    const int code = witness_make_cold(witness, &uring, &ranks, NULL, NULL, &run);
    is_staged = false;
    assert_int_equal(code, 0);
    assert_int_equal(run.cold.state, RESULT_CACHE_WARM);
    assert_int_equal(run.cold.resident_bytes, 1000);
    assert_true(run.cold.residue_percent == 25);
    assert_string_equal(run.cold.reason, "loop device");
    witness_close(witness);
    catalog_destroy(catalog);
}

/* Without memory for a measurement a run does not go on, as if nothing were cached. */
static void a_measurement_without_memory(void **unused)
{
    struct catalog *catalog = catalog_create("/bin", "raw");
    struct ranks ranks = ranks_alone();
    bool refused = false, met = true;

    assert_int_equal(catalog_begin_shard(catalog, "/bin/sh", &(struct store_status){.bytes = 9}, 0),
                     0);
    struct witness *witness = witness_open(&(struct cold_settings){0}, catalog, &uring_ops.plugin);
    for (uint64_t k = 1; allocations_counted && met; k++) {
        struct result_run run = {0};
        allocation_refused = counter_get(&allocations) + k;
        const int code = witness_make_cold(witness, &uring, &ranks, NULL, NULL, &run);
        met = counter_get(&allocations) >= allocation_refused;
        allocation_refused = 0;
        assert_true(code == 0 || (code == -ENOMEM && *run.cold.reason));
        refused |= code != 0;
    }
    assert_true(refused || !allocations_counted);
    witness_close(witness);
    catalog_destroy(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_no_storage_gave),
        cmocka_unit_test(ranks_that_share_a_cache_read_less),
        cmocka_unit_test(bytes_counted_twice),
        cmocka_unit_test(a_state_follows_from_its_evidence),
        cmocka_unit_test(nothing_unproven_is_called_cold),
        cmocka_unit_test(direct_reads_pass_a_warm_cache_by),
        cmocka_unit_test(a_drop_that_failed_is_none),
        cmocka_unit_test(a_measurement_without_memory),
        cmocka_unit_test(pages_that_are_warm_beneath_are_warm),
        cmocka_unit_test(server_disks_are_a_witness),
        cmocka_unit_test(reads_of_others_prove_nothing),
        cmocka_unit_test(pages_leave_storage),
        cmocka_unit_test(steps_that_end_late),
        cmocka_unit_test(a_clock_that_lies_is_of_its_run),
        cmocka_unit_test(a_rank_without_descriptors_makes_a_run_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
