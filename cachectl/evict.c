/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/evict.h"

#include "base/fail.h"
#include "base/memory.h"
#include "cachectl/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WARM_BYTES = 1 << 20, SYNCED_MOUNTS = 16 };

struct chore {
    int (*handle)(struct chore *chore, unsigned worker, int fd, const char *path);
    bool sync_mounts;
    pthread_mutex_t lock;
    uint64_t synced[SYNCED_MOUNTS];
    unsigned synced_count;
    char *buffers[CREW_THREADS];
    struct evict_figures figures[CREW_THREADS];
};

/* Once for each mount; the other workers wait for it. */
static void sync_mount(struct chore *chore, int fd)
{
    struct stat status;
    unsigned i = 0;

    if (fstat(fd, &status))
        return;
    pthread_mutex_lock(&chore->lock);
    while (i < chore->synced_count && chore->synced[i] != status.st_dev)
        i++;
    if (i == chore->synced_count) {
        syncfs(fd);
        if (i < SYNCED_MOUNTS)
            chore->synced[chore->synced_count++] = status.st_dev;
    }
    pthread_mutex_unlock(&chore->lock);
}

/* What cannot be written back stays resident, and is seen so. */
static int evict_one(struct chore *chore, unsigned worker, int fd, const char *path)
{
    (void)worker;
    if (chore->sync_mounts)
        sync_mount(chore, fd);
    else
        sync_file_range(fd, 0, 0,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
    int code = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return code ? fail(code, "%s: cannot evict it: %s", path, fail_errno_text(code)) : 0;
}

static int warm_one(struct chore *chore, unsigned worker, int fd, const char *path)
{
    ssize_t got;

    if (!chore->buffers[worker])
        chore->buffers[worker] = memory_array(WARM_BYTES, 1);
    if (!chore->buffers[worker])
        return -ENOMEM;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (off_t at = 0; (got = pread(fd, chore->buffers[worker], WARM_BYTES, at)) != 0; at += got)
        if (got < 0)
            return fail(errno, "%s: offset %lld: cannot read: %s", path, (long long)at,
                        fail_errno_text(errno));
    return 0;
}

static int each(void *context, unsigned worker, const char *path)
{
    struct chore *chore = context;
    struct evict_figures *figures = &chore->figures[worker];
    uint64_t bytes = 0;
    int fd = residency_open(path, &bytes), code = fd < 0 ? fd : 0;

    if (code == 0) {
        code = chore->handle(chore, worker, fd, path);
        close(fd);
    }
    figures->file_count++;
    if (code == 0) {
        figures->bytes += bytes;
        return 0;
    }
    if (figures->failed_count++ == 0)
        snprintf(figures->reason, sizeof figures->reason, "%.255s", fail_reason());
    return code == -ENOMEM ? code : 0;
}

static int carry_out(struct chore *chore, struct crew_task *task, struct evict_figures *figures)
{
    *figures = (struct evict_figures){0};
    if (!chore)
        return -ENOMEM;
    pthread_mutex_init(&chore->lock, NULL);
    task->each = each;
    task->context = chore;
    int code = crew_run(task);
    for (unsigned i = 0; i < CREW_THREADS; i++) {
        const struct evict_figures *part = &chore->figures[i];
        figures->file_count += part->file_count;
        figures->failed_count += part->failed_count;
        figures->bytes += part->bytes;
        if (!figures->reason[0])
            memcpy(figures->reason, part->reason, sizeof figures->reason);
        free(chore->buffers[i]);
    }
    pthread_mutex_destroy(&chore->lock);
    free(chore);
    return code;
}

int evict_files(const char *const *paths, size_t count, bool sync_mounts, uint64_t timeout_ns,
                const struct cache_observer *observer, struct evict_figures *figures)
{
    struct chore *chore = memory_zeroed(sizeof *chore);
    struct crew_task task = {.doing = "evicting files",
                             .paths = paths,
                             .count = count,
                             .timeout_ns = timeout_ns,
                             .observer = observer};

    if (chore) {
        chore->handle = evict_one;
        chore->sync_mounts = sync_mounts;
    }
    return carry_out(chore, &task, figures);
}

int warm_files(const char *const *paths, size_t count, uint64_t timeout_ns,
               const struct cache_observer *observer, struct evict_figures *figures)
{
    struct chore *chore = memory_zeroed(sizeof *chore);
    struct crew_task task = {.doing = "reading files",
                             .paths = paths,
                             .count = count,
                             .timeout_ns = timeout_ns,
                             .observer = observer};

    if (chore)
        chore->handle = warm_one;
    return carry_out(chore, &task, figures);
}
