/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/evict.h"

#include "base/fail.h"
#include "base/memory.h"
#include "cachectl/residency.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WARM_BYTES = 1 << 20, SYNCED_MOUNTS = 16 };

struct file_work {
    enum cache_change change;
    const char *const *paths;
    pthread_mutex_t lock;
    uint64_t synced[SYNCED_MOUNTS];
    unsigned synced_count;
    char *buffers[EACH_FILE_THREADS];
    struct evict_figures figures[EACH_FILE_THREADS];
};

static int each(void *context, unsigned worker, size_t file)
{
    struct file_work *work = context;
    const char *path = work->paths[file];
    struct evict_figures *figures = &work->figures[worker];
    uint64_t bytes = 0;
    int fd = residency_open(path, &bytes), code = fd < 0 ? fd : 0;

    assert(worker < EACH_FILE_THREADS);
    if (code == 0 && work->change == CACHE_WARM) {
        if (!work->buffers[worker])
            work->buffers[worker] = memory_array(WARM_BYTES, 1);
        char *buffer = work->buffers[worker];
        code = buffer ? 0 : -ENOMEM;
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        ssize_t got;
        for (off_t at = 0; code == 0 && (got = pread(fd, buffer, WARM_BYTES, at)) != 0; at += got)
            if (got < 0)
                code = fail(errno, "%s: offset %lld: cannot read: %s", path, (long long)at,
                            fail_errno_text(errno));
    } else if (code == 0) {
        struct stat status;
        unsigned i = 0;
        /* Pages that cannot be written back stay resident, and are measured as such. */
        if (work->change == CACHE_EVICT) {
            sync_file_range(fd, 0, 0,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                SYNC_FILE_RANGE_WAIT_AFTER);
        } else if (fstat(fd, &status) == 0) { /* once per mount; the other workers wait for it */
            pthread_mutex_lock(&work->lock);
            while (i < work->synced_count && work->synced[i] != status.st_dev)
                i++;
            if (i == work->synced_count) {
                syncfs(fd);
                if (i < SYNCED_MOUNTS)
                    work->synced[work->synced_count++] = status.st_dev;
            }
            pthread_mutex_unlock(&work->lock);
        }
        const int refused = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        if (refused)
            code = fail(refused, "%s: cannot evict: %s", path, fail_errno_text(refused));
    }
    if (fd >= 0)
        close(fd);
    figures->file_count++;
    if (code == 0) {
        figures->bytes += bytes;
        return 0;
    }
    if (figures->failed_count++ == 0)
        snprintf(figures->reason, sizeof figures->reason, "%.255s", fail_reason());
    return code == -ENOMEM ? code : 0;
}

int cache_files(enum cache_change change, const char *const *paths, size_t count,
                uint64_t timeout_ns, const struct cache_observer *observer,
                struct evict_figures *figures)
{
    struct file_work work = {.change = change, .paths = paths};
    const struct each_file_task task = {.doing = change == CACHE_WARM ? "reading files"
                                                                      : "evicting files",
                                        .count = count,
                                        .each = each,
                                        .context = &work,
                                        .timeout_ns = timeout_ns,
                                        .observer = observer};

    *figures = (struct evict_figures){0};
    pthread_mutex_init(&work.lock, NULL);
    int code = each_file_run(&task);
    for (unsigned i = 0; i < EACH_FILE_THREADS; i++) {
        const struct evict_figures *part = &work.figures[i];
        figures->file_count += part->file_count;
        figures->failed_count += part->failed_count;
        figures->bytes += part->bytes;
        if (!figures->reason[0])
            memcpy(figures->reason, part->reason, sizeof figures->reason);
        free(work.buffers[i]);
    }
    pthread_mutex_destroy(&work.lock);
    return code;
}
