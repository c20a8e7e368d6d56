/* SPDX-License-Identifier: Apache-2.0
 * Files served by the kernel. */
#include "dataset/store.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct local_file {
    struct store_file file;
    int fd;
    struct file_draft draft; /* draft.fd is fd */
};

static int fd_of(const struct store_file *file)
{
    return ((const struct local_file *)(const void *)file)->fd;
}

static int local_fail(const char *what, const char *path)
{
    return fail(errno, "%s: %s: %s", path, what, fail_errno_text(errno));
}

struct store_status store_status_of(const struct stat *found)
{
    return (struct store_status){
        .kind = store_kind_of(found->st_mode),
        .bytes = (uint64_t)found->st_size,
        .mtime_ns =
            store_time_ns((uint64_t)found->st_mtim.tv_sec, (uint64_t)found->st_mtim.tv_nsec),
        .ctime_ns =
            store_time_ns((uint64_t)found->st_ctim.tv_sec, (uint64_t)found->st_ctim.tv_nsec),
        .device = found->st_dev,
        .inode = found->st_ino,
        .owner = found->st_uid,
        .mode = found->st_mode,
    };
}

static int local_stat(const char *path, struct store_status *status)
{
    struct stat found;

    if (stat(path, &found))
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    *status = store_status_of(&found);
    return 0;
}

/* ---- folders ---- */

struct local_listing {
    struct folder folder;
    store_visit visit;
    void *context;
};

static int visit_one(void *context, const char *name, unsigned char type)
{
    const struct local_listing *listing = context;
    struct store_entry entry = {.name = name, .kind = STORE_OTHER, .is_link = type == DT_LNK};
    struct stat status;

    if (type == DT_REG || type == DT_DIR)
        entry.kind = type == DT_REG ? STORE_FILE : STORE_FOLDER;
    else if (type == DT_LNK && fstatat(listing->folder.fd, name, &status, 0) == 0)
        entry.kind = store_kind_of(status.st_mode); /* else a dangling link */
    return listing->visit(listing->context, &entry);
}

static int local_list(const char *path, store_visit visit, void *context)
{
    struct local_listing listing = {.visit = visit, .context = context};
    int code = folder_open(&listing.folder, path);

    if (code == 0)
        code = folder_list(&listing.folder, visit_one, &listing);
    folder_close(&listing.folder);
    return code;
}

/* ---- open files ---- */

/* A name and its folder. The folder's path is the user's own; the name is opened without following
 * links. */
struct local_place {
    struct folder folder;
    char *name;
};

static int place_find(struct local_place *place, const char *path)
{
    size_t length = strlen(path);
    const char *name = NULL;

    while (length > 1 && path[length - 1] == '/')
        length--;
    char *copy = strndup(path, length);
    int code = copy ? folder_open_parent(&place->folder, copy, &name)
                    : fail(ENOMEM, "out of memory for a path");
    place->name = name ? strdup(name) : NULL;
    free(copy);
    if (code == 0 && !place->name)
        code = fail(name ? ENOMEM : EINVAL, "%s: expected the path of a file or folder", path);
    return code;
}

static void place_release(struct local_place *place)
{
    folder_close(&place->folder);
    free(place->name);
}

static int local_open(const char *path, enum store_access access, struct store_file **file)
{
    struct local_file *local = memory_zeroed(sizeof *local);
    struct stat found;
    int code = 0, fd = -ENOENT;

    if (!local)
        return -ENOMEM;
    if (access == STORE_READ) {
        fd = file_open(path, O_RDONLY | FILE_NOATIME, &found);
    } else {
        struct local_place place = {.folder.fd = -1};
        code = place_find(&place, path);
        if (code == 0 && access == STORE_EXTEND)
            fd = folder_open_file(&place.folder, place.name, O_RDWR, &found);
        if (fd >= 0 && found.st_nlink > 1)
            code = fail(EPERM, "%s: has several hard links: not written", path);
        if (code == 0 && fd == -ENOENT)
            fd = folder_create_file(&place.folder, place.name);
        place_release(&place);
        if (code == 0 && fd >= 0 && fstat(fd, &found))
            code = local_fail("cannot get its status", path);
    }
    if (code || fd < 0) {
        if (fd >= 0)
            close(fd);
        free(local);
        return code ? code : fd;
    }
    local->fd = fd;
    local->file.status = store_status_of(&found);
    *file = &local->file;
    return 0;
}

static int local_draft(const char *path, struct store_file **file)
{
    struct local_file *local = memory_zeroed(sizeof *local);
    int code = local ? file_draft_open(&local->draft, path, NULL) : -ENOMEM;

    if (code) {
        free(local);
        return code;
    }
    local->fd = local->draft.fd;
    local->file.status = store_status_of(&local->draft.made);
    *file = &local->file;
    return 0;
}

static int local_settle(struct store_file *file, bool commit)
{
    struct file_draft *draft = &((struct local_file *)(void *)file)->draft;
    int code = commit ? file_draft_commit(draft) : 0;

    file_draft_abandon(draft);
    return code;
}

static ssize_t local_read_at(struct store_file *file, void *buffer, size_t bytes, uint64_t offset)
{
    return file_read_at(fd_of(file), buffer, bytes, offset, file->path);
}

static int local_write_at(struct store_file *file, const void *buffer, size_t bytes,
                          uint64_t offset)
{
    return file_write_at(fd_of(file), buffer, bytes, offset, file->path);
}

static int local_close(struct store_file *file, bool sync)
{
    int code = sync && fsync(fd_of(file)) ? local_fail("cannot sync", file->path) : 0;

    if (close(fd_of(file)) && code == 0)
        code = local_fail("cannot close", file->path);
    return code;
}

static void local_advise(struct store_file *file, uint64_t offset, uint64_t bytes)
{
    posix_fadvise(fd_of(file), (off_t)offset, (off_t)bytes,
                  bytes ? POSIX_FADV_WILLNEED : POSIX_FADV_RANDOM);
}

static uint64_t local_next_data(struct store_file *file, uint64_t offset)
{
    off_t found = lseek(fd_of(file), (off_t)offset, SEEK_DATA);

    if (found < 0)
        return errno == ENXIO ? file->status.bytes : offset;
    return (uint64_t)found;
}

/* ---- names ---- */

static int local_rename(const char *from, const char *to)
{
    struct local_place source = {.folder.fd = -1}, target = {.folder.fd = -1};
    int code = place_find(&source, from);

    if (code == 0)
        code = place_find(&target, to);
    if (code == 0)
        code = folder_rename(&source.folder, source.name, &target.folder, target.name, true);
    if (code == 0)
        code = folder_sync(&target.folder);
    place_release(&target);
    place_release(&source);
    return code;
}

static int local_remove(const char *path)
{
    struct local_place place = {.folder.fd = -1};
    int code = place_find(&place, path);

    if (code == 0)
        code = folder_remove(&place.folder, place.name, NULL);
    place_release(&place);
    return code;
}

static int local_make_folder(const char *path)
{
    struct local_place place = {.folder.fd = -1};
    int code = place_find(&place, path);

    if (code == 0)
        code = folder_make(&place.folder, place.name);
    place_release(&place);
    return code;
}

const struct store_ops store_local = {
    .scheme = "",
    .stat = local_stat,
    .list = local_list,
    .open = local_open,
    .read_at = local_read_at,
    .write_at = local_write_at,
    .close = local_close,
    .advise = local_advise,
    .next_data = local_next_data,
    .draft = local_draft,
    .settle = local_settle,
    .rename = local_rename,
    .remove = local_remove,
    .make_folder = local_make_folder,
    .free_bytes = file_free_bytes,
};
