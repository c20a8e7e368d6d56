/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/arguments.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "dataset/store.h"
#include "formats/path_hint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct option_match {
    const struct arguments_scope *scope;
    const struct option_spec *row;
};

/* By its name; NULL: by its letter. */
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

static bool can_be_denied(const struct option_spec *row)
{
    if (row->type == OPTION_FLAG)
        return true;
    return row->type == OPTION_CHOICE && row->implied && strcmp(row->choices[0], "no") == 0;
}

static int fail_unknown(const struct arguments_scope *scopes, const char *name)
{
    struct nearest nearest = nearest_start(name);

    for (; scopes->table; scopes++)
        option_offer(scopes->table, &nearest);
    nearest.dashes = "--";
    return fail(EINVAL, "unknown option '--%s'%s", name, nearest_hint(&nearest));
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
        if (denied.row && can_be_denied(denied.row)) {
            if (equals)
                return fail(EINVAL, "%s takes no value", as_given);
            return set(denied, "no", as_given);
        }
    }
    if (!found.row)
        return fail_unknown(scopes, name);
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
        return fail(ENOENT, "--%s: %s does not exist%s", option, path, path_hint_missing(path));
    return code ? fail(code, "--%s: %s", option, fail_reason()) : 0;
}
