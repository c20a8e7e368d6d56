/* SPDX-License-Identifier: Apache-2.0
 *
 * progress: status line of a run: phase, share done, rate, time left. Main thread only.
 */
#ifndef IOBENCH_CMD_PROGRESS_H
#define IOBENCH_CMD_PROGRESS_H

#include "cmd/line.h"
#include "pipeline/jobs/run.h"

struct progress {
    struct line line;
};

struct progress progress_start(void);
/* For struct run_observer; context is a struct progress. */
void progress_show(void *context, const struct run_progress *progress);
/* Clear the line before printing anything else. */
void progress_clear(struct progress *progress);

#endif
