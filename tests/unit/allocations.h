/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what a test program asks of the allocator, by standing in front of glibc's (its shared
 * libraries included). Include in one .c only. Not under the sanitizers, which do so themselves:
 * allocations_counted is false there.
 */
#ifndef IOBENCH_TESTS_ALLOCATIONS_H
#define IOBENCH_TESTS_ALLOCATIONS_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static struct counter allocations;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static const bool allocations_counted = true;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    counter_add(&allocations, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    counter_add(&allocations, 1);
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    counter_add(&allocations, 1);
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    counter_add(&allocations, 1);
    return __libc_memalign(alignment, bytes);
}
#else
static const bool allocations_counted = false;
#endif

#endif
