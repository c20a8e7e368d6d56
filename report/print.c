/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats JSON for people and programs: one line per object member, arrays of plain values on one
 * line, so a table of numbers has one line per row.
 */
#include "report/report.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/text_stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { INDENT = 2, ROW_DIGITS = 6 };

struct printer {
    FILE *stream;
    size_t flags; /* flags for single values */
    bool failed;
};

static void print_value(struct printer *printer, const json_t *value, int depth);

static bool is_plain(const json_t *array)
{
    size_t i;
    json_t *value;

    json_array_foreach(array, i,
                       value) if (json_is_object(value) || json_is_array(value)) return false;
    return true;
}

static void print_text(struct printer *printer, char *text)
{
    if (text)
        fputs(text, printer->stream);
    else
        printer->failed = true;
    free(text);
}

static void print_scalar(struct printer *printer, const json_t *value, bool in_row)
{
    if (in_row && json_is_real(value))
        fprintf(printer->stream, "%.*g", ROW_DIGITS, json_real_value(value));
    else
        print_text(printer, json_to_text(value, printer->flags));
}

static void begin_line(struct printer *printer, int depth)
{
    fprintf(printer->stream, "\n%*s", depth * INDENT, "");
}

static void print_array(struct printer *printer, const json_t *array, int depth)
{
    const bool plain = is_plain(array);
    size_t i;
    json_t *value;

    fputc('[', printer->stream);
    json_array_foreach(array, i, value)
    {
        if (i)
            fputs(plain ? ", " : ",", printer->stream);
        if (plain) {
            print_scalar(printer, value, true);
            continue;
        }
        begin_line(printer, depth + 1);
        print_value(printer, value, depth + 1);
    }
    if (!plain)
        begin_line(printer, depth);
    fputc(']', printer->stream);
}

static void print_object(struct printer *printer, const json_t *object, int depth)
{
    const char *key;
    json_t *value;
    bool first = true;

    fputc('{', printer->stream);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        fputs(first ? "" : ",", printer->stream);
        first = false;
        begin_line(printer, depth + 1);
        fprintf(printer->stream, "\"%s\": ", key); /* our own keys need no escaping */
        print_value(printer, value, depth + 1);
    }
    if (!first)
        begin_line(printer, depth);
    fputc('}', printer->stream);
}

static void print_value(struct printer *printer, const json_t *value, int depth)
{
    if (json_is_object(value))
        print_object(printer, value, depth);
    else if (json_is_array(value))
        print_array(printer, value, depth);
    else
        print_scalar(printer, value, false);
}

char *report_json_text(const json_t *value, int digits)
{
    struct text_stream stream;
    char *text = NULL;
    size_t bytes;

    if (text_stream_open(&stream) == 0) {
        struct printer printer = {.stream = stream.stream,
                                  .flags = JSON_REAL_PRECISION((size_t)digits)};
        print_value(&printer, value, 0);
        if (json_check() == 0 && !printer.failed && text_stream_take(&stream, &text, &bytes) == 0)
            return text;
        text_stream_close(&stream);
    }
    fail(ENOMEM, "out of memory for JSON");
    return NULL;
}
