/* SPDX-License-Identifier: Apache-2.0
 * Child programs: whatever was inherited and whatever they do, they exit or are killed. */
#include "tests/unit/unit.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t tenth_ns = 100000000;

static int shell(const char *script, uint64_t timeout_ns, struct child_result *result)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const struct child_task task = {.argv = argv, .timeout_ns = timeout_ns};
    int code = child_run(&task, result);

    /* No child is left to wait for. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return code;
}

static void its_end_is_told(void **unused)
{
    struct child_result result;

    assert_int_equal(shell("echo one; echo two >&2; echo; exit 7", 0, &result), 0);
    assert_int_equal(result.status, 7);
    assert_string_equal(result.output, "two");
    assert_int_equal(shell("kill -KILL $$", 0, &result), 0);
    assert_int_equal(result.status, 128 + SIGKILL);

    const char *const argv[] = {"/nonexistent", NULL};
    assert_refused(child_run(&(struct child_task){.argv = argv}, &result), -ENOENT, "/nonexistent");
}

static void ignored_sigchld_is_put_aside(void **unused)
{
    struct child_result result;
    struct sigaction now;

    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(shell("exit 5", 0, &result), 0);
    assert_int_equal(result.status, 5);
    assert_int_equal(sigaction(SIGCHLD, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

static void nothing_is_passed_on(void **unused)
{
    struct child_result result;
    sigset_t all, former;
    int open_fd = open("/dev/null", O_RDONLY); /* not closed on exec */

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &former);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    /* Signals 1 to 28; glibc's posix_spawn() skips two that it reserves. */
    assert_int_equal(
        shell("sed -n 's/^Sig\\(Blk\\|Ign\\):.*\\(.......\\)$/\\2/p' /proc/self/status | "
              "tr -d '\\n0'; "
              "ls /proc/self/fd | wc -l",
              0, &result),
        0);
    assert_string_equal(result.output, "4"); /* 0, 1, 2 and the folder */
    assert_int_equal(shell("cat", 0, &result), 0);
    assert_int_equal(result.status, 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &former, NULL);
    close(open_fd);
}

static void endless_output_is_ended(void **unused)
{
    struct child_result result;

    assert_refused(shell("yes", tenth_ns, &result), -ETIMEDOUT, "not done");
    /* A leftover program ends, too, when its output has no reader. */
    assert_int_equal(shell("yes & exit 3", 0, &result), 0);
    assert_int_equal(result.status, 3);
    assert_int_equal(shell("sleep 600 & echo $!; exit 4", 0, &result), 0);
    assert_int_equal(result.status, 4);
    assert_int_equal(kill((pid_t)atoi(result.output), SIGKILL), 0); /* it was left running */
}

