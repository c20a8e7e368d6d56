/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel behaviour, from mm/filemap.c, mm/mincore.c and experiments: cachestat() walks the mapping
 * of the file it is given, which on overlayfs is not the one that holds the pages; mincore() sets
 * every byte of its result if inode_owner_or_capable() and write permission both fail.
 */
#include "cachectl/residency.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#define HUGETLB_MAGIC 0x958458f6

enum { WINDOW_PAGES = 1 << 18 }; /* per mincore call: one result byte per page */

/* Farther past the end of a file than any large folio reaches. */
static const uint64_t beyond_bytes = UINT64_C(64) << 20;

/* The kernel's ABI, as struct range is: include/uapi/linux/mman.h. */
struct cachestat_answer {
    uint64_t cached, dirty, writeback, evicted, recently_evicted; /* pages */
};

enum sight { SIGHT_UNKNOWN, SIGHT_SEES, SIGHT_BLIND };
enum { CACHESTAT, MINCORE, PROBES };

/* One mount: whether it is in memory, and the state of the probes there. */
struct mount_sight {
    uint64_t device;
    bool in_memory;
    enum sight sight[PROBES];
};

/* Probe results for one range of a file. */
struct answers {
    int code[PROBES]; /* 0, or a negative errno: not supported here */
    uint64_t pages[PROBES];
};

struct residency_probe {
    pthread_mutex_t lock;
    struct mount_sight *mounts;
    size_t mount_count;
    uint64_t page_bytes;
};

struct residency_probe *residency_probe_create(void)
{
    struct residency_probe *probe = memory_zeroed(sizeof *probe);

    if (!probe)
        return NULL;
    pthread_mutex_init(&probe->lock, NULL);
    probe->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    return probe;
}

void residency_probe_destroy(struct residency_probe *probe)
{
    if (!probe)
        return;
    pthread_mutex_destroy(&probe->lock);
    free(probe->mounts);
    free(probe);
}

const char *residency_state_text(enum residency_state state)
{
    static const char *const texts[] = {"cold", "warm", "unverified"};

    return texts[state];
}

const char *residency_method_text(unsigned methods)
{
    static const char *const texts[] = {"nothing", "cachestat", "mincore", "cachestat and mincore"};

    return texts[methods & 3];
}

/* ---- one file ---- */

struct subject {
    int fd;
    uint64_t bytes;
    struct stat status;
    bool in_memory;
    const struct range *ranges; /* what is looked at; NULL: all */
    size_t range_count;
};

/* Open a regular file or block device; never blocks on a FIFO. */
static int open_subject(const char *path, struct subject *subject)
{
    struct stat *status = &subject->status;

    /* stat() before opening: opening a tape or a FIFO has side effects. */
    if (stat(path, status))
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    if (!S_ISREG(status->st_mode) && !S_ISBLK(status->st_mode))
        return fail(EINVAL, "%s: neither a file nor a block device", path);
    subject->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (subject->fd < 0)
        return fail(errno, "%s: cannot open: %s", path, fail_errno_text(errno));
    file_set_flags(subject->fd, O_NONBLOCK | FILE_NOATIME); /* mapping a file is an access, too */
    int code = 0;
    off_t end = 0;
    if (fstat(subject->fd, status))
        code = fail(errno, "%s: %s", path, fail_errno_text(errno));
    else /* st_size of a block device is 0 */
        end = S_ISREG(status->st_mode) ? status->st_size : lseek(subject->fd, 0, SEEK_END);
    if (end < 0)
        code = fail(errno, "%s: cannot get its size: %s", path, fail_errno_text(errno));
    subject->bytes = (uint64_t)end;
    if (code)
        close(subject->fd);
    return code;
}

/* ---- mounts ---- */

/* The lock is held. NULL: no memory. */
static struct mount_sight *sight_of(struct residency_probe *probe, const struct subject *subject)
{
    const uint64_t device = subject->status.st_dev;
    struct statfs place = {0};

