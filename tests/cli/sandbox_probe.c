/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by tests/cli/sandbox.sh: simulates a compromised parser. When the program opens a file
 * whose path contains $PROBE_AT, it tries once what an attacker would try, and reports each outcome
 * on stderr. $PROBE_ABI sets the Landlock ABI of the kernel; 0: none.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli/fortified.h"

static int tried;

static void tell(const char *what, int failed)
{
    fprintf(stderr, "probe: %s: %s\n", what, failed ? strerrordesc_np(errno) : "done");
}

/* One request through its own ring. */
static int ring_open(const char *path)
{
    struct io_uring_params params = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 2, &params);

    if (ring < 0)
        return -1;
    char *queue = mmap(NULL, params.sq_off.array + params.sq_entries * sizeof(uint32_t),
                       PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *done = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe),
                      PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry = mmap(NULL, params.sq_entries * sizeof *entry,
                                      PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);

    if (queue == MAP_FAILED || done == MAP_FAILED || entry == MAP_FAILED)
        return -1;
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                   .fd = AT_FDCWD,
                                   .addr = (uint64_t)(uintptr_t)path,
                                   .open_flags = O_RDONLY};
    *(uint32_t *)(void *)(queue + params.sq_off.array) = 0;
    *(volatile uint32_t *)(void *)(queue + params.sq_off.tail) = 1;
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
        return -1;
    int result = ((struct io_uring_cqe *)(void *)(done + params.cq_off.cqes))->res;
    errno = result < 0 ? -result : 0;
    return result < 0 ? -1 : result;
}

/* Start a program of home: one that only root may replace may start. */
static int run(const char *home)
{
    char path[4096];
    int status = 0;

    snprintf(path, sizeof path, "%s/program", home);
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, (char *)NULL);
        _exit(errno);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    errno = WEXITSTATUS(status);
    return errno ? -1 : 0;
}

static void try_all(void)
{
    const char *secret = getenv("PROBE_SECRET"), *home = getenv("PROBE_HOME");
    const char *device = getenv("PROBE_DEVICE");
    struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(9)};
    char path[4096];

    if (*device) {
        tell("read a device", open(device, O_RDONLY | O_NONBLOCK) < 0);
        tell("read a device in a ring", ring_open(device) < 0);
    }
    tell("run a program", run(home));
    tell("write to a secret", open(secret, O_WRONLY | O_APPEND) < 0);
    tell("cut a secret", truncate(secret, 0));
    tell("remove a secret", unlink(secret));
    snprintf(path, sizeof path, "%s/planted", home);
    tell("make a file", open(path, O_CREAT | O_WRONLY, 0600) < 0);
    tell("make a folder", mkdir(path, 0700));
    tell("make a link", symlink(secret, path));
    tell("send a signal", kill(getppid(), 0));
    inet_pton(AF_INET, "127.0.0.1", &nobody.sin_addr);
    tell("connect",
         connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&nobody, sizeof nobody));
}

/* Rules are made from O_PATH handles. */
static void look(const char *path, int flags)
{
    const char *at = getenv("PROBE_AT");
    const int before = errno;

    if (!at || tried || (flags & O_PATH) || !path || !strstr(path, at))
        return;
    tried = 1;
    try_all();
    errno = before;
}

/* ---- an older kernel ---- */

long syscall(long number, ...)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    const char *abi = getenv("PROBE_ABI");
    va_list arguments;
    long given[6];

    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(arguments, long);
    va_end(arguments);
    if (abi && number == SYS_landlock_create_ruleset && given[0] == 0) {
        errno = EOPNOTSUPP;
        return atoi(abi) ? atoi(abi) : -1;
    }
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* ---- the moment of a parse ---- */

typedef int open_call(const char *path, int flags, ...);
typedef int openat_call(int folder, const char *path, int flags, ...);

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

/* Both names of each call are the same one here: off_t has 64 bits. */
#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...)                            \
    {                                                                     \
        va_list arguments;                                                \
        va_start(arguments, flags);                                       \
        mode_t mode = mode_of(flags, arguments);                          \
        va_end(arguments);                                                \
        look(path, flags);                                                \
        return ((open_call *)dlsym(RTLD_NEXT, #name))(path, flags, mode); \
    }
#define OPENAT(name)                                                                \
    int name(int folder, const char *path, int flags, ...)                          \
    {                                                                               \
        va_list arguments;                                                          \
        va_start(arguments, flags);                                                 \
        mode_t mode = mode_of(flags, arguments);                                    \
        va_end(arguments);                                                          \
        look(path, flags);                                                          \
        return ((openat_call *)dlsym(RTLD_NEXT, #name))(folder, path, flags, mode); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FORTIFIED(__open_2, open);
FORTIFIED(__open64_2, open);
FORTIFIED(__openat_2, openat);
FORTIFIED(__openat64_2, openat);
