/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.so: makes one call of a program fail. For LD_PRELOAD, with glibc.
 *
 *   FAULT_CLASS   alloc, open, read, write, sync, rename, unlink, mkdir, stat, thread, uring,
 *                 random, spawn; own-open: opens by the program itself, not by a library
 *   FAULT_AT      which call of that class, from 1; 0: none
 *   FAULT_ERRNO   its errno; 0: the call does half its work (read and write)
 *   FAULT_REPORT  a file for the number of calls per class, one line each, when main() returns
 *
 * Calls count from the start of main(). Child programs are left alone.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/cli/fortified.h"

enum fault_class {
    ALLOC,
    OPEN,
    READ,
    WRITE,
    SYNC,
    RENAME,
    UNLINK,
    MKDIR,
    STAT,
    THREAD,
    URING,
    RANDOM,
    SPAWN,
    OWN_OPEN,
    CLASSES
};

static const char *const names[CLASSES] = {"alloc",  "open",   "read",  "write",   "sync",
                                           "rename", "unlink", "mkdir", "stat",    "thread",
                                           "uring",  "random", "spawn", "own-open"};

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static bool armed;
static int wanted_class = -1, wanted_errno;
static unsigned long wanted_at, counts[CLASSES];

/* ---- which call fails ---- */

/* Return whether this call should fail. Sets errno; 0: do half of the work. */
static bool fails(enum fault_class class)
{
    if (!armed)
        return false;
    pthread_mutex_lock(&counting);
    const unsigned long number = ++counts[class];
    pthread_mutex_unlock(&counting);
    if ((int)class != wanted_class || number != wanted_at)
        return false;
    errno = wanted_errno;
    return true;
}

static size_t half_of(size_t count)
{
    return count > 1 ? count / 2 : count;
}

/* Look up the next definition of a function, once. */
#define NEXT(TYPE, NAME)          \
    static __typeof__(TYPE) next; \
    if (!next)                    \
    *(void **)(&next) = dlsym(RTLD_NEXT, NAME)

/* Most calls fail with -1. */
#define CALL(CLASS, RESULT, NAME, PARAMETERS, ARGUMENTS)   \
    RESULT NAME PARAMETERS                                 \
    {                                                      \
        NEXT(RESULT(*) PARAMETERS, #NAME);                 \
        return fails(CLASS) ? (RESULT)-1 : next ARGUMENTS; \
    }

/* ---- memory ---- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes)
{
    return fails(ALLOC) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails(ALLOC) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return bytes && fails(ALLOC) ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(ALLOC) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **to, size_t alignment, size_t bytes)
{
    if (fails(ALLOC))
        return ENOMEM;
    *to = __libc_memalign(alignment, bytes);
    return *to ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    NEXT(void *(*)(void *, size_t, int, int, int, off_t), "mmap");
    return fails(ALLOC) ? MAP_FAILED : next(at, bytes, protection, flags, fd, offset);
}

/* ---- opening ---- */

static int (*real_main)(int, char **, char **);

static bool is_own(const void *caller)
{
    Dl_info program, library;

    return dladdr((void *)(uintptr_t)real_main, &program) && dladdr(caller, &library) &&
           program.dli_fbase == library.dli_fbase;
}

static bool fails_to_open(const void *caller)
{
    const bool own = armed && is_own(caller) && fails(OWN_OPEN);

    return own || fails(OPEN);
}

#define OPEN_FAILS fails_to_open(__builtin_return_address(0))

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list list;

    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return OPEN_FAILS ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list list;

    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return OPEN_FAILS ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE * (*)(const char *, const char *), "fopen");
    return OPEN_FAILS ? NULL : next(path, mode);
}

static __thread DIR *listed; /* in a listing, only the first name counts as a call */

DIR *opendir(const char *path)
{
    listed = NULL;
    NEXT(DIR * (*)(const char *), "opendir");
    return OPEN_FAILS ? NULL : next(path);
}

DIR *fdopendir(int fd)
{
    listed = NULL;
    NEXT(DIR * (*)(int), "fdopendir");
    return OPEN_FAILS ? NULL : next(fd);
}

int pipe2(int ends[2], int flags)
{
    NEXT(int (*)(int[2], int), "pipe2");
    return OPEN_FAILS ? -1 : next(ends, flags);
}

/* ---- reading and writing ---- */

ssize_t read(int fd, void *to, size_t count)
{
    const bool bad = fails(READ);

    return bad && errno ? -1 : syscall(SYS_read, fd, to, bad ? half_of(count) : count);
}

ssize_t pread(int fd, void *to, size_t count, off_t offset)
{
    const bool bad = fails(READ);

    return bad && errno ? -1 : syscall(SYS_pread64, fd, to, bad ? half_of(count) : count, offset);
}

FORTIFIED(__open_2, open);
FORTIFIED(__openat_2, openat);
FORTIFIED(__read_chk, read);
FORTIFIED(__pread_chk, pread);
FORTIFIED(__pread64_chk, pread);

ssize_t preadv2(int fd, const struct iovec *parts, int part_count, off_t offset, int flags)
{
    NEXT(ssize_t(*)(int, const struct iovec *, int, off_t, int), "preadv2");
    if (!fails(READ))
        return next(fd, parts, part_count, offset, flags);
    return errno ? -1 : pread(fd, parts[0].iov_base, half_of(parts[0].iov_len), offset);
}

struct dirent *readdir(DIR *folder)
{
    NEXT(struct dirent * (*)(DIR *), "readdir");
    const bool is_first = folder != listed;

