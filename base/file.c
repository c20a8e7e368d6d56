/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/fail.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
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

const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *file_join(const char *folder, const char *name)
{
    size_t length = strlen(folder);

    return file_format_path("%s%s%s", folder, length == 0 || folder[length - 1] == '/' ? "" : "/",
                            name);
}

char *file_cache_path(const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *slash = *name ? "/" : "";

    if (cache && *cache == '/')
        return file_format_path("%s/iobench%s%s", cache, slash, name);
    if (home && *home == '/')
        return file_format_path("%s/.cache/iobench%s%s", home, slash, name);
    fail(ENOENT, "no folder for caches: neither XDG_CACHE_HOME nor HOME is an absolute path");
    return NULL;
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

/* ---- opening ---- */

const char *file_kind_text(mode_t mode)
{
    return S_ISREG(mode)    ? "a regular file"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISLNK(mode)  ? "a symbolic link"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static int check_regular(mode_t mode, const char *path)
{
    if (S_ISREG(mode))
        return 0;
    return fail(S_ISDIR(mode) ? EISDIR : EINVAL, "%s: is %s, expected a regular file", path,
                file_kind_text(mode));
}

int file_set_flags(int fd, int flags)
{
    if (fcntl(fd, F_SETFL, flags) == 0)
        return 0;
    return errno == EPERM && flags & FILE_NOATIME ? file_set_flags(fd, flags & ~FILE_NOATIME)
                                                  : -errno;
}

/* Records no reason. */
static int settle_file(int fd, int flags, struct stat *status)
{
    if (fstat(fd, status))
        return -errno;
    if (!S_ISREG(status->st_mode))
        return S_ISDIR(status->st_mode) ? -EISDIR : -EINVAL;
    /* For io_uring O_NONBLOCK means: fail rather than wait for the disk. */
    return file_set_flags(fd, flags & ~O_NONBLOCK);
}

int file_open_at(int folder, const char *name, int flags, const char *path, struct stat *status)
{
    struct stat before;
    int code = fstatat(folder, name, &before, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0);

    /* Opening a device may have side effects: rewind a tape, start a watchdog. */
    if (code == 0)
        code = check_regular(before.st_mode, path);
    else
        code = fail_path(errno, "cannot open", path);
    if (code)
        return code;
    int fd = openat(folder, name, (flags & ~FILE_NOATIME) | FILE_SAFE_FLAGS);
    if (fd < 0)
        return fail_path(errno, "cannot open", path);
    code = settle_file(fd, flags, status ? status : &before);
    if (code == 0)
        return fd;
    close(fd);
    return check_regular((status ? status : &before)->st_mode, path)
               ? code
               : fail_path(code, "cannot open", path);
}

int file_open(const char *path, int flags, struct stat *status)
{
    return file_open_at(AT_FDCWD, path, flags, path, status);
}

/* The caller does without the file. */
static int open_failed_quietly(const char *path)
{
    shortage_note(errno, path);
    return -errno;
}

int file_open_quietly(const char *path, int flags)
{
    struct stat status;
    int fd = open(path, (flags & ~FILE_NOATIME) | FILE_SAFE_FLAGS);

    if (fd < 0)
        return open_failed_quietly(path);
    int code = settle_file(fd, flags, &status);
    if (code)
        close(fd);
    return code ? code : fd;
}

/* Opening a wrong device may have side effects, hence a look before. */
int file_open_device(const char *path, dev_t number)
{
    struct stat status;
    int fd;

    if (stat(path, &status))
        return -errno;
    if (!S_ISCHR(status.st_mode) || status.st_rdev != number)
        return -ENODEV;
    fd = open(path, O_RDONLY | FILE_SAFE_FLAGS);
    if (fd < 0)
        return open_failed_quietly(path);
    if (fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == number)
        return fd;
    close(fd);
    return -ENODEV;
}

FILE *file_stream_kernel(const char *path)
{
    int fd = file_open_quietly(path, O_RDONLY);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");

    if (fd >= 0 && !stream)
        close(fd);
    return stream;
}

void file_read_begin(const char *path, char *text, size_t bytes)
{
    int fd = file_open_quietly(path, O_RDONLY);
    size_t length = 0;
    ssize_t count = fd < 0 ? 0 : 1;

    while (count > 0 && length < bytes - 1) {
        count = read(fd, text + length, bytes - 1 - length);
        length += count > 0 ? (size_t)count : 0;
    }
    text[length] = '\0';
    if (fd >= 0)
        close(fd);
}

bool file_peek(char *text, size_t bytes, const char *format, ...)
{
    char path[PATH_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    int fd = file_open_quietly(path, O_RDONLY);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return false;
    text[got] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

uint64_t read_ahead_bytes(const char *sys, int fd)
{
    struct stat status;
    char kib[24];

    if (fstat(fd, &status))
        return 0;
    const unsigned device_major = major(status.st_dev), device_minor = minor(status.st_dev);
    if ((file_peek(kib, sizeof kib, "%s/class/bdi/%u:%u/read_ahead_kb", sys, device_major,
                   device_minor) &&
         strtoull(kib, NULL, 10)) ||
        file_peek(kib, sizeof kib, "%s/dev/block/%u:%u/../bdi/read_ahead_kb", sys, device_major,
                  device_minor))
        return strtoull(kib, NULL, 10) * 1024;
    return 0;
}

int file_trusted(const struct stat *file, const struct stat *root, const char *path)
{
    if (file->st_uid != 0 && file->st_uid != geteuid() && !(root && file->st_uid == root->st_uid))
        return fail(EPERM, "%s: belongs to user %u, who owns neither the data nor this process",
                    path, (unsigned)file->st_uid);
    if (file->st_mode & S_IWOTH)
        return fail(EPERM, "%s: is world-writable", path);
    return 0;
}

/* ---- reading and writing ---- */

char *file_read_all(int fd, size_t *bytes, const char *name)
{
    struct stat status;
    char *text = fstat(fd, &status) == 0 ? calloc((size_t)status.st_size + 1, 1) : NULL;

    *bytes = text ? (size_t)status.st_size : 0;
    if (!text)
        fail(ENOMEM, "%s: out of memory", name);
    else if (file_read_at(fd, text, *bytes, 0, name) >= 0)
        return text;
    free(text);
    return NULL;
}

int file_load(const char *path, size_t limit, char **text, size_t *bytes)
{
    /* Files below /proc and /sys report size 0, so read until the end. */
    size_t capacity = 4096, used = 0;
    char *buffer = NULL;
    struct stat status;
    int fd = file_open(path, O_RDONLY, NULL), code = 0;

    if (fd < 0)
        return fd;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        (uint64_t)status.st_size > limit)
        code = fail(EFBIG, "%s: larger than %zu bytes", path, limit);
    while (code == 0) {
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

int file_free_bytes(const char *path, uint64_t *bytes)
{
    struct statvfs status;

    if (statvfs(path, &status))
        return fail_path(errno, "cannot ask for free space", path);
    *bytes = (uint64_t)status.f_bavail * status.f_frsize;
    return 0;
}

/* ---- streams ---- */

/* Map the names that shells and the kernel give to our own descriptors; -1: none. Reopening one
 * would restart at the beginning of a file it appends to. */
static int own_descriptor(const char *path)
{
    int fd, end = 0;

    if (strcmp(path, "/dev/stdout") == 0)
        return 1;
    if (strcmp(path, "/dev/stderr") == 0)
        return 2;
    return (sscanf(path, "/dev/fd/%d%n", &fd, &end) == 1 ||
            sscanf(path, "/proc/self/fd/%d%n", &fd, &end) == 1) &&
                   path[end] == '\0'
               ? fd
               : -1;
}

bool file_is_stream(const char *path)
{
    struct stat status;

    return own_descriptor(path) >= 0 || strncmp(path, "/proc/", 6) == 0 ||
           (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

int file_open_stream(const char *path)
{
    enum { PAUSES = 1000, PAUSE_MS = 10 }; /* how long to wait for a FIFO's reader */
    int own = own_descriptor(path), fd = -1;

    if (own >= 0)
        fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
    for (int i = 0; own < 0 && i < PAUSES; i++) {
        fd = open(path, O_WRONLY | O_APPEND | FILE_SAFE_FLAGS);
        if (fd >= 0 || errno != ENXIO)
            break;
        poll(NULL, 0, PAUSE_MS);
        errno = ENXIO;
    }
    if (fd < 0)
        return fail(errno, "%s: cannot open: %s", path,
                    errno == ENXIO ? "no process reads it" : fail_errno_text(errno));
    if (own < 0)
        fcntl(fd, F_SETFL, O_APPEND); /* writes block until read */
    return fd;
}

bool file_in_path(const char *program)
{
    const char *list = getenv("PATH");
    bool found = false;

    while (!found && list && *list) {
        const int length = (int)strcspn(list, ":");
        char *path = file_format_path("%.*s/%s", length, list, program);
        found = path && access(path, X_OK) == 0;
        free(path);
        list += length + (list[length] == ':');
    }
    return found;
}

/* ---- text_stream ---- */

enum { ROOM_LEAST = 4096 };

static ssize_t append_text(void *cookie, const char *bytes, size_t count)
{
    struct text_stream *stream = cookie;

    if (count >= stream->room - stream->bytes) {
        const size_t room = 2 * (stream->bytes + count) + ROOM_LEAST;
        char *larger = realloc(stream->text, room);
        if (!larger)
            return 0; /* an error in fopencookie()'s terms */
        stream->text = larger;
        stream->room = room;
    }
    memcpy(stream->text + stream->bytes, bytes, count);
    stream->bytes += count;
    stream->text[stream->bytes] = '\0';
    return (ssize_t)count;
}

int text_stream_open(struct text_stream *stream)
{
    *stream = (struct text_stream){0};
    stream->stream = fopencookie(stream, "w", (cookie_io_functions_t){.write = append_text});
    return stream->stream ? 0 : fail(ENOMEM, "out of memory for a text");
}

int text_stream_flush(struct text_stream *stream)
{
    if (!stream->stream || fflush(stream->stream) || ferror(stream->stream) ||
        (!stream->text && !(stream->text = calloc(1, 1))))
        return fail(ENOMEM, "out of memory for a text");
    return 0;
}

int text_stream_take(struct text_stream *stream, char **text, size_t *bytes)
{
    int code = text_stream_flush(stream);

    *text = code ? NULL : stream->text;
    *bytes = code ? 0 : stream->bytes;
    if (code == 0)
        stream->text = NULL;
    text_stream_close(stream);
    return code;
}

void text_stream_close(struct text_stream *stream)
{
    if (stream->stream)
        fclose(stream->stream);
    free(stream->text);
    *stream = (struct text_stream){0};
}
