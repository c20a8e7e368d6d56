/* SPDX-License-Identifier: Apache-2.0
 * Reads files of ext4 and XFS by commands to the NVMe namespace that holds them (NVMe passthrough,
 * Linux 5.19): neither the file system nor the block layer is on the way. For who owns the disk.
 *
 * FIEMAP says where a file's bytes are (readers/nvme_disk.h). It may change, so it is asked again
 * whenever the file is checked, when it is closed, and after the last read; a file that moved ends
 * the run. Before the first read a block is compared with the same block read through the file
 * system. Ring, files, time-outs and waits are the reader uring's. */
#include "readers/uring.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "readers/nvme_disk.h"
#include "readers/plugins.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { OP_URING_CMD = 46, SQE_BYTES = 128, SQE_COMMAND_AT = 48 }; /* uapi/linux/io_uring.h */
enum { EXT4_MAGIC = 0xef53, XFS_MAGIC = 0x58465342 };             /* uapi/linux/magic.h */

struct nvme_settings {
    bool poll;
};

#define FIELD(field) offsetof(struct nvme_settings, field)
static const struct option_spec nvme_options[] = {
    {"poll", 0, OPTION_FLAG, FIELD(poll),
     .summary = "poll for completions (needs nvme.poll_queues=N on the kernel's command line)"},
    {0},
};

struct nvme_reader {
    struct uring uring; /* first: uring_submit() and others take it as their state */
    struct nvme_disk disk;
    dev_t device; /* of all files */
    int fd;       /* of the disk; -1: not open */
    bool is_registered;
    const char *moved; /* path of a file that moved before it was closed; NULL: none */
};

/* handle->remote. */
struct nvme_file {
    struct disk_map map;
    uint64_t checked_ns; /* handle->checked_ns when the map was compared */
};

static struct nvme_reader *reader_with(const struct uring *uring)
{
    return (struct nvme_reader *)(uintptr_t)uring;
}

/* ---- files ---- */

static bool has_moved(const struct nvme_reader *reader, const struct handle *handle)
{
    const struct nvme_file *file = handle->remote;
    struct disk_limits limits = {.disk_bytes = reader->disk.bytes,
                                 .block_bytes = reader->disk.lba_bytes};
    struct disk_map now;

    const bool same = disk_map_read(&now, handle->fd, handle->bytes, false, &limits) == 0 &&
                      disk_map_equal(&now, &file->map);
    disk_map_release(&now);
    return !same;
}

static int nvme_check_file(struct uring *uring, struct handle *handle, const char **why)
{
    const struct nvme_reader *reader = reader_with(uring);
    struct disk_limits limits = {.disk_bytes = reader->disk.bytes,
                                 .block_bytes = reader->disk.lba_bytes};
    struct nvme_file *file = handle->remote;
    struct fsxattr attributes;
    struct statfs system;
    struct stat status;
    int flags;

    if (file && file->checked_ns == handle->checked_ns)
        return 0;
    if (file && has_moved(reader, handle)) {
        *why = "the file system moved it on the disk while it was read";
        return -ESTALE;
    }
    if (file) {
        file->checked_ns = handle->checked_ns;
        return 0;
    }
    *why = NULL;
    if (fstat(handle->fd, &status) || status.st_dev != reader->device)
        *why = "it is on another file system than the first file";
    else if (fstatfs(handle->fd, &system) ||
             (system.f_type != EXT4_MAGIC && system.f_type != XFS_MAGIC))
        *why = "the reader nvme knows where files are on ext4 and XFS only";
    else if (ioctl(handle->fd, FS_IOC_FSGETXATTR, &attributes) == 0 &&
             attributes.fsx_xflags & FS_XFLAG_REALTIME)
        *why = "it is on the realtime device of XFS";
    else if (ioctl(handle->fd, FS_IOC_GETFLAGS, &flags) == 0 && flags & FS_JOURNAL_DATA_FL)
        *why = "its data is written to the journal first (chattr -j)";
    if (*why)
        return -EOPNOTSUPP;
    file = memory_zeroed(sizeof *file);
    int code = file ? disk_map_read(&file->map, handle->fd, handle->bytes, true, &limits) : -ENOMEM;
    *why = limits.why;
    if (code) {
        free(file);
        return code;
    }
    file->checked_ns = handle->checked_ns;
    handle->remote = file;
    return 0;
}

