/* SPDX-License-Identifier: Apache-2.0
 * The io_uring reader. submit() only prepares SQEs; reap() enters the kernel once, for everything
 * prepared and everything completed. The ring also opens files, so a set of many small files never
 * blocks on one.
 *
 *     FREE --submit--> WAITING --> READING --> FREE
 *                                    | timed out: CANCELLING --> FREE
 *                                                     | no answer either: ABANDONED, buffer held
 *
 * A read is resumed after a short read until `needed` bytes are there. ABANDONED ends with the
 * read's CQE, if ever. */
#include "readers/uring.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/option.h"
#include "readers/plugins.h"
#include "readers/io_pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LOOKS_PER_TIMEOUT = 8, DEPTH_MOST = 8192, SQPOLL_IDLE_MS = 50 };
/* Kernel ABI (include/uapi/linux/io_uring.h, fs.h) that older headers lack. */
enum {
    SQ_CQ_OVERFLOW = 1 << 1,
    SQ_TASKRUN = 1 << 2,
    SETUP_COOP_TASKRUN = 1 << 8,    /* 5.19 */
    SETUP_TASKRUN_FLAG = 1 << 9,    /* 5.19 */
    FLAG_DONTCACHE = 0x80,          /* 6.14 */
    FUSE_MAGIC = 0x65735546,        /* linux/magic.h since 5.16 */
    REGISTER_IOWQ_MAX_WORKERS = 19, /* 5.15 */
};

/* The kind of a completion; the rest of user_data is an index. */
enum { FOR_OP = 0, FOR_HANDLE = 1, FOR_NOBODY = 2, FOR_WAKER = 3, FOR_SHIFT = 32 };

enum uring_readahead { READAHEAD_AUTO, READAHEAD_YES, READAHEAD_NO };

struct uring_settings {
    bool direct;
    int readahead; /* enum uring_readahead */
    bool registered, sqpoll, iopoll, dontcache, fuse;
};

#define FLAG(field, text)                                                                  \
    .name = #field, .type = OPTION_FLAG, .offset = offsetof(struct uring_settings, field), \
    .summary = text

static const char *const readahead_choices[] = {
    [READAHEAD_AUTO] = "auto", [READAHEAD_YES] = "yes", [READAHEAD_NO] = "no", NULL};

static const struct option_spec uring_options[] = {
    {FLAG(direct, "bypass the page cache (O_DIRECT)")},
    {.name = "readahead",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct uring_settings, readahead),
     .fallback = "no",
     .choices = readahead_choices,
     .summary = "let the kernel read ahead (auto: if each file is read from front to back, and "
                "the kernel reads 4 MiB or more ahead; slower on VMs that report free memory)"},
    {FLAG(registered, "register files and, with direct, buffers"), .fallback = "yes"},
    {FLAG(sqpoll, "submit by a kernel thread: fewer system calls, one more busy core")},
    {FLAG(iopoll, "poll for completions (NVMe with poll queues, and direct)")},
    {FLAG(dontcache, "buffered reads that drop their pages afterwards (Linux 6.14)")},
    {FLAG(fuse,
          "use io_uring on FUSE, too (default: threads, as fast there and safe from short reads)")},
    {0},
};

/* Never fails: the ring has 4 SQEs per op, which needs at most 3 (read, open, cancel), and the
 * waker one. */
static struct io_uring_sqe *get_sqe(struct uring *uring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

    assert(sqe);
    return sqe;
}

/* Call after the prep function: some versions of liburing clear user_data there. */
static void tag(struct io_uring_sqe *sqe, uint64_t kind, uint64_t index)
{
    sqe->user_data = kind << FOR_SHIFT | index;
}

static void free_op(struct uring *uring, struct uring_op *op)
{
    handles_release(&uring->handles, op->handle);
    op->state = OP_FREE;
    op->next = uring->free_ops;
    uring->free_ops = op;
}

static struct uring_queue *queue_of(const struct uring *uring, const struct handle *handle)
{
    return &uring->queues[handle - uring->handles.all];
}

