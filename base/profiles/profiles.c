/* SPDX-License-Identifier: Apache-2.0 */
#include "base/profiles/profiles.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int check(const struct ini *ini)
{
    int code = ini_refuse_repeats(ini);

    if (code)
        return code;
    for (size_t i = 0; i < ini->section_count; i++) {
        const struct ini_entry *source = ini_find(ini, &ini->sections[i], "source");
        if (!source || !source->value || !*source->value)
            return fail(EINVAL, "%s: [%s] has no source=: say where its figures are from",
                        ini->path, ini->sections[i].name);
    }
    if (ini->section_count == 0)
        return fail(EINVAL, "%s: no [section]: not a profile", ini->path);
    return 0;
}

int profiles_parse(const char *path, const char *text, struct ini *ini)
{
    int code = ini_parse(path, text, strlen(text), ini);

    return code ? code : check(ini);
}

int profiles_load(const char *family, const char *name, const char *folder, struct ini *ini)
{
    const size_t length = strlen(name);
    const bool is_file =
        strchr(name, '/') || (length > 4 && strcmp(name + length - 4, ".ini") == 0);
    char *own = folder && !is_file ? file_format_path("%s/%s/%s.ini", folder, family, name) : NULL;
    const char *path = is_file ? name : own && file_exists(own) ? own : NULL;

    *ini = (struct ini){0};
    int code = path ? ini_load(path, ini) : folder && !own ? -ENOMEM : 0;
    if (path && code == 0)
        code = check(ini);
    free(own);
    if (path || code)
        return code;
    for (const struct profile_shipped *row = profile_shipped; row->family; row++)
        if (strcmp(row->family, family) == 0 && strcasecmp(row->name, name) == 0)
            return profiles_parse(name, row->text, ini);
    struct nearest nearest = nearest_start(name);
    for (const struct profile_shipped *row = profile_shipped; row->family; row++)
        if (strcmp(row->family, family) == 0)
            nearest_offer(&nearest, row->name);
    return fail(ENOENT, "unknown %s '%s' (known: %s; or name a file, NAME.ini)%s", family, name,
                nearest.known, nearest_hint(&nearest));
}

const struct ini_section *profiles_section(const struct ini *ini, const char *name)
{
    for (size_t i = 0; i < ini->section_count; i++)
        if (strcmp(ini->sections[i].name, name) == 0)
            return &ini->sections[i];
    return NULL;
}

const char *profiles_text(const struct ini *ini, const char *section, const char *key)
{
    const struct ini_section *found = profiles_section(ini, section);
    const struct ini_entry *entry = found ? ini_find(ini, found, key) : NULL;

    return entry ? entry->value : NULL;
}

double quantity_deviation(const struct quantity *quantity)
{
    static const double ninety = 1.6449; /* standard deviations that contain 90% */

    return log1p(quantity->spread) / ninety;
}

/* A few runs on a busy machine may differ by a factor of a hundred: what was measured must be
 * readable. */
static const double spread_max = 1e6;

struct quantity quantity_of_interval(double value, double low, double high)
{
    double spread = fmax(high / value - 1, 1 - low / value);

    if (!(value > 0)) /* a spread is relative: zero has none */
        spread = 0;
    return (struct quantity){.value = value, .spread = fmin(fmax(spread, 0), spread_max)};
}

void quantity_print(FILE *stream, const struct quantity *quantity)
{
    fprintf(stream, "%.5g", quantity->value);
    if (quantity->spread > 0)
        fprintf(stream, " +-%.2g%%", 100 * quantity->spread);
}

int quantity_parse(const char *text, struct quantity *quantity)
{
    char *end;

    *quantity = (struct quantity){.value = strtod(text, &end)};
    if (end == text || !isfinite(quantity->value) || quantity->value < 0)
        return -EINVAL;
    while (isspace((unsigned char)*end))
        end++;
    if (!*end)
        return 0;
    if (strncmp(end, "+-", 2) != 0)
        return -EINVAL;
    text = end + 2;
    quantity->spread = strtod(text, &end) / 100;
    if (end == text || strcmp(end, "%") != 0 ||
        !(quantity->spread >= 0 && quantity->spread <= spread_max))
        return -EINVAL;
    return 0;
}

double profiles_number(const struct ini *ini, const char *section, const char *key)
{
    const char *text = profiles_text(ini, section, key);
    struct quantity quantity;

    return text && quantity_parse(text, &quantity) == 0 ? quantity.value : 0;
}

/* ---- ini ---- */

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

