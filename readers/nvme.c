/* SPDX-License-Identifier: Apache-2.0
 * Reads files of ext4 and XFS by commands to the NVMe namespace that holds them (NVMe passthrough,
 * Linux 5.19): neither the file system nor the block layer is on the way. For users who own the
 * disk.
 *
 * FIEMAP says where a file's bytes are (disk_map_read()). It may change, so it is asked again
 * whenever the file is checked, when it is closed, and after the last read; a file that moved ends
 * the run. Before the first read a block is compared with the same block read through the file
 * system. Ring, files, time-outs and waits are the reader uring's. */
#include "readers/nvme.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/option.h"
#include "readers/plugins.h"
#include "readers/uring.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512, PAGE_BYTES = 4096, LBA_MOST_BYTES = 65536, LBAS_MOST = 65536 };
enum { COMMAND_MOST_BYTES = 1 << 30 };
enum { OPCODE_READ = 0x02 }; /* the only one */

const uint32_t nvme_command_code = _IOWR('N', 0x80, struct nvme_command);

static uint64_t read_number(const char *folder, const char *name)
{
    char text[32];

    return file_peek(text, sizeof text, "%s/%s", folder, name) ? strtoull(text, NULL, 10) : 0;
}

/* Where a link of sysfs leads; "" if nowhere. */
static const char *resolved(char real[PATH_MAX], const char *folder, const char *name)
{
    char *path = file_format_path("%s/%s", folder, name);

    if (!path || !realpath(path, real))
        real[0] = '\0';
    free(path);
    return real;
}

int nvme_disk_find(struct nvme_disk *disk, const char *sys, dev_t device, const char *path)
{
    char block[PATH_MAX], of_block[PATH_MAX], of_character[PATH_MAX], folder[PATH_MAX], word[32];
    unsigned controller, namespace, device_major = 0, device_minor = 0;
    int end = 0;

    *disk = (struct nvme_disk){0};
    snprintf(folder, sizeof folder, "dev/block/%u:%u", major(device), minor(device));
    if (!resolved(block, sys, folder)[0])
        return fail(ENOTSUP, "%s: its file system is not on one block device", path);
    disk->bytes = read_number(block, "size") * SECTOR_BYTES;
    if (read_number(block, "partition")) {
        disk->start_bytes = read_number(block, "start") * SECTOR_BYTES;
        *strrchr(block, '/') = '\0';
    }
    const char *name = strrchr(block, '/') + 1;
    if (sscanf(name, "nvme%un%u%n", &controller, &namespace, &end) != 2 || name[end])
        return fail(ENOTSUP,
                    "%s: its file system is on %s, not on an NVMe namespace or a partition of one",
                    path, name);
    /* The character device of the same name must be of the same controller or subsystem. */
    snprintf(disk->name, sizeof disk->name, "ng%.28s", name + strlen("nvme"));
    snprintf(folder, sizeof folder, "%s/class/nvme-generic/%s", sys, disk->name);
    const bool is_there = file_peek(word, sizeof word, "%s/dev", folder) &&
                          sscanf(word, "%u:%u", &device_major, &device_minor) == 2;
    disk->number = makedev(device_major, device_minor);
    if (!is_there)
        return fail(ENODEV, "%s has no character device %s: needs Linux 5.13", name, disk->name);
    if (!resolved(of_block, block, "device")[0] ||
        strcmp(of_block, resolved(of_character, folder, "device")) != 0)
        return fail(ENODEV, "%s does not belong to %s", disk->name, name);
    const uint64_t lba = read_number(block, "queue/logical_block_size");
    disk->nsid = (uint32_t)read_number(block, "nsid");
    disk->polls = read_number(block, "queue/io_poll") == 1;
    if (lba < SECTOR_BYTES || lba > LBA_MOST_BYTES || (lba & (lba - 1)) || disk->nsid == 0)
        return fail(ENOTSUP, "%s: sysfs does not report its namespace and block size", name);
    disk->lba_bytes = (uint32_t)lba;
    /* The driver splits no command. Memory may begin within a page, so one segment more is needed.
     */
    const uint64_t segments = read_number(block, "queue/max_segments");
    uint64_t most = read_number(block, "queue/max_hw_sectors_kb") * 1024;
    if (most == 0 || most > COMMAND_MOST_BYTES)
        most = most ? COMMAND_MOST_BYTES : PAGE_BYTES;
    if (segments > 1 && most > (segments - 1) * PAGE_BYTES)
        most = (segments - 1) * PAGE_BYTES;
    if (most > LBAS_MOST * lba)
        most = LBAS_MOST * lba;
    disk->most_bytes = (uint32_t)(most / lba * lba);
    if (disk->most_bytes == 0 || disk->start_bytes % lba)
        return fail(ENOTSUP, "%s: partition or transfers are not aligned to its blocks", name);
    /* A command for blocks with metadata needs memory for it: without, the disk writes it anywhere.
     */
    const bool has_metadata =
        file_peek(word, sizeof word, "%s/metadata_bytes", block) && word[0] /* Linux 6.8 */
            ? strcmp(word, "0") != 0
            : !file_peek(word, sizeof word, "%s/integrity/format", block) ||
                  strcmp(word, "none") != 0;
    return has_metadata ? fail(ENOTSUP,
                               "%s: its blocks are formatted with metadata, or the kernel does not "
                               "report it; use --reader uring",
                               name)
                        : 0;
}

