/* SPDX-License-Identifier: Apache-2.0
 * Safe file access: nothing blocks, no link is followed, only our own files are removed. */
#include "tests/unit/folder.h"

#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Its address is shorter than a path may be. */
static void make_socket(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), folder = open(test_folder, O_PATH | O_CLOEXEC);

    assert_true(folder >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.60s", folder, name);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(folder);
    close(fd);
}

/* ---- opening ---- */

static void only_regular_files_are_opened_and_at_once(void **unused)
{
    folder_put("file", "text");
    assert_int_equal(mkfifo(folder_path("fifo"), 0600), 0);
    make_socket("socket");
    assert_int_equal(mkdir(folder_path("folder"), 0700), 0);
    assert_int_equal(symlink("loop", folder_path("loop")), 0);
    assert_int_equal(symlink("fifo", folder_path("to_fifo")), 0);

    static const struct {
        const char *name, *what;
        int code;
    } cases[] = {{"fifo", "a FIFO", -EINVAL},        {"to_fifo", "a FIFO", -EINVAL},
                 {"socket", "a socket", -EINVAL},    {"folder", "a folder", -EISDIR},
                 {"loop", "symbolic links", -ELOOP}, {"absent", "No such file", -ENOENT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(file_open(folder_path(cases[i].name), O_RDONLY, NULL), cases[i].code);
        assert_reason(cases[i].what);
        assert_int_equal(file_open(folder_path(cases[i].name), O_RDWR, NULL), cases[i].code);
        assert_true(file_open_quietly(folder_path(cases[i].name), O_RDONLY) < 0);
        assert_null(file_stream_kernel(folder_path(cases[i].name)));
    }
    assert_refused(file_open("/dev/null", O_RDONLY, NULL), -EINVAL, "a device");
}

static void what_is_opened_waits_for_its_disk(void **unused)
{
    struct stat status;

    folder_put("file", "text");
    int fd = file_open(folder_path("file"), O_RDONLY, &status);
    assert_true(fd >= 0);
    assert_int_equal(status.st_size, 4);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
    fd = file_open_quietly(folder_path("file"), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    close(fd);
    FILE *stream = file_stream_kernel("/proc/self/statm");
    assert_non_null(stream);
    assert_true(fgetc(stream) > 0);
    fclose(stream);
}

static void names_in_a_folder_are_not_followed(void **unused)
{
    struct folder folder = open_test_folder(), below;
    struct stat status;

    folder_put("file", "text");
    assert_int_equal(mkdir(folder_path("inner"), 0700), 0);
    assert_int_equal(symlink("file", folder_path("to_file")), 0);
    assert_int_equal(symlink("inner", folder_path("to_inner")), 0);
    assert_int_equal(symlink("absent", folder_path("to_nothing")), 0);

    assert_refused(folder_open_file(&folder, "to_file", O_RDONLY, NULL), -EINVAL, "symbolic link");
    assert_true(folder_open_below(&below, &folder, "to_inner") < 0);
    assert_reason("symbolic link");
    assert_int_equal(folder_create_file(&folder, "to_nothing"), -EEXIST);
    assert_false(is_there("absent"));
    assert_int_equal(folder_stat(&folder, "to_file", &status), 0);
    assert_true(S_ISLNK(status.st_mode));

    static const char *const no_names[] = {"", ".", "..", "a/b", "/etc/passwd", "../x"};
    for (size_t i = 0; i < sizeof no_names / sizeof *no_names; i++) {
        assert_int_equal(folder_open_file(&folder, no_names[i], O_RDONLY, NULL), -EINVAL);
        assert_int_equal(folder_open_below(&below, &folder, no_names[i]), -EINVAL);
        assert_int_equal(folder_make(&folder, no_names[i]), -EINVAL);
        assert_int_equal(folder_create_file(&folder, no_names[i]), -EINVAL);
        assert_int_equal(folder_remove(&folder, no_names[i], NULL), -EINVAL);
        assert_int_equal(folder_rename(&folder, "file", &folder, no_names[i], true), -EINVAL);
        assert_int_equal(folder_remove_tree(&folder, no_names[i], NULL, NULL), -EINVAL);
    }
    assert_int_equal(folder_open_below(&below, &folder, "inner"), 0);
    folder_close(&below);
    folder_close(&folder);
}

static void the_parent_of_a_path_is_found(void **unused)
{
    static const struct {
        const char *path, *parent, *name;
    } cases[] = {{"/x", "/", "x"},       {"x", ".", "x"},           {"/usr/x", "/usr", "x"},
                 {"/", "/", NULL},       {"/usr/..", "/usr", NULL}, {".", ".", NULL},
                 {"/usr/", "/usr", NULL}};
    struct folder folder;
    const char *name;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(folder_open_parent(&folder, cases[i].path, &name), 0);
        assert_string_equal(folder.path, cases[i].parent);
        if (cases[i].name)
            assert_string_equal(name, cases[i].name);
        else
            assert_null(name);
        folder_close(&folder);
    }
}

struct seen {
    char text[256];
};

static int see(void *context, const char *name, unsigned char type)
{
    struct seen *seen = context;
    size_t used = strlen(seen->text);

    snprintf(seen->text + used, sizeof seen->text - used, "%s=%d ", name, type);
    return 0;
}

static void a_listing_tells_types_and_can_be_had_again(void **unused)
{
    struct folder folder = open_test_folder();

    assert_int_equal(symlink("absent", folder_path("link")), 0);
    for (int i = 0; i < 2; i++) {
        struct seen seen = {""};
        assert_int_equal(folder_list(&folder, see, &seen), 0);
        assert_string_equal(seen.text, "link=10 ");
    }
    folder_close(&folder);
}

static int end_listing(void *context, const char *name, unsigned char type)
{
    return 7;
}

static void a_visit_ends_a_listing(void **unused)
{
    struct folder folder = open_test_folder();

    folder_put("a", "");
    assert_int_equal(folder_list(&folder, end_listing, NULL), 7);
    folder_close(&folder);
}

/* ---- drafts ---- */

static char *draft_name(const struct file_draft *draft)
{
    return strrchr(draft->draft_path, '/') + 1;
}

static void a_draft_appears_when_it_is_committed(void **unused)
{
    struct file_draft draft;

    folder_put("r.json", "old");
    folder_put("r.json.partial", "of the user");
    assert_int_equal(file_draft_open(&draft, folder_path("r.json"), NULL), 0);
    assert_true(file_is_draft_name(draft_name(&draft)));
    assert_false(file_is_draft_name("r.json.partial"));
    assert_int_equal(file_write_at(draft.fd, "new", 3, 0, "r.json"), 0);
    assert_text("r.json", "old");
    assert_int_equal(file_draft_commit(&draft), 0);
    file_draft_abandon(&draft);
    assert_text("r.json", "new");
    assert_text("r.json.partial", "of the user");

    assert_int_equal(file_draft_open(&draft, folder_path("r.json"), NULL), 0);
    char *path = strdup(draft.draft_path);
    assert_true(file_exists(path));
    fail(0, "kept");
    file_draft_abandon(&draft);
    file_draft_abandon(&draft);
    assert_string_equal(fail_reason(), "kept");
    assert_false(file_exists(path));
    free(path);
    assert_text("r.json", "new");
}

static void drafts_of_one_path_do_not_meet(void **unused)
{
    struct file_draft drafts[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(file_draft_open(&drafts[i], folder_path("r"), NULL), 0);
        assert_int_equal(file_write_at(drafts[i].fd, &"abc"[i], 1, 0, "r"), 0);
    }
    assert_int_equal(file_draft_commit(&drafts[2]), 0);
    assert_int_equal(file_draft_commit(&drafts[0]), 0);
    assert_text("r", "a");
    assert_int_equal(file_draft_commit(&drafts[1]), 0);
    assert_text("r", "b");
}

static void long_names_have_drafts(void **unused)
{
    struct file_draft draft;
    char name[256];

    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(file_draft_open(&draft, folder_path(name), NULL), 0);
    assert_int_equal(file_draft_commit(&draft), 0);
    assert_true(is_there(name));
}

/* ---- renaming ---- */

static void folders_are_renamed_without_replacing(void **unused)
{
    struct folder folder = open_test_folder();

    assert_int_equal(mkdir(folder_path("a"), 0700), 0);
    assert_int_equal(mkdir(folder_path("b"), 0700), 0);
    folder_put("a/x", "x");
    assert_int_equal(folder_rename(&folder, "a", &folder, "b", false), -EEXIST);
    assert_true(is_there("a/x"));
    assert_int_equal(folder_rename(&folder, "a", &folder, "c", false), 0);
    assert_true(is_there("c/x"));
    assert_int_equal(folder_rename(&folder, "c", &folder, "b", true), 0);
    assert_true(is_there("b/x"));
    folder_close(&folder);
}

/* ---- a file system without RENAME_NOREPLACE ---- */

/* From now on these calls fail with EINVAL and EPERM in this process. */
static int refuse_calls(bool links)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, links ? SYS_linkat : UINT32_MAX, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

enum { REFUSED = 77 };

/* In a child. Returns 0, REFUSED, or the number of the step that failed. */
static int rename_without_replacing(bool links)
{
    const struct file_draft_options options = {.no_replace = true};
    struct folder folder = open_test_folder();
    struct file_draft first, second;

    if (refuse_calls(links))
        return REFUSED;
    if (file_draft_open(&first, folder_path("r"), &options) ||
        file_draft_open(&second, folder_path("r"), &options))
        return 1;
    if (write(first.fd, "1", 1) != 1 || file_draft_commit(&first))
        return 2;
    if (file_draft_commit(&second) != -EEXIST)
        return 3;
    if (mkdir(folder_path("a"), 0700) || mkdir(folder_path("b"), 0700))
        return 4;
    if (folder_rename(&folder, "a", &folder, "b", false) != -EEXIST)
        return 5;
    if (folder_rename(&folder, "a", &folder, "c", false))
        return 6;
    if (folder_rename(&folder, "missing", &folder, "d", false) != -ENOENT || is_there("d"))
        return 7;
    folder_close(&folder);
    return 0;
}

static void where_the_file_system_cannot_nothing_is_replaced_either(void **unused)
{
    for (int links = 0; links < 2; links++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(rename_without_replacing(links));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
            skip();
        assert_int_equal(status, 0);
        assert_text("r", "1");
        assert_true(is_there("c") && is_there("b") && !is_there("a"));
        assert_false(folder_has_draft("."));
        unlink(folder_path("r"));
        rmdir(folder_path("b"));
        rmdir(folder_path("c"));
    }
}

static void a_device_is_opened_by_its_number(void **unused)
{
    struct stat null;

    if (stat("/dev/null", &null) || !S_ISCHR(null.st_mode))
        skip();
    folder_put("file", "x");
    const int fd = file_open_device("/dev/null", null.st_rdev);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &(char){0}, 1), 0);
    close(fd);
    assert_int_equal(file_open_device("/dev/null", null.st_rdev + 1), -ENODEV);
    assert_int_equal(file_open_device(folder_path("file"), null.st_rdev), -ENODEV);
    assert_int_equal(file_open_device(folder_path("none"), null.st_rdev), -ENOENT);
    assert_int_equal(folder_make_path(folder_path("a/b")), 0);
    assert_int_equal(folder_make_path(folder_path("file")), -ENOTDIR);
    assert_reason("/file: exists and is not a folder");
    assert_int_equal(folder_make_path(folder_path("file/below")), -ENOTDIR);
    assert_reason("/file/below: cannot make the folder");
}

