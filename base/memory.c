/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/headroom.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, HUGE_BYTES = 2 << 20 };

void *memory_zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory)
        fail(ENOMEM, "out of memory: %zu bytes", bytes);
    return memory;
}

void *memory_array(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);

    if (!memory)
        fail(ENOMEM, "out of memory: %zu times %zu bytes", count, size);
    return memory;
}

void *memory_pages(size_t bytes)
{
    /* Huge pages where they fit: 512 times fewer faults, and fewer misses of the TLB. */
    const bool huge = bytes >= HUGE_BYTES;
    void *memory = NULL;
    int code = posix_memalign(&memory, huge ? HUGE_BYTES : PAGE_BYTES, bytes ? bytes : 1);

    if (code) {
        fail(code, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    if (huge)
        madvise(memory, bytes / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE);
    return memory;
}

int memory_room(void *rows, uint64_t count, size_t size, const char *what)
{
    void *moved;

    if (count & (count - 1))
        return 0;
    memcpy(&moved, rows, sizeof moved);
    moved = count <= SIZE_MAX / 2 ? reallocarray(moved, count ? 2 * count : 1, size) : NULL;
    if (!moved)
        return fail(ENOMEM, "out of memory for more than %llu %s", (unsigned long long)count, what);
    memcpy(rows, &moved, sizeof moved);
    return 0;
}

uint64_t memory_resident_bytes(void)
{
    unsigned long long resident = 0;
    FILE *file = file_stream_kernel("/proc/self/statm");

    if (file && fscanf(file, "%*u %llu", &resident) != 1)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void memory_keep(void *memory)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kept {
        struct kept *next;
        void *memory;
    } * first;
    struct kept *kept = memory_zeroed(sizeof *kept);

    if (!kept)
        return;
    pthread_mutex_lock(&lock);
    *kept = (struct kept){.next = first, .memory = memory};
    first = kept;
    pthread_mutex_unlock(&lock);
}

uint64_t memory_available_bytes(void)
{
    struct headroom headroom;

    headroom_find(&headroom, "/proc", "/sys");
    return headroom.available_bytes;
}
