/* SPDX-License-Identifier: Apache-2.0
 *
 * catalog: the shards of a data set, and the extent of each record.
 *
 * A record is an extent (shard, offset, length): the whole framed record, so that its CRC can be
 * checked. 16 bytes per record in memory. Records are numbered in shard order, then in the format's
 * order: file order, or key order in LMDB. The records of a shard are consecutive.
 * Immutable once built: any thread may read it.
 */
#ifndef IOBENCH_DATASET_CATALOG_H
#define IOBENCH_DATASET_CATALOG_H

#include "base/atomic.h"
#include "dataset/hints.h"
#include "dataset/store.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct extent {
    uint64_t offset;
    uint32_t bytes;
    uint32_t shard;
};

/* A record is read into one of the loader's regions: 1 GiB, as io_uring registers buffers, less
 * room for alignment. */
#define CATALOG_RECORD_BYTES_MAX ((UINT64_C(1) << 30) - 2 * 65536)

enum shard_flags {
    SHARD_ZLIB = 1, /* whole file compressed: extents are offsets of the inflated stream, */
    SHARD_GZIP = 2, /* and only reading in order is possible */
    SHARD_ZSTD = 4,
    SHARD_COMPRESSED = SHARD_ZLIB | SHARD_GZIP | SHARD_ZSTD,
};

struct shard {
    char *path;     /* as opened: absolute or relative to the working directory */
    uint64_t bytes; /* file size when indexed (compressed size for compressed shards) */
    int64_t mtime_ns, ctime_ns;
    uint64_t stream_bytes; /* inflated size for compressed shards, else the same as bytes */
    uint64_t first_record;
    uint64_t record_count;
    uint32_t flags;
    int32_t label;   /* of all its samples if the path determines it (plain files); else -1 */
    uint64_t layout; /* private to the format: how its records are laid out; else 0 */
};

/* A defect found while indexing. The handler returns 0 to continue (verify), else a negative errno
 * that ends indexing. Without a handler the defect becomes the reason and ends it. */
struct catalog_fault {
    const char *path;
    uint64_t offset;
    const char *what;
};
typedef int (*catalog_fault_handler)(void *context, const struct catalog_fault *fault);
int catalog_report(catalog_fault_handler handler, void *context, int code, const char *path,
                   uint64_t offset, const char *what);

/* Remarks: what a user should know of a data set that is not damage; each kind is counted, and its
 * first place named. */
enum catalog_remark {
    REMARK_LEFT_OUT, /* samples that a run should have read: they degrade it */
    REMARK_EMPTY_CLASS,
    REMARK_UNUSED_IMAGES,  /* besides the only plain one (.jpg, not .left.jpg) */
    REMARK_SEVERAL_IMAGES, /* none or several are plain: the first is used */
    REMARK_NO_IMAGE,
    REMARK_EMPTY_SHARD,
    REMARK_COMPANION,
    REMARK_ODD_LABEL,   /* found where records are read: by verify and inspect */
    REMARK_EMPTY_IMAGE, /* the same */
    REMARK_KINDS,
};

struct remark {
    uint64_t count;
    char *first; /* NULL: count is 0 */
};

struct catalog {
    char *root;
    char *format; /* name of the format plug-in that made it */
    uint32_t shard_count;
    struct shard *shards;
    uint64_t record_count;
    const struct extent *records;
    uint64_t record_bytes_total;
    uint32_t record_bytes_max;
    bool compressed;   /* any shard is */
    uint32_t left_out; /* files that are not samples, for the report */
    struct remark remarks[REMARK_KINDS];
    struct hints *hints; /* for the decoder, if it uses any; else NULL */

    /* private, while building: observer of invalid records, or NULL */
    catalog_fault_handler fault;
    void *fault_context;
    void *mapping; /* private: memory a sidecar was read into, which holds records; else NULL */
    size_t mapping_bytes;
    struct flag is_kept; /* private */
};

