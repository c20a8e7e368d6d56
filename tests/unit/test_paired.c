/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/stats.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

enum { TRIALS_LONG = 4000, PAIRS = 40 };

/* IOBENCH_LONG=1: TRIALS_LONG. */
static int trials = 1000;

/* 2 * scipy.stats.t.sf(|t|, df) and scipy.stats.t.ppf(1 - p / 2, df) */
static void student_as_scipy(void **unused)
{
    assert_near(student_p(2.5, 1), 0.24223788318168682, 1e-13);
    assert_near(student_p(2.5, 2), 0.12961172022151082, 1e-13);
    assert_near(student_p(-2.5, 4), 0.06676654481198814, 1e-13);
    assert_near(student_p(0.3, 7), 0.7728900504021342, 1e-13);
    assert_near(student_p(4.2, 30), 0.00021978843421601978, 1e-13);
    assert_near(student_p(0.001, 5), 0.9992407867721976, 1e-13);
    assert_near(student_p(60, 3), 1.0199593673319755e-05, 1e-13);
    assert_near(student_p(2, 1000), 0.04577034649325166, 1e-13);
    assert_near(student_p(INFINITY, 3), 0, 1e-13);
    assert_near(student_quantile(0.05, 1), 12.706204736174694, 1e-9);
    assert_near(student_quantile(0.05, 2), 4.302652729749462, 1e-10);
    assert_near(student_quantile(0.01, 4), 4.604094871349992, 1e-10);
    assert_near(student_quantile(0.02, 9), 2.821437925025809, 1e-10);
    assert_near(student_quantile(0.05, 120), 1.9799304050824402, 1e-10);
    assert_near(student_quantile(0.001, 3), 12.923978636687961, 1e-9);
}

/* scipy.stats.ttest_rel(log(b), log(a)) with its confidence_interval(), and permutation_test() of
 * the mean with permutation_type="samples". */
static void pairs_as_scipy(void **unused)
{
    const double a[] = {1000, 1010, 990, 1005, 1020}, b[] = {950, 965, 930, 960, 962};
    const double logs[] = {.01, -.004, .02, .013, .007, -.001, .03, .002};
    double ones[8], ratios[8];
    struct paired paired = paired_test(a, b, 5, 1, false);

    assert_int_equal(paired.pairs, 5);
    assert_near(paired.ratio, 0.9486182467211504, 1e-12);
    assert_near(paired.low, 0.939713938948981, 1e-10);
    assert_near(paired.high, 0.9576069277196977, 1e-10);
    assert_near(paired.p, 0.00010038107799265667, 1e-12);
    assert_near(paired.sign_flip_p, 0.0625, 1e-12);
    for (int i = 0; i < 8; i++) {
        ones[i] = 1;
        ratios[i] = exp(logs[i]);
    }
    paired = paired_test(ones, ratios, 8, 1, false);
    assert_near(paired.p, 0.047206325353916445, 1e-12);
    assert_near(paired.sign_flip_p, 0.046875, 1e-12);
    paired = paired_test(ones, ratios, 8, 1, true);
    assert_near(paired.p, 2.5 * 0.047206325353916445, 1e-12);
    assert_true(paired.low < 1);
}

static void few_or_equal_pairs(void **unused)
{
    const double a[] = {100, 200, 300, 400, 500}, b[] = {90, 180, 270, 360, 450};
    struct paired paired = paired_test(a, b, 1, 1, false);

    assert_near(paired.ratio, 0.9, 1e-12);
    assert_true(isnan(paired.p) && isnan(paired.low) && paired.coverage == 0);
    assert_true(isnan(paired_test(a, b, 0, 1, false).ratio));
    paired = paired_test(a, a, 5, 1, false);
    assert_true(paired.ratio == 1 && paired.p == 1);
    paired = paired_test(a, b, 5, 1, false); /* no spread: the sign-flip test */
    assert_near(paired.p, 0.0625, 1e-12);
    assert_int_equal(
        paired_test((const double[]){1, 0, 3}, (const double[]){1, 2, 3}, 3, 1, false).pairs, 2);
}

/* A pair of several turns is the interquartile mean of their logarithms: a hiccup of one turn does
 * not count. scipy.stats.trim_mean(logs, 0.25) of each 4, then ttest_1samp. */
static void turns_make_up_a_pair(void **unused)
{
    const double logs[] = {.01, -.004, .02, .013, .007, -.001, .9, .002, .012, .004, -.7, .01, .5};
    double ones[13], ratios[13];

    for (int i = 0; i < 13; i++) {
        ones[i] = 1;
        ratios[i] = exp(logs[i]);
    }
    struct paired paired = paired_test(ones, ratios, 13, 4, false);
    assert_int_equal(paired.pairs, 3); /* the incomplete rest is left out */
    assert_near(log(paired.ratio), (.0115 + .0045 + .007) / 3, 1e-12);
    assert_near(paired.p, 0.06453039000060323, 1e-12);
    ratios[1] = 0; /* unknown: the pair is the mean of its other turns */
    paired = paired_test(ones, ratios, 13, 4, false);
    assert_near(log(paired.ratio), ((.01 + .02 + .013) / 3 + .0045 + .007) / 3, 1e-12);
    ratios[0] = ratios[2] = ratios[3] = NAN;
    assert_int_equal(paired_test(ones, ratios, 13, 4, false).pairs, 2);
}

