/* SPDX-License-Identifier: Apache-2.0
 *
 * tar_walk: the regular files in a tar archive, one header after the other: POSIX ustar and pax,
 * GNU long names, numbers octal or in base 256. It knows neither where the bytes come from nor
 * what the names mean. Indexing walks an archive in a file, parsing the headers within one
 * record. It allocates nothing. One thread a walk.
 *
 * Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual,
 * "Basic Tar Format". Left out: folders, links, devices and sparse files.
 */
#ifndef IOBENCH_FORMATS_TAR_WALK_H
#define IOBENCH_FORMATS_TAR_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_BYTES = 4096 };

struct tar_entry {
    uint64_t header; /* of the first block that belongs to it, long names included */
    uint64_t offset; /* of its bytes */
    uint64_t bytes;
    const char *name; /* in the walk, until the next call; NUL-terminated */
};

/* The count bytes at offset, both within the archive, count <= TAR_NAME_BYTES; valid until the
 * next call. NULL with the error in *code. */
typedef const uint8_t *(*tar_source)(void *context, uint64_t offset, size_t count, int *code);

struct tar_walk {
    tar_source source;
    void *context;
    uint64_t bytes;  /* of the archive */
    uint64_t offset; /* of the next header */
    bool ended;      /* a block of zeros was met, which ends an archive */
    /* After -EBADMSG: what is wrong, and where. */
    const char *wrong;
    uint64_t wrong_offset;
    /* Private: what the blocks in front of a header say about it. */
    char name[TAR_NAME_BYTES + 1];
    bool has_name, has_bytes, is_sparse;
    uint64_t pax_bytes;
};

/* 1 and the next regular file, 0 at the end, -EBADMSG with walk->wrong, or the source's error. */
int tar_next(struct tar_walk *walk, struct tar_entry *entry);

/* Is this block of TAR_BLOCK_BYTES a header? Its checksum says. */
bool tar_is_header(const uint8_t *block);

#endif
