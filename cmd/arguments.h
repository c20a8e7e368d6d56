/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments: parses a command line by option tables: --name=VALUE, --name VALUE, --name for flags
 * and optional values, --no-name, -x VALUE, -xVALUE, -xyz for flags, "--" before operands that
 * begin with a dash. Options and operands may be mixed.
 */
#ifndef IOBENCH_CMD_ARGUMENTS_H
#define IOBENCH_CMD_ARGUMENTS_H

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

#endif
