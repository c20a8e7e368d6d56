/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int fail_path(int code, const char *what, const char *path)
{
    return fail(code, "%s: %s: %s", path, what, fail_errno_text(code));
}

char *file_format_path(const char *format, ...)
{
    char *path = NULL;
    va_list arguments;

    va_start(arguments, format);
    int length = vasprintf(&path, format, arguments);
    va_end(arguments);
    if (length < 0) {
        fail(ENOMEM, "out of memory for a path");
        return NULL;
    }
    return path;
}

char *file_join(const char *folder, const char *name)
{
    size_t length = strlen(folder);

    return file_format_path("%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
}

bool file_is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int file_make_folders(const char *path)
{
    char *copy = strdup(path);

    if (!copy)
        return fail(ENOMEM, "out of memory for a path");
    for (char *slash = copy + 1;; slash++) {
        char end = *slash;
        if (end != '/' && end != '\0')
            continue;
        *slash = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST && errno != EISDIR) {
            int code = fail_path(errno, "cannot make the folder", copy);
            free(copy);
            return code;
        }
        *slash = end;
        if (end == '\0')
            break;
    }
    free(copy);
    return file_is_folder(path) ? 0 : fail(ENOTDIR, "%s: exists and is not a folder", path);
}

/* free() it; NULL when memory is short. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

int file_make_parent(const char *path)
{
    char *folder = parent_of(path);
    int code = folder ? file_make_folders(folder) : fail(ENOMEM, "out of memory for a path");

    free(folder);
    return code;
}

int file_load(const char *path, size_t limit, char **text, size_t *bytes)
{
    /* Files below /proc and /sys say size 0, so the end is found by reading. */
    size_t capacity = 4096, used = 0;
    char *buffer = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC), code = 0;

    if (fd < 0)
        return fail_path(errno, "cannot open", path);
    for (;;) {
        char *larger = realloc(buffer, capacity + 1);
        if (!larger) {
            code = fail(ENOMEM, "%s: out of memory", path);
            break;
        }
        buffer = larger;
        ssize_t got = read(fd, buffer + used, capacity - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            code = fail_path(errno, "cannot read", path);
            break;
        }
        used += (size_t)got;
        if (got == 0)
            break;
        if (used > limit) {
            code = fail(EFBIG, "%s: larger than %zu bytes", path, limit);
            break;
        }
        if (used == capacity)
            capacity *= 2;
    }
    close(fd);
    if (code) {
        free(buffer);
        return code;
    }
    buffer[used] = '\0';
    *text = buffer;
    *bytes = used;
    return 0;
}

ssize_t file_read_at(int fd, void *buffer, size_t bytes, uint64_t offset, const char *path)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t got = pread(fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(errno, "%s: offset %llu: cannot read: %s", path,
                        (unsigned long long)(offset + done), fail_errno_text(errno));
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int file_write_at(int fd, const void *buffer, size_t bytes, uint64_t offset, const char *path)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t put = pwrite(fd, (const char *)buffer + done, bytes - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail(errno, "%s: offset %llu: cannot write: %s", path,
                        (unsigned long long)(offset + done), fail_errno_text(errno));
        done += (size_t)put;
    }
    return 0;
}

int file_draft_open(struct file_draft *draft, const char *path)
{
    draft->fd = -1;
    draft->path = strdup(path);
    draft->draft_path = file_format_path("%s.partial", path);
    if (draft->path && draft->draft_path)
        draft->fd = open(draft->draft_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (draft->fd >= 0)
        return 0;
    int code =
        fail_path(errno, "cannot make the file", draft->draft_path ? draft->draft_path : path);
    file_draft_abandon(draft);
    return code;
}

int file_sync_parent(const char *path)
{
    char *folder = parent_of(path);
    int code = 0;

    if (!folder)
        return fail(ENOMEM, "out of memory for a path");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        if (fsync(fd) && errno != EINVAL)
            code = fail_path(errno, "cannot sync the folder", folder);
        close(fd);
    }
    free(folder);
    return code;
}

int file_draft_commit(struct file_draft *draft)
{
    int code = 0;

    if (fsync(draft->fd))
        code = fail_path(errno, "cannot sync", draft->draft_path);
    if (close(draft->fd) && code == 0)
        code = fail_path(errno, "cannot close", draft->draft_path);
    draft->fd = -1;
    if (code == 0 && rename(draft->draft_path, draft->path))
        code = fail_path(errno, "cannot rename to its name", draft->draft_path);
    if (code == 0)
        code = file_sync_parent(draft->path);
    if (code)
        unlink(draft->draft_path);
    free(draft->path);
    free(draft->draft_path);
    draft->path = draft->draft_path = NULL;
    return code;
}

void file_draft_abandon(struct file_draft *draft)
{
    if (draft->fd >= 0) {
        close(draft->fd);
        unlink(draft->draft_path);
    }
    draft->fd = -1;
    free(draft->path);
    free(draft->draft_path);
    draft->path = draft->draft_path = NULL;
}

int file_free_bytes(const char *path, uint64_t *bytes)
{
    struct statvfs status;

    if (statvfs(path, &status))
        return fail_path(errno, "cannot ask for free space", path);
    *bytes = (uint64_t)status.f_bavail * status.f_frsize;
    return 0;
}