/* The next reap returns the request to the caller. */
static void finish_op(struct uring *uring, struct uring_op *op, int result)
{
    struct read_request *request = op->request;

    assert(uring->busy > 0);
    request->result = result;
    request->data = request->buffer;
    request_ring_add(&uring->finished, request);
    uring->busy--;
    if (uring->bytes_per_file > 0 && (op->state == OP_READING || op->state == OP_CANCELLING)) {
        struct uring_queue *queue = queue_of(uring, op->handle);
        assert(queue->reading >= request->bytes);
        queue->reading -= request->bytes;
        queue->arrived += request->bytes;
    }
    if (request->held) {
        op->state = OP_ABANDONED;
        uring->abandoned++;
    } else {
        free_op(uring, op);
    }
}

static void start_read(struct uring *uring, struct uring_op *op)
{
    const struct read_request *request = op->request;
    const uint32_t bytes = request->bytes - op->from;
    const int code = uring->commands ? uring->commands->choose(uring, op) : 0;

    if (code) {
        finish_op(uring, op, code);
        return;
    }
    struct io_uring_sqe *sqe = get_sqe(uring);
    if (uring->commands) {
        uring->commands->prepare(uring, op, sqe);
    } else {
        uint8_t *buffer = (uint8_t *)request->buffer + op->from;
        const uint64_t offset = request->offset + op->from;
        const int fd = uring->fixed_files ? (int)(op->handle - uring->handles.all) : op->handle->fd;
        if (request->part_count > 0)
            io_uring_prep_readv(sqe, fd, request->parts, request->part_count, offset);
        else if (uring->fixed_buffers)
            io_uring_prep_read_fixed(sqe, fd, buffer, bytes, offset, (int)request->region);
        else
            io_uring_prep_read(sqe, fd, buffer, bytes, offset);
        sqe->rw_flags = uring->rw_flags;
    }
    sqe->flags = uring->read_flags;
    tag(sqe, FOR_OP, (uint64_t)(op - uring->ops));
    op->state = OP_READING;
    /* The kernel starts none of the reads that one system call submits before it has taken pages
     * for all of them (it plugs the block layer), which for large ones is long. Reads that it
     * refuses stay for the next uring_reap(), which reports errors. */
    if (uring->commands || uring->handles.flags & HANDLES_DIRECT)
        return;
    uring->prepared_bytes += bytes;
    if (uring->prepared_bytes < URING_GROUP_BYTES)
        return;
    uring->prepared_bytes = 0;
    uring->given_ns = clock_now_ns();
    io_uring_submit(&uring->ring);
}

static void begin_read(struct uring *uring, struct uring_op *op)
{
    if (uring->bytes_per_file > 0) {
        struct uring_queue *queue = queue_of(uring, op->handle);
        if (op->request->offset < queue->front)
            queue->arrived = 0;
        queue->front = op->request->offset;
        queue->reading += op->request->bytes;
    }
    op->state = OP_READING;
    start_read(uring, op);
}

static struct uring_op *dequeue(struct uring_queue *queue)
{
    struct uring_op *op = queue->first;

    assert(op && op->state == OP_WAITING);
    queue->first = op->next;
    op->next = NULL;
    return op;
}

/* The kernel starts with a small read-ahead and doubles it: give it reads at the same pace. */
static bool may_begin(const struct uring *uring, const struct uring_queue *queue,
                      const struct read_request *request)
{
    const uint64_t most = uring->bytes_per_file;

    return most == 0 || queue->reading == 0 ||
           queue->reading + request->bytes <= (queue->arrived < most ? queue->arrived : most);
}

/* Begin waiting requests in order of submission: the kernel reads ahead only of a file that it is
 * asked for from front to back. */
static void begin_waiting(struct uring *uring, struct uring_queue *queue)
{
    while (queue->first && may_begin(uring, queue, queue->first->request))
        begin_read(uring, dequeue(queue));
}

static void start_open(struct uring *uring, struct handle *handle)
{
    struct io_uring_sqe *sqe = get_sqe(uring);

    io_uring_prep_openat(sqe, AT_FDCWD, uring->config->catalog->shards[handle->shard].path,
                         handles_open_flags(&uring->handles), 0);
    tag(sqe, FOR_HANDLE, (uint64_t)(handle - uring->handles.all));
}

