/* SPDX-License-Identifier: Apache-2.0
 *
 * idx: the small text files that other tools keep beside a shard: a line a record, with two
 * columns. It knows nothing of what they mean.
 */
#ifndef IOBENCH_FORMATS_IDX_H
#define IOBENCH_FORMATS_IDX_H

#include <stdint.h>

struct idx_row {
    uint64_t first; /* 0 when it is not a number: RecordIO's keys may be text */
    uint64_t second;
};

/* The rows of the file. Returns their count, at most limit; 0 when there is no such file or it is
 * not one of two columns parted by separator. free() *rows in either case. */
uint64_t idx_read(const char *path, char separator, uint64_t limit, struct idx_row **rows);

/* The index beside path: with its extension (one of those listed) replaced by ".idx" when it has
 * one, else with ".idx" behind. free() it. */
char *idx_path(const char *path, const char *const *extensions);

#endif