int ini_parse(const char *path, const char *text, size_t bytes, struct ini *ini)
{
    size_t lines = 1;
    uint32_t number = 0;
    int code = 0;

    *ini = (struct ini){.path = strdup(path)};
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    char *copy = malloc(bytes + 1), *cursor = copy, *line;
    ini->entries = memory_array(lines, sizeof *ini->entries);
    ini->sections = memory_array(lines, sizeof *ini->sections);
    if (!ini->path || !copy || !ini->entries || !ini->sections) {
        free(copy);
        return fail(ENOMEM, "%s: out of memory", path);
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    if (memchr(copy, '\0', bytes))
        code = fail(EINVAL, "%s: not an ini file: contains NUL bytes", path);
    while (code == 0 && (line = strsep(&cursor, "\n"))) {
        line = trim(line);
        number++;
        if (!*line || *line == '#' || *line == ';')
            continue;
        if (*line == '[') {
            char *end = strchr(line, ']');
            if (!end || end[1]) {
                code = fail(EINVAL, "%s:%u: expected [NAME] alone on a line", path, number);
                break;
            }
            *end = '\0';
            char *name = trim(line + 1);
            if (!*name) {
                code = fail(EINVAL, "%s:%u: section without a name", path, number);
                break;
            }
            ini->sections[ini->section_count++] =
                (struct ini_section){.name = strdup(name), .first = ini->entry_count};
            code = ini->sections[ini->section_count - 1].name ? 0 : fail(ENOMEM, "out of memory");
            continue;
        }
        if (ini->section_count == 0) {
            code = fail(EINVAL, "%s:%u: option before the first [section]", path, number);
            break;
        }
        char *equals = strchr(line, '='), *value = equals ? trim(equals + 1) : NULL;
        if (equals)
            *equals = '\0';
        char *key = trim(line);
        while (*key == '-') /* accept options copied with their dashes */
            key++;
        if (!*key || strlen(key) > KEY_BYTES_MAX) {
            code = fail(EINVAL, "%s:%u: expected key=value", path, number);
            break;
        }
        for (char *at = key; *at; at++)
            if (*at == '_')
                *at = '-';
        struct ini_entry *entry = &ini->entries[ini->entry_count++];
        *entry = (struct ini_entry){strdup(key), value ? strdup(value) : NULL, number};
        if (!entry->key || (value && !entry->value))
            code = fail(ENOMEM, "out of memory");
        ini->sections[ini->section_count - 1].count++;
    }
    free(copy);
    return code;
}

int ini_load(const char *path, struct ini *ini)
{
    char *text = NULL;
    size_t bytes = 0;

    *ini = (struct ini){0};
    int code = file_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (code == 0)
        code = ini_parse(path, text, bytes, ini);
    free(text);
    return code;
}

void ini_release(struct ini *ini)
{
    for (size_t i = 0; i < ini->entry_count; i++) {
        free(ini->entries[i].key);
        free(ini->entries[i].value);
    }
    for (size_t i = 0; i < ini->section_count; i++)
        free(ini->sections[i].name);
    free(ini->entries);
    free(ini->sections);
    free(ini->path);
    *ini = (struct ini){0};
}

const struct ini_entry *ini_find(const struct ini *ini, const struct ini_section *section,
                                 const char *key)
{
    for (size_t i = section->count; i-- > 0;)
        if (strcmp(ini->entries[section->first + i].key, key) == 0)
            return &ini->entries[section->first + i];
    return NULL;
}

/* Comparing all with all must not take minutes. */
enum { SECTIONS_COMPARED = 256, ENTRIES_COMPARED = 1024 };

int ini_refuse_repeats(const struct ini *ini)
{
    if (ini->section_count > SECTIONS_COMPARED)
        return fail(EINVAL, "%s: more than %d sections", ini->path, SECTIONS_COMPARED);
    for (size_t s = 0; s < ini->section_count; s++) {
        const struct ini_section *section = &ini->sections[s];
        const struct ini_entry *entries = ini->entries + section->first;
        for (size_t k = 0; k < s; k++)
            if (strcmp(section->name, ini->sections[k].name) == 0)
                return fail(EINVAL, "%s: [%s] is given twice", ini->path, section->name);
        if (section->count > ENTRIES_COMPARED)
            return fail(EINVAL, "%s: [%s] has more than %d keys", ini->path, section->name,
                        ENTRIES_COMPARED);
        for (size_t i = 1; i < section->count; i++)
            for (size_t k = 0; k < i; k++)
                if (strcmp(entries[i].key, entries[k].key) == 0)
                    return fail(EINVAL, "%s:%u: %s is given twice, first in line %u", ini->path,
                                entries[i].line, entries[i].key, entries[k].line);
    }
    return 0;
}
