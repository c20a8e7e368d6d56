/* SPDX-License-Identifier: Apache-2.0 */
#include "base/draft.h"

#include "base/fail.h"
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUFFIX_LENGTH = FILE_DRAFT_SUFFIX_BYTES - 1, TRIES = 16 };

static const char draft_end[] = ".partial";

static const char letters[] = "0123456789abcdefghijklmnopqrstuv"; /* 32 characters */

int file_draft_suffix(char suffix[FILE_DRAFT_SUFFIX_BYTES])
{
    uint8_t random[SUFFIX_LENGTH];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return fail(EIO, "cannot get random numbers: %s", fail_errno_text(errno));
    for (size_t i = 0; i < sizeof random; i++)
        suffix[i] = letters[random[i] % 32];
    suffix[SUFFIX_LENGTH] = '\0';
    return 0;
}

char *file_draft_path(const char *path, const char *suffix)
{
    const char *name = file_name(path);
    /* A name may have the maximum length; the draft's name then contains only its start. */
    size_t room = NAME_MAX - strlen("..") - strlen(suffix) - strlen(draft_end);

    return file_format_path("%.*s.%.*s.%s%s", (int)(name - path), path, (int)room, name, suffix,
                            draft_end);
}

bool file_is_draft_name(const char *name)
{
    size_t length = strlen(name), end = sizeof draft_end - 1;

    return name[0] == '.' && length > end && strcmp(name + length - end, draft_end) == 0;
}

static int create_draft(struct file_draft *draft, const char *given)
{
    char suffix[FILE_DRAFT_SUFFIX_BYTES];
    int code = -EEXIST;

    for (int i = 0; code == -EEXIST && i < (given ? 1 : TRIES); i++) {
        free(draft->draft_path);
        draft->draft_path = NULL;
        code = given ? 0 : file_draft_suffix(suffix);
        if (code)
            return code;
        draft->draft_path = file_draft_path(draft->path, given ? given : suffix);
        int fd = draft->draft_path
                     ? folder_create_file(&draft->folder, file_name(draft->draft_path))
                     : -ENOMEM;
        code = fd < 0 ? fd : 0;
        if (code)
            continue;
        /* Without flock only file_draft_remove_stale() loses; with it, that may have been first. */
        const bool is_taken = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
        if (!is_taken && fstat(fd, &draft->made) == 0 && draft->made.st_nlink) {
            draft->fd = fd;
            return 0;
        }
        draft->made = (struct stat){0};
        close(fd);
        code = fail(EEXIST, "%s: somebody removed it", draft->draft_path);
    }
    return code;
}

