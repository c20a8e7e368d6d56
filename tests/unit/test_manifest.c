/* SPDX-License-Identifier: Apache-2.0
 * The manifest of a data set: written lists are read back; hostile text lists nothing. An
 * incomplete set is recognised by every path into it.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/random.h"
#include "dataset/manifest.h"
#include "formats/format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "iobench set 2, plan 00000000000000ff, draft 0123abcd, shards 4\n"

static int parse(struct manifest *manifest, const char *text)
{
    fail_clear();
    return manifest_parse(manifest, text, strlen(text), "m");
}

/* "path path ..." of all files that the text lists; folders end with a slash. */
static void lists(const char *text, const char *wanted, uint32_t finished)
{
    struct manifest manifest;
    char found[512] = "";

    assert_int_equal(parse(&manifest, text), 0);
    for (size_t i = 0; i < manifest.file_count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s%s", i ? " " : "",
                 manifest.files[i].path, manifest.files[i].is_folder ? "/" : "");
    assert_string_equal(found, wanted);
    assert_int_equal(manifest.finished, finished);
    manifest_release(&manifest);
}

static void what_is_written_is_read(void **unused)
{
    char *head = manifest_head(0xff, "0123abcd", 4),
         *start = manifest_start("iobench pack a b", true);
    struct manifest_file listed[] = {
        {.path = (char[]){"b/\xc3\xa4 %\n\x1b"}, .bytes = 12, .mtime_ns = -5},
        {.path = (char[]){"empty"}, .is_folder = true},
        {.path = (char[]){"a"}, .bytes = UINT64_C(1) << 40, .mtime_ns = INT64_C(1) << 60}};
    struct text_stream block;
    struct manifest manifest;
    char text[2048], by[64];

    assert_int_equal(manifest_block_begin(&block, 3), 0);
    assert_string_equal(head, HEAD);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(manifest_block_add(&block, &listed[i]), 0);
    char *files = manifest_block_end(&block, 3);
    snprintf(text, sizeof text, "%s%s%s", head, start, files);
    assert_int_equal(parse(&manifest, text), 0);
    assert_int_equal(manifest.plan, 0xff);
    assert_string_equal(manifest.suffix, "0123abcd");
    assert_int_equal(manifest.shards, 4);
    assert_int_equal(manifest.finished, 1);
    assert_true(manifest.done[3] && !manifest.done[0]);
    assert_string_equal(manifest.command, "iobench pack a b");
    snprintf(by, sizeof by, "%d on ", (int)getpid());
    assert_ptr_equal(strstr(manifest.maker, by), manifest.maker);
    assert_int_equal(manifest.file_count, 3);
    assert_string_equal(manifest.files[0].path, "a");
    assert_int_equal(manifest.files[0].mtime_ns, INT64_C(1) << 60);
    const struct manifest_file *file = &manifest.files[1];
    assert_string_equal(file->path, "b/\xc3\xa4 %\n\x1b");
    assert_int_equal(file->bytes, 12);
    assert_int_equal(file->mtime_ns, -5);
    assert_true(manifest.files[2].is_folder && strcmp(manifest.files[2].path, "empty") == 0);
    manifest_release(&manifest);
    free(head);
    free(start);
    free(files);
}

static void a_block_counts_when_it_is_whole(void **unused)
{
    lists(HEAD, "", 0);
    lists(HEAD "shard 0\nfile 1 2 a\n", "", 0);
    lists(HEAD "shard 0\nfile 1 2 a\ndone 0", "", 0);
    lists(HEAD "shard 0\nfile 1 2 a\ndone 1\n", "", 0);
    lists(HEAD "shard 0\nfile 1 2 a\ndone 0\n", "a", 1);
    lists(HEAD "file 1 2 a\ndone 0\n", "", 0);
    /* Truncated, then rewritten; rewritten by another process. */
    lists(HEAD "shard 0\nfile 1 2 a\nfile 3\n\nshard 0\nfile 1 2 b\ndone 0\n", "b", 1);
    lists(HEAD "shard 0\nfile 1 2 a\ndone 0\nshard 0\nfile 1 2 b\ndone 0\n", "b", 1);
    lists(HEAD "shard 0\nfile 1 2 a\ndone 0\nshard 0\nfile 1 2 b\n", "", 0);
    lists(HEAD "shard 1\nfile 1 2 z\ndone 1\nshard 0\nfile 1 2 b\nfolder c\ndone 0\n", "b c/ z", 2);
}

