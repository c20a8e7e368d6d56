/* SPDX-License-Identifier: Apache-2.0
 * A tree is removed as a whole, if all of it is ours, or not at all. */
#include "tests/unit/folder.h"
#include "tests/unit/mounts.h"

#include "base/fail.h"
#include "dataset/store.h"

#include <errno.h>
#include <sys/stat.h>

static void make_tree(void)
{
    assert_int_equal(mkdir(folder_path("tree"), 0700), 0);
    assert_int_equal(mkdir(folder_path("tree/a"), 0700), 0);
    assert_int_equal(mkdir(folder_path("tree/b"), 0700), 0);
    folder_put("tree/x", "x");
    folder_put("tree/a/y", "y");
    folder_put("tree/b/z", "z");
}

static void assert_tree_is_whole(void)
{
    static const char *const names[] = {"tree/x", "tree/a/y", "tree/b/z"};

    for (size_t i = 0; i < 3; i++)
        assert_true(is_there(names[i]));
}

static void a_tree_of_ours_goes(void **unused)
{
    struct folder folder = open_test_folder();

    make_tree();
    assert_int_equal(folder_remove_tree(&folder, "tree", NULL, NULL), 0);
    assert_false(is_there("tree"));
    assert_int_equal(folder_remove_tree(&folder, "tree", NULL, NULL), -ENOENT);
    folder_put("one", "");
    assert_int_equal(folder_remove_tree(&folder, "one", NULL, NULL), 0);
    assert_false(is_there("one"));
    folder_close(&folder);
}

static bool is_not_z(void *context, const char *below, const struct stat *status)
{
    return strcmp(below, "b/z") != 0;
}

static void one_foreign_name_keeps_the_whole_tree(void **unused)
{
    struct folder folder = open_test_folder();

    make_tree();
    folder_put("precious", "precious");
    assert_int_equal(mkdir(folder_path("home"), 0700), 0);
    folder_put("home/thesis", "thesis");

    assert_refused(folder_remove_tree(&folder, "tree", is_not_z, NULL), -EPERM, "tree/b/z");
    assert_tree_is_whole();

    assert_int_equal(symlink("../../home", folder_path("tree/b/link")), 0);
    assert_int_equal(folder_remove_tree(&folder, "tree", NULL, NULL), -EPERM);
    assert_reason("tree/b/link: is a symbolic link");
    assert_tree_is_whole();
    assert_int_equal(store_remove_tree(folder_path("tree")), -EPERM);
    assert_reason("tree/b/link: is a symbolic link");
    assert_tree_is_whole();
    unlink(folder_path("tree/b/link"));

    assert_int_equal(link(folder_path("precious"), folder_path("tree/b/second")), 0);
    assert_refused(folder_remove_tree(&folder, "tree", NULL, NULL), -EPERM, "hard links");
    assert_tree_is_whole();
    unlink(folder_path("tree/b/second"));

    assert_int_equal(mkfifo(folder_path("tree/b/fifo"), 0600), 0);
    assert_int_equal(folder_remove_tree(&folder, "tree", NULL, NULL), -EPERM);
    assert_tree_is_whole();
    unlink(folder_path("tree/b/fifo"));

    assert_int_equal(symlink("home", folder_path("to_home")), 0);
    assert_int_equal(folder_remove_tree(&folder, "to_home", NULL, NULL), -EPERM);
    assert_text("home/thesis", "thesis");
    if (geteuid() == 0) {
        assert_int_equal(chown(folder_path("tree/b/z"), 1234, 1234), 0);
        assert_refused(folder_remove_tree(&folder, "tree", NULL, NULL), -EPERM, "another user");
        assert_tree_is_whole();
    }
    folder_close(&folder);
}

/* Between the checking walk and the removing walk a folder becomes a link: its target must stay. */
static bool swap_at_the_end(void *context, const char *below, const struct stat *status)
{
    int *left = context;

    if (--*left == 0) {
        assert_int_equal(rename(folder_path("tree/b"), folder_path("moved")), 0);
        assert_int_equal(symlink("../home", folder_path("tree/b")), 0);
    }
    return true;
}

static void a_swap_between_the_walks_is_seen(void **unused)
{
    struct folder folder = open_test_folder();
    int calls = 7; /* six names, and the top again */

    make_tree();
    assert_int_equal(mkdir(folder_path("home"), 0700), 0);
    folder_put("home/thesis", "thesis");
    assert_int_equal(folder_remove_tree(&folder, "tree", swap_at_the_end, &calls), -EPERM);
    assert_text("home/thesis", "thesis");
    assert_text("moved/z", "z");
    folder_close(&folder);
}

/* A file on an overlay may have another st_dev than its folder. */
static void a_tree_on_an_overlay_goes_but_no_mount_in_it(void **unused)
{
    static const char *const folders[] = {"lower", "upper", "upper/new", "upper/work", "merged"};
    struct folder folder;
    char options[1024];

    for (int i = 0; i < 5; i++) {
        assert_int_equal(folder_make_path(folder_path(folders[i])), 0);
        if (i < 2 && (!own_mounts() || mount("none", folder_path(folders[i]), "tmpfs", 0, NULL)))
            skip();
    }
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s", folder_path("lower"),
             folder_path("upper/new"), folder_path("upper/work"));
    if (mount("overlay", folder_path("merged"), "overlay", 0, options))
        skip();
    folder_put("upper/other", "");
    folder_put("merged/tree/a/y", "y");
    folder_put("merged/tree/b/z", "z");
    assert_int_equal(folder_open(&folder, folder_path("merged")), 0);
    assert_int_equal(
        mount(folder_path("upper/other"), folder_path("merged/tree/b/z"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(folder_remove_tree(&folder, "tree", NULL, NULL), -EPERM);
    assert_reason("tree/b/z: is on another file system");
    assert_true(is_there("merged/tree/a/y"));
    assert_int_equal(umount(folder_path("merged/tree/b/z")), 0);
    assert_int_equal(folder_remove_tree(&folder, "tree", NULL, NULL), 0);
    assert_false(is_there("merged/tree"));
    folder_close(&folder);
    assert_int_equal(umount(folder_path("merged")), 0);
    assert_int_equal(umount(folder_path("upper")), 0);
    assert_int_equal(umount(folder_path("lower")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_tree_of_ours_goes),
        FOLDER_TEST(one_foreign_name_keeps_the_whole_tree),
        FOLDER_TEST(a_tree_on_an_overlay_goes_but_no_mount_in_it),
        FOLDER_TEST(a_swap_between_the_walks_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
