/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/job.h"

#include "formats/format.h"
#include "pipeline/settings/job.h"

int bench_job_open(struct bench_job *bench_job, const char *const (*options)[2], size_t count)
{
    *bench_job = (struct bench_job){0};
    int code = option_defaults(job_options, &bench_job->job);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = option_set(job_options, &bench_job->job, options[i][0], options[i][1], "bench");
    if (code == 0)
        code = job_choose(&bench_job->job, &bench_job->plugins);
    if (code == 0)
        code = plugin_choose("format", format_registry, "files", &bench_job->plugins.format);
    return code;
}

void bench_job_close(struct bench_job *bench_job)
{
    plugin_release(&bench_job->plugins.format);
    job_release(&bench_job->plugins);
    option_release(job_options, &bench_job->job);
}
