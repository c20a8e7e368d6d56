/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats JSON for people and programs, and writes files. One line per object member, arrays of
 * plain values on one line, so a table of numbers has one line per row.
 */
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text_stream.h"
#include "report/report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { INDENT = 2, ROW_DIGITS = 6 };

struct printer {
    FILE *stream;
    size_t flags; /* flags for single values */
    bool failed;
};

/* in_row: among the plain values of a line. */
static void print_value(struct printer *printer, const json_t *value, int depth, bool in_row)
{
    FILE *stream = printer->stream;
    const char *key, *comma = "";
    json_t *member;
    size_t i;

    if (json_is_object(value)) {
        fputc('{', stream);
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            /* our own keys need no escaping */
            fprintf(stream, "%s\n%*s\"%s\": ", comma, (depth + 1) * INDENT, "", key);
            print_value(printer, member, depth + 1, false);
            comma = ",";
        }
        if (*comma)
            fprintf(stream, "\n%*s", depth * INDENT, "");
        fputc('}', stream);
    } else if (json_is_array(value)) {
        bool is_plain = true;
        json_array_foreach(value, i, member)
        {
            is_plain = is_plain && !json_is_object(member) && !json_is_array(member);
        }
        fputc('[', stream);
        json_array_foreach(value, i, member)
        {
            fputs(comma, stream);
            if (!is_plain)
                fprintf(stream, "\n%*s", (depth + 1) * INDENT, "");
            print_value(printer, member, depth + 1, is_plain);
            comma = is_plain ? ", " : ",";
        }
        if (!is_plain)
            fprintf(stream, "\n%*s", depth * INDENT, "");
        fputc(']', stream);
    } else if (in_row && json_is_real(value)) {
        fprintf(stream, "%.*g", ROW_DIGITS, json_real_value(value));
    } else {
        char *text = json_to_text(value, printer->flags);
        if (text)
            fputs(text, stream);
        else
            printer->failed = true;
        free(text);
    }
}

char *report_json_text(const json_t *value, int digits)
{
    struct text_stream stream;
    char *text = NULL;
    size_t bytes;

    if (text_stream_open(&stream) == 0) {
        struct printer printer = {.stream = stream.stream,
                                  .flags = JSON_REAL_PRECISION((size_t)digits)};
        print_value(&printer, value, 0, false);
        if (json_check() == 0 && !printer.failed && text_stream_take(&stream, &text, &bytes) == 0)
            return text;
        text_stream_close(&stream);
    }
    fail(ENOMEM, "out of memory for JSON");
    return NULL;
}

const char report_acceptance_mark[] = "# Made by iobench size: acceptance\n";
const char report_page_mark[] = "<!-- iobench study -->\n";

static int write_through(const char *path, const char *text, size_t bytes)
{
    int fd = file_open_stream(path), code = 0;

    if (fd < 0)
        return fd;
    while (bytes && code == 0) {
        ssize_t count = write(fd, text, bytes);
        if (count < 0 && errno != EINTR)
            code = fail(errno, "%s: cannot write: %s", path, fail_errno_text(errno));
        text += count > 0 ? count : 0;
        bytes -= count > 0 ? (size_t)count : 0;
    }
    close(fd);
    return code;
}

int report_write_file(const char *path, const char *text, size_t bytes)
{
    const struct picture_mark mark = replaced_mark(text, bytes);
    const size_t before = bytes - mark.tail;
    struct file_draft draft;

    if (file_is_stream(path))
        return write_through(path, text, bytes);
    int code = file_draft_remove_stale(path, NULL);
    if (code == -EACCES) /* a folder that cannot be listed can be written to */
        code = 0;
    if (code)
        return code;
    fail_clear();
    code = file_draft_open(&draft, path, NULL);
    if (code == 0)
        code = replaced_check(path, text, bytes);
    if (code == 0)
        code = file_write_at(draft.fd, text, before, 0, path);
    if (code == 0)
        code = file_write_at(draft.fd, mark.bytes, mark.length, before, path);
    if (code == 0)
        code = file_write_at(draft.fd, text + before, mark.tail, before + mark.length, path);
    if (code == 0)
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    return code;
}
