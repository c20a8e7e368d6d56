/* SPDX-License-Identifier: Apache-2.0 */
#include "base/option.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct option_unit {
    const char *name;
    double factor;
};

/* As in fio, a bare letter is binary; KiB and KB differ. */
static const struct option_unit size_units[] = {
    {"", 1},         {"b", 1},     {"k", 0x1p10}, {"kib", 0x1p10}, {"kb", 1e3},  {"m", 0x1p20},
    {"mib", 0x1p20}, {"mb", 1e6},  {"g", 0x1p30}, {"gib", 0x1p30}, {"gb", 1e9},  {"t", 0x1p40},
    {"tib", 0x1p40}, {"tb", 1e12}, {"p", 0x1p50}, {"pib", 0x1p50}, {"pb", 1e15}, {NULL, 0},
};

/* A count has no bytes: "1kb" is a typo, not 1,000. */
static const struct option_unit count_units[] = {
    {"", 1}, {"k", 0x1p10}, {"m", 0x1p20}, {"g", 0x1p30}, {"t", 0x1p40}, {NULL, 0},
};

static const struct option_unit duration_units[] = {
    {"", 1e9},   {"ns", 1},     {"us", 1e3},    {"ms", 1e6}, {"s", 1e9},
    {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {NULL, 0},
};

/* whole: the value must be whole; the number need not be (1.5k, but not 1.3k). */
static int parse_with_units(const char *text, const struct option_unit *units, bool whole,
                            uint64_t *value)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    errno = 0;
    double number = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : NAN;
    if (isnan(number) || errno)
        return -EINVAL;
    while (isspace((unsigned char)*end))
        end++;
    for (; units->name; units++)
        if (strcasecmp(end, units->name) == 0)
            break;
    if (!units->name)
        return -EINVAL;
    /* Plain whole numbers keep all 64 bits. */
    if (units->factor == 1 && strspn(text, "0123456789") == (size_t)(end - text)) {
        *value = strtoull(text, NULL, 10);
        return errno ? -EINVAL : 0;
    }
    whole |= units->factor == 1; /* half a byte, half a nanosecond */
    number *= units->factor;
    if (number < 0 || number >= 0x1p64 || (whole && number != floor(number)))
        return -EINVAL;
    *value = (uint64_t)llround(number < 0x1p63 ? number : 0);
    if (number >= 0x1p63)
        *value = (uint64_t)number;
    return 0;
}

int option_parse_size(const char *text, uint64_t *bytes)
{
    const size_t length = strlen(text);

    /* 8Gb: a small b after a capital prefix means bits, an eighth of 8GB. */
    if (length > 1 && text[length - 1] == 'b' && text[strcspn(text, "KMGTP")])
        return fail(EINVAL,
                    "'%s' is a number of bits: sizes are in bytes (1GB, 1GiB, 8 Gb are 1GB)", text);
    if (parse_with_units(text, size_units, false, bytes))
        return fail(EINVAL, "'%s' is not a size (examples: 4096, 128k, 1MiB, 1MB, 20g)", text);
    return 0;
}

int option_parse_count(const char *text, uint64_t *count)
{
    if (parse_with_units(text, count_units, true, count))
        return fail(EINVAL, "'%s' is not a whole number (examples: 300, 64k, 1m)", text);
    return 0;
}

/* A rate without a unit is refused: 500 more often means MB/s than bytes. */
static int parse_rate(const char *text, uint64_t *bytes)
{
    size_t length = strlen(text);
    char size[32];

    if (length > 2 && strcmp(text + length - 2, "/s") == 0)
        length -= 2;
    if (length >= sizeof size)
        return fail(EINVAL, "'%s' is not a rate (examples: 500MiB/s, 1GB/s)", text);
    snprintf(size, sizeof size, "%.*s", (int)length, text);
    if (strcmp(size, "0") != 0 && strspn(size, "0123456789. ") == length)
        return fail(EINVAL, "'%s' has no unit (examples: %sMiB/s, %sB/s)", text, size, size);
    return option_parse_size(size, bytes);
}

