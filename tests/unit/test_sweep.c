/* SPDX-License-Identifier: Apache-2.0
 * Cells of a sweep, their order, and what follows from their figures. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "cmd/sweep/sweep.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Rows by type; a plan reads no other member. */
static const char *const choices[] = {"no", "yes", "strict", NULL};
static const struct option_spec rows[] = {
    {"count", 0, OPTION_COUNT, 0, .summary = ""},
    {"size", 0, OPTION_SIZE, 0, .summary = ""},
    {"time", 0, OPTION_DURATION, 0, .summary = ""},
    {"real", 0, OPTION_REAL, 0, .summary = ""},
    {"text", 0, OPTION_TEXT, 0, .summary = ""},
    {"flag", 0, OPTION_FLAG, 0, .summary = ""},
    {"choice", 0, OPTION_CHOICE, 0, .choices = choices, .summary = ""},
    {"rate", 0, OPTION_SIZE, 0, .per_second = true, .summary = ""},
    {0},
};

static int broken(void)
{
    return fail(ENOTSUP, "does not work here");
}

static const struct plugin one = {.name = "one"}, two = {.name = "two", .usable = broken},
                           three = {.name = "three"};
static const struct plugin *const members[] = {&one, &two, &three, NULL};

static int add(struct sweep_plan *plan, const char *name, const char *text)
{
    const struct option_spec *row = option_find(rows, name);

    return sweep_add(plan, name, row, strcmp(name, "plugin") == 0 ? members : NULL, text);
}

/* Check the values of a list, joined by "|". */
static void check(const char *name, const char *text, const char *wanted)
{
    struct sweep_plan plan = {0};
    char values[512] = "";

    fail_clear();
    const int code = add(&plan, name, text);
    for (size_t i = 0; wanted && i < plan.axes[0].count; i++) {
        strcat(values, i ? "|" : "");
        strcat(values, plan.axes[0].values[i]);
    }
    if (wanted)
        assert_string_equal(values, wanted);
    assert_int_equal(code != 0, wanted == NULL);
    assert_int_equal(*fail_reason() != 0, wanted == NULL);
    sweep_release(&plan);
}

static void a_list_is_split_at_commas(void **unused)
{
    check("count", "1,2,4", "1|2|4");
    check("text", "a", "a");
    check("text", "a\\,b,c", "a,b|c");
    check("text", "a\\b,c", "a\\b|c");
    check("text", "", "");
    check("text", "none,replay:h200,gpus=8,replay:rate=4,x=1",
          "none|replay:h200,gpus=8|replay:rate=4,x=1");
    check("text", "a,b=c", "a|b=c"); /* no arguments have begun */
    check("count", "1,2,1", NULL);
}

static void ranges_have_both_ends(void **unused)
{
    check("count", "32:1024:x2", "32|64|128|256|512|1024");
    check("count", "1:16:+5", "1|6|11|16");
    check("count", "1:15:+5", "1|6|11");
    check("count", "1:4:x1.5", "1|2|3");
    check("count", "8,1:2:+1", "8|1|2");
    check("size", "64k:4m:x8", "64k|512k|4m");
    check("size", "1000:3000:x3", "1000|3000");
    check("rate", "500b:1m:x1024", "500b|500k");
    check("time", "5ms:500ms:x10", "5ms|50ms|500ms");
    check("time", "1:3:+1", "1s|2s|3s");
    check("real", "0.1:0.4:+0.1", "0.1|0.2|0.3|0.4");
    check("text", "1:4:x2", "1|2|4");
    check("text", "a:b:xc", "a:b:xc");
    check("count", "4:1:x2", NULL);
    check("count", "1:4:x1", NULL);
    check("count", "0:4:x2", NULL);
    check("count", "1:4:+0", NULL);
    check("count", "1:100000:+1", NULL);
    check("count", "a:4:+1", NULL);
}

static void all_is_every_alternative(void **unused)
{
    check("flag", "all", "no|yes");
    check("choice", "all", "no|yes|strict");
    check("plugin", "all", "one|three"); /* usable */
    check("count", "all", "all");        /* a word of the option */
}

/* ---- cells ---- */

static struct sweep_plan made(void)
{
    struct sweep_plan plan = {0};

    assert_int_equal(add(&plan, "count", "1,2,4"), 0);
    assert_int_equal(add(&plan, "text", "x"), 0);
    assert_int_equal(add(&plan, "flag", "no,yes"), 0);
    assert_int_equal(sweep_count(&plan), 0);
    assert_int_equal(plan.cells, 6);
    return plan;
}

static void cells_are_the_product(void **unused)
{
    struct sweep_plan plan = made();
    char text[64];

    assert_string_equal(sweep_title(&plan, 0, text, sizeof text), "count=1 flag=no");
    assert_string_equal(sweep_title(&plan, 3, text, sizeof text), "count=2 flag=yes");
    assert_string_equal(sweep_title(&plan, 5, text, sizeof text), "count=4 flag=yes");
    assert_int_equal(sweep_neighbour(&plan, 5, 0, 0), 1);
    assert_int_equal(sweep_neighbour(&plan, 1, 2, 0), 0);
    char *filled = sweep_fill(&plan, 3, "/mnt/{text}-{count}/{other}{");
    assert_string_equal(filled, "/mnt/x-2/{other}{");
    free(filled);
    /* The last occurrence of an option counts. */
    assert_int_equal(add(&plan, "count", "7"), 0);
    assert_int_equal(sweep_count(&plan), 0);
    assert_int_equal(plan.cells, 2);
    assert_int_equal(add(&plan, "count", "1:1000:+1"), 0);
    assert_int_equal(add(&plan, "size", "1:999:+1"), 0);
    assert_int_not_equal(sweep_count(&plan), 0);
    sweep_release(&plan);
}

