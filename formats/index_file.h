/* SPDX-License-Identifier: Apache-2.0
 *
 * index_file: text files that other tools keep beside a shard, SHARD.idx: one line per record, two
 * columns. An index may belong to another file, or to a part of this one, so it is used only if its
 * records cover the shard without a gap and those probed across it exist.
 */
#ifndef IOBENCH_FORMATS_INDEX_FILE_H
#define IOBENCH_FORMATS_INDEX_FILE_H

#include "formats/scan.h"

struct index_file_rules {
    const char *const *extensions; /* of shards, which ".idx" replaces; NULL ends them */
    char separator;
    bool has_keys;         /* the columns are key and offset; else offset and bytes */
    uint32_t record_bytes; /* at least */
    /* As of struct scan_steps. */
    int (*measure)(struct scanner *scanner, uint64_t offset, uint64_t *end, const char **what);
};

/* Add the records of a shard as its index lists them. Returns 1, 0 if there is no usable index, or
 * an error; also the scan's one if the index shows that the shard was truncated between two
 * records, which looks complete. Where faults are wanted the index is not used: verifying checks
 * every header. */
int index_file_add(struct scanner *scanner, const struct index_file_rules *rules,
                   struct catalog *catalog);

/* Return the path of the index beside path: with its extension replaced if it has one of those
 * listed, else with ".idx" appended. free() it. */
char *index_file_path(const char *path, const struct index_file_rules *rules);

#endif
