/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/idx.h"

#include "base/file.h"
#include "formats/shard_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256 };

static bool parse_line(const char *line, char separator, struct idx_row *row)
{
    const char *second = strchr(line, separator);
    char *end;

    if (!second || !isdigit((unsigned char)second[1]))
        return false;
    row->first = strtoull(line, NULL, 10);
    row->second = strtoull(second + 1, &end, 10);
    return end[strspn(end, "\r\n")] == '\0';
}

uint64_t idx_read(const char *path, char separator, uint64_t limit, struct idx_row **rows)
{
    char line[LINE_BYTES];
    uint64_t count = 0, capacity = 0;
    FILE *idx = fopen(path, "re");
    bool right = idx != NULL;

    *rows = NULL;
    while (right && fgets(line, sizeof line, idx)) {
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            struct idx_row *moved = reallocarray(*rows, capacity, sizeof *moved);
            right = moved != NULL;
            *rows = moved ? moved : *rows;
        }
        right = right && count < limit && parse_line(line, separator, &(*rows)[count++]);
    }
    right = right && !ferror(idx);
    if (idx)
        fclose(idx);
    return right ? count : 0;
}

char *idx_path(const char *path, const char *const *extensions)
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
