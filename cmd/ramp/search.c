/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ramp/search.h"

#include <math.h>
#include <string.h>

/* Loads that may be guessed; after them the bracket is bisected, whatever runs deliver. */
enum { GUESSES_MOST = 6 };

/* Return what most runs say so far; previews say it while there are none. */
static enum ramp_verdict judge_load(const struct ramp_load *load)
{
    if (load->held == load->failed)
        return load->held ? RAMP_UNDECIDED : load->preview;
    return load->held > load->failed ? RAMP_HOLDS : RAMP_FAILS;
}

static bool is_settled(const struct ramp_search *search, const struct ramp_load *load)
{
    const uint32_t majority = search->runs / 2 + 1;

    return load->held >= majority || load->failed >= majority;
}

/* Four digits: finer than any search resolves, short enough to type. */
static double rounded(double load)
{
    const double unit = pow(10, floor(log10(load)) - 3);

    return round(load / unit) * unit;
}

struct ramp_answer ramp_search_answer(const struct ramp_search *search)
{
    struct ramp_answer answer = {.high = INFINITY};
    bool all_held = true;

    for (size_t i = 0; i < search->count; i++) {
        const struct ramp_load *load = &search->loads[i];
        const enum ramp_verdict verdict = judge_load(load);
        if (verdict == RAMP_FAILS && answer.failed == 0)
            answer.failed = load->load;
        if (verdict == RAMP_HOLDS && answer.failed == 0)
            answer.held = load->load;
        all_held = all_held && load->failed == 0;
        if (all_held && load->held > 0)
            answer.low = load->load;
        if (load->held > 0)
            answer.high = INFINITY;
        else if (load->failed > 0 && isinf(answer.high))
            answer.high = load->load;
    }
    return answer;
}

static bool is_between(const struct ramp_answer *answer, double load)
{
    return load > answer->held && load < answer->failed;
}

/* Return a load just below or above the rate that the lowest failing load delivered; 0: that says
 * nothing, since it kept up and was late for another reason, or it was tried. */
static double guess(const struct ramp_search *search, const struct ramp_answer *answer)
{
    const double half = 1 + 0.45 * search->precision; /* the two are closer than the precision */

    for (size_t i = 0; i < search->count && search->guesses < GUESSES_MOST; i++) {
        const struct ramp_load *load = &search->loads[i];
        if (load->load == answer->failed && load->delivered > 0 &&
            load->delivered < load->load / (1 + search->precision)) {
            const double below = rounded(load->delivered / half);
            const double above = rounded(load->delivered * half);
            if (is_between(answer, below))
                return below;
            return is_between(answer, above) ? above : 0;
        }
    }
    return 0;
}

/* Return a load that narrows the bracket; 0: it is narrow. */
static double narrow(const struct ramp_search *search, const struct ramp_answer *answer)
{
    if (answer->failed <= answer->held * (1 + search->precision))
        return 0;
    const double guessed = guess(search, answer);
    const double middle = rounded(sqrt(answer->held * answer->failed));
    if (guessed > 0)
        return guessed;
    return is_between(answer, middle) ? middle : 0;
}

/* Return a load that may complete the bracket; 0: it has no other end. */
static double widen(const struct ramp_search *search, const struct ramp_answer *answer)
{
    if (answer->failed > 0)
        return answer->failed > ldexp(search->from, -RAMP_HALVINGS) ? answer->failed / 2 : 0;
    if (answer->held > 0)
        return answer->held < search->to ? fmin(2 * answer->held, search->to) : 0;
    return search->from;
}

struct ramp_step ramp_search_next(const struct ramp_search *search)
{
    const struct ramp_answer answer = ramp_search_answer(search);
    const bool is_bracket = answer.failed > 0 && answer.held > 0;
    struct ramp_step step = {0};

    for (size_t i = 0; i < search->count; i++)
        if (judge_load(&search->loads[i]) == RAMP_UNDECIDED)
            return (struct ramp_step){.load = search->loads[i].load};
    if (search->count < RAMP_LOADS)
        step.load = is_bracket ? narrow(search, &answer) : widen(search, &answer);
    step.preview = step.load > 0 && !is_bracket && search->from < search->to;
    for (size_t i = 0; i < search->count && step.load == 0; i++) {
        const struct ramp_load *load = &search->loads[i];
        if ((load->load == answer.held || load->load == answer.failed) && !is_settled(search, load))
            step.load = load->load;
    }
    return step;
}

void ramp_search_add(struct ramp_search *search, struct ramp_step step, bool holds,
                     double delivered)
{
    const struct ramp_answer answer = ramp_search_answer(search);
    size_t place = 0;

    if (step.load == guess(search, &answer))
        search->guesses++;
    while (place < search->count && search->loads[place].load < step.load)
        place++;
    struct ramp_load *at = &search->loads[place];
    if (place == search->count || at->load > step.load) {
        memmove(at + 1, at, (search->count - place) * sizeof *at);
        *at = (struct ramp_load){.load = step.load};
        search->count++;
    }
    if (step.preview)
        at->preview = holds ? RAMP_HOLDS : RAMP_FAILS;
    at->held += holds && !step.preview;
    at->failed += !holds && !step.preview;
    if (!holds)
        at->delivered = delivered;
}

struct ramp_point ramp_point_of(struct ramp_step step, const struct result_run *run,
                                double limit_percent, double *step_ns)
{
    const struct result_epoch *epoch = &run->epochs[0];
    const struct histogram *late = &run->batch_late_ns;
    struct ramp_point point = {
        .load = step.load,
        .preview = step.preview,
        .offered_samples_per_s = (double)epoch->samples / (double)epoch->nominal_ns * 1e9,
        .samples_per_s = result_epoch_paced_samples_per_s(epoch),
        .bytes_per_s = result_epoch_paced_bytes_per_s(epoch),
        .read_samples_per_s = result_epoch_read_samples_per_s(epoch),
        .batches = late->count,
        .late_p50_ns = histogram_quantile(late, 0.5),
        .late_p99_ns = histogram_quantile(late, 0.99),
        .late_max_ns = histogram_quantile(late, 1),
        .cache = run->cold.state,
        .limit = epoch->limit,
    };

    *step_ns = (double)epoch->nominal_ns / (double)epoch->batches * step.load;
    point.stall_percent = 100 * (double)point.late_p99_ns / *step_ns;
    /* What was read before the first batch, a window and more, is no rate of the storage. */
    point.is_behind = point.read_samples_per_s < point.samples_per_s;
    if (point.is_behind) {
        point.bytes_per_s *= point.read_samples_per_s / point.samples_per_s;
        point.samples_per_s = point.read_samples_per_s;
    }
    point.holds = point.stall_percent < limit_percent && !point.is_behind;
    return point;
}
