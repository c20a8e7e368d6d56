/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/depth.h"

#include <assert.h>
#include <math.h>

/* Short enough for a sweep to end before the storage drifts. */
static const uint64_t WINDOW_NS = 10000000;
/* No larger depth is tried after an interval this long that gained nothing. */
static const uint64_t WINDOW_LONG_NS = 50000000;
static const double GROWTH = 1.1;
/* A depth below this share of the best interval is not a candidate. */
static const double FAR_SHARE = 0.7;
/* Half way between 1 and the required share: both errors are equally rare. */
static const double ENOUGH_SHARE = 1 - (1 - DEPTH_KNEE_SHARE) / 2;
static const double LUCK = 0.5; /* of a standard error */
enum {
    WINDOW_ROUNDS = 2, /* an interval holds at least this many times `depth` completions */
    SWEEPS_LEAST = 8,
};

void depth_start(struct depth *depth, uint32_t most)
{
    *depth = (struct depth){
        .now = 1, .knee = 1, .climbing = true, .is_found = most == 1, .random = random_start(1)};
    depth->depths[0] = 1;
    while (depth->depths[depth->last] < most && depth->last < DEPTHS_MOST - 1) {
        uint32_t now = depth->depths[depth->last++];
        depth->depths[depth->last] = now > most / 2 ? most : now * 2;
    }
}

void depth_fix(struct depth *depth)
{
    depth->now = depth->knee = depth->depths[depth->last];
    depth->is_found = true;
}

/* ---- statistics of the sweeps ---- */

/* A depth's log rate relative to the geometric mean of all candidates, over the sweeps. */
struct depth_level {
    double mean, error; /* error: standard error of the mean */
};

static double sweep_level(const struct depth *depth, uint32_t sweep)
{
    double sum = 0;

    for (uint32_t i = depth->first; i <= depth->last; i++)
        sum += log(depth->rates[sweep][i]);
    return sum / (depth->last - depth->first + 1);
}

static struct depth_level level_of(const struct depth *depth, uint32_t index)
{
    const uint32_t count = depth->sweeps;
    double sum = 0, squares = 0;

    for (uint32_t sweep = 0; sweep < count; sweep++) {
        double x = log(depth->rates[sweep][index]) - sweep_level(depth, sweep);
        sum += x;
        squares += x * x;
    }
    double mean = sum / count, variance = (squares - sum * mean) / (count - 1);
    return (struct depth_level){.mean = mean, .error = sqrt((variance > 0 ? variance : 0) / count)};
}

static double mean_rate(const struct depth *depth, double level)
{
    double sum = 0;

    for (uint32_t sweep = 0; sweep < depth->sweeps; sweep++)
        sum += sweep_level(depth, sweep);
    return exp(level + sum / depth->sweeps) / 2; /* a sweep has two intervals */
}

/* Significance in standard errors; more while few sweeps estimate them. */
static double chance(const struct depth *depth)
{
    return 2 + 8.0 / depth->sweeps;
}

/* Find the lowest depth that is good enough and drop depths that are significantly worse. Returns
 * true if the choice is significant. */
static bool judge_sweeps(struct depth *depth)
{
    /* The best pair of adjacent depths, less an allowance for chance: the best of many is the
     * luckiest. */
    struct depth_level here = level_of(depth, depth->first);
    double best = here.mean;
    for (uint32_t i = depth->first; i < depth->last; i++) {
        const struct depth_level next = level_of(depth, i + 1);
        const double pair = (here.mean + next.mean - LUCK * hypot(here.error, next.error)) / 2;
        if (i == depth->first || pair > best)
            best = pair;
        here = next;
    }
    const double enough = best + log(ENOUGH_SHARE);
    uint32_t knee = depth->first, low = depth->first;
    while (knee < depth->last && level_of(depth, knee).mean < enough)
        knee++;
    const struct depth_level level = level_of(depth, knee);
    depth->knee = depth->depths[knee];
    depth->knee_bytes_per_s = mean_rate(depth, level.mean);
    depth->best_bytes_per_s = fmax(mean_rate(depth, best), depth->knee_bytes_per_s);
    const bool sure = knee == depth->last || level.mean - chance(depth) * level.error >= enough;
    for (; low < knee; low++) {
        const struct depth_level lower = level_of(depth, low);
        if (lower.mean + chance(depth) * lower.error >= enough)
            break;
    }
    depth->first = low;
    return sure && low == knee;
}