/* statsmodels.stats.multitest.multipletests(method="holm") */
static void holm_as_statsmodels(void **unused)
{
    double four[] = {.01, .04, .03, .005}, three[] = {.2, .01, .9};

    paired_holm(four, 4);
    paired_holm(three, 3);
    assert_near(four[0], 0.03, 1e-12);
    assert_near(four[1], 0.06, 1e-12);
    assert_near(four[2], 0.06, 1e-12);
    assert_near(four[3], 0.02, 1e-12);
    assert_near(three[0], 0.4, 1e-12);
    assert_near(three[1], 0.03, 1e-12);
    assert_near(three[2], 0.9, 1e-12);

    /* NAN is no test. Up to 64 by Holm: the second by 63. Of 65 by Bonferroni: each by 65. */
    double many[PAIRED_HOLM_MAX + 2];
    for (size_t count = PAIRED_HOLM_MAX; count <= PAIRED_HOLM_MAX + 1; count++) {
        for (size_t i = 0; i < count; i++)
            many[i] = i ? .01 : .0001;
        many[count] = NAN;
        paired_holm(many, count + 1);
        assert_near(many[0], .0001 * (double)count, 1e-12);
        assert_near(many[1], fmin(1, .01 * (count > PAIRED_HOLM_MAX ? 65 : 63)), 1e-12);
        assert_true(isnan(many[count]));
    }
}

/* ---- simulated sessions ---- */

/* Sequential runs on one storage; *state persists between runs. */
static double run_normal(struct random *random, double *state)
{
    return 100 + 1.5 * random_normal(random);
}

static double run_lognormal(struct random *random, double *state)
{
    return exp(0.3 * random_normal(random));
}

static double run_bursty(struct random *random, double *state)
{
    return (random_below(random, 10) ? 100 : 75) + random_normal(random);
}

/* Shared storage: alternates between slow and fast phases. */
static double run_wandering(struct random *random, double *state)
{
    *state += 0.05 * random_normal(random);
    return 100 * exp(*state + 0.01 * random_normal(random));
}

static const struct law {
    const char *name;
    double (*run)(struct random *random, double *state);
} laws[] = {{"normal", run_normal},
            {"log-normal", run_lognormal},
            {"bursty", run_bursty},
            {"wandering", run_wandering}};

/* Rounds of a baseline and rivals in random order, as in `run --against`; rates of rivals are
 * multiplied by effect. rates[0] is the baseline's. */
static void sit(const struct law *law, struct random *random, size_t rounds, uint64_t jobs,
                double effect, double (*rates)[PAIRS])
{
    double state = 0;
    uint32_t order[8];

    for (size_t i = 0; i < rounds; i++) {
        for (uint32_t k = 0; k < jobs; k++)
            order[k] = k;
        random_shuffle_u32(random, order, jobs);
        for (uint64_t k = 0; k < jobs; k++)
            rates[order[k]][i] = law->run(random, &state) * (order[k] ? effect : 1);
    }
}

static bool is_rare(int count, int of)
{
    return count <= 0.05 * of + 3 * sqrt(0.05 * 0.95 * of);
}

/* With corrected p, any false alarm among all comparisons of a session is as rare as in a single
 * one: at most 5%, plus the trials' chance error of three standard deviations. */
static void equal_options_differ_rarely(void **unused)
{
    struct random random = random_start(5);
    double rates[4][PAIRS];

    for (uint64_t rivals = 1; rivals <= 3; rivals += 2)
        for (size_t law = 0; law < sizeof laws / sizeof laws[0]; law++) {
            print_message("%llu rivals, %-10s", (unsigned long long)rivals, laws[law].name);
            for (size_t rounds = 3; rounds <= 20; rounds += rounds < 7 ? 1 : 3) {
                int alarms = 0;
                for (int trial = 0; trial < trials; trial++) {
                    double p[3];
                    sit(&laws[law], &random, rounds, rivals + 1, 1, rates);
                    for (uint64_t k = 0; k < rivals; k++)
                        p[k] = paired_test(rates[0], rates[k + 1], rounds, 1, false).p;
                    paired_holm(p, rivals);
                    bool is_alarm = false;
                    for (uint64_t k = 0; k < rivals; k++)
                        is_alarm = is_alarm || p[k] < 0.05;
                    alarms += is_alarm;
                }
                print_message(" %4.1f", 100.0 * alarms / trials);
                assert_true(is_rare(alarms, trials));
            }
            print_message("\n");
        }
}