/* Standard output and standard error stay separate; output that does not fit is dropped. */
static void standard_output_is_kept_whole(void **unused)
{
    static char text[CHILD_TEXT_BYTES];
    const char *argv[] = {"/bin/sh", "-c", "echo one; echo bad >&2; echo two; exit 3", NULL};
    const struct child_task task = {.argv = argv, .text = text};
    struct child_result result;

    assert_int_equal(child_run(&task, &result), 0);
    assert_int_equal(result.status, 3);
    assert_string_equal(text, "one\ntwo\n");
    assert_string_equal(result.output, "bad");
    argv[2] = "head -c 32767 /dev/zero | tr '\\0' x";
    assert_int_equal(child_run(&task, &result), 0);
    assert_int_equal(strlen(text), CHILD_TEXT_BYTES - 1);
    argv[2] = "head -c 32768 /dev/zero | tr '\\0' x";
    assert_int_equal(child_run(&task, &result), -EFBIG);
    assert_string_equal(text, "");
    argv[2] = "yes";
    assert_int_equal(child_run(&task, &result), -EFBIG);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static bool is_alive(pid_t pid)
{
    char path[64], state = 'X';

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X';
    fclose(file);
    return state != 'X' && state != 'Z';
}

static void deaf_ones_are_killed(void **unused)
{
    struct child_result result;
    char path[] = "/tmp/iobench-test-XXXXXX", script[256];
    int fd = mkstemp(path), pid = 0;

    assert_true(fd >= 0);
    snprintf(script, sizeof script,
             "trap '' TERM; (while :; do sleep 1; done) & echo $! >%s; while :; do sleep 1; done",
             path);
    /* The shell may be slow to start: increase the limit until it has written its line. */
    for (uint64_t limit_ns = 3 * tenth_ns; pid == 0; limit_ns *= 2) {
        assert_int_equal(shell(script, limit_ns, &result), -ETIMEDOUT);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        if (fscanf(file, "%d", &pid) != 1)
            pid = 0;
        fclose(file);
    }
    while (is_alive(pid)) /* SIGKILL was sent but may take effect later */
        clock_sleep_ns(tenth_ns / 100);
    close(fd);
    unlink(path);
}

static bool stop(void *context)
{
    return ++*(int *)context == 2;
}

static void a_caller_stops_it(void **unused)
{
    const char *const argv[] = {"sleep", "600", NULL};
    int calls = 0;
    const struct child_task task = {.argv = argv, .stop = stop, .context = &calls};
    struct child_result result;

    assert_int_equal(child_run(&task, &result), -EINTR);
    assert_int_equal(calls, 2);
}

static bool steal(void *context)
{
    int *stolen = context;

    *stolen += waitpid(-1, NULL, WNOHANG) > 0;
    return false;
}

static void a_stolen_status_is_said(void **unused)
{
    const char *const argv[] = {"/bin/sh", "-c", "exit 0", NULL};
    int stolen = 0;
    const struct child_task task = {.argv = argv, .stop = steal, .context = &stolen};
    struct child child = {0};
    struct child_result result;

    assert_int_equal(child_start(&child, argv), 0);
    assert_true(waitpid(child.pid, NULL, 0) > 0);
    assert_true(child_ended(&child));
    assert_refused(child_status(&child, "sh"), -ECHILD, "unknown");
    int code = child_run(&task, &result);
    assert_int_equal(code, stolen ? -ECHILD : 0);
}

static void a_command_keeps_what_nohup_ignores(void **unused)
{
    const char *const argv[] = {
        "/bin/sh", "-c", "kill -HUP $$; [ -e /proc/self/fd/$FD ] || exit 2; kill -PIPE $$", NULL};
    struct child child;
    int inherited = open("/dev/null", O_RDONLY);
    char number[16];

    snprintf(number, sizeof number, "%d", inherited);
    setenv("FD", number, 1);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(child_start(&child, argv), 0);
    while (!child_ended(&child))
        clock_sleep_ns(tenth_ns / 100);
    assert_int_equal(child_status(&child, "sh"), 128 + SIGPIPE);
    signal(SIGHUP, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    close(inherited);
}

/* Whichever descriptor is the one too many. */
static void without_descriptors_it_says_so(void **unused)
{
    const char *const argv[] = {"/bin/true", NULL};
    const int next = open("/dev/null", O_RDONLY);
    struct child_result result;
    struct rlimit former;
    int code = -EMFILE;

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &former), 0);
    for (rlim_t most = (rlim_t)next; code; most++) {
        static char text[CHILD_TEXT_BYTES];
        const struct child_task task = {.argv = argv, .text = text};
        assert_true(most < (rlim_t)next + 20);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, former.rlim_max});
        code = child_run(&task, &result);
        setrlimit(RLIMIT_NOFILE, &former);
        assert_true(code == 0 || code == -EMFILE);
        const int after = open("/dev/null", O_RDONLY);
        close(after);
        assert_int_equal(after, next); /* none is left open */
    }
    assert_int_equal(result.status, 0);
}

/* The last test: afterwards no child is started. */
static void an_interrupt_ends_it(void **unused)
{
    struct child_result result;

    stop_ask(0);
    assert_refused(shell("sleep 600", 0, &result), -EINTR, "interrupted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_end_is_told),
        cmocka_unit_test(ignored_sigchld_is_put_aside),
        cmocka_unit_test(nothing_is_passed_on),
        cmocka_unit_test(endless_output_is_ended),
        cmocka_unit_test(standard_output_is_kept_whole),
        cmocka_unit_test(deaf_ones_are_killed),
        cmocka_unit_test(a_caller_stops_it),
        cmocka_unit_test(a_stolen_status_is_said),
        cmocka_unit_test(a_command_keeps_what_nohup_ignores),
        cmocka_unit_test(without_descriptors_it_says_so),
        cmocka_unit_test(an_interrupt_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
