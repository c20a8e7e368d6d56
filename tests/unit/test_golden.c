/* SPDX-License-Identifier: Apache-2.0
 * Files written by the reference tools of each format, against their contents: each
 * tests/golden/NAME.manifest holds a line a record: format, path, number, label, CRC-32 and length
 * of the image, name or "-". */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "dataset/inflate.h"
#include "formats/format.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct expected {
    char format[32], path[256], name[512];
    unsigned long long number, bytes;
    long label;
    unsigned crc;
};

struct opened {
    char path[256];
    struct plugin_choice format;
    struct catalog *catalog;
};

static void close_set(struct opened *opened)
{
    catalog_destroy(opened->catalog);
    plugin_release(&opened->format);
    *opened = (struct opened){0};
}

static void open_set(struct opened *opened, const struct expected *expected)
{
    if (opened->catalog && strcmp(opened->path, expected->path) == 0)
        return;
    close_set(opened);
    snprintf(opened->path, sizeof opened->path, "%s", expected->path);
    char *root = file_join(GOLDEN, expected->path);
    assert_int_equal(plugin_choose("format", format_registry, expected->format, &opened->format),
                     0);
    const struct plugin *detected = format_detect(root);
    if (detected != opened->format.plugin)
        fail_msg("%s is taken for %s", root, detected ? detected->name : "nothing");
    if (format_catalog(&opened->format, root, false, NULL, &opened->catalog))
        fail_msg("%s", fail_reason());
    free(root);
}

/* Exactly the record's bytes, so a sanitizer detects a read past them. */
static uint8_t *load_record(const struct shard *shard, const struct extent *extent)
{
    uint8_t *bytes = malloc(extent->bytes);
    char *file;
    size_t count;
    int code = 0;

    assert_non_null(bytes);
    if (shard->flags) {
        struct inflate *stream = inflate_open(shard->path, shard->flags, &code);
        assert_non_null(stream);
        assert_int_equal(inflate_read(stream, NULL, extent->offset), extent->offset);
        assert_int_equal(inflate_read(stream, bytes, extent->bytes), extent->bytes);
        inflate_close(stream);
        return bytes;
    }
    assert_int_equal(file_load(shard->path, 1 << 24, &file, &count), 0);
    assert_true(extent->offset <= count && extent->bytes <= count - extent->offset);
    memcpy(bytes, file + extent->offset, extent->bytes);
    free(file);
    return bytes;
}

static void check_record(const struct opened *opened, const struct expected *expected)
{
    const struct catalog *catalog = opened->catalog;
    struct sample sample;

    assert_true(expected->number < catalog->record_count);
    const struct extent *extent = catalog_extent(catalog, expected->number);
    const struct shard *shard = &catalog->shards[extent->shard];
    uint8_t *bytes = load_record(shard, extent);
    struct format_scratch scratch = {.bytes = malloc(extent->bytes), .capacity = extent->bytes};
    if (format_parse(&opened->format, shard, bytes, extent->bytes, 0, &scratch, &sample))
        fail_msg("%s record %llu: %s", expected->path, expected->number, fail_reason());
    assert_int_equal(sample.label, expected->label);
    assert_int_equal(sample.image_bytes, expected->bytes);
    assert_int_equal(crc32(0, sample.image, (unsigned)sample.image_bytes), expected->crc);
    if (strcmp(expected->name, "-") != 0) {
        assert_int_equal(sample.name_bytes, strlen(expected->name));
        assert_memory_equal(sample.name, expected->name, sample.name_bytes);
    }
    free(bytes);
    free(scratch.bytes);
}

static uint64_t check_manifest(const char *path)
{
    FILE *manifest = fopen(path, "re");
    struct opened opened = {0};
    struct expected expected;
    uint64_t records = 0, of_set = 0;

    assert_non_null(manifest);
    while (fscanf(manifest, "%31s %255s %llu %ld %x %llu %511s", expected.format, expected.path,
                  &expected.number, &expected.label, &expected.crc, &expected.bytes,
                  expected.name) == 7) {
        if (!plugin_find(format_registry, expected.format))
            continue; /* not in this build */
        if (opened.catalog && strcmp(opened.path, expected.path) != 0) {
            assert_int_equal(of_set, opened.catalog->record_count);
            of_set = 0;
        }
        open_set(&opened, &expected);
        check_record(&opened, &expected);
        records++;
        of_set++;
    }
    assert_true(feof(manifest));
    if (opened.catalog)
        assert_int_equal(of_set, opened.catalog->record_count);
    close_set(&opened);
    fclose(manifest);
    return records;
}

static void files_of_the_reference_tools(void **unused)
{
    DIR *folder = opendir(GOLDEN);
    struct dirent *entry;
    uint64_t records = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (!strstr(entry->d_name, ".manifest"))
            continue;
        char *path = file_join(GOLDEN, entry->d_name);
        records += check_manifest(path);
        free(path);
    }
    closedir(folder);
    assert_true(records > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_the_reference_tools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
