/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/network.h"

#include "base/fail.h"
#include "cmd/arguments.h"
#include "cmd/layers.h"

#include <errno.h>

int network_choose(struct network_settings *settings, const struct option_spec *table,
                   size_t job_at, struct training_config *training)
{
    struct job *job = &settings->job;
    int code = layers_complete(table, job_at, job);

    const struct network *network = network_find(settings->name);
    if (code || !network)
        return -EINVAL;
    *training = (struct training_config){
        .network = network,
        .backend = settings->backend,
        .side = (uint32_t)(settings->side ? settings->side : network->side),
        .classes = (uint32_t)(settings->classes ? settings->classes : network->classes),
        .threads = (uint32_t)settings->threads,
    };
    code = option_set(job_options, job, "trainer", settings->name, "--network");
    if (code)
        return code;
    return job->read.data ? arguments_check_data("data", job->read.data)
                          : fail(EINVAL, "--data is required");
}
