/* SPDX-License-Identifier: Apache-2.0
 *
 *     free --submit--> waiting (in an inbox) --thread--> running --> done --reap--> free
 *                         | timed out: reaped              | timed out: reaped as held, abandoned
 *
 * The lock guards the lists and the handles. All threads share one inbox; with in_order each has
 * its own, and an open shard belongs to one of them. Wake-ups dominate the cost on few cores, so
 * reap() wakes the threads once for everything submitted, and they wake reap() once per SOON_NS.
 * The kernel cannot be made to give up a read that never ends: its thread, and with it the pool's
 * memory, is left behind. */
#include "readers/io_pool.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- handles ---- */

#ifndef STATX_DIOALIGN /* Linux 6.1, glibc 2.37 */
#define STATX_DIOALIGN 0x2000U
#endif

enum {
    OPEN_MOST = 4096,      /* more open files gain nothing */
    MAP_MOST = 32768,      /* mappings need no descriptor */
    DESCRIPTORS_LEFT = 64, /* for the rest of the program */
    MAPS_LEFT = 4096,
    MAPS_USUAL = 65530,      /* vm.max_map_count if it cannot be read */
    DIRECT_ALIGNMENT = 4096, /* if the kernel does not say: valid for every disk */
    SHORT_READS_MOST = 1000, /* per request */
    NONE = -1,
};

/* Descriptors and mappings promised to all readers of this process, so that I/O threads share the
 * limit. */
struct promises {
    uint64_t count;
    const uint64_t left; /* for others */
};
static pthread_mutex_t promises_lock = PTHREAD_MUTEX_INITIALIZER;
static struct promises descriptors = {.left = DESCRIPTORS_LEFT}, maps = {.left = MAPS_LEFT};

static uint32_t promise(struct promises *promises, uint64_t limit, uint64_t wanted)
{
    pthread_mutex_lock(&promises_lock);
    uint64_t taken = promises->count + promises->left;
    uint64_t share = limit > taken ? (limit - taken) / 2 : 0;
    uint64_t count = wanted < share ? wanted : share;
    if (count == 0)
        count = 1;
    promises->count += count;
    pthread_mutex_unlock(&promises_lock);
    return (uint32_t)count;
}

/* Find what O_DIRECT requires. The first shard stands for all: a data set is on one file system. */
static int learn_alignment(struct handles *handles)
{
    /* statx(2): stx_dio_mem_align and stx_dio_offset_align, after stx_mnt_id; both 0 if the file
     * has no O_DIRECT. Older headers lack the names. */
    union {
        struct statx known;
        uint32_t words[64];
    } status = {0};
    enum { DIO_MEM_WORD = 0x98 / 4, DIO_OFFSET_WORD = 0x9c / 4 };

    handles->alignment = 1;
    if (!(handles->flags & HANDLES_DIRECT) || handles->catalog->shard_count == 0)
        return 0;
    const char *path = handles->catalog->shards[0].path;
    int fd = file_open_quietly(path, O_RDONLY | O_DIRECT);
    if (fd == -EINVAL)
        return fail(EOPNOTSUPP, "%s: the file system refuses O_DIRECT; run without direct", path);
    if (fd < 0)
        return fail(fd, "%s: %s", path, fail_errno_text(fd));
    close(fd);
    handles->alignment = DIRECT_ALIGNMENT;
    if (statx(AT_FDCWD, path, 0, STATX_DIOALIGN, &status.known))
        return errno == ENOSYS ? 0 : fail(errno, "%s: %s", path, fail_errno_text(errno));
    if (!(status.known.stx_mask & STATX_DIOALIGN))
        return 0;
    const uint32_t memory = status.words[DIO_MEM_WORD], offset = status.words[DIO_OFFSET_WORD];
    const uint32_t larger = memory > offset ? memory : offset;
    if (offset == 0)
        return fail(EOPNOTSUPP, "%s: this file does not support O_DIRECT; run without direct",
                    path);
    if (larger > HANDLES_ALIGNMENT_MOST || (larger & (larger - 1)))
        return fail(EOPNOTSUPP,
                    "%s: O_DIRECT requires an alignment of %u bytes; run without direct", path,
                    larger);
    handles->alignment = larger;
    return 0;
}

