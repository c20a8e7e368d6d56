/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stream.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* How long to wait for a FIFO's reader. */
static const uint64_t READER_NS = 10000000000, PAUSE_NS = 10000000;

/* Map the names that shells and the kernel give to our own descriptors; -1: none. Reopening one
 * would restart at the beginning of a file it appends to. */
static int own_descriptor(const char *path)
{
    int fd, end = 0;

    if (strcmp(path, "/dev/stdout") == 0)
        return 1;
    if (strcmp(path, "/dev/stderr") == 0)
        return 2;
    if ((sscanf(path, "/dev/fd/%d%n", &fd, &end) == 1 ||
         sscanf(path, "/proc/self/fd/%d%n", &fd, &end) == 1) &&
        path[end] == '\0')
        return fd;
    return -1;
}

bool file_is_stream(const char *path)
{
    struct stat status;

    return own_descriptor(path) >= 0 || strncmp(path, "/proc/", 6) == 0 ||
           (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

int file_open_stream(const char *path)
{
    const uint64_t start_ns = clock_now_ns();
    int own = own_descriptor(path), fd;

    if (own >= 0)
        fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
    else
        while ((fd = open(path, O_WRONLY | O_APPEND | FILE_SAFE_FLAGS)) < 0 && errno == ENXIO &&
               clock_now_ns() - start_ns < READER_NS)
            clock_sleep_ns(PAUSE_NS);
    if (fd < 0)
        return fail(errno, "%s: cannot open: %s", path,
                    errno == ENXIO ? "nobody reads it" : fail_errno_text(errno));
    if (own < 0)
        fcntl(fd, F_SETFL, O_APPEND); /* writes block until read */
    return fd;
}
