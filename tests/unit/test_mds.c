/* SPDX-License-Identifier: Apache-2.0
 * MDS sets: compressed, damaged, with odd columns. What MosaicML Streaming wrote is read in
 * test_golden; here those files are damaged. */
#include "tests/unit/folder.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "dataset/inflate.h"
#include "formats/format.h"

#include <errno.h>

static struct catalog *catalog_of(const char *path, const char *format, int *code)
{
    struct plugin_choice choice;
    struct catalog *catalog = NULL;

    fail_clear();
    assert_int_equal(plugin_choose("format", format_registry, format, &choice), 0);
    *code = format_catalog(&choice, path, false, NULL, &catalog);
    plugin_release(&choice);
    return catalog;
}

static void refuses(const char *path, const char *format, int wanted, const char *words)
{
    int code;
    struct catalog *catalog = catalog_of(path, format, &code);

    if (code != wanted || !strstr(fail_reason(), words))
        fail_msg("%d, %s; wanted %d, %s", code, fail_reason(), wanted, words);
    assert_null(catalog);
}

/* Copy a file of the golden sets. */
static void copy(const char *from, const char *to, size_t bytes_at_most)
{
    char *path = file_join(GOLDEN "/mds", from), *bytes;
    size_t count;

    assert_int_equal(file_load(path, 1 << 20, &bytes, &count), 0);
    folder_write(to, bytes, count < bytes_at_most ? count : bytes_at_most);
    free(bytes);
    free(path);
}

static void read_record(const struct catalog *catalog, uint64_t index, void *record)
{
    const struct extent *extent = catalog_extent(catalog, index);
    struct store_file *file;

    assert_int_equal(store_open(catalog->shards[extent->shard].path, STORE_READ, &file), 0);
    assert_int_equal(store_read_at(file, record, extent->bytes, extent->offset), extent->bytes);
    store_close(file, false);
}

static void zstd_equals_plain(void **unused)
{
    int code, plain_code;
    struct catalog *zstd = catalog_of(GOLDEN "/mds/zstd", "mds", &code);
    uint8_t buffer[2][4096];

    if (!zstd) /* a build without libzstd says so */
        assert_refused(code, -ENOTSUP, "libzstd-dev");
    struct catalog *plain = catalog_of(GOLDEN "/mds/plain", "mds", &plain_code);
    assert_int_equal(plain_code, 0);
    for (uint64_t i = 0; zstd && i < plain->record_count; i++) {
        const struct extent *of_plain = catalog_extent(plain, i),
                            *of_zstd = catalog_extent(zstd, i);
        struct inflate *stream = inflate_open(zstd->shards[of_zstd->shard].path, SHARD_ZSTD, &code);
        assert_non_null(stream);
        assert_int_equal(of_zstd->bytes, of_plain->bytes);
        assert_int_equal(inflate_read(stream, NULL, of_zstd->offset), of_zstd->offset);
        assert_int_equal(inflate_read(stream, buffer[0], of_zstd->bytes), of_zstd->bytes);
        inflate_close(stream);
        read_record(plain, i, buffer[1]);
        assert_memory_equal(buffer[0], buffer[1], of_plain->bytes);
    }
    catalog_destroy(zstd);
    catalog_destroy(plain);
}

static void damaged_shards(void **unused)
{
    char *bytes;
    size_t count;

    assert_int_equal(file_load(GOLDEN "/mds/columns/shard.00000.mds", 1 << 20, &bytes, &count), 0);
    copy("columns/index.json", "index.json", SIZE_MAX);
    for (size_t cut = 0; cut < count; cut += cut < 400 ? 1 : 97) {
        int code;
        copy("columns/shard.00000.mds", "shard.00000.mds", cut);
        struct catalog *catalog = catalog_of(test_folder, "mds", &code);
        if (catalog || code >= 0 || !*fail_reason())
            fail_msg("cut at %zu: %d", cut, code);
    }
    for (size_t at = 0; at < 400; at++) { /* the head, bit by bit: refused, or all in the file */
        int code;
        bytes[at] ^= (char)(1 << at % 8);
        folder_write("shard.00000.mds", bytes, count);
        bytes[at] ^= (char)(1 << at % 8);
        struct catalog *catalog = catalog_of(test_folder, "mds", &code);
        for (uint64_t i = 0; catalog && i < catalog->record_count; i++)
            assert_true(catalog_extent(catalog, i)->offset + catalog_extent(catalog, i)->bytes <=
                        count);
        assert_true(catalog || *fail_reason());
        catalog_destroy(catalog);
    }
    bytes[0]--; /* one sample fewer: its offsets then begin before the columns */
    folder_write("shard.00000.mds", bytes, count);
    int code;
    assert_null(catalog_of(test_folder, "mds", &code));
    free(bytes);
    copy("zstd/index.json", "index.json", SIZE_MAX);
    copy("zstd/shard.00000.mds.zstd", "shard.00000.mds.zstd", 600);
    copy("zstd/shard.00001.mds.zstd", "shard.00001.mds.zstd", SIZE_MAX);
    assert_null(catalog_of(test_folder, "mds", &code));
    assert_true(code == -EBADMSG || code == -ENOTSUP);
}

