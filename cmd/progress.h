/* SPDX-License-Identifier: Apache-2.0
 *
 * progress: one line on a terminal that is written over again and again: phase, share done, rate,
 * time left. Where stderr is no terminal it says nothing. Main thread only.
 */
#ifndef IOBENCH_CMD_PROGRESS_H
#define IOBENCH_CMD_PROGRESS_H

#include "pipeline/run.h"

struct progress {
    bool shown; /* stderr is a terminal */
    uint64_t runs, epochs;
    char last[256];
};

struct progress progress_start(const struct job *job);
/* For struct run_observer; context is a struct progress. */
void progress_show(void *context, const struct run_progress *progress);
/* Clear the line, before something else is printed. */
void progress_clear(struct progress *progress);

#endif