/* ---- intervals ---- */

static void begin_sweep(struct depth *depth)
{
    const uint32_t count = depth->last - depth->first + 1;

    for (uint32_t i = 0; i < count; i++) {
        depth->order[i] = depth->first + i;
        depth->rates[depth->sweeps][depth->first + i] = 0;
    }
    random_shuffle_u32(&depth->random, depth->order, count);
    depth->reversed = false;
    depth->turn = 0;
    depth->at = depth->order[0];
}

/* Measure each depth once, into the first row; drop those far below the best. */
static void climb(struct depth *depth, double bytes_per_s, uint64_t window_ns)
{
    double *rates = depth->rates[0], best = 0;
    const uint32_t at = depth->at;

    rates[at] = bytes_per_s;
    if (at < depth->last &&
        (window_ns < WINDOW_LONG_NS || at == 0 || bytes_per_s > GROWTH * rates[at - 1])) {
        depth->at++;
        return;
    }
    depth->last = at;
    depth->climbing = false;
    for (uint32_t i = 0; i <= at; i++)
        best = rates[i] > best ? rates[i] : best;
    while (depth->first < at && rates[depth->first] < FAR_SHARE * best)
        depth->first++;
    begin_sweep(depth);
}

static void sweep(struct depth *depth, double bytes_per_s)
{
    assert(depth->sweeps < DEPTH_SWEEPS_MOST);
    depth->rates[depth->sweeps][depth->at] += bytes_per_s;
    if (!depth->reversed && depth->turn == depth->last - depth->first) {
        depth->reversed = true; /* the last one once more */
    } else if (!depth->reversed) {
        depth->at = depth->order[++depth->turn];
    } else if (depth->turn > 0) {
        depth->at = depth->order[--depth->turn];
    } else {
        depth->sweeps++;
        if (depth->sweeps >= SWEEPS_LEAST)
            depth->is_found = judge_sweeps(depth) || depth->sweeps == DEPTH_SWEEPS_MOST;
        if (!depth->is_found)
            begin_sweep(depth);
    }
}

void depth_feed(struct depth *depth, uint32_t requests, uint64_t bytes, bool full, uint64_t now_ns)
{
    if (depth->is_found)
        return;
    if (!full) {
        depth->running = false;
        depth->settling = depth->now;
        return;
    }
    if (depth->settling > 0) {
        depth->settling = depth->settling > requests ? depth->settling - requests : 0;
        depth->running = false;
        return;
    }
    if (!depth->running) {
        depth->running = true;
        depth->window_start_ns = now_ns;
        depth->window_bytes = depth->window_requests = 0;
        return;
    }
    depth->window_bytes += bytes;
    depth->window_requests += requests;
    const uint64_t window_ns = now_ns - depth->window_start_ns;
    if (window_ns < WINDOW_NS || depth->window_requests < (uint64_t)WINDOW_ROUNDS * depth->now)
        return;
    const double bytes_per_s = (double)depth->window_bytes / ((double)window_ns * 1e-9);
    depth->running = false;
    if (depth->climbing)
        climb(depth, bytes_per_s, window_ns);
    else
        sweep(depth, bytes_per_s);
    const uint32_t next = depth->is_found ? depth->knee : depth->depths[depth->at];
    if (next != depth->now) {
        depth->settling = depth->now > next ? depth->now : next;
        depth->now = next;
    }
}

/* ---- rate ---- */

uint64_t rate_wait_ns(struct rate *rate, uint64_t now_ns)
{
    if (!rate->bytes_per_s)
        return 0;
    if (!rate->next_ns)
        rate->next_ns = now_ns;
    if (now_ns > rate->next_ns + RATE_CREDIT_NS)
        rate->next_ns = now_ns - RATE_CREDIT_NS;
    return rate->next_ns > now_ns ? rate->next_ns - now_ns : 0;
}

void rate_spend(struct rate *rate, uint64_t bytes)
{
    if (rate->bytes_per_s)
        rate->next_ns += (uint64_t)((double)bytes * 1e9 / (double)rate->bytes_per_s);
}
