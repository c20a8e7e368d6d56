/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/profile.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FILE_BYTES_MAX = 64 << 20, LINE_BYTES_MAX = 4096 };

/* A step longer than a day is a mistake in the file. */
static const double STEP_MS_MAX = 86400e3;

static int add_step(struct profile *profile, const char *name, size_t place, double ms)
{
    if (!isfinite(ms) || ms < 0 || ms > STEP_MS_MAX)
        return fail(EINVAL, "%s: step %zu: %g is not a step time in milliseconds", name, place, ms);
    profile->step_ns[profile->count++] = (uint64_t)llround(ms * 1e6);
    return 0;
}

static int parse_json(const char *name, const char *text, size_t bytes, struct profile *profile)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    int code = 0;

    if (!root)
        return fail(EINVAL, "%s:%d: %s", name, error.line, error.text);
    json_t *steps = json_is_object(root) ? json_object_get(root, "step_ms") : root;
    json_int_t batch = json_integer_value(json_object_get(root, "batch_size"));
    if (!json_is_array(steps))
        code =
            fail(EINVAL, "%s: expected an array of milliseconds or an object with step_ms", name);
    else if (batch < 0)
        code = fail(EINVAL, "%s: batch_size is negative", name);
    if (code == 0 && !(profile->step_ns = memory_array(json_array_size(steps), sizeof(uint64_t))))
        code = -ENOMEM;
    profile->batch_size = (uint64_t)batch;
    for (size_t i = 0; code == 0 && i < json_array_size(steps); i++) {
        json_t *step = json_array_get(steps, i);
        code = add_step(profile, name, i, json_is_number(step) ? json_number_value(step) : NAN);
    }
    json_decref(root);
    return code;
}

/* Find a column in a line of comma-separated values; -1: the last. Return its start and its length
 * without surrounding blanks, or NULL. */
static const char *find_column(const char *line, int column, size_t *length)
{
    const char *cell = line;

    for (int i = 0;; i++) {
        const char *comma = strchr(cell, ',');
        if (i == column || (column < 0 && !comma)) {
            cell += strspn(cell, " \t\"");
            *length = strcspn(cell, ",");
            while (*length && strchr(" \t\"\r", cell[*length - 1]))
                --*length;
            return cell;
        }
        if (!comma)
            return NULL;
        cell = comma + 1;
    }
}

static int parse_text(const char *name, const char *text, size_t bytes, struct profile *profile)
{
    char line[LINE_BYTES_MAX];
    size_t lines = 1, number = 0, length;
    bool heading_allowed = true;
    int column = -1, code = 0;

    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    profile->step_ns = memory_array(lines, sizeof(uint64_t));
    if (!profile->step_ns)
        return -ENOMEM;
    for (const char *at = text, *end = text + bytes; code == 0 && at < end;) {
        size_t span = strcspn(at, "\n");
        number++;
        if (span >= sizeof line)
            return fail(EINVAL, "%s:%zu: the line is longer than %d bytes", name, number,
                        LINE_BYTES_MAX - 1);
        memcpy(line, at, span);
        line[span] = '\0';
        at += span + 1;
        const char *first = line + strspn(line, " \t\r");
        if (*first == '\0' || *first == '#')
            continue;
        const char *cell = find_column(line, column, &length);
        char *stop = NULL;
        double ms = cell && length ? strtod(cell, &stop) : NAN;
        bool is_number = stop && stop == cell + length;
        if (!is_number && heading_allowed)
            for (int i = 0; column < 0 && (cell = find_column(line, i, &length)); i++) {
                if ((length == 7 && strncasecmp(cell, "step_ms", 7) == 0) ||
                    (length == 2 && strncasecmp(cell, "ms", 2) == 0))
                    column = i;
            }
        else if (!is_number)
            code = fail(EINVAL, "%s:%zu: expected a step time in milliseconds", name, number);
        else
            code = add_step(profile, name, number, ms);
        heading_allowed = false;
    }
    return code;
}

int profile_parse(const char *name, const char *text, size_t bytes, struct profile *profile)
{
    size_t start = 0;

    *profile = (struct profile){0};
    if (memchr(text, '\0', bytes))
        return fail(EINVAL, "%s: not a text file: contains NUL bytes", name);
    while (start < bytes && isspace((unsigned char)text[start]))
        start++;
    bool json = start < bytes && (text[start] == '{' || text[start] == '[');
    int code =
        json ? parse_json(name, text, bytes, profile) : parse_text(name, text, bytes, profile);
    if (code)
        return code;
    for (size_t i = 0; i < profile->count; i++)
        if (profile->step_ns[i])
            return 0;
    return fail(EINVAL, "%s: all steps take 0 ms", name);
}

int profile_load(const char *path, struct profile *profile)
{
    char *text = NULL;
    size_t bytes = 0;

    *profile = (struct profile){0};
    int code = file_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (code == 0)
        code = profile_parse(path, text, bytes, profile);
    free(text);
    return code;
}

void profile_release(struct profile *profile)
{
    free(profile->step_ns);
    *profile = (struct profile){0};
}
