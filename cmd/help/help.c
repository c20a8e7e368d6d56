/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/help/help.h"

#include "base/fail.h"
#include "base/nearest.h"
#include "cmd/commands.h"
#include "cmd/families.h"
#include "cmd/help/manual.h"
#include "cmd/sandbox.h"
#include "report/words.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN = 28, NAME_COLUMN = 15 };

#define SHOWN_LETTERS "dsTBncj" /* of the options that the program's help shows: one screen */

static const char *const help_choices[] = {"no", "yes", "all", NULL};

const struct option_spec common_options[] = {
    {"help", 'h', OPTION_CHOICE, offsetof(struct common_settings, help), .choices = help_choices,
     .implied = "yes", .section = "Common options",
     .summary = "explain this command; all: every command and plug-in"},
    {"version", 'V', OPTION_FLAG, offsetof(struct common_settings, version),
     .summary = "print the version"},
    {"sandbox", 0, OPTION_CHOICE, offsetof(struct common_settings, sandbox), .fallback = "auto",
     .choices = sandbox_choices,
     .summary = "confine the process to data, outputs and caches (Landlock); auto: only as root"},
    {"allow-commands", 0, OPTION_FLAG, offsetof(struct common_settings, allow_commands),
     .summary = "allow job files to run commands (server-drop-cmd, server-check-cmd)"},
    {0},
};

const char *help_metavar(const struct option_spec *row)
{
    static const char *const by_type[] = {
        [OPTION_COUNT] = "N",       [OPTION_SIZE] = "SIZE", [OPTION_REAL] = "X",
        [OPTION_DURATION] = "TIME", [OPTION_TEXT] = "TEXT", [OPTION_CHOICE] = "WORD",
    };

    return row->metavar ? row->metavar : by_type[row->type];
}

/* "-f, --format=NAME" of a row. Returns text. */
static const char *option_column(const struct option_spec *row, char *text, size_t text_bytes)
{
    bool on = row->type == OPTION_FLAG && row->fallback && strcmp(row->fallback, "yes") == 0;
    char letter[8] = "    ";

    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    if (row->type == OPTION_FLAG)
        snprintf(text, text_bytes, "%s--%s%s", letter, on ? "[no-]" : "", row->name);
    else
        snprintf(text, text_bytes, "%s--%s%s=%s%s", letter, row->name, row->implied ? "[" : "",
                 help_metavar(row), row->implied ? "]" : "");
    return text;
}

static void print_entry(FILE *stream, const char *left, const char *right, int column)
{
    char before[128];

    snprintf(before, sizeof before, "  %s", left);
    words_print(stream, before, (size_t)column, right);
}

static void print_options(FILE *stream, const struct option_spec *table)
{
    const char *section = NULL;

    for (const struct option_spec *row = table; row && row->name; row++) {
        if (row->section && (!section || strcmp(section, row->section) != 0))
            fprintf(stream, "\n%s:\n", row->section);
        else if (row == table)
            fprintf(stream, "\nOptions:\n");
        section = row->section ? row->section : section;
        char left[96], right[512], words[256] = "";
        if (row->type == OPTION_CHOICE)
            for (int i = 0; row->choices[i]; i++)
                snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s",
                         i ? "|" : ": ", row->choices[i]);
        bool shown = row->fallback && row->type != OPTION_FLAG;
        snprintf(right, sizeof right, "%s%s%s%s%s", row->summary, words, shown ? " [" : "",
                 shown ? row->fallback : "", shown ? "]" : "");
        print_entry(stream, option_column(row, left, sizeof left), right, COLUMN);
    }
}

static void print_usage(FILE *stream, const struct command *command)
{
    fprintf(stream, "Usage: iobench %s%s%s%s\n", command->name,
            command->options ? " [OPTIONS]" : "", command->operands ? " " : "",
            command->operands ? command->operands : "");
}

/* Print at most `most` examples that contain text, below the heading, which is then "". */
static void print_examples(FILE *stream, const char **heading, const char *examples,
                           const char *text, int most)
{
    while (examples && *examples && most > 0) {
        size_t line = strcspn(examples, "\n"), command = strcspn(examples, "\t\n");
        const char *found = strstr(examples, text);
        if (found && found < examples + command) {
            fprintf(stream, "%s  %.*s\n", *heading, (int)command, examples);
            if (command < line)
                fprintf(stream, "      %.*s\n", (int)(line - command - 1), examples + command + 1);
            *heading = "";
            most--;
        }
        examples += line + (examples[line] == '\n');
    }
}

static void print_all_examples(FILE *stream, const struct command *command)
{
    const char *heading = "\nExamples:\n";

    print_examples(stream, &heading, command->examples, "", INT_MAX);
}

