/* SPDX-License-Identifier: Apache-2.0
 * Folders: non-files where files are expected, names, depths, permissions, and files that change
 * while being read.
 */
#include "tests/hostile/hostile.h"
#include "tests/unit/mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

enum { DEEP = 200, EMPTY_FILES_LONG = 100000, MOVING_RECORDS = 40 };

/* ---- not regular files ---- */

static void good_class(void)
{
    put_folder("ant");
    put_jpeg("ant/0.jpg", 0);
    put_jpeg("ant/1.jpg", 1);
}

static void put_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address))
        give_up("%s: cannot make", path);
    close(fd);
}

static void put_device(const char *path)
{
    if (mknod(path, S_IFCHR | 0644, makedev(1, 5))) /* /dev/zero: never ends */
        give_up("%s: cannot make", path);
}

static void fifo_alone(void)
{
    put_fifo("pipe");
}

static void fifo_rec(void)
{
    put_fifo("train.rec");
}

static void fifo_shard(void)
{
    put_fifo("train-00000-of-00001");
}

static void fifo_tar(void)
{
    put_fifo("train-000000.tar");
}

static void fifo_archive(void)
{
    put_fifo("a.tar.gz");
}

static void fifo_image(void)
{
    good_class();
    put_fifo("ant/2.jpg");
}

static void socket_image(void)
{
    good_class();
    put_socket("ant/2.jpg");
}

static void socket_alone(void)
{
    put_socket("train.rec");
}

static void device_image(void)
{
    good_class();
    put_device("ant/2.jpg");
}

static void device_rec(void)
{
    put_device("train.rec");
}

static void device_shard(void)
{
    put_device("train-00000-of-00001");
}

static void folders_named_as_files(void)
{
    put_folder("train.rec");
    put_folder("train.idx");
    put_folder("data.mdb");
    put_folder("a.tar");
    put_folder("train-00000-of-00001");
    put_folder("x.jpg");
}

static void folder_image(void)
{
    good_class();
    put_folder("ant/2.jpg");
}

static void dangling(void)
{
    good_class();
    put_link("nowhere.jpg", "ant/2.jpg");
}

static void dangling_root(void)
{
    put_link("nowhere", "set");
}

static void link_loop(void)
{
    good_class();
    put_link("2.jpg", "ant/2.jpg");
    put_link("..", "ant/up");
    put_link(".", "here");
}

static void link_loop_root(void)
{
    put_link("b", "a");
    put_link("a", "b");
}

static void link_device(void)
{
    good_class();
    put_link("/dev/zero", "ant/2.jpg");
}

static void link_kernel(void)
{
    good_class();
    put_link("/proc/self/environ", "ant/2.jpg");
    put_link("/proc/self/mem", "ant/3.jpg");
}

/* ---- names ---- */

static void put_named(const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "ant/%s", name);
    put_jpeg(path, 2);
}

static void names_escapes(void)
{
    good_class();
    put_named("\x1b]0;title\a\x1b[31m.jpg");
    put_named("\x9b"
              "31m.jpg");
    put_folder("\x1b[2Jclass");
    put_jpeg("\x1b[2Jclass/x.jpg", 3);
}

static void names_escapes_damaged(void)
{
    put_folder("\x1b[2Jclass");
    put_text("\x1b[2Jclass/\x1b[31m\n.jpg", "no image");
    put_text("\x1b[2Jclass/\xc2\x9b"
             "31m.jpg",
             "no image");
}

static void name_escapes_shard(void)
{
    put_text("\x1b[31m\n\x9b-00000-of-00001", "no record at all");
    put_text("\x1b[31m\n.rec", "no record at all");
}

static void names_lines(void)
{
    good_class();
    put_named("a\nb\n.jpg");
    put_named("\r\b\b\b\t.jpg");
}

static void names_no_utf8(void)
{
    good_class();
    put_named("\xff\xfe\x80.jpg");
    put_named("\xed\xa0\x80.jpg");
    put_named("\xc0\xaf.jpg");
}

static void names_long(void)
{
    char name[256] = {0};

    good_class();
    memset(name, 'a', 251);
    memcpy(name + 251, ".jpg", 4);
    put_named(name);
}

static void names_options(void)
{
    good_class();
    put_named("-rf.jpg");
    put_named("--help.jpg");
    put_folder("--force");
    put_jpeg("--force/-.jpg", 1);
}

static void names_formats(void)
{
    good_class();
    put_named("%s%s%s%n%n.jpg");
    put_named("%99999999d.jpg");
}

static void names_shell(void)
{
    good_class();
    put_named("$(touch ..|touch x;`id`&&'\".jpg");
    put_named("*?[a-z].jpg");
}

/* ---- shapes ---- */

static void nothing(void) {}