static void put_index(const char *shard)
{
    char text[512];

    snprintf(text, sizeof text,
             "{\"shards\": [{\"column_encodings\": [\"str\"], \"format\": \"mds\", \"version\": 2, "
             "%s}]}",
             shard);
    folder_put("index.json", text);
}

/* A bit of what is compressed, and the head of an image. */
static void damaged_contents(void **unused)
{
    static const struct {
        int at; /* of the head: width, height, bytes of the mode, mode */
        uint8_t byte;
        const char *reason;
    } heads[] = {{11, 0xff, "a PIL image is shorter than its head"},
                 {12, 'X', "a PIL image is neither RGB nor L"},
                 {8, 1, "a PIL image is neither RGB nor L"},
                 {0, 0xee, "a PIL image"}};
    struct plugin_choice choice;
    struct sample sample;
    uint8_t record[4096];
    char *bytes;
    size_t count;
    int code;

    struct catalog *catalog = catalog_of(GOLDEN "/mds/pil", "mds", &code);
    assert_int_equal(code, 0);
    assert_int_equal(plugin_choose("format", format_registry, "mds", &choice), 0);
    const struct extent *extent = catalog_extent(catalog, 0);
    const struct shard *shard = &catalog->shards[extent->shard];
    read_record(catalog, 0, record);
    if (format_parse(&choice, shard, record, extent->bytes, 0, NULL, &sample))
        sample.label = -2;
    uint8_t *head =
        record + ((const uint8_t *)sample.image - record) - 12 - (sample.channels == 3 ? 3 : 1);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const uint8_t saved = head[heads[i].at];
        head[heads[i].at] = heads[i].byte;
        assert_refused(format_parse(&choice, shard, record, extent->bytes, 0, NULL, &sample),
                       -EBADMSG, heads[i].reason);
        head[heads[i].at] = saved;
    }
    plugin_release(&choice);
    catalog_destroy(catalog);

    catalog = catalog_of(GOLDEN "/mds/zstd", "mds", &code);
    if (!catalog)
        return; /* a build without libzstd */
    catalog_destroy(catalog);
    copy("zstd/shard.00000.mds.zstd", "shard.00000.mds.zstd", SIZE_MAX);
    assert_int_equal(file_load(folder_path("shard.00000.mds.zstd"), 1 << 20, &bytes, &count), 0);
    bytes[4] ^= 8; /* a reserved bit */
    folder_write("shard.00000.mds.zstd", bytes, count);
    free(bytes);
    struct inflate *stream = inflate_open(folder_path("shard.00000.mds.zstd"), SHARD_ZSTD, &code);
    assert_non_null(stream);
    assert_refused(inflate_read(stream, NULL, 1 << 20), -EBADMSG, "shard.00000.mds.zstd");
    inflate_close(stream);
}

/* A zstd frame, in blocks as they are and of one repeated byte. */
static void put_block(FILE *file, const void *bytes, uint32_t count, bool repeats, bool last)
{
    uint8_t head[4];

    bytes_put_le32(head, (uint32_t)last | (repeats ? 2 : 0) | count << 3);
    fwrite(head, 3, 1, file);
    fwrite(bytes, repeats ? 1 : count, 1, file);
}

