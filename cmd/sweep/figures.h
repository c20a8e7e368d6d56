/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_figures: what a sweep keeps of one measurement of a cell, and what follows from all of
 * them: a summary of each cell, the effect of each value, and scaling over ranks. Measurements that
 * are not valid enter nothing. Pure except for allocations; main thread.
 */
#ifndef IOBENCH_CMD_SWEEP_FIGURES_H
#define IOBENCH_CMD_SWEEP_FIGURES_H

#include "base/stats.h"
#include "cmd/sweep/plan.h"

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
    char reason[256];                    /* why it is invalid */
    char limit[24], cache[40];           /* "": unknown */
    double samples_per_s;                /* NAN: not measured, as in a survey of shuffles */
    double randomness;                   /* of a surveyed shuffle; 0: none */
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

#endif
