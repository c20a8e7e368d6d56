/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/network.h"

#include "base/fail.h"
#include "cmd/arguments.h"

#include <errno.h>

static int set_texts(const struct network_settings *settings, const char *shuffle, struct job *job)
{
    const char *const texts[][2] = {{"data", settings->data},
                                    {"format", settings->format},
                                    {"reader", settings->reader},
                                    {"decode", settings->decode},
                                    {"shuffle", shuffle}};
    int code = 0;

    for (size_t i = 0; i < sizeof texts / sizeof *texts && code == 0; i++)
        if (texts[i][1])
            code = option_set(job_options, job, texts[i][0], texts[i][1], texts[i][0]);
    return code;
}

int network_choose(const struct network_settings *settings, const char *shuffle, struct job *job,
                   struct network_choice *choice)
{
    int code = option_defaults(job_options, job);

    choice->network = network_find(settings->name);
    if (code || !choice->network)
        return -EINVAL;
    choice->side = (uint32_t)(settings->side ? settings->side : choice->network->side);
    choice->classes = (uint32_t)(settings->classes ? settings->classes : choice->network->classes);
    choice->threads = (uint32_t)settings->threads;
    job->limit_samples = settings->limit_samples;
    job->seed = settings->seed;
    job->threads = settings->workers;
    job->prefetch_batches = settings->prefetch;
    job->iodepth = settings->iodepth;
    job->memory_bytes = settings->memory_bytes;
    job->direct = settings->direct;
    if (!settings->data)
        return fail(EINVAL, "--data PATH: which data set?");
    code = set_texts(settings, shuffle, job);
    return code ? code : arguments_check_data(job->data);
}