/* How often 5 pairs detect a 5% difference, by the spread of single runs. */
static void five_percent_are_found(void **unused)
{
    struct random random = random_start(6);
    double rates[2][PAIRS];
    int found = 0;

    for (int trial = 0; trial < trials; trial++) {
        sit(&laws[0], &random, 5, 2, 0.95, rates);
        found += paired_test(rates[0], rates[1], 5, 1, false).p < 0.05;
    }
    print_message("5%% slower, 5 pairs, runs spread by 1.5%%: found %.1f%%\n",
                  100.0 * found / trials);
    assert_true(found >= 0.9 * trials);
}

/* Storage that drifts by more than the difference, with a hiccup every 20 runs: 5 pairs of single
 * runs do not detect 5%, 5 pairs of 16 turns do, and false alarms for equal options stay rare.
 * Every second turn reverses the order of the previous one, as in a session. */
static void turns_cancel_drift(void **unused)
{
    enum { TURNS = 16, ROUNDS = 5 * TURNS };
    struct random random = random_start(8);
    int found[2] = {0}, alarms = 0;

    for (int trial = 0; trial < trials; trial++) {
        double rates[2][ROUNDS], slower[ROUNDS], drift = 0;
        for (size_t i = 0; i < ROUNDS; i++) {
            const uint64_t first = i % 2 ? 0 : random_below(&random, 2);
            for (uint64_t k = 0; k < 2; k++) {
                drift = 0.6 * drift + 0.05 * random_normal(&random);
                const double hiccup = random_below(&random, 20) == 0 ? -0.25 : 0;
                rates[(first + k) % 2][i] = exp(drift + 0.01 * random_normal(&random) + hiccup);
            }
            slower[i] = 0.95 * rates[1][i];
        }
        found[0] += paired_test(rates[0], slower, 5, 1, false).p < 0.05;
        found[1] += paired_test(rates[0], slower, ROUNDS, TURNS, false).p < 0.05;
        alarms += paired_test(rates[0], rates[1], ROUNDS, TURNS, false).p < 0.05;
    }
    print_message(
        "5%% slower, drift of 6%%: found %.1f%% by 5 single runs, %.1f%% by 5 pairs of 16 "
        "turns; alarms %.1f%%\n",
        100.0 * found[0] / trials, 100.0 * found[1] / trials, 100.0 * alarms / trials);
    assert_true(found[0] < 0.5 * trials && found[1] >= 0.9 * trials);
    assert_true(is_rare(alarms, trials));
}

/* Pairs are added until the interval is narrow enough. It keeps its coverage of the true ratio, and
 * false alarms stay as rare as stated. */
static void covers_after_stopping(void **unused)
{
    static const double widths[] = {0.005, 0.01, 0.02, 0.05};
    struct random random = random_start(7);
    double rates[2][PAIRS];

    for (size_t law = 0; law < sizeof laws / sizeof laws[0]; law++) {
        print_message("until, %-10s", laws[law].name);
        for (size_t i = 0; i < 4; i++) {
            int covered = 0, alarms = 0;
            uint64_t rounds = 0;
            for (int trial = 0; trial < trials / 2; trial++) {
                struct paired paired = {0};
                sit(&laws[law], &random, PAIRS, 2, 1, rates);
                size_t count = STATS_UNTIL_FIRST;
                for (; count <= PAIRS; count++) {
                    paired = paired_test(rates[0], rates[1], count, 1, true);
                    if ((paired.high - paired.low) / 2 / paired.ratio <= widths[i])
                        break;
                }
                covered += paired.low <= 1 && paired.high >= 1;
                alarms += paired.p < 0.05;
                rounds += count;
            }
            print_message("  +-%.1f%%: covered %.1f%%, alarms %.1f%%, %4.1f pairs", 100 * widths[i],
                          200.0 * covered / trials, 200.0 * alarms / trials,
                          (double)rounds / (trials / 2.0));
            assert_true(is_rare(trials / 2 - covered, trials / 2) && is_rare(alarms, trials / 2));
        }
        print_message("\n");
    }
}

int main(void)
{
    const char *wants_long = getenv("IOBENCH_LONG");

    if (wants_long && *wants_long == '1')
        trials = TRIALS_LONG;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(student_as_scipy),       cmocka_unit_test(pairs_as_scipy),
        cmocka_unit_test(few_or_equal_pairs),     cmocka_unit_test(turns_make_up_a_pair),
        cmocka_unit_test(holm_as_statsmodels),    cmocka_unit_test(equal_options_differ_rarely),
        cmocka_unit_test(five_percent_are_found), cmocka_unit_test(turns_cancel_drift),
        cmocka_unit_test(covers_after_stopping),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
