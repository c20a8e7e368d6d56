/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include "base/control_group.h"
#include "base/fail.h"
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
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

    assert(size > 0);
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
    char text[128], *rest = text;

    if (!file_peek(text, sizeof text, "/proc/self/statm"))
        return 0;
    strtoull(text, &rest, 10);
    return strtoull(rest, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
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

/* Names of a group's counters, by cgroup version. */
struct group_names {
    const char *limits[2], *usage, *reclaimable[2];
};

static const struct group_names version1_names = {{"memory.limit_in_bytes"},
                                                  "memory.usage_in_bytes",
                                                  {"total_inactive_file", "total_active_file"}};
static const struct group_names version2_names = {
    {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file"}};

/* Sum the lines "NAME NUMBER" or "NAME: NUMBER kB" that have one of two names. */
static uint64_t sum_of_lines(const char *folder, const char *name, const char *const keys[2])
{
    char path[CONTROL_GROUP_BYTES + 64], line[256], key[64];
    unsigned long long value;
    uint64_t sum = 0;

    snprintf(path, sizeof path, "%s/%.60s", folder, name);
    FILE *file = file_stream_kernel(path);
    while (file && fgets(line, sizeof line, file))
        for (int i = 0; i < 2; i++)
            if (keys[i] && sscanf(line, "%63s %llu", key, &value) == 2 && strcmp(key, keys[i]) == 0)
                sum += value;
    if (file)
        fclose(file);
    return sum;
}

/* Returns false if missing or not a number ("max"). */
static bool read_number(const char *folder, const char *name, uint64_t *number)
{
    char text[32], *end = text;

    if (file_peek(text, sizeof text, "%s/%s", folder, name))
        *number = strtoull(text, &end, 10);
    return end > text;
}

static void lower(struct headroom *headroom, uint64_t bytes, const char *cause)
{
    if (bytes >= headroom->available_bytes)
        return;
    headroom->available_bytes = bytes;
    headroom->cause = cause;
}

static void look_at_limit(struct headroom *headroom, unsigned resource, uint64_t used_bytes,
                          const char *cause)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return;
    lower(headroom, limit.rlim_cur > used_bytes ? limit.rlim_cur - used_bytes : 0, cause);
}

void headroom_find(struct headroom *headroom, const char *proc, const char *sys)
{
    static const char *const available_key[2] = {"MemAvailable:"};
    static const char *const total_key[2] = {"MemTotal:"};
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t machine_bytes = sum_of_lines(proc, "meminfo", total_key) * 1024;
    unsigned long long space = 0, data = 0;
    struct control_group group;
    struct sysinfo machine;
    char text[128];

    *headroom = (struct headroom){
        .available_bytes = sum_of_lines(proc, "meminfo", available_key) * 1024,
        .cause = "the machine",
    };
    /* Without /proc: what is free now, without the page cache that could be. */
    if (!headroom->available_bytes && sysinfo(&machine) == 0)
        headroom->available_bytes =
            ((uint64_t)machine.freeram + machine.bufferram) * machine.mem_unit;
    bool goes_on = control_group_find(&group, "memory", proc, sys);
    for (; goes_on; goes_on = control_group_up(&group)) {
        const struct group_names *names = group.version1 ? &version1_names : &version2_names;
        uint64_t limit = UINT64_MAX, usage = 0, one = 0;
        for (int i = 0; i < 2; i++)
            if (names->limits[i] && read_number(group.folder, names->limits[i], &one) &&
                one < limit)
                limit = one;
        if (limit >= machine_bytes)
            continue;
        if (headroom->limit_bytes == 0 || limit < headroom->limit_bytes)
            headroom->limit_bytes = limit;
        read_number(group.folder, names->usage, &usage);
        const uint64_t cache = sum_of_lines(group.folder, "memory.stat", names->reclaimable);
        usage -= cache < usage ? cache : usage;
        lower(headroom, limit > usage ? limit - usage : 0, "its control group");
    }
    if (file_peek(text, sizeof text, "%s/self/statm", proc) &&
        sscanf(text, "%llu %*u %*u %*u %*u %llu", &space, &data) != 2)
        space = data = 0;
    look_at_limit(headroom, RLIMIT_AS, space * page_bytes, "ulimit -v");
    look_at_limit(headroom, RLIMIT_DATA, data * page_bytes, "ulimit -d");
}

/* ---- fault_guard ---- */

enum { PAGES_MOST = 4096 }; /* remembered; beyond that every guarded range counts as lost */

const char fault_guard_reason[] =
    "the file was truncated while it was mapped, or a page of it can no longer be read";

static struct sigaction former;
static uintptr_t guarded_page_bytes;
static _Atomic uintptr_t lost_pages[PAGES_MOST];
static _Atomic uint64_t lost_count;
static _Thread_local volatile sig_atomic_t guarded, lost;

/* Async-signal-safe calls only; mmap() is a bare system call. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const int before = errno;

    if (guarded && info->si_code == BUS_ADRERR) {
        /* Record the page before it becomes zeros, so that a reader of the zeros finds the record.
         */
        const uintptr_t page = (uintptr_t)info->si_addr & ~(guarded_page_bytes - 1);
        const uint64_t index = atomic_fetch_add(&lost_count, 1);
        if (index < PAGES_MOST)
            atomic_store(&lost_pages[index], page);
        if (mmap((void *)page, guarded_page_bytes, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)page) {
            lost = 1;
            errno = before;
            return;
        }
    }
    if (former.sa_flags & SA_SIGINFO)
        former.sa_sigaction(number, info, context);
    else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN)
        former.sa_handler(number);
    else
        signal(SIGBUS, SIG_DFL); /* the fault recurs */
    errno = before;
}

void fault_guard_install(void)
{
    static pthread_mutex_t installs = PTHREAD_MUTEX_INITIALIZER;
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sigaction now;

    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&installs);
    if (sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction != on_bus_error) {
        guarded_page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        former = now;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&installs);
}

void fault_guard_begin(void)
{
    lost = 0;
    guarded = 1;
}

/* Was a page of the range recorded as lost? */
static bool has_lost(const void *bytes, size_t length, bool forgets)
{
    const uintptr_t first = (uintptr_t)bytes & ~(guarded_page_bytes - 1),
                    end = (uintptr_t)bytes + length;
    const uint64_t count = atomic_load(&lost_count);
    bool found = false;

    for (uint64_t i = 0; i < count && i < PAGES_MOST; i++) {
        const uintptr_t page = atomic_load(&lost_pages[i]);
        if (page < first || page >= end)
            continue;
        found = true;
        if (forgets)
            atomic_store(&lost_pages[i], 0);
    }
    return found;
}

bool fault_guard_end(const void *bytes, size_t length)
{
    guarded = 0;
    return !lost && !has_lost(bytes, length, false) && atomic_load(&lost_count) <= PAGES_MOST;
}

void fault_guard_forget(const void *bytes, size_t length)
{
    has_lost(bytes, length, true);
}
