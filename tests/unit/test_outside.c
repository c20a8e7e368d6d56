/* SPDX-License-Identifier: Apache-2.0
 * The helper process outside the sandbox: it runs only the fixed commands, nothing that it is sent.
 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "cachectl/outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const commands[] = {"echo first; exit 3", "sleep 600", "seq 2000; echo no >&2",
                                       "yes"};

static pid_t start(int *socket)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        outside_serve(ends[1], commands, 4);
        _exit(0);
    }
    close(ends[1]);
    *socket = ends[0];
    return child;
}

static void end(int socket, pid_t child)
{
    int status;

    close(socket);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool never(void *context)
{
    return false;
}

static bool at_once(void *context)
{
    return true;
}

static void test_commands(void **state)
{
    const struct child_task waits = {.timeout_ns = UINT64_C(60000000000), .stop = never},
                            stops = {.timeout_ns = UINT64_C(600000000000), .stop = at_once};
    struct child_result result;
    int socket;

    pid_t child = start(&socket);
    outside_use(socket, commands, 4);
    assert_int_equal(outside_run(commands[0], &waits, &result), 0);
    assert_int_equal(result.status, 3);
    assert_string_equal(result.output, "first");
    /* The helper must end its command, and respond afterwards as before. */
    assert_int_equal(outside_run(commands[1], &stops, &result), -EINTR);
    assert_int_equal(outside_run(commands[0], &waits, &result), 0);
    assert_string_equal(result.output, "first");
    assert_refused(outside_run("echo mine", &waits, &result), -EPERM, "echo mine");
    end(socket, child);
}

static void test_text(void **state)
{
    static char text[CHILD_TEXT_BYTES];
    const struct child_task task = {
        .text = text, .timeout_ns = UINT64_C(60000000000), .stop = never};
    struct child_result result;
    int socket;

    pid_t child = start(&socket);
    outside_use(socket, commands, 4);
    assert_int_equal(outside_run(commands[2], &task, &result), 0);
    assert_string_equal(result.output, "no");
    assert_string_equal(text + strlen(text) - 6, "\n2000\n");
    assert_int_equal(strlen(text), 8893);
    assert_int_equal(outside_run(commands[3], &task, &result), -EFBIG);
    assert_int_equal(outside_run(commands[2], &task, &result), 0);
    assert_int_equal(strlen(text), 8893);
    end(socket, child);
}

static void test_holders(void **state)
{
    struct holder holders[2] = {{.inode = 1, .device = 1, .path = "/nobody/maps/this"},
                                {.inode = 2, .device = 1, .path = "/nor/this"}};
    int socket;

    pid_t child = start(&socket);
    outside_use(socket, commands, 4);
    outside_find_holders(holders, 2);
    assert_int_equal(holders[0].pid, 0);
    assert_int_equal(holders[1].pid, 0);
    end(socket, child);
}

/* Garbage gets no reply; the next request does. */
static void test_garbage(void **state)
{
    const struct child_task waits = {.timeout_ns = UINT64_C(60000000000), .stop = never};
    struct child_result result;
    unsigned char bytes[4096];
    int socket;

    pid_t child = start(&socket);
    outside_use(socket, commands, 4);
    for (size_t size = 1; size <= sizeof bytes; size *= 2) {
        memset(bytes, 0xff, sizeof bytes);
        assert_int_equal(send(socket, bytes, size, 0), size);
    }
    assert_int_equal(outside_run(commands[0], &waits, &result), 0);
    assert_int_equal(result.status, 3);
    end(socket, child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_holders),
        cmocka_unit_test(test_garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
