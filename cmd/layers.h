/* SPDX-License-Identifier: Apache-2.0
 *
 * layers: settings come from defaults, a workload (--workload), a preset (--as), a job file and the
 * command line; later layers override earlier ones. Main thread.
 */
#ifndef IOBENCH_CMD_LAYERS_H
#define IOBENCH_CMD_LAYERS_H

#include "cmd/command.h"
#include "pipeline/settings/job.h"

/* Apply a preset of shuffle/preset.h, skipping options without a row in table: `train` does not
 * overlap epochs, `shuffle` has its own option for orders. Returns 0 or -EINVAL. */
int layers_preset(const char *name, const struct option_spec *table, void *settings);

/* Apply what a workload of base/profiles/workload sets. Returns 0 or a negative errno. */
int layers_workload(const char *name, const struct option_spec *table, void *settings);

/* Apply the command line, the last layer. Returns 0 or -EINVAL. */
int layers_command_line(const struct invocation *invocation, const struct option_spec *table,
                        void *settings);

/* Set the options of a job that have no row in table, whose settings hold the job at job_at, to the
 * defaults of `iobench run`. Returns 0 or -EINVAL. */
int layers_complete(const struct option_spec *table, size_t job_at, struct job *job);

#endif