static void write_many_samples(uint32_t samples)
{
    enum { BLOCK = 1 << 17, SAMPLE = 4 };
    static const char columns[] =
        "{\"column_encodings\": [\"jpeg\", \"int\"], \"column_names\": [\"image\", "
        "\"label\"], \"column_sizes\": [null, 8], \"format\": \"mds\", \"version\": 2}";
    const uint32_t bytes = 4 * (samples + 2) + (uint32_t)strlen(columns);
    uint8_t *head = malloc(bytes);
    FILE *file = fopen(folder_path("many.mds.zstd"), "we");

    bytes_put_le32(head, samples);
    for (uint32_t i = 0; i <= samples; i++)
        bytes_put_le32(head + 4 * (i + 1), bytes + SAMPLE * i);
    memcpy(head + 4 * (samples + 2), columns, strlen(columns));
    fwrite("\x28\xb5\x2f\xfd\x00\x58", 6, 1, file); /* a window of 2 MiB */
    for (uint32_t at = 0; at < bytes; at += BLOCK)
        put_block(file, head + at, bytes - at < BLOCK ? bytes - at : BLOCK, false, false);
    for (uint32_t left = SAMPLE * samples; left; left -= left < BLOCK ? left : BLOCK)
        put_block(file, "", left < BLOCK ? left : BLOCK, true, left <= BLOCK);
    assert_int_equal(fclose(file), 0);
    free(head);
}

/* The index of a small file takes 64 MiB at most. */
static void a_compressed_shard_has_so_many_samples(void **unused)
{
    enum { MOST = (64 << 20) / 16 };

    for (uint32_t samples = MOST; samples <= MOST + 1; samples++) {
        char text[256];
        int code;
        snprintf(text, sizeof text,
                 "\"raw_data\": {\"basename\": \"many.mds\"}, \"zip_data\": {\"basename\": "
                 "\"many.mds.zstd\"}, "
                 "\"compression\": \"zstd\", \"samples\": %u",
                 samples);
        put_index(text);
        write_many_samples(samples);
        struct catalog *catalog = catalog_of(test_folder, "mds", &code);
        if (code == -ENOTSUP) /* a build without libzstd */
            break;
        if (samples == MOST)
            assert_int_equal(catalog ? catalog->record_count : 0, MOST);
        else
            assert_int_equal(code, -EFBIG);
        catalog_destroy(catalog);
    }
    unlink(folder_path("many.mds.zstd"));
}

static void lists_that_lie(void **unused)
{
    copy("pil/shard.00000.mds", "shard.00000.mds", SIZE_MAX);
    put_index("\"raw_data\": {\"basename\": \"shard.00000.mds\"}, \"samples\": 7");
    refuses(test_folder, "mds", -EBADMSG, "6 samples, but index.json says 7");
    put_index("\"raw_data\": {\"basename\": \"shard.00001.mds\"}, \"samples\": 6");
    refuses(test_folder, "mds", -ENOENT, "shard.00001.mds is missing");
    put_index("\"raw_data\": {\"basename\": \"shard.00001.mds\"}, \"zip_data\": {\"basename\": "
              "\"shard.00001.mds.br\"}");
    refuses(test_folder, "mds", -ENOTSUP, "compressed other than by zstd");
    static const char *const outside[] = {"/etc/passwd", "../x.mds", "a/../../x", "", "./", "a//b"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "\"raw_data\": {\"basename\": \"%s\"}", outside[i]);
        put_index(text);
        refuses(test_folder, "mds", -EBADMSG, "no name below the folder");
    }
    folder_put("index.json", "{\"shards\": [{\"format\": \"json\", \"version\": 2}]}");
    refuses(test_folder, "mds", -ENOTSUP, "json version 2, expected mds version 2");
    folder_put("index.json", "{\"shards\": []}");
    refuses(test_folder, "mds", -EBADMSG, "no shards");
    folder_put("index.json", "{\"shards\": [");
    refuses(test_folder, "mds", -EBADMSG, "index.json: line 1");
}

