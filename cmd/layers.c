/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/layers.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/profiles/profiles.h"
#include "cmd/arguments.h"
#include "shuffle/preset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int layers_command_line(const struct invocation *invocation, const struct option_spec *table,
                        void *settings)
{
    struct common_settings common = {0};
    struct arguments arguments;
    const struct arguments_scope scopes[] = {{.table = table, .settings = settings},
                                             {.table = common_options, .settings = &common},
                                             {0}};
    int code = arguments_parse(scopes, invocation->argc, invocation->argv, &arguments);

    free(arguments.operands);
    return code;
}

int layers_complete(const struct option_spec *table, size_t job_at, struct job *job)
{
    int code = 0;

    for (const struct option_spec *row = job_options; row->name && code == 0; row++) {
        const struct option_spec *own = table;
        while (own->name && own->offset != job_at + row->offset)
            own++;
        if (row->fallback && !own->name)
            code = option_set(job_options, job, row->name, row->fallback, row->name);
    }
    return code;
}

int layers_workload(const char *name, const struct option_spec *table, void *settings)
{
    struct ini ini;
    int code = profiles_load("workload", name, NULL, &ini);
    const struct ini_section *run = code ? NULL : profiles_section(&ini, "run");

    for (size_t i = 0; code == 0 && run && i < run->count; i++) {
        const struct ini_entry *entry = &ini.entries[run->first + i];
        if (strcmp(entry->key, "source") != 0 && option_find(table, entry->key))
            code = option_set(table, settings, entry->key, entry->value, "--workload");
    }
    ini_release(&ini);
    return code == -ENOENT ? fail(EINVAL, "--workload: %s", fail_reason()) : code;
}

int layers_preset(const char *name, const struct option_spec *table, void *settings)
{
    const struct preset *preset = preset_find(name);
    struct nearest nearest = nearest_start(name);
    int code = 0;

    for (int i = 0; preset_table[i].name; i++)
        nearest_offer(&nearest, preset_table[i].name);
    if (!preset)
        return nearest_fail(&nearest, EINVAL, "--as: unknown framework");
    for (int i = 0; code == 0 && i < PRESET_SETTINGS && preset->settings[i].option; i++)
        if (option_find(table, preset->settings[i].option))
            code = option_set(table, settings, preset->settings[i].option,
                              preset->settings[i].value, "--as");
    return code;
}

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
