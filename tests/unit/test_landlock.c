/* SPDX-License-Identifier: Apache-2.0
 * A confined process may do what its rules allow, and nothing else: each act by each access. */
#include "tests/unit/folder.h"

#include "base/child.h"
#include "base/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int make_socket(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    return bind(fd, (const struct sockaddr *)&address, sizeof address);
}

/* One letter for each act that succeeded, in the current folder. */
static void try_all(char *done)
{
    const struct {
        char letter;
        bool was_done;
    } acts[] = {{'l', open(".", O_RDONLY | O_DIRECTORY) >= 0},
                {'r', open("file", O_RDONLY) >= 0},
                {'x', access("program", X_OK) == 0 && open("program", O_RDONLY) >= 0},
                {'w', open("file", O_WRONLY) >= 0},
                {'t', truncate("file", 0) == 0},
                {'f', open("new", O_WRONLY | O_CREAT, 0600) >= 0},
                {'d', mkdir("made", 0700) == 0},
                {'m', rename("file", "under/file") == 0},
                {'u', unlink("other") == 0},
                {'D', rmdir("empty") == 0},
                {'p', mkfifo("pipe", 0600) == 0},
                {'s', make_socket() == 0},
                {'L', symlink("file", "link") == 0}};

    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (acts[i].was_done)
            *done++ = acts[i].letter;
    *done = '\0';
}

static void check_access(unsigned access, const char *wanted)
{
    char done[32] = "";
    int ends[2];

    folder_put("file", "text");
    folder_put("program", "text");
    folder_put("other", "text");
    chmod(folder_path("program"), 0700);
    mkdir(folder_path("under"), 0700);
    mkdir(folder_path("empty"), 0700);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct landlock_rules rules;
        const bool is_confined = chdir(test_folder) == 0 && landlock_open(&rules, false) == 0 &&
                                 landlock_allow(&rules, ".", access) == 0 &&
                                 landlock_enter(&rules) == 0 && landlock_is_on();
        if (is_confined)
            try_all(done);
        _exit(!is_confined || write(ends[1], done, sizeof done) != sizeof done);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], done, sizeof done), sizeof done);
    close(ends[0]);
    close(ends[1]);
    assert_string_equal(done, wanted);
    static const char *const left[] = {"new",     "pipe", "socket",     "link",  "file", "other",
                                       "program", "made", "under/file", "under", "empty"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        remove(folder_path(left[i]));
}

static void each_access_allows_its_acts(void **unused)
{
    if (landlock_abi() < 3) /* before, links and cuts are not confined */
        skip();
    check_access(0, "");
    check_access(LANDLOCK_LIST, "l");
    check_access(LANDLOCK_READ, "lrx");
    check_access(LANDLOCK_RUN, "");
    check_access(LANDLOCK_WRITE, "wt");
    check_access(LANDLOCK_MAKE, "lwtfdmuD");
    check_access(LANDLOCK_TALK, "ps");
    check_access(LANDLOCK_READ | LANDLOCK_PIN, "lrx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_access_allows_its_acts, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
