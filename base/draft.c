/* SPDX-License-Identifier: Apache-2.0 */
#include "base/draft.h"

#include "base/fail.h"
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SUFFIX_LENGTH = FILE_DRAFT_SUFFIX_BYTES - 1,
    TRIES = 16,
    LOCK_TRIES = 100,
    HOLDER_BYTES = 128
};

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
        /* Lock it, so that file_draft_remove_stale() leaves it. If the lock fails only for lack of
         * flock, go on; that call may have removed the file before it was locked, so check its link
         * count. */
        const bool is_taken = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
        if (!is_taken && fstat(fd, &draft->made) == 0 && draft->made.st_nlink) {
            draft->fd = fd;
            return 0;
        }
        draft->made = (struct stat){0};
        close(fd);
        code = fail(EEXIST, "%s: another process removed it", draft->draft_path);
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
                fail(EPERM, "%s: belongs to another user, in a sticky folder: name another", path);
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
    const int held = fcntl(draft->fd, F_DUPFD_CLOEXEC, 0); /* keeps the lock until it is renamed */
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
        code = fail(ESTALE, "%s: another process replaced it: %s is not written", draft->draft_path,
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

/* ---- lock ---- */

static const char lock_head[] = "iobench lock: process ";

static int fail_lock(const struct file_lock *lock, int code, const char *what)
{
    return fail(code, "%s/%s: %s", lock->folder.path, lock->name, what);
}

/* Read the holder; "" while the file is new. Returns -EEXIST for a file that is not a lock. */
static int read_holder(const struct file_lock *lock, char holder[HOLDER_BYTES])
{
    ssize_t got = pread(lock->fd, holder, HOLDER_BYTES - 1, 0);

    if (got < 0)
        return fail_lock(lock, errno, fail_errno_text(errno));
    holder[got] = '\0';
    if (got > 0 && strncmp(holder, lock_head, sizeof lock_head - 1) != 0)
        return fail_lock(lock, EEXIST, "is another program's file, not a lock: move it away");
    holder[strcspn(holder, "\n")] = '\0';
    return 0;
}

/* Returns 0 if held, -EAGAIN if the name led to another file meanwhile: try again. */
static int try_lock(struct file_lock *lock, bool *created)
{
    struct stat now;

    /* Open an existing file without O_CREAT, which folders with the sticky bit refuse. */
    int fd = folder_open_file(&lock->folder, lock->name, O_RDWR, &now), code = 0;
    *created = fd == -ENOENT;
    if (*created)
        fd = folder_create_file(&lock->folder, lock->name);
    if (*created && fd == -EEXIST)
        return -EAGAIN;
    if (fd < 0)
        return fd;
    lock->fd = fd;
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        const bool none = errno == ENOSYS || errno == ENOTSUP || errno == ENOLCK || errno == EINVAL;
        char holder[HOLDER_BYTES];
        if (!none && errno != EWOULDBLOCK && errno != EINTR) {
            code = fail_lock(lock, errno, fail_errno_text(errno));
        } else if (!none || !*created) {
            code = read_holder(lock, holder);
            if (code == 0)
                code = fail(EBUSY, "%s/%s: in use by %s: wait until that ends", lock->folder.path,
                            lock->name,
                            *holder ? holder + sizeof lock_head - 1 - strlen("process ")
                                    : "another process");
        }
    }
    if (code == 0 && fstat(fd, &lock->made))
        code = fail_lock(lock, errno, fail_errno_text(errno));
    if (code == 0 && (fstatat(lock->folder.fd, lock->name, &now, AT_SYMLINK_NOFOLLOW) ||
                      now.st_ino != lock->made.st_ino || now.st_dev != lock->made.st_dev))
        code = -EAGAIN;
    if (code) {
        close(fd);
        lock->fd = -1;
    }
    return code;
}