    for (size_t i = 0; i < probe->mount_count; i++)
        if (probe->mounts[i].device == device)
            return &probe->mounts[i];
    if (memory_room(&probe->mounts, probe->mount_count, sizeof *probe->mounts, "mounts"))
        return NULL;
    struct mount_sight *mount = &probe->mounts[probe->mount_count++];
    fstatfs(subject->fd, &place);
    const uint32_t type = (uint32_t)place.f_type;
    *mount = (struct mount_sight){.device = device,
                                  .in_memory = type == TMPFS_MAGIC || type == RAMFS_MAGIC ||
                                               type == HUGETLB_MAGIC};
    return mount;
}

/* ---- one file's pages ---- */

/* Find the next part of the ranges that has data: pages of a hole are never read from storage, and
 * a hole may have 2^40 of them. at: where the last part ended; zeroed to begin. */
struct range_place {
    size_t range;
    uint64_t offset;
};

static bool next_part(const struct subject *subject, struct range_place *at, struct range *part)
{
    const bool has_holes = S_ISREG(subject->status.st_mode) &&
                           (uint64_t)subject->status.st_blocks * 512 < subject->bytes;

    for (; at->range < subject->range_count; at->range++) {
        assert(subject->ranges);
        const struct range *range = &subject->ranges[at->range];
        uint64_t start = at->offset > range->offset ? at->offset : range->offset;
        uint64_t end = range->offset + range->bytes;
        if (has_holes && start < end) {
            const off_t data = lseek(subject->fd, (off_t)start, SEEK_DATA);
            if (data >= 0 || errno == ENXIO)
                start = data < 0 ? end : (uint64_t)data;
            const off_t hole = start < end ? lseek(subject->fd, (off_t)start, SEEK_HOLE) : -1;
            if (hole > (off_t)start && (uint64_t)hole < end)
                end = (uint64_t)hole;
        }
        if (start >= end)
            continue;
        *part = (struct range){start, end - start};
        at->offset = end;
        return true;
    }
    return false;
}

static int ask_cachestat(const struct subject *subject, struct cachestat_answer *sum)
{
    struct cachestat_answer answer;
    struct range part;

    *sum = (struct cachestat_answer){0};
    for (struct range_place at = {0}; next_part(subject, &at, &part);) {
        if (syscall(SYS_cachestat, subject->fd, &part, &answer, 0))
            return -errno;
        sum->cached += answer.cached;
        sum->dirty += answer.dirty;
        sum->writeback += answer.writeback;
    }
    return 0;
}

static int count_window(int fd, uint64_t offset, uint64_t pages, uint64_t page_bytes,
                        unsigned char *bitmap, uint64_t *resident)
{
    const size_t bytes = pages * page_bytes;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);

    if (map == MAP_FAILED)
        return -errno;
    int code = mincore(map, bytes, bitmap) ? -errno : 0;
    for (uint64_t i = 0; code == 0 && i < pages; i++)
        *resident += bitmap[i] & 1;
    munmap(map, bytes);
    return code;
}

/* Count resident pages. Returns -EPERM if mincore reports every page. */
static int ask_mincore(const struct subject *subject, uint64_t page_bytes, uint64_t *resident)
{
    const uint64_t pages = subject->bytes / page_bytes + 1;
    unsigned char *bitmap = malloc(pages < WINDOW_PAGES ? pages : WINDOW_PAGES);
    uint64_t beyond = 0, asked = 0;
    int code = bitmap ? 0 : -ENOMEM;
    struct range part;

    *resident = 0;
    for (struct range_place at = {0}; code == 0 && next_part(subject, &at, &part);) {
        const uint64_t end = part.offset + part.bytes;
        for (uint64_t from = bytes_align_down(part.offset, page_bytes); code == 0 && from < end;
             from += WINDOW_PAGES * page_bytes) {
            const uint64_t left = (end - from + page_bytes - 1) / page_bytes;
            const uint64_t count = left < WINDOW_PAGES ? left : WINDOW_PAGES;
            code = count_window(subject->fd, from, count, page_bytes, bitmap, resident);
            asked += count;
        }
    }
    if (code == 0 && *resident == asked &&
        count_window(subject->fd, bytes_align_up(subject->bytes + beyond_bytes, page_bytes), 1,
                     page_bytes, bitmap, &beyond) == 0 &&
        beyond)
        code = -EPERM;
    free(bitmap);
    return code;
}

