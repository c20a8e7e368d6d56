/* SPDX-License-Identifier: Apache-2.0
 * Worked examples: figures that were computed by hand, against what is printed and what is in the
 * JSON. */
#ifndef IOBENCH_TESTS_UNIT_WORKED_H
#define IOBENCH_TESTS_UNIT_WORKED_H

#include "tests/unit/unit.h"

#include "report/report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    FILE *former;
    char *text;
    size_t bytes;
} printed;

/* Catch what is printed. */
static inline void printed_begin(void)
{
    printed.former = stdout;
    stdout = open_memstream(&printed.text, &printed.bytes);
    assert_non_null(stdout);
}

/* Return all that was printed, with each run of blanks as one: free it. */
static inline char *printed_end(void)
{
    char *to = NULL;

    fclose(stdout);
    stdout = printed.former;
    to = printed.text;
    for (const char *from = printed.text; *from; from++)
        if (*from != ' ' || to == printed.text || to[-1] != ' ')
            *to++ = *from;
    *to = '\0';
    return printed.text;
}

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

/* A number of a document, by its path: "write.wall_s"; an element of an array by its index. */
static inline double number_at(const json_t *document, const char *path)
{
    char key[64];
    const size_t length = strcspn(path, ".");

    snprintf(key, sizeof key, "%.*s", (int)length, path);
    const json_t *found = json_is_array(document) ? json_array_get(document, strtoul(key, NULL, 10))
                                                  : json_object_get(document, key);
    if (!found)
        fail_msg("no %s", path);
    if (path[length])
        return number_at(found, path + length + 1);
    return json_is_number(found) ? json_number_value(found) : (double)NAN;
}

/* Figures of a document, as pairs of path and value; NAN: null. */
struct worked_figure {
    const char *path;
    double value;
};

static inline void assert_figures(const json_t *document, const struct worked_figure *figures,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double is = number_at(document, figures[i].path), wanted = figures[i].value;
        if (isnan(wanted) ? !isnan(is) : !(fabs(is - wanted) <= 1e-9 * fabs(wanted)))
            fail_msg("%s is %.17g, not %.17g", figures[i].path, is, wanted);
    }
}

#define ASSERT_FIGURES(document, ...)                                     \
    assert_figures(document, (const struct worked_figure[]){__VA_ARGS__}, \
                   sizeof((const struct worked_figure[]){__VA_ARGS__}) /  \
                       sizeof(struct worked_figure))

#endif
