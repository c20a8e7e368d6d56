/* SPDX-License-Identifier: Apache-2.0
 *
 * index_file: text files that other tools keep beside a shard: one line per record, two columns.
 * Knows nothing of their meaning.
 */
#ifndef IOBENCH_FORMATS_INDEX_FILE_H
#define IOBENCH_FORMATS_INDEX_FILE_H

#include <stdint.h>

struct scanner;

struct index_file_row {
    uint64_t first; /* 0 if not a number: RecordIO's keys may be text */
    uint64_t second;
};

/* Read the rows of the file. Returns their count, at most limit; 0 if there is no such file or it
 * does not have two columns separated by separator. free() *rows in either case. */
uint64_t index_file_read(const char *path, char separator, uint64_t limit,
                         struct index_file_row **rows);

/* An index may list up to this many more rows than its shard has room for: the shard may be
 * truncated. */
enum { INDEX_FILE_ROWS_MORE = 1 << 24 };

/* Report a shard that was truncated between two records. Such a shard looks complete, but a record
 * of its index begins where the shard ends. start_of: return where the record of a row begins.
 * path_of: return the path of a shard's index. If the next shard has no index, this one may cover
 * both and proves nothing. Returns 0 or the scan's error. */
int index_file_check_cut(struct scanner *scanner, const struct index_file_row *rows, uint64_t count,
                         uint64_t (*start_of)(const struct index_file_row *row),
                         char *(*path_of)(const char *shard));

/* Return the path of the index beside path: with its extension (one of those listed) replaced by
 * ".idx" if it has one, else with ".idx" appended. free() it. */
char *index_file_path(const char *path, const char *const *extensions);

#endif
