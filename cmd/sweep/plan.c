/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sweep/sweep.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static int add_value(struct sweep_axis *axis, const char *value)
{
    for (size_t i = 0; i < axis->count; i++)
        if (strcmp(axis->values[i], value) == 0)
            return fail(EINVAL, "--%s: the value '%s' is given twice", axis->name, value);
    if (axis->count == SWEEP_VALUES_MAX)
        return fail(EINVAL, "--%s: more than %d values", axis->name, SWEEP_VALUES_MAX);
    if (memory_room(&axis->values, axis->count, sizeof *axis->values, "values"))
        return -ENOMEM;
    char *copy = strdup(value);
    if (!copy)
        return fail(ENOMEM, "out of memory");
    axis->values[axis->count++] = copy;
    return 0;
}

static bool is_argument(const char *text)
{
    const size_t key = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_");

    return key && text[key] == '=';
}

/* ---- ranges ---- */

static int parse_number(const struct option_spec *row, const char *text, double *number)
{
    uint64_t whole = 0;
    char *end;
    int code = 0;

    if (row && row->type == OPTION_REAL) {
        *number = strtod(text, &end);
        return *text && !*end && isfinite(*number) ? 0 : -EINVAL;
    }
    if (row && row->type == OPTION_SIZE)
        code = option_parse_size(text, &whole);
    else if (row && row->type == OPTION_DURATION)
        code = option_parse_duration(text, &whole);
    else
        code = option_parse_count(text, &whole);
    *number = (double)whole;
    return code;
}

/* Write a number as a user would, exactly. */
static void number_text(const struct option_spec *row, double number, char *text, size_t bytes)
{
    static const char *const sizes[] = {"", "k", "m", "g", "t"}, *const times[] = {"ns", "us", "ms",
                                                                                   "s"};
    const bool is_size = row && row->type == OPTION_SIZE;
    const bool is_duration = row && row->type == OPTION_DURATION;
    const double step = is_size ? 1024 : 1000;
    size_t unit = 0;

    if (row && row->type == OPTION_REAL) {
        snprintf(text, bytes, "%.12g", number);
        return;
    }
    number = nearbyint(number);
    while ((is_size && unit < 4) || (is_duration && unit < 3)) {
        if (number == 0 || fmod(number, step) != 0)
            break;
        number /= step;
        unit++;
    }
    const char *suffix = is_duration ? times[unit] : is_size ? sizes[unit] : "";
    if (is_size && row->per_second && unit == 0)
        suffix = "b"; /* a rate needs a unit */
    snprintf(text, bytes, "%.0f%s", number, suffix);
}

/* Returns 0, 1 if text is not a range, or a negative errno with a reason. */
static int add_range(struct sweep_axis *axis, const char *text)
{
    char parts[3][48];
    double from, to, step;
    char kind, *end, number[48], last[48] = "";
    int used = 0, code = 0;

    if ((axis->row && (axis->row->type == OPTION_FLAG || axis->row->type == OPTION_CHOICE)) ||
        sscanf(text, "%47[^:]:%47[^:]:%c%47[^:]%n", parts[0], parts[1], &kind, parts[2], &used) !=
            4 ||
        text[used] || (kind != 'x' && kind != '+'))
        return 1;
    if (parse_number(axis->row, parts[0], &from) || parse_number(axis->row, parts[1], &to)) {
        if (!axis->row || axis->row->type != OPTION_TEXT)
            return -EINVAL;
        fail_clear();
        return 1;
    }
    step = strtod(parts[2], &end);
    if (kind == '+' && parse_number(axis->row, parts[2], &step))
        return -EINVAL;
    if (kind == 'x' && (*end || !(step > 1)))
        return fail(EINVAL, "--%s: %s: expected a factor above 1 after x, as in 32:1024:x2",
                    axis->name, text);
    if (!(from <= to) || !(step > 0) || (kind == 'x' && !(from > 0)))
        return fail(EINVAL, "--%s: %s: expected FROM:TO:xFACTOR or FROM:TO:+STEP, FROM at most TO",
                    axis->name, text);
    for (; code == 0 && from <= to * (1 + 1e-9); from = kind == 'x' ? from * step : from + step) {
        number_text(axis->row, from, number, sizeof number);
        if (strcmp(number, last) != 0) /* skip values that round to the same integer */
            code = add_value(axis, number);
        snprintf(last, sizeof last, "%s", number);
    }
    return code;
}

/* ---- all ---- */

