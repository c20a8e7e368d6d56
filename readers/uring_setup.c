/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/uring.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

static void add_notice(struct reader_traits *traits, const char *text)
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

static int set_up_ring(struct uring *uring, const struct uring_settings *settings,
                       struct reader_traits *traits, int probe)
{
    const unsigned wanted = settings->sqpoll ? IORING_SETUP_SQPOLL : 0;
    const uint32_t bytes = uring->handles.alignment > 512 ? uring->handles.alignment : 512;

    if (settings->iopoll && settings->direct &&
        make_best_ring(uring, wanted | IORING_SETUP_IOPOLL) == 0) {
        void *memory = aligned_alloc(bytes, bytes);
        struct io_uring_cqe *cqe;
        int code = -ENOENT;
        if (memory && probe >= 0) { /* try one polled read */
            io_uring_prep_read(io_uring_get_sqe(&uring->ring), probe, memory, bytes, 0);
            code = io_uring_submit(&uring->ring);
            if (code >= 0)
                code = io_uring_wait_cqe(&uring->ring, &cqe);
            if (code == 0) {
                code = cqe->res < 0 ? cqe->res : 0;
                io_uring_cqe_seen(&uring->ring, cqe);
            }
        }
        free(memory);
        if (code == 0)
            return 0;
        io_uring_queue_exit(&uring->ring);
        uring->ring_is_up = false;
    }
    if (settings->iopoll)
        add_notice(traits, settings->direct
                               ? "this storage cannot be polled (iopoll): using interrupts"
                               : "iopoll needs direct: using interrupts");
    int code = make_best_ring(uring, wanted);
    if (code == -EPERM && wanted) {
        add_notice(traits, "sqpoll is not allowed here");
        code = make_best_ring(uring, 0);
    }
    return code;
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

int uring_set_up(struct uring *uring, const struct uring_settings *settings,
                 struct reader_traits *traits)
{
    const struct reader_config *config = uring->config;
    const uint32_t capacity = uring->handles.capacity;
    const int probe = open_probe(uring);
    char text[128], ahead[48] = "", size[32];
    uint64_t bytes = 0;
    uint8_t byte;
    struct iovec to = {.iov_base = &byte, .iov_len = 1};
    struct statfs status;

