/* SPDX-License-Identifier: Apache-2.0
 * Counts what a test program allocates and frees, and fails allocations on request, by interposing
 * glibc's allocator (for shared libraries too). Include in one .c only. Not with sanitizers, which
 * interpose it themselves: allocations_counted is false there.
 */
#ifndef IOBENCH_TESTS_ALLOCATIONS_H
#define IOBENCH_TESTS_ALLOCATIONS_H

#include "base/atomic.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static struct counter allocations; /* refused ones, too */
static struct counter releases __attribute__((unused));
/* Number of the allocation to fail, from 1; 0: none. */
static uint64_t allocation_refused __attribute__((unused));

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static const bool allocations_counted = true;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static inline bool allocation_is_refused(void)
{
    counter_add(&allocations, 1);
    if (counter_get(&allocations) != allocation_refused)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return allocation_is_refused() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return allocation_is_refused() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    void *moved = allocation_is_refused() ? NULL : __libc_realloc(old, bytes);

    counter_add(&releases, old && moved);
    return moved;
}

void free(void *memory)
{
    counter_add(&releases, memory != NULL);
    __libc_free(memory);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return allocation_is_refused() ? NULL : __libc_memalign(alignment, bytes);
}
#else
static const bool allocations_counted = false;
#endif

#endif
