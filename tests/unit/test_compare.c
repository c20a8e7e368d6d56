/* SPDX-License-Identifier: Apache-2.0
 * The basis of a comparison: pairs, sessions, or nothing. */
#include "tests/unit/unit.h"

#include "report/compare.h"

#include <math.h>
#include <string.h>

/* A result with these runs; session: NULL, or a session of two alternating jobs. */
static json_t *job_with(const char *session, const double *rates, size_t count)
{
    json_t *job = json_object(), *runs = json_array();

    json_object_set_new(job, "valid", json_true());
    if (session)
        json_object_set_new(job, "session", json_pack("{sssi}", "id", session, "jobs", 2));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(runs, json_pack("{sf}", "samples_per_s", rates[i]));
    json_object_set_new(job, "runs", runs);
    return job;
}

static struct comparison compared(const json_t **a, size_t a_count, const json_t **b,
                                  size_t b_count)
{
    const struct compare_group one = {a, a_count}, other = {b, b_count};
    struct comparison comparison;

    assert_int_equal(compare_groups(&one, &other, &comparison), 0);
    return comparison;
}

/* Runs similar within a session but not between sessions: the machine changed, not the program. */
static void one_session_each_tells_nothing(void **unused)
{
    const double slow[] = {100, 101, 102, 103, 104}, fast[] = {110, 111, 112, 113, 114};
    const json_t *a = job_with(NULL, slow, 5), *b = job_with(NULL, fast, 5);
    struct comparison comparison = compared(&a, 1, &b, 1);

    assert_int_equal(comparison.basis, COMPARE_NOTHING);
    assert_equal(comparison.figures[0].change_percent, 100 * (112.0 / 102 - 1));
    /* More samples are better, higher latency is not. */
    for (int i = 0; i < COMPARE_FIGURES; i++)
        assert_int_equal(comparison.figures[i].more_is_better,
                         !strstr(comparison.figures[i].key, "latency"));
    assert_true(isnan(comparison.figures[0].p));
    assert_false(compare_significant(&comparison.figures[0], 0.05));
    assert_true(compare_untold(&comparison.figures[0], 0.05));
    assert_true(isnan(comparison.figures[4].a)); /* AU is missing */
    json_decref((json_t *)a);
    json_decref((json_t *)b);
}

/* A slow epoch counts by its time: 100 samples in 1 s and 100 in 4 s are 40 a second, not 62.5. */
static void later_epochs_add_up(void **unused)
{
    const double rate[] = {50};
    const json_t *a = job_with(NULL, rate, 1), *b = job_with(NULL, rate, 1);
    json_t *epochs = json_pack("[{sisf}{sisf}{sisf}]", "samples", 100, "wall_s", 9.0, "samples",
                               100, "wall_s", 1.0, "samples", 100, "wall_s", 4.0);

    for (size_t i = 0; i < json_array_size(epochs); i++) {
        json_t *epoch = json_array_get(epochs, i);
        json_object_set_new(epoch, "samples_per_s",
                            json_real(100 / json_real_value(json_object_get(epoch, "wall_s"))));
    }
    json_object_set(json_array_get(json_object_get(a, "runs"), 0), "epochs", epochs);
    json_object_set_new(json_array_get(json_object_get(b, "runs"), 0), "epochs", epochs);
    struct comparison comparison = compared(&a, 1, &b, 1);
    assert_equal(comparison.figures[3].a, 40);
    json_decref((json_t *)a);
    json_decref((json_t *)b);
}

/* Each session is one value, the median of its runs. */
static void sessions_are_the_repetitions(void **unused)
{
    const json_t *a[4], *b[4];

    for (int i = 0; i < 4; i++) {
        const double low = 100 + i, high = 110 + i;
        a[i] = job_with(NULL, (const double[]){low - 1, low, low + 50}, 3);
        b[i] = job_with(NULL, (const double[]){high - 1, high, high + 50}, 3);
    }
    struct comparison comparison = compared(a, 4, b, 4);
    assert_int_equal(comparison.basis, COMPARE_SESSIONS);
    assert_equal(comparison.figures[0].a, 101.5);
    assert_equal(comparison.figures[0].p, 2.0 / 70); /* scipy.stats.mannwhitneyu */
    assert_true(compare_significant(&comparison.figures[0], 0.05));
    comparison = compared(a, 3, b, 3);
    assert_equal(compare_least_p(3, 3), 0.1);
    assert_true(compare_untold(&comparison.figures[0], 0.05));
    for (int i = 0; i < 4; i++) {
        json_decref((json_t *)a[i]);
        json_decref((json_t *)b[i]);
    }
}

