/* SPDX-License-Identifier: Apache-2.0
 * The expressions of studies: what they compute, what they refuse, and any text ends well. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/random.h"
#include "cmd/study/study.h"

#include <stdlib.h>
#include <string.h>

static const char it_text[] =
    "{\"a\": 6, \"name\": \"x\", \"list\": [3, 1, null, 2], \"far\": "
    "[1000000001, 1000000002, 1000000003],"
    " \"big\": 1e300, \"deep\": {\"b\": [1, {\"c\": \"d\"}]}, "
    "\"points\": [[0, 1], [1, 3], [2, 8]], \"job\": {\"series\": {"
    "\"columns\": [\"time_s\", \"x\"], \"phases\": [{\"phase\": \"index\", "
    "\"from_s\": 0}, {\"phase\": \"epoch\", \"from_s\": 2}], "
    "\"rows\": [[1, 10], [2, 20], [3, null], [4, 40]]}}}",
                  rows_text[] = "[{\"run\": \"one\", \"n\": 1, \"rate\": 10, \"of\": \"p\"},"
                                " {\"run\": \"two\", \"n\": 2, \"rate\": 15, \"of\": \"p\"},"
                                " {\"run\": \"all\", \"n\": 4, \"rate\": null, \"of\": \"q\"}]";

struct scopes {
    json_t *it, *rows;
    struct evaluate_scope outer, inner;
};

static void begin(struct scopes *scopes)
{
    scopes->it = json_loads(it_text, 0, NULL);
    scopes->rows = json_loads(rows_text, 0, NULL);
    assert_non_null(scopes->it);
    assert_non_null(scopes->rows);
    scopes->outer = (struct evaluate_scope){NULL, "rows", scopes->rows};
    scopes->inner = (struct evaluate_scope){&scopes->outer, "it", scopes->it};
}

static void end(struct scopes *scopes)
{
    json_decref(scopes->it);
    json_decref(scopes->rows);
}

static void expressions_have_values(void **unused)
{
    static const char *const expected[][2] = {
        {"1 + 2 * 3 - 4 / 2", "5"},
        {"(1 + 2) * 3", "9"},
        {"10 - 3 - 2", "5"},
        {"2 - -1", "3"},
        {"1 / 0", "null"},
        {"a + name", "null"},
        {"a", "6"},
        {"gone", "null"},
        {"gone.gone[0]", "null"},
        {"deep.b[1].c", "\"d\""},
        {"it[\"name\"]", "\"x\""},
        {"list[-1]", "2"},
        {"list[9]", "null"},
        {"list[2:]", "[null, 2]"},
        {"a == 6 and name != \"y\"", "true"},
        {"a < 6 or a >= 7", "false"},
        {"gone == null", "true"},
        {"gone < 1", "false"},
        {"\"a\" < \"b\"", "true"},
        {"let b = a * 2; b + 1", "13"},
        {"if a > 5 then \"more\" else \"less\"", "\"more\""},
        {"if a then 1 else 2", "2"},
        {"\"{name} has {a / 4}, {1234.5678}, {12.345}, {1 / 3}\"",
         "\"x has 1.5, 1,235, 12.3, 0.33\""},
        {"[1, [2], \"b\"]", "[1, [2], \"b\"]"},
        {"count(list)", "4"},
        {"sum(list)", "6"},
        {"mean(list)", "2"},
        {"min(list)", "1"},
        {"max(list)", "3"},
        {"sum([])", "null"},
        {"sum([0.1, 0.2, 0.3]) - 0.6 < 0.000001", "true"},
        {"smooth([], 2)", "[]"},
        {"smooth(points, gone)", "[[0, 1], [1, 3], [2, 8]]"},
        {"\"{big}\"", "\"1e+300\""},
        {"deviation([2, 4, 4, 4, 5, 5, 7, 9])", "2"},
        {"power(deviation(far), 2) * 3 > 1.999 and power(deviation(far), 2) * 3 < 2.001", "true"},
        {"abs(0 - a)", "6"},
        {"power(2, 10)", "1024"},
        {"default(gone, a)", "6"},
        {"number(\"12\")", "12"},
        {"percent(0.125)", "\"12.5%\""},
        {"list([\"a\", null, \"b\", \"c\"])", "\"a, b and c\""},
        {"list([\"a\"])", "\"a\""},
        {"against(141, 100, \"more\", \"same\", \"less\")", "\"41% more\""},
        {"against(104, 100, \"more\", \"same\", \"less\")", "\"same\""},
        {"against(50, 100, \"more\", \"same\", \"less\")", "\"50% less\""},
        {"split(\" a  b \")", "[\"a\", \"b\"]"},
        {"contains(\"abc\", \"bc\")", "true"},
        {"row(\"two\").rate", "15"},
        {"best(\"rate\").run", "\"two\""},
        {"worst(\"rate\").run", "\"one\""},
        {"of(where(rows, it.rate != null), run)", "[\"one\", \"two\"]"},
        {"of(sort(rows, 0 - n), run)", "[\"all\", \"two\", \"one\"]"},
        {"of(group(rows, it.of), count(it))", "[2, 1]"},
        {"merge([rows[0], rows[2]]).rate", "10"},
        {"of(speed_up(rows, \"n\", \"rate\", it.of), it[\"speed-up\"])", "[1, 1.5, null]"},
        {"smooth(points, 2)", "[[0.5, 2], [1.5, 5.5]]"},
        {"smooth(points, 9)", "[[0.5, 2], [1.5, 5.5]]"},
        {"smooth(points, big)", "[[0.5, 2], [1.5, 5.5]]"},
        {"over_time(\"y\", 1)", "[]"},
        {"over_time(\"x\", 0.5)", "[[0, 10], [2, 20]]"},
        {"over_time(\"time_s\", 1)", "[[0, 2], [1, 3], [2, 4]]"},
        {"contains(\"abc\", \"ac\")", "false"},
    };
    struct scopes scopes;

    begin(&scopes);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct evaluate_node *node = evaluate_parse(expected[i][0]);
        json_t *value = node ? evaluate(node, &scopes.inner) : NULL;
        char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
        if (!text || strcmp(text, expected[i][1]) != 0)
            fail_msg("%s: %s, not %s (%s)", expected[i][0], text ? text : "none", expected[i][1],
                     fail_reason());
        free(text);
        json_decref(value);
        evaluate_release(node);
    }
    end(&scopes);
}

static void others_are_refused_with_a_reason(void **unused)
{
    static const char *const refused[][2] = {
        {"", "a value"},
        {"1 +", "a value"},
        {"(1", ")"},
        {"1 2", "the end"},
        {"\"{1\"", "}"},
        {"\"a", "a quote"},
        {"a.", "a name"},
        {"let = 3; 4", "a name"},
        {"let b 3; b", "="},
        {"if 1 then 2", "else"},
        {"nosuch(1)", "unknown function 'nosuch'"},
        {"sum()", "takes 1 values"},
        {"sum(1, 2)", "takes 1 values"},
    };
    static const char *const missing[][2] = {
        {"\"{gone}\"", "a figure is missing"},
        {"percent(gone)", "a figure is missing"},
        {"against(1, 0, \"\", \"\", \"\")", "a figure is missing"},
        {"row(\"none\")", "no run none"},
        {"best(\"gone\")", "one run is not enough"},
        {"of(rows, \"{rate}\")", "a figure is missing"},
        {"speed_up(rows, \"n\", \"rate\", \"{rate}\")", "a figure is missing"},
    };
    struct scopes scopes;
    char deep[6000];

    begin(&scopes);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        fail_clear();
        assert_null(evaluate_parse(refused[i][0]));
        if (!strstr(fail_reason(), refused[i][1]))
            fail_msg("%s: %s, not %s", refused[i][0], fail_reason(), refused[i][1]);
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        struct evaluate_node *node = evaluate_parse(missing[i][0]);
        assert_non_null(node);
        fail_clear();
        assert_null(evaluate(node, &scopes.inner));
        if (!strstr(fail_reason(), missing[i][1]))
            fail_msg("%s: %s, not %s", missing[i][0], fail_reason(), missing[i][1]);
        evaluate_release(node);
    }
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_null(evaluate_parse(deep));
    assert_reason("a shallower expression");
    for (size_t i = 0; i + 1 < sizeof deep; i++)
        deep[i] = "1+"[i % 2];
    assert_null(evaluate_parse(deep));
    assert_reason("a shorter expression");
    end(&scopes);
}

/* Pieces of expressions in any order are refused with a reason, or have a value or a reason. */
static void any_text_ends_well(void **unused)
{
    static const char *const pieces[] = {
        "a",      "list", "rows", "it",    "gone",   "points", "far",     "big",
        "1",      "0.5",  "\"",   "{",     "}",      "(",      ")",       "[",
        "]",      ":",    ",",    ".",     "+",      "-",      "*",       "/",
        "==",     "<=",   "and ", "or ",   "let b=", ";",      "if ",     " then ",
        " else ", "sum(", "of(",  "sort(", "group(", "merge(", "smooth(", "power("};
    struct scopes scopes;

    begin(&scopes);
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct random random = random_start(seed);
        char text[256] = "";
        for (uint64_t left = random_below(&random, 20); left; left--)
            strcat(text, pieces[random_below(&random, sizeof pieces / sizeof *pieces)]);
        fail_clear();
        struct evaluate_node *node = evaluate_parse(text);
        if (!node) {
            assert_true(*fail_reason());
            continue;
        }
        json_t *value = evaluate(node, &scopes.inner);
        assert_true(value || *fail_reason());
        char *shown = value ? evaluate_shown(value) : NULL;
        free(shown);
        json_decref(value);
        evaluate_release(node);
    }
    end(&scopes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_have_values),
        cmocka_unit_test(others_are_refused_with_a_reason),
        cmocka_unit_test(any_text_ends_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