static int add_values(struct sweep_axis *axis, const struct plugin *const *members,
                      const char *text)
{
    static const char *const flags[] = {"no", "yes", NULL};
    const char *const *names =
        axis->row && axis->row->type == OPTION_CHOICE ? axis->row->choices : flags;
    int code = 0;

    for (;;) {
        bool has_arguments = false;
        size_t bytes = 0;
        for (; text[bytes]; bytes++) {
            if (text[bytes] == '\\' && text[bytes + 1] == ',')
                bytes++;
            else if (text[bytes] == ',' && !(has_arguments && is_argument(text + bytes + 1)))
                break;
            has_arguments = has_arguments || text[bytes] == ':';
        }
        /* Copy a value, dropping the backslashes before commas. */
        char *value = strndup(text, bytes), *to = value;
        for (const char *from = value; from && *from; from++)
            if (*from != '\\' || from[1] != ',')
                *to++ = *from;
        if (!value)
            return fail(ENOMEM, "out of memory");
        *to = '\0';
        if (strcmp(value, "all") == 0 &&
            (members ||
             (axis->row && (axis->row->type == OPTION_FLAG || axis->row->type == OPTION_CHOICE)))) {
            /* Every member that works here; for flags and choices, every value. */
            for (size_t i = 0; members && members[i] && code == 0; i++)
                if (plugin_usable(members[i]) == 0)
                    code = add_value(axis, members[i]->name);
            for (size_t i = 0; !members && names[i] && code == 0; i++)
                code = add_value(axis, names[i]);
            if (code == 0 && axis->count == 0)
                code = fail(ENOTSUP, "--%s all: none works here: %s", axis->name, fail_reason());
            else if (code == 0)
                fail_clear(); /* reasons of members that do not work */
        } else if ((code = add_range(axis, value)) == 1) {
            code = add_value(axis, value);
        }
        free(value);
        if (code || !text[bytes])
            return code;
        text += bytes + 1;
    }
}

/* ---- axes ---- */

static void release_axis(struct sweep_axis *axis)
{
    for (size_t i = 0; i < axis->count; i++)
        free(axis->values[i]);
    free(axis->values);
    axis->values = NULL;
    axis->count = 0;
}

void sweep_release(struct sweep_plan *plan)
{
    for (size_t i = 0; i < plan->axis_count; i++)
        release_axis(&plan->axes[i]);
    plan->axis_count = 0;
}

const struct sweep_axis *sweep_axis_named(const struct sweep_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->axis_count; i++)
        if (strcmp(plan->axes[i].name, name) == 0)
            return &plan->axes[i];
    return NULL;
}

int sweep_add(struct sweep_plan *plan, const char *name, const struct option_spec *row,
              const struct plugin *const *members, const char *text)
{
    const struct sweep_axis *known = sweep_axis_named(plan, name);
    struct sweep_axis *axis = &plan->axes[known ? (size_t)(known - plan->axes) : plan->axis_count];

    if (!known && plan->axis_count == SWEEP_AXES_MAX)
        return fail(EINVAL, "more than %d options", SWEEP_AXES_MAX);
    if (known)
        release_axis(axis);
    else
        plan->axis_count++;
    *axis = (struct sweep_axis){.name = name, .row = row};
    return add_values(axis, members, text);
}

int sweep_count(struct sweep_plan *plan)
{
    uint64_t cells = 1;

    for (size_t i = 0; i < plan->axis_count; i++) {
        cells *= plan->axes[i].count;
        if (cells > SWEEP_CELLS_MAX)
            return fail(EINVAL, "more than %d cells: give fewer values", SWEEP_CELLS_MAX);
    }
    plan->cells = (uint32_t)cells;
    return 0;
}

/* Return how much the cell number grows per step on that axis. */
static uint32_t stride_of(const struct sweep_plan *plan, size_t axis)
{
    uint32_t stride = 1;

    for (size_t i = axis + 1; i < plan->axis_count; i++)
        stride *= (uint32_t)plan->axes[i].count;
    return stride;
}

size_t sweep_digit(const struct sweep_plan *plan, uint32_t cell, size_t axis)
{
    assert(axis < plan->axis_count && plan->axes[axis].count > 0);
    return cell / stride_of(plan, axis) % plan->axes[axis].count;
}

const char *sweep_value(const struct sweep_plan *plan, uint32_t cell, size_t axis)
{
    return plan->axes[axis].values[sweep_digit(plan, cell, axis)];
}

