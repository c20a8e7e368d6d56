/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "formats/format.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static struct plugin_choice recordio;
static const struct shard no_shard = {.label = -1};

static int setup(void **unused)
{
    if (plugin_choose("format", format_registry, "recordio", &recordio))
        return -1;
    return folder_setup(unused);
}

static int teardown(void **unused)
{
    plugin_release(&recordio);
    return folder_teardown(unused);
}

/* ---- a shard built by hand ---- */

struct maker {
    uint8_t bytes[4096];
    size_t used;
};

static void put_word(struct maker *maker, uint32_t word)
{
    bytes_put_le32(maker->bytes + maker->used, word);
    maker->used += 4;
}

static void put_part(struct maker *maker, uint32_t kind, const void *bytes, uint32_t count)
{
    put_word(maker, 0xced7230a);
    put_word(maker, kind << 29 | count);
    memcpy(maker->bytes + maker->used, bytes, count);
    maker->used += count;
    while (maker->used % 4)
        maker->bytes[maker->used++] = 0;
}

static void put_image(struct maker *maker, float label, const char *image)
{
    uint8_t payload[256] = {0};

    bytes_put_le_float(payload + 4, label);
    memcpy(payload + 24, image, strlen(image));
    put_part(maker, 0, payload, (uint32_t)(24 + strlen(image)));
}

struct faults {
    uint32_t count;
    uint64_t offsets[8]; /* of the first */
};

static int note_fault(void *context, const struct catalog_fault *fault)
{
    struct faults *faults = context;

    if (faults->count < 8)
        faults->offsets[faults->count] = fault->offset;
    faults->count++;
    return 0;
}

static struct catalog *index_of(const char *name, struct faults *faults)
{
    struct format_scan scan = {.fault = faults ? note_fault : NULL, .fault_context = faults};
    struct catalog *catalog;

    if (format_catalog(&recordio, folder_path(name), false, &scan, &catalog))
        return NULL;
    return catalog;
}

static struct catalog *index_whole(const char *name, struct faults *faults, uint64_t records)
{
    struct catalog *catalog = index_of(name, faults);

    assert_non_null(catalog);
    assert_int_equal(catalog->record_count, records);
    return catalog;
}

static void expect_refusal(const char *name, const char *reason)
{
    assert_null(index_of(name, NULL));
    assert_reason(reason);
}

static struct sample parse_bytes(const void *record, size_t bytes, int expected)
{
    static uint8_t joined[4096];
    struct format_scratch scratch = {.bytes = joined, .capacity = sizeof joined};
    struct sample sample;

    assert_int_equal(format_parse(&recordio, &no_shard, record, bytes, 0, &scratch, &sample),
                     expected);
    return sample;
}

static void expect_image(const struct sample *sample, const char *image)
{
    assert_int_equal(sample->image_bytes, strlen(image));
    assert_memory_equal(sample->image, image, strlen(image));
}

/* ---- tests ---- */

static void records_are_found_by_scanning(void **unused)
{
    struct maker maker = {0};

    put_image(&maker, 7, "abcdefg"); /* padded by one */
    put_image(&maker, 999, "");
    put_image(&maker, 0, "abcd");
    folder_write("plain.rec", maker.bytes, maker.used);
    struct catalog *catalog = index_whole("plain.rec", NULL, 3);
    assert_int_equal(catalog->records[0].bytes, 8 + 32);
    assert_int_equal(catalog->records[1].offset, 40);
    struct sample sample = parse_bytes(maker.bytes, 40, 0);
    assert_int_equal(sample.label, 7);
    expect_image(&sample, "abcdefg");
    sample = parse_bytes(maker.bytes + 40, 32, 0);
    assert_int_equal(sample.label, 999);
    assert_int_equal(sample.image_bytes, 0);
    catalog_destroy(catalog);
}

