/* SPDX-License-Identifier: Apache-2.0
 * Command lines and job files, by their tables. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/option.h"
#include "cmd/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    bool flag, on;
    uint64_t count, size, rate, duration;
    int choice;
    char *text;
};

static const char *const choices[] = {"no", "yes", "strict", NULL};

#define AT(field) offsetof(struct settings, field)
static const struct option_spec table[] = {
    {"flag", 'f', OPTION_FLAG, AT(flag), .summary = ""},
    {"on", 0, OPTION_FLAG, AT(on), .fallback = "yes", .summary = ""},
    {"count", 'c', OPTION_COUNT, AT(count), .fallback = "auto", .zero = "auto", .summary = ""},
    {"size", 0, OPTION_SIZE, AT(size), .fallback = "1m", .minimum = 512, .summary = ""},
    {"rate", 0, OPTION_SIZE, AT(rate), .fallback = "0", .per_second = true, .summary = ""},
    {"duration", 0, OPTION_DURATION, AT(duration), .fallback = "none", .zero = "none",
     .summary = ""},
    {"choice", 'd', OPTION_CHOICE, AT(choice), .choices = choices, .implied = "yes", .summary = ""},
    {"text", 't', OPTION_TEXT, AT(text), .summary = ""},
    {0},
};

struct parsed {
    struct settings settings;
    struct arguments arguments;
    int code;
};

/* Parse words separated by blanks. */
static struct parsed parse(const char *line)
{
    static char words[512];
    struct parsed parsed = {0};
    char *argv[32], *cursor = words;
    int argc = 0;

    snprintf(words, sizeof words, "%s", line);
    assert_int_equal(option_defaults(table, &parsed.settings), 0);
    while (*line && (argv[argc] = strsep(&cursor, " ")))
        argc++;
    const struct arguments_scope scopes[] = {{.table = table, .settings = &parsed.settings}, {0}};
    fail_clear();
    parsed.code = arguments_parse(scopes, argc, argv, &parsed.arguments);
    assert_int_equal(parsed.code != 0, *fail_reason() != 0);
    return parsed;
}

static void release(struct parsed *parsed)
{
    option_release(table, &parsed->settings);
    free(parsed->arguments.operands);
}

static void every_way_of_writing(void **unused)
{
    struct parsed parsed = parse("--count=7 --size 4KiB --no-on -f one -t two three --choice");
    assert_int_equal(parsed.code, 0);
    assert_int_equal(parsed.settings.count, 7);
    assert_int_equal(parsed.settings.size, 4096);
    assert_false(parsed.settings.on);
    assert_true(parsed.settings.flag);
    assert_int_equal(parsed.settings.choice, 1);
    assert_string_equal(parsed.settings.text, "two");
    assert_int_equal(parsed.arguments.count, 2);
    assert_string_equal(parsed.arguments.operands[0], "one");
    assert_string_equal(parsed.arguments.operands[1], "three");
    assert_int_equal(parsed.arguments.behind, 2);
    release(&parsed);

    parsed = parse("-fc9 --rate 500MiB/s --choice=strict --text= - -- --count x");
    assert_int_equal(parsed.code, 0);
    assert_true(parsed.settings.flag);
    assert_int_equal(parsed.settings.count, 9);
    assert_int_equal(parsed.settings.rate, 500 << 20);
    assert_int_equal(parsed.settings.choice, 2);
    assert_string_equal(parsed.settings.text, "");
    assert_int_equal(parsed.arguments.count, 3); /* "-", "--count", "x" */
    assert_int_equal(parsed.arguments.behind, 1);
    release(&parsed);

    parsed = parse("--count 1.5k --rate 0 --size 1.5k");
    assert_int_equal(parsed.code, 0);
    assert_int_equal(parsed.settings.count, 1536);
    assert_int_equal(parsed.settings.size, 1536);
    assert_int_equal(parsed.settings.rate, 0);
    release(&parsed);

    /* The last occurrence counts; the word for 0 works in both directions. */
    parsed = parse("--count 3 --count auto --no-choice --on=no --duration 5ms");
    assert_int_equal(parsed.code, 0);
    assert_int_equal(parsed.settings.count, 0);
    assert_int_equal(parsed.settings.choice, 0);
    assert_false(parsed.settings.on);
    assert_int_equal(parsed.settings.duration, 5000000);
    char text[64];
    assert_string_equal(option_text(&table[2], &parsed.settings, text, sizeof text), "auto");
    release(&parsed);
}

