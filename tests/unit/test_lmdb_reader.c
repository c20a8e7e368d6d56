/* SPDX-License-Identifier: Apache-2.0
 * Bytes borrowed from the lmdb reader match the file at the catalog's offset. */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "formats/format.h"
#include "readers/reader.h"

#include <errno.h>
#include <string.h>

static struct plugin_choice lmdb_format, lmdb_reader;

static int setup(void **unused)
{
    if (plugin_choose("format", format_registry, "lmdb", &lmdb_format) ||
        plugin_choose("reader", reader_registry, "lmdb", &lmdb_reader))
        return -1;
    return folder_setup(unused);
}

static int teardown(void **unused)
{
    plugin_release(&lmdb_format);
    plugin_release(&lmdb_reader);
    return folder_teardown(unused);
}

static char *copy_golden(const char *name, size_t *count)
{
    char path[512], *text;

    snprintf(path, sizeof path, "%s/lmdb/%s", GOLDEN, name);
    assert_int_equal(file_load(path, 1 << 24, &text, count), 0);
    folder_write("data.mdb", text, *count);
    return text;
}

static struct catalog *index_copy(void)
{
    struct catalog *catalog;

    assert_int_equal(format_catalog(&lmdb_format, folder_path("data.mdb"), false, NULL, &catalog),
                     0);
    return catalog;
}

static struct reader_config site_of(const struct catalog *catalog)
{
    return (struct reader_config){.catalog = catalog, .depth = 3};
}

static void read_all(const char *name)
{
    size_t count;
    char *text = copy_golden(name, &count);
    struct catalog *catalog = index_copy();
    const struct reader_config site = site_of(catalog);
    struct reader reader;

    if (reader_open(&reader, &lmdb_reader, &site))
        fail_msg("%s", fail_reason());
    assert_true(reader.traits.zero_copy && reader.traits.alignment == 1);
    for (uint64_t i = 0; i < catalog->record_count; i++) {
        const struct extent *extent = catalog_extent(catalog, i);
        struct read_request request = {.offset = extent->offset,
                                       .bytes = extent->bytes,
                                       .needed = extent->bytes,
                                       .shard = extent->shard};
        struct read_request *done[2];
        assert_int_equal(reader_submit(&reader, &request), 0);
        assert_int_equal(reader_reap(&reader, done, 2, PATIENCE_NS), 1);
        assert_ptr_equal(done[0], &request);
        assert_int_equal(request.result, extent->bytes);
        assert_memory_equal(request.data, text + extent->offset, extent->bytes);
        reader_release(&reader, &request);
    }
    reader_close(&reader);
    catalog_destroy(catalog);
    free(text);
}

static void every_value_is_borrowed(void **unused)
{
    read_all("datum/data.mdb");
    read_all("datum_raw.mdb");
    read_all("tensors/data.mdb");
    read_all("lsun/data.mdb"); /* non-sample keys come first */
    read_all("deep/data.mdb");
}

static void a_changed_file_is_not_opened(void **unused)
{
    size_t count;
    char *text = copy_golden("deep/data.mdb", &count);
    struct catalog *catalog = index_copy();
    const struct reader_config site = site_of(catalog);
    struct reader reader;

    assert_int_equal(truncate(folder_path("data.mdb"), (off_t)count / 2), 0);
    assert_int_equal(reader_open(&reader, &lmdb_reader, &site), -ESTALE);
    reader_close(&reader);
    assert_int_equal(unlink(folder_path("data.mdb")), 0);
    assert_int_equal(reader_open(&reader, &lmdb_reader, &site), -ENOENT);
    reader_close(&reader);
    catalog_destroy(catalog);
    free(text);
}

static void a_file_cut_short_meanwhile_is_told(void **unused)
{
    size_t count;
    char *text = copy_golden("deep/data.mdb", &count);
    struct catalog *catalog = index_copy();
    const struct reader_config site = site_of(catalog);
    const struct extent *last = catalog_extent(catalog, catalog->record_count - 1);
    struct reader reader;
    struct read_request request = {.offset = last->offset,
                                   .bytes = last->bytes,
                                   .needed = last->bytes},
                        *done;

    assert_int_equal(reader_open(&reader, &lmdb_reader, &site), 0);
    assert_int_equal(truncate(folder_path("data.mdb"), (off_t)last->offset), 0);
    assert_int_equal(reader_submit(&reader, &request), 0);
    assert_int_equal(reader_reap(&reader, &done, 1, PATIENCE_NS), 1);
    assert_int_equal(request.result, -ESTALE);
    reader_close(&reader);
    catalog_destroy(catalog);
    free(text);
}

/* The map still shows the old file; that is reported within a second. */
static void a_file_replaced_meanwhile_is_told(void **unused)
{
    size_t count;
    char *text = copy_golden("deep/data.mdb", &count);
    struct catalog *catalog = index_copy();
    const struct reader_config site = site_of(catalog);
    const struct extent *first = catalog_extent(catalog, 0);
    struct read_request request = {
        .offset = first->offset, .bytes = first->bytes, .needed = first->bytes};
    struct read_request *done;
    struct reader reader;

    assert_int_equal(reader_open(&reader, &lmdb_reader, &site), 0);
    assert_int_equal(reader_submit(&reader, &request), 0);
    assert_int_equal(reader_reap(&reader, &done, 1, PATIENCE_NS), 1);
    assert_true(request.result > 0);
    reader_release(&reader, &request);
    folder_write("other.mdb", text, count);
    assert_int_equal(rename(folder_path("other.mdb"), folder_path("data.mdb")), 0);
    usleep(1100000);
    assert_int_equal(reader_submit(&reader, &request), 0);
    assert_int_equal(reader_reap(&reader, &done, 1, PATIENCE_NS), 1);
    assert_refused(request.result, -ESTALE, "data.mdb");
    reader_close(&reader);
    catalog_destroy(catalog);
    free(text);
}

static void other_formats_are_refused(void **unused)
{
    struct catalog *catalog = catalog_create("somewhere", "files");
    const struct reader_config site = site_of(catalog);
    struct reader reader;

    assert_refused(reader_open(&reader, &lmdb_reader, &site), -EINVAL, "files");
    reader_close(&reader);
    catalog_destroy(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_borrowed),
        cmocka_unit_test(a_changed_file_is_not_opened),
        cmocka_unit_test(a_file_cut_short_meanwhile_is_told),
        cmocka_unit_test(a_file_replaced_meanwhile_is_told),
        cmocka_unit_test(other_formats_are_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
