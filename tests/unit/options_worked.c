/* SPDX-License-Identifier: Apache-2.0
 * What the options of a job are without being given, and the first values beyond their limits,
 * written down by hand: a changed default changes what is measured. */
#include "tests/unit/unit.h"

#include "base/option.h"
#include "pipeline/settings/job.h"

static const struct {
    const char *name, *value;
    const char *below, *least, *most, *above; /* NULL: no limit */
} rows[] = {
    {"data", "", NULL, NULL, NULL, NULL},
    {"format", "auto", NULL, NULL, NULL, NULL},
    {"limit-samples", "all", NULL, NULL, NULL, NULL},
    {"limit-samples-per-rank", "all", NULL, NULL, NULL, NULL},
    {"crc", "yes", NULL, NULL, NULL, NULL},
    {"on-error", "stop", NULL, NULL, NULL, NULL},
    {"odd-labels", "none", NULL, NULL, NULL, NULL},
    {"as", "", NULL, NULL, NULL, NULL},
    {"workload", "", NULL, NULL, NULL, NULL},
    {"reader", "auto", NULL, NULL, NULL, NULL},
    {"iodepth", "32", NULL, NULL, "65536", "65537"},
    {"io-threads", "auto", NULL, NULL, "64", "65"},
    {"bs", "1048576", "511", "512", "1GiB", "1073741825"},
    {"direct", "no", NULL, NULL, NULL, NULL},
    {"memory", "auto", NULL, NULL, NULL, NULL},
    {"io-timeout", "60s", NULL, NULL, NULL, NULL},
    {"limit-rate", "none", NULL, NULL, NULL, NULL},
    {"shuffle", "auto", NULL, NULL, NULL, NULL},
    {"window", "auto", NULL, NULL, "1048576", "1048577"},
    {"partition", "disjoint", NULL, NULL, NULL, NULL},
    {"remainder", "uneven", NULL, NULL, NULL, NULL},
    {"seed", "1", NULL, NULL, NULL, NULL},
    {"resume-at", "", NULL, NULL, NULL, NULL},
    {"ranks", "1", "0", "1", "1048576", "1048577"},
    {"rank", "0", NULL, NULL, "1048576", "1048577"},
    {"rank-timeout", "60s", NULL, NULL, NULL, NULL},
    {"decode", "jpeg", NULL, NULL, NULL, NULL},
    {"decode-threads", "auto", NULL, NULL, "4096", "4097"},
    {"prefetch", "2", "0", "1", "1024", "1025"},
    {"entry-points", "no", NULL, NULL, NULL, NULL},
    {"trainer", "none", NULL, NULL, NULL, NULL},
    {"batch-size", "256", "0", "1", "1048576", "1048577"},
    {"epochs", "1", "0", "1", "1048576", "1048577"},
    {"runs", "3", NULL, "1", "10000", "10001"},
    {"until", "none", "0.09", "0.1", "100", "101"},
    {"until-runs", "50", "4", "5", "10000", "10001"},
    {"until-time", "1800s", NULL, NULL, NULL, NULL},
    {"overlap-epochs", "no", NULL, NULL, NULL, NULL},
    {"start-at", "", NULL, NULL, NULL, NULL},
    {"drop-caches", "no", NULL, NULL, NULL, NULL},
    {"memory-limit", "none", "8388607", "8MiB", NULL, NULL},
    {"server-drop-cmd", "", NULL, NULL, NULL, NULL},
    {"server-check-cmd", "", NULL, NULL, NULL, NULL},
    {"drop-timeout", "600s", NULL, NULL, NULL, NULL},
    {"against", "", NULL, NULL, NULL, NULL},
    {"paired", "no", NULL, NULL, NULL, NULL},
    {"turns", "1", "0", "1", "1000", "1001"},
    {"order-seed", "random", NULL, NULL, "4294967295", "4294967296"},
    {"beside", "", NULL, NULL, NULL, NULL},
    {"json", "", NULL, NULL, NULL, NULL},
    {"csv", "", NULL, NULL, NULL, NULL},
    {"sample-interval", "0.1s", "9ms", "10ms", "1h", "3601"},
    {"series", "", NULL, NULL, NULL, NULL},
    {"label", "", NULL, NULL, NULL, NULL},
    {"profile", "", NULL, NULL, NULL, NULL},
    {"trace", "", NULL, NULL, NULL, NULL},
    {"digest", "no", NULL, NULL, NULL, NULL},
    {"calibrate", "yes", NULL, NULL, NULL, NULL},
    {"require-samples-per-s", "none", NULL, NULL, "1e15", "1.1e15"},
    {"require-rate", "none", NULL, NULL, NULL, NULL},
    {"dry-run", "no", NULL, NULL, NULL, NULL},
};