static int register_file(struct uring *uring, const struct handle *handle)
{
    if (!uring->fixed_files)
        return 0;
    int code = io_uring_register_files_update(&uring->ring, (unsigned)(handle - uring->handles.all),
                                              &handle->fd, 1);
    return code < 0 ? code : 0;
}

static void opened(struct uring *uring, struct handle *handle, int fd)
{
    struct uring_queue *queue = queue_of(uring, handle);
    const char *why = NULL;

    if (fd == -EINTR || fd == -EAGAIN) {
        start_open(uring, handle);
        return;
    }
    handle->opening = false;
    int code = fd < 0 ? fd : handle_adopt(&uring->handles, handle, fd);
    if (code == 0)
        code = register_file(uring, handle);
    if (code == 0 && uring->commands)
        code = uring->commands->check_file(uring, handle, &why);
    for (struct uring_op *op = queue->first; op; op = op->next)
        op->request->why = why;
    while (code && queue->first)
        finish_op(uring, dequeue(queue), code);
    begin_waiting(uring, queue);
    handles_release(&uring->handles, handle);
}

int uring_submit(void *state, struct read_request *request)
{
    struct uring *uring = state;
    struct uring_op *op = uring->free_ops;
    bool opens = false;
    int code = 0;

    if (uring->pool)
        return io_pool_submit(&uring->pool, request);
    if (!op && uring->busy == 0)
        return fail(ETIMEDOUT, "storage not responding: the last %u reads timed out",
                    uring->abandoned);
    struct handle *handle = op ? handles_acquire(&uring->handles, request->shard) : NULL;
    if (!handle)
        return -EAGAIN;
    uring->free_ops = op->next;
    uring->busy++;
    *op = (struct uring_op){.request = request, .handle = handle};
    if (uring->submit_ns == 0) /* one time for all reads until the next reap */
        uring->submit_ns = clock_coarse_ns();
    if (uring->commands || !handle_is_fresh_at(handle, uring->submit_ns)) {
        const bool is_closed = !handle->opened;
        opens = is_closed && uring->open_in_ring;
        if (!opens) {
            code = handle_open(&uring->handles, handle);
            if (code == 0 && is_closed)
                code = register_file(uring, handle);
            if (code == 0 && uring->commands)
                code = uring->commands->check_file(uring, handle, &request->why);
        }
    }
    if (code) {
        finish_op(uring, op, code);
        return 0;
    }
    struct uring_queue *queue = queue_of(uring, handle);
    if (!opens && !queue->first && may_begin(uring, queue, request)) {
        uring->given_ns = 0;
        begin_read(uring, op);
        request->submit_ns = uring->given_ns;
        return uring->given_ns > 0;
    }
    op->state = OP_WAITING;
    *(queue->first ? &queue->last->next : &queue->first) = op;
    queue->last = op;
    if (opens && !handle->opening) {
        handle->opening = true;
        queue->arrived = 0;
        handles_acquire(&uring->handles, handle->shard); /* until it is open */
        start_open(uring, handle);
    }
    return 0;
}

/* A read has completed, perhaps short or with an error. */
static void continue_read(struct uring *uring, struct uring_op *op, int result)
{
    struct read_request *request = op->request;

    if (uring->commands)
        result = result ? uring->commands->judge(result, &request->why) : (int)op->command_bytes;
    if (result == -ECANCELED || (result == -EINTR && op->state == OP_CANCELLING)) {
        finish_op(uring, op, -ETIMEDOUT);
    } else if (result == -EAGAIN || result == -EINTR) {
        start_read(uring, op);
    } else if (result < 0) {
        finish_op(uring, op, result);
    } else if (op->from + (uint32_t)result >= request->needed) {
        finish_op(uring, op, (int)(op->from + (uint32_t)result));
    } else if (uring->commands) {
        op->from += (uint32_t)result;
        start_read(uring, op);
    } else {
        int64_t from = handle_resume(&uring->handles, op->handle, request->offset,
                                     op->from + (uint32_t)result, ++request->short_reads);
        if (from < 0) {
            finish_op(uring, op, (int)from);
            return;
        }
        if (request->part_count > 0)
            read_parts_skip(&request->parts, &request->part_count, (uint64_t)from - op->from);
        op->from = (uint32_t)from;
        start_read(uring, op);
    }
}

