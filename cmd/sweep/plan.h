/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_plan: the cells of a sweep and the order in which to measure them. An axis is an option and
 * its values; a cell has one value of each axis, and its number counts through them, the last axis
 * fastest. The base cell, number 0, has the first value of each. Pure except for allocations; main
 * thread.
 *
 * Values are separated by commas. A comma is part of a value after a backslash, and before
 * KEY=VALUE in a value that has begun with NAME:..., since those are arguments of a plug-in and no
 * value begins with KEY=. FROM:TO:xFACTOR and FROM:TO:+STEP are ranges of numbers. "all" stands for
 * every alternative of an option.
 */
#ifndef IOBENCH_CMD_SWEEP_PLAN_H
#define IOBENCH_CMD_SWEEP_PLAN_H

#include "base/option.h"
#include "base/plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SWEEP_AXES_MAX = 64,
    SWEEP_VALUES_MAX = 1000,
    SWEEP_CELLS_MAX = 10000,
    SWEEP_MEASUREMENTS_MAX = 100000 /* cells times rounds */
};

struct sweep_axis {
    const char *name;              /* "batch-size"; borrowed */
    const struct option_spec *row; /* NULL: a number or an operand, not an option */
    char **values;
    size_t count;
};

struct sweep_plan {
    struct sweep_axis axes[SWEEP_AXES_MAX];
    size_t axis_count;
    uint32_t cells; /* after sweep_count() */
};

/* Add an axis with these values, or replace the values of the axis of that name. members: the
 * family that the option chooses from, for "all"; NULL: none. Returns 0, or a negative errno with a
 * reason. */
int sweep_add(struct sweep_plan *plan, const char *name, const struct option_spec *row,
              const struct plugin *const *members, const char *text);
/* Count the cells. Returns 0, or -EINVAL with a reason if there are too many. */
int sweep_count(struct sweep_plan *plan);
void sweep_release(struct sweep_plan *plan);

/* Return the axis of that name; NULL: none. */
const struct sweep_axis *sweep_axis_named(const struct sweep_plan *plan, const char *name);
/* Return the index of the cell's value on that axis; sweep_value(): the value itself. */
size_t sweep_digit(const struct sweep_plan *plan, uint32_t cell, size_t axis);
const char *sweep_value(const struct sweep_plan *plan, uint32_t cell, size_t axis);
/* Return the cell that differs from this one in that value only. */
uint32_t sweep_neighbour(const struct sweep_plan *plan, uint32_t cell, size_t axis, size_t digit);
/* Replace each {NAME} in text by the cell's value on that axis. Returns a malloc()ed text, or NULL
 * with a reason. */
char *sweep_fill(const struct sweep_plan *plan, uint32_t cell, const char *text);
/* Write "format=lmdb threads=2": the cell's values on the axes with several, except that axis and
 * that of this name (NULL: none);
 * sweep_title(): on all of them, or "the only cell". Both return text. */
#define SWEEP_NO_AXIS SIZE_MAX
const char *sweep_title_without(const struct sweep_plan *plan, uint32_t cell, size_t axis,
                                const char *name, char *text, size_t bytes);
const char *sweep_title(const struct sweep_plan *plan, uint32_t cell, char *text, size_t bytes);

/* Return how informative a cell is, best first: 0 the base cell; 1 one option at its last value;
 * 2 one option at another value; 3 several options, each first or last; 4 all others. */
unsigned sweep_class(const struct sweep_plan *plan, uint32_t cell);
/* Draw the order of a round: all cells at random, or the most informative first. order: cells
 * numbers. */
void sweep_order(const struct sweep_plan *plan, uint64_t seed, uint32_t round, bool telling_first,
                 uint32_t *order);

#endif
