/* SPDX-License-Identifier: Apache-2.0
 *
 * arenas: record memory.
 *
 * Each I/O thread has an equal share on one NUMA node, divided into heaps of at most 1 GiB, the
 * largest buffer that the kernel registers. Knows neither plans nor reads. The loader's thread
 * only.
 */
#ifndef IOBENCH_PIPELINE_LOADER_ARENAS_H
#define IOBENCH_PIPELINE_LOADER_ARENAS_H

#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct arenas {
    struct iovec *regions; /* of the heaps; the same number for each I/O thread, in its order */
    uint32_t count;
    bool held; /* the kernel may still write here (a read timed out): never free it */
    /* private */
    bool balanced;
    struct heap **heaps;
};

/* used_bytes: of each heap, and granule, the alignment of extents: see heap_create(). Returns 0 or
 * a negative errno with a reason; call arenas_destroy() either way. */
int arenas_create(struct arenas *arenas, uint64_t bytes, uint64_t used_bytes, uint32_t granule,
                  uint32_t io_threads, const struct numa *numa);
void arenas_destroy(struct arenas *arenas);
/* Release everything and reset the peak. */
void arenas_reset(struct arenas *arenas);

/* Return memory and the index of its region, or NULL, without a reason, if no extent is large
 * enough. source: where its bytes will be copied from, an address or an offset in a file; the
 * memory is, if possible, not where processors copy slowly. */
void *arenas_acquire(struct arenas *arenas, uint64_t source, uint64_t bytes, uint32_t *region);
/* The same; *region: where to look first, then where it is. */
void *arenas_acquire_near(struct arenas *arenas, uint64_t source, uint64_t bytes, uint32_t *region);
void arenas_release(struct arenas *arenas, void *memory);

uint64_t arenas_used_bytes(const struct arenas *arenas);
uint64_t arenas_peak_bytes(const struct arenas *arenas);

#endif