    listed = folder;
    return is_first && fails(READ) && errno ? NULL : next(folder);
}

ssize_t write(int fd, const void *from, size_t count)
{
    const bool bad = fails(WRITE);

    return bad && errno ? -1 : syscall(SYS_write, fd, from, bad ? half_of(count) : count);
}

ssize_t pwrite(int fd, const void *from, size_t count, off_t offset)
{
    const bool bad = fails(WRITE);

    return bad && errno ? -1
                        : syscall(SYS_pwrite64, fd, from, bad ? half_of(count) : count, offset);
}

CALL(WRITE, int, ftruncate, (int fd, off_t length), (fd, length))
CALL(SYNC, int, fsync, (int fd), (fd))
CALL(SYNC, int, fdatasync, (int fd), (fd))
CALL(SYNC, int, syncfs, (int fd), (fd))

/* ---- names ---- */

CALL(RENAME, int, rename, (const char *from, const char *to), (from, to))
CALL(RENAME, int, renameat, (int from_in, const char *from, int to_in, const char *to),
     (from_in, from, to_in, to))
CALL(RENAME, int, renameat2,
     (int from_in, const char *from, int to_in, const char *to, unsigned flags),
     (from_in, from, to_in, to, flags))
CALL(RENAME, int, linkat, (int from_in, const char *from, int to_in, const char *to, int flags),
     (from_in, from, to_in, to, flags))
CALL(UNLINK, int, unlink, (const char *path), (path))
CALL(UNLINK, int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
CALL(UNLINK, int, rmdir, (const char *path), (path))
CALL(MKDIR, int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(MKDIR, int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode))
CALL(STAT, int, stat, (const char *path, struct stat *to), (path, to))
CALL(STAT, int, lstat, (const char *path, struct stat *to), (path, to))
CALL(STAT, int, fstat, (int fd, struct stat *to), (fd, to))
CALL(STAT, int, fstatat, (int folder, const char *path, struct stat *to, int flags),
     (folder, path, to, flags))
struct statx;
CALL(STAT, int, statx, (int folder, const char *path, int flags, unsigned mask, struct statx *to),
     (folder, path, flags, mask, to))

/* ---- threads, rings, programs ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *context)
{
    NEXT(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), "pthread_create");
    return fails(THREAD) ? errno : next(thread, attributes, start, context);
}

CALL(RANDOM, ssize_t, getrandom, (void *to, size_t count, unsigned flags), (to, count, flags))
CALL(SPAWN, pid_t, fork, (void), ())

int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
    NEXT(int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                 const posix_spawnattr_t *, char *const *, char *const *),
         "posix_spawn");
    return fails(SPAWN) ? errno : next(child, path, actions, attributes, words, environment);
}

int posix_spawnp(pid_t *child, const char *name, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[],
                 char *const environment[])
{
    NEXT(int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                 const posix_spawnattr_t *, char *const *, char *const *),
         "posix_spawnp");
    return fails(SPAWN) ? errno : next(child, name, actions, attributes, words, environment);
}

/* liburing returns a negative errno. */
#define RING(NAME, PARAMETERS, ARGUMENTS)              \
    int NAME PARAMETERS;                               \
    int NAME PARAMETERS                                \
    {                                                  \
        NEXT(int(*) PARAMETERS, #NAME);                \
        return fails(URING) ? -errno : next ARGUMENTS; \
    }

RING(io_uring_queue_init_params, (unsigned entries, void *ring, void *parameters),
     (entries, ring, parameters))
RING(io_uring_register_buffers, (void *ring, const void *buffers, unsigned count),
     (ring, buffers, count))
RING(io_uring_register_files, (void *ring, const int *files, unsigned count), (ring, files, count))
RING(io_uring_register_files_update,
     (void *ring, unsigned offset, const int *files, unsigned count), (ring, offset, files, count))
RING(io_uring_submit, (void *ring), (ring))
RING(io_uring_submit_and_get_events, (void *ring), (ring))
RING(io_uring_submit_and_wait_timeout,
     (void *ring, void *entry, unsigned count, void *timeout, void *mask),
     (ring, entry, count, timeout, mask))
RING(__io_uring_get_cqe, (void *ring, void *entry, unsigned submit, unsigned count, void *mask),
     (ring, entry, submit, count, mask))

/* ---- main() ---- */

static void report(int file)
{
    char text[1024];
    int length = 0;

    for (int i = 0; i < CLASSES; i++)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%s %lu\n", names[i], counts[i]);
    syscall(SYS_write, file, text, (size_t)length);
    syscall(SYS_close, file);
}

static int armed_main(int argc, char **argv, char **environment)
{
    const char *class = getenv("FAULT_CLASS"), *at = getenv("FAULT_AT"),
               *code = getenv("FAULT_ERRNO"), *path = getenv("FAULT_REPORT");

    for (int i = 0; class && i < CLASSES; i++)
        if (strcmp(names[i], class) == 0)
            wanted_class = i;
    wanted_at = at ? strtoul(at, NULL, 10) : 0;
    wanted_errno = code ? atoi(code) : 0;
    unsetenv("LD_PRELOAD");
    /* Open it now: the program may later drop its right to create files. */
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    armed = true;
    int status = real_main(argc, argv, environment);
    armed = false;
    if (file >= 0)
        report(file);
    return status;
}

int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                      void (*)(void), void *);

int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *stack)
{
    NEXT(int (*)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                 void (*)(void), void *),
         "__libc_start_main");
    real_main = start;
    return next(armed_main, argc, argv, init, fini, rtld_fini, stack);
}
