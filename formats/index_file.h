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

/* The rows of the file. Returns their count, at most limit; 0 when there is no such file or it is
 * not one of two columns parted by separator. free() *rows in either case. */
uint64_t index_file_read(const char *path, char separator, uint64_t limit,
                         struct index_file_row **rows);

/* An index may list this many more rows than its shard has room for: the shard may have been cut.
 */
enum { INDEX_FILE_ROWS_MORE = 1 << 24 };

/* Tell the scan when the shard was cut between two records. Such a shard looks whole, but a record
 * of its index begins where it ends. start_of: where the record of a row begins. path_of: the path
 * of a shard's index. When the next shard has no index, this one may be of both, and proves
 * nothing. Returns 0 or the scan's error. */
int index_file_check_cut(struct scanner *scanner, const struct index_file_row *rows, uint64_t count,
                         uint64_t (*start_of)(const struct index_file_row *row),
                         char *(*path_of)(const char *shard));

/* The index beside path: with its extension (one of those listed) replaced by ".idx" when it has
 * one, else with ".idx" behind. free() it. */
char *index_file_path(const char *path, const char *const *extensions);

#endif
