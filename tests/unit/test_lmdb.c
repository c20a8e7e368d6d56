/* SPDX-License-Identifier: Apache-2.0
 * The page walk over intact and damaged databases, and writing. test_golden reads files of py-lmdb;
 * here they are damaged. */
#include "tests/unit/folder.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/random.h"
#include "formats/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { PAGE = 4096, META = 16, MAIN_DATABASE = META + 72, DEPTH = MAIN_DATABASE + 6 };
enum { ENTRIES = MAIN_DATABASE + 32, ROOT = MAIN_DATABASE + 40, LAST_PAGE = META + 120 };
enum { TRANSACTION = META + 128 };

static struct plugin_choice lmdb;

static int setup(void **unused)
{
    if (plugin_choose("format", format_registry, "lmdb", &lmdb))
        return -1;
    return folder_setup(unused);
}

static int teardown(void **unused)
{
    plugin_release(&lmdb);
    return folder_teardown(unused);
}

struct image {
    uint8_t *bytes;
    size_t count;
};

static struct image load(const char *name)
{
    char path[512], *text;
    struct image image;

    snprintf(path, sizeof path, "%s/lmdb/%s", GOLDEN, name);
    assert_int_equal(file_load(path, 1 << 24, &text, &image.count), 0);
    image.bytes = (uint8_t *)text;
    return image;
}

/* Return the meta page in effect. */
static uint8_t *meta_of(const struct image *image)
{
    uint8_t *first = image->bytes, *second = first + PAGE;

    return bytes_le64(first + TRANSACTION) < bytes_le64(second + TRANSACTION) ? second : first;
}

static uint8_t *root_of(const struct image *image)
{
    return image->bytes + bytes_le64(meta_of(image) + ROOT) * PAGE;
}

static uint8_t *node_of(uint8_t *page, unsigned index)
{
    return page + bytes_le16(page + 16 + 2 * index);
}

/* Return the first node of a leaf, from index on, whose value is on overflow pages. */
static uint8_t *big_node(uint8_t *leaf, unsigned index)
{
    unsigned count = (bytes_le16(leaf + 12) - 16u) / 2;

    while (index < count && node_of(leaf, index)[4] != 1)
        index++;
    assert_true(index < count);
    return node_of(leaf, index);
}

static int index_bytes(const uint8_t *bytes, size_t count, struct catalog **catalog)
{
    folder_write("data.mdb", bytes, count);
    return format_catalog(&lmdb, folder_path("data.mdb"), false, NULL, catalog);
}

static void expect_failure(const struct image *image, int code, const char *words)
{
    struct catalog *catalog;

    assert_int_equal(index_bytes(image->bytes, image->count, &catalog), code);
    if (!strstr(fail_reason(), words) || !strstr(fail_reason(), "data.mdb"))
        fail_msg("'%s' does not say '%s'", fail_reason(), words);
}

static void a_folder_and_a_file(void **unused)
{
    struct image image = load("deep/data.mdb");
    struct catalog *of_file, *of_folder;

    assert_int_equal(index_bytes(image.bytes, image.count, &of_file), 0);
    assert_int_equal(format_catalog(&lmdb, test_folder, false, NULL, &of_folder), 0);
    assert_int_equal(of_file->record_count, of_folder->record_count);
    assert_string_equal(of_folder->shards[0].path, folder_path("data.mdb"));
    assert_ptr_equal(format_detect(test_folder), lmdb.plugin);
    assert_ptr_equal(format_detect(folder_path("data.mdb")), lmdb.plugin);
    catalog_destroy(of_file);
    catalog_destroy(of_folder);
    free(image.bytes);
}

static void what_is_not_supported_has_a_name(void **unused)
{
    struct image image = load("deep/data.mdb");
    uint8_t *meta = meta_of(&image);

    meta[MAIN_DATABASE + 4] |= 4;
    expect_failure(&image, -ENOTSUP, "DUPSORT");
    meta[MAIN_DATABASE + 4] &= (uint8_t)~4;
    meta[META + 4] = 2;
    expect_failure(&image, -ENOTSUP, "data version 2");
    free(image.bytes);
    image = load("lsun/data.mdb");
    bytes_put_le16(node_of(root_of(&image), 1) + 4, 2);
    expect_failure(&image, -ENOTSUP, "named database");
    free(image.bytes);
}

