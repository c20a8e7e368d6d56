/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/replaced.h"

#include <errno.h>
#include <unistd.h>

const char report_acceptance_mark[] = "# Made by iobench size: acceptance\n";
const char report_page_mark[] = "<!-- iobench study -->\n";

static int write_through(const char *path, const char *text, size_t bytes)
{
    int fd = file_open_stream(path), code = 0;

    if (fd < 0)
        return fd;
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

int report_write_file(const char *path, const char *text, size_t bytes)
{
    const struct picture_mark mark = replaced_mark(text, bytes);
    const size_t before = bytes - mark.tail;
    struct file_draft draft;

    if (file_is_stream(path))
        return write_through(path, text, bytes);
    int code = file_draft_remove_stale(path, NULL);
    if (code == -EACCES) /* a folder that cannot be listed can be written to */
        code = 0;
    if (code)
        return code;
    fail_clear();
    code = file_draft_open(&draft, path, NULL);
    if (code == 0)
        code = replaced_check(path, text, bytes);
    if (code == 0)
        code = file_write_at(draft.fd, text, before, 0, path);
    if (code == 0)
        code = file_write_at(draft.fd, mark.bytes, mark.length, before, path);
    if (code == 0)
        code = file_write_at(draft.fd, text + before, mark.tail, before + mark.length, path);
    if (code == 0)
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    return code;
}