static void hostile_lines_list_nothing(void **unused)
{
    static const char *const lines[] = {"file 1 2 /etc/passwd",
                                        "file 1 2 ../a",
                                        "file 1 2 a/../../b",
                                        "file 1 2 a//b",
                                        "file 1 2 ",
                                        "file 1 2",
                                        "file 1 2 a/",
                                        "file 1 2 .",
                                        "file 1 2 ./a",
                                        "file 1 2 a/.",
                                        "file 1 2 %2E%2E/a",
                                        "file 1 2 %2Fetc",
                                        "file 1 2 a%00b",
                                        "file 1 2 a%2",
                                        "file 1 2 a%",
                                        "file 1 2 a%zz",
                                        "file 1 2 a b",
                                        "file 1 2 a\tb",
                                        "file -1 2 a",
                                        "file 1 --2 a",
                                        "file 18446744073709551616 2 a",
                                        "file 1 99999999999999999999 a",
                                        "file 1 2a",
                                        "file a 2 a",
                                        "file  1 2 a",
                                        "folder /",
                                        "folder ..",
                                        "folder ",
                                        "File 1 2 a",
                                        "file\t1 2 a"};
    char text[256];

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(text, sizeof text, HEAD "shard 0\n%s\ndone 0\n", lines[i]);
        struct manifest manifest;
        assert_int_equal(parse(&manifest, text), 0);
        if (manifest.file_count)
            fail_msg("'%s' lists '%s'", lines[i], manifest.files[0].path);
        manifest_release(&manifest);
    }
    lists(HEAD "shard 4\nfile 1 2 a\ndone 4\n", "", 0);
    lists(HEAD "shard -1\nfile 1 2 a\ndone -1\n", "", 0);
    lists(HEAD "shard 4294967295\nfile 1 2 a\ndone 4294967295\n", "", 0);
    /* Text shown to users has no control characters. */
    struct manifest manifest;
    assert_int_equal(parse(&manifest, HEAD "command rm%1B[2J\nby a%0Ab\n"), 0);
    assert_true(!manifest.command && !manifest.maker);
    manifest_release(&manifest);
    static const char nul[] = HEAD "shard 0\nfile 1 2 a\0b\ndone 0\n";
    assert_int_equal(manifest_parse(&manifest, nul, sizeof nul - 1, "m"), 0);
    assert_int_equal(manifest.file_count, 0);
    manifest_release(&manifest);
}

static void a_head_is_this_version_s_or_cut(void **unused)
{
    static const char *const heads[] = {
        "\n",
        "iobench pack 1, plan 00000000000000ff\n",
        "iobench set 2, plan 00000000000000ff, draft ../../xy, shards 4\n",
        "iobench set 2, plan 00000000000000ff, draft 0123abcd, shards 0\n",
        "iobench set 2, plan 00000000000000ff, draft 0123abcd, shards 1000001\n",
        "iobench set 2, plan 00000000000000ff, draft 0123abcd, shards 4 \n",
        "iobench set 2, plan ff, draft 0123abcd, shards 4\n",
        "iobench set 3, plan 00000000000000ff, draft 0123abcd, shards 4\n"};
    struct manifest manifest;

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        assert_refused(parse(&manifest, heads[i]), -EINVAL, "m: not a manifest");
        manifest_release(&manifest);
    }
    for (size_t cut = 0; cut < strlen(HEAD); cut++) {
        assert_int_equal(manifest_parse(&manifest, HEAD, cut, "m"), -ENODATA);
        manifest_release(&manifest);
    }
}