static int set(struct job *job, const char *name, const char *value)
{
    return option_set(job_options, job, name, value, "test");
}

static void every_option_has_its_default_and_limits(void **unused)
{
    struct job job = {0};
    size_t count = 0;
    char text[1024];

    assert_int_equal(option_defaults(job_options, &job), 0);
    for (const struct option_spec *row = job_options; row->name; row++, count++) {
        assert_true(count < sizeof rows / sizeof *rows);
        assert_string_equal(row->name, rows[count].name);
        assert_string_equal(option_text(row, &job, text, sizeof text), rows[count].value);
    }
    assert_int_equal(count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < count; i++) {
        const char *const good[] = {rows[i].least, rows[i].most};
        const char *const bad[] = {rows[i].below, rows[i].above};
        for (int k = 0; k < 2; k++) {
            if (good[k] && set(&job, rows[i].name, good[k]))
                fail_msg("%s", fail_reason());
            if (!bad[k])
                continue;
            if (set(&job, rows[i].name, bad[k]) == 0)
                fail_msg("--%s %s is accepted", rows[i].name, bad[k]);
            assert_reason(rows[i].name);
        }
    }
    option_release(job_options, &job);
}

static uint64_t count_of(struct job *job, const char *name, const char *value,
                         const uint64_t *field)
{
    if (set(job, name, value))
        fail_msg("%s", fail_reason());
    return *field;
}

/* Decimal units are powers of 1,000, those of programmers of 1,024. */
static void units_are_what_they_say(void **unused)
{
    struct job job = {0};
    const struct option_spec *bs = option_find(job_options, "bs"),
                             *depth = option_find(job_options, "iodepth"),
                             *timeout = option_find(job_options, "io-timeout");
    const uint64_t *bytes = (const uint64_t *)(const void *)((const char *)&job + bs->offset),
                   *count = (const uint64_t *)(const void *)((const char *)&job + depth->offset),
                   *ns = (const uint64_t *)(const void *)((const char *)&job + timeout->offset);

    assert_int_equal(option_defaults(job_options, &job), 0);
    assert_int_equal(count_of(&job, "bs", "4096", bytes), 4096);
    assert_int_equal(count_of(&job, "bs", "4k", bytes), 4096);
    assert_int_equal(count_of(&job, "bs", "4KiB", bytes), 4096);
    assert_int_equal(count_of(&job, "bs", "4KB", bytes), 4000);
    assert_int_equal(count_of(&job, "bs", "2MB", bytes), 2000000);
    assert_int_equal(count_of(&job, "bs", "2MiB", bytes), 2097152);
    assert_int_equal(count_of(&job, "iodepth", "10k", count), 10240);
    assert_int_equal(count_of(&job, "io-timeout", "10", ns), 10000000000);
    assert_int_equal(count_of(&job, "io-timeout", "5ms", ns), 5000000);
    assert_int_equal(count_of(&job, "io-timeout", "1.5s", ns), 1500000000);
    assert_int_equal(count_of(&job, "io-timeout", "2m", ns), 120000000000);
    assert_int_equal(count_of(&job, "io-timeout", "1h", ns), 3600000000000);
    option_release(job_options, &job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_has_its_default_and_limits),
        cmocka_unit_test(units_are_what_they_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