uint32_t sweep_neighbour(const struct sweep_plan *plan, uint32_t cell, size_t axis, size_t digit)
{
    const uint32_t stride = stride_of(plan, axis);

    assert(digit < plan->axes[axis].count);
    return cell - (uint32_t)sweep_digit(plan, cell, axis) * stride + (uint32_t)digit * stride;
}

char *sweep_fill(const struct sweep_plan *plan, uint32_t cell, const char *text)
{
    struct text_stream stream;
    char *filled = NULL;
    size_t bytes;

    if (text_stream_open(&stream))
        return NULL;
    while (*text) {
        const size_t length = strcspn(text + 1, "}");
        size_t i = *text == '{' && text[length + 1] ? 0 : plan->axis_count;
        while (i < plan->axis_count && (strlen(plan->axes[i].name) != length ||
                                        strncmp(plan->axes[i].name, text + 1, length) != 0))
            i++;
        if (i < plan->axis_count)
            fputs(sweep_value(plan, cell, i), stream.stream);
        else
            fputc(*text, stream.stream);
        text += i < plan->axis_count ? length + 2 : 1;
    }
    text_stream_take(&stream, &filled, &bytes);
    return filled;
}

const char *sweep_title_without(const struct sweep_plan *plan, uint32_t cell, size_t axis,
                                const char *name, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < plan->axis_count && used < bytes; i++)
        if (plan->axes[i].count > 1 && i != axis &&
            !(name && strcmp(name, plan->axes[i].name) == 0))
            used += (size_t)snprintf(text + used, bytes - used, "%s%s=%s", used ? " " : "",
                                     plan->axes[i].name, sweep_value(plan, cell, i));
    return text;
}

const char *sweep_title(const struct sweep_plan *plan, uint32_t cell, char *text, size_t bytes)
{
    sweep_title_without(plan, cell, SWEEP_NO_AXIS, NULL, text, bytes);
    if (!*text)
        snprintf(text, bytes, "the only cell");
    return text;
}

/* ---- order ---- */

unsigned sweep_class(const struct sweep_plan *plan, uint32_t cell)
{
    size_t changed = 0, inner = 0;

    for (size_t i = 0; i < plan->axis_count; i++) {
        const size_t digit = sweep_digit(plan, cell, i);
        changed += digit > 0;
        inner += digit > 0 && digit + 1 < plan->axes[i].count;
    }
    if (changed <= 1)
        return changed == 0 ? 0 : inner ? 2 : 1;
    return inner ? 4 : 3;
}

struct drawn_cell {
    unsigned class;
    uint32_t place, cell;
};