static void only_the_same_file_is_removed(void **unused)
{
    struct folder folder = open_test_folder();
    struct stat made;

    folder_put("one", "");
    assert_int_equal(folder_stat(&folder, "one", &made), 0);
    folder_put("two", "two");
    assert_int_equal(rename(folder_path("two"), folder_path("one")), 0);
    assert_int_equal(folder_remove(&folder, "one", &made), -ESTALE);
    assert_text("one", "two");
    assert_int_equal(folder_remove(&folder, "one", NULL), 0);
    folder_close(&folder);
}

/* ---- locks ---- */

static void a_lock_has_one_holder_who_is_named(void **unused)
{
    struct file_lock lock, second;
    int status, to_child[2], from_child[2];
    char byte = 0;

    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    pid_t child = fork();
    if (child == 0) {
        bool held = file_lock_acquire(&lock, folder_path("lock")) == 0;
        if (write(from_child[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1)
            held = false;
        _exit(held ? 0 : 1); /* without a release, as after a crash */
    }
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    char named[64];
    snprintf(named, sizeof named, "in use by process %d on ", (int)child);
    assert_refused(file_lock_acquire(&second, folder_path("lock")), -EBUSY, named);
    file_lock_release(&second);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_there("lock"));
    assert_int_equal(file_lock_acquire(&second, folder_path("lock")), 0);
    assert_int_equal(file_lock_acquire(&lock, folder_path("lock")), -EBUSY);
    file_lock_release(&second);
    file_lock_release(&second);
    assert_false(is_there("lock"));
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(from_child[i]);
    }
}