/* Bytes changed at random: at worst, the manifest is refused. */
static void damaged_text_is_survived(void **unused)
{
    static const char whole[] = HEAD "by 12%20on%20host\ncommand a%20b\nshard 0\nfile 1 2 a\n"
                                     "folder b\nfile 12 -13 b/c%20d\ndone 0\nshard 3\ndone 3\n";
    struct random random = random_start(7);
    struct manifest manifest;
    char text[sizeof whole];

    for (int round = 0; round < 20000; round++) {
        memcpy(text, whole, sizeof whole);
        for (int i = 0; i < 3; i++)
            text[random_below(&random, sizeof whole - 1)] = (char)random_below(&random, 256);
        if (manifest_parse(&manifest, text, sizeof whole - 1, "m") == 0)
            assert_in_range(manifest.finished, 0, manifest.shards);
        manifest_release(&manifest);
    }
}

static void each_name_of_an_unfinished_set_says_so(void **unused)
{
    static const char *const names[] = {"half",
                                        "half/",
                                        "half/a.rec",
                                        "half/00001",
                                        "half/00001/b.jpg",
                                        "half/.iobench-draft-0123abcd/0/a.rec"};
    struct plugin_choice choice;
    struct catalog *catalog;

    assert_int_equal(folder_make_path(folder_path("half/00001")), 0);
    assert_int_equal(folder_make_path(folder_path("half/.iobench-draft-0123abcd/0")), 0);
    folder_write("half/.iobench-unfinished",
                 HEAD "command iobench%20pack%20x%20y\nshard 0\ndone 0\n",
                 strlen(HEAD "command iobench%20pack%20x%20y\nshard 0\ndone 0\n"));
    folder_write("half/a.rec", "x", 1);
    folder_write("half/00001/b.jpg", "x", 1);
    folder_write("half/.iobench-draft-0123abcd/0/a.rec", "x", 1);
    assert_int_equal(symlink("half", folder_path("link")), 0);
    assert_int_equal(plugin_choose("format", format_registry, "recordio", &choice), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(manifest_check_complete(folder_path(names[i])), -EINPROGRESS);
        assert_reason("1 of 4 shards finished");
        assert_reason("complete it: iobench pack x y");
        assert_null(format_detect(folder_path(names[i])));
        assert_int_equal(format_catalog(&choice, folder_path(names[i]), true, NULL, &catalog),
                         -EINPROGRESS);
        assert_int_equal(format_catalog_kept(&choice, folder_path(names[i]), &catalog),
                         -EINPROGRESS);
    }
    assert_int_equal(manifest_check_complete(folder_path("link/a.rec")), -EINPROGRESS);
    assert_int_equal(manifest_check_complete(folder_path("nothing")), 0);
    assert_int_equal(manifest_check_complete("synthetic:count=4"), 0);
    /* A world-writable folder proves nothing about its contents. */
    assert_int_equal(chmod(folder_path("half/.iobench-unfinished"), 0666), 0);
    assert_int_equal(manifest_check_complete(folder_path("half/00001")), 0);
    assert_int_equal(manifest_check_complete(folder_path("half")), -EINPROGRESS);
    /* While a set is being replaced, the old one stays complete. */
    folder_write("half/.iobench-set", HEAD, strlen(HEAD));
    assert_int_equal(manifest_check_complete(folder_path("half")), 0);
    plugin_release(&choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_block_counts_when_it_is_whole),
        cmocka_unit_test(hostile_lines_list_nothing),
        cmocka_unit_test(a_head_is_this_version_s_or_cut),
        cmocka_unit_test(damaged_text_is_survived),
        cmocka_unit_test(each_name_of_an_unfinished_set_says_so),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
