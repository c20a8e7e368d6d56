/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/procfile.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SIZE_MAX_BYTES = 64 << 20, ROOM_BYTES = 4096 };

const struct telemetry_roots telemetry_roots_usual = {.proc = "/proc", .sys = "/sys"};

int procfile_open(struct procfile *file, const char *format, ...)
{
    char path[PATH_BYTES], *text = NULL;
    size_t bytes = 0;
    va_list arguments;

    *file = (struct procfile){.fd = -1};
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    int code = file_load(path, SIZE_MAX_BYTES, &text, &bytes);
    free(text);
    if (code)
        return code;
    file->buffer_bytes = 2 * bytes + ROOM_BYTES;
    file->buffer = memory_array(file->buffer_bytes, 1);
    if (!file->buffer)
        return -ENOMEM;
    file->fd = file_open(path, O_RDONLY, NULL);
    return file->fd < 0 ? file->fd : 0;
}

void procfile_close(struct procfile *file)
{
    /* A zeroed procfile has no buffer, and descriptor 0 is not ours. */
    if (file->buffer && file->fd >= 0)
        close(file->fd);
    free(file->buffer);
    *file = (struct procfile){.fd = -1};
}

int procfile_read(struct procfile *file, struct text *text)
{
    size_t used = 0;

    if (!file->buffer || file->fd < 0)
        return -ENODEV;
    while (used < file->buffer_bytes) {
        ssize_t got = pread(file->fd, file->buffer + used, file->buffer_bytes - used, (off_t)used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    if (used == file->buffer_bytes)
        while (used > 0 && file->buffer[used - 1] != '\n')
            used--;
    *text = text_of(file->buffer, used);
    return 0;
}

bool procfile_peek(char *text, size_t text_bytes, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    int fd = file_open_quietly(path, O_RDONLY);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, text_bytes - 1);
    close(fd);
    if (got < 0)
        return false;
    text[got] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}
