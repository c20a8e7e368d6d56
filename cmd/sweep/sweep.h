/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep: a sweep and its measurements. Main thread.
 */
#ifndef IOBENCH_CMD_SWEEP_SWEEP_H
#define IOBENCH_CMD_SWEEP_SWEEP_H

#include "base/draft.h"
#include "cmd/command.h"
#include "cmd/line.h"
#include "cmd/sweep/plan.h"

#include <jansson.h>

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