/* Ask all probes. Returns whether one of them sees a page. */
static bool ask_probes(const struct residency_probe *probe, const struct subject *subject,
                       struct answers *answers)
{
    struct cachestat_answer answer;

    answers->code[CACHESTAT] = ask_cachestat(subject, &answer);
    answers->pages[CACHESTAT] = answer.cached;
    answers->code[MINCORE] = ask_mincore(subject, probe->page_bytes, &answers->pages[MINCORE]);
    return (answers->code[CACHESTAT] == 0 && answers->pages[CACHESTAT]) ||
           (answers->code[MINCORE] == 0 && answers->pages[MINCORE]);
}

/* ---- the positive control ---- */

/* A page that was just read may be gone: other processes drop caches, too. */
enum { CONTROLS_MOST = 16 };

/* Find out which probes work. If one sees a page that another does not, the other is blind. If none
 * sees any, read a page for them to see and evict it again: the file had none cached. mincore()
 * does not show a page that was only written in part, as happens with pages larger than a block,
 * until it is read from the disk. */
static void learn(const struct residency_probe *probe, const struct subject *subject,
                  struct mount_sight *mount)
{
    const uint64_t page = probe->page_bytes;
    struct range looked = {0, subject->bytes}, data;
    struct subject whole = *subject;
    struct answers answers;
    char byte;