static void complete(struct uring *uring, uint64_t user_data, int result)
{
    const uint32_t index = (uint32_t)user_data;
    struct uring_op *op;

    switch (user_data >> FOR_SHIFT) {
    case FOR_HANDLE:
        opened(uring, &uring->handles.all[index], result);
        break;
    case FOR_OP:
        op = &uring->ops[index];
        if (op->state == OP_ABANDONED) {
            assert(uring->abandoned > 0);
            uring->abandoned--;
            free_op(uring, op);
        } else {
            struct uring_queue *queue = queue_of(uring, op->handle);
            continue_read(uring, op, result);
            if (queue->first)
                begin_waiting(uring, queue);
        }
        break;
    case FOR_WAKER:
        waker_silence(&uring->waker);
        uring->waker_is_polled = false;
        break;
    default: /* the result of a cancel: the read completes by itself */
        break;
    }
}

/* First cancel a late read; if it has not completed by the next check, abandon it. */
static void look_for_late(struct uring *uring, uint64_t now_ns)
{
    const uint64_t timeout_ns = uring->config->timeout_ns,
                   interval_ns = timeout_ns / LOOKS_PER_TIMEOUT + 1;

    if (now_ns < uring->look_ns)
        return;
    uring->look_ns = now_ns + interval_ns;
    for (uint32_t i = 0; i < uring->config->depth; i++) {
        struct uring_op *op = &uring->ops[i], *before = NULL;
        if (op->state == OP_FREE || op->state == OP_ABANDONED)
            continue;
        const uint64_t age_ns = now_ns - op->request->submit_ns;
        struct uring_queue *queue = queue_of(uring, op->handle);
        if (op->state == OP_WAITING && op->handle->opened && age_ns > interval_ns) {
            /* It waits for reads that do not end, so it is late, too. */
            begin_read(uring, dequeue(queue));
        } else if (age_ns <= timeout_ns) {
            continue;
        } else if (op->state == OP_WAITING) {
            for (struct uring_op *other = queue->first; other != op; other = other->next)
                before = other;
            *(before ? &before->next : &queue->first) = op->next;
            if (queue->last == op)
                queue->last = before;
            finish_op(uring, op, -ETIMEDOUT);
        } else if (op->state == OP_READING) {
            struct io_uring_sqe *sqe = get_sqe(uring);
            io_uring_prep_rw(IORING_OP_ASYNC_CANCEL, sqe, -1, NULL, 0, 0);
            sqe->addr = (uint64_t)(op - uring->ops);
            tag(sqe, FOR_NOBODY, 0);
            op->state = OP_CANCELLING;
        } else {
            op->request->held = true;
            finish_op(uring, op, -ETIMEDOUT);
        }
    }
}

