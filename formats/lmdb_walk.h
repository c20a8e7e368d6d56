/* SPDX-License-Identifier: Apache-2.0
 *
 * lmdb_walk: visit the values of an LMDB file in key order by reading its branch and leaf pages.
 * Knows nothing of what a value means, and does not use liblmdb, which trusts its file: here every
 * page number, offset, length and depth is checked and no page is visited twice, so a damaged file
 * ends in a fault and never in a loop. Overflow pages, which hold large values, are not read. One
 * thread.
 *
 * Source: the structures of lmdb/libraries/liblmdb/mdb.c (LMDB 0.9, data version 1), on a 64-bit
 * little-endian machine. */
#ifndef IOBENCH_FORMATS_LMDB_WALK_H
#define IOBENCH_FORMATS_LMDB_WALK_H

#include "dataset/store.h"
#include "formats/format.h"

struct lmdb_entry {
    const uint8_t *key; /* valid until the call returns */
    size_t key_bytes;
    uint64_t offset; /* of the value, in the file */
    uint64_t bytes;
};

/* Returns 0 to continue, else the code that ends the walk. */
typedef int (*lmdb_visit)(void *context, const struct lmdb_entry *entry);

/* Return whether this start of a file looks like LMDB's first page. */
bool lmdb_looks_like(const uint8_t *start, size_t bytes);

/* Walk the main database of the file. Faults are reported to the scan. */
int lmdb_walk(struct store_file *file, const struct format_scan *scan, lmdb_visit visit,
              void *context);

#endif
