/* SPDX-License-Identifier: Apache-2.0
 *
 * heap: memory on the clock: of records, and of images (struct bump).
 *
 * Allocates aligned extents of any size from one fixed region in constant time and merges adjacent
 * free ones (TLSF over granules). Its tags are kept outside the region, which may therefore be
 * registered with a device. For one thread.
 */
#ifndef IOBENCH_BASE_HEAP_H
#define IOBENCH_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap;

enum { HEAP_ALIGNMENT = 4096 }; /* of the region, and the largest granule */

/* bytes: rounded up to 2 MiB; granule, to which extents are aligned: a power of two, 64 to 4096.
 * The first used_bytes of the region, what the caller expects to need, are touched here, so page
 * faults stay off the clock. Returns NULL with a reason. */
struct heap *heap_create(uint64_t bytes, uint64_t used_bytes, uint32_t granule);
void heap_destroy(struct heap *heap);

void heap_reset(struct heap *heap); /* frees every extent, and resets the peak */

/* Return NULL, without a reason, when no free extent is large enough: the caller waits. */
void *heap_alloc(struct heap *heap, uint64_t bytes);
void heap_free(struct heap *heap, void *extent);

void *heap_base(const struct heap *heap);
uint64_t heap_bytes(const struct heap *heap);
uint64_t heap_used_bytes(const struct heap *heap);
uint64_t heap_peak_bytes(const struct heap *heap);

/* ---- bump ----
 *
 * A bump allocator for one image; one reset frees all.
 *
 * It keeps one block. What does not fit spills into blocks of its own; the next reset grows the
 * block to hold all of it, up to BUMP_KEPT_MOST. So the system allocates only for an image larger
 * than all before it, or for a huge one, which leaves no trace in its thread.
 * bump_limit_together() bounds the total of all bump allocators, however many threads meet huge
 * images at once. bump_serve_jpeg() redirects libjpeg's per-image memory here, which libjpeg would
 * otherwise allocate and free for every image. One thread. */

struct jpeg_common_struct;
struct jpeg_memory_mgr;
struct bump_spill;

enum { BUMP_KEPT_MOST = 64 << 20 };
enum { BUMP_ALIGNMENT = 64 }; /* of every allocation: a cache line, a SIMD vector */

struct bump {
    uint8_t *block;
    size_t block_bytes, block_used;
    size_t used_bytes, limit_bytes;
    size_t charged_bytes; /* counted against the common limit: all blocks but the first */
    bool refused;         /* an allocation failed since the last reset, with a reason */
    struct bump_spill *spills;
    struct jpeg_memory_mgr *jpeg_original; /* the calls that bump_serve_jpeg() replaced */
};

/* bytes: initial block; limit_bytes: per image. Returns 0 or -ENOMEM. */
int bump_open(struct bump *bump, size_t bytes, size_t limit_bytes);
void bump_close(struct bump *bump); /* may be zeroed */

/* Limit what all bump allocators use beyond their first blocks; 0, the default: no limit. Any
 * thread. */
void bump_limit_together(uint64_t bytes);

/* Return memory that is not zeroed, or NULL with a reason past a limit or out of memory. */
void *bump_alloc(struct bump *bump, size_t bytes);
void *bump_alloc_array(struct bump *bump, size_t count, size_t size); /* checks for overflow */

void bump_reset(struct bump *bump);

/* Call after jpeg_create_decompress() or _compress(): image memory then comes from the allocator,
 * which is reset when libjpeg finishes or aborts an image. So do the tables of a decompressor: set
 * the pointers to them to NULL before the next image. Sets client_data. Close the allocator after
 * jpeg_destroy(); one libjpeg object each. Returns 0 or -ENOMEM. */
int bump_serve_jpeg(struct bump *bump, struct jpeg_common_struct *jpeg);

#endif