int handles_create(struct handles *handles, const struct catalog *catalog, uint32_t flags,
                   uint32_t busiest, uint32_t limit)
{
    *handles = (struct handles){
        .catalog = catalog, .flags = flags, .oldest = (uint32_t)NONE, .newest = (uint32_t)NONE};
    int code = learn_alignment(handles);
    if (code)
        return code;
    uint64_t most = flags & HANDLES_REMOTE ? busiest : flags & HANDLES_MAP ? MAP_MOST : OPEN_MOST;
    uint64_t wanted = busiest > most ? busiest : most;
    if (limit && wanted > limit)
        wanted = limit;
    if (wanted > catalog->shard_count)
        wanted = catalog->shard_count;
    handles->where = memory_array(catalog->shard_count, sizeof *handles->where);
    if (!handles->where)
        return -ENOMEM;
    if (flags & HANDLES_REMOTE) {
        handles->capacity = (uint32_t)wanted;
    } else if (flags & HANDLES_MAP) {
        char text[32];
        file_read_begin("/proc/sys/vm/max_map_count", text, sizeof text);
        const uint64_t map_limit = strtoull(text, NULL, 10);
        handles->capacity = promise(&maps, map_limit ? map_limit : MAPS_USUAL, wanted);
    } else {
        struct rlimit open_limit;
        if (getrlimit(RLIMIT_NOFILE, &open_limit))
            open_limit = (struct rlimit){.rlim_cur = 1024, .rlim_max = 1024};
        if (open_limit.rlim_cur < open_limit.rlim_max) {
            const struct rlimit raised = {open_limit.rlim_max, open_limit.rlim_max};
            if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
                open_limit = raised;
        }
        handles->capacity = promise(&descriptors, open_limit.rlim_cur, wanted);
    }
    handles->promised = flags & HANDLES_REMOTE ? 0 : handles->capacity;
    handles->all = memory_array(handles->capacity, sizeof *handles->all);
    if (!handles->all)
        return -ENOMEM;
    for (uint32_t i = 0; i < handles->capacity; i++)
        pthread_mutex_init(&handles->all[i].lock, NULL);
    return 0;
}

static void close_file(const struct handles *handles, struct handle *handle)
{
    if (handle->remote)
        handles->forget(handles->owner, handle);
    handle->remote = NULL;
    if (handle->map) {
        fault_guard_forget(handle->map, handle->map_bytes);
        munmap((void *)(uintptr_t)handle->map, handle->map_bytes);
    }
    if (handle->fd >= 0)
        close(handle->fd);
    handle->map = NULL;
    handle->fd = -1;
    handle->opened = false;
}

void handles_destroy(struct handles *handles)
{
    for (uint32_t i = 0; handles->all && i < handles->used; i++)
        close_file(handles, &handles->all[i]);
    for (uint32_t i = 0; handles->all && i < handles->capacity; i++)
        pthread_mutex_destroy(&handles->all[i].lock);
    free(handles->all);
    free(handles->where);
    pthread_mutex_lock(&promises_lock);
    (handles->flags & HANDLES_MAP ? &maps : &descriptors)->count -= handles->promised;
    pthread_mutex_unlock(&promises_lock);
    *handles = (struct handles){0};
}

static void unlink_unused(struct handles *handles, struct handle *handle)
{
    assert(handle->users == 0 && handles->where[handle->shard]);
    if (handle->older != (uint32_t)NONE)
        handles->all[handle->older].newer = handle->newer;
    else
        handles->oldest = handle->newer;
    if (handle->newer != (uint32_t)NONE)
        handles->all[handle->newer].older = handle->older;
    else
        handles->newest = handle->older;
}

struct handle *handles_acquire(struct handles *handles, uint32_t shard)
{
    const uint32_t index = handles->where[shard];
    struct handle *handle = index ? &handles->all[index - 1] : NULL;

