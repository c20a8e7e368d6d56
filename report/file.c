/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stream.h"
#include "report/picture_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Kinds of files that iobench writes, recognised by their first bytes. */
enum shape {
    SHAPE_EMPTY,
    SHAPE_JSON,
    SHAPE_SVG,
    SHAPE_PNG,
    SHAPE_PDF,
    SHAPE_REPORT,
    SHAPE_PAGE,
    SHAPE_CSV,
    SHAPE_SCRIPT,
    SHAPE_PROFILE,
    SHAPE_ACCEPTANCE,
    SHAPE_OTHER
};

static const char *const shape_names[] = {
    [SHAPE_EMPTY] = "nothing",
    [SHAPE_JSON] = "JSON",
    [SHAPE_SVG] = "a chart (SVG)",
    [SHAPE_PNG] = "a chart (PNG)",
    [SHAPE_PDF] = "a chart (PDF)",
    [SHAPE_REPORT] = "a report (HTML)",
    [SHAPE_CSV] = "a table (CSV)",
    [SHAPE_SCRIPT] = "a gnuplot script",
    [SHAPE_PAGE] = "a page of a study",
    [SHAPE_PROFILE] = "a profile",
    [SHAPE_ACCEPTANCE] = "an acceptance test",
};

const char report_acceptance_mark[] = "# Made by iobench size: acceptance\n";
const char report_script_mark[] = "# Made by iobench plot\n";
const char report_page_mark[] = "<!-- iobench study -->\n";

enum { SHAPE_BYTES = 8192 }; /* first bytes to examine: a path and a key are within them */

/* A CSV heading: names and commas, no spaces. */
static bool is_csv(const char *text, size_t bytes)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_.:/-[]()\"";
    bool comma = false;

    for (size_t i = 0; i < bytes && text[i] != '\n'; i++) {
        if (text[i] == ',')
            comma = true;
        else if (!text[i] || !strchr(name, text[i]))
            return false;
    }
    return comma;
}