static void columns_by_name(void **unused)
{
    int code;

    struct catalog *catalog = catalog_of(GOLDEN "/mds/columns", "mds:label=z", &code);
    struct plugin_choice choice;
    assert_int_equal(code, 0);
    assert_int_equal(plugin_choose("format", format_registry, "mds", &choice), 0);
    for (uint64_t i = 0; i < catalog->record_count; i++) { /* z is -i: no class */
        const struct extent *extent = catalog_extent(catalog, i);
        uint8_t record[4096];
        struct sample sample;
        read_record(catalog, i, record);
        assert_int_equal(
            format_parse(&choice, &catalog->shards[0], record, extent->bytes, 0, NULL, &sample), 0);
        assert_int_equal(sample.label, i ? -1 : 0);
        bytes_put_le32(record, UINT32_MAX); /* the size of the caption */
        assert_int_equal(
            format_parse(&choice, &catalog->shards[0], record, extent->bytes, 0, NULL, &sample),
            -EBADMSG);
    }
    plugin_release(&choice);
    catalog_destroy(catalog);
    refuses(GOLDEN "/mds/columns", "mds:label=none", -ENOTSUP, "no column none");
    refuses(GOLDEN "/mds/columns", "mds:image=z", -ENOTSUP, "has a fixed size");
    refuses(GOLDEN "/mds/columns", "mds:image=none", -ENOTSUP, "no column none");
}

/* -2: the sample is refused, with a reason. */
static int64_t last_label_of(const char *path)
{
    int code;
    struct catalog *catalog = catalog_of(path, "mds", &code);
    struct plugin_choice choice;
    uint8_t record[4096];
    struct sample sample;

    assert_int_equal(code, 0);
    assert_int_equal(plugin_choose("format", format_registry, "mds", &choice), 0);
    const struct extent *extent = catalog_extent(catalog, catalog->record_count - 1);
    const struct shard *shard = &catalog->shards[extent->shard];
    read_record(catalog, catalog->record_count - 1, record);
    if (format_parse(&choice, shard, record, extent->bytes, 0, NULL, &sample))
        sample.label = -2;
    plugin_release(&choice);
    catalog_destroy(catalog);
    return sample.label;
}

/* Each usual name of the label's column is known; the head of a shard keeps its length. */
static void usual_names_of_labels(void **unused)
{
    static const char *const names[] = {", \"label\"", ", \"class\"", ",\"target\"", ", \"y\"    ",
                                        ", \"other\""};
    const int64_t label = last_label_of(GOLDEN "/mds/plain");
    static const char *const shards[] = {"shard.00000.mds", "shard.00001.mds"};

    assert_true(label >= 0);
    copy("plain/index.json", "index.json", SIZE_MAX);
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 2; k++) {
            char *path = file_join(GOLDEN "/mds/plain", shards[k]), *bytes, *name;
            size_t count;
            assert_int_equal(file_load(path, 1 << 20, &bytes, &count), 0);
            name = memmem(bytes, count, names[0], strlen(names[0]));
            assert_non_null(name);
            memcpy(name, names[i], strlen(names[0]));
            folder_write(shards[k], bytes, count);
            free(bytes);
            free(path);
        }
        assert_int_equal(last_label_of(test_folder), i < 4 ? label : -1);
    }
}

/* A text is the label only where no number is. */
static void a_number_is_the_label_before_a_text(void **unused)
{
    char *bytes;
    size_t count;

    assert_int_equal(file_load(GOLDEN "/mds/columns/shard.00000.mds", 1 << 20, &bytes, &count), 0);
    char *caption = memmem(bytes, count, "\"caption\"", 9), *y = memmem(bytes, count, "\"y\"", 3);
    assert_true(caption && y);
    memcpy(caption, "\"class\"  ", 9); /* before y */
    copy("columns/index.json", "index.json", SIZE_MAX);
    folder_write("shard.00000.mds", bytes, count);
    assert_int_equal(last_label_of(test_folder), last_label_of(GOLDEN "/mds/columns"));
    y[1] = 'q';
    folder_write("shard.00000.mds", bytes, count);
    assert_refused(last_label_of(test_folder), -2, "is not a class number");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zstd_equals_plain),
        cmocka_unit_test(damaged_shards),
        cmocka_unit_test(damaged_contents),
        cmocka_unit_test(a_compressed_shard_has_so_many_samples),
        cmocka_unit_test(lists_that_lie),
        cmocka_unit_test(columns_by_name),
        cmocka_unit_test(usual_names_of_labels),
        cmocka_unit_test(a_number_is_the_label_before_a_text),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
