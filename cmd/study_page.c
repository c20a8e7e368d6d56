/* SPDX-License-Identifier: Apache-2.0
 * What a study says: its table and sentences, as text and as a page. */
#include "cmd/study.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/text_stream.h"
#include "report/load.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 12, CELL_BYTES = 128 };

struct study_table {
    const char *names[COLUMNS];
    size_t count;
    int widths[COLUMNS];
    const json_t *rows;
};

static const char *cell_text(const json_t *value, char *text)
{
    char number[WORDS_BYTES];

    if (json_is_integer(value))
        snprintf(text, CELL_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_number(value))
        snprintf(text, CELL_BYTES, "%s", words_rate(json_number_value(value), number));
    else
        snprintf(text, CELL_BYTES, "%s", json_is_string(value) ? json_string_value(value) : "-");
    return text;
}

/* Columns in the order of their first appearance. */
static void add_column(struct study_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->names[i], name) == 0)
            return;
    if (table->count < COLUMNS)
        table->names[table->count++] = name;
}

static struct study_table table_of(const json_t *figures)
{
    struct study_table table = {.rows = json_object_get(figures, "rows")};
    const json_t *row;
    const char *name;
    json_t *value;
    char text[CELL_BYTES];
    size_t i;

    json_array_foreach(table.rows, i, row)
        json_object_foreach((json_t *)(uintptr_t)row, name, value) add_column(&table, name);
    for (size_t k = 0; k < table.count; k++) {
        table.widths[k] = (int)strlen(table.names[k]);
        json_array_foreach(table.rows, i, row)
        {
            const int width = (int)strlen(cell_text(json_object_get(row, table.names[k]), text));
            table.widths[k] = width > table.widths[k] ? width : table.widths[k];
        }
    }
    return table;
}

static void print_table(FILE *stream, const struct study_table *table)
{
    const json_t *row;
    char text[CELL_BYTES];
    size_t i;

    for (size_t k = 0; k < table->count; k++)
        fprintf(stream, k ? "  %*s" : "  %-*s", table->widths[k], table->names[k]);
    fputc('\n', stream);
    json_array_foreach(table->rows, i, row)
    {
        for (size_t k = 0; k < table->count; k++)
            fprintf(stream, k ? "  %*s" : "  %-*s", table->widths[k],
                    cell_text(json_object_get(row, table->names[k]), text));
        fputc('\n', stream);
    }
}

static void write_table(FILE *page, const struct study_table *table)
{
    const json_t *row;
    char text[CELL_BYTES];
    size_t i;

    for (size_t k = 0; k < table->count; k++)
        fprintf(page, "| %s ", table->names[k]);
    fputs("|\n", page);
    for (size_t k = 0; k < table->count; k++)
        fputs(k ? "|---:" : "|---", page);
    fputs("|\n", page);
    json_array_foreach(table->rows, i, row)
    {
        for (size_t k = 0; k < table->count; k++)
            fprintf(page, "| %s ", cell_text(json_object_get(row, table->names[k]), text));
        fputs("|\n", page);
    }
}

static void print_wrapped(FILE *stream, const char *text)
{
    enum { TEXT_WIDTH = 76 };

    while (*text) {
        const size_t length = words_line(text, TEXT_WIDTH);
        fprintf(stream, "  %.*s\n", (int)length, text);
        text += length;
        text += strspn(text, " \n");
    }
}

/* Return all sentences as one paragraph. */
static char *sentences_of(const json_t *figures)
{
    const json_t *says = json_object_get(figures, "says"), *sentence;
    char *text = strdup("");
    size_t i;

    json_array_foreach(says, i, sentence)
    {
        char *longer =
            text ? file_format_path("%s%s%s", text, i ? " " : "", json_string_value(sentence))
                 : NULL;
        free(text);
        text = longer;
    }
    return text;
}

static void print_value(FILE *stream, const struct study *study, const char *heading,
                        const char *key)
{
    char *value = study_value(study, "study", key);

    if (heading)
        fprintf(stream, "\n%s\n", heading);
    print_wrapped(stream, value ? value : "");
    free(value);
}