static void what_is_no_lock_stays(void **unused)
{
    struct file_lock lock;

    folder_put("precious", "precious");
    assert_int_equal(symlink("precious", folder_path("link")), 0);
    assert_int_equal(mkfifo(folder_path("fifo"), 0600), 0);
    assert_int_equal(file_lock_acquire(&lock, folder_path("precious")), -EEXIST);
    assert_int_equal(file_lock_acquire(&lock, folder_path("link")), -EINVAL);
    assert_int_equal(file_lock_acquire(&lock, folder_path("fifo")), -EINVAL);
    assert_text("precious", "precious");
}

/* ---- trust ---- */

static void what_others_may_write_is_not_believed(void **unused)
{
    struct stat mine = {.st_uid = geteuid(), .st_mode = S_IFREG | 0664};
    struct stat foreign = {.st_uid = geteuid() + 1, .st_mode = S_IFREG | 0644};
    struct stat root = {.st_uid = 0, .st_mode = S_IFREG | 0644};

    assert_int_equal(file_trusted(&mine, &mine, "x"), 0);
    assert_int_equal(file_trusted(&root, &mine, "x"), 0);
    assert_int_equal(file_trusted(&foreign, &mine, "x"), -EPERM);
    assert_int_equal(file_trusted(&foreign, &foreign, "x"), 0);
    mine.st_mode |= S_IWOTH;
    assert_int_equal(file_trusted(&mine, &mine, "x"), -EPERM);
}

