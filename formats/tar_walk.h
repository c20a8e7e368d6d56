/* SPDX-License-Identifier: Apache-2.0
 *
 * tar_walk: visit the files in a tar archive, header by header: POSIX ustar and pax, GNU
 * long names, numbers in octal or base 256. Knows neither where the bytes come from nor what the
 * names mean. Indexing walks an archive in a file; parsing walks the headers within one record.
 * Allocates nothing. One thread per walk.
 *
 * Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual,
 * "Basic Tar Format". Skips folders; links, devices and sparse files are visited without contents.
 */
#ifndef IOBENCH_FORMATS_TAR_WALK_H
#define IOBENCH_FORMATS_TAR_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_BYTES = 4096 };

struct tar_entry {
    uint64_t header; /* of the first block that belongs to it, including long names */
    uint64_t offset; /* of its contents */
    uint64_t bytes;
    const char *kind; /* of one that is no plain file: "a hard link"; else NULL */
    const char *name; /* in the walk, valid until the next call; NUL-terminated */
};

/* Return the count bytes at offset, both within the archive, count <= TAR_NAME_BYTES; valid until
 * the next call. Returns NULL with the error in *code. */
typedef const uint8_t *(*tar_source)(void *context, uint64_t offset, size_t count, int *code);

struct tar_walk {
    tar_source source;
    void *context;
    uint64_t bytes;  /* of the archive */
    uint64_t offset; /* of the next header */
    bool ended;      /* a block of zeros, which ends an archive, was read */
    /* After -EBADMSG: what is wrong, and where. */
    const char *wrong;
    uint64_t wrong_offset;
    /* Private: what the entries before a header say about it. */
    char name[TAR_NAME_BYTES + 1];
    bool has_name, has_bytes, is_sparse;
    uint64_t pax_bytes;
};

/* Returns 1 and the next file, 0 at the end, -EBADMSG with walk->wrong, or the source's error. */
int tar_next(struct tar_walk *walk, struct tar_entry *entry);

/* Return whether this block of TAR_BLOCK_BYTES is a header, by its checksum. */
bool tar_is_header(const uint8_t *block);

#endif