static void deep(void)
{
    char path[3 * DEEP + 16] = "";

    for (int i = 0; i < DEEP; i++) {
        strcat(path, i ? "/d" : "d");
        put_folder(path);
    }
    strcat(path, "/x.jpg");
    put_jpeg(path, 0);
}

static void empty_files(void)
{
    char path[64];

    put_folder("ant");
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof path, "ant/%d.jpg", i);
        put_text(path, "");
    }
}

static void empty_files_long(void)
{
    char path[64];

    put_folder("ant");
    for (int i = 0; i < EMPTY_FILES_LONG; i++) {
        snprintf(path, sizeof path, "ant/%d.jpg", i);
        put_text(path, "");
    }
}

static void sparse_image(void)
{
    good_class();
    put_sparse("ant/2.jpg", UINT64_C(1) << 40);
}

static void sparse_shard(void)
{
    put_sparse("train-00000-of-00001", UINT64_C(1) << 30);
}

static void sparse_rec(void)
{
    put_sparse("train.rec", UINT64_C(1) << 30);
}

static void all_formats(void)
{
    good_class();
    put_text("train.rec", "x");
    put_text("data.mdb", "x");
    put_text("a.tar", "x");
    put_text("train-00000-of-00001", "x");
}

/* ---- permissions ---- */

static void unreadable(void)
{
    good_class();
    chmod("ant/1.jpg", 0);
}

static void unreadable_folder(void)
{
    good_class();
    chmod("ant", 0);
}

static void read_only(void)
{
    good_class();
    chmod("ant", 0555);
    chmod(".", 0555);
}

static void full_disk(void)
{
    put_folder("small");
    if (own_mounts() && mount("none", "small", "tmpfs", 0, "size=64k") && errno != EPERM)
        give_up("mount");
}

/* ---- changing files ---- */

static void moving_records(unsigned count)
{
    struct blob blob = {0};

    for (unsigned i = 0; i < count; i++)
        add_example(&blob, i % 4, i % 10 + 1);
    blob_save(&blob, "next");
}

static void save_moving(const char *path)
{
    moving_records(MOVING_RECORDS);
    if (rename("next", path))
        give_up("%s", path);
}

static void shrink_and_grow(unsigned turn)
{
    if (turn % 2 == 0)
        cut_file("train-00000-of-00001", turn % 4 ? 0 : 5000);
    else
        cut_file("train-00000-of-00001", 1 << 20);
}

static void shrinking(void)
{
    save_moving("train-00000-of-00001");
    hostile_step = shrink_and_grow;
}

static void shrink_image(unsigned turn)
{
    cut_file("ant/0.jpg", turn % 2 ? 100 : 4000);
    cut_file("ant/1.jpg", turn % 2 ? 4000 : 0);
}

static void shrinking_images(void)
{
    good_class();
    hostile_step = shrink_image;
}

static void replace_shard(unsigned turn)
{
    moving_records(turn % 2 ? 3 : MOVING_RECORDS);
    if (rename("next", "train-00000-of-00001"))
        give_up("rename");
}

static void replaced(void)
{
    save_moving("train-00000-of-00001");
    hostile_step = replace_shard;
}

static void append(unsigned turn)
{
    patch_file("train-00000-of-00001", 100 + turn % 1000, "changed", 7);
}

static void written_to(void)
{
    save_moving("train-00000-of-00001");
    hostile_step = append;
}

static void come_and_go(unsigned turn)
{
    if (turn % 2) {
        unlink("ant/2.jpg");
        unlink("ant/0.jpg");
    } else {
        put_jpeg("ant/2.jpg", 2);
        put_jpeg("ant/0.jpg", 2);
    }
}

static void coming_and_going(void)
{
    good_class();
    hostile_step = come_and_go;
}

static void to_fifo(unsigned turn)
{
    unlink("ant/0.jpg");
    if (turn % 3 == 0)
        put_fifo("ant/0.jpg");
    else if (turn % 3 == 1)
        put_link("../../sentinel/secret", "ant/0.jpg");
    else
        put_jpeg("ant/0.jpg", 0);
}

static void becoming_fifo(void)
{
    good_class();
    hostile_step = to_fifo;
}

static void data_shrinks(unsigned turn)
{
    cut_file("data.mdb", turn % 2 ? 1 << 18 : 8192);
}

static void lmdb_shrinking(void)
{
    copy_source("tests/golden/lmdb/deep/data.mdb", "data.mdb");
    hostile_step = data_shrinks;
}