/* ---- streams ---- */

/* Names of our own descriptors; what is there already stays. */
static void a_stream_is_continued(void **unused)
{
    static const char *const ways[] = {"/dev/fd/%d", "/proc/self/fd/%d"};
    char name[64];

    const int file = open(folder_path("r"), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(file, "old ", 4), 4);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, ways[i], file);
        assert_true(file_is_stream(name));
        const int stream = file_open_stream(name);
        assert_true(stream > 2 && stream != file);
        assert_int_equal(write(stream, i ? "two" : "one ", i ? 3 : 4), i ? 3 : 4);
        close(stream);
        strcat(name, "x");
        assert_refused(file_open_stream(name), -ENOENT, "x: cannot open: ");
    }
    const int kept = dup(2);
    assert_int_equal(dup2(file, 2), 2);
    const int stream = file_open_stream("/dev/stderr");
    assert_int_equal(dup2(kept, 2), 2);
    close(kept);
    assert_int_equal(write(stream, " err", 4), 4);
    close(stream);
    close(file);
    assert_text("r", "old one two err");
    assert_true(file_is_stream("/dev/stdout") && file_is_stream("/dev/stderr") &&
                file_is_stream("/dev/null"));
    assert_false(file_is_stream(folder_path("r")) || file_is_stream(test_folder) ||
                 file_is_stream("/dev/fd/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(only_regular_files_are_opened_and_at_once),
        FOLDER_TEST(what_is_opened_waits_for_its_disk),
        FOLDER_TEST(names_in_a_folder_are_not_followed),
        cmocka_unit_test(the_parent_of_a_path_is_found),
        FOLDER_TEST(a_listing_tells_types_and_can_be_had_again),
        FOLDER_TEST(a_visit_ends_a_listing),
        FOLDER_TEST(a_draft_appears_when_it_is_committed),
        FOLDER_TEST(drafts_of_one_path_do_not_meet),
        FOLDER_TEST(long_names_have_drafts),
        FOLDER_TEST(folders_are_renamed_without_replacing),
        FOLDER_TEST(where_the_file_system_cannot_nothing_is_replaced_either),
        FOLDER_TEST(only_the_same_file_is_removed),
        FOLDER_TEST(a_device_is_opened_by_its_number),
        FOLDER_TEST(a_stream_is_continued),
        FOLDER_TEST(a_lock_has_one_holder_who_is_named),
        FOLDER_TEST(what_is_no_lock_stays),
        cmocka_unit_test(what_others_may_write_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