static void the_larger_transaction_holds(void **unused)
{
    struct image image = load("deep/data.mdb");
    uint8_t *meta = meta_of(&image), *other = meta == image.bytes ? meta + PAGE : image.bytes;
    struct catalog *catalog;

    bytes_put_le64(other + ROOT, UINT64_MAX - 1);
    bytes_put_le16(other + DEPTH, 77);
    assert_int_equal(index_bytes(image.bytes, image.count, &catalog), 0);
    catalog_destroy(catalog);
    bytes_put_le64(other + TRANSACTION, UINT64_MAX);
    expect_failure(&image, -EBADMSG, "depth");
    /* Both must be meta pages, for liblmdb and for us. */
    other[META] ^= 1;
    expect_failure(&image, -EBADMSG, "not an LMDB meta page");
    free(image.bytes);
}

static void loops_end(void **unused)
{
    struct image image = load("deep/data.mdb");
    uint8_t *root = root_of(&image), *first = node_of(root, 0), *second = node_of(root, 1);
    const uint64_t root_number = bytes_le64(root);

    uint16_t child = bytes_le16(first);
    bytes_put_le16(first, (uint16_t)root_number);
    expect_failure(&image, -EBADMSG, "loop");
    bytes_put_le16(first, bytes_le16(second));
    expect_failure(&image, -EBADMSG, "loop"); /* the same child twice */
    bytes_put_le16(first, 1);
    expect_failure(&image, -EBADMSG, "a child page is used twice or missing"); /* a meta page */
    bytes_put_le16(first + 4, 0xffff);
    expect_failure(&image, -EBADMSG, "a child page is used twice or missing"); /* far outside */
    bytes_put_le16(first + 4, 0);
    bytes_put_le16(first, child);
    /* A leaf of the level below, used as a branch. */
    bytes_put_le16(meta_of(&image) + DEPTH, 4);
    expect_failure(&image, -EBADMSG, "not a branch page");
    bytes_put_le16(meta_of(&image) + DEPTH, 2);
    expect_failure(&image, -EBADMSG, "not a leaf page");
    bytes_put_le16(meta_of(&image) + DEPTH, 33);
    expect_failure(&image, -EBADMSG, "depth");
    bytes_put_le16(meta_of(&image) + DEPTH, 0);
    expect_failure(&image, -EBADMSG, "depth");
    free(image.bytes);
}

static void counts_and_order_are_checked(void **unused)
{
    struct image image = load("deep/data.mdb");
    uint8_t *meta = meta_of(&image);
    uint64_t entries = bytes_le64(meta + ENTRIES);

    bytes_put_le64(meta + ENTRIES, entries - 1);
    expect_failure(&image, -EBADMSG, "more keys");
    bytes_put_le64(meta + ENTRIES, entries + 1);
    expect_failure(&image, -EBADMSG, "fewer keys");
    free(image.bytes);
    image = load("lsun/data.mdb");
    memset(node_of(root_of(&image), 2) + 8, 0, 8);
    expect_failure(&image, -EBADMSG, "keys out of order");
    free(image.bytes);
    image = load("lsun/data.mdb"); /* the same key twice */
    memcpy(node_of(root_of(&image), 2) + 8, node_of(root_of(&image), 1) + 8,
           bytes_le16(node_of(root_of(&image), 1) + 6));
    expect_failure(&image, -EBADMSG, "keys out of order");
    free(image.bytes);
}

static void values_have_pages_of_their_own(void **unused)
{
    struct image image = load("lsun/data.mdb");
    uint8_t *root = root_of(&image), *first = big_node(root, 0);
    uint8_t *last = big_node(root, 3);
    size_t key_bytes = bytes_le16(first + 6);

    assert_true(first != last && bytes_le16(last + 6) == key_bytes);
    uint64_t number = bytes_le64(first + 8 + key_bytes);
    bytes_put_le64(first + 8 + key_bytes, bytes_le64(last + 8 + key_bytes));
    expect_failure(&image, -EBADMSG, "pages are used twice or missing");
    bytes_put_le64(first + 8 + key_bytes, UINT64_MAX - 1);
    expect_failure(&image, -EBADMSG, "pages are used twice or missing");
    bytes_put_le64(first + 8 + key_bytes, number);
    bytes_put_le16(first + 2, 0xffff); /* a value of 4 GiB */
    expect_failure(&image, -EBADMSG, "pages are used twice or missing");
    free(image.bytes);
}