int option_parse_duration(const char *text, uint64_t *nanoseconds)
{
    if (parse_with_units(text, duration_units, false, nanoseconds))
        return fail(EINVAL, "'%s' is not a duration (examples: 10, 10s, 5ms, 2m, 1h)", text);
    return 0;
}

int option_parse_list(const struct option_list *list, const char *text, uint64_t *values)
{
    char *copy = strdup(text), *cursor = copy, *part;
    int count = 0, code = copy ? 0 : fail(ENOMEM, "out of memory");

    assert(list->count_most > 0 && list->most > 0);
    while (code == 0 && (part = strsep(&cursor, ","))) {
        if (count == list->count_most)
            code = fail(EINVAL, "--%s: at most %d numbers", list->option, list->count_most);
        else if (list->parse(part, &values[count]) || values[count] < 1 ||
                 values[count] > list->most ||
                 (list->is_ascending && count && values[count] <= values[count - 1]))
            code = fail(EINVAL, "--%s: expected %snumbers from 1 to %llu such as 1,8,64, not '%s'",
                        list->option, list->is_ascending ? "ascending " : "",
                        (unsigned long long)list->most, text);
        else
            count++;
    }
    free(copy);
    return code ? code : count;
}

static int check_range(const struct option_spec *row, double value)
{
    if (value == 0 && row->zero)
        return 0;
    if ((row->minimum != 0 || row->maximum != 0) &&
        (value < row->minimum || (row->maximum > row->minimum && value > row->maximum))) {
        if (row->maximum > row->minimum)
            return fail(EINVAL, "%.12g is not within %.12g .. %.12g", value, row->minimum,
                        row->maximum);
        return fail(EINVAL, "%.12g is less than %.12g", value, row->minimum);
    }
    return 0;
}

static int set_row(const struct option_spec *row, void *settings, const char *text)
{
    static const char *const words[] = {"no", "false", "0", "off", "yes", "true", "1", "on"};
    void *field = (char *)settings + row->offset;
    char *end;
    int code = 0;

    if (row->zero && strcmp(text, row->zero) == 0)
        text = "0";
    switch (row->type) {
    case OPTION_FLAG:
        for (int i = 0; i < 8; i++)
            if (strcasecmp(text, words[i]) == 0) {
                *(bool *)field = i >= 4;
                return 0;
            }
        return fail(EINVAL, "'%s' is neither yes nor no", text);
    case OPTION_COUNT:
        code = option_parse_count(text, field);
        return code ? code : check_range(row, (double)*(uint64_t *)field);
    case OPTION_SIZE:
        code = row->per_second ? parse_rate(text, field) : option_parse_size(text, field);
        return code ? code : check_range(row, (double)*(uint64_t *)field);
    case OPTION_DURATION:
        code = option_parse_duration(text, field);
        return code ? code : check_range(row, (double)*(uint64_t *)field * 1e-9);
    case OPTION_REAL: {
        double *value = field;
        *value = strtod(text, &end);
        end += row->percent && end != text && *end == '%';
        if (end == text || *end || !isfinite(*value))
            return fail(EINVAL, "'%s' is not a number", text);
        return check_range(row, *value);
    }
    case OPTION_CHOICE: {
        struct nearest nearest = nearest_start(text);
        for (int i = 0; row->choices[i]; i++) {
            if (strcmp(row->choices[i], text) == 0) {
                *(int *)field = i;
                return 0;
            }
            nearest_offer(&nearest, row->choices[i]);
        }
        return nearest_fail(&nearest, EINVAL, "unknown value");
    }
    case OPTION_TEXT: {
        char **value = field, *copy;
        const bool adds = row->repeats && *value;
        if (asprintf(&copy, "%s%s%s", adds ? *value : "", adds ? "\n" : "", text) < 0)
            return fail(ENOMEM, "out of memory");
        free(*value);
        *value = copy;
        return 0;
    }
    }
    return fail(EINVAL, "unknown option type");
}

