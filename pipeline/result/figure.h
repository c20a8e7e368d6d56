/* SPDX-License-Identifier: Apache-2.0
 *
 * figure: a table of figures, a row each: where it is in its struct, its key and unit, how it
 * merges, why it may be unknown, and what it means. From the rows of an epoch come its sums over
 * epochs and over ranks, JSON, CSV, the JSON Schema and the tables of docs/json.md and
 * docs/metrics.md.
 */
#ifndef IOBENCH_PIPELINE_RESULT_FIGURE_H
#define IOBENCH_PIPELINE_RESULT_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct result_epoch;

enum figure_type {
    FIGURE_COUNT,   /* uint64_t */
    FIGURE_ORDINAL, /* uint64_t from 0, reported from 1 */
    FIGURE_NUMBER,  /* uint32_t */
    FIGURE_TIME,    /* uint64_t nanoseconds, reported in seconds */
    FIGURE_REAL,    /* double */
    FIGURE_FLAG,    /* bool */
    FIGURE_TEXT,    /* char array; "" is unknown */
    FIGURE_STATS,   /* struct stats_summary, reported under five keys; count 0 is unknown */
    FIGURE_DERIVED, /* value() of an epoch; NAN is unknown */
    FIGURE_LIMIT,   /* enum result_limit */
    FIGURE_DIGEST,  /* two uint64_t, reported as a text */
};

enum figure_merge {
    FIGURE_FIRST, /* that of the first one, or merged by a rule of its own */
    FIGURE_SUM,
    FIGURE_XOR,
    FIGURE_MEAN,
    FIGURE_MOST,
};

struct figure {
    const char
        *key; /* in JSON, with the unit; "object.key" of an object within; NULL: not reported */
    enum figure_type type;
    size_t offset;
    enum figure_merge epochs, ranks;
    double (*value)(const struct result_epoch *epoch);
    /* Why the figure is unknown: where known_at is the offset of a bool, if that is false; else if
     * it is 0. reason_at: offset of a text that gives the reason. */
    const char *unknown;
    size_t known_at, reason_at;
    const char *column; /* in the CSV; NULL: not there */
    int digits;         /* after the point, there */
    /* For the documentation: what it is, by which clock, where it is measured, which test is its
     * witness. */
    const char *meaning, *clock, *code, *witness;
};

/* The type and offset of a row, whose type is that of the field; and what says whether it is known.
 */
#define FIGURE_AT(kind, of, field)                        \
    FIGURE_##kind, .offset = offsetof(struct of, field) + \
                             0 * sizeof(FIGURE_IS_##kind(((struct of *)0)->field))
#define FIGURE_KNOWN(of, field) \
    .known_at = offsetof(struct of, field) + 0 * sizeof(FIGURE_IS_FLAG(((struct of *)0)->field))
#define FIGURE_REASON(of, field) \
    .reason_at = offsetof(struct of, field) + 0 * sizeof(FIGURE_IS_TEXT(((struct of *)0)->field))
#define FIGURE_IS_COUNT(field) _Generic(field, uint64_t : 0)
#define FIGURE_IS_ORDINAL(field) _Generic(field, uint64_t : 0)
#define FIGURE_IS_NUMBER(field) _Generic(field, uint32_t : 0)
#define FIGURE_IS_TIME(field) _Generic(field, uint64_t : 0)
#define FIGURE_IS_REAL(field) _Generic(field, double : 0)
#define FIGURE_IS_FLAG(field) _Generic(field, bool : 0)
#define FIGURE_IS_TEXT(field) _Generic(field, char * : 0)
#define FIGURE_IS_STATS(field) _Generic(field, struct stats_summary : 0)
#define FIGURE_IS_DERIVED(field) _Generic(field, struct result_epoch : 0)
#define FIGURE_IS_LIMIT(field) _Generic(field, enum result_limit : 0)
#define FIGURE_IS_DIGEST(field) _Generic(field, uint64_t : 0)

/* The figures of an epoch, in the order of reports. */
extern const struct figure figures_of_epoch[];
extern const size_t figures_of_epoch_count;

/* Add a later epoch of the same ranks. */
void result_epoch_add(struct result_epoch *sum, const struct result_epoch *later);
/* Merge an epoch of `count` ranks, at least one, by the rows. What has no row, or a rule of its
 * own, is that of the first rank. The epochs of the ranks are `stride` bytes apart. */
void figures_merge_ranks(const struct result_epoch *first, size_t stride, uint32_t count,
                         struct result_epoch *merged);

static inline const struct result_epoch *figures_of_rank(const struct result_epoch *first,
                                                         size_t stride, uint32_t rank)
{
    return (const struct result_epoch *)(const void *)((const char *)first + stride * rank);
}

#endif
