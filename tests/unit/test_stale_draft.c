/* SPDX-License-Identifier: Apache-2.0
 * What kill -9 leaves of a draft with a given name is replaced; one that is being written is not.
 */
#include "tests/unit/folder.h"

#include "base/draft.h"
#include "base/fail.h"
#include "dataset/store.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int close_errno, sync_errno; /* 0, or how it fails */

int close(int fd)
{
    const int code = (int)syscall(SYS_close, fd);

    if (close_errno)
        errno = close_errno;
    return close_errno ? -1 : code;
}

int fsync(int fd)
{
    errno = sync_errno;
    return sync_errno ? -1 : 0;
}

/* A server may refuse what was written only now. */
static void what_cannot_be_closed_or_synced_is_not_written(void **unused)
{
    static const struct {
        int sync, close;
        const char *reason;
    } rows[] = {{0, EDQUOT, "cannot close: "},
                {EIO, 0, "cannot sync: "},
                {ENOSPC, EDQUOT, "cannot sync: "}};
    char *path = strdup(folder_path("r"));

    folder_put("r", "former");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int wanted = rows[i].sync ? -rows[i].sync : -rows[i].close;
        struct store_file *file;
        struct file_draft draft;
        assert_int_equal(store_open(folder_path("s"), STORE_CREATE, &file), 0);
        sync_errno = rows[i].sync;
        close_errno = rows[i].close;
        assert_int_equal(store_close(file, true), wanted);
        assert_reason(rows[i].reason);
        sync_errno = close_errno = 0;
        assert_int_equal(store_remove(folder_path("s")), 0);

        assert_int_equal(file_draft_open(&draft, path, NULL), 0);
        char *draft_path = strdup(draft.draft_path);
        assert_int_equal(file_write_at(draft.fd, "new", 3, 0, path), 0);
        sync_errno = rows[i].sync;
        close_errno = rows[i].close;
        assert_int_equal(file_draft_commit(&draft), wanted);
        sync_errno = close_errno = 0;
        assert_reason(rows[i].reason);
        assert_false(file_exists(draft_path));
        assert_text("r", "former");
        free(draft_path);
    }
    free(path);
}

/* One that the next writer took for stale before it was locked is made again, with another name. */
static bool takes_away;

int flock(int fd, int operation)
{
    if (takes_away) {
        takes_away = false;
        assert_int_equal(unlink(folder_path(".r.given.partial")), 0);
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static void a_draft_that_was_taken_away_is_not_one(void **unused)
{
    const struct file_draft_options options = {.suffix = "given"};
    struct file_draft draft;
    char *path = strdup(folder_path("r"));

    takes_away = true;
    assert_int_equal(file_draft_open(&draft, path, &options), -EEXIST);
    assert_reason(".r.given.partial: another process removed it");
    assert_int_equal(file_draft_open(&draft, path, &options), 0);
    file_draft_abandon(&draft);
    free(path);
}

static void only_a_draft_without_a_writer_is_stale(void **unused)
{
    const struct file_draft_options options = {.suffix = "next"};
    struct file_draft draft;

    char *path = strdup(folder_path("r")), *second = strdup(folder_path("second"));
    assert_int_equal(file_draft_remove_stale(path, "next"), 0); /* no draft */
    assert_int_equal(file_draft_open(&draft, path, &options), 0);
    assert_int_equal(file_draft_remove_stale(path, "next"), -EBUSY);
    assert_int_equal(file_draft_commit(&draft), 0);
    folder_write(".r.next.partial", "left", 4); /* left by a killed process */
    assert_int_equal(link(folder_path(".r.next.partial"), second), 0);
    assert_int_equal(file_draft_remove_stale(path, "next"), -EPERM);
    assert_int_equal(unlink(second), 0);
    assert_int_equal(file_draft_remove_stale(path, "next"), 0);
    assert_false(is_there(".r.next.partial"));
    assert_int_equal(symlink("r", folder_path(".r.next.partial")), 0);
    assert_true(file_draft_remove_stale(path, "next") < 0);
    assert_true(is_there(".r.next.partial"));
    assert_true(is_there("r"));
    assert_int_equal(unlink(folder_path(".r.next.partial")), 0);
    free(second);
    free(path);
}

static void those_with_any_suffix_go_but_the_one_being_written(void **unused)
{
    static const char *const others[] = {".r.0123456.partial", ".r.0123456w.partial",
                                         ".r2.01234567.partial", ".r.01234567.partia_",
                                         "r.01234567.partial"};
    struct file_draft draft;

    char *path = strdup(folder_path("r"));
    assert_int_equal(file_draft_open(&draft, path, NULL), 0);
    folder_put(".r.01234567.partial", "left");
    folder_put(".r.vvvvvvvv.partial", "left");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        folder_put(others[i], "of others");
    assert_int_equal(file_draft_remove_stale(path, NULL), 0);
    assert_false(is_there(".r.01234567.partial") || is_there(".r.vvvvvvvv.partial"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(is_there(others[i]));
    assert_int_equal(file_write_at(draft.fd, "whole", 5, 0, path), 0);
    assert_int_equal(file_draft_commit(&draft), 0);
    assert_text("r", "whole");
    free(path);
}

/* Between the last byte and its name a draft is still locked. */
static const char *renaming;

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    if (renaming) {
        assert_int_equal(file_draft_remove_stale(renaming, NULL), 0);
        assert_int_equal(faccessat(from_fd, from, F_OK, 0), 0);
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

static void a_draft_that_gets_its_name_is_not_stale(void **unused)
{
    struct file_draft draft;

    char *path = strdup(folder_path("r"));
    assert_int_equal(file_draft_open(&draft, path, NULL), 0);
    renaming = path;
    assert_int_equal(file_draft_commit(&draft), 0);
    renaming = NULL;
    assert_true(is_there("r"));
    free(path);
}

static int check_as_another(void)
{
    return seteuid(12345) == 0 && file_draft_check(folder_path("open/root")) == -EPERM &&
                   strstr(fail_reason(), "sticky") &&
                   file_draft_check(folder_path("open/mine")) == 0 &&
                   file_draft_check(folder_path("open/new")) == 0 &&
                   file_draft_check(folder_path("own/root")) == 0
               ? 0
               : 1;
}

/* /tmp lets nobody replace the file of another user: that is known before the work. */
static void in_a_sticky_folder_files_belong_to_their_owners(void **unused)
{
    int status;

    if (geteuid() != 0)
        skip();
    folder_put("open/root", "");
    folder_put("open/mine", "");
    folder_put("own/root", "");
    assert_int_equal(chmod(test_folder, 0755), 0);
    assert_int_equal(chmod(folder_path("open"), 01777), 0);
    assert_int_equal(chown(folder_path("open/mine"), 12345, 12345), 0);
    assert_int_equal(chown(folder_path("own"), 12345, 12345), 0);
    assert_int_equal(chmod(folder_path("own"), 01755), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(check_as_another());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(file_draft_check(folder_path("open/mine")), 0); /* root may */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(what_cannot_be_closed_or_synced_is_not_written),
        FOLDER_TEST(a_draft_that_was_taken_away_is_not_one),
        FOLDER_TEST(only_a_draft_without_a_writer_is_stale),
        FOLDER_TEST(those_with_any_suffix_go_but_the_one_being_written),
        FOLDER_TEST(a_draft_that_gets_its_name_is_not_stale),
        FOLDER_TEST(in_a_sticky_folder_files_belong_to_their_owners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
