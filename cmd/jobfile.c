/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobfile.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "cmd/foreign_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBFILE_BYTES_MAX = 1 << 20 };

bool jobfile_is_global(const struct jobfile *jobfile, size_t section)
{
    return strcmp(jobfile->ini.sections[section].name, "global") == 0;
}

int jobfile_parse(const char *path, const char *text, size_t bytes, struct jobfile *jobfile)
{
    *jobfile = (struct jobfile){0};
    int code = ini_parse(path, text, bytes, &jobfile->ini);

    if (code)
        return code;
    for (size_t i = 0; i < jobfile->ini.section_count; i++)
        if (jobfile_is_global(jobfile, i)) {
            if (memory_room(&jobfile->globals, jobfile->global_count, sizeof *jobfile->globals,
                            "sections"))
                return -ENOMEM;
            jobfile->globals[jobfile->global_count++] = i;
        }
    return jobfile->global_count < jobfile->ini.section_count
               ? 0
               : fail(EINVAL, "%s: no job: start one with [NAME]", jobfile->ini.path);
}

int jobfile_load(const char *path, struct jobfile *jobfile)
{
    char *text = NULL;
    size_t bytes = 0;

    *jobfile = (struct jobfile){0};
    int code = file_load(path, JOBFILE_BYTES_MAX, &text, &bytes);
    if (code == 0 && bytes == 0)
        code = fail(EINVAL, "%s: the file is empty: neither a job file nor a data set", path);
    if (code == 0)
        code = foreign_job_check(path, text);
    if (code == 0)
        code = jobfile_parse(path, text, bytes, jobfile);
    free(text);
    return code;
}

void jobfile_release(struct jobfile *jobfile)
{
    ini_release(&jobfile->ini);
    free(jobfile->globals);
    *jobfile = (struct jobfile){0};
}

/* Of two the last would count, without a word. */
static int check_once(const char *where, const struct ini_entry *entry, size_t number,
                      struct jobfile_lines *lines)
{
    if (number >= JOBFILE_OPTIONS_MOST)
        return 0;
    if (lines->of[number])
        return fail(EINVAL, "%s: %s is given twice, first in line %u", where, entry->key,
                    lines->of[number]);
    lines->of[number] = entry->line;
    return 0;
}

int jobfile_apply_entry(const struct jobfile *jobfile, const struct ini_entry *entry,
                        const struct option_spec *table, void *settings,
                        struct jobfile_lines *lines)
{
    const struct option_spec *row = option_find(table, entry->key);
    const char *value = entry->value;
    char where[512];

    snprintf(where, sizeof where, "%s:%u", jobfile->ini.path, entry->line);
    if (!row) {
        struct nearest nearest = nearest_start(entry->key);
        option_offer(table, &nearest);
        return fail(EINVAL, "%s: unknown option '%s'%s", where, entry->key, nearest_hint(&nearest));
    }
    if (!row->repeats && check_once(where, entry, (size_t)(row - table), lines))
        return -EINVAL;
    if (!value)
        value = row->type == OPTION_FLAG ? "yes" : row->implied;
    if (!value)
        return fail(EINVAL, "%s: %s needs a value", where, entry->key);
    if (row->reach == OPTION_RUNS && !jobfile->allow_commands)
        return fail(EPERM,
                    "%s: %s runs a command: '%s'; job files need --allow-commands on the command "
                    "line for this",
                    where, row->name, value);
    return option_set(table, settings, row->name, value, where);
}

static int apply_section(const struct jobfile *jobfile, size_t section,
                         const struct option_spec *table, void *settings)
{
    const struct ini_section *part = &jobfile->ini.sections[section];
    struct jobfile_lines lines = {0};
    int code = 0;

    for (size_t k = 0; k < part->count && code == 0; k++)
        code = jobfile_apply_entry(jobfile, &jobfile->ini.entries[part->first + k], table, settings,
                                   &lines);
    return code;
}

int jobfile_apply(const struct jobfile *jobfile, size_t section, const struct option_spec *table,
                  void *settings)
{
    int code = 0;

    for (size_t i = 0; i < jobfile->global_count && jobfile->globals[i] < section && code == 0; i++)
        code = apply_section(jobfile, jobfile->globals[i], table, settings);
    return code ? code : apply_section(jobfile, section, table, settings);
}