int uring_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct uring *uring = state;
    const bool polls = uring->setup_flags & IORING_SETUP_IOPOLL;
    const uint64_t look_ns = uring->pool ? 0 : uring->config->timeout_ns / LOOKS_PER_TIMEOUT + 1;
    uint64_t now_ns = clock_now_ns();
    const uint64_t until_ns = wait_ns < UINT64_MAX - now_ns ? now_ns + wait_ns : UINT64_MAX;

    if (uring->pool)
        return io_pool_reap(&uring->pool, done, max, wait_ns);
    uring->submit_ns = 0;
    for (;;) {
        struct io_uring_cqe *cqe;
        unsigned head, completed = 0;
        uint64_t left_ns = until_ns - now_ns;
        if (uring->config->timeout_ns && left_ns > look_ns)
            left_ns = look_ns;
        /* Let a wait end when the waker becomes readable. An iopoll ring takes only reads and never
         * waits in the kernel. */
        if (left_ns > 0 && !uring->waker_is_polled && !polls) {
            struct io_uring_sqe *sqe = get_sqe(uring);
            io_uring_prep_poll_add(sqe, uring->waker.fd, POLLIN);
            tag(sqe, FOR_WAKER, 0);
            uring->waker_is_polled = true;
        }
        const bool asked = waker_was_asked(&uring->waker);
        const unsigned flags = IO_URING_READ_ONCE(*uring->ring.sq.kflags);
        if (asked || polls || uring->finished.count > 0 || io_uring_cq_ready(&uring->ring) > 0)
            left_ns = 0;
        /* Enter the kernel once: to submit, to run deferred completions, and to wait if nothing is
         * done. */
        if (left_ns > 0 || polls || io_uring_sq_ready(&uring->ring) > 0 ||
            flags & (SQ_CQ_OVERFLOW | SQ_TASKRUN)) {
            uring->prepared_bytes = 0;
            const int code = uring_enter(&uring->ring, left_ns);
            if (code)
                return fail(code, "io_uring_enter: %s", fail_errno_text(code));
        }
        io_uring_for_each_cqe(&uring->ring, head, cqe)
        {
            complete(uring, cqe->user_data, cqe->res);
            completed++;
        }
        io_uring_cq_advance(&uring->ring, completed);
        now_ns = clock_now_ns();
        if (uring->config->timeout_ns)
            look_for_late(uring, now_ns);
        if (uring->finished.count > 0 || now_ns >= until_ns || asked ||
            waker_was_asked(&uring->waker))
            break;
    }
    return (int)request_ring_take(&uring->finished, done, max);
}

void uring_wake(void *state)
{
    struct uring *uring = state;

    if (uring->pool)
        io_pool_wake(&uring->pool);
    else
        waker_wake(&uring->waker);
}

/* ---- life ---- */

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
        if ((way & SETUP_DEFER_TASKRUN) && !URING_CAN_DEFER)
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

/* Set up the ring without the features that this kernel or container refuses. Fills traits' engine
 * and notice. Returns 0, or a negative errno without a reason if io_uring itself is refused. */
static int set_up(struct uring *uring, const struct uring_settings *settings,
                  struct reader_traits *traits, int probe)
{
    const struct reader_config *config = uring->config;
    const uint32_t capacity = uring->handles.capacity;
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

const char *uring_refusal_text(int refusal)
{
    switch (refusal) {
    case -EPERM:
        return "is refused here (sysctl kernel.io_uring_disabled, or a container)";
    case -ENOSYS:
        return "is refused here (not in this kernel)";
    case -ENOMEM:
        return "is refused here (no memory: on old kernels RLIMIT_MEMLOCK, ulimit -l)";
    case -ENOTSUP:
        return "gains nothing here (FUSE; uring:fuse=yes uses it anyway)";
    default:
        return "is refused here";
    }
}

static int refuse_ring(int refusal)
{
    return fail(-refusal, "io_uring %s: %s; --reader auto or pread reads without it",
                uring_refusal_text(refusal), fail_errno_text(refusal));
}

static int uring_usable(void)
{
    struct io_uring ring;
    unsigned flags;
    const int refusal = uring_make_ring(&ring, 1, 0, &flags);

    if (refusal)
        return refuse_ring(refusal);
    io_uring_queue_exit(&ring);
    return 0;
}

int uring_create_tables(struct uring *uring)
{
    uint32_t depth = uring->config->depth;

    uring->ops = memory_array(depth, sizeof *uring->ops);
    uring->queues = memory_array(uring->handles.capacity, sizeof *uring->queues);
    if (request_ring_open(&uring->finished, depth) || !uring->ops || !uring->queues)
        return -ENOMEM;
    for (uint32_t i = depth; i-- > 0;) {
        uring->ops[i].next = uring->free_ops;
        uring->free_ops = &uring->ops[i];
    }
    return 0;
}

int uring_begin(struct uring *uring, const struct reader_config *config, uint32_t flags)
{
    uring->config = config;
    int code = waker_open(&uring->waker);
    if (code)
        return code;
    if (config->depth > DEPTH_MOST)
        return fail(EINVAL, "queue depth %u is too large for io_uring: at most %d", config->depth,
                    DEPTH_MOST);
    return handles_create(&uring->handles, config->catalog, flags, config->depth, 0);
}

static int uring_open(void *state, const void *chosen, const struct reader_config *config,
                      struct reader_traits *traits)
{
    const struct uring_settings *settings = chosen;
    struct uring *uring = state;
    int code = uring_begin(uring, config, settings->direct ? HANDLES_DIRECT : 0U);