static void each_round_has_each_cell_once(void **unused)
{
    struct sweep_plan plan = made();
    uint32_t order[6], again[6], first[6];
    size_t same = 0;

    for (uint32_t round = 0; round < 20; round++) {
        unsigned seen = 0;
        sweep_order(&plan, 5, round, false, order);
        sweep_order(&plan, 5, round, false, again);
        assert_memory_equal(order, again, sizeof order);
        for (int i = 0; i < 6; i++)
            seen |= 1U << order[i];
        assert_int_equal(seen, 0x3f);
        if (round == 0)
            memcpy(first, order, sizeof first);
        same += memcmp(first, order, sizeof first) == 0;
    }
    assert_true(same < 5);
    sweep_release(&plan);
}

static void telling_cells_come_first(void **unused)
{
    static const unsigned classes[] = {0, 1, 2, 4, 1, 3};
    struct sweep_plan plan = made();
    uint32_t order[6];

    for (uint32_t cell = 0; cell < 6; cell++)
        assert_int_equal(sweep_class(&plan, cell), classes[cell]);
    for (uint64_t seed = 0; seed < 10; seed++) {
        sweep_order(&plan, seed, 0, true, order);
        for (int i = 1; i < 6; i++)
            assert_true(classes[order[i - 1]] <= classes[order[i]]);
    }
    sweep_release(&plan);
}

/* ---- figures ---- */

enum { ROUNDS = 4, CELLS = 6 };

static struct sweep_figures figures[ROUNDS * CELLS];

/* Rate 100 per count, twice that with the flag; all cells of a round share its deviation. */
static struct sweep_table measured(const struct sweep_plan *plan)
{
    static const double counts[] = {1, 2, 4};

    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t cell = 0; cell < CELLS; cell++) {
            struct sweep_figures *at = &figures[round * CELLS + cell];
            *at = (struct sweep_figures){.is_measured = true,
                                         .is_valid = true,
                                         .wall_s = 10,
                                         .limit = "decode",
                                         .cache = "cold",
                                         .ranks = 1};
            at->samples_per_s = 100 * counts[sweep_digit(plan, cell, 0)] *
                                (1 + (double)sweep_digit(plan, cell, 2)) * (1 + 0.2 * round);
            at->parts_s[SWEEP_WAIT] = 4;
        }
    return (struct sweep_table){.plan = plan, .rounds = ROUNDS, .figures = figures};
}

static void effects_are_paired(void **unused)
{
    struct sweep_plan plan = made();
    const struct sweep_table table = measured(&plan);
    size_t count;

    /* An invalid cell enters no figure; its partners are left out. */
    figures[CELLS + 5].is_valid = false;
    figures[CELLS + 5].samples_per_s = 1e9;
    strcpy(figures[0].cache, "warm"); /* the base cell, so in a pair of each effect */
    struct sweep_effect *effects = sweep_effects(&table, &count);
    assert_non_null(effects);
    assert_int_equal(count, 3);
    static const struct {
        size_t axis, digit, pairs;
        double ratio;
    } wanted[] = {{0, 1, 8, 2}, {0, 2, 7, 4}, {2, 1, 11, 2}};
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(effects[i].axis, wanted[i].axis);
        assert_int_equal(effects[i].digit, wanted[i].digit);
        assert_int_equal(effects[i].paired.pairs, wanted[i].pairs);
        assert_int_equal(effects[i].cache_pairs, 1);
        assert_true(fabs(effects[i].paired.ratio - wanted[i].ratio) < 1e-9);
        assert_true(effects[i].p_corrected >= effects[i].paired.p);
    }
    free(effects);
    assert_true(fabs(sweep_against_first(&table, 4, 0).ratio - 4) < 1e-9);
    sweep_release(&plan);
}

static void a_summary_is_of_valid_rounds(void **unused)
{
    struct sweep_plan plan = made();
    const struct sweep_table table = measured(&plan);

    figures[0] =
        (struct sweep_figures){.is_measured = true, .reason = "not cold", .samples_per_s = 9e9};
    figures[CELLS] = (struct sweep_figures){0};
    strcpy(figures[2 * CELLS].limit, "storage");
    const struct sweep_summary summary = sweep_summarise(&table, 0);
    assert_int_equal(summary.measured, ROUNDS - 1);
    assert_int_equal(summary.valid, ROUNDS - 2);
    assert_true(fabs(summary.samples_per_s.median - 150) < 1e-9);
    assert_string_equal(summary.limit, "mixed");
    assert_string_equal(summary.cache, "cold");
    assert_string_equal(summary.reason, "not cold");
    assert_true(fabs(summary.shares[SWEEP_WAIT] - 0.4) < 1e-9);
    sweep_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_split_at_commas),
        cmocka_unit_test(ranges_have_both_ends),
        cmocka_unit_test(all_is_every_alternative),
        cmocka_unit_test(cells_are_the_product),
        cmocka_unit_test(each_round_has_each_cell_once),
        cmocka_unit_test(telling_cells_come_first),
        cmocka_unit_test(effects_are_paired),
        cmocka_unit_test(a_summary_is_of_valid_rounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