    assert(shard < handles->catalog->shard_count);
    assert(!handle || handle->shard == shard);
    if (handle && handle->users == 0)
        unlink_unused(handles, handle);
    if (!handle) { /* a fresh one, or the least recently used */
        if (handles->used < handles->capacity) {
            handle = &handles->all[handles->used++];
            handle->fd = -1;
        } else if (handles->oldest != (uint32_t)NONE) {
            handle = &handles->all[handles->oldest];
            unlink_unused(handles, handle);
            handles->where[handle->shard] = 0;
            close_file(handles, handle);
        } else {
            return NULL;
        }
        handle->shard = shard;
        handle->file = &handles->catalog->shards[shard];
        handles->where[shard] = (uint32_t)(handle - handles->all) + 1;
    }
    handle->users++;
    return handle;
}

void handles_release(struct handles *handles, struct handle *handle)
{
    uint32_t index = (uint32_t)(handle - handles->all);

    assert(handle->users > 0);
    if (--handle->users)
        return;
    handle->older = handles->newest;
    handle->newer = (uint32_t)NONE;
    if (handles->newest != (uint32_t)NONE)
        handles->all[handles->newest].newer = index;
    else
        handles->oldest = index;
    handles->newest = index;
}

/* Compare with what was indexed and what was opened. AT_STATX_DONT_SYNC avoids a round trip to a
 * server. A file that was replaced by rename has no link left. */
static int check_file(struct handle *handle)
{
    struct statx now;
    int fd = handle->fd < 0 ? AT_FDCWD : handle->fd;

    if (statx(fd, handle->fd < 0 ? handle->file->path : "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
              STATX_TYPE | STATX_SIZE | STATX_MTIME | STATX_NLINK | STATX_INO, &now))
        return errno == ENOENT ? -ESTALE : -errno;
    int64_t mtime_ns = store_time_ns((uint64_t)now.stx_mtime.tv_sec, now.stx_mtime.tv_nsec);
    if (!handle->opened)
        handle->inode = now.stx_ino;
    if (!S_ISREG(now.stx_mode) || now.stx_size != handle->file->bytes ||
        mtime_ns != handle->file->mtime_ns || now.stx_nlink == 0 || now.stx_ino != handle->inode)
        return -ESTALE;
    return 0;
}

int handles_open_flags(const struct handles *handles)
{
    return O_RDONLY | FILE_SAFE_FLAGS | (handles->flags & HANDLES_DIRECT ? O_DIRECT : 0);
}

int handle_adopt(const struct handles *handles, struct handle *handle, int fd)
{
    assert(fd >= 0 && handle->fd < 0 && !handle->opened && !handle->map);
    handle->fd = fd;
    int code = check_file(handle);
    if (code == 0) /* a regular file: reads may block again */
        code = file_set_flags(fd, (handles_open_flags(handles) & ~O_NONBLOCK) | FILE_NOATIME);
    if (code == 0 && handles->flags & HANDLES_RANDOM)
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    if (code == 0 && handles->flags & HANDLES_MAP) {
        void *map = handle->file->bytes
                        ? mmap(NULL, handle->file->bytes, PROT_READ, MAP_SHARED, fd, 0)
                        : NULL;
        if (map == MAP_FAILED) {
            code = -errno;
        } else {
            if (map && handles->flags & HANDLES_RANDOM)
                madvise(map, handle->file->bytes, MADV_RANDOM);
            handle->map = map;
            handle->map_bytes = map ? handle->file->bytes : 0;
            close(fd); /* a mapped file needs no descriptor */
            handle->fd = -1;
        }
    }
    if (code) {
        close_file(handles, handle);
        return code;
    }
    handle->opened = true;
    handle->checked_ns = clock_coarse_ns();
    return 0;
}

static int open_or_check(const struct handles *handles, struct handle *handle)
{
    if (!handle->opened) {
        int fd = file_open_quietly(handle->file->path, handles_open_flags(handles));
        return fd < 0 ? fd : handle_adopt(handles, handle, fd);
    }
    const uint64_t now_ns = clock_coarse_ns();
    if (handle_is_fresh_at(handle, now_ns))
        return 0;
    handle->checked_ns = now_ns;
    return check_file(handle);
}

