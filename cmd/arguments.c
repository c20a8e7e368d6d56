/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/arguments.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct option_match {
    const struct arguments_scope *scope;
    const struct option_spec *row;
};

/* Find an option by its name, or by its letter if name is NULL. */
static struct option_match find(const struct arguments_scope *scopes, const char *name, char letter)
{
    for (; scopes->table; scopes++) {
        const struct option_spec *row = name ? option_find(scopes->table, name) : scopes->table;
        while (!name && row->name && row->letter != letter)
            row++;
        if (row && row->name)
            return (struct option_match){scopes, row};
    }
    return (struct option_match){0};
}

/* Return the value of an option given without one; NULL if it requires one. */
static const char *bare_value(const struct option_spec *row)
{
    return row->type == OPTION_FLAG ? "yes" : row->implied;
}

static const char empty_name[] = "an empty name; is a variable of the shell unset?";

static int set(struct option_match found, const char *value, const char *as_given)
{
    if (!*value && (found.row->type == OPTION_TEXT && found.row->reach >= OPTION_READS &&
                    found.row->reach <= OPTION_MAKES_SET))
        return fail(EINVAL, "%s: %s", as_given, empty_name);
    if (found.scope->take)
        return found.scope->take(found.scope->settings, found.row, value, as_given);
    return option_set(found.scope->table, found.scope->settings, found.row->name, value, as_given);
}

/* Parse argv[*index], which is "--name[=value]". */
static int parse_long(const struct arguments_scope *scopes, int argc, char **argv, int *index)
{
    const char *text = argv[*index] + 2, *equals = strchr(text, '=');
    char name[64], as_given[72];

    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - text : (long)strlen(text)), text);
    snprintf(as_given, sizeof as_given, "--%s", name);
    struct option_match found = find(scopes, name, 0);
    if (!found.row && strncmp(name, "no-", 3) == 0) {
        struct option_match denied = find(scopes, name + 3, 0);
        const struct option_spec *row = denied.row;
        if (row && (row->type == OPTION_FLAG || (row->type == OPTION_CHOICE && row->implied &&
                                                 strcmp(row->choices[0], "no") == 0))) {
            if (equals)
                return fail(EINVAL, "%s takes no value", as_given);
            return set(denied, "no", as_given);
        }
    }
    if (!found.row) {
        struct nearest nearest = nearest_start(name);
        for (; scopes->table; scopes++)
            option_offer(scopes->table, &nearest);
        nearest.dashes = "--";
        return fail(EINVAL, "unknown option '--%s'%s", name, nearest_hint(&nearest));
    }
    if (equals)
        return set(found, equals + 1, as_given);
    if (bare_value(found.row))
        return set(found, bare_value(found.row), as_given);
    if (*index + 1 >= argc)
        return fail(EINVAL, "%s needs a value", as_given);
    return set(found, argv[++*index], as_given);
}

/* Parse argv[*index], which is "-x...". */
static int parse_letters(const struct arguments_scope *scopes, int argc, char **argv, int *index)
{
    for (const char *letter = argv[*index] + 1; *letter; letter++) {
        char as_given[] = {'-', *letter, '\0'};
        struct option_match found = find(scopes, NULL, *letter);
        int code;
        if (!found.row)
            return fail(EINVAL, "unknown option '%s'", as_given);
        if (bare_value(found.row)) {
            code = set(found, bare_value(found.row), as_given);
            if (code)
                return code;
            continue;
        }
        if (letter[1])
            return set(found, letter[1] == '=' ? letter + 2 : letter + 1, as_given);
        if (*index + 1 >= argc)
            return fail(EINVAL, "%s needs a value", as_given);
        return set(found, argv[++*index], as_given);
    }
    return 0;
}

int arguments_parse(const struct arguments_scope *scopes, int argc, char **argv,
                    struct arguments *arguments)
{
    int code = 0;

