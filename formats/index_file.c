/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/index_file.h"

#include "base/file.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 256,
    BUFFER_BYTES = 256 * 1024,
    ROWS_MORE = 1 << 24, /* than the shard has room for: it may be truncated */
    PROBES = 64,
};

struct index_row {
    uint64_t offset, bytes;
};

struct lines {
    struct store_file *file;
    uint64_t offset; /* file offset of the end of the buffer */
    size_t start, end;
    char buffer[BUFFER_BYTES + 1];
};

/* Return the next line without its newline. NULL past the last line, or if a line is too long or
 * cannot be read: then part of the file was not consumed. */
static char *next_line(struct lines *lines)
{
    char *line = lines->buffer + lines->start;
    char *newline = memchr(line, '\n', lines->end - lines->start);

    if (!newline) {
        lines->end -= lines->start;
        memmove(lines->buffer, line, lines->end);
        line = lines->buffer;
        lines->start = 0;
        ssize_t got =
            store_read_at(lines->file, line + lines->end, BUFFER_BYTES - lines->end, lines->offset);
        if (got < 0)
            return NULL;
        lines->offset += (uint64_t)got;
        lines->end += (size_t)got;
        newline = memchr(line, '\n', lines->end);
        if (!newline && lines->end > 0 && lines->offset == lines->file->status.bytes)
            newline = line + lines->end; /* the last line has no newline */
    }
    if (!newline || newline - line > LINE_BYTES)
        return NULL;
    *newline = '\0';
    lines->start = (size_t)(newline - lines->buffer) + 1;
    if (lines->start > lines->end)
        lines->start = lines->end;
    return line;
}

/* Read the rows of the file. Returns their count, at most limit; 0 if there is no such file or it
 * does not have two columns. free() *rows in either case. */
static uint64_t read_rows(const char *path, const struct index_file_rules *rules, uint64_t limit,
                          struct index_row **rows)
{
    struct lines *lines = memory_zeroed(sizeof *lines);
    uint64_t count = 0;
    bool right = lines && store_open(path, STORE_READ, &lines->file) == 0;

    for (char *line; right && (line = next_line(lines));) {
        const char *second = strchr(line, rules->separator);
        char *end;
        right = second && isdigit((unsigned char)second[1]) && count < limit &&
                memory_room(rows, count, sizeof **rows, "rows") == 0;
        if (!right)
            break;
        const uint64_t number = strtoull(second + 1, &end, 10);
        (*rows)[count++] = rules->has_keys ? (struct index_row){.offset = number}
                                           : (struct index_row){strtoull(line, NULL, 10), number};
        right = end[strspn(end, "\r")] == '\0';
    }
    right = right && lines->start == lines->end && lines->offset == lines->file->status.bytes;
    if (lines)
        store_close(lines->file, false);
    free(lines);
    return right ? count : 0;
}

char *index_file_path(const char *path, const struct index_file_rules *rules)
{
    size_t length = strlen(path);

    for (const char *const *extension = rules->extensions; *extension; extension++) {
        if (shard_list_ends(path, *extension)) {
            length -= strlen(*extension);
            break;
        }
    }
    return file_format_path("%.*s.idx", (int)length, path);
}

static int compare_rows(const void *a, const void *b)
{
    const struct index_row *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool is_plausible(struct scanner *scanner, const struct index_file_rules *rules,
                         const struct index_row *rows, uint64_t count)
{
    const uint64_t probes = count < PROBES ? count : PROBES;
    uint64_t end = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (rows[i].offset != end || rows[i].bytes < rules->record_bytes ||
            rows[i].bytes > scanner->file_bytes - end)
            return false;
        end += rows[i].bytes;
    }
    if (count == 0 || end != scanner->file_bytes)
        return false;
    for (uint64_t probe = 0; probe < probes; probe++) {
        const struct index_row *row = &rows[probes > 1 ? probe * (count - 1) / (probes - 1) : 0];
        const char *what;
        uint64_t record_end;
        if (rules->measure(scanner, row->offset, &record_end, &what) ||
            record_end != row->offset + row->bytes)
            return false;
    }
    return true;
}

int index_file_add(struct scanner *scanner, const struct index_file_rules *rules,
                   struct catalog *catalog)
{
    char *path = index_file_path(scanner->path, rules);
    const uint64_t limit = scanner->file_bytes / rules->record_bytes + ROWS_MORE;
    struct index_row *rows = NULL;
    const uint64_t count = path ? read_rows(path, rules, limit, &rows) : 0;

    /* MXNet's readers sort them too, since shuffled files are common. */
    bool is_sorted = true;
    for (uint64_t i = 1; i < count; i++)
        is_sorted &= rows[i].offset >= rows[i - 1].offset;
    if (rules->has_keys && !is_sorted)
        qsort(rows, count, sizeof *rows, compare_rows);
    for (uint64_t i = 0; rules->has_keys && i < count; i++) {
        const uint64_t end = i + 1 < count ? rows[i + 1].offset : scanner->file_bytes;
        rows[i].bytes = end > rows[i].offset ? end - rows[i].offset : 0;
    }
    /* A shard that was truncated between two records: a record of its index begins where the shard
     * ends. If the next shard has no index, this one may cover both and proves nothing. */
    uint64_t beyond = 0;
    bool at_end = false;
    for (uint64_t i = 0; i < count; i++) {
        beyond += rows[i].offset >= scanner->file_bytes;
        at_end |= rows[i].offset == scanner->file_bytes;
    }
    char *next = at_end && scanner->next ? index_file_path(scanner->next, rules) : NULL;
    char what[96];
    int code = 0;
    if (at_end && (!scanner->next || (next && store_exists(next)))) {
        snprintf(what, sizeof what,
                 "the file ends here, its .idx lists %llu more record%s: truncated",
                 (unsigned long long)beyond, beyond == 1 ? "" : "s");
        code = scanner_fault(scanner, EBADMSG, scanner->file_bytes, what);
    }
    free(next);
    const bool use =
        code == 0 && !scanner->scan->fault && is_plausible(scanner, rules, rows, count);
    for (uint64_t i = 0; use && code == 0 && i < count; i++)
        code = catalog_add(catalog, rows[i].offset, rows[i].bytes);
    free(rows);
    free(path);
    return code ? code : use;
}