int file_draft_open(struct file_draft *draft, const char *path,
                    const struct file_draft_options *options)
{
    const uid_t user = geteuid();
    const char *name;
    struct stat status, folder;

    *draft = (struct file_draft){
        .fd = -1, .folder = {.fd = -1}, .no_replace = options && options->no_replace};
    draft->path = strdup(path);
    int code = draft->path ? folder_open_parent(&draft->folder, path, &name)
                           : fail(ENOMEM, "out of memory for a path");
    if (code == 0 && !name)
        code = fail(EISDIR, "%s: is a folder, expected a file", path);
    /* Only a regular file may be replaced, and in a folder like /tmp only by its owner: fail before
     * the work rather than after it. */
    if (code == 0 && fstatat(draft->folder.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (user && status.st_uid != user && fstat(draft->folder.fd, &folder) == 0 &&
            folder.st_mode & S_ISVTX && folder.st_uid != user)
            code =
                fail(EPERM, "%s: is another user's, and its folder is sticky: name another", path);
        else if (!S_ISREG(status.st_mode))
            code = fail(S_ISDIR(status.st_mode) ? EISDIR : EEXIST,
                        "%s: is %s: only a regular file is replaced; name another", path,
                        file_kind_text(status.st_mode));
    }
    if (code == 0)
        code = create_draft(draft, options ? options->suffix : NULL);
    if (code)
        file_draft_abandon(draft);
    return code;
}

static int remove_stale(const struct folder *folder, const char *name, const char *path)
{
    struct stat status;
    int fd = folder_open_file(folder, name, O_RDONLY, &status), code = 0;

    if (fd == -ENOENT) {
        fail_clear();
        return 0;
    }
    if (fd < 0)
        return fd;
    if (status.st_uid != geteuid() || status.st_nlink != 1)
        code = fail(EPERM, "%s: is not a draft of this user", path);
    else if (flock(fd, LOCK_EX | LOCK_NB))
        code = fail(EBUSY, "%s: is being written", path);
    else
        code = folder_remove(folder, name, &status);
    close(fd);
    return code;
}

struct stale {
    const struct folder *folder;
    const char *like; /* the name of a draft with any suffix */
};

static int remove_if_stale(void *context, const char *name, unsigned char type)
{
    const struct stale *stale = context;
    const size_t length = strlen(name), end = SUFFIX_LENGTH + sizeof draft_end - 1;

    (void)type;
    if (length == strlen(stale->like) && memcmp(name, stale->like, length - end) == 0 &&
        strspn(name + length - end, letters) == SUFFIX_LENGTH && file_is_draft_name(name) &&
        remove_stale(stale->folder, name, name))
        fail_clear(); /* in use, or not ours */
    return 0;
}

int file_draft_remove_stale(const char *path, const char *suffix)
{
    struct folder folder = {.fd = -1};
    const char *name;
    char *draft_path = file_draft_path(path, suffix ? suffix : "01234567");
    int code = draft_path ? folder_open_parent(&folder, draft_path, &name)
                          : fail(ENOMEM, "out of memory for a path");

    if (code == 0)
        code = suffix ? remove_stale(&folder, name, draft_path)
                      : folder_list(&folder, remove_if_stale, &(struct stale){&folder, name});
    folder_close(&folder);
    free(draft_path);
    return code;
}

static void release_draft(struct file_draft *draft)
{
    free(draft->path);
    free(draft->draft_path);
    folder_close(&draft->folder);
    draft->path = draft->draft_path = NULL;
}

int file_draft_commit(struct file_draft *draft)
{
    const char *name = file_name(draft->draft_path);
    const int held = fcntl(draft->fd, F_DUPFD_CLOEXEC, 0); /* its lock, until it has its name */
    struct stat now;
    int code = 0;

    assert(draft->fd >= 0 && draft->path);
    if (fsync(draft->fd))
        code = fail(errno, "%s: cannot sync: %s", draft->draft_path, fail_errno_text(errno));
    if (close(draft->fd) && code == 0)
        code = fail(errno, "%s: cannot close: %s", draft->draft_path, fail_errno_text(errno));
    draft->fd = -1;
    if (code == 0)
        code = folder_stat(&draft->folder, name, &now);
    if (code == 0 && (now.st_dev != draft->made.st_dev || now.st_ino != draft->made.st_ino))
        code = fail(ESTALE, "%s: somebody replaced it: %s is not written", draft->draft_path,
                    draft->path);
    if (code == 0)
        code = folder_rename(&draft->folder, name, &draft->folder, file_name(draft->path),
                             !draft->no_replace);
    if (held >= 0)
        close(held);
    if (code) {
        file_draft_abandon(draft);
        return code;
    }
    code = folder_sync(&draft->folder);
    release_draft(draft);
    return code;
}

void file_draft_abandon(struct file_draft *draft)
{
    if (!draft->path)
        return;
    fail_hold();
    if (draft->fd >= 0)
        close(draft->fd);
    draft->fd = -1;
    if (draft->made.st_ino)
        folder_remove(&draft->folder, file_name(draft->draft_path), &draft->made);
    fail_release();
    release_draft(draft);
}

int file_draft_check(const char *path)
{
    struct file_draft draft;
    int code = file_draft_open(&draft, path, NULL);

    file_draft_abandon(&draft);
    return code;
}

int file_draft_open_empty(const char *path)
{
    struct file_draft draft;
    int code = file_draft_open(&draft, path, NULL);

    if (code)
        return code;
    int fd = fcntl(draft.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        code = fail(errno, "%s: %s", path, fail_errno_text(errno));
    else
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    if (code && fd >= 0)
        close(fd);
    return code ? code : fd;
}