int handle_open(const struct handles *handles, struct handle *handle)
{
    if (handles->flags & HANDLES_REMOTE)
        return 0;
    if (!(handles->flags & HANDLES_SHARED)) /* no lock per read */
        return open_or_check(handles, handle);
    pthread_mutex_lock(&handle->lock);
    int code = open_or_check(handles, handle);
    pthread_mutex_unlock(&handle->lock);
    return code;
}

/* Would handle_open() return 0 without blocking? Never blocks. */
static bool handle_is_fresh(struct handle *handle)
{
    if (pthread_mutex_trylock(&handle->lock))
        return false;
    const bool fresh = handle_is_fresh_at(handle, clock_coarse_ns());
    pthread_mutex_unlock(&handle->lock);
    return fresh;
}

int64_t handle_resume(const struct handles *handles, const struct handle *handle, uint64_t offset,
                      uint32_t got, uint32_t short_reads)
{
    struct stat now;

    assert(handle->opened && handle->fd >= 0);
    if (fstat(handle->fd, &now))
        return -errno;
    if ((uint64_t)now.st_size <= offset + got)
        return -ESTALE;
    if (short_reads >= SHORT_READS_MOST)
        return -EIO;
    return (int64_t)bytes_align_down(got, handles->alignment);
}

/* ---- pool ---- */

enum { LOOKS_PER_TIMEOUT = 8 };
static const uint64_t SOON_NS = 50000, WAIT_MOST_NS = 10000000;

struct task_list {
    struct io_task *first, *last;
};

struct inbox {
    struct task_list waiting;
    uint32_t fresh; /* submitted since the last reap: no thread was woken for them yet */
    pthread_cond_t more;
};

struct io_worker {
    struct io_pool *pool;
    struct inbox *inbox;
    struct thread thread;
};

struct io_pool {
    struct handles handles;
    struct io_pool_settings settings;
    uint64_t timeout_ns;
    uint32_t thread_count, inbox_count;
    struct io_worker *workers;
    struct inbox *inboxes;
    uint32_t task_count;
    struct io_task *tasks;
    struct io_task *free_tasks;
    uint32_t abandoned;

    pthread_mutex_t lock;
    pthread_cond_t finished; /* for reap */
    struct task_list done;
    bool reaper_waits, woken, ended;
    uint64_t woken_ns; /* when reap was last woken */
    uint64_t look_ns;  /* when to check for late tasks next */
};

static void list_push(struct task_list *list, struct io_task *task)
{
    task->next = NULL;
    if (list->last)
        list->last->next = task;
    else
        list->first = task;
    list->last = task;
}

static struct io_task *list_pop(struct task_list *list)
{
    struct io_task *task = list->first;

    if (task) {
        list->first = task->next;
        if (!list->first)
            list->last = NULL;
    }
    return task;
}

static int io_pool_thread(void *argument)
{
    struct io_worker *worker = argument;
    struct io_pool *pool = worker->pool;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct io_task *task = list_pop(&worker->inbox->waiting);
        if (!task && pool->ended)
            break;
        if (!task) {
            pthread_cond_wait(&worker->inbox->more, &pool->lock);
            continue;
        }
        task->running = true;
        pthread_mutex_unlock(&pool->lock);
        task->result = handle_open(&pool->handles, task->handle);
        if (task->result == 0)
            pool->settings.work(task);
        pthread_mutex_lock(&pool->lock);
        task->running = false;
        list_push(&pool->done, task);
        if (!pool->reaper_waits)
            continue;
        /* A thread with more to do delays the wake-up, but not for long. */
        const uint64_t now_ns = clock_now_ns();
        if (worker->inbox->waiting.first && now_ns - pool->woken_ns < SOON_NS)
            continue;
        pool->woken_ns = now_ns;
        pthread_cond_signal(&pool->finished);
    }
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

