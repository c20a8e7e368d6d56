/* SPDX-License-Identifier: Apache-2.0
 * What docs/ says of each figure of an epoch is made from its row: the tables of json.md and
 * metrics.md and the schema are as committed. `make figures` writes them anew. */
#include "tests/unit/unit.h"

#include "base/file.h"
#include "pipeline/result/result.h"
#include "telemetry/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool writes;

/* A row's key within `object` (NULL: outside of any), or NULL. */
static const char *key_in(const struct figure *row, const char *object)
{
    const char *dot = row->key ? strchr(row->key, '.') : NULL;

    if (!object)
        return dot ? NULL : row->key;
    return dot && strncmp(row->key, object, strlen(object)) == 0 ? dot + 1 : NULL;
}

static void put_meanings(FILE *stream, const char *object)
{
    fputs("| key | meaning |\n|---|---|\n", stream);
    for (size_t i = 0; i < figures_of_epoch_count; i++)
        if (key_in(&figures_of_epoch[i], object))
            fprintf(stream, "| `%s` | %s |\n", key_in(&figures_of_epoch[i], object),
                    figures_of_epoch[i].meaning);
}

static void put_definitions(FILE *stream, const char *object)
{
    fputs("| figure | what | clock | code | witness |\n|---|---|---|---|---|\n", stream);
    for (size_t i = 0; i < figures_of_epoch_count; i++) {
        const struct figure *row = &figures_of_epoch[i];
        if (key_in(row, object))
            fprintf(stream, "| `%s` | %s | %s | `%s` | `%s` |\n", key_in(row, object), row->meaning,
                    row->clock, row->code, row->witness);
    }
}

static void put_schema(FILE *stream, const char *object)
{
    const int indent = object ? 8 : 4;
    const char *comma = "";

    fprintf(stream, "%*s\"%s\": {\n%*s\"type\": \"object\",\n%*s\"required\": [", indent, "",
            object ? object : "epoch", indent + 2, "", indent + 2, "");
    for (size_t i = 0; i < figures_of_epoch_count; i++)
        if (key_in(&figures_of_epoch[i], object)) {
            fprintf(stream, "%s\n%*s\"%s\"", comma, indent + 4, "",
                    key_in(&figures_of_epoch[i], object));
            comma = ",";
        }
    fprintf(stream, "%s\n%*s],\n%*s\"properties\": {", object ? "" : ",\n        \"waits\"",
            indent + 2, "", indent + 2, "");
    comma = "";
    for (size_t i = 0; i < figures_of_epoch_count; i++) {
        const struct figure *row = &figures_of_epoch[i];
        if (!key_in(row, object))
            continue;
        const bool is_text =
            row->type == FIGURE_TEXT || row->type == FIGURE_LIMIT || row->type == FIGURE_DIGEST;
        fprintf(stream, "%s\n%*s\"%s\": {\"$ref\": \"#/$defs/%s\", \"description\": \"", comma,
                indent + 4, "", key_in(row, object), is_text ? "text" : "number");
        for (const char *at = row->meaning; *at; at++)
            if (*at != '`')
                fputc(*at, stream);
        fputs("\"}", stream);
        comma = ",";
    }
    if (!object) {
        fputs(",\n", stream);
        put_schema(stream, "waits");
    }
    fprintf(stream, "\n%*s}\n%*s}%s", indent + 2, "", indent, "", object ? "" : ",\n");
}

/* Compare what is between two marks of a page with what the rows make, or write it there. */
static void check(const char *name, const char *begin, const char *end,
                  void (*put)(FILE *stream, const char *object), const char *object)
{
    char path[512], *text = NULL, *made = NULL;
    size_t bytes, made_bytes;

    snprintf(path, sizeof path, "%s/%s", getenv("srcdir") ? getenv("srcdir") : ".", name);
    assert_int_equal(file_load(path, 1 << 20, &text, &bytes), 0);
    char *from = strstr(text, begin), *to = from ? strstr(from, end) : NULL;
    assert_non_null(to);
    from += begin[0] == '<' ? strlen(begin) : 0;
    to += begin[0] == '<' ? 0 : strlen(end);
    FILE *stream = open_memstream(&made, &made_bytes);
    put(stream, object);
    fclose(stream);
    if (writes) {
        FILE *page = fopen(path, "we");
        assert_non_null(page);
        fprintf(page, "%.*s%s%s", (int)(from - text), text, made, to);
        assert_int_equal(fclose(page), 0);
    } else if (made_bytes != (size_t)(to - from) || memcmp(made, from, made_bytes) != 0) {
        fail_msg("%s is not what pipeline/result/result.c says: make figures", name);
    }
    free(made);
    free(text);
}

static void pages_say_what_the_rows_say(void **unused)
{
    check("docs/json.md", "<!-- figures: epoch -->\n", "<!-- end -->", put_meanings, NULL);
    check("docs/json.md", "<!-- figures: waits -->\n", "<!-- end -->", put_meanings, "waits");
    check("docs/metrics.md", "<!-- figures: epoch -->\n", "<!-- end -->", put_definitions, NULL);
    check("docs/metrics.md", "<!-- figures: waits -->\n", "<!-- end -->", put_definitions, "waits");
    check("docs/schema/iobench.schema.json", "    \"epoch\": {\n", "\n    },\n", put_schema, NULL);
}

/* A column is a word of a row's first cell: "| cache, dirty | ...". */
static void page_of_monitor_has_each_column(void **unused)
{
    char path[4096];
    char *text = NULL;
    size_t bytes;

    (void)unused;
    snprintf(path, sizeof path, "%s/docs/monitor.md", getenv("srcdir") ? getenv("srcdir") : ".");
    assert_int_equal(file_load(path, 1 << 20, &text, &bytes), 0);
    for (int i = 0; i < MONITOR_FIGURES; i++) {
        const char *heading = monitor_figures[i].heading;
        bool is_there = false;
        for (const char *line = strstr(text, "\n| "); line && !is_there;
             line = strstr(line + 1, "\n| ")) {
            char cell[128];
            snprintf(cell, sizeof cell, "%.*s", (int)strcspn(line + 3, "|"), line + 3);
            for (char *left = NULL, *name = strtok_r(cell, ",", &left); name && !is_there;
                 name = strtok_r(NULL, ",", &left)) {
                name += strspn(name, " ");
                const size_t length = strlen(heading);
                is_there = strncmp(name, heading, length) == 0 &&
                           (name[length] == '\0' || strcmp(name + length, " ") == 0);
            }
        }
        if (!is_there)
            fail_msg("docs/monitor.md has no column '%s'", heading);
    }
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_say_what_the_rows_say),
                                       cmocka_unit_test(page_of_monitor_has_each_column)};

    writes = argc > 1 && strcmp(argv[1], "write") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