    whole.ranges = &looked;
    whole.range_count = 1;
    if (!next_part(&whole, &(struct range_place){0}, &data))
        return;
    bool is_seen = ask_probes(probe, &whole, &answers);
    looked = (struct range){bytes_align_down(data.offset, page), page};
    if (!is_seen) {
        posix_fadvise(subject->fd, 0, 0, POSIX_FADV_RANDOM); /* one page, no read-ahead */
        for (int turn = 0; turn < CONTROLS_MOST && !is_seen; turn++) {
            if (turn > 0 && fdatasync(subject->fd) == 0)
                posix_fadvise(subject->fd, 0, 0, POSIX_FADV_DONTNEED);
            if (pread(subject->fd, &byte, 1, (off_t)data.offset) != 1)
                return;
            is_seen = ask_probes(probe, &whole, &answers);
        }
        posix_fadvise(subject->fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    for (int i = 0; i < PROBES; i++)
        if (answers.code[i] == 0)
            mount->sight[i] = answers.pages[i] ? SIGHT_SEES : SIGHT_BLIND;
}

/* Return whether the probe is reliable on this file's mount. */
static bool sees(struct residency_probe *probe, const struct subject *subject, int which)
{
    bool seen = false;

    pthread_mutex_lock(&probe->lock);
    struct mount_sight *mount = sight_of(probe, subject);
    if (mount && mount->sight[which] == SIGHT_UNKNOWN)
        learn(probe, subject, mount);
    seen = mount && mount->sight[which] == SIGHT_SEES;
    pthread_mutex_unlock(&probe->lock);
    return seen;
}

/* ---- */

/* Look at one file: all of it, or the ranges of the subject. */
static void look_at_path(struct residency_probe *probe, const char *path, struct subject *subject,
                         struct residency *residency)
{
    const uint64_t page = probe->page_bytes;
    struct cachestat_answer answer;
    struct range whole = {0}, part;
    uint64_t pages = 0;
    int cachestat_code = 0, mincore_code = 0;

    *residency = (struct residency){.state = RESIDENCY_COLD};
    if (open_subject(path, subject)) {
        residency->state = RESIDENCY_UNVERIFIED;
        snprintf(residency->reason, sizeof residency->reason, "%.*s", RESIDENCY_REASON_BYTES - 1,
                 fail_reason());
        return;
    }
    whole.bytes = subject->bytes;
    if (!subject->ranges)
        subject->ranges = &whole, subject->range_count = 1;
    /* A block device has its disk's pages, whatever holds its node. */
    if (!S_ISBLK(subject->status.st_mode)) {
        pthread_mutex_lock(&probe->lock);
        const struct mount_sight *mount = sight_of(probe, subject);
        subject->in_memory = mount && mount->in_memory;
        pthread_mutex_unlock(&probe->lock);
    }
    residency->total_bytes = subject->bytes;
    for (struct range_place at = {0}; next_part(subject, &at, &part);)
        residency->data_bytes += part.bytes;
    if (residency->data_bytes) {
        cachestat_code = ask_cachestat(subject, &answer);
        if (cachestat_code == 0 && sees(probe, subject, CACHESTAT)) {
            residency->method = RESIDENCY_CACHESTAT;
            residency->dirty_bytes = (answer.dirty + answer.writeback) * page;
            pages = answer.cached;
        } else {
            mincore_code = ask_mincore(subject, page, &pages);
            if (mincore_code == 0 && sees(probe, subject, MINCORE))
                residency->method = RESIDENCY_MINCORE;
        }
    }
    close(subject->fd);
    if (residency->method) {
        const uint64_t data = residency->data_bytes;
        residency->resident_bytes = pages * page < data ? pages * page : data;
        residency->percent = 100.0 * (double)residency->resident_bytes / (double)data;
        if (residency->percent > RESIDENCY_COLD_PERCENT)
            residency->state = RESIDENCY_WARM;
    } else if (residency->data_bytes) {
        residency->state = RESIDENCY_UNVERIFIED;
        if (cachestat_code == 0 || mincore_code == 0)
            snprintf(residency->reason, sizeof residency->reason,
                     "the probes are blind here: a page just read does not show; this file system "
                     "caches elsewhere or not at all");
        else if (mincore_code == -EPERM)
            snprintf(residency->reason, sizeof residency->reason,
                     "only the owner of the file, or a user who may write it, can ask the kernel "
                     "(cachestat: %s); run as its owner or as root",
                     fail_errno_text(cachestat_code));
        else
            snprintf(residency->reason, sizeof residency->reason, "cachestat: %s; mincore: %s",
                     fail_errno_text(cachestat_code), fail_errno_text(mincore_code));
    }
    if (subject->in_memory) {
        residency->state = RESIDENCY_WARM;
        snprintf(residency->reason, sizeof residency->reason,
                 "on an in-memory file system (tmpfs), which can never be cold");
    }
}

void residency_file(struct residency_probe *probe, const char *path, struct residency *residency)
{
    struct subject subject = {0};

    look_at_path(probe, path, &subject, residency);
}

/* ---- many files: by several threads, as opening a million files one by one takes minutes on
 * network storage. The caller's thread waits, reports progress and stops the workers at the time
 * limit. */

enum { EACH_FILE_THREADS = 16, FILES_A_THREAD = 64 }; /* fewer files are not worth a thread */
enum { REPORT_EVERY_NS = 100000000 };

struct each_file {
    const char *doing;
    const char *const *paths;
    size_t count;
    /* Keeps failures of single files itself; a negative code stops all workers. */
    int (*each)(void *context, const char *path, size_t file);
    void *context;
    uint64_t timeout_ns;                   /* 0: none */
    const struct cache_observer *observer; /* may be NULL */
    uint64_t worker_count, start_ns, reported_ns;
    struct counter done;
    struct flag stop;
};

void cache_report(const struct cache_observer *observer, const char *doing, uint64_t done,
                  uint64_t total, uint64_t start_ns)
{
    const struct cache_progress progress = {
        .doing = doing, .done = done, .total = total, .elapsed_ns = clock_now_ns() - start_ns};

    if (observer && observer->progress)
        observer->progress(observer->context, &progress);
}

bool cache_report_step(void *context)
{
    const struct cache_step *step = context;

    cache_report(step->observer, step->doing, 0, 0, step->start_ns);
    return false;
}

/* Worker n takes files n, n + count, ...: adjacent files share their folder's cold metadata. */
static int work(void *context, struct workers *workers, uint64_t number)
{
    struct each_file *all = context;
    int code = 0;

    assert(number < EACH_FILE_THREADS);
    (void)workers;
    for (size_t i = number; i < all->count && code >= 0 && !flag_get(&all->stop);
         i += all->worker_count) {
        code = all->each(all->context, all->paths[i], i);
        counter_add(&all->done, 1);
    }
    return code < 0 ? code : 0;
}

static void stop(void *context)
{
    flag_set(&((struct each_file *)context)->stop);
}

static int watch(void *context)
{
    struct each_file *all = context;
    const uint64_t now_ns = clock_now_ns(), done = counter_get(&all->done);

    if (now_ns - all->reported_ns >= REPORT_EVERY_NS) {
        all->reported_ns = now_ns;
        cache_report(all->observer, all->doing, done, all->count, all->start_ns);
    }
    if (done == all->count || flag_get(&all->stop) || !all->timeout_ns ||
        now_ns - all->start_ns <= all->timeout_ns)
        return 0;
    return fail(ETIMEDOUT, "%s: not done after %.0f s (%llu of %zu files); raise the time limit",
                all->doing, (double)all->timeout_ns / 1e9, (unsigned long long)done, all->count);
}

/* Returns 0, -ETIMEDOUT, or the first failure, with a reason. Workers stop between files: a hung
 * storage call is waited for. */
static int each_file_run(struct each_file *all)
{
    const struct workers_job job = {"cachectl", work, stop, watch, all};

    all->start_ns = all->reported_ns = clock_now_ns();
    all->worker_count = all->count / FILES_A_THREAD + 1;
    if (all->worker_count > EACH_FILE_THREADS)
        all->worker_count = EACH_FILE_THREADS;
    return workers_run(&job, all->worker_count);
}

/* ---- measuring them ---- */

struct residency_survey {
    struct residency_probe *probe;
    const struct ranges *ranges;
    pthread_mutex_t lock; /* of those below */
    struct residency_total *total;
    size_t reason_of; /* file, the first with a reason */
};

static int survey_one(void *context, const char *path, size_t file)
{
    struct residency_survey *survey = context;
    struct residency_total *total = survey->total;
    const struct ranges *ranges = survey->ranges;
    struct subject subject = {0};
    struct residency found;

    assert(!ranges || file < ranges->count);
    if (ranges) {
        subject.ranges = ranges->list + ranges->first[file];
        subject.range_count = ranges->first[file + 1] - ranges->first[file];
    }
    look_at_path(survey->probe, path, &subject, &found);
    const bool is_verified = found.state != RESIDENCY_UNVERIFIED;
    pthread_mutex_lock(&survey->lock);
    total->file_count++;
    total->methods |= found.method;
    total->in_memory |= subject.in_memory;
    total->total_bytes += found.total_bytes;
    total->data_bytes += found.data_bytes;
    total->unverified_count += !is_verified;
    total->unverified_bytes += is_verified ? 0 : found.data_bytes;
    total->resident_bytes += is_verified ? found.resident_bytes : 0;
    total->dirty_bytes += is_verified ? found.dirty_bytes : 0;
    total->warm_count += found.state == RESIDENCY_WARM;
    if (found.reason[0] && file <= survey->reason_of) {
        const bool named = strncmp(found.reason, path, strlen(path)) == 0;
        survey->reason_of = file;
        snprintf(total->reason, sizeof total->reason, "%.100s%s%.150s", named ? "" : path,
                 named ? "" : ": ", found.reason);
    }
    if (found.resident_bytes && is_verified) {
        struct residency_named named = {.resident_bytes = found.resident_bytes,
                                        .dirty_bytes = found.dirty_bytes,
                                        .device = subject.status.st_dev,
                                        .inode = subject.status.st_ino};
        const size_t length = strlen(path), room = sizeof named.path;
        size_t at = RESIDENCY_WORST;
        snprintf(named.path, room, "%s%s", length < room ? "" : "...",
                 length < room ? path : path + length - (room - 4));
        for (; at > 0; at--) { /* of equal ones the first by name, whichever thread comes first */
            const struct residency_named *other = &total->worst[at - 1];
            if (named.resident_bytes < other->resident_bytes ||
                (named.resident_bytes == other->resident_bytes &&
                 strcmp(named.path, other->path) >= 0))
                break;
            if (at < RESIDENCY_WORST)
                total->worst[at] = *other;
        }
        if (at < RESIDENCY_WORST)
            total->worst[at] = named;
    }
    pthread_mutex_unlock(&survey->lock);
    return 0;
}

int residency_parts(struct residency_probe *probe, const char *const *paths, size_t count,
                    const struct ranges *ranges, uint64_t timeout_ns,
                    const struct cache_observer *observer, struct residency_total *total)
{
    struct residency_survey survey = {
        .probe = probe, .ranges = ranges, .total = total, .reason_of = SIZE_MAX};
    struct each_file all = {.doing = "checking the page cache",
                            .paths = paths,
                            .count = count,
                            .each = survey_one,
                            .context = &survey,
                            .timeout_ns = timeout_ns,
                            .observer = observer};

    *total = (struct residency_total){.state = RESIDENCY_UNVERIFIED};
    pthread_mutex_init(&survey.lock, NULL);
    int code = each_file_run(&all);
    pthread_mutex_destroy(&survey.lock);
    if (code)
        return code;
    const uint64_t seen_bytes = total->data_bytes - total->unverified_bytes;
    if (seen_bytes)
        total->percent = 100.0 * (double)total->resident_bytes / (double)seen_bytes;
    /* Warm outranks unverified; unverified outranks cold. */
    if (total->in_memory ||
        100.0 * (double)total->resident_bytes > RESIDENCY_COLD_PERCENT * (double)total->data_bytes)
        total->state = RESIDENCY_WARM;
    else
        total->state = total->unverified_count ? RESIDENCY_UNVERIFIED : RESIDENCY_COLD;
    return 0;
}

/* ---- evicting and loading them ---- */

enum { WARM_BYTES = 1 << 20, SYNCED_MOUNTS = 16 };

struct file_work {
    enum cache_change change;
    pthread_mutex_t lock; /* of those below */
    uint64_t synced[SYNCED_MOUNTS];
    unsigned synced_count;
    struct evict_figures *figures;
    size_t reason_of; /* file, the first that failed */
};

static int change_file(void *context, const char *path, size_t file)
{
    struct file_work *job = context;
    struct evict_figures *figures = job->figures;
    struct subject subject;
    int code = open_subject(path, &subject);
    const bool is_open = code == 0;

    if (is_open && job->change == CACHE_WARM) {
        char *buffer = memory_array(WARM_BYTES, 1);
        code = buffer ? 0 : -ENOMEM;
        posix_fadvise(subject.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        ssize_t got;
        for (off_t at = 0; code == 0 && (got = pread(subject.fd, buffer, WARM_BYTES, at)) != 0;
             at += got)
            if (got < 0)
                code = fail(errno, "%s: offset %lld: cannot read: %s", path, (long long)at,
                            fail_errno_text(errno));
        free(buffer);
    } else if (is_open) {
        unsigned i = 0;
        /* Pages that cannot be written back stay resident, and are measured as such. */
        if (job->change == CACHE_EVICT) {
            sync_file_range(subject.fd, 0, 0,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                SYNC_FILE_RANGE_WAIT_AFTER);
        } else { /* once per mount; the other workers wait for it */
            pthread_mutex_lock(&job->lock);
            while (i < job->synced_count && job->synced[i] != subject.status.st_dev)
                i++;
            if (i == job->synced_count) {
                syncfs(subject.fd);
                if (i < SYNCED_MOUNTS)
                    job->synced[job->synced_count++] = subject.status.st_dev;
            }
            pthread_mutex_unlock(&job->lock);
        }
        const int refused = posix_fadvise(subject.fd, 0, 0, POSIX_FADV_DONTNEED);
        if (refused)
            code = fail(refused, "%s: cannot evict: %s", path, fail_errno_text(refused));
    }
    if (is_open)
        close(subject.fd);
    pthread_mutex_lock(&job->lock);
    figures->file_count++;
    figures->failed_count += code != 0;
    figures->bytes += code ? 0 : subject.bytes;
    if (code && file <= job->reason_of) {
        job->reason_of = file;
        snprintf(figures->reason, sizeof figures->reason, "%.255s", fail_reason());
    }
    pthread_mutex_unlock(&job->lock);
    return code == -ENOMEM ? code : 0;
}

int cache_files(enum cache_change change, const char *const *paths, size_t count,
                uint64_t timeout_ns, const struct cache_observer *observer,
                struct evict_figures *figures)
{
    struct file_work context = {.change = change, .figures = figures, .reason_of = SIZE_MAX};
    struct each_file all = {.doing = change == CACHE_WARM ? "reading files" : "evicting files",
                            .paths = paths,
                            .count = count,
                            .each = change_file,
                            .context = &context,
                            .timeout_ns = timeout_ns,
                            .observer = observer};

    *figures = (struct evict_figures){0};
    pthread_mutex_init(&context.lock, NULL);
    int code = each_file_run(&all);
    pthread_mutex_destroy(&context.lock);
    return code;
}

/* ---- what is beneath them ---- */

void beneath_look(const struct device_list *devices, uint64_t set_bytes, struct beneath *beneath)
{
    struct residency_probe *probe = devices->backing_count ? residency_probe_create() : NULL;
    char size[32];

    *beneath = (struct beneath){.state = RESIDENCY_COLD};
    for (uint32_t i = 0; i < devices->backing_count && beneath->state == RESIDENCY_COLD; i++) {
        struct residency found = {.state = RESIDENCY_UNVERIFIED};
        const char *path = devices->backing[i];
        if (probe)
            residency_file(probe, path, &found);
        if (found.state == RESIDENCY_UNVERIFIED) {
            beneath->state = RESIDENCY_UNVERIFIED;
            snprintf(beneath->reason, sizeof beneath->reason, "loop device on %.200s: %.150s", path,
                     found.reason[0] ? found.reason : "no memory to look at it");
        } else if (found.resident_bytes > set_bytes / 100) {
            beneath->state = RESIDENCY_WARM;
            beneath->resident_bytes =
                found.resident_bytes < set_bytes ? found.resident_bytes : set_bytes;
            snprintf(beneath->reason, sizeof beneath->reason,
                     "loop device on %.200s, of which %s are in memory%s%.100s", path,
                     bytes_text(found.resident_bytes, size, sizeof size),
                     found.reason[0] ? ": " : "", found.reason);
        }
    }
    residency_probe_destroy(probe);
    if (beneath->state == RESIDENCY_COLD && devices->memory[0]) {
        beneath->state = RESIDENCY_WARM;
        beneath->resident_bytes = set_bytes;
        snprintf(beneath->reason, sizeof beneath->reason, "on %s, which can never be cold",
                 devices->memory);
    }
}

void beneath_look_at(const char *const *paths, size_t count, uint64_t set_bytes,
                     struct beneath *beneath)
{
    struct device_list *devices = memory_zeroed(sizeof *devices);

    if (devices)
        devices_of_paths(&telemetry_roots_usual, paths, count, devices);
    if (devices)
        beneath_look(devices, set_bytes, beneath);
    else
        *beneath = (struct beneath){.state = RESIDENCY_UNVERIFIED, .reason = "out of memory"};
    free(devices);
}
