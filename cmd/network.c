/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/network.h"

#include "base/fail.h"
#include "cmd/arguments.h"
#include "cmd/layers.h"

#include <errno.h>

int network_choose(struct network_settings *settings, const struct option_spec *table,
                   size_t job_at, struct network_choice *choice)
{
    struct job *job = &settings->job;
    int code = layers_complete(table, job_at, job);

    choice->network = network_find(settings->name);
    if (code || !choice->network)
        return -EINVAL;
    choice->side = (uint32_t)(settings->side ? settings->side : choice->network->side);
    choice->classes = (uint32_t)(settings->classes ? settings->classes : choice->network->classes);
    choice->threads = (uint32_t)settings->threads;
    code = option_set(job_options, job, "trainer", settings->name, "--network");
    if (code)
        return code;
    return job->read.data ? arguments_check_data(job->read.data)
                          : fail(EINVAL, "--data is required");
}