static bool begins(const char *text, size_t bytes, const char *with)
{
    return bytes >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static enum shape shape_of(const char *text, size_t bytes)
{
    const size_t seen = bytes < SHAPE_BYTES ? bytes : SHAPE_BYTES;
    size_t at = 0;

    if (bytes == 0)
        return SHAPE_EMPTY;
    if (begins(text, seen, "\x89PNG"))
        return SHAPE_PNG;
    if (begins(text, seen, "%PDF-"))
        return SHAPE_PDF;
    for (size_t i = 0; i < seen; i++)
        if ((unsigned char)text[i] < ' ' && !strchr("\n\r\t", text[i]))
            return SHAPE_OTHER;
    if (begins(text, seen, report_page_mark))
        return SHAPE_PAGE;
    if (begins(text, seen, report_profile_mark))
        return SHAPE_PROFILE;
    if (begins(text, seen, report_acceptance_mark))
        return SHAPE_ACCEPTANCE;
    if (begins(text, seen, REPORT_PAGE_BEGIN))
        return SHAPE_REPORT;
    if (begins(text, seen, "<svg") || begins(text, seen, "<?xml"))
        return SHAPE_SVG;
    if (text[0] == '{')
        return SHAPE_JSON;
    if (text[0] == '[') { /* "[run]" begins a job file */
        for (at = 1; at < seen && strchr(" \n\r\t", text[at]); at++)
            ;
        return at < seen && strchr("{]\"", text[at]) ? SHAPE_JSON : SHAPE_OTHER;
    }
    if (begins(text, seen, report_script_mark))
        return SHAPE_SCRIPT;
    return is_csv(text, seen) ? SHAPE_CSV : SHAPE_OTHER;
}

/* Return how many bytes the first two columns of a CSV heading take. */
static size_t first_columns(const char *text, size_t bytes)
{
    size_t end = 0, columns = 0;

    for (; end < bytes && text[end] != '\n' && text[end] != '\r'; end++)
        if (text[end] == ',' && ++columns == 2)
            break;
    return end;
}

/* A text of JSON, without its quotes. */
struct json_piece {
    const char *text;
    size_t length;
    bool is_key;
};

/* Take the next whole text of JSON from *at on. Returns false if there is none. */
static bool next_piece(const char *text, size_t bytes, size_t *at, struct json_piece *piece)
{
    size_t end;

    while (*at < bytes && text[*at] != '"')
        ++*at;
    for (end = *at + 1; end < bytes && text[end] != '"'; end++)
        end += text[end] == '\\';
    if (end >= bytes)
        return false;
    *piece = (struct json_piece){.text = text + *at + 1, .length = end - *at - 1};
    for (end++; end < bytes && strchr(" \n\r\t", text[end]); end++)
        ;
    piece->is_key = end < bytes && text[end] == ':';
    *at = end;
    return true;
}

/* What kind of document it is: the value of its first key if that is "schema", else its second key.
 * A text that ends earlier leaves that open. */
struct json_kind {
    struct json_piece first, second;
};

static bool is_piece(struct json_piece piece, const char *text)
{
    return piece.length == strlen(text) && memcmp(piece.text, text, piece.length) == 0;
}

static struct json_kind kind_of(const char *text, size_t bytes)
{
    struct json_kind kind = {.first = {.text = ""}, .second = {.text = ""}};
    size_t at = 0;

    if (!next_piece(text, bytes, &at, &kind.first))
        return kind;
    const bool has_schema = is_piece(kind.first, "schema");
    while (next_piece(text, bytes, &at, &kind.second) && !has_schema && !kind.second.is_key)
        ;
    return kind;
}

static bool is_same_piece(struct json_piece one, struct json_piece other)
{
    return one.length == other.length && memcmp(one.text, other.text, one.length) == 0;
}

/* A document that names its schema replaces any of this program's: other keys are by chance. */
static bool is_same_json(const char *one, size_t one_bytes, const char *other, size_t other_bytes)
{
    static const char ours[] = "iobench-";
    const struct json_kind kind = kind_of(one, one_bytes), old = kind_of(other, other_bytes);

    if (one[0] != other[0] || !is_same_piece(kind.first, old.first))
        return false;
    if (is_piece(kind.first, "schema"))
        return begins(old.second.text, old.second.length, ours);
    return kind.second.length == 0 || is_same_piece(kind.second, old.second);
}

static bool is_same_kind(enum shape shape, const char *one, size_t one_bytes, const char *other,
                         size_t other_bytes)
{
    if (shape == SHAPE_JSON)
        return is_same_json(one, one_bytes, other, other_bytes);
    const size_t length = first_columns(one, one_bytes);
    return shape != SHAPE_CSV ||
           (first_columns(other, other_bytes) == length && memcmp(one, other, length) == 0);
}

static bool is_picture(enum shape shape)
{
    return shape == SHAPE_SVG || shape == SHAPE_PNG || shape == SHAPE_PDF;
}

/* Return 1 if the file's end has the mark of our pictures, else 0, or a negative errno. */
static int is_our_picture(int fd, const struct stat *status, const char *path)
{
    char end[PICTURE_MARK_REACH];
    const uint64_t bytes = (uint64_t)status->st_size;
    const ssize_t count =
        file_read_at(fd, end, sizeof end, bytes > sizeof end ? bytes - sizeof end : 0, path);

    return count < 0 ? (int)count : picture_mark_is_in(end, (size_t)count);
}

int report_check_replaced(const char *path, const char *text, size_t bytes)
{
    const enum shape shape = shape_of(text, bytes);
    char there[SHAPE_BYTES];
    struct stat status;
    int is_ours = 1;

    if (!file_exists(path))
        return 0;
    int fd = file_open(path, O_RDONLY, &status);
    if (fd < 0)
        return fd;
    ssize_t count = file_read_at(fd, there, sizeof there, 0, path);
    if (count >= 0 && is_picture(shape))
        is_ours = is_our_picture(fd, &status, path);
    close(fd);
    if (count < 0 || is_ours < 0)
        return count < 0 ? (int)count : is_ours;
    const enum shape old = shape_of(there, (size_t)count);
    if (old == SHAPE_EMPTY)
        return 0;
    if (old == shape && is_ours && is_same_kind(shape, text, bytes, there, (size_t)count))
        return 0;
    return fail(EEXIST,
                "%s: file exists and is not %s of the same kind, so not an older result: not "
                "replaced; choose another file or remove this one",
                path, shape_names[shape]);
}

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
    const struct picture_mark mark = picture_mark_for(text, bytes);
    const size_t before = bytes - mark.tail;
    struct file_draft draft;

    if (file_is_stream(path))
        return write_through(path, text, bytes);
    file_draft_remove_stale(path, NULL);
    fail_clear();
    int code = file_draft_open(&draft, path, NULL);
    if (code == 0)
        code = report_check_replaced(path, text, bytes);
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
