/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* /dev/stdout, a pipe: nothing to replace. */
static int write_through(const char *path, const char *text, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC), code = 0;

    if (fd < 0)
        return fail(errno, "%s: cannot open: %s", path, fail_errno_text(errno));
    while (bytes && code == 0) {
        ssize_t count = write(fd, text, bytes);
        if (count < 0 && errno != EINTR)
            code = fail(errno, "%s: cannot write: %s", path, fail_errno_text(errno));
        text += count > 0 ? count : 0;
        bytes -= count > 0 ? (size_t)count : 0;
    }
    close(fd);
    return code;
}

/* /dev/stdout, /dev/fd/3: a name of a file that is open, whatever that is. */
bool report_is_descriptor(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

int report_write_file(const char *path, const char *text, size_t bytes)
{
    struct file_draft draft;
    struct stat status;

    if (report_is_descriptor(path) ||
        (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return write_through(path, text, bytes);
    int code = file_draft_open(&draft, path, NULL);
    if (code == 0)
        code = file_write_at(draft.fd, text, bytes, 0, path);
    if (code == 0)
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    return code;
}