/* The handle is about to be closed. */
static void forget_file(void *owner, struct handle *handle)
{
    struct nvme_reader *reader = owner;
    struct nvme_file *file = handle->remote;

    if (has_moved(reader, handle))
        reader->moved = handle->path;
    disk_map_release(&file->map);
    free(file);
}

static int nvme_settle(void *state)
{
    struct nvme_reader *reader = state;
    struct handles *handles = &reader->uring.handles;

    for (uint32_t i = 0; i < handles->capacity && !reader->moved; i++) {
        struct handle *handle = &handles->all[i];
        if (!handle->remote)
            continue;
        handle->checked_ns = 0; /* look now */
        if (handle_open(handles, handle) || has_moved(reader, handle))
            reader->moved = handle->path;
    }
    return reader->moved ? fail(ESTALE,
                                "%s: the file was written to, replaced or moved on the disk while "
                                "it was read: what was read may be another file's",
                                reader->moved)
                         : 0;
}

/* ---- commands ---- */

static int nvme_choose(struct uring *uring, struct uring_op *op)
{
    const struct nvme_reader *reader = reader_with(uring);
    const struct nvme_file *file = op->handle->remote;
    const uint64_t offset = op->request->offset + op->from;
    const uint64_t end = bytes_align_up(op->handle->bytes, reader->disk.lba_bytes);
    uint64_t bytes = op->request->bytes - op->from;

    if (bytes > reader->disk.most_bytes)
        bytes = reader->disk.most_bytes;
    if (bytes > end - offset)
        bytes = end - offset;
    op->command_bytes =
        offset < end ? (uint32_t)disk_map_find(&file->map, offset, bytes, &op->disk_offset) : 0;
    return op->command_bytes ? 0 : -ESTALE;
}

static void prepare_command(const struct nvme_reader *reader, struct io_uring_sqe *sqe,
                            uint64_t disk_offset, uint32_t bytes, void *memory)
{
    const struct nvme_command command =
        nvme_read_command(&reader->disk, disk_offset, bytes, memory);
    uint8_t *entry = (uint8_t *)sqe;

    memset(entry, 0, SQE_BYTES);
    sqe->opcode = OP_URING_CMD;
    sqe->fd = reader->is_registered ? 0 : reader->fd;
    sqe->flags = reader->uring.read_flags;
    sqe->off = nvme_command_code; /* cmd_op */
    memcpy(entry + SQE_COMMAND_AT, &command, sizeof command);
}

static void nvme_prepare(struct uring *uring, const struct uring_op *op, struct io_uring_sqe *sqe)
{
    prepare_command(reader_with(uring), sqe, op->disk_offset, op->command_bytes,
                    (uint8_t *)op->request->buffer + op->from);
}

static const struct uring_commands commands = {.check_file = nvme_check_file,
                                               .choose = nvme_choose,
                                               .prepare = nvme_prepare,
                                               .judge = nvme_command_error};

/* ---- life ---- */

/* Read the first block of the file by a command and through the file system, and compare. */
static int compare_block(struct nvme_reader *reader, struct handle *handle, uint8_t *memory)
{
    struct io_uring *ring = &reader->uring.ring;
    const struct nvme_file *file = handle->remote;
    const uint32_t bytes = reader->disk.lba_bytes, half = HANDLES_ALIGNMENT_MOST;
    const char *why = NULL;
    struct io_uring_cqe *cqe;

    prepare_command(reader, io_uring_get_sqe(ring), file->map.extents[0].disk_offset, bytes,
                    memory);
    int code = io_uring_submit(ring);
    if (code >= 0)
        code = io_uring_wait_cqe(ring, &cqe);
    if (code == 0) {
        code = nvme_command_error(cqe->res, &why);
        io_uring_cqe_seen(ring, cqe);
    }
    if (code == -EACCES)
        return fail(EACCES,
                    "/dev/%s: before Linux 6.2 the kernel lets only root send commands to a disk",
                    reader->disk.name);
    if (code)
        return fail(code, "/dev/%s: %s", reader->disk.name, why ? why : fail_errno_text(code));
    const ssize_t got = pread(handle->fd, memory + half, half, 0);
    if (got < 0)
        return fail(errno, "%s: %s", handle->path, fail_errno_text(errno));
    if (memcmp(memory, memory + half, (size_t)got < bytes ? (size_t)got : bytes) != 0)
        return fail(EIO, "%s: /dev/%s holds other bytes than the file: use --reader uring",
                    handle->path, reader->disk.name);
    return 0;
}

