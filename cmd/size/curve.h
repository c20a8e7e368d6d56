/* SPDX-License-Identifier: Apache-2.0
 *
 * curve: bytes/s of a storage by size of a read and number of reads in flight, as measured. Between
 * measured points the logarithm of the rate is linear in the logarithms of both. Fewer reads in
 * flight than measured get proportionally less, more get no more; smaller reads come at the rate of
 * reads of the smallest size, larger ones at the bytes/s of the largest. Pure; any thread.
 */
#ifndef IOBENCH_CMD_SIZE_CURVE_H
#define IOBENCH_CMD_SIZE_CURVE_H

#include "base/profiles/profiles.h"

#include <stdio.h>

enum { SIZING_CURVE_SIZES = 16, SIZING_CURVE_DEPTHS = 16 };

/* Reads of one size. */
struct sizing_curve_row {
    double read_bytes;
    unsigned count;
    double depths[SIZING_CURVE_DEPTHS]; /* ascending */
    struct quantity bytes_per_s[SIZING_CURVE_DEPTHS];
};

struct sizing_curve {
    unsigned count;
    struct sizing_curve_row rows[SIZING_CURVE_SIZES]; /* by size, ascending */
};

/* Add or replace a row: "1:12.5e6 +-3%, 4:48e6" is depth:bytes/s. Returns 0, or -EINVAL without a
 * reason. */
int sizing_curve_parse(struct sizing_curve *curve, double read_bytes, const char *text);
/* Write a row as parse() reads it. */
void sizing_curve_print(FILE *stream, const struct sizing_curve_row *row);

/* Return bytes/s; INFINITY of an empty curve. deviations: how far all points lie from what they
 * state, in standard deviations. */
double sizing_curve_rate(const struct sizing_curve *curve, double read_bytes, double depth,
                         double deviations);
/* The same at the best of the measured depths: deep queues may be slower. */
double sizing_curve_best(const struct sizing_curve *curve, double read_bytes, double deviations);

#endif
