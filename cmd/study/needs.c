/* SPDX-License-Identifier: Apache-2.0
 * What a study needs of this machine and this build, and whether its commands are valid. */
#include "cmd/study/study.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/plugin.h"
#include "cmd/arguments.h"
#include "cmd/command.h"
#include "cmd/families.h"
#include "cmd/help/help.h"
#include "formats/format.h"
#include "trainer/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the machine ---- */

static bool has_gpu(void)
{
    const struct plugin *cuda = plugin_find(backend_registry, "cuda");

    return cuda && plugin_usable(cuda) == 0;
}

bool study_has_nodes(const struct study_options *options)
{
    return options && (options->launch || options->emulates_nodes);
}

/* What `needs` may name; "cpu" is the absence of a GPU. */
const char *study_lacks(const char *needs, const struct study_options *options)
{
    const bool launched = options && options->launch;
    const char *lack = NULL;

    if (options && options->emulates_nodes && geteuid() != 0)
        lack = "--emulate-nodes makes network namespaces, which needs root: use sudo";
    else if (needs && strstr(needs, "gpu") && !has_gpu())
        lack = "needs an NVIDIA GPU";
    else if (needs && strstr(needs, "cpu") && has_gpu())
        lack = "for machines without a GPU";
    else if (needs && strstr(needs, "launch") && !study_has_nodes(options))
        lack = "needs nodes: --launch, or --emulate-nodes as root";
    else if (needs && strstr(needs, "mpi") && !launched && !file_in_path("mpirun"))
        lack = "needs mpirun";
    else if (needs && strstr(needs, "fashion") && !file_exists(STUDY_FASHION))
        lack = "needs the package dataset-fashion-mnist";
    fail_clear();
    return lack;
}

/* ---- the build ---- */

static int check_plugin(const struct family *family, const char *value, bool is_written)
{
    const size_t length = strcspn(value, ":,");
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), value);
    const struct plugin *plugin = plugin_find(family->registry, name);
    if (strcmp(name, "auto") == 0)
        return 0;
    if (!plugin)
        return fail(ENOTSUP, "this build has no %s '%s'", family->name, name);
    int code = plugin_usable(plugin);
    return code || !is_written ? code : format_check_writable(plugin);
}

/* Return why a plug-in that the settings name cannot be used here. The caller frees it. NULL: all
 * can. */
static char *find_lack(const struct command *command, const void *settings)
{
    const bool makes_set = command->operands_reach[1] == OPTION_MAKES_SET;
    char *lack = NULL;

    for (const struct family *family = family_table; family->name && !lack; family++) {
        const struct option_spec *row =
            command->options ? option_find(command->options, family->option) : NULL;
        if (!row || row->type != OPTION_TEXT)
            continue;
        const char *value = *(char *const *)((const char *)settings + row->offset);
        if (value && check_plugin(family, value, makes_set && family->registry == format_registry))
            lack = strdup(fail_reason());
    }
    fail_clear();
    return lack;
}

/* ---- data sets ---- */

bool study_set_exists(const struct study_set *set)
{
    bool found = file_exists(set->path) && format_detect(set->path) != NULL;

    fail_clear();
    return found;
}

const char *study_lacking_set(const struct study_plan *plan, const struct study_run *run)
{
    for (size_t i = 0; i < plan->set_count; i++)
        if (run->sets >> i & 1 && plan->sets[i].lack)
            return plan->sets[i].lack;
    return NULL;
}

/* ---- commands ---- */

static bool starts_programs(const struct option_spec *options, const void *settings)
{
    for (; options && options->name; options++)
        if (options->reach == OPTION_RUNS &&
            *(char *const *)((const char *)settings + options->offset))
            return true;
    return false;
}

static int parse(const struct command *command, char **words, void *settings)
{
    struct common_settings common = {0};
    struct arguments arguments = {0};
    int count = 0, code = option_defaults(command->options, settings);
    const struct arguments_scope scopes[] = {{.table = command->options, .settings = settings},
                                             {.table = common_options, .settings = &common},
                                             {0}};

    while (words[count])
        count++;
    if (code == 0)
        code = arguments_parse(scopes, count - 1, words + 1, &arguments);
    if (code == 0 &&
        (arguments.count < command->operands_minimum ||
         (command->operands_maximum >= 0 && arguments.count > command->operands_maximum)))
        code = fail(EINVAL, "iobench %s: %d operands", words[0], arguments.count);
    free(arguments.operands);
    return code;
}

int study_check_words(char **words, bool allow_commands, char **lack)
{
    const struct command *command = command_find(words[0]);

    if (!command)
        return fail(EINVAL, "unknown command '%s'", words[0]);
    void *settings = memory_zeroed(command->settings_size + 1);
    int code = settings ? parse(command, words, settings) : -ENOMEM;
    if (code == 0 && !allow_commands && starts_programs(command->options, settings))
        code = fail(EPERM, "starts a program: needs --allow-commands");
    *lack = code ? NULL : find_lack(command, settings);
    if (settings)
        option_release(command->options, settings);
    free(settings);
    return code;
}
