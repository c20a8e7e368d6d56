/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/matrix.h"

#include "base/memory.h"
#include "base/stats.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const double share = 0.75, share_of_one = 0.5, deviations = 5, mad_scale = 1.4826;

/* Of fewer values, one that is slow itself determines their spread. */
enum { SPREAD_LEAST = 5 };

static double median(double *values, size_t count)
{
    stats_sort(values, count);
    return count == 0 ? NAN : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

struct usual {
    double median, floor; /* below the floor a value is slow */
};

/* Sorts values. */
static struct usual usual_of(double *values, size_t count)
{
    struct usual usual = {.median = median(values, count)};

    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - usual.median);
    usual.floor =
        fmin(share * usual.median, usual.median - deviations * mad_scale * median(values, count));
    if (count < SPREAD_LEAST)
        usual.floor = share_of_one * usual.median;
    return usual;
}

/* Return the node of a rank. */
static uint32_t node_of(const struct matrix *matrix, uint32_t rank)
{
    assert(rank < matrix->ranks);
    return matrix->nodes > 1 ? matrix->node_of[rank] : rank;
}

static uint32_t node_count(const struct matrix *matrix)
{
    return matrix->nodes > 1 ? matrix->nodes : matrix->ranks;
}

struct judge {
    const struct matrix *matrix;
    struct suspect *suspects;
    int count, most;
    double *values;                    /* room for every link */
    bool *slow_sender, *slow_receiver; /* nodes */
};

static void accuse(struct judge *judge, struct suspect suspect)
{
    if (judge->count < judge->most)
        judge->suspects[judge->count++] = suspect;
}

/* Is this a link of the kind, measured? */
static bool is_link(const struct matrix *matrix, uint32_t from, uint32_t to, bool is_within)
{
    return from != to && isfinite(matrix->bytes_per_s[(size_t)from * matrix->ranks + to]) &&
           (node_of(matrix, from) == node_of(matrix, to)) == is_within;
}

static void judge_nodes(struct judge *judge, bool is_sending)
{
    const uint32_t nodes = node_count(judge->matrix);
    double *best = judge->values, *sorted = best + nodes;
    size_t count = 0;

    /* The fastest link of each node, out or in; NAN if none was measured. */
    for (uint32_t i = 0; i < nodes; i++)
        best[i] = NAN;
    for (uint32_t from = 0; from < judge->matrix->ranks; from++)
        for (uint32_t to = 0; to < judge->matrix->ranks; to++) {
            const uint32_t node = node_of(judge->matrix, is_sending ? from : to);
            if (is_link(judge->matrix, from, to, false))
                best[node] =
                    fmax(best[node],
                         judge->matrix->bytes_per_s[(size_t)from * judge->matrix->ranks + to]);
        }
    for (uint32_t i = 0; i < nodes; i++)
        if (isfinite(best[i]))
            sorted[count++] = best[i];
    if (count < 3)
        return;
    const struct usual usual = usual_of(sorted, count);
    for (uint32_t i = 0; i < nodes; i++)
        if (best[i] < usual.floor) {
            (is_sending ? judge->slow_sender : judge->slow_receiver)[i] = true;
            accuse(judge, (struct suspect){is_sending ? SUSPECT_SENDER : SUSPECT_RECEIVER, i, i,
                                           best[i], usual.median});
        }
}

static bool is_explained(const struct judge *judge, uint32_t from, uint32_t to)
{
    return judge->slow_sender[node_of(judge->matrix, from)] ||
           judge->slow_receiver[node_of(judge->matrix, to)];
}

