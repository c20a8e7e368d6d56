/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments: a command line, parsed by option tables alone: --name=VALUE, --name VALUE, --name
 * where the value is optional or the option is a flag, --no-name, -x VALUE, -xVALUE, -xyz for
 * flags, "--" before operands that begin with a dash. Options and operands may be mixed.
 */
#ifndef IOBENCH_CMD_ARGUMENTS_H
#define IOBENCH_CMD_ARGUMENTS_H

#include "base/option.h"

/* A table and the settings its values go to. */
struct arguments_scope {
    const struct option_spec *table;
    void *settings;
};

struct arguments {
    char **operands; /* NULL-terminated, pointing into argv; free() it */
    int count;
    int behind; /* index of the first operand behind "--"; count without one */
};

/* scopes ends with one whose table is NULL; an earlier one hides a later one. 0, or -EINVAL with
 * a reason that names the nearest option. Free arguments->operands in either case. */
int arguments_parse(const struct arguments_scope *scopes, int argc, char **argv,
                    struct arguments *arguments);

/* Is there something at the path or URL given by --data? 0 or a negative errno with a reason. */
int arguments_check_data(const char *path);

#endif
