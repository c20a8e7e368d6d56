/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fault_fs.h"
#include "tests/unit/mounts.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_MOST = 1 << 17, MESSAGE_BYTES = READ_MOST + 4096, PENDING_MOST = 2048 };
enum { FIRST_FILE = FUSE_ROOT_ID + 1, TICK_MS = 5, MTIME_S = 1000000000 };

/* A read with a delayed reply. */
struct pending {
    uint64_t unique, node, offset, due_ns;
    uint32_t bytes;
    bool interrupted;
};

/* In memory shared with the serving process, which is separate and ends with the test: otherwise a
 * test killed while the kernel waits for a reply would never end. */
struct fault_fs {
    int fd;
    char folder[256];
    uint32_t file_count;
    uint64_t file_bytes;
    const uint8_t *image; /* the server has its own copy, like everything else */
    bool is_async;
    pid_t server;
    pthread_mutex_t lock; /* of knobs and reads */
    struct fault_knobs knobs;
    uint64_t reads;
    /* owned by the server */
    struct pending pending[PENDING_MOST];
    uint32_t pending_count;
    _Alignas(8) uint8_t message[MESSAGE_BYTES];
    uint8_t content[READ_MOST];
};

uint8_t fault_fs_byte(uint32_t file, uint64_t offset)
{
    return (uint8_t)(random_mix(offset / 8 + ((uint64_t)file << 40)) >> offset % 8 * 8);
}

static void reply(struct fault_fs *fs, uint64_t unique, int error, const void *body, size_t bytes)
{
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + bytes), .error = error, .unique = unique};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)(uintptr_t)body, bytes}};

    /* Fails if the caller is gone; that is harmless. */
    if (writev(fs->fd, parts, bytes ? 2 : 1) < 0)
        return;
}

static struct fuse_attr attributes(const struct fault_fs *fs, uint64_t node)
{
    bool is_root = node == FUSE_ROOT_ID;

    return (struct fuse_attr){
        .ino = node,
        .size = is_root ? 0 : fs->file_bytes,
        .mode = is_root ? S_IFDIR | 0755 : S_IFREG | 0444,
        .nlink = 1,
        .mtime = MTIME_S,
        .blksize = 4096,
    };
}

static void do_lookup(struct fault_fs *fs, const struct fuse_in_header *in, const char *name)
{
    unsigned long file = strtoul(name, NULL, 10);
    struct fuse_entry_out entry = {
        .nodeid = FIRST_FILE + file, .attr_valid = 3600, .entry_valid = 3600};

    if (file >= fs->file_count || name[0] < '0' || name[0] > '9') {
        reply(fs, in->unique, -ENOENT, NULL, 0);
        return;
    }
    entry.attr = attributes(fs, entry.nodeid);
    reply(fs, in->unique, 0, &entry, sizeof entry);
}

static void answer_read(struct fault_fs *fs, const struct pending *read)
{
    struct fault_knobs *knobs = &fs->knobs;
    uint64_t left = read->offset < fs->file_bytes ? fs->file_bytes - read->offset : 0;
    uint32_t bytes = read->bytes < left ? read->bytes : (uint32_t)left;

    fs->reads++;
    if ((knobs->eio_every && fs->reads % knobs->eio_every == 0) ||
        (read->offset < knobs->eio_end && read->offset + bytes > knobs->eio_begin)) {
        reply(fs, read->unique, -EIO, NULL, 0);
        return;
    }
    if (knobs->short_every && fs->reads % knobs->short_every == 0 && bytes > 1)
        bytes /= 2;
    for (uint32_t i = 0; i < bytes && !fs->image; i++)
        fs->content[i] = fault_fs_byte((uint32_t)(read->node - FIRST_FILE), read->offset + i);
    reply(fs, read->unique, 0, fs->image ? fs->image + read->offset : fs->content, bytes);
}

static void do_read(struct fault_fs *fs, const struct fuse_in_header *in,
                    const struct fuse_read_in *read)
{
    if (fs->pending_count == PENDING_MOST || read->size > READ_MOST) {
        reply(fs, in->unique, -ENOMEM, NULL, 0);
        return;
    }
    fs->pending[fs->pending_count++] = (struct pending){
        .unique = in->unique,
        .node = in->nodeid,
        .offset = read->offset,
        .bytes = read->size,
        .due_ns = clock_now_ns() + fs->knobs.delay_ns,
    };
}

static void do_interrupt(struct fault_fs *fs, const struct fuse_interrupt_in *interrupt)
{
    for (uint32_t i = 0; i < fs->pending_count; i++)
        if (fs->pending[i].unique == interrupt->unique)
            fs->pending[i].interrupted = true;
}

static void do_init(struct fault_fs *fs, const struct fuse_in_header *in,
                    const struct fuse_init_in *init)
{
    struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION,
        .minor = init->minor < FUSE_KERNEL_MINOR_VERSION ? init->minor : FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = READ_MOST,
        .flags = init->flags & (fs->is_async ? FUSE_ASYNC_READ | FUSE_ASYNC_DIO : 0U),
        .max_background = 1024,
        .congestion_threshold = 1024,
        .max_write = 4096,
        .time_gran = 1,
    };

    reply(fs, in->unique, 0, &out, sizeof out);
}