int nvme_disk_open(const struct nvme_disk *disk)
{
    char *path = file_format_path("/dev/%s", disk->name);
    int fd = path ? file_open_device(path, disk->number) : -ENOMEM;

    free(path);
    if (fd == -EACCES || fd == -EPERM)
        return fail(fd,
                    "/dev/%s: no permission to open it: run as root, or from Linux 6.2 on give "
                    "this user read access, which is to the whole disk",
                    disk->name);
    if (fd == -ENODEV || fd == -ENOENT)
        return fail(fd, "/dev/%s is not there, or not the device %u:%u: a container must share it",
                    disk->name, major(disk->number), minor(disk->number));
    return fd < 0 ? fail(fd, "/dev/%s: %s", disk->name, fail_errno_text(fd)) : fd;
}

static int nvme_disk_any(void)
{
    struct folder_names found;

    folder_names_matching(&found, "/sys/class/nvme-generic/*");
    const bool any = found.count > 0;
    folder_names_release(&found);
    return any ? 0 : fail(ENODEV, "no NVMe namespace with a character device (/dev/ng0n1)");
}

/* ---- commands ---- */

struct nvme_command nvme_read_command(const struct nvme_disk *disk, uint64_t disk_offset,
                                      uint32_t bytes, void *memory)
{
    const uint64_t lba = (disk->start_bytes + disk_offset) / disk->lba_bytes;

    assert(disk_offset % disk->lba_bytes == 0 && bytes % disk->lba_bytes == 0);
    assert(bytes > 0 && bytes <= disk->most_bytes);
    return (struct nvme_command){
        .opcode = OPCODE_READ,
        .nsid = disk->nsid,
        .address = (uint64_t)(uintptr_t)memory,
        .data_bytes = bytes,
        .cdw10 = (uint32_t)lba,
        .cdw11 = (uint32_t)(lba >> 32),
        .cdw12 = bytes / disk->lba_bytes - 1, /* counts from 0 */
    };
}

/* Status code type and code (NVMe Base Specification 2.0, Completion Queue Entry: Status Field). */
int nvme_command_error(int result, const char **why)
{
    if (result <= 0)
        return result;
    switch (result & 0x7ff) {
    case 0x080:
        *why = "the disk refuses the command: past its end (LBA Out of Range)";
        return -EIO;
    case 0x281:
        *why = "the disk cannot read its medium (Unrecovered Read Error)";
        return -ENODATA;
    default:
        *why = (result & 0x700) == 0x200   ? "the disk reports an error of its medium"
               : (result & 0x700) == 0x300 ? "the path to the disk failed"
                                           : "the disk refuses the command; see the kernel's log";
        return -EIO;
    }
}

enum { EXTENTS_AT_ONCE = 256 };

static const char with_holes[] = "it has holes: copy it with cp --sparse=never";

/* FIEMAP_EXTENT_SHARED (of a clone) and _MERGED change nothing for a reader. */
static const char *unreadable(uint32_t flags)
{
    if (flags & (FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL))
        return "it is stored inside an inode or shares a block";
    if (flags & (FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED))
        return "it is compressed or encrypted on the disk";
    if (flags & FIEMAP_EXTENT_UNWRITTEN)
        return "it has extents that were allocated and never written: copy it";
    if (flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC))
        return "it has no place on the disk yet: it is being written";
    if (flags & FIEMAP_EXTENT_NOT_ALIGNED)
        return "its extents are not aligned to blocks of the disk";
    return NULL;
}

