/* SPDX-License-Identifier: Apache-2.0
 * Which runs are not what they seem. */
#include "tests/unit/unit.h"

#include "pipeline/proof.h"

#include <string.h>

static const struct plugin uring = {.name = "uring"}, null_reader = {.name = "null"};

struct verdict {
    struct result result;
    struct result_run run;
};

/* A run of 1,000 delivered bytes, cold before it, of which `device` bytes left storage. */
static void judge(struct verdict *verdict, enum job_drop drop, const struct plugin *reader,
                  uint64_t device)
{
    static struct result_epoch epoch;
    const struct job job = {.drop_caches = (int)drop};

    epoch = (struct result_epoch){.record_bytes = 1000, .device = {.known = true, .bytes = device}};
    *verdict = (struct verdict){
        .result = {.valid = true},
        .run = {.valid = true, .epoch_count = 1, .epochs = &epoch, .cold = {.dropped = true}}};
    proof_check(&job, reader, &verdict->run, &verdict->result);
}

/* Another process that reads the same files during the run. */
static void bytes_that_no_storage_gave(void **unused)
{
    struct verdict verdict;

    (void)unused;
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
    /* A loop device whose file was in memory: the process read all, the disk gave half of it. */
    judge(&verdict, JOB_DROP_STRICT, &uring, 1000);
    verdict.run =
        (struct result_run){.valid = true, .epoch_count = 1, .epochs = verdict.run.epochs};
    verdict.run.epochs[0].device.beneath_known = true;
    verdict.run.epochs[0].device.beneath_bytes = 500;
    proof_check(&(struct job){.drop_caches = JOB_DROP_STRICT}, &uring, &verdict.run,
                &verdict.result);
    assert_false(verdict.run.valid);
    assert_non_null(strstr(verdict.run.invalid_reason, "only 50.0%"));
    judge(&verdict, JOB_DROP_STRICT, &null_reader, 0);
    assert_true(verdict.run.valid);
}

/* More than the disks gave cannot have been read from them. */
static void bytes_counted_twice(void **unused)
{
    const uint64_t bytes = 100000000;
    const struct job job = {.drop_caches = JOB_DROP_YES};
    struct result_epoch epoch = {
        .record_bytes = bytes,
        .device = {.known = true, .bytes = 2 * bytes, .beneath_known = true}};
    struct result_run run = {
        .valid = true, .epoch_count = 1, .epochs = &epoch, .cold = {.dropped = true}};
    struct result result = {.valid = true};

    (void)unused;
    epoch.device.beneath_bytes = 195 * bytes / 100;
    proof_check(&job, &uring, &run, &result);
    assert_non_null(strstr(result.degraded_reason, "by the disks' own counters"));
    result.degraded_reason[0] = '\0';
    epoch.device.beneath_bytes = 197 * bytes / 100; /* the rest may be under way */
    proof_check(&job, &uring, &run, &result);
    assert_string_equal(result.degraded_reason, "");
    epoch.device.of_node = true; /* by another witness than this process */
    epoch.device.beneath_bytes = bytes;
    proof_check(&job, &uring, &run, &result);
    assert_string_equal(result.degraded_reason, "");
}

static void steps_that_end_late(void **unused)
{
    const struct job job = {0};
    struct result_epoch epochs[2] = {{.compute_ns = 1050, .nominal_ns = 1000},
                                     {.compute_ns = 1050, .nominal_ns = 1000}};
    struct result_run run = {.valid = true, .epoch_count = 2, .epochs = epochs};
    struct result result = {.valid = true};

    (void)unused;
    proof_check(&job, &uring, &run, &result);
    assert_string_equal(result.degraded_reason, "");
    epochs[1].compute_ns = 1150;
    proof_check(&job, &uring, &run, &result);
    assert_non_null(strstr(result.degraded_reason, "10.0% longer than the GPU's"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_no_storage_gave),
        cmocka_unit_test(bytes_counted_twice),
        cmocka_unit_test(steps_that_end_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
