/* SPDX-License-Identifier: Apache-2.0
 * What a study says: its table and sentences, as text and as a page. */
#include "cmd/study/study.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/terminal.h"
#include "base/text_stream.h"
#include "report/load.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELL_BYTES = 128, GAP = 2, INDENT = 2 };

/* A column's heading has two lines if its name has a unit: "epoch 1, samples/s". */
struct study_column {
    const char *name, *unit; /* unit: part of name */
    int name_width, width;
};

struct study_table {
    struct study_column *columns;
    size_t count;
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
        snprintf(text, CELL_BYTES, "%s",
                 json_is_string(value) ? escape_shown(json_string_value(value)) : "-");
    return text;
}

static int wider(int width, size_t bytes)
{
    return (int)bytes > width ? (int)bytes : width;
}

/* Add a column, in the order of their first appearance. */
static void add_column(struct study_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->columns[i].name, name) == 0)
            return;
    if (memory_room(&table->columns, table->count, sizeof *table->columns, "columns"))
        return;
    const char *comma = strstr(name, ", ");
    struct study_column column = {.name = name, .unit = comma ? comma + 2 : ""};
    column.name_width = (int)(comma ? (size_t)(comma - name) : strlen(name));
    column.width = wider(column.name_width, strlen(column.unit));
    table->columns[table->count++] = column;
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
        struct study_column *column = &table.columns[k];
        json_array_foreach(table.rows, i, row) column->width =
            wider(column->width, strlen(cell_text(json_object_get(row, column->name), text)));
    }
    return table;
}

/* The first column names the row, and is repeated in each block. */
struct column_block {
    const struct study_table *table;
    size_t from, to; /* of the other columns */
};

static void print_cells(FILE *stream, const struct column_block *block, const json_t *row,
                        bool is_unit)
{
    char text[CELL_BYTES];

    for (size_t k = 0; k < block->to; k = k ? k + 1 : block->from) {
        const struct study_column *column = &block->table->columns[k];
        if (row)
            cell_text(json_object_get(row, column->name), text);
        else
            snprintf(text, sizeof text, "%.*s", is_unit ? CELL_BYTES : column->name_width,
                     is_unit ? escape_shown(column->unit) : escape_shown(column->name));
        fprintf(stream, k ? "%*s%*s" : "%*s%-*s", k ? GAP : INDENT, "", column->width, text);
    }
    fputc('\n', stream);
}

/* A bar would end the cell. */
static void write_cell(FILE *page, const char *text)
{
    fputs("| ", page);
    for (; *text; text++)
        fprintf(page, *text == '|' ? "\\%c" : "%c", *text);
    fputc(' ', page);
}