/* Nothing found is "no difference" only where the pairs would have shown one that matters. */
static void noise_is_inconclusive(void **unused)
{
    const double as[] = {1000, 10, 990, 70}, bs[] = {950, 965, 30, 960};
    const double steady_a[] = {1000, 1001, 999, 1000}, steady_b[] = {1001, 1000, 1000, 999};
    const json_t *a = job_with("one", as, 4), *b = job_with("one", bs, 4);
    const json_t *c = job_with("one", steady_a, 4), *d = job_with("one", steady_b, 4);
    struct comparison noisy = compared(&a, 1, &b, 1), steady = compared(&c, 1, &d, 1);
    char *text;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);

    assert_true(compare_untold(&noisy.figures[0], 0.05));
    assert_false(compare_untold(&steady.figures[0], 0.05));
    compare_text(stream, "B", &noisy, 0.05);
    compare_text(stream, "B", &steady, 0.05);
    fclose(stream);
    assert_non_null(strstr(text, ".. >1000 "));
    assert_non_null(strstr(text, "inconclusive"));
    assert_non_null(strstr(text, "no difference"));
    free(text);
    json_decref((json_t *)a), json_decref((json_t *)b);
    json_decref((json_t *)c), json_decref((json_t *)d);
}

static void runs_that_took_turns_are_pairs(void **unused)
{
    const double as[] = {1000, 1010, 990, 1005, 1020}, bs[] = {950, 965, 930, 960, 962};
    const json_t *a = job_with("one", as, 5), *b = job_with("one", bs, 5);
    const json_t *others[] = {job_with("two", as, 5), job_with("two", bs, 5)};
    struct comparison comparisons[2] = {compared(&a, 1, &b, 1), compared(&a, 1, &b, 1)};
    const struct compare_figure *first = &comparisons[0].figures[0];

    assert_int_equal(comparisons[0].basis, COMPARE_PAIRS);
    assert_int_equal(comparisons[0].pairs, 5);
    assert_equal(first->change_percent, 100 * (0.9486182467211504 - 1)); /* as in test_paired */
    assert_true(fabs(first->p - 0.00010038107799265667) < 1e-12);
    compare_correct(comparisons, 2);
    assert_equal(first->p_corrected, 2 * first->p);
    assert_int_equal(comparisons[0].together, 2);
    /* Runs of different sessions do not form a pair; pairs of two sessions are pooled. */
    assert_int_equal(compared(&a, 1, &others[1], 1).basis, COMPARE_NOTHING);
    assert_int_equal(
        compared((const json_t *[]){a, others[0]}, 2, (const json_t *[]){b, others[1]}, 2).pairs,
        10);
    json_decref((json_t *)a);
    json_decref((json_t *)b);
    json_decref((json_t *)others[0]);
    json_decref((json_t *)others[1]);
}

/* Turns of a pair stay together when one is unknown, and in pooled sessions. */
static void turns_make_up_pairs(void **unused)
{
    const double as[] = {100, 100, 100, 100, 100, 100, 100}, bs[] = {90, 90, 80, 80, 70, 70, 10};
    json_t *a = job_with("one", as, 7), *b = job_with("one", bs, 7);
    json_t *c = job_with("two", as, 4), *d = job_with("two", bs, 4);

    for (int i = 0; i < 4; i++)
        json_object_set_new(json_object_get((json_t *[]){a, b, c, d}[i], "session"), "turns",
                            json_integer(i < 2 ? 2 : 4));
    json_object_set_new(json_array_get(json_object_get(a, "runs"), 4), "samples_per_s",
                        json_null());
    struct comparison comparison =
        compared((const json_t *[]){a, c}, 2, (const json_t *[]){b, d}, 2);
    assert_int_equal(comparison.turns, 2);
    assert_int_equal(comparison.pairs, 3); /* a session with other turns is not pooled with them */
    assert_equal(comparison.figures[0].change_percent, 100 * (cbrt(.9 * .8 * .7) - 1));
    assert_false(comparison.is_until);
    /* Nor does a turn without its pair make one with a turn of the next session. */
    json_object_set_new(json_object_get(c, "session"), "turns", json_integer(2));
    json_object_set_new(json_object_get(d, "session"), "turns", json_integer(2));
    json_object_set_new(json_object_get(a, "session"), "runs_auto", json_true());
    comparison = compared((const json_t *[]){a, c}, 2, (const json_t *[]){b, d}, 2);
    assert_int_equal(comparison.pairs, 5);
    assert_equal(comparison.figures[0].change_percent,
                 100 * (pow(.9 * .8 * .7 * .9 * .8, 0.2) - 1));
    assert_true(comparison.is_until);
    json_decref(a);
    json_decref(b);
    json_decref(c);
    json_decref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_session_each_tells_nothing), cmocka_unit_test(later_epochs_add_up),
        cmocka_unit_test(sessions_are_the_repetitions),   cmocka_unit_test(noise_is_inconclusive),
        cmocka_unit_test(runs_that_took_turns_are_pairs), cmocka_unit_test(turns_make_up_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
