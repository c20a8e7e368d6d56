/* SPDX-License-Identifier: Apache-2.0
 * Archives, whole and damaged, and writing. What webdataset and tarfile wrote is read in
 * test_golden; here those files are damaged. */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "base/random.h"
#include "formats/format.h"
#include "formats/tar_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static struct plugin_choice tar;
static const struct shard no_shard = {.label = -1};

static int setup(void **unused)
{
    if (plugin_choose("format", format_registry, "tar", &tar))
        return -1;
    return folder_setup(unused);
}

static int teardown(void **unused)
{
    plugin_release(&tar);
    return folder_teardown(unused);
}

/* ---- an archive built by hand ---- */

static struct {
    uint8_t bytes[1 << 16];
    size_t used;
} made;

static int start(void **unused)
{
    memset(&made, 0, sizeof made);
    return 0;
}

static void put_sum(uint8_t *block)
{
    unsigned sum = 0;

    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

static uint8_t *put(const char *name, char type, const char *content)
{
    uint8_t *block = made.bytes + made.used;
    size_t count = strlen(content);

    assert_true(made.used + 1024 + count < sizeof made.bytes);
    memset(block, 0, 1024 + count);
    memcpy(block, name, strlen(name));
    snprintf((char *)block + 124, 12, "%011o", (unsigned)(count & 0xffff));
    block[156] = (uint8_t)type;
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    put_sum(block);
    memcpy(block + 512, content, count);
    made.used += 512 + (count + 511) / 512 * 512;
    return block;
}

/* Index the archive, with its end marker appended. */
static int index_made(const struct format_scan *scan, struct catalog **catalog)
{
    uint8_t *bytes = calloc(1, made.used + 1024);

    assert_non_null(bytes);
    memcpy(bytes, made.bytes, made.used);
    folder_write("made.tar", bytes, made.used + 1024);
    free(bytes);
    return format_catalog(&tar, folder_path("made.tar"), false, scan, catalog);
}

static struct catalog *index_whole(uint64_t records)
{
    struct catalog *catalog;

    assert_int_equal(index_made(NULL, &catalog), 0);
    assert_int_equal(catalog->record_count, records);
    return catalog;
}

static int index_cut(const struct format_scan *scan, struct catalog **catalog)
{
    folder_write("made.tar", made.bytes, made.used);
    return format_catalog(&tar, folder_path("made.tar"), false, scan, catalog);
}

static void expect_failure(unsigned offset, const char *words)
{
    struct catalog *catalog;
    char place[32];

    snprintf(place, sizeof place, "offset %u: ", offset);
    assert_int_equal(index_made(NULL, &catalog), -EBADMSG);
    if (!strstr(fail_reason(), words) || !strstr(fail_reason(), place))
        fail_msg("'%s' does not say '%s' at %u", fail_reason(), words, offset);
}

/* Parse a record of the archive from a copy of exactly its length. */
static int parse(const uint8_t *bytes, const struct extent *extent, struct sample *sample,
                 uint8_t **copy)
{
    static uint8_t names[1 << 16];
    struct format_scratch scratch = {.bytes = names, .capacity = sizeof names};

    *copy = malloc(extent->bytes + !extent->bytes);
    assert_non_null(*copy);
    memcpy(*copy, bytes + extent->offset, extent->bytes);
    return format_parse(&tar, &no_shard, *copy, extent->bytes, 0, &scratch, sample);
}

static void expect_sample(const struct catalog *catalog, uint64_t record, int32_t label,
                          const char *image, const char *name)
{
    struct sample sample;
    uint8_t *copy;

    assert_int_equal(parse(made.bytes, &catalog->records[record], &sample, &copy), 0);
    assert_int_equal(sample.label, label);
    assert_int_equal(sample.image_bytes, strlen(image));
    assert_memory_equal(sample.image, image, strlen(image));
    assert_int_equal(sample.name_bytes, strlen(name));
    assert_memory_equal(sample.name, name, strlen(name));
    free(copy);
}

/* Parse the only sample of the archive. Returns its label, -2 if parsing fails. */
static int32_t label_of(const char *choice, const char *json, const char *class)
{
    struct plugin_choice format, saved = tar;
    struct sample sample;
    uint8_t *copy;

    start(NULL);
    put("k.left.jpg", '0', "left one");
    put("k.json", '0', json);
    put("k.jpg", '0', "picture");
    put("k.right.jpg", '0', "right one");
    if (class)
        put("k.cls", '0', class);
    assert_int_equal(plugin_choose("format", format_registry, choice, &format), 0);
    tar = format;
    struct catalog *catalog = index_whole(1);
    int code = parse(made.bytes, &catalog->records[0], &sample, &copy);
    if (code == 0) {
        assert_int_equal(sample.image_bytes, 7);
        assert_memory_equal(sample.image, "picture", 7);
    }
    tar = saved;
    plugin_release(&format);
    catalog_destroy(catalog);
    free(copy);
    return code ? -2 : sample.label;
}

static void labels_in_json(void **unused)
{
    assert_int_equal(label_of("tar", "{\"label\": 5, \"cls\": 6}", NULL), 5);
    assert_int_equal(label_of("tar", "{\"label\": \"cat\", \"cls\": 6}", NULL), 6);
    assert_int_equal(label_of("tar", "{\"label\": \"4\", \"cls\": \"5\"}", NULL), 4);
    assert_int_equal(label_of("tar", "{\"label\": 5}", "8"), 8);
    assert_int_equal(label_of("tar:label=n", "{\"label\": 5, \"n\": 3}", NULL), 3);
    assert_int_equal(label_of("tar", "{\"label\": 5.5}", NULL), -2);
    assert_int_equal(label_of("tar", "{\"caption\": \"a cat\"}", NULL), -1);
    assert_int_equal(label_of("tar", "[1, 2]", NULL), -1);
    assert_int_equal(label_of("tar", "{\"label\": ", NULL), -2);
    assert_int_equal(label_of("tar", "{\"label\": ", "8"), 8);
}

static void images_named_with_several_dots(void **unused)
{
    put("a.left.png", '0', "left");
    put("a.right.png", '0', "right");
    put("a.cls", '0', "3");
    struct catalog *catalog = index_whole(1);
    expect_sample(catalog, 0, 3, "left", "a.left.png");
    catalog_destroy(catalog);
}

static void neighbours_of_one_key_are_a_sample(void **unused)
{
    put("__meta__", '0', "x");
    put("a/b.c/k.cls", '0', " 7\n");
    put("folder/", '5', "");
    put("__meta__/k.jpg", '0', "not this one");
    put("a/b.c/k.JPG", '0', "picture");
    put("a/b.c/k.txt.gz", '0', "");
    put("no_image.txt", '0', "text");
    put("plain", '0', "no extension");
    put("k.jpg", '0', "second");
    struct catalog *catalog = index_whole(2);
    assert_int_equal(catalog->left_out, 4);
    assert_int_equal(catalog->records[0].offset, 1024);
    expect_sample(catalog, 0, 7, "picture", "a/b.c/k.JPG");
    expect_sample(catalog, 1, -1, "second", "k.jpg");
    catalog_destroy(catalog);
}

static void unread_samples_are_told(void **unused)
{
    put("a.jpg", '0', "x");
    put("a.seg.avif", '0', "of a sample with an image");
    put("b.avif", '0', "x"); /* at 2048 */
    put("b.cls", '0', "1");
    put("c.img.JPG", '0', "x");
    put("d.cls", '0', "2");
    put("e.bmp", '0', "x");
    put("f.txt", '0', "x");
    struct catalog *catalog = index_whole(3);
    assert_int_equal(catalog->left_out, 1);
    assert_int_equal(catalog->remarks[REMARK_LEFT_OUT].count, 2);
    assert_non_null(strstr(catalog->remarks[REMARK_LEFT_OUT].first,
                           "made.tar: offset 2048: b (avif, cls): no image"));
    catalog_destroy(catalog);
    /* of two archives, each of which is scanned by a thread of its own */
    folder_write("more.tar", made.bytes, made.used + 1024);
    assert_int_equal(format_catalog(&tar, test_folder, false, NULL, &catalog), 0);
    assert_int_equal(catalog->record_count, 6);
    assert_int_equal(catalog->left_out, 2);
    assert_int_equal(catalog->remarks[REMARK_LEFT_OUT].count, 4);
    catalog_destroy(catalog);
    assert_int_equal(unlink(folder_path("more.tar")), 0);
}

static void sparse_and_odd_entries_are_passed(void **unused)
{
    put("global", 'g', "19 comment=nothing\n");
    put("pax", 'x', "22 GNU.sparse.major=1\n");
    put("sparse.jpg", '0', "holes");
    uint8_t *sparse = put("old_sparse.jpg", 'S', "");
    sparse[482] = 1;
    put_sum(sparse);
    made.bytes[made.used + 504] = 1; /* two blocks of map */
    made.used += 1024;
    put("long link", 'K', "a long name of a link");
    put("link.jpg", '1', "");
    put("volume.jpg", 'V', "");
    put("taken.jpg", '7', "x");
    catalog_destroy(index_whole(1));
}

static void a_name_in_front_is_for_the_next_only(void **unused)
{
    put("long", 'L', "long/name.jpg");
    put("folder", '5', "");
    put("short.jpg", '0', "x");
    struct catalog *catalog = index_whole(1);
    expect_sample(catalog, 0, -1, "x", "short.jpg");
    catalog_destroy(catalog);
}

/* The definition: bytes of either kind, the field of the checksum counted as spaces. */
static long checksum_of(const uint8_t *block, bool is_signed)
{
    long sum = 0;

    for (unsigned i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? ' ' : is_signed ? (int8_t)block[i] : block[i];
    return sum;
}

static void both_checksums_are_right(void **unused)
{
    struct random random = random_start(7);
    uint8_t block[512];

    for (unsigned round = 0; round < 2000; round++) {
        for (unsigned i = 0; i < sizeof block; i++)
            block[i] = (uint8_t)(random_next(&random) >> (i < 100 ? 57 : 56)); /* a sum above 0 */
        const bool is_signed = round % 2 != 0;
        const long sum = checksum_of(block, is_signed), off = (long)(random_next(&random) % 512);
        snprintf((char *)block + 148, 8, "%06lo", (unsigned long)sum & 0777777);
        assert_true(tar_is_header(block)); /* whatever the last byte of the field is */
        if (off == 0 || sum + off == checksum_of(block, !is_signed))
            continue;
        snprintf((char *)block + 148, 8, "%06lo", (unsigned long)(sum + off) & 0777777);
        assert_false(tar_is_header(block));
    }
}

static void damage_is_told(void **unused)
{
    for (int i = 0; i < 12; i++) { /* 1,024 bytes of extensions: eleven of 93 */
        char name[100];
        snprintf(name, sizeof name, "a.%092d", i);
        put(name, '0', "");
    }
    expect_failure(11 * 512, "a sample with too many files");
    start(NULL);
    put("a.jpg", '0', "x");
    put("a.JPG", '0', "x");
    expect_failure(1024, "same extension");
    made.used = 1024;
    made.bytes[put("b.jpg", '0', "x") - made.bytes + 1]++;
    expect_failure(1024, "checksum");
    uint8_t *block = made.bytes + 1024;
    memcpy(block + 124, "0000000000x", 12);
    put_sum(block);
    expect_failure(1024, "size");
    memset(block + 124, 0xff, 12); /* negative, base 256 */
    put_sum(block);
    expect_failure(1024, "size");
    memset(block + 124, 0, 12);
    block[124] = 0x80;
    memset(block + 128, 0xff, 8);
    put_sum(block);
    expect_failure(1024, "size");
    memcpy(block + 124, "77777777777", 12);
    put_sum(block);
    expect_failure(1024, "past the end");
    static const char *const lines[] = {
        "x",         "5",           "99 path=a\n",
        "3 a\n",     "0 path=a\n",  "10 path=ab",
        "7 path=\n", "10 size=x\n", "25 size=99999999999999999999\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct catalog *catalog;
        made.used = 0;
        put("pax", 'x', lines[i]);
        put("a.jpg", '0', "x");
        int code = index_made(NULL, &catalog);
        if (code == 0)
            fail_msg("line %zu is taken", i);
        assert_true(code == -EBADMSG || code == -ENODATA);
    }
}

static int count_fault(void *context, const struct catalog_fault *fault)
{
    ++*(unsigned *)context;
    return 0;
}

static void the_walk_goes_on_behind_damage(void **unused)
{
    unsigned faults = 0;
    const struct format_scan scan = {.fault = count_fault, .fault_context = &faults};
    struct catalog *catalog;

    put("a.jpg", '0', "x");
    put("b.jpg", '0', "x")[3]++;
    put("c.jpg", '0', "x");
    assert_int_equal(index_made(&scan, &catalog), 0);
    assert_int_equal(catalog->record_count, 2);
    assert_int_equal(faults, 1);
    catalog_destroy(catalog);
}

static void cut_archives_are_told(void **unused)
{
    struct catalog *catalog;

    put("a.jpg", '0', "x");
    put("b.jpg", '0', "yy");
    const size_t whole = made.used;
    memset(made.bytes + whole, 0, 1024);
    for (made.used = 0; made.used < whole + 512; made.used += 64) {
        unsigned faults = 0;
        const struct format_scan scan = {.fault = count_fault, .fault_context = &faults};
        assert_refused(index_cut(NULL, &catalog), -EBADMSG, "truncated");
        const int code = index_cut(&scan, &catalog);
        assert_int_equal(faults, 1); /* whole records are kept; padding may be missing */
        assert_int_equal(code, made.used > 512 ? 0 : -ENODATA);
        if (code == 0)
            assert_int_equal(catalog->record_count, made.used > 1536 ? 2 : 1);
        catalog_destroy(code ? NULL : catalog);
    }
    for (; made.used <= whole + 1024; made.used += 512) { /* one block of zeros is enough */
        assert_int_equal(index_cut(NULL, &catalog), 0);
        assert_int_equal(catalog->record_count, 2);
        catalog_destroy(catalog);
    }
}

static void classes_are_integers(void **unused)
{
    static const struct {
        const char *file, *text;
        int32_t label;
        bool is_odd;
    } rows[] = {
        {"a.cls", "3", 3, false},
        {"a.cls", " 3\r\n", 3, false},
        {"a.cls", "1.0", 1, false},
        {"a.cls", "", -1, false},
        {"a.cls", " \n", -1, false},
        {"a.cls", "-7", -1, false},
        {"a.cls", "x", -1, true},
        {"a.cls", "1x", -1, true},
        {"a.cls", "1 2", -1, true},
        {"a.cls", "-", -1, true},
        {"a.cls", "nan", -1, true},
        {"a.cls", "2.5", -1, true},
        {"a.cls", "2147483648", -1, true},
        {"a.cls", "99999999999999999999999", -1, true},
        {"a.json", "{\"label\": 4}", 4, false},
        {"a.json", "{\"label\": \"4\"}", 4, false},
        {"a.json", "{\"label\": \"cat\", \"cls\": 5}", 5, false},
        {"a.json", "{\"label\": null}", -1, false},
        {"a.json", "{\"label\": \"cat\"}", -1, true},
    };
    struct sample sample;
    uint8_t *copy;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        made.used = 0;
        put(rows[i].file, '0', rows[i].text);
        put("a.jpg", '0', "x");
        const struct extent all = {.bytes = (uint32_t)made.used};
        assert_int_equal(parse(made.bytes, &all, &sample, &copy), rows[i].is_odd ? -EBADMSG : 0);
        assert_int_equal(sample.label, rows[i].label);
        assert_int_equal(sample.has_odd_label, rows[i].is_odd);
        free(copy);
    }
    made.used = 0;
    put("a.cls", '0', "1");
    const struct extent all = {.bytes = (uint32_t)made.used};
    assert_int_equal(parse(made.bytes, &all, &sample, &copy), -EBADMSG); /* not an image */
    free(copy);
}

/* What is not read is said: links, files that are apart from their image, further images. */
static void nothing_is_lost_without_a_word(void **unused)
{
    put("d.jpg", '1', "");
    put("a.cls", '0', "1");
    put("b.left.jpg", '0', "x");
    put("b.right.jpg", '0', "x");
    put("c.jpg", '0', "x");
    put("c.seg.png", '0', "x");
    put("e.cls", '2', "");
    put("notes", '2', "");
    put("notes.txt", '2', "");
    put("volume 1.0", 'V', "");
    put("a.jpg", '0', "x");
    put("b.json", '0', "{}");
    put("f.wav", '0', "x");
    put("g.json", '0', "{}");
    put("h.jpg", '0', "x");
    put("g.jpg", '0', "x");
    put("i.cls", '0', "1");
    put("i.jpg", '1', ""); /* said once: as a link, not as a sample without image too */
    struct catalog *catalog = index_whole(5);
    assert_int_equal(catalog->left_out, 3);
    assert_int_equal(catalog->remarks[REMARK_LEFT_OUT].count, 6); /* of a, b, d, e, g, i */
    assert_non_null(strstr(catalog->remarks[REMARK_LEFT_OUT].first, "d.jpg: a hard link"));
    assert_int_equal(catalog->remarks[REMARK_SEVERAL_IMAGES].count, 1);
    assert_non_null(
        strstr(catalog->remarks[REMARK_SEVERAL_IMAGES].first, "b (left.jpg, right.jpg)"));
    assert_int_equal(catalog->remarks[REMARK_UNUSED_IMAGES].count, 1);
    assert_int_equal(catalog->remarks[REMARK_NO_IMAGE].count, 2);
    assert_non_null(strstr(catalog->remarks[REMARK_NO_IMAGE].first, "f (wav)"));
    catalog_destroy(catalog);
}

/* The list of extensions fills its text to the last byte. */
static void a_long_list_of_extensions_is_cut(void **unused)
{
    static const int lengths[] = {78, 78, 77, 77}; /* with "k (" and commas 319 */
    char name[100];

    put("a.jpg", '0', "x");
    for (int i = 0; i < 4; i++) {
        memset(name, 'a' + i, sizeof name);
        memcpy(name, "k.", 2);
        name[2 + lengths[i]] = '\0';
        put(name, '0', "x");
    }
    struct catalog *catalog = index_whole(1);
    const char *text = strstr(catalog->remarks[REMARK_NO_IMAGE].first, "k (");
    assert_non_null(text);
    assert_int_equal(strchr(text, ')') + 1 - text, 319);
    catalog_destroy(catalog);
}

/* ---- flipped bits ---- */

static void flip(const char *name, unsigned rounds)
{
    char path[512], *text;
    size_t count;
    struct catalog *damaged;
    unsigned found = 0;

    snprintf(path, sizeof path, "%s/tar/%s", GOLDEN, name);
    assert_int_equal(file_load(path, 1 << 24, &text, &count), 0);
    folder_write("flipped.tar", text, count);
    int fd = open(folder_path("flipped.tar"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    struct random random = random_start(count);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t bit = random_below(&random, count * 8);
        uint8_t *byte = (uint8_t *)text + bit / 8, mask = (uint8_t)(1u << bit % 8);
        *byte ^= mask;
        assert_int_equal(pwrite(fd, byte, 1, (off_t)(bit / 8)), 1);
        int code = format_catalog(&tar, folder_path("flipped.tar"), false, NULL, &damaged);
        if (code == 0) {
            for (uint64_t j = 0; j < damaged->record_count; j++) {
                struct sample sample;
                uint8_t *copy;
                found += parse((uint8_t *)text, &damaged->records[j], &sample, &copy) < 0;
                free(copy);
            }
            catalog_destroy(damaged);
        } else {
            assert_true(code == -EBADMSG || code == -ENODATA);
            found++;
        }
        *byte ^= mask;
        assert_int_equal(pwrite(fd, byte, 1, (off_t)(bit / 8)), 1);
    }
    assert_true(found > 0);
    close(fd);
    free(text);
}

static void flipped_bits_do_no_harm(void **unused)
{
    flip("webdataset/train-000000.tar", 1500);
    flip("ustar.tar", 1500);
    flip("gnu.tar", 1500);
    flip("pax.tar", 1500);
    flip("old.tar", 1500);
}

/* ---- writing ---- */

#define TEN(text) text text text text text text text text text text

static void what_is_written_is_read(void **unused)
{
    static char long_name[600];
    static const struct {
        const char *name, *back; /* NULL: its number */
        int32_t label;
    } rows[] = {
        {"n01/a.JPEG", "n01/a.jpg", 0},
        {"n01/a.JPEG", "n01/a_1.jpg", 999},
        {NULL, "00000002.jpg", -1},
        {"/etc/b", "etc/b.jpg", 1},
        {"__x__.jpg", "00000004.jpg", 2},
        {".jpg", "jpg.jpg", 3},
        {"a/.jpg", "00000006.jpg", 4},
        {long_name, NULL, 5},
        {"d.d/e.f.g", "d.d/e.jpg", 6},
        {"d.d/e.h", "d.d/e_9.jpg", 0},
        {"d.d/e.i", "d.d/e_10.jpg", 0},
        {"n01/a.png", "n01/a_11.jpg", 0},
        {"n01/a_1", "n01/a_1_12.jpg", 0},
        {"n/../../m", "00000013.jpg", 0},
        {"n/..m", "00000014.jpg", 0},
        /* split at its second slash: of the first the rest is too long */
        {"d/" TEN("e") TEN("e") TEN("e") TEN("e") "/" TEN("f") TEN("f") TEN("f") TEN("f") TEN("f")
             TEN("f") TEN("f"),
         "d/" TEN("e") TEN("e") TEN("e") TEN("e") "/" TEN("f") TEN("f") TEN("f") TEN("f") TEN("f")
             TEN("f") TEN("f") ".jpg",
         7},
    };
    enum { COUNT = sizeof rows / sizeof rows[0] };
    struct format_writer writer;
    struct catalog *catalog;
    struct sample sample;
    char *path, *file;
    size_t bytes;
    uint8_t *copy;

    memset(long_name, 'n', sizeof long_name - 1);
    assert_int_equal(format_shard_path(tar.plugin, test_folder, 3, 5, &path), 0);
    assert_non_null(strstr(path, "/train-000003.tar"));
    assert_int_equal(format_writer_open(&writer, &tar, path), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        sample = (struct sample){.image = "\xff\xd8\xff.....",
                                 .image_bytes = 3 + i % 5,
                                 .label = rows[i].label,
                                 .name = rows[i].name,
                                 .name_bytes = rows[i].name ? strlen(rows[i].name) : 0};
        assert_int_equal(format_writer_append(&writer, &sample), 0);
    }
    assert_int_equal(format_writer_close(&writer, true), 0);
    if (format_catalog(&tar, path, false, NULL, &catalog))
        fail_msg("%s", fail_reason());
    assert_ptr_equal(format_detect(path), tar.plugin);
    assert_int_equal(file_load(path, 1 << 24, &file, &bytes), 0);
    assert_int_equal(bytes % 512, 0);
    assert_int_equal(catalog->record_count, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(parse((uint8_t *)file, &catalog->records[i], &sample, &copy), 0);
        assert_int_equal(sample.label, rows[i].label);
        assert_int_equal(sample.image_bytes, 3 + i % 5);
        size_t length = rows[i].back ? strlen(rows[i].back) : sizeof long_name - 1 + 4;
        assert_int_equal(sample.name_bytes, length);
        assert_memory_equal(sample.name, rows[i].back ? rows[i].back : long_name,
                            rows[i].back ? length : length - 4);
        free(copy);
    }
    catalog_destroy(catalog);
    free(file);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(neighbours_of_one_key_are_a_sample, start),
        cmocka_unit_test_setup(labels_in_json, start),
        cmocka_unit_test_setup(images_named_with_several_dots, start),
        cmocka_unit_test_setup(unread_samples_are_told, start),
        cmocka_unit_test_setup(a_long_list_of_extensions_is_cut, start),
        cmocka_unit_test_setup(sparse_and_odd_entries_are_passed, start),
        cmocka_unit_test_setup(a_name_in_front_is_for_the_next_only, start),
        cmocka_unit_test(both_checksums_are_right),
        cmocka_unit_test_setup(damage_is_told, start),
        cmocka_unit_test_setup(the_walk_goes_on_behind_damage, start),
        cmocka_unit_test_setup(cut_archives_are_told, start),
        cmocka_unit_test_setup(classes_are_integers, start),
        cmocka_unit_test_setup(nothing_is_lost_without_a_word, start),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(what_is_written_is_read),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
