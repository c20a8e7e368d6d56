/* SPDX-License-Identifier: Apache-2.0
 *
 * scan: indexing shards that are files by looking at their record headers, several shards at
 * once: on a network file system the wait for each header is the whole cost. It knows no format:
 * the caller gives the function that walks one shard.
 *
 * A walk runs on one thread with a catalog of its own; the parts are joined in the order of the
 * list. With a fault handler everything runs on the caller's thread.
 */
#ifndef IOBENCH_FORMATS_SCAN_H
#define IOBENCH_FORMATS_SCAN_H

#include "dataset/store.h"
#include "formats/format.h"
#include "formats/shard_list.h"

struct shard_scan;

/* A file read only at its record headers. */
struct scanner {
    const char *path, *next; /* next: the shard that follows; NULL: this is the last */
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

/* The count bytes at offset (all within the file, count <= SCANNER_HEADER_BYTES); valid until the
 * next call. Reads a little when headers lie far apart, much when they are neighbours. NULL with
 * a reason and its code in *code. */
const uint8_t *scanner_at(struct scanner *scanner, uint64_t offset, size_t count, int *code);

/* A fault of this file. See format_fault(). */
static inline int scanner_fault(struct scanner *scanner, int code, uint64_t offset,
                                const char *what)
{
    return format_fault(scanner->scan, code, scanner->path, offset, what);
}

/* The same for a fault whose reason, file and place included, is already recorded. */
int scanner_fault_recorded(struct scanner *scanner, int code, uint64_t offset);

/* One more record of a compressed shard, where the size of the file bounds nothing: -EFBIG when the
 * index of all shards becomes larger than most_bytes; 0: than the data, or 64 MiB. */
int scanner_count_inflated(struct scanner *scanner, uint64_t most_bytes);

/* How records that lie one behind the other are found. */
struct scan_steps {
    /* 0 and the *end of the record at offset, or 1 and *what is wrong with it, or an error. */
    int (*measure)(struct scanner *scanner, uint64_t offset, uint64_t *end, const char **what);
    /* May a record begin at offset, where these head_bytes are? Never when all of them are 0. */
    bool (*begins)(const struct scanner *scanner, uint64_t offset, const uint8_t *head);
    uint32_t head_bytes, alignment; /* records begin at multiples of alignment: a power of 2 */
};

/* Move *offset to the next place behind it where a record may begin; to the end of the file when
 * there is none within SCANNER_SEARCH_BYTES, which no record is longer than. Zeros do not count:
 * they are passed at the speed of reading, holes at once. */
int scanner_find(struct scanner *scanner, const struct scan_steps *steps, uint64_t *offset);

/* Adds all records of the file; a damaged one is a fault, and the scan goes on behind it. */
int scanner_add_all(struct scanner *scanner, const struct scan_steps *steps,
                    struct catalog *catalog);

/* The scan has come to offset of the file. -ECANCELED when another thread's shard has failed. */
int scanner_report(struct scanner *scanner, uint64_t offset);

/* Add the records of the shard that was begun in catalog. */
typedef int (*scan_walk)(const void *settings, struct scanner *scanner, struct catalog *catalog);

int scan_shards(const struct shard_list *list, scan_walk walk, const void *settings,
                const struct format_scan *scan, struct catalog *catalog);

#endif
