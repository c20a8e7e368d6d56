/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep: shared by the parts of `iobench sweep`: the command (cmd/sweep/sweep.c), its folder and
 * measurements (cmd/sweep/folder.c), tables and files (cmd/sweep/report.c). Main thread.
 */
#ifndef IOBENCH_CMD_SWEEP_SWEEP_H
#define IOBENCH_CMD_SWEEP_SWEEP_H

#include "base/lock.h"
#include "cmd/command.h"
#include "cmd/line.h"
#include "cmd/sweep/figures.h"

#include <jansson.h>

enum sweep_scaling { SWEEP_SCALING_AUTO, SWEEP_STRONG, SWEEP_WEAK, SWEEP_STRONG_WEAK };

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
    uint64_t fingerprint;
};

/* ---- cmd/sweep/sweep.c: figures from the results of the commands ---- */

int sweep_read_job(const json_t *document, struct sweep_figures *figures);
int sweep_read_inference(const json_t *document, struct sweep_figures *figures);
int sweep_read_survey(const json_t *document, struct sweep_figures *figures);

/* ---- cmd/sweep/folder.c: each measurement is saved to a file as it ends ---- */

/* Create or reopen the folder, wait until no measurement runs in it, and load its contents.
 * Returns 0, -EEXIST if it belongs to another sweep, or another negative errno with a reason. */
int sweep_folder_open(struct sweep *sweep);
void sweep_folder_close(struct sweep *sweep);
/* Return the malloc()ed path of a measurement, or NULL with a reason. */
char *sweep_folder_file(const struct sweep *sweep, uint32_t cell, uint32_t round);
/* Return a cell's command line; json: where it writes its result, NULL: not said. Release it. Empty
 * with a reason on failure. */
struct sweep_words {
    char **list; /* NULL-terminated */
    size_t count;
};
int sweep_cell_words(const struct sweep *sweep, uint32_t cell, const char *json,
                     struct sweep_words *words);
void sweep_words_release(struct sweep_words *words);

/* Measure a cell and load its figures. tick: called about ten times a second. Returns 0 even if the
 * measurement failed, which is recorded; -EINTR; or another negative errno with a reason. */
int sweep_cell_run(struct sweep *sweep, uint32_t cell, uint32_t round, bool (*tick)(void *context),
                   void *context);

/* ---- cmd/sweep/scaling.c: speed-up and efficiency over ranks or nodes, and where their time went
 * ---- */

/* Name of the axis of both kinds of scaling. */
#define SWEEP_SCALING "scaling"

/* Return the scaling axis: ranks, else nodes, if it has several values; SWEEP_NO_AXIS: none. */
size_t sweep_scaling_axis(const struct sweep_plan *plan);
/* Return "strong" if the job's samples are the same on any number of ranks, "weak" if each rank's
 * are. */
const char *sweep_scaling_kind(const struct sweep_plan *plan, uint32_t cell);
/* Check --scaling against the other options, and add the axis of both kinds of scaling if it asks
 * for them. Returns 0, or a negative errno with a reason. */
int sweep_scaling_plan(struct sweep *sweep);
/* Return whether the cell has this option: of the two limits on samples only that of its kind. */
bool sweep_scaling_has(const struct sweep_plan *plan, uint32_t cell, const char *option);
struct sweep_scale {
    const char *ranks; /* the cell's value on the axis */
    struct sweep_summary summary;
    struct paired speed_up; /* samples/s over those at the axis's first value, round by round */
    double efficiency;      /* speed-up over the growth in ranks */
};
struct sweep_scale sweep_scale_of(const struct sweep_table *table, uint32_t cell, size_t axis);

/* ---- cmd/sweep/report.c ---- */

/* Print the heading and the rows of some cells. */
void sweep_print_cells(FILE *stream, const struct sweep *sweep, uint32_t first, uint32_t count);
/* Print the tables. left_out: why cells were left out; NULL: none were. */
void sweep_print(FILE *stream, const struct sweep *sweep, const char *left_out);

/* Write --json and --csv. Returns 0 or -errno. */
int sweep_write_files(const struct sweep *sweep, const char *left_out);

#endif
