/* SPDX-License-Identifier: Apache-2.0
 *
 * memory: allocation off the clock, and an arena for records on the clock.
 *
 * The arena hands out aligned extents of any size from one fixed region in constant time and
 * merges neighbours when they come back (two-level segregated fit over granules, tags kept
 * outside the region so that device buffers stay clean). It is used by one thread.
 */
#ifndef IOBENCH_BASE_MEMORY_H
#define IOBENCH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed, or NULL with a reason. memory_array checks count * size for overflow. */
void *memory_zeroed(size_t bytes);
void *memory_array(size_t count, size_t size);
/* Not zeroed, at a page's start; free() gives it back. NULL with a reason. */
void *memory_pages(size_t bytes);

/* Room for one more element behind `count` elements of `size` bytes. rows: the address of the
 * pointer to the first one (NULL before the first call), which may move. The array is as large as
 * the next power of two and is only ever grown here, so its capacity need not be kept.
 * -ENOMEM with a reason that names `what` (a plural); the elements stay as they are then. */
int memory_room(void *rows, uint64_t count, size_t size, const char *what);

struct arena;

enum { ARENA_ALIGNMENT = 4096 }; /* of the region; extents are aligned to the granule */

/* bytes: rounded up to 2 MiB; granule: a power of two, 64..4096. The region is touched here so
 * that page faults stay off the clock. NULL with a reason. */
struct arena *arena_create(uint64_t bytes, uint32_t granule);
void arena_destroy(struct arena *arena);

/* Everything is free again, whatever was taken; the peak is forgotten. */
void arena_reset(struct arena *arena);

/* NULL when no free extent is large enough (no reason recorded: the caller waits). */
void *arena_take(struct arena *arena, uint64_t bytes);
void arena_give(struct arena *arena, void *extent);

void *arena_base(const struct arena *arena);
uint64_t arena_bytes(const struct arena *arena);
uint64_t arena_used_bytes(const struct arena *arena);
uint64_t arena_peak_bytes(const struct arena *arena);

/* Memory this process may still use: see base/headroom.h. */
uint64_t memory_available_bytes(void);
/* Memory of this process that is resident; 0: not known. */
uint64_t memory_resident_bytes(void);

#endif