    *arguments = (struct arguments){0};
    arguments->operands = memory_array((size_t)argc + 1, sizeof(char *));
    if (!arguments->operands)
        return -ENOMEM;
    for (int i = 0; i < argc && code == 0; i++) {
        if (strcmp(argv[i], "--") == 0) {
            arguments->behind = arguments->count;
            while (++i < argc)
                arguments->operands[arguments->count++] = argv[i];
            return 0;
        }
        if (strncmp(argv[i], "--", 2) == 0)
            code = parse_long(scopes, argc, argv, &i);
        else if (argv[i][0] == '-' && argv[i][1])
            code = parse_letters(scopes, argc, argv, &i);
        else if (!argv[i][0])
            code = fail(EINVAL, "operand %d: %s", arguments->count + 1, empty_name);
        else
            arguments->operands[arguments->count++] = argv[i];
    }
    arguments->behind = arguments->count;
    return code;
}

int arguments_split(char *text, char **words)
{
    char *to = text, quote = 0;
    bool inside = false;
    int count = 0;

    for (char *from = text; *from; from++) {
        const char now = *from;
        if (!quote && (now == ' ' || now == '\t')) {
            if (inside)
                *to++ = '\0';
            inside = false;
            continue;
        }
        if (!inside)
            words[count++] = to;
        inside = true;
        if (quote ? now == quote : now == '"' || now == '\'')
            quote = quote ? 0 : now;
        else if (now == '\\' && quote != '\'' && from[1])
            *to++ = *++from;
        else
            *to++ = now;
    }
    *to = '\0';
    return quote ? fail(EINVAL, "missing closing quote") : count;
}

int arguments_check_data(const char *option, const char *path)
{
    struct store_status status;
    int code = path ? store_stat(path, &status) : 0;

    if (code == -ENOENT)
        return fail(ENOENT, "--%s: %s does not exist%s", option, path, format_hint_missing(path));
    return code ? fail(code, "--%s: %s", option, fail_reason()) : 0;
}

/* ---- job files of other programs, given by mistake: print the nearest job of ours ---- */

enum { WORD_BYTES = 256, JOB_BYTES = 2048 };

/* A line of their file, and the one of ours that does the same; %s: their value. */
struct translation {
    const char *key, *value; /* value NULL: any */
    const char *line;        /* NULL: none */
    bool is_mark;            /* no job file of ours has this key */
};

struct program {
    const char *title;
    char separator;     /* between key and value */
    const char *always; /* lines */
    struct translation lines[20];
};

static const struct program programs[] = {
    {"a job file of fio",
     '=',
     "decode=none\ndrop-caches=yes\n",
     {{"ioengine", NULL, NULL, true},
      {"rw", "read", "shuffle=none", true},
      {"readwrite", "read", "shuffle=none", true},
      {"rw", "write", "# writes: iobench checkpoint FOLDER", true},
      {"rw", "randwrite", "# writes: iobench checkpoint FOLDER", true},
      {"rw", NULL, NULL, true},
      {"readwrite", NULL, NULL, true},
      {"bs", NULL, "# a read is as large as its records, not %s", false},
      {"blocksize", NULL, "# a read is as large as its records, not %s", true},
      {"numjobs", NULL, "io-threads=%s", true},
      {"filename", NULL, "data=%s", false},
      {"directory", NULL, "data=%s", false},
      {"iodepth", NULL, "iodepth=%s", false},
      {"direct", "1", "direct=yes", false},
      {"loops", NULL, "epochs=%s", false}}},
    {"a configuration of DLIO",
     ':',
     "drop-caches=yes\n",
     {{"data_folder", NULL, "data=%s", true},
      {"num_files_train", NULL, NULL, true},
      {"record_length", NULL, NULL, true},
      {"computation_time", NULL, NULL, true},
      {"name", "unet3d", "workload=unet3d-h100", false},
      {"name", "resnet50", "workload=resnet50-h100", false},
      {"name", "cosmoflow", "workload=cosmoflow-h100", false},
      {"format", "tfrecord", "format=shards", false},
      {"format", NULL, "# %s is not read: 'iobench pack' makes a set of the same sizes", false},
      {"batch_size", NULL, "batch-size=%s", false},
      {"read_threads", NULL, "decode-threads=%s", false},
      {"epochs", NULL, "epochs=%s", false}}},
};