    if (code)
        return code;
    /* The kernel reads ahead when a read meets a mark that it set in the page cache, once all
     * before the mark has arrived. Reads that begin more than a whole read-ahead further on miss
     * the mark: the kernel takes them for random reads, and reads single pages. With less than a
     * whole read-ahead in flight reading is slower, since the mark is met later. */
    const bool may_read_ahead =
        config->in_order && !settings->direct && settings->readahead != READAHEAD_NO;
    const int probe = open_probe(uring);
    const uint64_t bytes = may_read_ahead && probe >= 0 ? read_ahead_bytes("/sys", probe) : 0;
    if (bytes >= READ_AHEAD_ENOUGH)
        uring->bytes_per_file = bytes;
    else if (settings->readahead != READAHEAD_YES)
        uring->handles.flags |= HANDLES_RANDOM;
    traits->alignment = uring->handles.alignment;
    traits->scatters = !settings->direct;
    traits->batches = true;
    const int refusal = set_up(uring, settings, traits, probe);
    if (probe >= 0)
        close(probe);
    if (refusal == 0)
        return uring_create_tables(uring);
    if (!config->falls_back)
        return refuse_ring(refusal);
    const struct io_pool_settings pool_settings = {
        .config = config, .flags = uring->handles.flags, .work = pread_task};
    handles_destroy(&uring->handles);
    traits->batches = false;
    code = io_pool_create(&uring->pool, &pool_settings, &traits->alignment);
    if (code)
        return code;
    snprintf(traits->engine, sizeof traits->engine, "preadv2 on %u threads%s (no io_uring)",
             io_pool_threads(uring->pool), settings->direct ? ", O_DIRECT" : "");
    snprintf(traits->notice, sizeof traits->notice, "io_uring %s: %s; %u threads read instead",
             uring_refusal_text(refusal), fail_errno_text(refusal), io_pool_threads(uring->pool));
    return 0;
}

void uring_close(void *state)
{
    struct uring *uring = state;

    io_pool_destroy(uring->pool);
    if (uring->ring_is_up)
        io_uring_queue_exit(&uring->ring);
    waker_close(&uring->waker);
    free(uring->ops);
    free(uring->finished.entries);
    free(uring->queues);
    handles_destroy(&uring->handles);
}

/* ---- what the io_uring of this machine offers: each thing is tried on a ring of its own ---- */

enum { ENTRIES = 256, BUFFER_BYTES = 64 * 1024 };

static int try_flags(unsigned flags)
{
    struct io_uring ring;
    struct io_uring_params params = {.flags = flags | IORING_SETUP_CLAMP};
    const int code = io_uring_queue_init_params(ENTRIES, &ring, &params);

    if (code == 0)
        io_uring_queue_exit(&ring);
    return code;
}

static void uring_offers(reader_tell tell, void *context)
{
    struct iovec region = {.iov_base = malloc(BUFFER_BYTES), .iov_len = BUFFER_BYTES};
    /* Bounded, for files, on each NUMA node; unbounded; 0: only ask. */
    uint32_t workers[2] = {0, 0};
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
         URING_CAN_DEFER ? try_flags(SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN) : -ENOSYS,
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
        {"workers", asked, threads, "the limit is unknown: Linux 5.15 and later report it"},
    };
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        tell(context, &offers[i]);
}

const struct reader_ops reader_uring = {
    .plugin = {.name = "uring",
               .summary = "io_uring: many reads in flight from one thread",
               .options = uring_options,
               .settings_size = sizeof(struct uring_settings),
               .state_size = sizeof(struct uring),
               .usable = uring_usable},
    .falls_back = true,
    .remedy = "see sysctl kernel.io_uring_disabled and the container's seccomp profile",
    .offers = uring_offers,
    .open = uring_open,
    .close = uring_close,
    .submit = uring_submit,
    .reap = uring_reap,
    .wake = uring_wake,
};