int io_pool_create(struct io_pool **created, const struct io_pool_settings *settings,
                   uint32_t *alignment)
{
    const struct reader_config *config = settings->config;
    const uint32_t depth = config->depth;
    struct io_pool *pool = memory_zeroed(sizeof *pool);

    *created = pool;
    if (!pool)
        return -ENOMEM;
    assert(depth > 0 && settings->work);
    pool->settings = *settings;
    pool->thread_count = settings->threads && settings->threads < depth ? settings->threads : depth;
    pool->inbox_count = settings->in_order ? pool->thread_count : 1;
    pthread_mutex_init(&pool->lock, NULL);
    thread_condition_init(&pool->finished);
    int code =
        handles_create(&pool->handles, config->catalog, settings->flags | HANDLES_SHARED,
                       settings->handles_most ? settings->handles_most : depth, settings->files);
    *alignment = pool->handles.alignment;
    if (code)
        return code;
    pool->handles.forget = settings->forget;
    pool->timeout_ns = config->timeout_ns;
    pool->task_count = depth;
    pool->tasks = memory_array(depth, sizeof *pool->tasks);
    pool->workers = memory_array(pool->thread_count, sizeof *pool->workers);
    pool->inboxes = memory_array(pool->inbox_count, sizeof *pool->inboxes);
    if (!pool->tasks || !pool->workers || !pool->inboxes)
        return -ENOMEM;
    for (uint32_t i = 0; i < pool->inbox_count; i++)
        pthread_cond_init(&pool->inboxes[i].more, NULL);
    for (uint32_t i = depth; i-- > 0;) {
        pool->tasks[i].next = pool->free_tasks;
        pool->free_tasks = &pool->tasks[i];
    }
    for (uint32_t i = 0; code == 0 && i < pool->thread_count; i++) {
        struct io_worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->inbox = &pool->inboxes[i % pool->inbox_count];
        code = thread_start(&worker->thread, "read", io_pool_thread, worker);
    }
    return code;
}

uint32_t io_pool_threads(const struct io_pool *pool)
{
    return pool->thread_count;
}

void io_pool_destroy(struct io_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ended = true;
    for (uint32_t i = 0; pool->inboxes && i < pool->inbox_count; i++)
        pthread_cond_broadcast(&pool->inboxes[i].more);
    uint32_t abandoned = pool->abandoned;
    pthread_mutex_unlock(&pool->lock);
    if (abandoned) {
        catalog_keep(pool->handles.catalog); /* its threads still use them */
        memory_keep(pool);
        return;
    }
    for (uint32_t i = 0; pool->workers && i < pool->thread_count; i++)
        thread_join(&pool->workers[i].thread);
    for (uint32_t i = 0; pool->inboxes && i < pool->inbox_count; i++)
        pthread_cond_destroy(&pool->inboxes[i].more);
    handles_destroy(&pool->handles);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool->inboxes);
    free(pool->tasks);
    free(pool);
}

