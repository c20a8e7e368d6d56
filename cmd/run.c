/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench run: carries out a job and prints its result.
 */
#include "base/fail.h"
#include "cmd/commands.h"
#include "pipeline/job.h"

#include <stdio.h>

static int run_run(const struct invocation *invocation)
{
    const struct job *job = invocation->settings;
    struct job_plugins plugins;

    if (job_choose(job, &plugins))
        return command_misused(invocation);
    job_release(&plugins);
    return COMMAND_OK;
}

const struct command command_run = {
    .name = "run",
    .summary = "read a data set as training does, and report how fast it arrived",
    .operands = "[JOBFILE...]",
    .operands_maximum = -1,
    .examples = "iobench\tmake a synthetic set where there is room, read it, print the table\n"
                "iobench --data /mnt/imagenet --drop-caches\tthree cold runs, proven cold\n"
                "iobench --data /mnt/set --trainer replay:h200,gpus=8\tare eight H200 kept busy?\n",
    .options = job_options,
    .settings_size = sizeof(struct job),
    .run = run_run,
};
