/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ramp_search.h"

#include <math.h>
#include <string.h>

enum ramp_verdict { UNDECIDED, HOLDS, FAILS };

static enum ramp_verdict judge(const struct ramp_search *search, const struct ramp_load *load)
{
    const uint32_t majority = search->runs / 2 + 1;

    if (load->held >= majority)
        return HOLDS;
    return load->failed >= majority ? FAILS : UNDECIDED;
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
        const enum ramp_verdict verdict = judge(search, load);
        if (verdict == FAILS && answer.failed == 0)
            answer.failed = load->load;
        if (verdict == HOLDS && answer.failed == 0)
            answer.held = load->load;
        all_held = all_held && load->failed == 0;
        if (all_held)
            answer.low = load->load;
        if (load->held > 0)
            answer.high = INFINITY;
        else if (isinf(answer.high))
            answer.high = load->load;
    }
    return answer;
}

double ramp_search_next(const struct ramp_search *search)
{
    const struct ramp_answer answer = ramp_search_answer(search);
    double next = search->from;

    for (size_t i = 0; i < search->count; i++)
        if (judge(search, &search->loads[i]) == UNDECIDED)
            return search->loads[i].load;
    if (search->count == RAMP_LOADS)
        return 0;
    if (answer.failed > 0 && answer.held > 0) {
        if (answer.failed <= answer.held * (1 + search->precision))
            return 0;
        next = rounded(sqrt(answer.held * answer.failed));
        return next > answer.held && next < answer.failed ? next : 0;
    }
    if (answer.held > 0)
        next = answer.held < search->to ? fmin(2 * answer.held, search->to) : 0;
    if (answer.failed > 0)
        next = answer.failed > ldexp(search->from, -RAMP_HALVINGS) ? answer.failed / 2 : 0;
    return next;
}

void ramp_search_add(struct ramp_search *search, double load, bool holds)
{
    size_t place = 0;

    while (place < search->count && search->loads[place].load < load)
        place++;
    struct ramp_load *at = &search->loads[place];
    if (place == search->count || at->load > load) {
        memmove(at + 1, at, (search->count - place) * sizeof *at);
        *at = (struct ramp_load){.load = load};
        search->count++;
    }
    at->held += holds;
    at->failed += !holds;
}