int file_lock_acquire(struct file_lock *lock, const char *path)
{
    char holder[HOLDER_BYTES], host[64] = "this host";
    const char *name;
    bool created = false;

    *lock = (struct file_lock){.fd = -1, .folder = {.fd = -1}};
    int code = folder_open_parent(&lock->folder, path, &name);
    if (code == 0 && !name)
        code = fail(EISDIR, "%s: is a folder, expected the name of a lock", path);
    if (code == 0) {
        lock->name = strdup(name);
        code = lock->name ? -EAGAIN : fail(ENOMEM, "out of memory for a path");
    }
    for (int i = 0; code == -EAGAIN && i < LOCK_TRIES; i++)
        code = try_lock(lock, &created);
    if (code == -EAGAIN)
        code = fail(EBUSY, "%s: in use by others: wait until they end", path);
    if (code == 0) {
        code = read_holder(lock, holder);
        if (code == 0 && lock->made.st_nlink != 1)
            code = fail_lock(lock, EEXIST,
                             "has several hard links, which a lock never has: move it away");
        gethostname(host, sizeof host - 1);
        const int length =
            snprintf(holder, sizeof holder, "%s%d on %s\n", lock_head, (int)getpid(), host);
        if (code == 0 && ftruncate(lock->fd, 0))
            code = fail_lock(lock, errno, fail_errno_text(errno));
        if (code == 0)
            code = file_write_at(lock->fd, holder, (size_t)length, 0, path);
        if (code) {
            if (created)
                folder_remove(&lock->folder, lock->name, &lock->made);
            close(lock->fd);
            lock->fd = -1;
        }
    }
    if (code) {
        free(lock->name);
        lock->name = NULL;
        folder_close(&lock->folder);
    }
    return code;
}

void file_lock_release(struct file_lock *lock)
{
    if (lock->fd < 0)
        return;
    /* Remove while held: a process that opened it earlier finds the name gone. */
    fail_hold();
    folder_remove(&lock->folder, lock->name, &lock->made);
    fail_release();
    close(lock->fd);
    lock->fd = -1;
    free(lock->name);
    folder_close(&lock->folder);
}

/* ---- what may be replaced ---- */

#define MARK "Made by iobench"

enum { BEGIN_BYTES = 8192, /* a path and a key are within them */ MARK_REACH = 64 };

/* A chunk of text (length, type, keyword, text, CRC) before the last one, IEND. */
static const char png_mark[] = "\0\0\0\x18tEXtSoftware\0" MARK "\xb3\xc1\x30\x2a";
static const char png_end[] = "\0\0\0\0IEND\xae\x42\x60\x82";
static const char pdf_mark[] = "% " MARK "\n";
static const char xml_mark[] = "<!-- " MARK " -->\n";

