/* SPDX-License-Identifier: Apache-2.0
 * Folders: non-files where files are expected, names, depths, permissions, and files that change
 * while being read.
 */
#include "tests/hostile/hostile.h"
#include "tests/unit/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#define SHARD "train-00000-of-00001"

enum { DEEP = 200, MOVING_RECORDS = 40 };

/* ---- not regular files ---- */

static void good_class(void)
{
    put_folder("ant");
    put_jpeg("ant/0.jpg", 0);
    put_jpeg("ant/1.jpg", 1);
}

static void put_socket(const struct hostile_act *act)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", act->path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address))
        give_up("%s: cannot make", act->path);
    close(fd);
}

static void put_device(const struct hostile_act *act)
{
    if (mknod(act->path, S_IFCHR | 0644, makedev(1, 5))) /* /dev/zero: never ends */
        give_up("%s: cannot make", act->path);
}

/* ---- names ---- */

static void names_long(void)
{
    char name[4 + 256] = "ant/";

    good_class();
    memset(name + 4, 'a', 251);
    memcpy(name + 4 + 251, ".jpg", 4);
    put_jpeg(name, 2);
}

/* ---- shapes ---- */

static void empty_files(const struct hostile_act *act)
{
    char path[64];

    put_folder("ant");
    for (uint64_t i = 0; i < act->number; i++) {
        snprintf(path, sizeof path, "ant/%d.jpg", (int)i);
        put_text(path, "");
    }
}

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

/* ---- permissions ---- */

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
    if (rename("next", SHARD))
        give_up("rename");
}

static void moving_shard(void)
{
    moving_records(MOVING_RECORDS);
}

static void shrink_and_grow(unsigned turn)
{
    if (turn % 2 == 0)
        cut_file(SHARD, turn % 4 ? 0 : 5000);
    else
        cut_file(SHARD, 1 << 20);
}

static void shrink_image(unsigned turn)
{
    cut_file("ant/0.jpg", turn % 2 ? 100 : 4000);
    cut_file("ant/1.jpg", turn % 2 ? 4000 : 0);
}

static void replace_shard(unsigned turn)
{
    moving_records(turn % 2 ? 3 : MOVING_RECORDS);
}

