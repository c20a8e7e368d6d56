/* SPDX-License-Identifier: Apache-2.0
 * Files of the kernel. */
#include "dataset/store_members.h"

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
};

static int fd_of(const struct store_file *file)
{
    return ((const struct local_file *)(const void *)file)->fd;
}

static int local_fail(const char *what, const char *path)
{
    return fail(errno, "%s: %s: %s", path, what, fail_errno_text(errno));
}

static enum store_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? STORE_FILE : S_ISDIR(mode) ? STORE_FOLDER : STORE_OTHER;
}

static struct store_status status_of(const struct stat *found)
{
    return (struct store_status){
        .kind = kind_of(found->st_mode),
        .bytes = (uint64_t)found->st_size,
        .mtime_ns = found->st_mtim.tv_sec * INT64_C(1000000000) + found->st_mtim.tv_nsec,
        .device = found->st_dev,
        .inode = found->st_ino,
    };
}

static int local_stat(const char *path, struct store_status *status)
{
    struct stat found;

    if (stat(path, &found))
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    *status = status_of(&found);
    return 0;
}

/* ---- folders ---- */

static struct store_entry entry_of(int folder, const struct dirent *found)
{
    struct store_entry entry = {.name = found->d_name, .kind = STORE_OTHER};
    struct stat status;

    if (found->d_type == DT_REG || found->d_type == DT_DIR) {
        entry.kind = found->d_type == DT_REG ? STORE_FILE : STORE_FOLDER;
    } else if (found->d_type == DT_LNK || found->d_type == DT_UNKNOWN) {
        entry.is_link = !fstatat(folder, found->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
                        S_ISLNK(status.st_mode);
        if (fstatat(folder, found->d_name, &status, 0) == 0) /* else a link to nothing */
            entry.kind = kind_of(status.st_mode);
    }
    return entry;
}

static int local_list(const char *path, store_visit visit, void *context)
{
    DIR *folder = opendir(path);
    struct dirent *found;
    int code = 0;

    if (!folder)
        return local_fail("cannot open the folder", path);
    for (errno = 0; code == 0 && (found = readdir(folder)); errno = 0) {
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        const struct store_entry entry = entry_of(dirfd(folder), found);
        code = visit(context, &entry);
    }
    if (code == 0 && errno)
        code = local_fail("cannot read the folder", path);
    closedir(folder);
    return code;
}

/* ---- open files ---- */

static int local_open(const char *path, enum store_access access, struct store_file **file)
{
    static const int flags[] = {[STORE_READ] = O_RDONLY,
                                [STORE_WRITE] = O_RDWR | O_CREAT | O_TRUNC,
                                [STORE_EXTEND] = O_RDWR | O_CREAT};
    struct local_file *local = memory_zeroed(sizeof *local);
    struct stat found;

    if (!local)
        return -ENOMEM;
    local->fd = open(path, flags[access] | O_CLOEXEC, 0666);
    int code = local->fd < 0
                   ? local_fail(access == STORE_READ ? "cannot open" : "cannot make the file", path)
                   : 0;
    if (code == 0 && fstat(local->fd, &found))
        code = fail(errno, "%s: %s", path, fail_errno_text(errno));
    if (code) {
        if (local->fd >= 0)
            close(local->fd);
        free(local);
        return code;
    }
    local->file.status = status_of(&found);
    *file = &local->file;
    return 0;
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

/* ---- names ---- */

static int local_rename(const char *from, const char *to)
{
    struct folder source, target = {.fd = -1};
    const char *name, *new_name = NULL;
    int code = folder_open_parent(&source, from, &name);

    if (code == 0)
        code = folder_open_parent(&target, to, &new_name);
    if (code == 0)
        code = name && new_name
                   ? folder_rename(&source, name, &target, new_name, true)
                   : fail(EINVAL, "%s: cannot rename it to %s: no name of a file", from, to);
    if (code == 0)
        code = folder_sync(&target);
    folder_close(&target);
    folder_close(&source);
    return code;
}

static int local_remove(const char *path)
{
    return remove(path) ? local_fail("cannot remove", path) : 0;
}

static int local_make_folder(const char *path)
{
    return mkdir(path, 0777) ? local_fail("cannot make the folder", path) : 0;
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
    .rename = local_rename,
    .remove = local_remove,
    .make_folder = local_make_folder,
    .free_bytes = file_free_bytes,
};
