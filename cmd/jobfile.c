/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobfile.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "cmd/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20, KEY_BYTES_MAX = 63 };

/* Strip blanks at both ends, in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

static int begin_section(struct jobfile *jobfile, char *line, uint32_t number)
{
    char *end = strchr(line, ']');

    if (!end || end[1])
        return fail(EINVAL, "%s:%u: expected [NAME] alone on a line", jobfile->path, number);
    *end = '\0';
    char *name = trim(line + 1);
    if (!*name)
        return fail(EINVAL, "%s:%u: section without a name", jobfile->path, number);
    jobfile->sections[jobfile->section_count++] = (struct jobfile_section){
        .name = strdup(name), .global = strcmp(name, "global") == 0, .first = jobfile->entry_count};
    return jobfile->sections[jobfile->section_count - 1].name ? 0 : fail(ENOMEM, "out of memory");
}

static int add_entry(struct jobfile *jobfile, char *line, uint32_t number)
{
    char *equals = strchr(line, '='), *value = NULL;

    if (jobfile->section_count == 0)
        return fail(EINVAL, "%s:%u: option before the first [section]", jobfile->path, number);
    if (equals) {
        *equals = '\0';
        value = trim(equals + 1);
    }
    char *key = trim(line);
    while (*key == '-') /* accept options copied with their dashes */
        key++;
    if (!*key || strlen(key) > KEY_BYTES_MAX)
        return fail(EINVAL, "%s:%u: expected key=value", jobfile->path, number);
    for (char *at = key; *at; at++)
        if (*at == '_')
            *at = '-';
    struct jobfile_entry *entry = &jobfile->entries[jobfile->entry_count++];
    *entry = (struct jobfile_entry){strdup(key), value ? strdup(value) : NULL, number};
    if (!entry->key || (value && !entry->value))
        return fail(ENOMEM, "out of memory");
    jobfile->sections[jobfile->section_count - 1].count++;
    return 0;
}

int jobfile_parse(const char *path, const char *text, size_t bytes, struct jobfile *jobfile)
{
    size_t lines = 1, jobs = 0;
    uint32_t number = 0;
    int code = 0;

    *jobfile = (struct jobfile){.path = strdup(path)};
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    char *copy = malloc(bytes + 1), *cursor = copy, *line;
    jobfile->entries = memory_array(lines, sizeof *jobfile->entries);
    jobfile->sections = memory_array(lines, sizeof *jobfile->sections);
    if (!jobfile->path || !copy || !jobfile->entries || !jobfile->sections) {
        free(copy);
        return fail(ENOMEM, "%s: out of memory", path);
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    if (memchr(copy, '\0', bytes))
        code = fail(EINVAL, "%s: not a job file: contains NUL bytes", path);
    while (code == 0 && (line = strsep(&cursor, "\n"))) {
        line = trim(line);
        number++;
        if (*line == '[')
            code = begin_section(jobfile, line, number);
        else if (*line && *line != '#' && *line != ';')
            code = add_entry(jobfile, line, number);
    }
    free(copy);
    for (size_t i = 0; i < jobfile->section_count; i++)
        jobs += !jobfile->sections[i].global;
    if (code == 0 && jobs == 0)
        return fail(EINVAL, "%s: no job: start one with [NAME]", path);
    return code;
}

int jobfile_load(const char *path, struct jobfile *jobfile)
{
    char *text = NULL;
    size_t bytes = 0;

    *jobfile = (struct jobfile){0};
    int code = file_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (code == 0)
        code = jobfile_parse(path, text, bytes, jobfile);
    free(text);
    return code;
}

void jobfile_release(struct jobfile *jobfile)
{
    for (size_t i = 0; i < jobfile->entry_count; i++) {
        free(jobfile->entries[i].key);
        free(jobfile->entries[i].value);
    }
    for (size_t i = 0; i < jobfile->section_count; i++)
        free(jobfile->sections[i].name);
    free(jobfile->entries);
    free(jobfile->sections);
    free(jobfile->path);
    *jobfile = (struct jobfile){0};
}

static int apply_entry(const struct jobfile *jobfile, const struct jobfile_entry *entry,
                       const struct option_spec *table, void *settings)
{
    const struct option_spec *row = option_find(table, entry->key);
    const char *value = entry->value;
    char where[512];

    snprintf(where, sizeof where, "%s:%u", jobfile->path, entry->line);
    if (!row) {
        struct nearest nearest = nearest_start(entry->key);
        nearest_offer_table(&nearest, table);
        return fail(EINVAL, "%s: unknown option '%s'%s%s%s", where, entry->key,
                    nearest.best ? "; did you mean '" : "", nearest.best ? nearest.best : "",
                    nearest.best ? "'?" : "");
    }
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

int jobfile_apply(const struct jobfile *jobfile, size_t section, const struct option_spec *table,
                  void *settings)
{
    for (size_t i = 0; i <= section; i++) {
        const struct jobfile_section *part = &jobfile->sections[i];
        if (i != section && !part->global)
            continue;
        for (size_t k = 0; k < part->count; k++) {
            int code = apply_entry(jobfile, &jobfile->entries[part->first + k], table, settings);
            if (code)
                return code;
        }
    }
    return 0;
}
