/* SPDX-License-Identifier: Apache-2.0
 * iobench help: explains a command or a plug-in, or prints the manual page. */
#include "base/fail.h"
#include "base/nearest.h"
#include "cmd/commands.h"
#include "cmd/families.h"
#include "cmd/help/help.h"
#include "cmd/help/manual.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct help_settings {
    bool man;
};

static const struct option_spec help_options[] = {
    {"man", 0, OPTION_FLAG, offsetof(struct help_settings, man),
     .summary = "print the manual page, or that of a command, for man(1)"},
    {0},
};

static int help_run(const struct invocation *invocation)
{
    const struct help_settings *settings = invocation->settings;

    if (invocation->count == 0 && settings->man) {
        manual_print(stdout);
        return COMMAND_OK;
    }
    if (invocation->count == 0) {
        help_program(stdout);
        return COMMAND_OK;
    }
    if (strcmp(invocation->operands[0], "all") == 0) {
        help_everything(stdout);
        return COMMAND_OK;
    }
    const struct command *command = command_find(invocation->operands[0]);
    if (command && settings->man)
        manual_command(stdout, command);
    else if (command)
        help_command(stdout, command);
    else if (help_plugin(stdout, invocation->operands[0]) == 0) {
        struct nearest nearest = nearest_start(invocation->operands[0]);
        for (int i = 0; command_registry[i]; i++)
            nearest_offer(&nearest, command_registry[i]->name);
        for (const struct family *family = family_table; family->name; family++)
            for (int i = 0; family->registry[i]; i++)
                nearest_offer(&nearest, family->registry[i]->name);
        fail(EINVAL, "unknown command or plug-in '%s'%s", nearest.wanted, nearest_hint(&nearest));
        return command_misused(invocation);
    }
    return COMMAND_OK;
}

const struct command command_help = {
    .name = "help",
    .summary = "explain a command, a plug-in, or everything",
    .operands = "[COMMAND|PLUGIN|all]",
    .operands_maximum = 1,
    .options = help_options,
    .settings_size = sizeof(struct help_settings),
    .run = help_run,
};