static void write_table(FILE *page, const struct study_table *table)
{
    const json_t *row;
    char text[CELL_BYTES];
    size_t i;

    for (size_t k = 0; k < table->count; k++)
        write_cell(page, escape_shown(table->columns[k].name));
    fputs("|\n", page);
    for (size_t k = 0; k < table->count; k++)
        fputs(k ? "|---:" : "|---", page);
    fputs("|\n", page);
    json_array_foreach(table->rows, i, row)
    {
        for (size_t k = 0; k < table->count; k++)
            write_cell(page, cell_text(json_object_get(row, table->columns[k].name), text));
        fputs("|\n", page);
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
    words_print(stream, "", INDENT, value ? value : "-");
    free(value);
}

/* Return a run's reason with its name or the number of runs that share it, to be freed. NULL if it
 * has none, or an earlier run has the same. */
static char *doubt_of(const struct study_plan *plan, size_t run)
{
    const char *reason = plan->runs[run].reason;
    size_t count = 0;

    for (size_t k = 0; reason && k < plan->run_count; k++)
        if (plan->runs[k].reason && strcmp(plan->runs[k].reason, reason) == 0) {
            if (k < run)
                return NULL;
            count++;
        }
    return !reason     ? NULL
           : count > 1 ? file_format_path("%zu runs: %s", count, escape_shown(reason))
                       : file_format_path("%s: %s", plan->runs[run].name, escape_shown(reason));
}

void study_text(FILE *stream, const struct study_plan *plan, const json_t *figures)
{
    const struct study_table table = table_of(figures);
    char *title = study_value(plan->study, "study", "title"), *says = sentences_of(figures);

    char *heading = file_format_path("iobench study %s: %s", plan->study->name, title ? title : "");

    words_print(stream, "", 0, heading ? heading : "");
    fputc('\n', stream);
    /* Columns that do not fit follow in blocks of their own, of at least one column. */
    const int width = (int)terminal_width(STDOUT_FILENO);
    struct column_block block = {.table = &table, .to = 1};
    while (table.count && (block.to < table.count || block.from == 0)) {
        int used = INDENT + table.columns[0].width;
        bool has_units = false;
        const json_t *row;
        size_t i;
        if (block.from)
            fputc('\n', stream);
        block.from = block.to;
        while (block.to < table.count && (used += GAP + table.columns[block.to].width) <= width)
            has_units |= *table.columns[block.to++].unit != '\0';
        if (block.to == block.from && block.to < table.count)
            has_units = *table.columns[block.to++].unit;
        print_cells(stream, &block, NULL, false);
        if (has_units)
            print_cells(stream, &block, NULL, true);
        json_array_foreach(table.rows, i, row) print_cells(stream, &block, row, false);
    }
    for (size_t i = 0; i < plan->run_count; i++) {
        char *doubt = doubt_of(plan, i);
        if (doubt)
            words_print(stream, "", INDENT, doubt);
        free(doubt);
    }
    fputs("\nHere\n", stream);
    words_print(stream, "", INDENT, says ? says : "");
    print_value(stream, plan->study, "Published", "found");
    print_value(stream, plan->study, NULL, "source");
    free(table.columns);
    free(heading);
    free(says);
    free(title);
}

/* ---- the page ---- */

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

int study_page(const struct study_plan *plan, const json_t *figures, bool has_picture)
{
    struct text_stream stream;
    char *text = NULL, *path = file_join(plan->options->folder, "page.md");
    size_t bytes = 0;

    if (text_stream_open(&stream)) {
        free(path);
        return -ENOMEM;
    }
    FILE *page = stream.stream;
    const struct study_table table = table_of(figures);
    const char *machine = load_text(figures, "machine");
    char *says = sentences_of(figures), nodes[STUDY_NODES_BYTES];
    double seconds = 0;
    fputs(report_page_mark, page);
    write_value(page, plan->study, "# ", "title");
    write_value(page, plan->study, "\n", "question");
    const char *emulated = study_nodes_text(plan->options, nodes);
    fprintf(page, "\n    iobench study %s --budget %.0f%s%s%s\n\n", plan->study->name,
            plan->options->budget_s, emulated ? " " : "", emulated ? emulated : "",
            plan->options->data ? " --data SET" : "");
    if (has_picture)
        fputs("![the figures of the table, or what they come from](picture.svg)\n\n", page);
    write_table(page, &table);
    fputc('\n', page);
    for (size_t i = 0; i < plan->run_count; i++) {
        char *doubt = doubt_of(plan, i);
        if (doubt)
            fprintf(page, "%s\n\n", doubt);
        free(doubt);
    }
    fprintf(page, "**Here.** %s\n", says ? says : "");
    write_value(page, plan->study, "\n**Published.** ", "found");
    write_value(page, plan->study, "\nSource: ", "source");
    for (size_t i = 0; i < plan->run_count; i++)
        seconds += plan->runs[i].seconds;
    if (machine)
        fprintf(page, "\nMeasured on %s, in %.0f s.\n", machine, seconds);
    fputs("\n## Commands\n\n", page);
    for (size_t i = 0; i < plan->set_count; i++)
        fprintf(page, "    iobench %s\n", plan->sets[i].command.shown);
    for (size_t i = 0; i < plan->run_count; i++)
        fprintf(page, "    %s%siobench %s\n", plan->runs[i].launch ? plan->runs[i].launch : "",
                plan->runs[i].launch ? " " : "", plan->runs[i].command.shown);
    free(table.columns);
    free(says);
    int code = text_stream_take(&stream, &text, &bytes);
    if (code == 0)
        code = path ? report_write_file(path, text, bytes) : -ENOMEM;
    free(text);
    free(path);
    return code;
}