/* Every unit, computed by hand. */
static void units_are_what_they_say(void **unused)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"3", 3},
                 {"3b", 3},
                 {"3k", 3 * 1024},
                 {"3kib", 3 * 1024},
                 {"3kb", 3000},
                 {"3m", 3 * UINT64_C(1048576)},
                 {"3MiB", 3 * UINT64_C(1048576)},
                 {"3MB", 3000000},
                 {"3g", UINT64_C(3221225472)},
                 {"3GiB", UINT64_C(3221225472)},
                 {"3GB", UINT64_C(3000000000)},
                 {"3t", UINT64_C(3298534883328)},
                 {"3TiB", UINT64_C(3298534883328)},
                 {"3TB", UINT64_C(3000000000000)},
                 {"3p", UINT64_C(3377699720527872)},
                 {"3PiB", UINT64_C(3377699720527872)},
                 {"3PB", UINT64_C(3000000000000000)},
                 {"8192p", UINT64_C(1) << 63}},
      durations[] = {{"3", UINT64_C(3000000000)},
                     {"3ns", 3},
                     {"3us", 3000},
                     {"3ms", 3000000},
                     {"3s", UINT64_C(3000000000)},
                     {"3m", UINT64_C(180000000000)},
                     {"3h", UINT64_C(10800000000000)},
                     {"3d", UINT64_C(259200000000000)}};
    uint64_t value;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(option_parse_size(sizes[i].text, &value), 0);
        assert_int_equal(value, sizes[i].bytes);
    }
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        assert_int_equal(option_parse_duration(durations[i].text, &value), 0);
        assert_int_equal(value, durations[i].bytes);
    }
}

static void refused(const char *line, const char *reason)
{
    struct parsed parsed = parse(line);

    assert_int_equal(parsed.code, -EINVAL);
    if (!strstr(fail_reason(), reason))
        print_error("'%s' gives '%s', without '%s'\n", line, fail_reason(), reason);
    assert_reason(reason);
    release(&parsed);
}

static void wrong_ones_are_refused(void **unused)
{
    refused("--cuont 3", "unknown option '--cuont'; did you mean '--count'?");
    refused("--xyzzy", "unknown option '--xyzzy'");
    refused("-x", "unknown option '-x'");
    refused("-fx", "unknown option '-x'");
    refused("--count", "--count needs a value");
    refused("-c", "-c needs a value");
    refused("--no-count", "unknown option '--no-count'");
    refused("--no-flag=1", "takes no value");
    refused("--flag=perhaps", "--flag: 'perhaps' is neither yes nor no");
    refused("--size 100", "--size: 100 is less than 512");
    refused("--size 4k/s", "--size: '4k/s' is not a size");
    refused("--size 8Gb", "--size: '8Gb' is a number of bits");
    refused("--rate 100Mib/s", "--rate: '100Mib' is a number of bits");
    refused("--rate /s", "--rate: '/s' is not a size");
    refused("--rate 500", "--rate: '500' has no unit (examples: 500MiB/s");
    refused("--rate 1.5/s", "--rate: '1.5/s' has no unit");
    refused("--size 4096.5", "--size: '4096.5' is not a size");
    refused("--count 1.5", "--count: '1.5' is not a whole number");
    refused("--count 1.3k", "--count: '1.3k' is not a whole number");
    refused("--count 1kb", "--count: '1kb' is not a whole number");
    refused("--count 8b", "--count: '8b' is not a whole number");
    refused("--choice=maybe", "no, yes, strict");
}

static void former_names_are_accepted(void **unused)
{
    static const char text[] = "[a]\ntext=three\n";
    struct parsed parsed = parse("--text one");
    struct jobfile jobfile;

    assert_int_equal(parsed.code, 0);
    assert_string_equal(parsed.settings.text, "one");
    assert_int_equal(option_set_list(table, &parsed.settings, "text=two", "x"), 0);
    assert_string_equal(parsed.settings.text, "two");
    assert_int_equal(jobfile_parse("x.ini", text, strlen(text), &jobfile), 0);
    assert_int_equal(jobfile_apply(&jobfile, 0, table, &parsed.settings), 0);
    assert_string_equal(parsed.settings.text, "three");
    jobfile_release(&jobfile);
    release(&parsed);
}

static void nearest_names(void **unused)
{
    struct nearest nearest = nearest_start("iodpeth");
    nearest_offer(&nearest, "epochs");
    nearest_offer(&nearest, "iodepth");
    assert_string_equal(nearest.best, "iodepth");
    nearest = nearest_start("q");
    nearest_offer(&nearest, "iodepth");
    assert_null(nearest.best);
    nearest = nearest_start("batch");
    nearest_offer(&nearest, "bs");
    nearest_offer(&nearest, "batch-size");
    assert_string_equal(nearest.best, "batch-size");
}

static void sections_inherit_what_stands_before(void **unused)
{
    static const char text[] = "[global]\ncount=1\n[a]\nflag\n[global]\ncount=2\nno_such=1\n[b]\n";
    struct settings settings = {0};
    struct jobfile jobfile;

    assert_int_equal(jobfile_parse("x.ini", text, strlen(text), &jobfile), 0);
    assert_int_equal(jobfile.ini.section_count, 4);
    assert_int_equal(jobfile_apply(&jobfile, 1, table, &settings), 0);
    assert_int_equal(settings.count, 1);
    assert_true(settings.flag);
    assert_int_equal(jobfile_apply(&jobfile, 3, table, &settings), -EINVAL);
    assert_string_equal(fail_reason(), "x.ini:7: unknown option 'no-such'");
    jobfile_release(&jobfile);
    option_release(table, &settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_writing),
        cmocka_unit_test(units_are_what_they_say),
        cmocka_unit_test(wrong_ones_are_refused),
        cmocka_unit_test(former_names_are_accepted),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(sections_inherit_what_stands_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