int option_defaults(const struct option_spec *table, void *settings)
{
    for (const struct option_spec *row = table; row->name; row++) {
        if (!row->fallback)
            continue;
        int code = set_row(row, settings, row->fallback);
        if (code)
            return code;
    }
    return 0;
}

const struct option_spec *option_find(const struct option_spec *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

void option_offer(const struct option_spec *table, struct nearest *nearest)
{
    for (; table && table->name; table++)
        nearest_offer(nearest, table->name);
}

int option_set(const struct option_spec *table, void *settings, const char *name, const char *value,
               const char *where)
{
    const struct option_spec *row = option_find(table, name);

    if (!row) {
        struct nearest nearest = nearest_start(name);
        option_offer(table, &nearest);
        return fail(EINVAL, "%s: unknown option '%s'%s", where, name, nearest_hint(&nearest));
    }
    int code = set_row(row, settings, value);
    if (code) {
        if (where[0] == '-') /* already names the option */
            return fail(-code, "%s: %s", where, fail_reason());
        return fail(-code, "%s: %s: %s", where, name, fail_reason());
    }
    return 0;
}

int option_set_list(const struct option_spec *table, void *settings, const char *list,
                    const char *where)
{
    char *copy = strdup(list), *cursor = copy, *part;
    int code = 0;

    if (!copy)
        return fail(ENOMEM, "out of memory");
    for (bool first = true; code == 0 && (part = strsep(&cursor, ",")); first = false) {
        char *equals = strchr(part, '=');
        if (equals) {
            *equals = '\0';
            code = option_set(table, settings, part, equals + 1, where);
        } else if (first && table->name) {
            code = option_set(table, settings, table->name, part, where);
        } else {
            const struct option_spec *row = option_find(table, part);
            if (row && row->type == OPTION_FLAG)
                code = option_set(table, settings, part, "yes", where);
            else
                code = fail(EINVAL, "%s: '%s' is not key=value", where, part);
        }
    }
    free(copy);
    return code;
}

const char *option_text(const struct option_spec *row, const void *settings, char *text,
                        size_t text_bytes)
{
    const void *field = (const char *)settings + row->offset;

    if (row->zero &&
        (row->type == OPTION_REAL ? *(const double *)field == 0 : *(const uint64_t *)field == 0)) {
        snprintf(text, text_bytes, "%s", row->zero);
        return text;
    }
    switch (row->type) {
    case OPTION_FLAG:
        snprintf(text, text_bytes, "%s", *(const bool *)field ? "yes" : "no");
        break;
    case OPTION_COUNT:
    case OPTION_SIZE:
        snprintf(text, text_bytes, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case OPTION_DURATION:
        snprintf(text, text_bytes, "%gs", (double)*(const uint64_t *)field * 1e-9);
        break;
    case OPTION_REAL:
        snprintf(text, text_bytes, "%g", *(const double *)field);
        break;
    case OPTION_TEXT: {
        const char *value = *(char *const *)field;
        snprintf(text, text_bytes, "%s", value ? value : "");
        break;
    }
    case OPTION_CHOICE:
        snprintf(text, text_bytes, "%s", row->choices[*(const int *)field]);
        break;
    }
    return text;
}

void option_release(const struct option_spec *table, void *settings)
{
    for (; table->name; table++) {
        if (table->type == OPTION_TEXT) {
            char **field = (char **)((char *)settings + table->offset);
            free(*field);
            *field = NULL;
        }
    }
}

/* ---- nearest ---- */

enum { NAME_MAX_BYTES = 63 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Return the edits (insert, delete, replace, swap adjacent letters) from a to b: the optimal string
 * alignment distance. Names longer than the limit are far from everything. */
static unsigned distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    unsigned cost[NAME_MAX_BYTES + 1][NAME_MAX_BYTES + 1];

    if (m > NAME_MAX_BYTES || n > NAME_MAX_BYTES)
        return NAME_MAX_BYTES;
    for (unsigned i = 0; i <= m; i++)
        cost[i][0] = i;
    for (unsigned j = 0; j <= n; j++)
        cost[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        for (size_t j = 1; j <= n; j++) {
            unsigned replace = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            cost[i][j] = least(replace, 1 + least(cost[i - 1][j], cost[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = least(cost[i][j], 1 + cost[i - 2][j - 2]);
        }
    }
    return cost[m][n];
}

struct nearest nearest_start(const char *wanted)
{
    size_t length = strlen(wanted);

    /* Accept up to a third of the letters wrong, but never all letters of a short name. */
    return (struct nearest){
        .wanted = wanted, .dashes = "", .distance = length < 3 ? 2 : (unsigned)length / 3 + 2};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    size_t length = strlen(nearest->wanted);
    unsigned edits = distance(nearest->wanted, name);

    /* A prefix ("--batch" of "--batch-size") is closer than a typo. */
    if (length >= 3 && strncmp(nearest->wanted, name, length) == 0)
        edits = 1;
    if (edits < nearest->distance) {
        nearest->distance = edits;
        nearest->best = name;
    }
    if (nearest->known_bytes < sizeof nearest->known)
        nearest->known_bytes += (size_t)snprintf(nearest->known + nearest->known_bytes,
                                                 sizeof nearest->known - nearest->known_bytes,
                                                 "%s%s", nearest->known_bytes ? ", " : "", name);
}

const char *nearest_hint(struct nearest *nearest)
{
    nearest->hint[0] = '\0';
    if (nearest->best)
        snprintf(nearest->hint, sizeof nearest->hint, "; did you mean '%s%s'?", nearest->dashes,
                 nearest->best);
    return nearest->hint;
}

int nearest_fail(struct nearest *nearest, int code, const char *what)
{
    return fail(code, "%s '%s' (known: %s)%s", what, nearest->wanted, nearest->known,
                nearest_hint(nearest));
}

/* ---- names ---- */

enum { SLOTS_MIN = 64, NAMES_MAX = 1 << 30 };

/* Find the slot of a string, or the free one where it belongs. */
static uint32_t *slot_of(struct names *names, const char *text, size_t length)
{
    /* The seed is an address, which varies from run to run: colliding names cannot be crafted. */
    uint64_t at = (uint64_t)(uintptr_t)names;

    assert((names->slots & (names->slots - 1)) == 0 && names->count < names->slots);
    for (size_t i = 0; i < length; i++)
        at = random_hash(at, (uint8_t)text[i], length);
    for (;; at++) {
        uint32_t *slot = &names->table[at & (names->slots - 1)];
        names->probes++;
        if (!*slot)
            return slot;
        const char *there = names->texts[*slot - 1];
        if (strncmp(there, text, length) == 0 && there[length] == '\0')
            return slot;
    }
}

int64_t names_number(struct names *names, const char *text, size_t length)
{
    if (names->count >= names->slots / 2) {
        const uint32_t slots = names->slots ? names->slots * 2 : SLOTS_MIN;
        uint32_t *table = names->count < NAMES_MAX ? memory_array(slots, sizeof *table) : NULL;
        if (!table)
            return names->count < NAMES_MAX ? -ENOMEM
                                            : fail(ENOMEM, "more than %d names", NAMES_MAX);
        free(names->table);
        names->table = table;
        names->slots = slots;
        for (uint32_t i = 0; i < names->count; i++)
            *slot_of(names, names->texts[i], strlen(names->texts[i])) = i + 1;
    }
    uint32_t *slot = slot_of(names, text, length);
    if (*slot)
        return *slot - 1;
    if (memory_room(&names->texts, names->count, sizeof *names->texts, "names"))
        return -ENOMEM;
    char *copy = strndup(text, length);
    if (!copy)
        return fail(ENOMEM, "out of memory for a name");
    names->texts[names->count] = copy;
    *slot = ++names->count;
    return names->count - 1;
}

bool names_has(struct names *names, const char *text)
{
    return names->count > 0 && *slot_of(names, text, strlen(text));
}

void names_release(struct names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->table);
    *names = (struct names){0};
}
