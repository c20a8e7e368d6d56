/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/section.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char command_key[] = "command";

static const struct ini_entry *command_of(const struct jobfile *jobfile, size_t section)
{
    return ini_find(&jobfile->ini, &jobfile->ini.sections[section], command_key);
}

bool section_is_foreign(const struct jobfile *jobfile, size_t section)
{
    return command_of(jobfile, section) != NULL;
}

/* Return whether a key is the name of the command's only operand: "folder" of FOLDER. */
static bool is_operand(const struct command *command, const char *key)
{
    return command->operands && strcasecmp(command->operands, key) == 0;
}

/* The command line that is the same job, for command_text(). */
static int add_argument(struct invocation *job, const struct ini_entry *entry)
{
    char *text = NULL;
    const int bytes = is_operand(job->command, entry->key) ? asprintf(&text, "%s", entry->value)
                      : entry->value ? asprintf(&text, "--%s=%s", entry->key, entry->value)
                                     : asprintf(&text, "--%s", entry->key);
    if (bytes < 0)
        return fail(ENOMEM, "out of memory");
    job->argv[job->argc++] = text;
    if (is_operand(job->command, entry->key))
        job->operands[job->count++] = text;
    return 0;
}

static int apply_entry(const struct jobfile *jobfile, struct invocation *job,
                       const struct ini_entry *entry, struct jobfile_lines *lines)
{
    if (strcmp(entry->key, command_key) == 0)
        return 0;
    if (!is_operand(job->command, entry->key)) {
        int code = jobfile_apply_entry(jobfile, entry, job->command->options, job->settings, lines);
        return code ? code : add_argument(job, entry);
    }
    if (job->count)
        return fail(EINVAL, "%s:%u: a second %s", jobfile->ini.path, entry->line, entry->key);
    if (!entry->value)
        return fail(EINVAL, "%s:%u: %s needs a value", jobfile->ini.path, entry->line, entry->key);
    return add_argument(job, entry);
}

int sections_add(struct sections *sections, const struct jobfile *jobfile, size_t section,
                 const struct invocation *invocation)
{
    const struct ini_entry *entry = command_of(jobfile, section);
    const struct command *command = entry->value ? command_find(entry->value) : NULL;

    if (!command || !command->check)
        return fail(EINVAL,
                    "%s:%u: command=%s: no command that a job file can hold: leave it away "
                    "for 'run'; 'checkpoint' and 'net' are the others",
                    jobfile->ini.path, entry->line, entry->value ? entry->value : "");
    if (memory_room(&sections->list, sections->count, sizeof *sections->list, "jobs"))
        return -ENOMEM;
    struct invocation *job = &sections->list[sections->count++];
    *job = (struct invocation){
        .command = command,
        .settings = memory_zeroed(command->settings_size + 1),
        .sandbox = invocation->sandbox,
        .argv = memory_array(jobfile->ini.sections[section].count + 1, sizeof *job->argv),
        .operands = memory_array(2, sizeof *job->operands),
    };
    const struct ini_section *part = &jobfile->ini.sections[section];
    struct jobfile_lines lines = {0};
    int code = job->settings && job->argv && job->operands
                   ? option_defaults(job->command->options, job->settings)
                   : fail(ENOMEM, "out of memory");
    for (size_t i = 0; i < part->count && code == 0; i++)
        code = apply_entry(jobfile, job, &jobfile->ini.entries[part->first + i], &lines);
    if (code == 0 && job->count < job->command->operands_minimum)
        return fail(EINVAL, "%s:%u: [%s] names no %s", jobfile->ini.path,
                    command_of(jobfile, section)->line, part->name, job->command->operands);
    job->behind = job->count;
    if (code == 0 && job->command->check(job))
        code = fail(EINVAL, "%s:%u: [%s]: %s", jobfile->ini.path,
                    command_of(jobfile, section)->line, part->name, fail_reason());
    return code;
}

void sections_release(struct sections *sections)
{
    for (size_t i = 0; i < sections->count; i++) {
        struct invocation *job = &sections->list[i];
        if (job->settings)
            option_release(job->command->options, job->settings);
        for (int k = 0; k < job->argc; k++)
            free(job->argv[k]);
        free(job->settings);
        free(job->argv);
        free(job->operands);
    }
    free(sections->list);
}

int sections_run(const struct sections *sections)
{
    int status = COMMAND_OK;

    for (size_t i = 0; i < sections->count && command_may_go_on(); i++) {
        if (ranks_speaks())
            putchar('\n');
        fflush(stdout);
        const int one = sections->list[i].command->run(&sections->list[i]);
        status = one ? one : status;
    }
    return status;
}

void sections_print(const struct sections *sections)
{
    char text[4096];

    for (size_t i = 0; i < sections->count; i++) {
        command_text(&sections->list[i], text, sizeof text);
        printf("%s\n", escape_shown(text));
    }
}
