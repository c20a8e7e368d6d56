/* SPDX-License-Identifier: Apache-2.0
 * Which files a result replaces, and how. */
#include "tests/unit/folder.h"

#include "base/draft.h"
#include "report/report.h"

#include <errno.h>

/* Whether a document replaces the one that is there. */
static bool replaces(const char *text, const char *there)
{
    const char *path = folder_path("there");

    folder_write("there", there, strlen(there));
    const int code = replaced_check(path, text, strlen(text));
    assert_int_equal(report_write_file(path, text, strlen(text)) == 0, code == 0);
    return code == 0;
}

/* A picture, a script and a table are other people's too. */
static void only_our_files_are_replaced(void **unused)
{
    static const char svg[] = "<?xml version=\"1.0\"?>\n<svg></svg>\n";
    static const char page[] = "%PDF-1.4\n";

    assert_false(replaces(svg, "<?xml version=\"1.0\"?>\n<svg><title>my thesis</title></svg>\n"));
    assert_true(replaces(svg, "<svg></svg>\n<!-- Made by iobench -->\n"));
    assert_false(replaces(page, "%PDF-1.4\nmy thesis\n%%EOF\n"));
    assert_true(replaces(page, "%PDF-1.4\n%%EOF\n% Made by iobench\n"));
    assert_false(replaces(page, "<svg></svg>\n<!-- Made by iobench -->\n"));
    assert_false(replaces("# Made by iobench plot\nset x\n", "set title 'mine'\n"));
    assert_true(replaces("# Made by iobench plot\nset x\n", "# Made by iobench plot\nset y\n"));
    assert_false(replaces("label,valid", "label,name\n0,tench\n"));
    assert_true(replaces("label,valid", "label,valid,run\n"));
    assert_false(replaces("label,valid", "label,validity\n"));
    assert_false(replaces("IOBENCHK", "IOBENCH\n"));
    assert_true(replaces("IOBENCHK", "IOBENCHK\1"));
    assert_true(replaces("IOBENCHK", ""));
}

static void foreign_json_is_kept(void **unused)
{
    static const char result[] = "{\"schema\": \"iobench-result\"}";

    assert_true(replaces("{\"schema\"", result));
    assert_true(replaces("{\"schema\": \"iobench-train\"}", result));
    assert_false(replaces(result, "{\"schema\": \"mine\", \"version\": 1}"));
    assert_false(replaces(result, "{\"name\": \"package\"}"));
    assert_true(replaces("{\"unix_time_s\"", "{\"unix_time_s\":1,\"interval_s\":2}"));
    assert_true(replaces("{\"data\": \"a\\\"b\", \"format\"", "{\"data\": \"\", \"format\": 1}"));
    assert_false(replaces("{\"data\": \"\", \"format\"", "{\"data\": \"mine\", \"v\": 1}"));
}

/* Readers of the file never see a partial one: the old file stays if the new one cannot be
 * written. */
static void files_appear_whole(void **unused)
{
    assert_int_equal(report_write_file(folder_path("x.json"), "[1]", 3), 0);
    assert_int_equal(report_write_file(folder_path("x.json"), "[2]", 3), 0);
    assert_text("x.json", "[2]");
    assert_false(folder_has_draft("."));
    assert_int_equal(report_write_file(folder_path("none/x.json"), "one", 3), -ENOENT);
    assert_int_equal(report_write_file("/dev/null", "one", 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(foreign_json_is_kept),
        FOLDER_TEST(only_our_files_are_replaced),
        FOLDER_TEST(files_appear_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