static int nvme_open(void *state, const void *chosen, const struct reader_config *config,
                     struct reader_traits *traits)
{
    const bool poll = ((const struct nvme_settings *)chosen)->poll;
    const struct catalog *catalog = config->catalog;
    const char *path = catalog->shard_count ? catalog->shards[0].path : catalog->root;
    struct nvme_reader *reader = state;
    struct uring *uring = &reader->uring;
    const char *why = NULL;
    struct stat status;
    uint32_t shard = 0;
    char most[32];

    reader->fd = uring->waker.fd = -1;
    if (stat(path, &status))
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    reader->device = status.st_dev;
    int code = nvme_disk_find(&reader->disk, "/sys", status.st_dev, path);
    if (code)
        return code;
    reader->fd = nvme_disk_open(&reader->disk);
    code =
        reader->fd < 0 ? reader->fd : uring_begin(uring, config, HANDLES_DIRECT | HANDLES_RANDOM);
    if (code)
        return code;
    uring->handles.forget = forget_file;
    uring->handles.owner = reader;
    traits->batches = true;
    traits->alignment = uring->handles.alignment > reader->disk.lba_bytes ? uring->handles.alignment
                                                                          : reader->disk.lba_bytes;
    if (poll && !reader->disk.polls)
        return fail(ENOTSUP,
                    "nvme:poll=yes: %s has no polled queues: nvme.poll_queues=N on the kernel's "
                    "command line",
                    reader->disk.name);
    code = uring_make_ring(&uring->ring, 4 * config->depth,
                           SETUP_SQE128 | SETUP_CQE32 | (poll ? IORING_SETUP_IOPOLL : 0U),
                           &uring->setup_flags);
    if (code)
        return fail(code, "io_uring for NVMe commands (Linux 5.19) %s: %s",
                    uring_refusal_text(code), fail_errno_text(code));
    uring->ring_is_up = true;
    uring->open_in_ring = !poll;
    uring->commands = &commands;
    reader->is_registered = io_uring_register_files(&uring->ring, &reader->fd, 1) == 0;
    if (reader->is_registered)
        uring->read_flags = IOSQE_FIXED_FILE;
    while (shard < catalog->shard_count && catalog->shards[shard].bytes == 0)
        shard++;
    struct handle *handle =
        shard < catalog->shard_count ? handles_acquire(&uring->handles, shard) : NULL;
    uint8_t *memory = aligned_alloc(4096, (size_t)2 * HANDLES_ALIGNMENT_MOST);
    if (!memory)
        code = fail(ENOMEM, "out of memory");
    if (code == 0 && handle) { /* try a command */
        code = handle_open(&uring->handles, handle);
        if (code == 0)
            code = nvme_check_file(uring, handle, &why);
        code = code == 0 ? compare_block(reader, handle, memory)
                         : fail(code, "%s: %s", handle->path, why ? why : fail_errno_text(code));
    }
    if (handle)
        handles_release(&uring->handles, handle);
    free(memory);
    if (code)
        return code;
    snprintf(traits->engine, sizeof traits->engine,
             "NVMe passthrough to %s%s%s, commands of at most %s", reader->disk.name,
             uring->setup_flags & SETUP_DEFER_TASKRUN ? ", deferred completions" : "",
             poll ? ", IOPOLL" : "", bytes_text(reader->disk.most_bytes, most, sizeof most));
    return uring_create_tables(uring);
}

static void nvme_close(void *state)
{
    struct nvme_reader *reader = state;

    uring_close(&reader->uring);
    if (reader->fd >= 0)
        close(reader->fd);
}

const struct reader_ops reader_nvme = {
    .plugin = {.name = "nvme",
               .summary = "commands to the NVMe disk itself, past file system and block layer",
               .options = nvme_options,
               .settings_size = sizeof(struct nvme_settings),
               .state_size = sizeof(struct nvme_reader),
               .usable = nvme_disk_any,
               .devices = "/dev/ng*"},
    .bypasses_cache = true,
    .is_passthrough = true,
    .open = nvme_open,
    .close = nvme_close,
    .submit = uring_submit,
    .reap = uring_reap,
    .settle = nvme_settle,
    .wake = uring_wake,
};