static bool begins(const char *text, size_t bytes, const char *with)
{
    return bytes >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static bool is_xml(const char *text, size_t bytes)
{
    return begins(text, bytes, "<svg") || begins(text, bytes, "<?xml");
}

struct picture_mark replaced_mark(const char *picture, size_t bytes)
{
    const size_t tail = sizeof png_end - 1;

    if (begins(picture, bytes, "%PDF-"))
        return (struct picture_mark){.bytes = pdf_mark, .length = sizeof pdf_mark - 1};
    if (is_xml(picture, bytes))
        return (struct picture_mark){.bytes = xml_mark, .length = sizeof xml_mark - 1};
    if (begins(picture, bytes, "\x89PNG") && bytes > tail &&
        memcmp(picture + bytes - tail, png_end, tail) == 0)
        return (struct picture_mark){
            .bytes = png_mark, .length = sizeof png_mark - 1, .tail = tail};
    return (struct picture_mark){.bytes = ""};
}

/* ---- JSON ---- */

/* A text of JSON, without its quotes. */
struct json_piece {
    const char *text;
    size_t length;
    bool is_key;
};

/* Take the next whole text of JSON from *at on. Returns false if there is none. */
static bool next_piece(const char *text, size_t bytes, size_t *at, struct json_piece *piece)
{
    size_t end;

    while (*at < bytes && text[*at] != '"')
        ++*at;
    for (end = *at + 1; end < bytes && text[end] != '"'; end++)
        end += text[end] == '\\';
    if (end >= bytes)
        return false;
    *piece = (struct json_piece){.text = text + *at + 1, .length = end - *at - 1};
    for (end++; end < bytes && memchr(" \n\r\t", text[end], 4); end++)
        ;
    piece->is_key = end < bytes && text[end] == ':';
    *at = end;
    return true;
}

/* Return the next key; at the end of a text the last piece, since a key may end it. */
static struct json_piece next_key(const char *text, size_t bytes, size_t *at)
{
    struct json_piece piece = {.text = ""};

    while (next_piece(text, bytes, at, &piece) && !piece.is_key)
        ;
    return piece;
}

static bool is_same_piece(struct json_piece one, struct json_piece other)
{
    return one.length == other.length && memcmp(one.text, other.text, one.length) == 0;
}

/* Documents that both name a schema of this program may replace each other: other keys are the same
 * by chance only. A text that ends before its second key leaves that open. */
static bool is_same_json(const char *text, size_t bytes, const char *old, size_t old_bytes)
{
    size_t at = 0, old_at = 0;
    struct json_piece key = {.text = ""}, old_key = {.text = ""};

    next_piece(text, bytes, &at, &key);
    next_piece(old, old_bytes, &old_at, &old_key);
    if (text[0] != old[0] || !is_same_piece(key, old_key))
        return false;
    if (key.length == strlen("schema") && begins(key.text, key.length, "schema"))
        return next_piece(old, old_bytes, &old_at, &old_key) &&
               begins(old_key.text, old_key.length, "iobench-");
    key = next_key(text, bytes, &at);
    return key.length == 0 || is_same_piece(key, next_key(old, old_bytes, &old_at));
}

/* ---- all kinds ---- */

int replaced_check(const char *path, const char *text, size_t bytes)
{
    static const char html[] = "<!DOCTYPE html>\n";
    char old[BEGIN_BYTES], tail[MARK_REACH];
    struct stat status;

    if (!file_exists(path))
        return 0;
    const int fd = file_open(path, O_RDONLY, &status);
    if (fd < 0)
        return fd;
    const uint64_t file_bytes = (uint64_t)status.st_size;
    const ssize_t count = file_read_at(fd, old, sizeof old, 0, path);
    const ssize_t tail_count = file_read_at(
        fd, tail, sizeof tail, file_bytes > sizeof tail ? file_bytes - sizeof tail : 0, path);
    close(fd);
    if (count < 0 || tail_count < 0)
        return count < 0 ? (int)count : (int)tail_count;
    bool is_ours = count == 0;
    if (count == 0 || bytes == 0) {
        /* the old file is empty, or there is no text to compare it with */
    } else if (is_xml(text, bytes) || begins(text, bytes, "\x89PNG") ||
               begins(text, bytes, "%PDF-")) { /* pictures: by their mark and first byte */
        is_ours = old[0] == text[0] && memmem(tail, (size_t)tail_count, MARK, strlen(MARK));
    } else if (text[0] == '{' || text[0] == '[') {
        is_ours = is_same_json(text, bytes, old, (size_t)count);
    } else { /* by the first line, up to its second comma */
        size_t end = begins(text, bytes, html) ? strlen(html) : 0, commas = 0;
        for (; end < bytes && text[end] != '\n' && text[end] != '\r'; end++)
            if (text[end] == ',' && ++commas == 2)
                break;
        is_ours = (size_t)count >= end && memcmp(text, old, end) == 0 &&
                  (!memchr(text, ',', end) || (size_t)count == end || strchr(",\r\n", old[end]));
    }
    return is_ours ? 0
                   : fail(EEXIST,
                          "%s: file exists and does not begin like an older output of this kind: "
                          "not replaced; choose another file or remove this one",
                          path);
}
