/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/uring.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Kernel ABI (include/uapi/linux/io_uring.h, fs.h) that older headers lack. */
enum {
    SETUP_COOP_TASKRUN = 1 << 8, /* 5.19 */
    SETUP_TASKRUN_FLAG = 1 << 9, /* 5.19 */
    FLAG_DONTCACHE = 0x80,       /* 6.14 */
    FUSE_MAGIC = 0x65735546,     /* linux/magic.h since 5.16 */
};

enum { SQPOLL_IDLE_MS = 50 };

/* Best first; each older kernel refuses one more flag with EINVAL. */
int uring_make_ring(struct io_uring *ring, unsigned entries, unsigned wanted, unsigned *flags)
{
    static const unsigned ways[] = {
        SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN | SETUP_TASKRUN_FLAG,
        SETUP_SINGLE_ISSUER | SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG,
        SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG,
        0,
    };
    int code = -EINVAL;

    for (size_t i = 0; code == -EINVAL && i < sizeof ways / sizeof *ways; i++) {
        unsigned way = ways[i];
        if ((way & SETUP_DEFER_TASKRUN) && !uring_can_defer)
            continue;
        /* The kernel thread runs completions then. */
        if (wanted & IORING_SETUP_SQPOLL)
            way &= SETUP_SINGLE_ISSUER;
        *flags = way | wanted;
        struct io_uring_params params = {.flags = *flags | IORING_SETUP_CLAMP,
                                         .sq_thread_idle = SQPOLL_IDLE_MS};
        code = io_uring_queue_init_params(entries, ring, &params);
    }
    return code;
}

static int make_best_ring(struct uring *uring, unsigned wanted)
{
    /* A read, an open and a cancel per op, so the queue is never full. */
    int code = uring_make_ring(&uring->ring, 4 * uring->config->depth, wanted, &uring->setup_flags);

    uring->ring_is_up = code == 0;
    return code;
}

static void note(struct reader_traits *traits, const char *text)
{
    size_t used = strlen(traits->notice);

    snprintf(traits->notice + used, sizeof traits->notice - used, "%s%s", used ? "; " : "", text);
}

/* Open the first shard that is not empty. Returns -1 if there is none. */
static int open_probe(const struct uring *uring)
{
    const struct catalog *catalog = uring->config->catalog;

    for (uint32_t i = 0; i < catalog->shard_count; i++)
        if (catalog->shards[i].bytes > 0)
            return file_open_quietly(catalog->shards[i].path,
                                     handles_open_flags(&uring->handles) | FILE_NOATIME);
    return -1;
}

/* Try one polled read. Returns 0 or its negative errno. */
static int probe_polled_read(struct uring *uring)
{
    uint32_t bytes = uring->handles.alignment > 512 ? uring->handles.alignment : 512;
    void *memory = aligned_alloc(bytes, bytes);
    struct io_uring_cqe *cqe;
    int fd = open_probe(uring), code = -ENOENT;

    if (memory && fd >= 0) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
        io_uring_prep_read(sqe, fd, memory, bytes, 0);
        code = io_uring_submit(&uring->ring);
        if (code >= 0)
            code = io_uring_wait_cqe(&uring->ring, &cqe);
        if (code == 0) {
            code = cqe->res < 0 ? cqe->res : 0;
            io_uring_cqe_seen(&uring->ring, cqe);
        }
    }
    if (fd >= 0)
        close(fd);
    free(memory);
    return code;
}

static int set_up_ring(struct uring *uring, const struct uring_settings *settings,
                       struct reader_traits *traits)
{
    unsigned wanted = settings->sqpoll ? IORING_SETUP_SQPOLL : 0;

    if (settings->iopoll && settings->direct) {
        int code = make_best_ring(uring, wanted | IORING_SETUP_IOPOLL);
        if (code == 0 && probe_polled_read(uring) == 0)
            return 0;
        if (code == 0)
            io_uring_queue_exit(&uring->ring);
        uring->ring_is_up = false;
    }
    if (settings->iopoll)
        note(traits, settings->direct ? "this storage cannot be polled (iopoll): using interrupts"
                                      : "iopoll needs direct: using interrupts");
    int code = make_best_ring(uring, wanted);
    if (code == -EPERM && wanted) {
        note(traits, "sqpoll is not allowed here");
        code = make_best_ring(uring, 0);
    }
    return code;
}

/* On FUSE a kernel worker waits for each reply, so io_uring gains nothing, and up to Linux 6.18 it
 * resumes short direct reads at a wrong offset. Avoid it unless asked for. */
