/* SPDX-License-Identifier: Apache-2.0
 *
 * The program: finds the command, parses its options and runs it. The default command is the first
 * one in the registry, `run`.
 */
#include "base/child.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "cmd/arguments.h"
#include "cmd/command.h"
#include "cmd/outputs.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const struct option_spec no_options[] = {{0}};

static int check_operands(const struct invocation *invocation)
{
    const struct command *command = invocation->command;

    if (invocation->count < command->operands_minimum)
        return fail(EINVAL, "%s %s missing", command->operands,
                    command->operands_minimum > 1 ? "are" : "is");
    if (command->operands_maximum >= 0 && invocation->count > command->operands_maximum)
        return fail(EINVAL, "unexpected operand '%s'",
                    invocation->operands[command->operands_maximum]);
    for (int i = 0; command->operands_exist && i < invocation->count; i++) {
        if (command->operands_reach[i > 0] == OPTION_MAKES_SET)
            continue;
        /* Do not check URLs, "synthetic:count=9", or the ":" between two groups. */
        const char *path = invocation->operands[i];
        if (!strchr(path, ':') && strcmp(path, "-") != 0 && access(path, F_OK) != 0 &&
            (errno == ENOENT || errno == ENOTDIR))
            return fail(ENOENT, "%s: No such file or directory%s", path, format_hint_missing(path));
        /* Refuse "s3://bucket/set" and the like: no reader serves it, and no local file has that
         * name. */
        struct store_status status;
        if (strstr(path, "://") && store_is_local(path) && store_stat(path, &status) == -EINVAL)
            return -EINVAL;
    }
    return 0;
}

/* named: the command line names the command. */
static int call(const struct command *command, bool named, int argc, char **argv)
{
    const struct option_spec *options = command->options ? command->options : no_options;
    struct common_settings common = {0};
    struct invocation invocation = {.command = command, .argc = argc, .argv = argv};
    struct arguments arguments = {0};
    int status;

    invocation.settings = memory_zeroed(command->settings_size + 1);
    if (!invocation.settings || option_defaults(options, invocation.settings)) {
        status = command_failed(&invocation);
        free(invocation.settings);
        return status;
    }
    struct arguments_scope scopes[] = {{.table = options, .settings = invocation.settings},
                                       {.table = common_options, .settings = &common},
                                       {0},
                                       {0}};
    int code = command->adopt ? command->adopt(&invocation, &scopes[2]) : 0;
    if (code == 0)
        code = arguments_parse(scopes, argc, argv, &arguments);
    invocation.count = arguments.count;
    invocation.operands = arguments.operands;
    invocation.behind = arguments.behind;
    invocation.sandbox = common.sandbox;
    invocation.allow_commands = common.allow_commands;
    if (code == 0 && (common.version || common.help)) {
        status = COMMAND_OK;
        if (common.version)
            puts("iobench " PACKAGE_VERSION);
        else if (common.help == HELP_ALL)
            help_everything();
        else if (named)
            help_command(command);
        else
            help_program();
    } else if (code || check_operands(&invocation) || outputs_check_options(&invocation))
        status = command_misused(&invocation);
    else if (command->is_confined && sandbox_enter(&invocation, invocation.settings, 1))
        status = command_failed(&invocation);
    else
        status = command->run(&invocation);
    free(arguments.operands);
    option_release(options, invocation.settings);
    free(invocation.settings);
    return status;
}

static void say_remark(const char *text)
{
    if (ranks_speaks())
        fprintf(stderr, "iobench: %s\n", escape_shown(text));
}

int main(int argc, char **argv)
{
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    int status;

    startup_undo_inherited();
    if (escape_streams(&stdout, &stderr)) {
        fputs("iobench: out of memory\n", stderr);
        return COMMAND_FAILED;
    }
    /* The program loads files named by the environment and opens files named by the command line.
     */
    if (getauxval(AT_SECURE)) {
        fputs("iobench: must not be set-uid or set-gid, or have file capabilities\n", stderr);
        return COMMAND_USAGE;
    }
    format_on_remark(say_remark);
    if (command)
        status = call(command, true, argc - 2, argv + 2);
    else if (argc > 1 && argv[1][0] && argv[1][0] != '-' && !file_exists(argv[1]) &&
             !strpbrk(argv[1], "./")) {
        /* The first word is neither a command nor a file. */
        struct nearest nearest = nearest_start(argv[1]);
        for (int i = 0; command_registry[i]; i++)
            nearest_offer(&nearest, command_registry[i]->name);
        fprintf(stderr, "iobench: unknown command '%s'%s\nTry 'iobench --help'.\n",
                escape_shown(argv[1]), nearest_hint(&nearest));
        status = COMMAND_USAGE;
    } else
        status = call(command_registry[0], false, argc - 1, argv + 1);
    /* A file that could not be opened for lack of a descriptor may have seemed missing or damaged:
     * the command fails, even if it did not notice. A reason that it already gave is not
     * repeated. */
    if (shortage_code()) {
        if (status == COMMAND_OK || strcmp(fail_reason(), shortage_what()) != 0)
            fprintf(stderr, "iobench: %s: figures may be missing or wrong: %s\n",
                    fail_errno_text(shortage_code()), shortage_what());
        status = status == COMMAND_OK ? COMMAND_FAILED : status;
    }
    /* Data that was not written is a failure: "> file" on a full disk. */
    fflush(stdout);
    const int error = escape_output_error();
    if (error) {
        if (error != EPIPE)
            fprintf(stderr, "iobench: standard output: %s\n", fail_errno_text(error));
        if (status == COMMAND_OK)
            status = COMMAND_FAILED;
    }
    return status;
}