static void parts_are_joined(void **unused)
{
    static const char image[] = "head\x0a\x23\xd7\xce"
                                "middle\0\0\x0a\x23\xd7\xcetail!";
    uint8_t header[24] = {0};
    struct maker maker = {0};

    bytes_put_le_float(header + 4, 3);
    bytes_put_le64(header + 8, 0xced7230a); /* the magic within the header */
    uint8_t first[8];
    memcpy(first, header, 8);
    put_part(&maker, 1, first, 8);
    uint8_t second[16] = {0};
    memcpy(second, header + 12, 12);
    memcpy(second + 12, "head", 4);
    put_part(&maker, 2, second, 16);
    put_part(&maker, 2, "middle\0\0", 8);
    put_part(&maker, 3, "tail!", 5);
    folder_write("parts.rec", maker.bytes, maker.used);
    struct catalog *catalog = index_whole("parts.rec", NULL, 1);
    assert_int_equal(catalog->records[0].bytes, maker.used);
    catalog_destroy(catalog);
    struct sample sample = parse_bytes(maker.bytes, maker.used, 0);
    assert_int_equal(sample.id, 0xced7230a);
    assert_int_equal(sample.image_bytes, sizeof image - 1);
    assert_memory_equal(sample.image, image, sizeof image - 1);

    /* Scratch memory that is too small is refused, at every size. */
    for (size_t capacity = 0; capacity < 24 + sizeof image - 1; capacity++) {
        uint8_t *small = malloc(capacity + 1);
        struct format_scratch scratch = {.bytes = small, .capacity = capacity};
        assert_int_equal(
            format_parse(&recordio, &no_shard, maker.bytes, maker.used, 0, &scratch, &sample),
            -ENOBUFS);
        free(small);
    }
}

static void labels_behind_the_header(void **unused)
{
    uint8_t payload[24 + 8 + 3] = {0};
    struct maker maker = {0};

    bytes_put_le32(payload, 2);
    bytes_put_le_float(payload + 24, 41);
    bytes_put_le_float(payload + 28, 5);
    memcpy(payload + 32, "img", 3);
    put_part(&maker, 0, payload, sizeof payload);
    struct sample sample = parse_bytes(maker.bytes, maker.used, 0);
    assert_int_equal(sample.label, 41);
    expect_image(&sample, "img");
    bytes_put_le32(maker.bytes + 8, 1); /* also one label after the header */
    sample = parse_bytes(maker.bytes, maker.used, 0);
    assert_int_equal(sample.label, 41);
    assert_int_equal(sample.image_bytes, 4 + 3);
    bytes_put_le32(maker.bytes + 8, UINT32_MAX); /* more labels than bytes */
    parse_bytes(maker.bytes, maker.used, -EBADMSG);
    bytes_put_le32(maker.bytes + 8, 3);
    parse_bytes(maker.bytes, maker.used, -EBADMSG);
}

/* Neither rounded nor skipped. */
static void labels_are_classes_or_odd(void **unused)
{
    static const struct {
        float label;
        int32_t class_number;
        bool is_odd;
    } labels[] = {{0, 0, false},        {3, 3, false},        {16777215, 16777215, false},
                  {-1, -1, false}, /* none */
                  {-2, -1, false},      {3.7f, -1, true},     {0.5f, -1, true},
                  {-0.25f, -1, true},   {0x1p31f, -1, true},  {NAN, -1, true},
                  {INFINITY, -1, true}, {-INFINITY, -1, true}};
    static uint8_t joined[4096];

    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        struct format_scratch scratch = {.bytes = joined, .capacity = sizeof joined};
        struct maker maker = {0};
        struct sample sample;
        put_image(&maker, labels[i].label, "x");
        int code =
            format_parse(&recordio, &no_shard, maker.bytes, maker.used, 0, &scratch, &sample);
        assert_int_equal(code, labels[i].is_odd ? -EBADMSG : 0);
        if (code)
            assert_reason("is not a class number");
        code = format_parse(&recordio, &no_shard, maker.bytes, maker.used, FORMAT_ODD_LABELS,
                            &scratch, &sample);
        assert_int_equal(code, 0);
        assert_int_equal(sample.label, labels[i].class_number);
        assert_int_equal(sample.has_odd_label, labels[i].is_odd);
    }
}