static bool is_on_fuse(const struct uring *uring)
{
    struct statfs status;
    int fd = open_probe(uring);
    bool is_fuse = fd >= 0 && fstatfs(fd, &status) == 0 && status.f_type == FUSE_MAGIC;

    if (fd >= 0)
        close(fd);
    return is_fuse;
}

static void probe_dontcache(struct uring *uring, struct reader_traits *traits)
{
    uint8_t byte;
    struct iovec to = {.iov_base = &byte, .iov_len = 1};
    int fd = open_probe(uring);

    if (fd >= 0 && preadv2(fd, &to, 1, 0, FLAG_DONTCACHE) >= 0)
        uring->rw_flags = FLAG_DONTCACHE;
    else
        note(traits, "uncached reads (RWF_DONTCACHE) are not supported here: using buffered reads");
    if (fd >= 0)
        close(fd);
}

/* The kernel reads ahead when a read meets a mark that it set in the page cache, once all before
 * the mark has arrived. Reads that begin more than a whole read-ahead further miss: to the kernel
 * these are others at random, into single pages. Less than all of it in flight is slower: the mark
 * is met later. */
void uring_choose_read_ahead(struct uring *uring, const struct uring_settings *settings)
{
    const bool in_order = uring->config->in_order && !settings->direct;
    uint64_t bytes = 0;
    int fd = in_order && settings->readahead != READAHEAD_NO ? open_probe(uring) : -1;

    if (fd >= 0) {
        bytes = read_ahead_bytes("/sys", fd);
        close(fd);
    }
    if (bytes >= READ_AHEAD_ENOUGH) {
        uring->bytes_per_file = bytes;
    } else if (settings->readahead != READAHEAD_YES) {
        uring->handles.flags |= HANDLES_RANDOM;
    }
}

/* Registering pins the memory; only O_DIRECT gains by it. */
static void register_buffers(struct uring *uring, struct reader_traits *traits)
{
    char text[128], limit[32];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < uring->config->region_count; i++)
        bytes += uring->config->regions[i].iov_len;
    int code = io_uring_register_buffers(&uring->ring, uring->config->regions,
                                         uring->config->region_count);
    uring->fixed_buffers = code == 0;
    if (code == -ENOMEM) {
        snprintf(text, sizeof text,
                 "buffers are not registered: RLIMIT_MEMLOCK is below %s (ulimit -l)",
                 bytes_text(bytes, limit, sizeof limit));
        note(traits, text);
    }
}

/* Only if every shard keeps its index: otherwise each change costs a system call. */
static int register_files(struct uring *uring)
{
    uint32_t count = uring->handles.capacity;

    if (count < uring->config->catalog->shard_count)
        return 0;
    int *none = memory_array(count, sizeof *none);
    if (!none)
        return -ENOMEM;
    memset(none, 0xff, count * sizeof *none);
    uring->fixed_files = io_uring_register_files(&uring->ring, none, count) == 0;
    free(none);
    return 0;
}

int uring_set_up(struct uring *uring, const struct uring_settings *settings,
                 struct reader_traits *traits)
{
    bool fuse = is_on_fuse(uring);
    char ahead[48] = "", size[32];

    if (fuse && !settings->fuse)
        return -ENOTSUP;
    int code = set_up_ring(uring, settings, traits);
    if (code)
        return code;
    if (settings->dontcache && !settings->direct)
        probe_dontcache(uring, traits);
    if (settings->registered && settings->direct && uring->config->region_count > 0)
        register_buffers(uring, traits);
    if (settings->registered)
        code = register_files(uring);
    if (fuse)
        uring->read_flags |= IOSQE_ASYNC; /* otherwise submitting may block for the reply */
    if (uring->fixed_files)
        uring->read_flags |= IOSQE_FIXED_FILE;
    uring->open_in_ring = !(uring->setup_flags & IORING_SETUP_IOPOLL);
    if (uring->bytes_per_file)
        snprintf(ahead, sizeof ahead, ", read-ahead of %s",
                 bytes_text(uring->bytes_per_file, size, sizeof size));
    snprintf(traits->engine, sizeof traits->engine, "io_uring%s%s%s%s%s%s%s%s%s",
             settings->direct ? ", O_DIRECT" : "",
             uring->fixed_buffers ? ", registered buffers" : "",
             uring->fixed_files ? ", registered files" : "",
             uring->setup_flags & SETUP_DEFER_TASKRUN ? ", deferred completions" : "",
             uring->setup_flags & IORING_SETUP_SQPOLL ? ", SQPOLL" : "",
             uring->setup_flags & IORING_SETUP_IOPOLL ? ", IOPOLL" : "",
             uring->rw_flags ? ", RWF_DONTCACHE" : "", ahead,
             uring->read_flags & IOSQE_ASYNC ? ", kernel workers" : "");
    return code;
}