static void cut_files_are_told(void **unused)
{
    struct image image = load("deep/data.mdb");
    struct catalog *catalog;

    for (size_t count = 0; count < image.count; count += count < 3 * PAGE ? 509 : 1777) {
        int code = index_bytes(image.bytes, count, &catalog);
        assert_refused(code, -EBADMSG, "data.mdb: offset ");
    }
    free(image.bytes);
    image = (struct image){.bytes = (uint8_t *)strdup("something else entirely"), .count = 23};
    expect_failure(&image, -EBADMSG, "file ends within");
    free(image.bytes);
    image = (struct image){.bytes = calloc(8, PAGE), .count = 8 * PAGE};
    expect_failure(&image, -EBADMSG, "not an LMDB meta page");
    free(image.bytes);
}

static int count_fault(void *context, const struct catalog_fault *fault)
{
    assert_non_null(fault->what);
    ++*(unsigned *)context;
    return 0;
}

/* With a handler the walk continues past damage. */
static void faults_are_counted(void **unused)
{
    struct image image = load("deep/data.mdb");
    unsigned faults = 0;
    const struct format_scan scan = {.fault = count_fault, .fault_context = &faults};
    struct catalog *catalog, *whole;

    assert_int_equal(index_bytes(image.bytes, image.count, &whole), 0);
    bytes_put_le16(node_of(root_of(&image), 0), 1);
    folder_write("data.mdb", image.bytes, image.count);
    assert_int_equal(format_catalog(&lmdb, folder_path("data.mdb"), false, &scan, &catalog), 0);
    assert_int_equal(faults, 1);
    assert_true(catalog->record_count > 0 && catalog->record_count < whole->record_count);
    catalog_destroy(catalog);
    catalog_destroy(whole);
    free(image.bytes);
}

/* A value on overflow pages becomes empty. */
static void empty_values_are_faults(void **unused)
{
    struct image image = load("lsun/data.mdb");
    unsigned faults = 0;
    const struct format_scan scan = {.fault = count_fault, .fault_context = &faults};
    struct catalog *catalog, *whole;

    assert_int_equal(index_bytes(image.bytes, image.count, &whole), 0);
    memset(big_node(root_of(&image), 0), 0, 4);
    expect_failure(&image, -EBADMSG, "a record of 0 bytes: empty");
    assert_int_equal(format_catalog(&lmdb, folder_path("data.mdb"), false, &scan, &catalog), 0);
    assert_int_equal(faults, 1);
    assert_int_equal(catalog->record_count, whole->record_count - 1);
    catalog_destroy(catalog);
    catalog_destroy(whole);
    free(image.bytes);
}

/* ---- flipped bits ---- */

static bool within_values(const struct catalog *catalog, uint64_t offset)
{
    for (uint64_t i = 0; i < catalog->record_count; i++)
        if (offset - catalog->records[i].offset < catalog->records[i].bytes)
            return true;
    return false;
}

/* Parse all of catalog from bytes. Returns false if a record is damaged. */
static bool parse_all(const struct catalog *catalog, const uint8_t *bytes)
{
    struct format_scratch scratch = {0};
    struct sample sample;
    bool good = true;

    for (uint64_t i = 0; i < catalog->record_count; i++) {
        const struct extent *extent = &catalog->records[i];
        uint8_t *copy = malloc(extent->bytes + 1);
        memcpy(copy, bytes + extent->offset, extent->bytes);
        good &= format_parse(&lmdb, &catalog->shards[0], copy, extent->bytes, 0, &scratch,
                             &sample) == 0;
        free(copy);
    }
    return good;
}