static void serve_message(struct fault_fs *fs)
{
    const struct fuse_in_header *in = (const void *)fs->message;
    const void *body = in + 1;
    struct fuse_attr_out attr = {.attr_valid = 3600};
    struct fuse_statfs_out space = {.st = {.bsize = 4096, .namelen = 255}};
    struct fuse_open_out opened = {.open_flags = fs->knobs.cached ? 0 : FOPEN_DIRECT_IO};

    switch (in->opcode) {
    case FUSE_INIT:
        do_init(fs, in, body);
        break;
    case FUSE_LOOKUP:
        do_lookup(fs, in, body);
        break;
    case FUSE_GETATTR:
        attr.attr = attributes(fs, in->nodeid);
        reply(fs, in->unique, 0, &attr, sizeof attr);
        break;
    case FUSE_STATFS:
        reply(fs, in->unique, 0, &space, sizeof space);
        break;
    case FUSE_OPEN:
        reply(fs, in->unique, 0, &opened, sizeof opened);
        break;
    case FUSE_READ:
        do_read(fs, in, body);
        break;
    case FUSE_INTERRUPT:
        do_interrupt(fs, body);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        break;
    case FUSE_RELEASE:
    case FUSE_FLUSH:
        reply(fs, in->unique, 0, NULL, 0);
        break;
    default:
        reply(fs, in->unique, -ENOSYS, NULL, 0);
    }
}

static void serve_pending(struct fault_fs *fs)
{
    uint64_t now_ns = clock_now_ns();
    uint32_t kept = 0;

    for (uint32_t i = 0; i < fs->pending_count; i++) {
        struct pending *read = &fs->pending[i];
        if (read->interrupted && fs->knobs.obeys_interrupts)
            reply(fs, read->unique, -EINTR, NULL, 0);
        else if (fs->knobs.stuck || read->due_ns > now_ns)
            fs->pending[kept++] = *read;
        else
            answer_read(fs, read);
    }
    fs->pending_count = kept;
}

static void serve(struct fault_fs *fs)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = fs->fd, .events = POLLIN};
        poll(&poll_fd, 1, TICK_MS);
        ssize_t bytes = read(fs->fd, fs->message, sizeof fs->message);
        if (bytes < 0 && errno == ENODEV)
            _exit(0);
        pthread_mutex_lock(&fs->lock);
        if (bytes > 0)
            serve_message(fs);
        serve_pending(fs);
        pthread_mutex_unlock(&fs->lock);
    }
}

static int start_server(struct fault_fs *fs)
{
    pthread_mutexattr_t shared;

    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&fs->lock, &shared);
    pthread_mutexattr_destroy(&shared);
    pid_t server = fork();
    if (server < 0)
        return fail(errno, "fork: %s", fail_errno_text(errno));
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(fs);
    }
    fs->server = server;
    close(fs->fd); /* the file system ends with the server */
    return 0;
}

int fault_fs_mount(struct fault_fs **mounted, const char *folder, uint32_t file_count,
                   uint64_t file_bytes, const void *image, bool is_async)
{
    struct fault_fs *fs =
        mmap(NULL, sizeof *fs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char options[128];

    *mounted = NULL;
    if (fs == MAP_FAILED)
        return fail(errno, "out of memory");
    fs->file_count = file_count;
    fs->file_bytes = file_bytes;
    fs->image = image;
    fs->is_async = is_async;
    snprintf(fs->folder, sizeof fs->folder, "%s", folder);
    fs->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
             fs->fd);
    if (fs->fd < 0 || !own_mounts() ||
        mount("iobench", folder, "fuse.iobench", MS_NOSUID | MS_NODEV, options)) {
        int code = fail(errno, "cannot mount a FUSE file system: %s", fail_errno_text(errno));
        if (fs->fd >= 0)
            close(fs->fd);
        munmap(fs, sizeof *fs);
        return code;
    }
    *mounted = fs;
    return start_server(fs);
}

void fault_fs_set(struct fault_fs *fs, const struct fault_knobs *knobs)
{
    pthread_mutex_lock(&fs->lock);
    fs->knobs = *knobs;
    fs->reads = 0;
    pthread_mutex_unlock(&fs->lock);
}

void fault_fs_await_threads(void)
{
    struct stat tasks;

    /* A folder has one link for itself, one for its name, and one for each subfolder. */
    while (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3)
        clock_sleep_ns(UINT64_C(1000000) * TICK_MS);
}

void fault_fs_unmount(struct fault_fs *fs)
{
    if (!fs)
        return;
    kill(fs->server, SIGKILL); /* ends reads that still wait */
    waitpid(fs->server, NULL, 0);
    umount2(fs->folder, MNT_DETACH);
    munmap(fs, sizeof *fs);
}
