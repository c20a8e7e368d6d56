/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments: parses a command line by option tables: --name=VALUE, --name VALUE, --name for flags
 * and optional values, --no-name, -x VALUE, -xVALUE, -xyz for flags, "--" before operands that
 * begin with a dash. Options and operands may be mixed. Also job files like those of fio: a section
 * (base/profiles/profiles.h) is a job, and [global] applies to all later sections. Main thread
 * only.
 */
#ifndef IOBENCH_CMD_ARGUMENTS_H
#define IOBENCH_CMD_ARGUMENTS_H

#include "base/profiles/profiles.h"
#include "base/option.h"

/* A table and the settings it fills. */
struct arguments_scope {
    const struct option_spec *table;
    void *settings;
    /* Called for each option instead of setting it, with settings; NULL: set it. */
    int (*take)(void *settings, const struct option_spec *row, const char *value,
                const char *as_given);
};

struct arguments {
    char **operands; /* NULL-terminated, pointing into argv; free() it */
    int count;
    int behind; /* index of the first operand after "--"; count without one */
};

/* scopes ends with a NULL table; earlier scopes hide later ones. Always free arguments->operands.
 * Returns 0, or -EINVAL with a reason that names the nearest option. */
int arguments_parse(const struct arguments_scope *scopes, int argc, char **argv,
                    struct arguments *arguments);

/* Split text into unquoted words like a shell, in place: blanks, quotes and backslashes only.
 * words: room for as many words as text has bytes. Returns their number, or -EINVAL with a reason.
 */
int arguments_split(char *text, char **words);

/* Check that the path or URL given for an option exists; NULL does. Returns 0, or a negative errno
 * with a reason. */
int arguments_check_data(const char *option, const char *path);

struct jobfile {
    struct ini ini;
    bool allow_commands; /* false after jobfile_load() */
};

/* Always call jobfile_release(). Keys are checked when applied. Returns 0, or a negative errno with
 * a reason "FILE:LINE: ...". */
int jobfile_load(const char *path, struct jobfile *jobfile);
int jobfile_parse(const char *path, const char *text, size_t bytes, struct jobfile *jobfile);
void jobfile_release(struct jobfile *jobfile);

bool jobfile_is_global(const struct jobfile *jobfile, size_t section);

/* Apply the options of one section (not a global one) and of the global sections before it. Options
 * that run commands (OPTION_RUNS) need jobfile->allow_commands. Returns 0, or a negative errno with
 * a reason "FILE:LINE: ...". */
int jobfile_apply(const struct jobfile *jobfile, size_t section, const struct option_spec *table,
                  void *settings);

enum { JOBFILE_OPTIONS_MOST = 256 };
/* The same with one line of it. lines: in which the options of the section are given, by their rows
 * in the table; 0: not yet. */
int jobfile_apply_entry(const struct jobfile *jobfile, const struct ini_entry *entry,
                        const struct option_spec *table, void *settings,
                        uint32_t lines[JOBFILE_OPTIONS_MOST]);

#endif