static void append(unsigned turn)
{
    patch_file(SHARD, 100 + turn % 1000, "changed", 7);
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

static void deep_lmdb(void)
{
    copy_source("tests/golden/lmdb/deep/data.mdb", "data.mdb");
}

static void data_shrinks(unsigned turn)
{
    cut_file("data.mdb", turn % 2 ? 1 << 18 : 8192);
}

const struct hostile_set hostile_trees[] = {
    SET("fifo", "the data set is a FIFO", NULL, REFUSED, .operand = "pipe",
        .acts = {{FIFO("pipe")}}),
    SET("fifo-rec", "a FIFO named train.rec", NULL, REFUSED, .acts = {{FIFO("train.rec")}}),
    SET("fifo-rec-named", "a FIFO named train.rec, as the data set", NULL, REFUSED,
        .operand = "train.rec", .acts = {{FIFO("train.rec")}}),
    SET("fifo-shard", "a FIFO named as a shard", NULL, REFUSED, .acts = {{FIFO(SHARD)}}),
    SET("fifo-tar", "a FIFO named as a tar", NULL, REFUSED, .acts = {{FIFO("train-000000.tar")}}),
    SET("fifo-archive", "a FIFO named a.tar.gz", NULL, REFUSED, .operand = "a.tar.gz",
        .acts = {{FIFO("a.tar.gz")}}),
    SET("fifo-image", "a FIFO among images", good_class, EITHER, .acts = {{FIFO("ant/2.jpg")}}),
    SET("socket-image", "a socket among images", good_class, EITHER,
        .acts = {{.path = "ant/2.jpg", CALL(put_socket)}}),
    SET("socket-rec", "a socket named train.rec", NULL, REFUSED,
        .acts = {{.path = "train.rec", CALL(put_socket)}}),
    SET("device-image", "a device among images", good_class, EITHER, .flags = NEEDS_ROOT,
        .acts = {{.path = "ant/2.jpg", CALL(put_device)}}),
    SET("device-rec", "a device named train.rec", NULL, REFUSED, .flags = NEEDS_ROOT,
        .acts = {{.path = "train.rec", CALL(put_device)}}),
    SET("device-shard", "a device named as a shard", NULL, REFUSED, .flags = NEEDS_ROOT,
        .acts = {{.path = SHARD, CALL(put_device)}}),
    SET("folders-as-files", "folders named as shards, indexes, images", NULL, REFUSED,
        .acts = {{FOLDER("train.rec")},
                 {FOLDER("train.idx")},
                 {FOLDER("data.mdb")},
                 {FOLDER("a.tar")},
                 {FOLDER(SHARD)},
                 {FOLDER("x.jpg")}}),
    SET("folder-image", "a folder named as an image", good_class, EITHER,
        .acts = {{FOLDER("ant/2.jpg")}}),
    SET("link-dangling", "a dangling link among images", good_class, EITHER,
        .acts = {{LINK("nowhere.jpg", "ant/2.jpg")}}),
    SET("link-dangling-root", "the data set is a dangling link", NULL, REFUSED, .operand = "set",
        .acts = {{LINK("nowhere", "set")}}),
    SET("link-loop", "links in a circle among images", good_class, EITHER,
        .acts = {{LINK("2.jpg", "ant/2.jpg")}, {LINK("..", "ant/up")}, {LINK(".", "here")}}),
    SET("link-loop-root", "the data set is a link to itself", NULL, REFUSED, .operand = "a",
        .acts = {{LINK("b", "a")}, {LINK("a", "b")}}),
    SET("link-device", "a link to /dev/zero among images", good_class, EITHER,
        .acts = {{LINK("/dev/zero", "ant/2.jpg")}}),
    SET("link-kernel", "links into /proc among images", good_class, EITHER,
        .acts = {{LINK("/proc/self/environ", "ant/2.jpg")}, {LINK("/proc/self/mem", "ant/3.jpg")}}),
    SET("names-escapes", "names that command a terminal", good_class, FINE,
        .acts = {{JPEG("ant/\x1b]0;title\a\x1b[31m.jpg", 2)},
                 {JPEG("ant/\x9b"
                       "31m.jpg",
                       2)},
                 {FOLDER("\x1b[2Jclass")},
                 {JPEG("\x1b[2Jclass/x.jpg", 3)}}),
    SET("names-escapes-damaged", "damaged files whose names command a terminal", NULL, EITHER,
        .acts = {{FOLDER("\x1b[2Jclass")},
                 {TEXT("\x1b[2Jclass/\x1b[31m\n.jpg", "no image")},
                 {TEXT("\x1b[2Jclass/\xc2\x9b"
                       "31m.jpg",
                       "no image")}}),
    SET("names-escapes-shard", "damaged shards whose names command a terminal", NULL, REFUSED,
        .acts = {{TEXT("\x1b[31m\n\x9b-00000-of-00001", "no record at all")},
                 {TEXT("\x1b[31m\n.rec", "no record at all")}}),
    SET("names-lines", "names of several lines", good_class, FINE,
        .acts = {{JPEG("ant/a\nb\n.jpg", 2)}, {JPEG("ant/\r\b\b\b\t.jpg", 2)}}),
    SET("names-no-utf8", "names that are no UTF-8", good_class, FINE,
        .acts = {{JPEG("ant/\xff\xfe\x80.jpg", 2)},
                 {JPEG("ant/\xed\xa0\x80.jpg", 2)},
                 {JPEG("ant/\xc0\xaf.jpg", 2)}}),
    SET("names-long", "a name of 255 bytes", names_long, FINE),
    SET("names-options", "names like options", good_class, FINE,
        .acts = {{JPEG("ant/-rf.jpg", 2)},
                 {JPEG("ant/--help.jpg", 2)},
                 {FOLDER("--force")},
                 {JPEG("--force/-.jpg", 1)}}),
    SET("names-formats", "names like printf formats", good_class, FINE,
        .acts = {{JPEG("ant/%s%s%s%n%n.jpg", 2)}, {JPEG("ant/%99999999d.jpg", 2)}}),
    SET("names-shell", "names like shell commands", good_class, FINE,
        .acts = {{JPEG("ant/$(touch ..|touch x;`id`&&'\".jpg", 2)}, {JPEG("ant/*?[a-z].jpg", 2)}}),
    SET("folder-empty", "an empty folder", NULL, REFUSED),
    SET("folder-missing", "no such path", NULL, REFUSED, .operand = "no/such\x1b[31m/path"),
    SET("folders-deep", "folders 200 deep", deep, EITHER),
    SET("files-empty", "300 images of 0 bytes", NULL, DAMAGED,
        .acts = {{CALL_WITH(empty_files, 300)}}),
    SET("files-empty-long", "100,000 images of 0 bytes", NULL, DAMAGED, .flags = LONG_RUN,
        .acts = {{CALL_WITH(empty_files, 100000)}}),
    SET("sparse-image", "an image of 1 TiB", good_class, EITHER,
        .acts = {{SPARSE("ant/2.jpg", UINT64_C(1) << 40)}}),
    SET("sparse-shard", "a shard of 1 GiB of zeros", NULL, DAMAGED,
        .acts = {{SPARSE(SHARD, UINT64_C(1) << 30)}}),
    SET("sparse-rec", "a RecordIO file of 1 GiB of zeros", NULL, DAMAGED,
        .acts = {{SPARSE("train.rec", UINT64_C(1) << 30)}}),
    SET("all-formats", "a file of each format in one folder", good_class, EITHER,
        .acts = {{TEXT("train.rec", "x")},
                 {TEXT("data.mdb", "x")},
                 {TEXT("a.tar", "x")},
                 {TEXT(SHARD, "x")}}),
    SET("unreadable", "an image without read right", good_class, DAMAGED, .flags = AS_NOBODY,
        .acts = {{.path = "ant/1.jpg", CALL_WITH(hostile_mode, 0)}}),
    SET("unreadable-folder", "a class without read right", good_class, EITHER, .flags = AS_NOBODY,
        .acts = {{.path = "ant", CALL_WITH(hostile_mode, 0)}}),
    SET("read-only", "folders without write right", good_class, FINE, .flags = AS_NOBODY,
        .acts = {{.path = "ant", CALL_WITH(hostile_mode, 0555)},
                 {.path = ".", CALL_WITH(hostile_mode, 0555)}}),
    SET("moving-size", "a shard that shrinks and grows", moving_shard, EITHER, .flags = FRESH,
        .change = shrink_and_grow),
    SET("moving-images", "images that shrink and grow", good_class, EITHER, .flags = FRESH,
        .change = shrink_image),
    SET("moving-replaced", "a shard that is replaced", moving_shard, EITHER, .flags = FRESH,
        .change = replace_shard),
    SET("moving-written", "a shard that is written to", moving_shard, EITHER, .flags = FRESH,
        .change = append),
    SET("moving-names", "images that come and go", good_class, EITHER, .flags = FRESH,
        .change = come_and_go),
    SET("moving-kinds", "an image that becomes a FIFO and a link", good_class, EITHER,
        .flags = FRESH, .change = to_fifo),
    SET("moving-lmdb", "an LMDB that shrinks and grows", deep_lmdb, EITHER, .flags = FRESH,
        .change = data_shrinks),
    SET("disk-full", "a full disk beneath the target", full_disk, EITHER, .flags = NEEDS_ROOT,
        .kind = KIND_OWN, .operand = "small",
        .command = "pack synthetic:count=20,mean=8k @/set -f files", .allowed = "small"),
    {0},
};