const struct hostile_set hostile_trees[] = {
    SET("fifo", "the data set is a FIFO", fifo_alone, REFUSED, .operand = "pipe"),
    SET("fifo-rec", "a FIFO named train.rec", fifo_rec, REFUSED),
    SET("fifo-rec-named", "a FIFO named train.rec, as the data set", fifo_rec, REFUSED,
        .operand = "train.rec"),
    SET("fifo-shard", "a FIFO named as a shard", fifo_shard, REFUSED),
    SET("fifo-tar", "a FIFO named as a tar", fifo_tar, REFUSED),
    SET("fifo-archive", "a FIFO named a.tar.gz", fifo_archive, REFUSED, .operand = "a.tar.gz"),
    SET("fifo-image", "a FIFO among images", fifo_image, EITHER),
    SET("socket-image", "a socket among images", socket_image, EITHER),
    SET("socket-rec", "a socket named train.rec", socket_alone, REFUSED),
    SET("device-image", "a device among images", device_image, EITHER, .flags = NEEDS_ROOT),
    SET("device-rec", "a device named train.rec", device_rec, REFUSED, .flags = NEEDS_ROOT),
    SET("device-shard", "a device named as a shard", device_shard, REFUSED, .flags = NEEDS_ROOT),
    SET("folders-as-files", "folders named as shards, indexes, images", folders_named_as_files,
        REFUSED),
    SET("folder-image", "a folder named as an image", folder_image, EITHER),
    SET("link-dangling", "a dangling link among images", dangling, EITHER),
    SET("link-dangling-root", "the data set is a dangling link", dangling_root, REFUSED,
        .operand = "set"),
    SET("link-loop", "links in a circle among images", link_loop, EITHER),
    SET("link-loop-root", "the data set is a link to itself", link_loop_root, REFUSED,
        .operand = "a"),
    SET("link-device", "a link to /dev/zero among images", link_device, EITHER),
    SET("link-kernel", "links into /proc among images", link_kernel, EITHER),
    SET("names-escapes", "names that command a terminal", names_escapes, FINE),
    SET("names-escapes-damaged", "damaged files whose names command a terminal",
        names_escapes_damaged, EITHER),
    SET("names-escapes-shard", "damaged shards whose names command a terminal", name_escapes_shard,
        REFUSED),
    SET("names-lines", "names of several lines", names_lines, FINE),
    SET("names-no-utf8", "names that are no UTF-8", names_no_utf8, FINE),
    SET("names-long", "a name of 255 bytes", names_long, FINE),
    SET("names-options", "names like options", names_options, FINE),
    SET("names-formats", "names like printf formats", names_formats, FINE),
    SET("names-shell", "names like shell commands", names_shell, FINE),
    SET("folder-empty", "an empty folder", nothing, REFUSED),
    SET("folder-missing", "no such path", nothing, REFUSED, .operand = "no/such\x1b[31m/path"),
    SET("folders-deep", "folders 200 deep", deep, EITHER),
    SET("files-empty", "300 images of 0 bytes", empty_files, DAMAGED),
    SET("files-empty-long", "100,000 images of 0 bytes", empty_files_long, DAMAGED,
        .flags = LONG_RUN),
    SET("sparse-image", "an image of 1 TiB", sparse_image, EITHER),
    SET("sparse-shard", "a shard of 1 GiB of zeros", sparse_shard, DAMAGED),
    SET("sparse-rec", "a RecordIO file of 1 GiB of zeros", sparse_rec, DAMAGED),
    SET("all-formats", "a file of each format in one folder", all_formats, EITHER),
    SET("unreadable", "an image without read right", unreadable, DAMAGED, .flags = AS_NOBODY),
    SET("unreadable-folder", "a class without read right", unreadable_folder, EITHER,
        .flags = AS_NOBODY),
    SET("read-only", "folders without write right", read_only, FINE, .flags = AS_NOBODY),
    SET("moving-size", "a shard that shrinks and grows", shrinking, EITHER, .flags = MOVES | FRESH),
    SET("moving-images", "images that shrink and grow", shrinking_images, EITHER,
        .flags = MOVES | FRESH),
    SET("moving-replaced", "a shard that is replaced", replaced, EITHER, .flags = MOVES | FRESH),
    SET("moving-written", "a shard that is written to", written_to, EITHER, .flags = MOVES | FRESH),
    SET("moving-names", "images that come and go", coming_and_going, EITHER,
        .flags = MOVES | FRESH),
    SET("moving-kinds", "an image that becomes a FIFO and a link", becoming_fifo, EITHER,
        .flags = MOVES | FRESH),
    SET("moving-lmdb", "an LMDB that shrinks and grows", lmdb_shrinking, EITHER,
        .flags = MOVES | FRESH),
    SET("disk-full", "a full disk beneath the target", full_disk, EITHER, .flags = NEEDS_ROOT,
        .kind = KIND_OWN, .operand = "small",
        .command = "pack synthetic:count=20,mean=8k @/set -f files", .allowed = "small"),
    {0},
};