static void judge_links(struct judge *judge, bool is_within)
{
    const struct matrix *matrix = judge->matrix;
    size_t count = 0;

    for (uint32_t from = 0; from < matrix->ranks; from++)
        for (uint32_t to = 0; to < matrix->ranks; to++)
            if (is_link(matrix, from, to, is_within) && !is_explained(judge, from, to))
                judge->values[count++] = matrix->bytes_per_s[(size_t)from * matrix->ranks + to];
    if (count < 3)
        return;
    const struct usual usual = usual_of(judge->values, count);
    for (uint32_t from = 0; from < matrix->ranks; from++)
        for (uint32_t to = 0; to < matrix->ranks; to++) {
            const double rate = matrix->bytes_per_s[(size_t)from * matrix->ranks + to];
            if (is_link(matrix, from, to, is_within) && !is_explained(judge, from, to) &&
                rate < usual.floor)
                accuse(judge, (struct suspect){SUSPECT_LINK, from, to, rate, usual.median});
        }
}

/* The slower direction over the faster one; NAN unless both were measured. */
static double evenness(const struct matrix *matrix, uint32_t a, uint32_t b)
{
    const double forth = matrix->bytes_per_s[(size_t)a * matrix->ranks + b];
    const double back = matrix->bytes_per_s[(size_t)b * matrix->ranks + a];

    return isfinite(forth) && isfinite(back) ? fmin(forth, back) / fmax(forth, back) : NAN;
}

static void judge_asymmetry(struct judge *judge)
{
    const struct matrix *matrix = judge->matrix;
    size_t count = 0;

    for (uint32_t a = 0; a < matrix->ranks; a++)
        for (uint32_t b = a + 1; b < matrix->ranks; b++)
            if (isfinite(evenness(matrix, a, b)))
                judge->values[count++] = evenness(matrix, a, b);
    const struct usual usual = usual_of(judge->values, count);
    /* With one pair there is nothing to compare with. */
    const double floor = count < 3 ? share_of_one : usual.floor;
    for (uint32_t a = 0; a < matrix->ranks; a++)
        for (uint32_t b = a + 1; b < matrix->ranks; b++) {
            const double forth = matrix->bytes_per_s[(size_t)a * matrix->ranks + b];
            const double back = matrix->bytes_per_s[(size_t)b * matrix->ranks + a];
            if (evenness(matrix, a, b) < fmin(share, floor) && !is_explained(judge, a, b) &&
                !is_explained(judge, b, a))
                accuse(judge, (struct suspect){SUSPECT_ASYMMETRY, forth < back ? a : b,
                                               forth < back ? b : a, fmin(forth, back),
                                               fmax(forth, back)});
        }
}

int matrix_judge(const struct matrix *matrix, struct suspect *suspects, int most)
{
    const size_t links = (size_t)matrix->ranks * matrix->ranks, nodes = node_count(matrix);
    struct judge judge = {.matrix = matrix, .suspects = suspects, .most = most};
    int code = -ENOMEM;

    judge.values = memory_array(links + 2 * nodes, sizeof *judge.values);
    judge.slow_sender = memory_array(nodes, sizeof *judge.slow_sender);
    judge.slow_receiver = memory_array(nodes, sizeof *judge.slow_receiver);
    if (judge.values && judge.slow_sender && judge.slow_receiver) {
        judge_nodes(&judge, true);
        judge_nodes(&judge, false);
        judge_links(&judge, false);
        judge_links(&judge, true);
        judge_asymmetry(&judge);
        code = judge.count;
    }
    free(judge.values);
    free(judge.slow_sender);
    free(judge.slow_receiver);
    return code;
}

int matrix_median(const struct matrix *matrix, const double *values, bool is_within, double *middle)
{
    double *found = memory_array((size_t)matrix->ranks * matrix->ranks, sizeof *found);
    size_t count = 0;

    if (!found)
        return -ENOMEM;
    for (uint32_t from = 0; from < matrix->ranks; from++)
        for (uint32_t to = 0; to < matrix->ranks; to++)
            if (is_link(matrix, from, to, is_within))
                found[count++] = values[(size_t)from * matrix->ranks + to];
    *middle = median(found, count);
    free(found);
    return 0;
}