int disk_map_add(struct disk_map *map, const struct fiemap_extent *extent,
                 const struct nvme_disk *disk, const char **why)
{
    struct disk_extent *last = map->count ? &map->extents[map->count - 1] : NULL;
    const uint64_t end = last ? last->file_offset + last->bytes : 0;
    const uint64_t all = extent->fe_logical | extent->fe_physical | extent->fe_length;

    *why = unreadable(extent->fe_flags);
    if (*why)
        return -EOPNOTSUPP;
    if (extent->fe_logical > end)
        *why = with_holes;
    else if (extent->fe_logical < end || extent->fe_length == 0 ||
             extent->fe_length > UINT64_MAX - extent->fe_logical)
        *why = "the file system lists its extents out of order";
    else if (all & (disk->lba_bytes - 1))
        *why = "its extents are not aligned to blocks of the disk";
    else if (extent->fe_physical > disk->bytes ||
             extent->fe_length > disk->bytes - extent->fe_physical)
        *why = "an extent of it is past the end of the disk";
    if (*why)
        return -EOPNOTSUPP;
    if (last && last->disk_offset + last->bytes == extent->fe_physical) {
        last->bytes += extent->fe_length;
        return 0;
    }
    int code = memory_room(&map->extents, map->count, sizeof *map->extents, "extents");
    if (code == 0)
        map->extents[map->count++] =
            (struct disk_extent){end, extent->fe_physical, extent->fe_length};
    return code;
}

int disk_map_read(struct disk_map *map, int fd, uint64_t file_bytes, bool sync,
                  const struct nvme_disk *disk, const char **why)
{
    const size_t bytes = sizeof(struct fiemap) + EXTENTS_AT_ONCE * sizeof(struct fiemap_extent);
    struct fiemap *request = memory_zeroed(bytes);
    uint64_t offset = 0;
    int code = request ? 0 : -ENOMEM;

    *map = (struct disk_map){0};
    *why = NULL;
    while (code == 0 && offset < file_bytes) {
        *request = (struct fiemap){.fm_start = offset,
                                   .fm_length = file_bytes - offset,
                                   .fm_flags = sync ? FIEMAP_FLAG_SYNC : 0,
                                   .fm_extent_count = EXTENTS_AT_ONCE};
        if (ioctl(fd, FS_IOC_FIEMAP, request)) {
            code = -errno;
            if (errno == EOPNOTSUPP || errno == ENOTTY || errno == EBADR)
                *why = "its file system does not say where it is on the disk";
        } else if (request->fm_mapped_extents == 0 ||
                   request->fm_mapped_extents > EXTENTS_AT_ONCE) {
            *why = with_holes;
        }
        if (*why)
            code = -EOPNOTSUPP;
        for (uint32_t i = 0; code == 0 && i < request->fm_mapped_extents; i++) {
            const struct fiemap_extent *extent = &request->fm_extents[i];
            code = disk_map_add(map, extent, disk, why);
            offset = extent->fe_logical + extent->fe_length;
        }
    }
    free(request);
    if (code)
        disk_map_release(map);
    return code;
}

void disk_map_release(struct disk_map *map)
{
    free(map->extents);
    *map = (struct disk_map){0};
}

bool disk_map_equal(const struct disk_map *a, const struct disk_map *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->extents, b->extents, a->count * sizeof *a->extents) == 0);
}

uint64_t disk_map_find(const struct disk_map *map, uint64_t offset, uint64_t bytes,
                       uint64_t *disk_offset)
{
    uint32_t low = 0, high = map->count;

    while (low < high) { /* the first extent that ends after offset */
        const uint32_t middle = low + (high - low) / 2;
        const struct disk_extent *extent = &map->extents[middle];
        if (extent->file_offset + extent->bytes <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == map->count)
        return 0;
    const struct disk_extent *extent = &map->extents[low];
    const uint64_t within = offset - extent->file_offset, left = extent->bytes - within;
    *disk_offset = extent->disk_offset + within;
    return bytes < left ? bytes : left;
}

/* ---- the reader ---- */

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
    struct disk_map now;
    const char *why;

    const bool same =
        disk_map_read(&now, handle->fd, handle->file->bytes, false, &reader->disk, &why) == 0 &&
        disk_map_equal(&now, &file->map);
    disk_map_release(&now);
    return !same;
}

static int nvme_check_file(struct uring *uring, struct handle *handle, const char **why)
{
    const struct nvme_reader *reader = reader_with(uring);
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
    int code =
        file ? disk_map_read(&file->map, handle->fd, handle->file->bytes, true, &reader->disk, why)
             : -ENOMEM;
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
        reader->moved = handle->file->path;
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
            reader->moved = handle->file->path;
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
    const uint64_t end = bytes_align_up(op->handle->file->bytes, reader->disk.lba_bytes);
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
        return fail(errno, "%s: %s", handle->file->path, fail_errno_text(errno));
    if (memcmp(memory, memory + half, (size_t)got < bytes ? (size_t)got : bytes) != 0)
        return fail(EIO, "%s: /dev/%s holds other bytes than the file: use --reader uring",
                    handle->file->path, reader->disk.name);
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
        code = code == 0
                   ? compare_block(reader, handle, memory)
                   : fail(code, "%s: %s", handle->file->path, why ? why : fail_errno_text(code));
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
