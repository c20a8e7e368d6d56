/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { TRIES = 100, HOLDER_BYTES = 128 };

static const char head[] = "iobench lock: process ";

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
    if (got > 0 && strncmp(holder, head, sizeof head - 1) != 0)
        return fail_lock(lock, EEXIST, "is a file of somebody else, not a lock: move it away");
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
                            *holder ? holder + sizeof head - 1 - strlen("process ")
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
    for (int i = 0; code == -EAGAIN && i < TRIES; i++)
        code = try_lock(lock, &created);
    if (code == -EAGAIN)
        code = fail(EBUSY, "%s: in use by others: wait until they end", path);
    if (code == 0) {
        code = read_holder(lock, holder);
        if (code == 0 && lock->made.st_nlink != 1)
            code = fail_lock(lock, EEXIST, "has a second name, a lock has none: move it away");
        gethostname(host, sizeof host - 1);
        const int length =
            snprintf(holder, sizeof holder, "%s%d on %s\n", head, (int)getpid(), host);
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