/* Write each reason once, with its run or the number of runs. */
static void write_doubts(FILE *stream, const struct study_plan *plan, const char *before,
                         const char *after)
{
    for (size_t i = 0; i < plan->run_count; i++) {
        const char *reason = plan->runs[i].reason;
        size_t count = 0, earlier = 0;
        for (size_t k = 0; reason && k < plan->run_count; k++)
            if (plan->runs[k].reason && strcmp(plan->runs[k].reason, reason) == 0) {
                count++;
                earlier += k < i;
            }
        if (!reason || earlier)
            continue;
        if (count > 1)
            fprintf(stream, "%s%zu runs: %s\n%s", before, count, escape_shown(reason), after);
        else
            fprintf(stream, "%s%s: %s\n%s", before, plan->runs[i].name, escape_shown(reason),
                    after);
    }
}

void study_text(FILE *stream, const struct study_plan *plan, const json_t *figures)
{
    const struct study_table table = table_of(figures);
    char *title = study_value(plan->study, "study", "title"), *says = sentences_of(figures);

    fprintf(stream, "iobench study %s: %s\n\n", plan->study->name, title ? title : "");
    print_table(stream, &table);
    write_doubts(stream, plan, "  ", "");
    fputs("\nHere\n", stream);
    print_wrapped(stream, says ? says : "");
    print_value(stream, plan->study, "Published", "found");
    print_value(stream, plan->study, NULL, "source");
    free(says);
    free(title);
}

/* ---- the page ---- */

static void write_commands(FILE *page, const struct study_plan *plan)
{
    fputs("\n## Commands\n\n", page);
    for (size_t i = 0; i < plan->set_count; i++)
        fprintf(page, "    iobench %s\n", plan->sets[i].command.shown);
    for (size_t i = 0; i < plan->run_count; i++) {
        const struct study_run *run = &plan->runs[i];
        fputs("    ", page);
        if (run->launch)
            fprintf(page, "%s ", run->launch);
        fprintf(page, "iobench %s\n", run->command.shown);
    }
}

static void write_value(FILE *page, const struct study *study, const char *format, const char *key)
{
    char *value = study_value(study, "study", key);

    if (value) {
        for (char *at = value; *at; at++)
            if (*at == '\n')
                *at = ' ';
        fputs(format, page);
        fputs(value, page);
        fputc('\n', page);
    }
    free(value);
}

static void write_page(FILE *page, const struct study_plan *plan, const json_t *figures,
                       bool has_picture)
{
    const struct study_table table = table_of(figures);
    const char *machine = load_text(figures, "machine");
    char *says = sentences_of(figures);
    double seconds = 0;

    fputs(report_page_mark, page);
    write_value(page, plan->study, "# ", "title");
    write_value(page, plan->study, "\n", "question");
    fprintf(page, "\n    iobench study %s --budget %.0f%s\n\n", plan->study->name,
            plan->options->budget_s, plan->options->data ? " --data SET" : "");
    if (has_picture)
        fputs("![the figures of the table, or what they come from](picture.svg)\n\n", page);
    write_table(page, &table);
    fputc('\n', page);
    write_doubts(page, plan, "", "\n");
    fprintf(page, "**Here.** %s\n", says ? says : "");
    write_value(page, plan->study, "\n**Published.** ", "found");
    write_value(page, plan->study, "\nSource: ", "source");
    for (size_t i = 0; i < plan->run_count; i++)
        seconds += plan->runs[i].seconds;
    if (machine)
        fprintf(page, "\nMeasured on %s, in %.0f s.\n", machine, seconds);
    write_commands(page, plan);
    free(says);
}

int study_page(const struct study_plan *plan, const json_t *figures, bool has_picture)
{
    struct text_stream stream;
    char *text = NULL, *path = file_join(plan->options->folder, "page.md");
    size_t bytes = 0;

    if (text_stream_open(&stream)) {
        free(path);
        return -ENOMEM;
    }
    write_page(stream.stream, plan, figures, has_picture);
    int code = text_stream_take(&stream, &text, &bytes);
    if (code == 0)
        code = path ? report_write_file(path, text, bytes) : -ENOMEM;
    free(text);
    free(path);
    return code;
}