static void verify_goes_on_after_damage(void **unused)
{
    struct maker maker = {0};
    struct faults faults = {0};

    for (int i = 0; i < 5; i++)
        put_image(&maker, (float)i, "some image");
    size_t record = maker.used / 5;
    maker.bytes[record + 1] ^= 0x10;                          /* the magic of record 1 */
    bytes_put_le32(maker.bytes + 3 * record + 4, 0x1fffffff); /* the length of record 3 */
    folder_write("damaged.rec", maker.bytes, maker.used - 4); /* and a missing end */
    expect_refusal("damaged.rec", "damaged.rec: offset 44: no record begins here");
    struct catalog *catalog = index_whole("damaged.rec", &faults, 2);
    assert_int_equal(catalog->records[1].offset, 2 * record);
    assert_int_equal(faults.count, 3);
    assert_int_equal(faults.offsets[0], record);
    assert_int_equal(faults.offsets[1], 3 * record);
    assert_int_equal(faults.offsets[2], 4 * record);
    catalog_destroy(catalog);
}

/* 40 records, each nested in the one before it, lead to the same parts, which lack their end: 17
 * parts in order are walked once, fewer for every record. */
static void parts_without_an_end_are_walked_once(void **unused)
{
    enum { NESTED = 40, PART = 8 };
    static const struct {
        uint32_t parts, faults;
    } cases[] = {{15, NESTED}, {16, 1}, {200, 1}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maker maker = {0};
        struct faults faults = {0};
        for (uint32_t left = NESTED; left-- > 0;) {
            put_word(&maker, 0xced7230a);
            put_word(&maker, 1u << 29 | left * PART);
        }
        for (uint32_t part = 0; part < cases[i].parts; part++)
            put_part(&maker, 2, "", 0);
        put_image(&maker, 5, "whole");
        folder_write("nested.rec", maker.bytes, maker.used);
        struct catalog *catalog = index_of("nested.rec", &faults);
        assert_non_null(catalog);
        assert_int_equal(faults.count, cases[i].faults);
        assert_int_equal(catalog->record_count, 1); /* right after the break */
        catalog_destroy(catalog);
    }
}

static void a_bad_file_is_named(void **unused)
{
    struct maker maker = {0};

    put_word(&maker, 0x3ed7230a);
    put_word(&maker, 4);
    put_word(&maker, 4);
    folder_write("old.rec", maker.bytes, maker.used);
    expect_refusal("old.rec", "0x3ed7230a");
    folder_write("empty.rec", "", 0);
    expect_refusal("empty.rec", "empty.rec: the file is empty");
    folder_write("short.rec", "\x0a\x23\xd7", 3);
    assert_null(index_of("short.rec", NULL));
    expect_refusal("absent.rec", "absent.rec");
}

static void parts_out_of_order_are_refused(void **unused)
{
    static const uint32_t wrong[][3] = {{1, 1, 3}, {1, 2, 2}, {2, 2, 3}, {1, 0, 3},
                                        {3, 3, 3}, {4, 2, 3}, {1, 2, 7}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct maker maker = {0};
        uint8_t payload[24] = {0};
        for (int part = 0; part < 3; part++)
            put_part(&maker, wrong[i][part], payload, sizeof payload);
        folder_write("order.rec", maker.bytes, maker.used);
        assert_null(index_of("order.rec", NULL));
        parse_bytes(maker.bytes, maker.used, -EBADMSG);
    }
}

/* Every truncation and every flipped bit gives a definite result, without reading outside the
 * record. */
static void any_damage_is_survived(void **unused)
{
    struct maker maker = {0};
    uint8_t payload[24] = {0};

    put_part(&maker, 1, payload, 24);
    put_part(&maker, 2, "abcd", 4);
    put_part(&maker, 3, "abc", 3);
    for (size_t cut = 0; cut < maker.used; cut++) {
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, maker.bytes, cut);
        parse_bytes(exact, cut, -EBADMSG);
        free(exact);
    }
    for (size_t bit = 0; bit < maker.used * 8; bit++) {
        uint8_t *exact = malloc(maker.used), joined[256];
        struct format_scratch scratch = {.bytes = joined, .capacity = sizeof joined};
        struct sample sample;
        memcpy(exact, maker.bytes, maker.used);
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int code = format_parse(&recordio, &no_shard, exact, maker.used, 0, &scratch, &sample);
        assert_true(code == 0 || code == -EBADMSG);
        free(exact);
    }
}