static void flip(const char *name, unsigned rounds)
{
    struct image image = load(name);
    struct catalog *whole, *damaged;
    struct random random = random_start(image.count);
    unsigned found = 0;

    assert_int_equal(index_bytes(image.bytes, image.count, &whole), 0);
    int fd = open(folder_path("data.mdb"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t bit = random_below(&random, image.count * 8);
        uint8_t mask = (uint8_t)(1u << bit % 8);
        image.bytes[bit / 8] ^= mask;
        assert_int_equal(pwrite(fd, &image.bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
        int code = format_catalog(&lmdb, folder_path("data.mdb"), false, NULL, &damaged);
        if (code == 0) {
            bool good = parse_all(damaged, image.bytes);
            found += !good;
            /* Outside values a flip is detected or harmless, except in a meta page, where it can
             * restore the previous transaction. */
            if (good && bit / 8 >= 2 * PAGE && !within_values(whole, bit / 8)) {
                assert_int_equal(damaged->record_count, whole->record_count);
                assert_memory_equal(damaged->records, whole->records,
                                    whole->record_count * sizeof *whole->records);
            }
            catalog_destroy(damaged);
        } else {
            if (code != -EBADMSG && code != -ENOTSUP && code != -ENODATA)
                fail_msg("%d: %s", code, fail_reason());
            found++;
        }
        image.bytes[bit / 8] ^= mask;
        assert_int_equal(pwrite(fd, &image.bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    assert_true(found > 0);
    close(fd);
    catalog_destroy(whole);
    free(image.bytes);
}

static void flipped_bits_do_no_harm(void **unused)
{
    flip("datum/data.mdb", 1500);
    flip("datum_raw.mdb", 1500);
    flip("tensors/data.mdb", 1500);
    flip("deep/data.mdb", 1500);
}

/* ---- writing ---- */

static const char *image_text(unsigned i, size_t *bytes)
{
    static char text[9000];

    memset(text, 'a' + (int)(i % 26), sizeof text);
    memcpy(text, "\xff\xd8\xff", 3);
    *bytes = i % 50 == 0 ? sizeof text : 100 + i % 200;
    return text;
}

static void what_is_written_is_read(void **unused)
{
    enum { COUNT = 4200 };
    struct format_writer writer;
    struct catalog *catalog;
    char *path, *file;
    size_t count, bytes;

    const int most = format_shard_path(lmdb.plugin, test_folder, 0, 0, &path);
    if (most == -ENOTSUP) {
        assert_reason("does not write it");
        skip();
    }
    assert_int_equal(most, 1);
    assert_int_equal(format_shard_path(lmdb.plugin, test_folder, 0, 1, &path), 0);
    unlink(path);
    assert_int_equal(format_writer_open(&writer, &lmdb, path), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        struct sample sample = {.image = image_text(i, &bytes),
                                .label = (int32_t)i % 1000,
                                .name = "n01/a.JPEG",
                                .name_bytes = 10};
        sample.image_bytes = bytes;
        assert_int_equal(format_writer_append(&writer, &sample), 0);
    }
    assert_false(file_exists(path)); /* not before it is complete */
    assert_int_equal(format_writer_close(&writer, true), 0);
    assert_int_equal(format_catalog(&lmdb, test_folder, false, NULL, &catalog), 0);
    assert_int_equal(catalog->record_count, COUNT);
    assert_int_equal(file_load(path, 1 << 30, &file, &count), 0);
    struct format_scratch scratch = {0};
    for (unsigned i = 0; i < COUNT; i++) {
        const struct extent *extent = catalog_extent(catalog, i);
        struct sample sample;
        assert_int_equal(format_parse(&lmdb, &catalog->shards[0], file + extent->offset,
                                      extent->bytes, 0, &scratch, &sample),
                         0);
        assert_int_equal(sample.label, i % 1000);
        const char *expected = image_text(i, &bytes);
        assert_int_equal(sample.image_bytes, bytes);
        assert_memory_equal(sample.image, expected, bytes);
    }
    free(file);
    free(path);
    catalog_destroy(catalog);
}

static void what_is_abandoned_is_gone(void **unused)
{
    struct format_writer writer;
    struct sample sample = {.image = "\xff\xd8\xff", .image_bytes = 3};
    const char *path = folder_path("abandoned.mdb");

    if (format_writer_open(&writer, &lmdb, path) == 0)
        assert_int_equal(format_writer_append(&writer, &sample), 0);
    assert_int_equal(format_writer_close(&writer, false), 0);
    assert_false(file_exists(path));
    assert_false(folder_has_draft("."));
    /* Writing where no file can be created. */
    assert_true(format_writer_open(&writer, &lmdb, folder_path("no/such/folder/data.mdb")) < 0);
    assert_int_equal(format_writer_close(&writer, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_and_a_file),
        cmocka_unit_test(what_is_not_supported_has_a_name),
        cmocka_unit_test(the_larger_transaction_holds),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(counts_and_order_are_checked),
        cmocka_unit_test(values_have_pages_of_their_own),
        cmocka_unit_test(cut_files_are_told),
        cmocka_unit_test(faults_are_counted),
        cmocka_unit_test(empty_values_are_faults),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_abandoned_is_gone),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
