/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep: the cells of a sweep, the order in which to measure them, and what follows from the
 * measurements. An axis is an option and its values; a cell has one value of each axis, and its
 * number counts through them, the last axis fastest. The base cell, number 0, has the first value
 * of each. Main thread.
 *
 * Values are separated by commas. A comma is part of a value after a backslash, and before
 * KEY=VALUE in a value that has begun with NAME:..., since those are arguments of a plug-in and no
 * value begins with KEY=. FROM:TO:xFACTOR and FROM:TO:+STEP are ranges of numbers. "all" stands for
 * every alternative of an option.
 */
#ifndef IOBENCH_CMD_SWEEP_SWEEP_H
#define IOBENCH_CMD_SWEEP_SWEEP_H

#include "base/draft.h"
#include "base/option.h"
#include "base/plugin.h"
#include "base/stats.h"
#include "cmd/command.h"
#include "cmd/line.h"

#include <jansson.h>

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
 * family that the option chooses from, for "all"; NULL: none. Returns 0 or -errno with a reason. */
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
/* Draw the order of a round, `cells` numbers: all at random, or the most informative first. */
void sweep_order(const struct sweep_plan *plan, uint64_t seed, uint32_t round, bool telling_first,
                 uint32_t *order);
/* ---- sweep_figures: what a sweep keeps of one measurement of a cell, and what follows from all of
 * them: a summary of each cell, the effect of each value, and scaling over ranks. Measurements that
 * are not valid enter nothing ---- */

/* The phases of a step, as in enum result_phase, and: */
enum sweep_part {
    SWEEP_WAIT,
    SWEEP_UPLOAD,
    SWEEP_COMPUTE,
    SWEEP_EXCHANGE,
    SWEEP_UPDATE,
    SWEEP_BARRIER, /* waiting for other ranks, before and after epochs */
    SWEEP_PARTS
};
extern const char *const sweep_part_names[SWEEP_PARTS];

struct sweep_figures {
    bool is_measured, is_valid;
    bool is_interrupted;       /* by somebody else, while its sweep was killed or went on */
    char reason[256];          /* why it is invalid */
    char limit[24], cache[40]; /* "": unknown */
    double samples_per_s;      /* NAN: not measured, as in a survey of shuffles */
    double randomness;         /* of a surveyed shuffle; 0: none */
    double wall_s, parts_s[SWEEP_PARTS]; /* mean per rank; wall_s includes barriers */
    uint32_t ranks;
    uint64_t set;                  /* hash of the data set's path and format; 0: unknown */
    double set_samples, set_bytes; /* of records, all of the set */
    uint64_t files, host;          /* hashes of its identity and of the host; files 0: unknown */
    bool is_replaced;              /* invalid, since another measurement read another set */
};

/* The measurements of all cells, round by round: rounds times plan.cells. */
struct sweep_table {
    const struct sweep_plan *plan;
    uint32_t rounds;
    struct sweep_figures *figures;
};

const struct sweep_figures *sweep_at(const struct sweep_table *table, uint32_t cell,
                                     uint32_t round);

/* Return a valid measurement of the same path that found another data set there; NULL: none. */
const struct sweep_figures *sweep_of_other_set(const struct sweep_table *table,
                                               const struct sweep_figures *figures);

struct sweep_summary {
    uint32_t measured, valid;
    double randomness;                  /* of the last measurement */
    struct stats_summary samples_per_s; /* of the valid measurements */
    const char *limit, *cache;          /* "mixed" if they differ; "" if none is valid */
    const char *reason;                 /* of the first invalid measurement; NULL: none */
    double shares[SWEEP_PARTS];         /* shares of wall time; NAN: unknown */
    uint32_t ranks;
};
struct sweep_summary sweep_summarise(const struct sweep_table *table, uint32_t cell);

/* A value of an option against its first value, over all pairs of measurements in the same round
 * that differ in this option alone. */
struct sweep_effect {
    size_t axis, digit;
    struct paired paired;
    size_t cache_pairs; /* pairs before which the caches differed */
    double p_corrected; /* for the number of effects, by Holm (more than 64: Bonferroni) */
};
/* Return *count effects, to be freed; NULL with a reason. */
struct sweep_effect *sweep_effects(const struct sweep_table *table, size_t *count);

/* Compare a cell with that of the axis's first value, over the rounds that measured both. */
struct paired sweep_against_first(const struct sweep_table *table, uint32_t cell, size_t axis);

/* ---- the command ---- */

struct sweep_settings {
    char *output, *ranks, *nodes, *launch, *json, *csv;
    uint64_t runs, budget_ns, order_seed;
    int scaling; /* enum sweep_scaling */
    bool retry, dry_run;
};

/* A command that a sweep can run. */
struct sweep_target {
    const struct command *command;
    bool is_launched;                    /* cells run on several ranks, by --launch */
    const struct plugin *const *members; /* family of its operands; NULL: no operands */
    /* Extract the figures from a result. Returns 0 or -EINVAL with a reason. */
    int (*read)(const json_t *document, struct sweep_figures *figures);
};

struct sweep_folder {
    char *path;
    struct file_lock lock; /* shared with the running measurement as its standard input */
    size_t kept;           /* measurements found at the start */
};

struct sweep {
    const struct invocation *invocation;
    const struct sweep_settings *settings;
    const struct sweep_target *target;
    const char *launch; /* NULL: cells are started directly */
    struct sweep_plan plan;
    struct sweep_table table;
    struct sweep_folder folder;
    char fingerprint[17]; /* of the plan and the build, hexadecimal */
};

int sweep_read_job(const json_t *document, struct sweep_figures *figures);
int sweep_read_inference(const json_t *document, struct sweep_figures *figures);
int sweep_read_survey(const json_t *document, struct sweep_figures *figures);

/* Print the heading and the rows of some cells. */
void sweep_print_cells(FILE *stream, const struct sweep *sweep, uint32_t first, uint32_t count);
/* Print the tables. left_out: why cells were left out; NULL: none were. */
void sweep_print(FILE *stream, const struct sweep *sweep, const char *left_out);

/* Write --json and --csv. Returns 0 or -errno. */
int sweep_write_files(const struct sweep *sweep, const char *left_out);

#endif