static void idx_is_used_when_it_is_right(void **unused)
{
    struct maker maker = {0};

    for (int i = 0; i < 4; i++)
        put_image(&maker, (float)i, "0123456789");
    folder_write("with.rec", maker.bytes, maker.used);
    folder_write("with.idx", "3\t88\n0\t0\n1\t44\n9\t132\n", 20);
    struct catalog *catalog = index_whole("with.rec", NULL, 4);
    assert_int_equal(catalog->records[3].offset, 132);
    catalog_destroy(catalog);

    static const char *const wrong[] = {"0\t0\n1\t44\n",
                                        "0\t4\n",
                                        "junk\n",
                                        "",
                                        "0\t0\n1\t0\n",
                                        "0\t99999999999999999999999\n",
                                        "0\t0\n1\t132\n2\t88\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        folder_write("with.idx", wrong[i], strlen(wrong[i]));
        catalog = index_whole("with.rec", NULL, 4); /* by scanning */
        assert_int_equal(catalog->records[1].bytes, 44);
        catalog_destroy(catalog);
    }
}

/* A shard truncated between two records looks complete. */
static void an_idx_tells_of_a_cut(void **unused)
{
    static const char idx[] = "0\t0\n1\t44\n2\t88\n3\t132\n";
    struct maker maker = {0};
    struct faults faults = {0};

    for (int i = 0; i < 2; i++)
        put_image(&maker, (float)i, "0123456789");
    folder_write("cut.rec", maker.bytes, maker.used);
    folder_write("cut.idx", idx, strlen(idx));
    expect_refusal("cut.rec", "cut.rec: offset 88: the file ends here, its .idx lists 2");
    struct catalog *catalog = index_of("cut.rec", &faults);
    assert_non_null(catalog);
    assert_int_equal(faults.count, 1);
    assert_int_equal(faults.offsets[0], 88);
    assert_int_equal(catalog->record_count, 2);
    catalog_destroy(catalog);
    assert_int_equal(remove(folder_path("cut.idx")), 0);
}

/* A shard with an .idx file is not scanned: parse must find damage between the probed records. */
static void an_idx_saves_the_scan(void **unused)
{
    enum { RECORDS = 100 };
    struct maker maker = {0};
    char idx[RECORDS * 16] = "";
    size_t idx_used = 0;

    for (int i = 0; i < RECORDS; i++) {
        idx_used += (size_t)sprintf(idx + idx_used, "%d\t%zu\n", i, maker.used);
        put_image(&maker, 0, "");
    }
    maker.bytes[2 * 32] ^= 1; /* the magic of record 2 */
    folder_write("probed.rec", maker.bytes, maker.used);
    assert_null(index_of("probed.rec", NULL));
    folder_write("probed.idx", idx, idx_used);
    struct catalog *catalog = index_whole("probed.rec", NULL, RECORDS);
    catalog_destroy(catalog);
}

/* After damage in a first part, its later parts are not taken for records. */
static void later_parts_are_skipped(void **unused)
{
    struct maker maker = {0};
    struct faults faults = {0};
    uint8_t payload[24] = {0};

    put_part(&maker, 1, payload, 24);
    put_part(&maker, 2, payload, 24);
    put_part(&maker, 3, payload, 24);
    put_image(&maker, 5, "x");
    maker.bytes[0] ^= 1;
    folder_write("later.rec", maker.bytes, maker.used);
    struct catalog *catalog = index_whole("later.rec", &faults, 1);
    assert_int_equal(catalog->records[0].offset, 96);
    assert_int_equal(faults.count, 1);
    catalog_destroy(catalog);
}

static void folders_and_their_sets(void **unused)
{
    struct maker maker = {0};

    put_image(&maker, 1, "x");
    assert_int_equal(folder_make_path(folder_path("set")), 0);
    folder_write("set/train-00000-of-00003.rec", maker.bytes, maker.used);
    folder_write("set/train-00002-of-00003.rec", maker.bytes, maker.used);
    folder_write("set/README", "x", 1);
    expect_refusal("set", "train-00001-of-00003 is missing");
    folder_write("set/train-00001-of-00003.rec", maker.bytes, maker.used);
    assert_int_equal(remove(folder_path("set/train-00002-of-00003.rec")), 0);
    expect_refusal("set", "train-00002-of-00003 is missing");
    folder_write("set/train-00002-of-00003.rec", maker.bytes, maker.used);
    folder_write("set/train-00003-of-00003.rec", maker.bytes, maker.used);
    expect_refusal("set", "its number is not within its set");
    assert_int_equal(remove(folder_path("set/train-00003-of-00003.rec")), 0);
    struct catalog *catalog = index_of("set", NULL);
    assert_non_null(catalog);
    assert_int_equal(catalog->shard_count, 3);
    assert_int_equal(catalog->record_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(catalog->records[i].shard, i);
        assert_int_equal(catalog->shards[i].first_record, i);
    }
    catalog_destroy(catalog);
    folder_write("set/val-00000-of-00001.rec", maker.bytes, maker.used);
    expect_refusal("set", "more than one set");
}