/* Split a line into key and value, without blanks and quotes. Returns false if it has no key. */
static bool split(const char *line, char separator, char *key, char *value)
{
    char format[32];

    snprintf(format, sizeof format, " %%%d[a-z0-9_] %c %%%d[^\n]", WORD_BYTES - 1, separator,
             WORD_BYTES - 1);
    value[0] = '\0';
    if (sscanf(line, format, key, value) < 1 || !strchr(line, separator))
        return false;
    size_t quoted = value[0] == '"' || value[0] == '\'';
    memmove(value, value + quoted, strlen(value + quoted) + 1);
    value[strcspn(value, " \t\r\"'#;")] = '\0';
    return true;
}

/* ---- job files ---- */

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
        if (!jobfile_is_global(jobfile, i))
            return 0;
    return fail(EINVAL, "%s: no job: start one with [NAME]", jobfile->ini.path);
}

/* Refuse a result, and the job file of another program, whose nearest job is printed. */
static int refuse_foreign(const char *path, const char *text)
{
    if (text[strspn(text, " \t\r\n")] == '{' && strstr(text, "\"schema\""))
        return fail(
            EINVAL,
            "%s: a result, not a job file: read it with 'iobench report', 'iobench compare' or "
            "'iobench plot'",
            path);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        char key[WORD_BYTES], value[WORD_BYTES], job[JOB_BYTES] = "";
        size_t used = 0;
        bool is_theirs = false;
        for (const char *line = text; line; line = strchr(line, '\n')) {
            const struct translation *row = programs[i].lines;
            line += *line == '\n';
            if (!split(line, programs[i].separator, key, value))
                continue;
            while (row->key &&
                   (strcmp(row->key, key) != 0 || (row->value && strcmp(row->value, value) != 0)))
                row++;
            is_theirs |= row->is_mark; /* false of the end */
            if (row->line && value[0] && strlen(row->line) + strlen(value) + 2 < JOB_BYTES - used) {
                used += (size_t)snprintf(job + used, JOB_BYTES - used, row->line, value);
                used += (size_t)snprintf(job + used, JOB_BYTES - used, "\n");
            }
        }
        if (!is_theirs)
            continue;
        if (ranks_speaks())
            printf("[job]\n%s%s%s", strstr(job, "data=") ? "" : "data=PATH\n", job,
                   programs[i].always);
        return fail(EINVAL, "%s: %s; the nearest job of iobench is on standard output", path,
                    programs[i].title);
    }
    return 0;
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
        code = refuse_foreign(path, text);
    if (code == 0)
        code = jobfile_parse(path, text, bytes, jobfile);
    free(text);
    return code;
}

void jobfile_release(struct jobfile *jobfile)
{
    ini_release(&jobfile->ini);
    *jobfile = (struct jobfile){0};
}

int jobfile_apply_entry(const struct jobfile *jobfile, const struct ini_entry *entry,
                        const struct option_spec *table, void *settings,
                        uint32_t lines[JOBFILE_OPTIONS_MOST])
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
    /* A key given twice: the last one would count, silently. */
    const size_t number = (size_t)(row - table);
    if (!row->repeats && number < JOBFILE_OPTIONS_MOST) {
        if (lines[number])
            return fail(EINVAL, "%s: %s is given twice, first in line %u", where, entry->key,
                        lines[number]);
        lines[number] = entry->line;
    }
    if (!value)
        value = bare_value(row);
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
    uint32_t lines[JOBFILE_OPTIONS_MOST] = {0};
    int code = 0;

    for (size_t k = 0; k < part->count && code == 0; k++)
        code = jobfile_apply_entry(jobfile, &jobfile->ini.entries[part->first + k], table, settings,
                                   lines);
    return code;
}

int jobfile_apply(const struct jobfile *jobfile, size_t section, const struct option_spec *table,
                  void *settings)
{
    int code = 0;

    for (size_t i = 0; i < section && code == 0; i++)
        if (jobfile_is_global(jobfile, i))
            code = apply_section(jobfile, i, table, settings);
    return code ? code : apply_section(jobfile, section, table, settings);
}
