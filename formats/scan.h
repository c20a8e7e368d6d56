/* SPDX-License-Identifier: Apache-2.0
 *
 * scan: shards that are files: which of a folder's files they are, their records, and writing them.
 * Knows no format: the caller says which names are wanted, and gives the function that walks one
 * shard.
 *
 * Several shards are indexed at once: on a network file system nearly all time is spent waiting for
 * record headers. A walk runs on one thread with its own catalog; the parts are joined in list
 * order. With a fault handler everything runs on the caller's thread. */
#ifndef IOBENCH_FORMATS_SCAN_H
#define IOBENCH_FORMATS_SCAN_H

#include "dataset/store.h"
#include "formats/format.h"

/* The shard files of a data set, sorted by name. One thread. */
struct shard_list {
    char **paths, *companion; /* companion: the first of them, or NULL */
    uint32_t count, companion_count;
};

void shard_list_release(struct shard_list *list);

/* Read the first bytes of the first shard below root (or of root itself), and set whether its name
 * is wanted. Returns their count; 0 if there is none (may leave a reason). */
size_t shard_list_peek(const char *root, bool (*wanted)(const char *name), void *start,
                       size_t bytes, bool *is_named);

/* Parse a name numbered as part of a set ("train-00003-of-01024", perhaps followed by ".ext").
 * Returns the length of the part before "-00003", or -1. */
int shard_list_numbered(const char *name, uint64_t *number, uint64_t *of);

/* Return whether a file of this name in a folder is never a shard. */
bool shard_list_never(const char *name);

/* Return whether name ends in end. */
bool shard_list_ends(const char *name, const char *end);

struct shard_scan;

/* A file read only at its record headers. */
struct scanner {
    const char *path, *next; /* next: the following shard; NULL: this is the last */
    const struct format_scan *scan;
    struct store_file *file;
    uint64_t file_bytes;
    /* private */
    struct shard_scan *all;
    uint8_t *window;
    uint64_t window_start, reported, previous;
    size_t window_count;
};

enum {
    SCANNER_WINDOW_BYTES = 256 * 1024,
    SCANNER_HEADER_BYTES = 4096,
    SCANNER_SEARCH_BYTES = 1 << 30,
};

/* Return the count bytes at offset (all within the file, count <= SCANNER_HEADER_BYTES), valid
 * until the next call. Reads little if headers are far apart, much if they are adjacent. Returns
 * NULL with a reason and its code in *code. */
const uint8_t *scanner_at(struct scanner *scanner, uint64_t offset, size_t count, int *code);

/* Report a fault to the scan. Without a handler it becomes the reason and -code is
 * returned; else the handler decides: 0 continues, anything else ends the scan. */
static inline int scan_fault(const struct format_scan *scan, int code, const char *path,
                             uint64_t offset, const char *what)
{
    return catalog_report(scan->fault, scan->fault_context, code, path, offset, what);
}

/* The same of this file. */
static inline int scanner_fault(struct scanner *scanner, int code, uint64_t offset,
                                const char *what)
{
    return scan_fault(scanner->scan, code, scanner->path, offset, what);
}

/* Like scanner_fault(), for a fault whose reason, with file and offset, is already recorded. */
int scanner_fault_recorded(struct scanner *scanner, int code, uint64_t offset);

/* Count one more record of a compressed shard, where the file size bounds nothing. Returns -EFBIG
 * if the index of all shards exceeds most_bytes; 0: exceeds the data, or 64 MiB. */
int scanner_count_inflated(struct scanner *scanner, uint64_t most_bytes);

/* Steps that find consecutive records. */
struct scan_steps {
    /* Returns 0 and the *end of the record at offset, 1 and *what is wrong with it, or an error. If
     * no record can begin before a place that the damaged record reaches, 1 sets *end to it: else a
     * hostile file makes each of its records walk the same bytes again. */
    int (*measure)(struct scanner *scanner, uint64_t offset, uint64_t *end, const char **what);
    /* Return whether a record may begin at offset, which has these head_bytes. Never true if all of
     * them are 0. */
    bool (*begins)(const struct scanner *scanner, uint64_t offset, const uint8_t *head);
    uint32_t head_bytes, alignment; /* records begin at multiples of alignment: a power of 2 */
    /* The text file that other tools keep beside a shard, SHARD.idx: one line per record, two
     * columns. separator 0: no such file. */
    struct {
        const char *const *extensions; /* of shards, which ".idx" replaces; NULL ends them */
        char separator;
        bool has_keys;         /* the columns are key and offset; else offset and bytes */
        uint32_t record_bytes; /* at least */
    } index;
};

/* Advance *offset to the next place after it where a record may begin; to the end of the file if
 * there is none within SCANNER_SEARCH_BYTES, which no record exceeds. Zeros do not count: they are
 * skipped at reading speed, and holes at once. */
int scanner_find(struct scanner *scanner, const struct scan_steps *steps, uint64_t *offset);

/* Add all records of the file, as its index lists them if that is usable; a damaged one is a fault,
 * after which the scan continues. */
int scanner_add_all(struct scanner *scanner, const struct scan_steps *steps,
                    struct catalog *catalog);

/* Report progress: the scan has reached offset of the file. Returns -ECANCELED if another thread's
 * shard has failed. */
int scanner_report(struct scanner *scanner, uint64_t offset);

/* Add the records of the shard begun in catalog. */
typedef int (*scan_walk)(const void *settings, struct scanner *scanner, struct catalog *catalog);

int scan_shards(const struct shard_list *list, scan_walk walk, const void *settings,
                const struct format_scan *scan, struct catalog *catalog);

/* Do the same for the shards of root: a file, or the files in a folder that match the shell pattern
 * match or, without one, that wanted() accepts. Numbered ones must be complete. */
int scan_folder(const char *root, const char *match, bool (*wanted)(const char *name),
                scan_walk walk, const void *settings, const struct format_scan *scan,
                struct catalog *catalog);

/* A shard being written: buffered, under a temporary name, renamed when complete. One thread per
 * sink. */
struct sink {
    struct store_file *file;
    uint8_t *buffer;
    size_t used;
    uint64_t written_bytes; /* file offset of the end of the buffer */
};

/* Returns 0 or a negative errno; close it in either case. open_index: the index beside path. */
int sink_open(struct sink *sink, const char *path);
int sink_open_index(struct sink *sink, const char *path, const struct scan_steps *steps);
int sink_write(struct sink *sink, const void *bytes, size_t count);
int sink_printf(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* If commit is false or a write has failed, nothing is left on storage. A zeroed sink is fine. */
int sink_close(struct sink *sink, bool commit);

/* Return the file offset of the next byte. */
static inline uint64_t sink_offset(const struct sink *sink)
{
    return sink->written_bytes + sink->used;
}

#endif