void help_command(FILE *stream, const struct command *command)
{
    print_usage(stream, command);
    fprintf(stream, "\n");
    words_print(stream, "", 0, command->description ? command->description : command->summary);
    print_options(stream, command->options);
    print_options(stream, common_options);
    print_all_examples(stream, command);
}

void help_program(FILE *stream)
{
    const struct command *first = command_registry[0];
    const char *heading = "\nExamples:\n";

    fprintf(stream, "Usage: iobench [COMMAND] [OPTIONS] [OPERANDS]\n"
                    "       iobench DATA | JOBFILE.ini\n\n");
    words_print(
        stream, "", 0,
        "Measures whether storage can keep the GPUs of a training cluster busy: reads a data set "
        "as training does, and reports samples/s and the bottleneck.");
    fprintf(stream, "\nCommands (default: %s):\n", first->name);
    for (int i = 0; command_registry[i]; i++)
        print_entry(stream, command_registry[i]->name, command_registry[i]->summary, NAME_COLUMN);
    fprintf(stream, "\nMost used options of %s:\n", first->name);
    /* Print the first clause of each summary, so that an option takes one line. */
    char left[96], right[512];
    for (const struct option_spec *row = first->options; row->name; row++) {
        if (!row->letter || !strchr(SHOWN_LETTERS, row->letter))
            continue;
        snprintf(right, sizeof right, "%.*s", (int)strcspn(row->summary, ",;:"), row->summary);
        print_entry(stream, option_column(row, left, sizeof left), right, COLUMN);
    }
    print_examples(stream, &heading, first->examples, "", 3);
    fputc('\n', stream);
    words_print(stream, "", 0,
                "'iobench help NAME' explains a command or a plug-in, --help=all everything.");
}

static void print_plugin_options(FILE *stream, const struct plugin *plugin)
{
    for (const struct option_spec *row = plugin->options; row && row->name; row++) {
        char left[96], right[512];
        snprintf(left, sizeof left, "    %s=%s", row->name,
                 row->type == OPTION_FLAG ? "yes|no" : help_metavar(row));
        snprintf(right, sizeof right, "%s%s%s%s", row->summary, row->fallback ? " [" : "",
                 row->fallback ? row->fallback : "", row->fallback ? "]" : "");
        print_entry(stream, left, right, COLUMN);
    }
}

/* The first command that takes a plug-in of the family. */
static const struct command *user_of(const struct family *family)
{
    for (int i = 0; command_registry[i]; i++) {
        const struct option_spec *table = command_registry[i]->options;
        const struct option_spec *row = table ? option_find(table, family->option) : NULL;
        if (row && row->type == OPTION_TEXT)
            return command_registry[i];
    }
    return command_registry[0];
}

int help_plugin(FILE *stream, const char *name)
{
    int count = 0;

    for (const struct family *family = family_table; family->name; family++) {
        const struct plugin *plugin = plugin_find(family->registry, name);
        if (!plugin)
            continue;
        fputs(count++ ? "\n" : "", stream);
        const bool has_options = plugin->options && plugin->options->name;
        const char *heading = "\nExamples:\n";
        char use[64];
        fprintf(stream, "Usage: iobench %s --%s %s%s\n\n", user_of(family)->name, family->option,
                plugin->name, has_options ? "[:OPTION=VALUE,...]" : "");
        words_print(stream, "", 0, plugin->summary);
        if (has_options)
            fprintf(stream, "\nOptions; the first needs no name:\n");
        print_plugin_options(stream, plugin);
        snprintf(use, sizeof use, "--%s %s", family->option, plugin->name);
        for (int i = 0; command_registry[i]; i++)
            print_examples(stream, &heading, command_registry[i]->examples, use, INT_MAX);
    }
    return count;
}

void help_everything(FILE *stream)
{
    help_program(stream);
    print_options(stream, common_options);
    for (int i = 0; command_registry[i]; i++) {
        fprintf(stream, "\n---- %s ----\n", command_registry[i]->name);
        words_print(stream, "", 0, command_registry[i]->summary);
        print_usage(stream, command_registry[i]);
        print_options(stream, command_registry[i]->options);
        print_all_examples(stream, command_registry[i]);
    }
    fprintf(stream, "\n---- plug-ins: the first option needs no name ----\n");
    for (const struct family *family = family_table; family->name; family++) {
        fprintf(stream, "\n--%s=NAME[:OPTION=VALUE,...]: %s\n", family->option, family->summary);
        for (int i = 0; family->registry[i]; i++) {
            print_entry(stream, family->registry[i]->name, family->registry[i]->summary,
                        NAME_COLUMN);
            print_plugin_options(stream, family->registry[i]);
        }
    }
}

/* iobench help: explains a command or a plug-in, or prints the manual page. */

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
