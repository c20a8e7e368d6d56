/* SPDX-License-Identifier: Apache-2.0
 * iobench help: explains a command, or prints the manual page. */
#include "base/fail.h"
#include "cmd/commands.h"
#include "cmd/help.h"
#include "cmd/manual.h"
#include "cmd/nearest.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct help_settings {
    bool man;
};

static const struct option_spec help_options[] = {
    {"man", 0, OPTION_FLAG, offsetof(struct help_settings, man),
     .summary = "print the manual page, for man(1)"},
    {0},
};

static int help_run(const struct invocation *invocation)
{
    const struct help_settings *settings = invocation->settings;

    if (settings->man) {
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
    if (!command) {
        struct nearest nearest = nearest_start(invocation->operands[0]);
        for (int i = 0; command_registry[i]; i++)
            nearest_offer(&nearest, command_registry[i]->name);
        fail(EINVAL, "unknown command '%s'%s%s%s", invocation->operands[0],
             nearest.best ? "; did you mean '" : "", nearest.best ? nearest.best : "",
             nearest.best ? "'?" : "");
        return command_misused(invocation);
    }
    help_command(stdout, command);
    return COMMAND_OK;
}

const struct command command_help = {
    .name = "help",
    .summary = "explain a command or all of them",
    .operands = "[COMMAND|all]",
    .operands_maximum = 1,
    .options = help_options,
    .settings_size = sizeof(struct help_settings),
    .run = help_run,
};