/* ---- building, by formats ---- */
struct catalog *catalog_create(const char *root, const char *format); /* NULL with a reason */
/* Begin the next shard; catalog_add() adds its records. status: NULL to query the file. */
int catalog_begin_shard(struct catalog *catalog, const char *path,
                        const struct store_status *status, uint32_t flags);
/* Add a record to the current shard. An empty record, or one outside its shard, is a fault: the
 * handler given to format_catalog() decides whether indexing continues without it. */
int catalog_add(struct catalog *catalog, uint64_t offset, uint64_t bytes);
/* Return the shard begun last: formats set its label and layout and, of a compressed one at its
 * end, stream_bytes. */
static inline struct shard *catalog_last(const struct catalog *catalog)
{
    assert(catalog->shard_count > 0);
    return &catalog->shards[catalog->shard_count - 1];
}
/* Mark the shard begun last as compressed: one of SHARD_COMPRESSED. */
void catalog_set_compressed(struct catalog *catalog, uint32_t flags);
/* Report a sample of an unsupported kind, which is left out: a fault for a handler, else counted.
 */
int catalog_add_unread(struct catalog *catalog, const char *path, uint64_t offset,
                       const char *what);
/* Count a remark; format: its place, of which the first is kept. */
int catalog_remark(struct catalog *catalog, enum catalog_remark kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum { REMARK_TEXT_BYTES = 512 };
/* Write the remarks, one text for each kind, as "shards are empty: 2; the first: PLACE". Returns
 * their number. */
uint32_t catalog_remarks(const struct catalog *catalog, char texts[][REMARK_TEXT_BYTES]);
/* Append the shards and records of part to catalog; part is left empty. For shards indexed in
 * parallel. */
int catalog_append(struct catalog *catalog, struct catalog *part);
/* Compute totals and run the last checks (no record: -ENODATA). Afterwards the catalog is
 * immutable. */
int catalog_seal(struct catalog *catalog);
void catalog_destroy(struct catalog *catalog); /* NULL is fine */
/* Never free the catalog, even when destroyed: a thread stuck in the kernel may still read it. Any
 * thread, while the catalog exists. */
void catalog_keep(const struct catalog *catalog);

/* ---- use ---- */
static inline const struct extent *catalog_extent(const struct catalog *catalog, uint64_t record)
{
    return &catalog->records[record];
}

/* Return false for the keys that some tools store beside the samples of an LMDB. */
static inline bool catalog_is_sample_key(const void *key, size_t bytes)
{
    return !(bytes == 7 && memcmp(key, "__len__", 7) == 0) &&
           !(bytes == 8 && memcmp(key, "__keys__", 8) == 0);
}

uint64_t catalog_data_bytes(const struct catalog *catalog); /* sum of shard sizes */
/* Hash name below the root, size and times of each shard: another value if a file was replaced or
 * written, even by one of equal size and mtime. The same through each client of a server, so
 * without device and inode: devices differ between clients, and some file systems assign new
 * inodes. */
uint64_t catalog_identity(const struct catalog *catalog);
/* Return whether the records of each shard are numbered in the order in which they are stored,
 * which keys of LMDB need not be. */
bool catalog_is_in_order(const struct catalog *catalog);

/* ---- the names below the root of a data set: hashed, to detect files added or removed, and links
 *      that leave it ----
 *
 * Skips hidden names, unfinished files and LMDB's lock file, which change without the data. */

struct names_below {
    uint64_t hash;
    bool leave; /* a link leaves the root, or may: the kernel cannot tell */
};

/* Zero if the root is a file. */
struct names_below names_below(const char *root);

/* Hash also sizes and times of the files, as catalog_identity() does for shards; if the root is a
 * file, its own. Queries the status of each file. Zero if there is no root. */
uint64_t names_below_identity(const char *root);

/* Return whether the walk above can reach this path, relative to the root: no "..", no empty part
 * and no skipped name. */
bool names_below_has(const char *below);

/* Return whether a relative path stays below its folder: no "." and no "..", no empty part. */
bool names_below_stays(const char *path);

/* Return the part of path below root: "" for the root itself, NULL if path is not below it. */
const char *names_below_path(const char *root, const char *path);

#endif
