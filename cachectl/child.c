/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/child.h"

#include "base/clock.h"
#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int start(const char *const *argv, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    int code =
        posix_spawn(pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code ? fail(code, "%s: cannot run it: %s", argv[0], fail_errno_text(code)) : 0;
}

/* Keep the last line that is not empty. */
static void keep(struct child_result *result, const char *text, size_t bytes)
{
    size_t used = strlen(result->output);

    for (size_t i = 0; i < bytes; i++) {
        char letter = text[i];
        if (used && result->output[used - 1] == '\n' && letter != '\n')
            used = 0;
        if ((letter == '\n' && used == 0) || used == sizeof result->output - 1)
            continue;
        result->output[used++] = letter && (letter >= ' ' || letter == '\n') ? letter : ' ';
    }
    result->output[used] = '\0';
}

static void drain(int output, struct child_result *result)
{
    char text[512];
    ssize_t got;

    while ((got = read(output, text, sizeof text)) > 0)
        keep(result, text, (size_t)got);
}

/* A child that became another user cannot be killed by us; it is not waited for either. */
static void end_late(pid_t pid)
{
    if (kill(-pid, SIGKILL) == 0)
        waitpid(pid, NULL, 0);
    else
        kill(pid, SIGTERM);
}

static int wait_for(pid_t pid, int output, const char *name, const char *doing, uint64_t timeout_ns,
                    const struct cache_observer *observer, struct child_result *result)
{
    const uint64_t start_ns = clock_now_ns();
    uint64_t told_ns = start_ns;
    struct pollfd ready = {.fd = output, .events = POLLIN};
    int status = 0;

    for (;;) {
        /* The end is seen by waitpid, not by the pipe, which a daemon may keep open. */
        pid_t ended = waitpid(pid, &status, WNOHANG);
        drain(output, result);
        if (ended == pid)
            break;
        if (ended < 0 && errno != EINTR)
            return fail(errno, "%s: lost sight of it: %s", name, fail_errno_text(errno));
        uint64_t now_ns = clock_now_ns();
        if (now_ns - told_ns >= 100000000) {
            told_ns = now_ns;
            cache_tell(observer, doing, 0, 0, start_ns);
        }
        if (timeout_ns && now_ns - start_ns > timeout_ns) {
            end_late(pid);
            return fail(ETIMEDOUT, "%s: not done after %.0f s", name, (double)timeout_ns / 1e9);
        }
        if (poll(&ready, 1, 10) > 0 && (ready.revents & POLLHUP))
            ready.fd = -1; /* closed: poll is but a sleep from now on */
    }
    result->output[strcspn(result->output, "\n")] = '\0';
    result->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}

int child_run(const char *const *argv, const char *doing, uint64_t timeout_ns,
              const struct cache_observer *observer, struct child_result *result)
{
    int ends[2];
    pid_t pid = 0;

    *result = (struct child_result){0};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return fail(errno, "cannot make a pipe: %s", fail_errno_text(errno));
    int code = start(argv, ends[1], &pid);
    close(ends[1]);
    if (code == 0)
        code = wait_for(pid, ends[0], argv[0], doing, timeout_ns, observer, result);
    close(ends[0]);
    return code;
}
