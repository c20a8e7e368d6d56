/* SPDX-License-Identifier: Apache-2.0
 *
 * heap: record memory on the clock.
 *
 * Allocates aligned extents of any size from one fixed region in constant time and merges adjacent
 * free ones (TLSF over granules). Its tags are kept outside the region, which may therefore be
 * registered with a device. For one thread.
 */
#ifndef IOBENCH_BASE_HEAP_H
#define IOBENCH_BASE_HEAP_H

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

#endif