    /* On FUSE a kernel worker waits for each reply, so io_uring gains nothing, and up to Linux 6.18
     * it resumes short direct reads at a wrong offset. Avoid it unless asked for. */
    const bool fuse = probe >= 0 && fstatfs(probe, &status) == 0 && status.f_type == FUSE_MAGIC;
    int code = fuse && !settings->fuse ? -ENOTSUP : set_up_ring(uring, settings, traits, probe);
    if (code == 0 && settings->dontcache && !settings->direct) {
        if (probe >= 0 && preadv2(probe, &to, 1, 0, FLAG_DONTCACHE) >= 0)
            uring->rw_flags = FLAG_DONTCACHE;
        else
            add_notice(
                traits,
                "uncached reads (RWF_DONTCACHE) are not supported here: using buffered reads");
    }
    if (probe >= 0)
        close(probe);
    if (code)
        return code;
    /* Registering pins the memory; only O_DIRECT gains by it. */
    if (settings->registered && settings->direct && config->region_count > 0) {
        for (uint32_t i = 0; i < config->region_count; i++)
            bytes += config->regions[i].iov_len;
        code = io_uring_register_buffers(&uring->ring, config->regions, config->region_count);
        uring->fixed_buffers = code == 0;
        if (code == -ENOMEM) {
            snprintf(text, sizeof text,
                     "buffers are not registered: RLIMIT_MEMLOCK is below %s (ulimit -l)",
                     bytes_text(bytes, size, sizeof size));
            add_notice(traits, text);
        }
    }
    /* Only if every shard keeps its index: otherwise each change costs a system call. */
    if (settings->registered && capacity >= config->catalog->shard_count) {
        int *none = memory_array(capacity, sizeof *none);
        if (!none)
            return -ENOMEM;
        memset(none, 0xff, capacity * sizeof *none);
        uring->fixed_files = io_uring_register_files(&uring->ring, none, capacity) == 0;
        free(none);
    }
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
    return 0;
}

/* ---- what the io_uring of this machine offers: each thing is tried on a ring of its own ---- */

enum { ENTRIES = 256, BUFFER_BYTES = 64 * 1024 };
enum { REGISTER_IOWQ_MAX_WORKERS = 19 }; /* Linux 5.15; older headers lack it */

static int try_flags(unsigned flags)
{
    struct io_uring ring;
    struct io_uring_params params = {.flags = flags | IORING_SETUP_CLAMP};
    const int code = io_uring_queue_init_params(ENTRIES, &ring, &params);

    if (code == 0)
        io_uring_queue_exit(&ring);
    return code;
}

void uring_offers(reader_tell tell, void *context)
{
    struct iovec region = {.iov_base = malloc(BUFFER_BYTES), .iov_len = BUFFER_BYTES};
    uint32_t workers[2] = {0,
                           0}; /* bounded, for files, on each NUMA node; unbounded; 0: only ask */
    const int none = -1;
    int polled = -ENODEV;
    struct folder_names disks;
    struct io_uring ring;
    char threads[96], polls[2];

    if (io_uring_queue_init(ENTRIES, &ring, 0)) {
        free(region.iov_base);
        return; /* opening the reader says why */
    }
    const int files = io_uring_register_files(&ring, &none, 1);
    const int buffers = region.iov_base ? io_uring_register_buffers(&ring, &region, 1) : -ENOMEM;
    const int asked =
        syscall(__NR_io_uring_register, ring.ring_fd, REGISTER_IOWQ_MAX_WORKERS, workers, 2) < 0
            ? -errno
            : 0;
    io_uring_queue_exit(&ring);
    free(region.iov_base);
    snprintf(threads, sizeof threads,
             "at most %u kernel threads on each NUMA node for reads that cannot wait in the ring",
             workers[0]);
    /* Is there a disk whose driver has queues without interrupts? */
    folder_names_matching(&disks, "/sys/block/*/queue/io_poll");
    for (size_t i = 0; i < disks.count && polled; i++) {
        file_read_begin(disks.list[i], polls, sizeof polls);
        polled = polls[0] == '1' ? 0 : -ENODEV;
    }
    folder_names_release(&disks);
    const struct reader_offer offers[] = {
        {"issuer", try_flags(SETUP_SINGLE_ISSUER),
         "the ring belongs to one thread, which deferred completions need", "Linux 6.0 and later"},
        {"deferred",
         uring_can_defer ? try_flags(SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN) : -ENOSYS,
         "completions wait for the reading thread, without interrupting it",
         "Linux 6.1 and later, built with liburing 2.3 or later"},
        {"files", files, "registered: a read takes no reference to its file",
         "allow io_uring_register in the container's seccomp profile"},
        {"buffers", buffers, "registered, with direct: no page is pinned for each read",
         buffers == -ENOMEM ? "raise 'ulimit -l'"
                            : "allow io_uring_register in the container's seccomp profile"},
        {"sqpoll", try_flags(IORING_SETUP_SQPOLL), "a kernel thread can submit (sqpoll)",
         "only needed for sqpoll: Linux 5.13 and later, or root"},
        {"polling", polled, "a disk has queues that are polled, without interrupts (iopoll)",
         "only needed for iopoll: an NVMe disk, and nvme.poll_queues=N on the kernel's command "
         "line"},
        {"passthrough", try_flags(SETUP_SQE128 | SETUP_CQE32),
         "entries large enough for the commands of --reader nvme", "Linux 5.19 and later"},
        {"workers", asked, threads, "the limit is unknown: Linux 5.15 and later say it"},
    };
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        tell(context, &offers[i]);
}
