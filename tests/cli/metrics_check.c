/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics_check PAGE SRCDIR ROOT=RESULT...: compares docs/metrics.md with results as they were
 * written. A figure is a number, or null in its place; its owner is the key around it, at the top
 * the word ROOT. Each figure stands in the section of its owner; each line of the page is a figure
 * of some result, and its code and its test are files. Prints what differs; 0, 1 or 2.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIGURES_MAX = 1000, NAME_BYTES = 128, OWNERS_MAX = 8, LINE_BYTES = 4096 };

struct figure {
    char name[NAME_BYTES]; /* "owner.key" */
    bool is_found;         /* in a result */
};

static struct figure figures[FIGURES_MAX];
static int figure_count, faults;

static struct figure *find(const char *owner, const char *key)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof name, "%.60s.%.60s", owner, key);
    for (int i = 0; i < figure_count; i++)
        if (strcmp(figures[i].name, name) == 0)
            return &figures[i];
    return NULL;
}

/* ---- the page ---- */

/* The words between back-quotes; from the text, which is cut up. */
static int take_quoted(char *text, char **words, int most)
{
    int count = 0;

    for (char *start; count < most && (start = strchr(text, '`')); text++) {
        words[count++] = start + 1;
        text = strchr(start + 1, '`');
        if (!text)
            return count - 1;
        *text = '\0';
    }
    return count;
}

static void check_file(const char *srcdir, const char *line, const char *cell)
{
    char text[LINE_BYTES], path[LINE_BYTES], *words[1];

    snprintf(text, sizeof text, "%s", cell);
    if (take_quoted(text, words, 1) == 1) {
        snprintf(path, sizeof path, "%.1000s/%.1000s", srcdir, words[0]);
        if (access(path, R_OK) == 0)
            return;
    }
    printf("there is no file%s, in: %s\n", cell, line);
    faults++;
}

/* "| figures | what | clock | code | witness |" */
static void read_row(const char *srcdir, const char *line, char *const *owners, int owner_count)
{
    char text[LINE_BYTES], *cells[8], *words[64], *cursor = text + 1, *cell;
    int count = 0;

    snprintf(text, sizeof text, "%s", line);
    while (count < 8 && (cell = strsep(&cursor, "|")))
        cells[count++] = cell;
    if (count != 6) {
        printf("not a row of five cells: %s\n", line);
        faults++;
        return;
    }
    check_file(srcdir, line, cells[3]);
    check_file(srcdir, line, cells[4]);
    const int keys = take_quoted(cells[0], words, 64);
    for (int i = 0; i < keys * owner_count && figure_count < FIGURES_MAX; i++) {
        if (find(owners[i / keys], words[i % keys])) {
            printf("%s.%s has two definitions\n", owners[i / keys], words[i % keys]);
            faults++;
        }
        snprintf(figures[figure_count++].name, NAME_BYTES, "%.60s.%.60s", owners[i / keys],
                 words[i % keys]);
    }
}

static int read_page(const char *path, const char *srcdir)
{
    char line[LINE_BYTES], heading[LINE_BYTES], *owners[OWNERS_MAX];
    FILE *page = fopen(path, "re");
    int owner_count = 0;

    if (!page)
        return -1;
    while (fgets(line, sizeof line, page)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "## ", 3) == 0) {
            snprintf(heading, sizeof heading, "%s", line);
            owner_count = take_quoted(heading, owners, OWNERS_MAX);
        } else if (strncmp(line, "| `", 3) == 0) {
            read_row(srcdir, line, owners, owner_count);
        }
    }
    fclose(page);
    return 0;
}

/* ---- results ---- */

/* A figure of an interval is defined with its median. */
static struct figure *find_any(const char *owner, const char *key)
{
    static const char *const ends[] = {"_low95", "_high95", "_min", "_max"};
    char name[NAME_BYTES];
    struct figure *figure = find(owner, key);

    for (size_t i = 0; !figure && i < sizeof ends / sizeof *ends; i++) {
        const size_t length = strlen(key), end = strlen(ends[i]);
        if (length <= end || strcmp(key + length - end, ends[i]) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(length - end), key);
        figure = find(owner, name);
    }
    return figure;
}

static bool is_spread(const json_t *value)
{
    return json_object_size(value) == 3 && json_object_get(value, "min") &&
           json_object_get(value, "median") && json_object_get(value, "max");
}

/* Also null, and an array of numbers. */
static bool is_figure(const json_t *value)
{
    return json_is_number(value) || is_spread(value) || json_is_number(json_array_get(value, 0));
}

/* Options are described by --help; the rows of a series by its columns. */
static bool is_other(const char *key)
{
    static const char *const others[] = {"settings", "rows", "columns", "schema_version"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i]) == 0)
            return true;
    return false;
}

static void look(const char *owner, json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_array(value))
        json_array_foreach(value, i, member) look(owner, member);
    json_object_foreach(value, key, member)
    {
        struct figure *figure = find_any(owner, key);
        if (is_other(key))
            continue;
        if (figure && (is_figure(member) || json_is_null(member) || json_is_string(member)))
            figure->is_found = true;
        else if (is_figure(member)) {
            printf("docs/metrics.md does not define %s of %s\n", key, owner);
            faults++;
        }
        if (!is_figure(member))
            look(key, member);
    }
}

static int look_at(char *argument)
{
    json_error_t error;
    char *path = argument + strcspn(argument, "=");

    if (!*path)
        return -1;
    *path++ = '\0';
    json_t *result = json_load_file(path, 0, &error);
    if (!result)
        return -1;
    look(argument, result);
    json_decref(result);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4 || read_page(argv[1], argv[2]))
        return 2;
    for (int i = 3; i < argc; i++)
        if (look_at(argv[i])) {
            printf("%s cannot be read\n", argv[i]);
            return 2;
        }
    for (int i = 0; i < figure_count; i++)
        if (!figures[i].is_found) {
            printf("docs/metrics.md defines %s, which no result has\n", figures[i].name);
            faults++;
        }
    return faults > 0;
}
