/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/index_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "dataset/store.h"
#include "formats/scan.h"
#include "formats/shard_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256, BUFFER_BYTES = 256 * 1024 };

static bool parse_line(const char *line, char separator, struct index_file_row *row)
{
    const char *second = strchr(line, separator);
    char *end;

    if (!second || !isdigit((unsigned char)second[1]))
        return false;
    row->first = strtoull(line, NULL, 10);
    row->second = strtoull(second + 1, &end, 10);
    return end[strspn(end, "\r")] == '\0';
}

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

uint64_t index_file_read(const char *path, char separator, uint64_t limit,
                         struct index_file_row **rows)
{
    struct lines *lines = memory_zeroed(sizeof *lines);
    uint64_t count = 0;
    bool right = lines && store_open(path, STORE_READ, &lines->file) == 0;

    *rows = NULL;
    for (char *line; right && (line = next_line(lines));) {
        right = count < limit && memory_room(rows, count, sizeof **rows, "rows") == 0 &&
                parse_line(line, separator, &(*rows)[count++]);
    }
    right = right && lines->start == lines->end && lines->offset == lines->file->status.bytes;
    if (lines)
        store_close(lines->file, false);
    free(lines);
    return right ? count : 0;
}

char *index_file_path(const char *path, const char *const *extensions)
{
    size_t length = strlen(path);

    for (; *extensions; extensions++) {
        if (shard_list_ends(path, *extensions)) {
            length -= strlen(*extensions);
            break;
        }
    }
    return file_format_path("%.*s.idx", (int)length, path);
}

static bool has_index(const char *shard, char *(*path_of)(const char *shard))
{
    char *path = path_of(shard);
    bool has = path && store_exists(path);

    free(path);
    return has;
}

int index_file_check_cut(struct scanner *scanner, const struct index_file_row *rows, uint64_t count,
                         uint64_t (*start_of)(const struct index_file_row *row),
                         char *(*path_of)(const char *shard))
{
    const uint64_t end = scanner->file_bytes;
    uint64_t beyond = 0;
    bool at_end = false;
    char what[96];

    for (uint64_t i = 0; i < count; i++) {
        beyond += start_of(&rows[i]) >= end;
        at_end |= start_of(&rows[i]) == end;
    }
    if (!at_end || (scanner->next && !has_index(scanner->next, path_of)))
        return 0;
    snprintf(what, sizeof what, "the file ends here, its .idx lists %llu more record%s: truncated",
             (unsigned long long)beyond, beyond == 1 ? "" : "s");
    return scanner_fault(scanner, EBADMSG, end, what);
}
