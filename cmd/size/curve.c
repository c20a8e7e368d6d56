/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/curve.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINT_BYTES = 64 };

/* ---- text ---- */

static const char *skip_space(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

int sizing_curve_parse(struct sizing_curve *curve, double read_bytes, const char *text)
{
    struct sizing_curve_row row = {.read_bytes = read_bytes};
    unsigned at = 0;

    if (!(read_bytes >= 1 && read_bytes <= 1e12))
        return -EINVAL;
    for (const char *point = skip_space(text); *point;) {
        const size_t length = strcspn(point, ",");
        const unsigned i = row.count++;
        char copy[POINT_BYTES], *end; /* "DEPTH:RATE +-P%" */
        if (length >= sizeof copy || i == SIZING_CURVE_DEPTHS)
            return -EINVAL;
        memcpy(copy, point, length);
        copy[length] = '\0';
        row.depths[i] = strtod(copy, &end);
        if (end == copy || *end != ':' || !(row.depths[i] >= 1 && row.depths[i] <= 1e9) ||
            quantity_parse(end + 1, &row.bytes_per_s[i]) || !(row.bytes_per_s[i].value > 0) ||
            (i && row.depths[i] <= row.depths[i - 1]))
            return -EINVAL;
        point = skip_space(point + length + (point[length] == ','));
    }
    while (at < curve->count && curve->rows[at].read_bytes < read_bytes)
        at++;
    const int replaces = at < curve->count && curve->rows[at].read_bytes <= read_bytes;
    if (row.count == 0 || (curve->count == SIZING_CURVE_SIZES && !replaces))
        return -EINVAL;
    if (!replaces)
        memmove(&curve->rows[at + 1], &curve->rows[at],
                (curve->count++ - at) * sizeof curve->rows[0]);
    curve->rows[at] = row;
    return 0;
}

void sizing_curve_print(FILE *stream, const struct sizing_curve_row *row)
{
    for (unsigned i = 0; i < row->count; i++) {
        fprintf(stream, "%s%.0f:", i ? ", " : "", row->depths[i]);
        quantity_print(stream, &row->bytes_per_s[i]);
    }
}

/* ---- rates ---- */

/* Return the logarithm of a point that lies `share` of the way between two. */
static double between(double low, double high, double share)
{
    return low + share * (high - low);
}

static double share_of(double value, double low, double high)
{
    return log(value / low) / log(high / low);
}

static double log_rate(const struct quantity *rate, double deviations)
{
    return log(rate->value) + quantity_deviation(rate) * deviations;
}

/* Return the logarithm of a row's rate. */
static double row_rate(const struct sizing_curve_row *row, double depth, double deviations)
{
    const unsigned last = row->count - 1;
    unsigned at = 0;

    assert(row->count > 0);
    if (depth <= row->depths[0])
        return log_rate(&row->bytes_per_s[0], deviations) + log(depth / row->depths[0]);
    if (depth >= row->depths[last])
        return log_rate(&row->bytes_per_s[last], deviations);
    while (depth > row->depths[at + 1])
        at++;
    return between(log_rate(&row->bytes_per_s[at], deviations),
                   log_rate(&row->bytes_per_s[at + 1], deviations),
                   share_of(depth, row->depths[at], row->depths[at + 1]));
}

double sizing_curve_rate(const struct sizing_curve *curve, double read_bytes, double depth,
                         double deviations)
{
    const struct sizing_curve_row *rows = curve->rows;
    unsigned at = 0;

    if (curve->count == 0)
        return INFINITY;
    if (read_bytes <= rows[0].read_bytes)
        return exp(row_rate(&rows[0], depth, deviations)) * read_bytes / rows[0].read_bytes;
    if (read_bytes >= rows[curve->count - 1].read_bytes)
        return exp(row_rate(&rows[curve->count - 1], depth, deviations));
    while (read_bytes > rows[at + 1].read_bytes)
        at++;
    return exp(between(row_rate(&rows[at], depth, deviations),
                       row_rate(&rows[at + 1], depth, deviations),
                       share_of(read_bytes, rows[at].read_bytes, rows[at + 1].read_bytes)));
}

double sizing_curve_best(const struct sizing_curve *curve, double read_bytes, double deviations)
{
    double best = curve->count ? 0 : INFINITY;

    for (unsigned i = 0; i < curve->count; i++)
        for (unsigned k = 0; k < curve->rows[i].count; k++)
            best = fmax(best,
                        sizing_curve_rate(curve, read_bytes, curve->rows[i].depths[k], deviations));
    return best;
}
