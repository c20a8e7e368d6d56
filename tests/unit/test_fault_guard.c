/* SPDX-License-Identifier: Apache-2.0
 * Mapped files that are truncated while their bytes are used, or between borrowing and use. */
#include "tests/unit/reader_set.h"
#include "tests/unit/unit.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 8, BYTES = 200000 };

static int file = -1;
static uint8_t *map;
static size_t page, bytes;

static int set_map(void **unused)
{
    char path[] = "/tmp/iobench-test-XXXXXX";

    page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = PAGES * page;
    file = mkstemp(path);
    unlink(path);
    char *content = malloc(bytes);
    memset(content, 'x', bytes);
    assert_int_equal(write(file, content, bytes), bytes);
    free(content);
    map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    return map == MAP_FAILED ? -1 : 0;
}

static int end_map(void **unused)
{
    fault_guard_forget(map, bytes);
    close(file);
    return munmap(map, bytes);
}

static uint64_t add_up(const volatile uint8_t *from, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += from[i];
    return sum;
}

static void whole_files_are_not_lost(void **unused)
{
    fault_guard_install(); /* the test program has its own handler */
    fault_guard_begin();
    assert_int_equal(add_up(map, bytes), bytes * 'x');
    assert_true(fault_guard_end(map, bytes));
}

static void *use_again(void *unused)
{
    fault_guard_begin();
    assert_int_equal(add_up(map + 5 * page, page), 0); /* no longer a fault, but zeros */
    assert_false(fault_guard_end(map + 5 * page + 100, 10));
    return NULL;
}

static void pages_past_the_cut_are_lost(void **unused)
{
    pthread_t other;

    fault_guard_install(); /* the test program has its own handler */
    assert_int_equal(ftruncate(file, (off_t)(3 * page)), 0);
    fault_guard_begin();
    assert_int_equal(add_up(map + 2 * page, 4 * page), page * 'x');
    assert_false(fault_guard_end(map + 2 * page, 4 * page));
    assert_int_equal(pthread_create(&other, NULL, use_again, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    fault_guard_begin(); /* intact pages read as before */
    assert_int_equal(add_up(map, 3 * page), 3 * page * 'x');
    assert_true(fault_guard_end(map, 3 * page));
}

static void an_unmapped_range_is_forgotten(void **unused)
{
    fault_guard_install(); /* the test program has its own handler */
    assert_int_equal(ftruncate(file, 0), 0);
    fault_guard_begin();
    add_up(map, 1);
    assert_false(fault_guard_end(map, 1));
    fault_guard_forget(map, bytes);
    fault_guard_begin();
    assert_true(fault_guard_end(map, bytes));
}

static void own_handler(int number)
{
    _exit(number == SIGBUS ? 7 : 8);
}

/* Without a guard, the previous handler receives the fault. */
static void other_faults_go_on(void **unused)
{
    int status;

    assert_int_equal(ftruncate(file, 0), 0);
    for (int handled = 0; handled < 2; handled++) {
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGBUS, handled ? own_handler : SIG_DFL);
            fault_guard_install();
            add_up(map, 1);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(handled ? WIFEXITED(status) && WEXITSTATUS(status) == 7
                            : WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    }
}

/* The file is truncated between borrowing and use, through the reader itself. */
static void a_loan_is_lost(void **unused)
{
    struct run run;
    char *path = set_path(0);

    fault_guard_install(); /* the test program has its own handler */
    assert_int_equal(run_open(&run, "mmap", 1, 0), 0);
    struct read_request *request = run_request(&run, 0, 0, 0, BYTES);
    assert_int_equal(run_read(&run, request), BYTES);
    assert_int_equal(truncate(path, 100), 0);
    fault_guard_begin();
    add_up(request->data, BYTES);
    assert_false(fault_guard_end(request->data, BYTES));
    reader_release(&run.reader, request);
    run_close(&run);
    set_write(0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_files_are_not_lost, set_map, end_map),
        cmocka_unit_test_setup_teardown(pages_past_the_cut_are_lost, set_map, end_map),
        cmocka_unit_test_setup_teardown(an_unmapped_range_is_forgotten, set_map, end_map),
        cmocka_unit_test_setup_teardown(other_faults_go_on, set_map, end_map),
        cmocka_unit_test_setup_teardown(a_loan_is_lost, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
