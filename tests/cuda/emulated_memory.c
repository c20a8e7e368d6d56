/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the emulated device, and the host's that is pinned. Each piece is known, so that a copy
 * beyond its end ends the program. Memory that is neither is pageable, and copied as a device does
 * it: on the way in it is looked at before the call returns, on the way out it is waited for. A
 * graph takes none of it. IOBENCH_EMULATED_PIECES: there is no memory for more allocations than
 * these at a time. Fresh memory holds what is no number, so that what is read before it is written
 * shows.
 */
#include "kernels/runtime.h"

#include "base/fail.h"
#include "tests/cuda/emulated.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT = 256 };

/* ---- pieces ---- */

struct piece {
    struct piece *next;
    char *start;
    uint64_t bytes;
    bool pinned;
};

/* For threads of the host alone: that one of a stream waited here would order what is not ordered.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static uint64_t piece_count;

enum home { PAGEABLE, PINNED, DEVICE };

/* Where all of it lies. */
static enum home home_of(const void *memory, uint64_t bytes)
{
    const char *start = memory;
    enum home home = PAGEABLE;
    bool whole = true;

    pthread_mutex_lock(&lock);
    for (const struct piece *piece = pieces; piece; piece = piece->next)
        if (start < piece->start + piece->bytes && start + bytes > piece->start) {
            home = piece->pinned ? PINNED : DEVICE;
            whole = start >= piece->start && start + bytes <= piece->start + piece->bytes;
        }
    pthread_mutex_unlock(&lock);
    if (!whole)
        emulated_refuse("access beyond the end of an allocation");
    return home;
}

bool emulated_on_device(const void *memory, uint64_t bytes)
{
    return home_of(memory, bytes) == DEVICE;
}

uint64_t emulated_pieces(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t count = piece_count;
    pthread_mutex_unlock(&lock);
    return count;
}

void *emulated_scratch(uint64_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, ALIGNMENT, bytes + 1))
        return NULL;
    return memset(memory, 0xff, bytes);
}

static bool is_full(void)
{
    const char *most = getenv("IOBENCH_EMULATED_PIECES");

    return most && emulated_pieces() >= strtoull(most, NULL, 10);
}

static void *allocate(uint64_t bytes, bool pinned)
{
    struct piece *piece = is_full() ? NULL : malloc(sizeof *piece);
    char *start = emulated_scratch(bytes);

    emulated_refuse_captured("memory is asked for");
    if (!piece || !start) {
        free(piece);
        free(start);
        fail(ENOMEM, "out of memory");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    *piece = (struct piece){pieces, start, bytes, pinned};
    pieces = piece;
    piece_count++;
    pthread_mutex_unlock(&lock);
    return start;
}

static void release(void *memory, bool pinned)
{
    struct piece **at = &pieces;

    if (!memory)
        return;
    emulated_refuse_captured("memory is given back");
    pthread_mutex_lock(&lock);
    while (*at && (*at)->start != memory)
        at = &(*at)->next;
    struct piece *piece = *at;
    if (!piece || piece->pinned != pinned)
        emulated_refuse("memory is freed that was not allocated this way");
    *at = piece->next;
    piece_count--;
    pthread_mutex_unlock(&lock);
    free(piece);
    free(memory);
}

void *runtime_allocate(uint64_t bytes)
{
    return allocate(bytes, false);
}

void runtime_release(void *memory)
{
    release(memory, false);
}

void *runtime_pin(uint64_t bytes)
{
    return allocate(bytes, true);
}

void runtime_unpin(void *memory)
{
    release(memory, true);
}

/* ---- copies ---- */

struct copy {
    void *to;
    const void *from;
    void *staged; /* what was pageable */
    uint64_t late_ns;
};

static void run_copy(const void *work, uint64_t bytes)
{
    const struct copy *copy = work;
    const struct timespec late = {.tv_nsec = (long)copy->late_ns};

    if (copy->late_ns)
        nanosleep(&late, NULL);
    memcpy(copy->to, copy->from, bytes);
    free(copy->staged);
}

int runtime_copy(void *to, const void *from, uint64_t bytes, void *stream)
{
    const enum home there = home_of(to, bytes), here = home_of(from, bytes);
    struct copy copy = {to, from, NULL, emulated_late_ns(stream)};

    if (bytes == 0)
        return 0;
    if (there != DEVICE && here != DEVICE)
        emulated_refuse("a copy between host and host");
    if (!stream)
        emulated_refuse_captured("a copy outside of it");
    if (emulated_captures(stream) && (there == PAGEABLE || here == PAGEABLE))
        emulated_refuse("a graph copies memory that is not pinned");
    if (here == PAGEABLE && stream) {
        copy.staged = malloc(bytes + 1);
        if (!copy.staged)
            return fail(ENOMEM, "out of memory");
        copy.from = memcpy(copy.staged, from, bytes);
    }
    int code = emulated_start(run_copy, &copy, sizeof copy, bytes, stream);
    return code || there != PAGEABLE ? code : runtime_wait(stream);
}

static void run_zero(const void *work, uint64_t bytes)
{
    memset(*(void *const *)work, 0, bytes);
}

int runtime_zero(void *memory, uint64_t bytes, void *stream)
{
    if (bytes > 0 && !emulated_on_device(memory, bytes))
        emulated_refuse("memory is cleared that is not on the device");
    return emulated_start(run_zero, &memory, sizeof memory, bytes, stream);
}

/* ---- another process' memory, read as a debugger does ---- */

struct theirs {
    pid_t process;
    char *memory;
};

int runtime_share(void *memory, uint8_t handle[RUNTIME_HANDLE_BYTES])
{
    const struct theirs mine = {getpid(), memory};

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where not everybody may */
    memset(handle, 0, RUNTIME_HANDLE_BYTES);
    memcpy(handle, &mine, sizeof mine);
    return 0;
}

int runtime_reach(const uint8_t handle[RUNTIME_HANDLE_BYTES], void **theirs)
{
    *theirs = malloc(sizeof(struct theirs));
    if (!*theirs)
        return fail(ENOMEM, "out of memory");
    memcpy(*theirs, handle, sizeof(struct theirs));
    return 0;
}

void runtime_leave(void *theirs)
{
    free(theirs);
}

struct peer_copy {
    void *to;
    struct theirs from;
};

static void run_peer_copy(const void *work, uint64_t bytes)
{
    const struct peer_copy *copy = work;
    const struct iovec here = {copy->to, bytes}, there = {copy->from.memory, bytes};

    if (process_vm_readv(copy->from.process, &here, 1, &there, 1, 0) != (ssize_t)bytes) {
        perror("another process' memory");
        abort();
    }
}

int runtime_copy_peer(void *to, uint32_t device, const void *theirs, uint64_t offset,
                      uint64_t bytes, void *stream)
{
    struct peer_copy copy = {to, *(const struct theirs *)theirs};

    (void)device;
    if (!emulated_on_device(to, bytes))
        emulated_refuse("a peer copy into memory that is not on this device");
    copy.from.memory += offset;
    return emulated_start(run_peer_copy, &copy, sizeof copy, bytes, stream);
}