/* Written records are read back, with the magic number at every position. */
static void written_and_read_back(void **unused)
{
    enum { IMAGES = 40 };
    uint8_t image[64];
    struct format_writer writer;
    struct catalog *catalog;

    assert_int_equal(format_writer_open(&writer, &recordio, folder_path("made.rec")), 0);
    for (uint32_t i = 0; i < IMAGES; i++) {
        memset(image, (int)i, sizeof image);
        bytes_put_le32(image + i, 0xced7230a);
        if (i % 3 == 0)
            bytes_put_le32(image + i + 4, 0xced7230a);
        struct sample sample = {.image = image,
                                .image_bytes = i + 4 + i % 9,
                                .label = (int32_t)i * 25,
                                .id = i % 5 ? i : 0xced7230a};
        assert_int_equal(format_writer_append(&writer, &sample), 0);
    }
    assert_false(file_exists(folder_path("made.rec")));
    assert_int_equal(format_writer_close(&writer, true), 0);
    for (int scanning = 0; scanning < 2; scanning++) {
        catalog = index_whole("made.rec", NULL, IMAGES);
        char *bytes;
        size_t count;
        assert_int_equal(file_load(folder_path("made.rec"), 1 << 20, &bytes, &count), 0);
        for (uint32_t i = 0; i < IMAGES; i++) {
            const struct extent *extent = catalog_extent(catalog, i);
            struct sample sample = parse_bytes(bytes + extent->offset, extent->bytes, 0);
            memset(image, (int)i, sizeof image);
            bytes_put_le32(image + i, 0xced7230a);
            if (i % 3 == 0)
                bytes_put_le32(image + i + 4, 0xced7230a);
            assert_int_equal(sample.label, i * 25);
            assert_int_equal(sample.id, i % 5 ? i : 0xced7230a);
            assert_int_equal(sample.image_bytes, i + 4 + i % 9);
            assert_memory_equal(sample.image, image, sample.image_bytes);
        }
        free(bytes);
        catalog_destroy(catalog);
        assert_int_equal(remove(folder_path("made.idx")), scanning ? -1 : 0);
    }
}

static void an_abandoned_shard_leaves_nothing(void **unused)
{
    struct format_writer writer;
    struct sample sample = {.image = "x", .image_bytes = 1};

    assert_int_equal(format_writer_open(&writer, &recordio, folder_path("gone.rec")), 0);
    assert_int_equal(format_writer_append(&writer, &sample), 0);
    assert_int_equal(format_writer_close(&writer, false), 0);
    assert_false(file_exists(folder_path("gone.rec")));
    assert_false(folder_has_draft("."));
    assert_int_equal(format_writer_open(&writer, &recordio, folder_path("no/such/x.rec")), -ENOENT);
    assert_int_equal(format_writer_close(&writer, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_found_by_scanning),
        cmocka_unit_test(parts_are_joined),
        cmocka_unit_test(labels_behind_the_header),
        cmocka_unit_test(labels_are_classes_or_odd),
        cmocka_unit_test(verify_goes_on_after_damage),
        cmocka_unit_test(parts_without_an_end_are_walked_once),
        cmocka_unit_test(a_bad_file_is_named),
        cmocka_unit_test(parts_out_of_order_are_refused),
        cmocka_unit_test(any_damage_is_survived),
        cmocka_unit_test(idx_is_used_when_it_is_right),
        cmocka_unit_test(an_idx_tells_of_a_cut),
        cmocka_unit_test(an_idx_saves_the_scan),
        cmocka_unit_test(later_parts_are_skipped),
        cmocka_unit_test(folders_and_their_sets),
        cmocka_unit_test(written_and_read_back),
        cmocka_unit_test(an_abandoned_shard_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
