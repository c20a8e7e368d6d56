/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/series.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t *row_of(const struct series *series, uint64_t row)
{
    assert(row < series->row_capacity);
    return series->rows + row * (1 + (uint64_t)series->metric_count);
}

int series_open(struct series *series, const struct metric *metrics, uint32_t metric_count,
                uint64_t row_capacity, uint32_t mark_capacity, enum series_full when_full)
{
    const size_t row_bytes = (1 + (size_t)metric_count) * sizeof *series->rows;

    *series = (struct series){.when_full = when_full,
                              .metric_count = metric_count,
                              .row_capacity = row_capacity < 2 ? 2 : row_capacity & ~UINT64_C(1),
                              .stride = 1,
                              .mark_capacity = mark_capacity};
    series->metrics = memory_array(metric_count + 1, sizeof *series->metrics);
    series->rows = memory_array(series->row_capacity, row_bytes);
    series->marks = memory_array(mark_capacity + 1, sizeof *series->marks);
    if (!series->metrics || !series->rows || !series->marks)
        return -ENOMEM;
    if (metric_count)
        memcpy(series->metrics, metrics, metric_count * sizeof *metrics);
    memset(series->rows, 0, series->row_capacity * row_bytes); /* takes page faults off the clock */
    return 0;
}

void series_close(struct series *series)
{
    free(series->metrics);
    free(series->rows);
    free(series->marks);
    *series = (struct series){0};
}

void series_append(struct series *series, uint64_t time_ns, const uint64_t *values)
{
    const size_t row_bytes = (1 + (size_t)series->metric_count) * sizeof *series->rows;

    if (series->offered++ % series->stride)
        return;
    assert(series->row_count <= series->row_capacity);
    if (series->row_count == series->row_capacity) {
        series->row_count /= 2;
        if (series->when_full == SERIES_RECENT) {
            memcpy(series->rows, row_of(series, series->row_capacity - series->row_count),
                   series->row_count * row_bytes);
        } else {
            for (uint64_t row = 1; row < series->row_count; row++)
                memcpy(row_of(series, row), row_of(series, 2 * row), row_bytes);
            series->stride *= 2; /* this row's number, row_capacity, is one that is kept */
        }
    }
    uint64_t *row = row_of(series, series->row_count++);
    row[0] = time_ns;
    memcpy(row + 1, values, series->metric_count * sizeof *values);
}

void series_mark(struct series *series, const struct series_mark *mark)
{
    assert(series->mark_count <= series->mark_capacity);
    if (series->mark_count == series->mark_capacity)
        series->marks_lost++;
    else
        series->marks[series->mark_count++] = *mark;
}

/* The monotonic time is the middle of the interval in which the other clock was read. */
struct series_anchor series_anchor_now(void)
{
    struct series_anchor best = {0};
    uint64_t least_ns = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        struct timespec now;
        uint64_t before_ns = clock_now_ns();
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t taken_ns = clock_now_ns() - before_ns;
        if (taken_ns >= least_ns)
            continue;
        least_ns = taken_ns;
        best = (struct series_anchor){.monotonic_ns = before_ns + taken_ns / 2,
                                      .unix_ns = (uint64_t)now.tv_sec * 1000000000u +
                                                 (uint64_t)now.tv_nsec};
    }
    return best;
}

double series_clock_step_s(const struct series_anchor *before, const struct series_anchor *after)
{
    const uint64_t day_ns = after->unix_ns - before->unix_ns;

    return (double)(int64_t)(day_ns - (after->monotonic_ns - before->monotonic_ns)) / 1e9;
}

uint64_t series_time_ns(const struct series *series, uint64_t row)
{
    return row_of(series, row)[0];
}

uint64_t series_value(const struct series *series, uint64_t row, uint32_t metric)
{
    assert(metric < series->metric_count);
    return row_of(series, row)[1 + metric];
}

/* A 32-bit counter that wrapped is less than half its range below its old value. */
bool series_growth(const struct metric *metric, uint64_t before, uint64_t after, uint64_t *growth)
{
    if (before == PROBE_MISSING || after == PROBE_MISSING)
        return false;
    if (metric->saturates && after == UINT32_MAX)
        return false;
    *growth = after - before;
    if (after >= before)
        return true;
    if (metric->bits >= 64)
        return false;
    *growth &= (UINT64_C(1) << metric->bits) - 1;
    return *growth < UINT64_C(1) << (metric->bits - 1);
}

double series_rate(const struct series *series, uint64_t row, uint32_t index)
{
    const struct metric *metric = &series->metrics[index];
    uint64_t value = series_value(series, row, index), growth;

    if (value == PROBE_MISSING)
        return NAN;
    if (metric->kind == METRIC_LEVEL)
        return (double)value * metric->scale;
    for (uint64_t before = row; before-- > 0;) {
        uint64_t earlier = series_value(series, before, index);
        if (earlier == PROBE_MISSING)
            continue;
        double seconds =
            (double)(series_time_ns(series, row) - series_time_ns(series, before)) / 1e9;
        if (seconds <= 0 || !series_growth(metric, earlier, value, &growth))
            return NAN;
        return (double)growth * metric->scale / seconds;
    }
    return NAN;
}

uint64_t series_row_after(const struct series *series, uint64_t time_ns)
{
    uint64_t low = 0, high = series->row_count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (series_time_ns(series, middle) <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double series_total(const struct series *series, uint32_t index, uint64_t from_ns, uint64_t to_ns)
{
    const struct metric *metric = &series->metrics[index];
    uint64_t before = PROBE_MISSING, growth, first = series_row_after(series, from_ns);
    double sum = NAN;

    /* Start at the last row up to from_ns in which it was known. */
    while (first > 0 && before == PROBE_MISSING)
        before = series_value(series, --first, index);
    before = PROBE_MISSING;
    for (uint64_t row = first; row < series->row_count; row++) {
        uint64_t time_ns = series_time_ns(series, row), value = series_value(series, row, index);
        if (time_ns > to_ns)
            break;
        if (value == PROBE_MISSING)
            continue;
        if (time_ns > from_ns && series_growth(metric, before, value, &growth))
            sum = (isnan(sum) ? 0 : sum) + (double)growth * metric->scale;
        before = value;
    }
    return sum;
}

uint32_t series_find(const struct series *series, const char *probe, const char *part,
                     const char *quantity)
{
    uint32_t i = 0;

    while (i < series->metric_count && (strcmp(series->metrics[i].probe, probe) != 0 ||
                                        strcmp(series->metrics[i].quantity, quantity) != 0 ||
                                        (part && strcmp(series->metrics[i].part, part) != 0)))
        i++;
    return i;
}

char *series_name(const struct metric *metric, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%s%s%s.%s", metric->probe, metric->part[0] ? "." : "", metric->part,
             metric->quantity);
    return text;
}
