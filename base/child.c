/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STATUS_UNKNOWN = -1, DRAIN_READS = 64 };

static const uint64_t nap_ns = 10000000, turn_ns = 100000000, grace_ns = UINT64_C(2000000000);

/* ---- start and end of any child ---- */

static int spawn(struct child *child, const char *const *argv, const sigset_t *defaults,
                 const posix_spawn_file_actions_t *actions, bool own_group)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    posix_spawnattr_t attributes;
    sigset_t none;

    *child = (struct child){0};
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, defaults);
    posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                  (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
    sigaction(SIGCHLD, &plain, &child->former);
    int code = posix_spawnp(&child->pid, argv[0], actions, &attributes,
                            (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&attributes);
    if (code) {
        child->pid = 0;
        sigaction(SIGCHLD, &child->former, NULL);
    }
    return code ? fail(code, "%s: cannot run: %s", argv[0], fail_errno_text(code)) : 0;
}

/* Another part of the process reaped it. */
static void let_go(struct child *child)
{
    child->pid = 0;
    sigaction(SIGCHLD, &child->former, NULL);
}

bool child_ended(struct child *child)
{
    if (!child->pid)
        return true;
    pid_t ended = waitpid(child->pid, &child->status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    if (ended < 0)
        child->status = STATUS_UNKNOWN;
    let_go(child);
    return true;
}

int child_status(const struct child *child, const char *name)
{
    if (child->status == STATUS_UNKNOWN)
        return fail(ECHILD,
                    "%s: it ended, but its exit status is unknown: a library of this "
                    "process took it",
                    name);
    return WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status) : WEXITSTATUS(child->status);
}

int child_start(struct child *child, const char *const *argv)
{
    static const int kept[] = {SIGHUP, SIGINT, SIGQUIT};
    struct sigaction now;
    sigset_t defaults;

    sigfillset(&defaults);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (sigaction(kept[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            sigdelset(&defaults, kept[i]);
    return spawn(child, argv, &defaults, NULL, false);
}

/* ---- a helper ---- */

/* Read while it runs: stderr, and stdout separately if wanted. */
struct streams {
    int ends[2][2]; /* pipes; -1: closed */
    char *text;
    size_t used; /* of the text; CHILD_TEXT_BYTES: too long */
    char line[CHILD_OUTPUT_BYTES];
    size_t line_bytes;
    bool has_preferred; /* the result's output is a line that the task prefers */
};

/* Keep the last non-empty line, or the last preferred one. */
static void end_line(struct streams *streams, const struct child_task *task,
                     struct child_result *result)
{
    if (streams->line_bytes == 0)
        return;
    streams->line[streams->line_bytes] = '\0';
    streams->line_bytes = 0;
    const bool preferred =
        task->prefers && strncmp(streams->line, task->prefers, strlen(task->prefers)) == 0;
    if (preferred || !streams->has_preferred)
        memcpy(result->output, streams->line, sizeof result->output);
    streams->has_preferred |= preferred;
}

enum { ERRORS, OUTPUT, READ = 0, WRITE = 1 };

/* Read what is available, at most one pipeful per turn, since the program may write without end. */
static void drain(struct streams *streams, const struct child_task *task,
                  struct child_result *result)
{
    char text[1024];
    ssize_t got;

    for (int i = 0;
         i < DRAIN_READS && (got = read(streams->ends[ERRORS][READ], text, sizeof text)) > 0; i++)
        for (ssize_t k = 0; k < got; k++)
            if (text[k] == '\n')
                end_line(streams, task, result);
            else if (streams->line_bytes < sizeof streams->line - 1)
                streams->line[streams->line_bytes++] = text[k] ? text[k] : ' ';
    if (!streams->text)
        return;
    for (int i = 0; i < DRAIN_READS && streams->used < CHILD_TEXT_BYTES &&
                    (got = read(streams->ends[OUTPUT][READ], streams->text + streams->used,
                                CHILD_TEXT_BYTES - streams->used)) > 0;
         i++)
        streams->used += (size_t)got;
}

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static void close_streams(struct streams *streams)
{
    for (int i = 0; i < 4; i++)
        close_end(&streams->ends[i / 2][i % 2]);
}

/* Wait briefly for the child to end. The PID of a child that ended stays reserved until
 * child_ended(). */
static void await_end(const struct child *child)
{
    const uint64_t start_ns = clock_now_ns();
    siginfo_t info = {0};

    while (!waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid &&
           clock_now_ns() - start_ns < grace_ns)
        clock_sleep_ns(nap_ns);
}

static int wait_for(struct child *child, const struct child_task *task, struct streams *streams,
                    struct child_result *result)
{
    const char *name = task->argv[0];
    const uint64_t start_ns = clock_now_ns();
    uint64_t turned_ns = start_ns;
    struct pollfd ready[2] = {{.fd = streams->ends[ERRORS][READ], .events = POLLIN},
                              {.fd = streams->ends[OUTPUT][READ], .events = POLLIN}};

    for (;;) {
        /* Detect the end by waiting, not at the pipe, which a daemon may keep open. */
        const bool ended = child_ended(child);
        int code = 0;
        drain(streams, task, result);
        const uint64_t now_ns = clock_now_ns();
        const bool turn = now_ns - turned_ns >= turn_ns;
        if (turn)
            turned_ns = now_ns;
        if (streams->used == CHILD_TEXT_BYTES)
            code = fail(EFBIG, "%s: output exceeds %d bytes", name, CHILD_TEXT_BYTES);
        else if (ended)
            break;
        else if (flag_get(&stop_asked) || (turn && task->stop && task->stop(task->context)))
            code = fail(EINTR, "%s: interrupted", name);
        else if (task->timeout_ns && now_ns - start_ns > task->timeout_ns)
            code =
                fail(ETIMEDOUT, "%s: not done after %.0f s", name, (double)task->timeout_ns / 1e9);
        if (code && !ended) {
            /* Stop the whole group. Give up on a group that now belongs to another user, or that
             * the kernel keeps. */
            kill(-child->pid, SIGTERM);
            await_end(child);
            kill(-child->pid, SIGKILL); /* also for members that outlive the leader */
            await_end(child);
            if (!child_ended(child))
                let_go(child);
        }
        if (code)
            return code;
        if (poll(ready, 2, (int)(nap_ns / 1000000)) > 0)
            for (int i = 0; i < 2; i++)
                if (ready[i].revents & POLLHUP)
                    ready[i].fd = -1; /* closed: poll only sleeps from now on */
    }
    end_line(streams, task, result);
    result->status = child_status(child, name);
    return result->status < 0 ? result->status : 0;
}

int child_run(const struct child_task *task, struct child_result *result)
{
    struct streams streams = {.ends = {{-1, -1}, {-1, -1}}, .text = task->text};
    posix_spawn_file_actions_t actions;
    struct child child;
    sigset_t all;
    int code = 0;

    *result = (struct child_result){0};
    if (flag_get(&stop_asked))
        return fail(EINTR, "%s: interrupted", task->argv[0]);
    for (int i = ERRORS; code == 0 && i <= (task->text ? OUTPUT : ERRORS); i++) {
        if (pipe2(streams.ends[i], O_CLOEXEC))
            code = fail(errno, "cannot make a pipe: %s", fail_errno_text(errno));
        else /* only this end: programs expect blocking pipes */
            fcntl(streams.ends[i][READ], F_SETFL, O_NONBLOCK);
    }
    if (code) {
        close_streams(&streams);
        return code;
    }
    const int errors = streams.ends[ERRORS][WRITE];
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    if (task->input)
        posix_spawn_file_actions_adddup2(&actions, task->input, 0);
    else
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions,
                                     task->output ? task->output
                                     : task->text ? streams.ends[OUTPUT][WRITE]
                                                  : errors,
                                     1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    code = spawn(&child, task->argv, &all, &actions, true);
    posix_spawn_file_actions_destroy(&actions);
    close_end(&streams.ends[ERRORS][WRITE]);
    close_end(&streams.ends[OUTPUT][WRITE]);
    if (code == 0)
        code = wait_for(&child, task, &streams, result);
    close_streams(&streams);
    if (task->text)
        task->text[streams.used < CHILD_TEXT_BYTES ? streams.used : 0] = '\0';
    return code;
}

/* ---- startup ---- */

void startup_undo_inherited(void)
{
    static const int errors[] = {SIGPIPE, SIGXFSZ};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    enum { MAIN_BYTES = 8 << 20, THREAD_BYTES = 2 << 20 }; /* defaults of Linux and of glibc */
    struct rlimit limit;
    pthread_attr_t attributes;
    size_t bytes = 0;
    sigset_t none;

    /* In this order each open() returns the descriptor being checked. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            break;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        sigaction(errors[i], &ignore, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Raise the main thread's limit. Other threads keep the size that glibc took from it at the
     * start, so theirs is set below. */
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < MAIN_BYTES) {
        limit.rlim_cur = limit.rlim_max < MAIN_BYTES ? limit.rlim_max : MAIN_BYTES;
        setrlimit(RLIMIT_STACK, &limit);
    }
    if (pthread_getattr_default_np(&attributes))
        return;
    pthread_attr_getstacksize(&attributes, &bytes);
    if (bytes < THREAD_BYTES && pthread_attr_setstacksize(&attributes, THREAD_BYTES) == 0)
        pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
    unsetenv("OMP_STACKSIZE"); /* otherwise sets the stack of compute threads */
    unsetenv("GOMP_STACKSIZE");
}