static int more_telling(const void *one, const void *other)
{
    const struct drawn_cell *a = one, *b = other;

    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

void sweep_order(const struct sweep_plan *plan, uint64_t seed, uint32_t round, bool telling_first,
                 uint32_t *order)
{
    static struct drawn_cell drawn[SWEEP_CELLS_MAX];

    assert(plan->cells <= SWEEP_CELLS_MAX);
    random_order(seed, round, order, plan->cells);
    if (!telling_first)
        return;
    for (uint32_t i = 0; i < plan->cells; i++)
        drawn[i] = (struct drawn_cell){sweep_class(plan, order[i]), i, order[i]};
    qsort(drawn, plan->cells, sizeof *drawn, more_telling);
    for (uint32_t i = 0; i < plan->cells; i++)
        order[i] = drawn[i].cell;
}

const char *const sweep_part_names[SWEEP_PARTS] = {"wait",     "upload", "compute",
                                                   "exchange", "update", "barrier"};

const struct sweep_figures *sweep_at(const struct sweep_table *table, uint32_t cell, uint32_t round)
{
    assert(cell < table->plan->cells && round < table->rounds);
    return &table->figures[(size_t)round * table->plan->cells + cell];
}

const struct sweep_figures *sweep_of_other_set(const struct sweep_table *table,
                                               const struct sweep_figures *figures)
{
    for (size_t i = 0; figures->set && i < (size_t)table->rounds * table->plan->cells; i++) {
        const struct sweep_figures *other = &table->figures[i];
        /* Nodes may have copies of a set, which are other files. */
        const bool are_other_files = figures->files && other->files &&
                                     figures->host == other->host && figures->files != other->files;
        if (other->is_valid && other->set == figures->set &&
            (figures->set_samples != other->set_samples || figures->set_bytes != other->set_bytes ||
             are_other_files))
            return other;
    }
    return NULL;
}

/* ---- a cell ---- */

/* Merge a word with those seen so far. */
static const char *join(const char *so_far, const char *word)
{
    if (!*so_far || strcmp(so_far, word) == 0)
        return word;
    return "mixed";
}

struct sweep_summary sweep_summarise(const struct sweep_table *table, uint32_t cell)
{
    struct sweep_summary summary = {.limit = "", .cache = ""};
    double *rates = memory_array(table->rounds, sizeof *rates), wall_s = 0;
    size_t known = 0;

    for (uint32_t round = 0; rates && round < table->rounds; round++) {
        const struct sweep_figures *figures = sweep_at(table, cell, round);
        summary.measured += figures->is_measured;
        if (figures->is_measured && !figures->is_valid && !summary.reason)
            summary.reason = figures->reason;
        if (!figures->is_valid)
            continue;
        if (figures->samples_per_s > 0)
            rates[known++] = figures->samples_per_s;
        summary.valid++;
        summary.limit = join(summary.limit, figures->limit);
        summary.cache = join(summary.cache, figures->cache);
        summary.randomness = figures->randomness;
        summary.ranks = figures->ranks;
        wall_s += figures->wall_s;
        for (int i = 0; i < SWEEP_PARTS; i++)
            summary.shares[i] += figures->parts_s[i];
    }
    for (int i = 0; i < SWEEP_PARTS; i++)
        summary.shares[i] = wall_s > 0 ? summary.shares[i] / wall_s : NAN;
    if (known)
        summary.samples_per_s = stats_summarise(rates, known);
    free(rates);
    return summary;
}

/* ---- effects ---- */

/* Compare those of the cells from `first` on that have this value with the cells that have the
 * axis's first value and differ in nothing else, over the rounds that measured both. *other_caches:
 * pairs of different caches. */
static struct paired compare_with_first(const struct sweep_table *table, size_t axis, size_t digit,
                                        uint32_t first, uint32_t end, size_t *other_caches)
{
    const size_t most = (size_t)table->rounds * (end - first),
                 room = most < PAIRED_MAX ? most : PAIRED_MAX;
    double *a = memory_array(room, sizeof *a), *b = memory_array(room, sizeof *b);
    size_t count = 0;

    assert(first < end && end <= table->plan->cells);
    *other_caches = 0;
    for (uint32_t round = 0; a && b && round < table->rounds; round++)
        for (uint32_t cell = first; cell < end && count < room; cell++) {
            const struct sweep_figures *one = sweep_at(table,
                                                       sweep_neighbour(table->plan, cell, axis, 0),
                                                       round),
                                       *other = sweep_at(table, cell, round);
            if (sweep_digit(table->plan, cell, axis) != digit || !one->is_valid || !other->is_valid)
                continue;
            *other_caches += strcmp(one->cache, other->cache) != 0;
            a[count] = one->samples_per_s;
            b[count++] = other->samples_per_s;
        }
    const struct paired paired = paired_test(a, b, count, 1, false);
    free(a);
    free(b);
    return paired;
}

struct paired sweep_against_first(const struct sweep_table *table, uint32_t cell, size_t axis)
{
    size_t other_caches;

    return compare_with_first(table, axis, sweep_digit(table->plan, cell, axis), cell, cell + 1,
                              &other_caches);
}

struct sweep_effect *sweep_effects(const struct sweep_table *table, size_t *count)
{
    const struct sweep_plan *plan = table->plan;
    size_t most = 0;

    *count = 0;
    for (size_t i = 0; i < plan->axis_count; i++)
        most += plan->axes[i].count - 1;
    struct sweep_effect *effects = memory_array(most, sizeof *effects);
    double *p = effects ? memory_array(most, sizeof *p) : NULL;
    if (!p) {
        free(effects);
        return NULL;
    }
    for (size_t i = 0; i < plan->axis_count; i++)
        for (size_t digit = 1; digit < plan->axes[i].count; digit++) {
            struct sweep_effect *effect = &effects[*count];
            *effect = (struct sweep_effect){.axis = i, .digit = digit};
            effect->paired =
                compare_with_first(table, i, digit, 0, plan->cells, &effect->cache_pairs);
            p[(*count)++] = effect->paired.p;
        }
    paired_holm(p, *count);
    for (size_t i = 0; i < *count; i++)
        effects[i].p_corrected = p[i];
    free(p);
    return effects;
}
