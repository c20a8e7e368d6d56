/* SPDX-License-Identifier: Apache-2.0 */
#include "base/profiles/profiles.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
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

static int load_file(const char *path, struct ini *ini)
{
    int code = ini_load(path, ini);

    return code ? code : check(ini);
}

static bool is_file_name(const char *name)
{
    const size_t length = strlen(name);

    return strchr(name, '/') || (length > 4 && strcmp(name + length - 4, ".ini") == 0);
}

int profiles_load(const char *family, const char *name, const char *folder, struct ini *ini)
{
    *ini = (struct ini){0};
    if (is_file_name(name))
        return load_file(name, ini);
    if (folder) {
        char *path = file_format_path("%s/%s/%s.ini", folder, family, name);
        if (!path)
            return -ENOMEM;
        const bool exists = file_exists(path);
        int code = exists ? load_file(path, ini) : 0;
        free(path);
        if (exists)
            return code;
    }
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