int io_pool_submit(void *state, struct read_request *request)
{
    struct io_pool *pool = *(struct io_pool **)state;
    struct io_task *task = pool->free_tasks;

    if (!task && pool->abandoned == pool->task_count)
        return fail(ETIMEDOUT, "storage not responding: the last %u reads timed out",
                    pool->abandoned);
    pthread_mutex_lock(&pool->lock);
    struct handle *handle = task ? handles_acquire(&pool->handles, request->shard) : NULL;
    pthread_mutex_unlock(&pool->lock);
    if (!handle)
        return -EAGAIN;
    assert(!task->request && !task->running);
    pool->free_tasks = task->next;
    *task = (struct io_task){
        .handles = &pool->handles,
        .handle = handle,
        .offset = request->offset,
        .bytes = request->bytes,
        .needed = request->needed,
        .buffer = request->buffer,
        .parts = request->parts,
        .part_count = request->part_count,
        .request = request,
        .submit_ns = request->submit_ns,
    };
    bool is_done = pool->settings.at_once && handle_is_fresh(handle) &&
                   pool->settings.at_once(pool->settings.state, task);
    struct inbox *inbox = &pool->inboxes[(handle - pool->handles.all) % pool->inbox_count];
    pthread_mutex_lock(&pool->lock);
    list_push(is_done ? &pool->done : &inbox->waiting, task);
    inbox->fresh += !is_done;
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

static void free_task(struct io_pool *pool, struct io_task *task)
{
    task->request = NULL;
    task->next = pool->free_tasks;
    pool->free_tasks = task;
}

/* Under the lock. Drops late results of abandoned tasks. */
static uint32_t take_done(struct io_pool *pool, struct read_request **done, uint32_t max)
{
    uint32_t count = 0;
    struct io_task *task;

    while (count < max && (task = list_pop(&pool->done))) {
        struct read_request *request = task->request;
        if (task->abandoned) {
            assert(pool->abandoned > 0);
            pool->abandoned--;
            handles_release(&pool->handles, task->handle);
            free_task(pool, task);
            continue;
        }
        request->result = task->result;
        request->short_reads = task->short_reads;
        request->data = task->data;
        request->mapping = task->handle;
        if (!task->borrowed || task->result < 0)
            handles_release(&pool->handles, task->handle);
        free_task(pool, task);
        done[count++] = request;
    }
    return count;
}

/* Under the lock. A late task that waits for a thread is simply removed; one that a thread is
 * running is abandoned, its buffer held. */
static uint32_t take_late(struct io_pool *pool, struct read_request **done, uint32_t max)
{
    const uint64_t now_ns = clock_now_ns();
    uint32_t count = 0;

    if (!pool->timeout_ns || now_ns < pool->look_ns)
        return 0;
    pool->look_ns = now_ns + pool->timeout_ns / LOOKS_PER_TIMEOUT;
    for (uint32_t i = 0; i < pool->inbox_count; i++) {
        struct task_list *waiting = &pool->inboxes[i].waiting;
        while (count < max && waiting->first &&
               now_ns - waiting->first->submit_ns > pool->timeout_ns) {
            struct io_task *task = list_pop(waiting);
            task->request->result = -ETIMEDOUT;
            done[count++] = task->request;
            handles_release(&pool->handles, task->handle);
            free_task(pool, task);
        }
    }
    for (uint32_t i = 0; i < pool->task_count && count < max; i++) {
        struct io_task *task = &pool->tasks[i];
        if (!task->running || task->abandoned || now_ns - task->submit_ns <= pool->timeout_ns)
            continue;
        task->abandoned = true;
        pool->abandoned++;
        task->request->result = -ETIMEDOUT;
        task->request->held = true;
        done[count++] = task->request;
    }
    return count;
}

int io_pool_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct io_pool *pool = *(struct io_pool **)state;
    uint64_t until_ns = wait_ns ? clock_now_ns() + wait_ns : 0, now_ns;
    uint32_t count;

    if (until_ns < wait_ns)
        until_ns = UINT64_MAX / 2;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->inbox_count; i++) { /* wake threads for what was submitted */
        struct inbox *inbox = &pool->inboxes[i];
        const uint32_t threads = pool->thread_count / pool->inbox_count;
        uint32_t woken = inbox->fresh < threads ? inbox->fresh : threads;
        for (inbox->fresh = 0; woken > 0; woken--)
            pthread_cond_signal(&inbox->more);
    }
    for (;;) {
        count = take_done(pool, done, max);
        count += take_late(pool, done + count, max - count);
        if (count || pool->woken || (now_ns = clock_now_ns()) >= until_ns)
            break;
        /* Wait until a task is done, until_ns, or the next check for late tasks, but not long: a
         * thread that now hangs may have delayed the wake-up for its previous task. */
        uint64_t next_ns = now_ns + WAIT_MOST_NS < until_ns ? now_ns + WAIT_MOST_NS : until_ns;
        if (pool->timeout_ns && pool->look_ns < next_ns)
            next_ns = pool->look_ns;
        pool->reaper_waits = true;
        thread_condition_wait(&pool->finished, &pool->lock, next_ns);
        pool->reaper_waits = false;
    }
    pool->woken = false;
    pthread_mutex_unlock(&pool->lock);
    return (int)count;
}

void io_pool_release(void *state, struct read_request *request)
{
    struct io_pool *pool = *(struct io_pool **)state;

    pthread_mutex_lock(&pool->lock);
    handles_release(&pool->handles, request->mapping);
    pthread_mutex_unlock(&pool->lock);
}

void io_pool_wake(void *state)
{
    struct io_pool *pool = *(struct io_pool **)state;

    pthread_mutex_lock(&pool->lock);
    pool->woken = true;
    if (pool->reaper_waits)
        pthread_cond_signal(&pool->finished);
    pthread_mutex_unlock(&pool->lock);
}
