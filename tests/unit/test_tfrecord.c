/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "formats/format.h"
#include "formats/protobuf.h"

#include <errno.h>
#include <string.h>

#include <zlib.h>
#include <sys/stat.h>

static struct plugin_choice shards;
static const struct shard no_shard = {.label = -1};

static int setup(void **unused)
{
    if (plugin_choose("format", format_registry, "shards", &shards))
        return -1;
    return folder_setup(unused);
}

static int teardown(void **unused)
{
    plugin_release(&shards);
    return folder_teardown(unused);
}

static uint32_t masked(const void *bytes, size_t count)
{
    uint32_t crc = crc32c(0, bytes, count);

    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

static size_t frame(uint8_t *to, const void *payload, size_t count)
{
    bytes_put_le64(to, count);
    bytes_put_le32(to + 8, masked(to, 8));
    memcpy(to + 12, payload, count);
    bytes_put_le32(to + 12 + count, masked(payload, count));
    return count + 16;
}

static struct catalog *index_with(const struct plugin_choice *format, const char *name,
                                  const struct format_scan *scan)
{
    struct catalog *catalog;

    return format_catalog(format, folder_path(name), false, scan, &catalog) ? NULL : catalog;
}

static struct catalog *index_whole(const char *name, const struct format_scan *scan,
                                   uint64_t records)
{
    struct catalog *catalog = index_with(&shards, name, scan);

    assert_non_null(catalog);
    assert_int_equal(catalog->record_count, records);
    return catalog;
}

static void expect_refusal(const char *name, const char *reason)
{
    assert_null(index_with(&shards, name, NULL));
    assert_reason(reason);
}

static struct catalog *index_of(const char *name)
{
    return index_with(&shards, name, NULL);
}

/* ---- messages built by hand ---- */

struct text {
    uint8_t bytes[1024];
    size_t used;
};

static struct text text_of(const char *letters)
{
    struct text text = {.used = strlen(letters)};

    memcpy(text.bytes, letters, text.used);
    return text;
}

static struct text join(struct text a, struct text b)
{
    memcpy(a.bytes + a.used, b.bytes, b.used);
    a.used += b.used;
    return a;
}

/* A bytes field. */
static struct text field(uint32_t number, struct text value)
{
    struct text text = {0};
    uint8_t *to = protobuf_put_tag(text.bytes, number, PROTOBUF_BYTES);

    to = protobuf_put_varint(to, value.used);
    text.used = (size_t)(to - text.bytes);
    return join(text, value);
}

static struct text varint(uint64_t value)
{
    struct text text = {0};

    text.used = (size_t)(protobuf_put_varint(text.bytes, value) - text.bytes);
    return text;
}

static struct text entry(const char *key, struct text feature)
{
    return field(1, join(field(1, text_of(key)), field(2, feature)));
}

static struct text image_entry(const char *key, const char *image)
{
    return entry(key, field(1, field(1, text_of(image))));
}

static struct text label_entry(const char *key, uint64_t label)
{
    return entry(key, field(3, field(1, varint(label))));
}

/* ---- parse ---- */

static int parse_with(const char *choice, struct text features, struct sample *sample)
{
    static uint8_t record[2048];
    struct plugin_choice format;
    struct text example = field(1, features);

    assert_int_equal(plugin_choose("format", format_registry, choice, &format), 0);
    size_t bytes = frame(record, example.bytes, example.used);
    int code = format_parse(&format, &no_shard, record, bytes, 0, NULL, sample);
    plugin_release(&format);
    return code;
}

static void expect_sample(const char *choice, struct text features, const char *image, int label)
{
    struct sample sample;

    if (parse_with(choice, features, &sample))
        fail_msg("%s", fail_reason());
    assert_int_equal(sample.label, label);
    assert_int_equal(sample.image_bytes, strlen(image));
    assert_memory_equal(sample.image, image, strlen(image));
}

static void keys_and_label_bases(void **unused)
{
    struct text imagenet =
        join(image_entry("image/encoded", "img"), label_entry("image/class/label", 1000));
    struct text tfds = join(label_entry("label", 7), image_entry("image", "png"));

    expect_sample("shards", imagenet, "img", 999);
    expect_sample("shards:label-base=0", imagenet, "img", 1000);
    expect_sample("shards", tfds, "png", 7);
    expect_sample("shards:label-base=1", tfds, "png", 6);
    expect_sample("shards", image_entry("image/encoded", "img"), "img", -1);
    /* The better key wins in either order. */
    expect_sample("shards", join(tfds, imagenet), "img", 999);
    expect_sample("shards", join(imagenet, tfds), "img", 999);
    expect_sample("shards:image=image,label=label", join(imagenet, tfds), "png", 7);
    /* 0 is the unused class of ImageNet. */
    expect_sample("shards", join(image_entry("image", "i"), label_entry("image/class/label", 0)),
                  "i", -1);
}

static void labels_of_every_shape(void **unused)
{
    struct text image = image_entry("image", "i");
    struct text tag = {.bytes = {1 << 3}, .used = 1};
    struct text real = {.bytes = {1 << 3 | 5, 0, 0, 0x40, 0x40}, .used = 5}; /* 3.0f */
    struct text packed_real = {.bytes = {0, 0, 0x40, 0x40}, .used = 4};

    expect_sample("shards", join(image, entry("label", field(3, join(tag, varint(300))))), "i",
                  300);
    expect_sample("shards", join(image, entry("label", field(2, real))), "i", 3);
    expect_sample("shards", join(image, entry("label", field(2, field(1, packed_real)))), "i", 3);
    /* The last duplicate of a key wins, even in a second Features. */
    struct text twice = join(join(image, label_entry("label", 5)), label_entry("label", 6));
    expect_sample("shards", twice, "i", 6);
    expect_sample("shards",
                  join(join(image_entry("image", "old"), twice), image_entry("image", "n")), "n",
                  6);
}

static void examples_that_hold_no_sample(void **unused)
{
    struct sample sample;
    struct text image = image_entry("image", "i"), nothing = {0};
    struct text cut = image;

    assert_int_equal(parse_with("shards", nothing, &sample), -EBADMSG);
    assert_reason("no feature image/encoded or image but: none; choose one with image=KEY");
    assert_int_equal(parse_with("shards:image=jpg", image, &sample), -EBADMSG);
    assert_reason("no feature jpg but: image;");
    assert_int_equal(parse_with("shards", label_entry("image", 4), &sample), -EBADMSG);
    assert_reason("feature image holds numbers, not an image");
    assert_int_equal(parse_with("shards", image_entry("image", ""), &sample), 0);
    assert_int_equal(sample.image_bytes, 0);
    assert_int_equal(parse_with("shards", join(image, image_entry("label", "cat")), &sample),
                     -EBADMSG);
    assert_reason("label 'cat' is not a class number");
    assert_int_equal(parse_with("shards", join(image, image_entry("label", " 7\r\n")), &sample), 0);
    assert_int_equal(sample.label, 7);
    assert_int_equal(parse_with("shards", join(image, image_entry("label", "")), &sample), 0);
    assert_int_equal(sample.label, -1);
    assert_int_equal(
        parse_with("shards", join(image, label_entry("label", UINT64_MAX - 8)), &sample), 0);
    assert_int_equal(sample.label, -1);
    assert_int_equal(parse_with("shards", join(image, label_entry("label", 1ull << 40)), &sample),
                     -EBADMSG);
    cut.used--;
    assert_int_equal(parse_with("shards", cut, &sample), -EBADMSG);
    assert_reason("damaged");
    /* An entry that ends within its own tag, though the rest of the example is sound. */
    assert_int_equal(parse_with("shards", join(image, field(1, text_of("\x0a"))), &sample),
                     -EBADMSG);
    assert_reason("damaged");
}

/* CRCs find a flipped bit anywhere; without CRCs the parser survives it. */
static void any_damage_is_found(void **unused)
{
    struct text example =
        field(1, join(image_entry("image", "some image"), label_entry("label", 3)));
    uint8_t record[256];
    size_t bytes = frame(record, example.bytes, example.used);
    struct sample sample;

    for (size_t bit = 0; bit < bytes * 8; bit++) {
        uint8_t *exact = malloc(bytes);
        memcpy(exact, record, bytes);
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(format_parse(&shards, &no_shard, exact, bytes, 0, NULL, &sample),
                         -EBADMSG);
        int code = format_parse(&shards, &no_shard, exact, bytes, FORMAT_SKIP_CRC, NULL, &sample);
        assert_true(code == 0 || code == -EBADMSG);
        free(exact);
    }
    for (size_t cut = 0; cut < bytes; cut++) {
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, record, cut);
        assert_int_equal(format_parse(&shards, &no_shard, exact, cut, 0, NULL, &sample), -EBADMSG);
        free(exact);
    }
}

/* ---- index ---- */

struct faults {
    uint32_t count;
    uint64_t offsets[8];
};

static int note_fault(void *context, const struct catalog_fault *fault)
{
    struct faults *faults = context;

    assert_true(faults->count < 8);
    assert_null(strstr(fault->what, fault->path)); /* distinguishable */
    faults->offsets[faults->count++] = fault->offset;
    return 0;
}

static void verify_goes_on_after_damage(void **unused)
{
    struct text example = field(1, image_entry("image", "some image"));
    uint8_t file[1024];
    size_t used = 0, record = 0;
    struct faults faults = {0};
    const struct format_scan scan = {.fault = note_fault, .fault_context = &faults};

    for (int i = 0; i < 5; i++)
        used += record = frame(file + used, example.bytes, example.used);
    file[record] ^= 4;                                /* the length of record 1 */
    file[3 * record + 9] ^= 1;                        /* the CRC of the length of record 3 */
    folder_write("damaged.tfrecord", file, used - 2); /* record 4 is truncated */
    assert_null(index_of("damaged.tfrecord"));
    char expected[64];
    snprintf(expected, sizeof expected, "damaged.tfrecord: offset %zu: ", record);
    assert_reason(expected);
    struct catalog *catalog = index_whole("damaged.tfrecord", &scan, 2);
    assert_int_equal(catalog->records[1].offset, 2 * record);
    assert_int_equal(faults.count, 3);
    assert_int_equal(faults.offsets[1], 3 * record);
    assert_int_equal(faults.offsets[2], 4 * record);
    catalog_destroy(catalog);
}

/* A search byte by byte would take minutes. */
static void zeros_are_passed_quickly(void **unused)
{
    const uint64_t hole = UINT64_C(8) << 30;
    struct text example = field(1, image_entry("image", "some image"));
    uint8_t file[256];
    struct faults faults = {0};
    const struct format_scan scan = {.fault = note_fault, .fault_context = &faults};

    size_t bytes = frame(file, example.bytes, example.used);
    folder_write("hole.tfrecord", file, bytes);
    int fd = open(folder_path("hole.tfrecord"), O_WRONLY);
    assert_int_equal(pwrite(fd, file, bytes, (off_t)hole), bytes);
    close(fd);
    struct catalog *catalog = index_whole("hole.tfrecord", &scan, 2);
    assert_true(catalog->records[1].offset == hole);
    assert_int_equal(faults.count, 1);
    assert_int_equal(faults.offsets[0], bytes);
    catalog_destroy(catalog);
}

static void a_bad_file_is_named(void **unused)
{
    uint8_t head[16] = {0};

    bytes_put_le64(head, UINT64_MAX - 3); /* absurd, with a correct CRC */
    bytes_put_le32(head + 8, masked(head, 8));
    folder_write("absurd.tfrecord", head, sizeof head);
    expect_refusal("absurd.tfrecord", "absurd.tfrecord: offset 0: the file ends inside a record");
    folder_write("empty.tfrecord", "", 0);
    expect_refusal("empty.tfrecord", "empty.tfrecord: the file is empty");
    folder_write("text.tfrecord", "hello, this is no such file", 27);
    expect_refusal("text.tfrecord", "no record begins here");
    expect_refusal("absent", "absent");
    assert_int_equal(folder_make_path(folder_path("nothing")), 0);
    expect_refusal("nothing", "nothing: an empty folder; is its file system mounted?");
    assert_null(format_detect(folder_path("nothing")));
    if (geteuid() != 0) {
        assert_int_equal(chmod(folder_path("text.tfrecord"), 0), 0);
        expect_refusal("text.tfrecord", "cannot open: Permission denied");
    }
}

/* ---- writing ---- */

enum { IMAGES = 23 };

static void fill_image(uint8_t *image, uint32_t number)
{
    for (uint32_t i = 0; i < 300; i++)
        image[i] = (uint8_t)(i * (number + 3));
}

static void write_shard(const struct plugin_choice *format, const char *name)
{
    struct format_writer writer;
    uint8_t image[300];

    remove(folder_path(name));
    assert_int_equal(format_writer_open(&writer, format, folder_path(name)), 0);
    for (uint32_t i = 0; i < IMAGES; i++) {
        fill_image(image, i);
        struct sample sample = {.image = image,
                                .image_bytes = i * 13,
                                .label = (int32_t)i - 1,
                                .name = "some/name.JPEG",
                                .name_bytes = 14};
        assert_int_equal(format_writer_append(&writer, &sample), 0);
    }
    assert_false(file_exists(folder_path(name)));
    assert_int_equal(format_writer_close(&writer, true), 0);
}

static void check_shard(const struct plugin_choice *format, const char *name)
{
    struct catalog *catalog = index_with(format, name, NULL);
    uint8_t image[300];
    char *file;
    size_t count;

    assert_non_null(catalog);
    assert_int_equal(catalog->record_count, IMAGES);
    assert_int_equal(file_load(folder_path(name), 1 << 20, &file, &count), 0);
    for (uint32_t i = 0; i < IMAGES; i++) {
        const struct extent *extent = catalog_extent(catalog, i);
        struct sample sample;
        assert_int_equal(
            format_parse(format, &no_shard, file + extent->offset, extent->bytes, 0, NULL, &sample),
            0);
        fill_image(image, i);
        assert_int_equal(sample.label, (int)i - 1);
        assert_int_equal(sample.image_bytes, i * 13);
        assert_memory_equal(sample.image, image, sample.image_bytes);
        assert_int_equal(sample.name_bytes, 14);
    }
    free(file);
    catalog_destroy(catalog);
}

static void written_and_read_back(void **unused)
{
    static const char *const choices[] = {"shards", "shards:image=my/image,label=my/label",
                                          "shards:label-base=1,idx=yes,label=l"};

    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        struct plugin_choice format;
        assert_int_equal(plugin_choose("format", format_registry, choices[i], &format), 0);
        write_shard(&format, "made.tfrecord");
        check_shard(&format, "made.tfrecord");
        plugin_release(&format);
    }
    /* The index of another file is rejected. */
    assert_true(file_exists(folder_path("made.idx")));
    folder_write("made.idx", "0 100\n100 100\n", 14);
    write_shard(&shards, "made.tfrecord");
    check_shard(&shards, "made.tfrecord");
}

/* A shard with an .idx file is not scanned: parse must find damage between the probed records. */
static void an_idx_saves_the_scan(void **unused)
{
    enum { RECORDS = 200 };
    static uint8_t file[RECORDS * 20];
    char idx[RECORDS * 16] = "";
    size_t used = 0, idx_used = 0;

    for (int i = 0; i < RECORDS; i++) {
        idx_used += (size_t)sprintf(idx + idx_used, "%zu 20\n", used);
        used += frame(file + used, "abcd", 4);
    }
    file[20 + 8] ^= 1; /* the CRC of the length of record 1 */
    folder_write("dali.tfrecord", file, used);
    assert_null(index_of("dali.tfrecord"));
    folder_write("dali.idx", idx, idx_used);
    struct catalog *catalog = index_whole("dali.tfrecord", NULL, RECORDS);
    catalog_destroy(catalog);
}

/* An index that lists a record twice and omits one, or merges two, has the right size. */
static void an_idx_that_is_not_of_the_file_is_not_used(void **unused)
{
    static const char *const lies[] = {"0 20\n0 20\n", "0 40\n", "20 20\n0 20\n"};
    uint8_t file[40];
    size_t used = frame(file, "abcd", 4);

    used += frame(file + used, "efgh", 4);
    folder_write("lies.tfrecord", file, used);
    for (int i = 0; i < 3; i++) {
        folder_write("lies.idx", lies[i], strlen(lies[i]));
        struct catalog *catalog = index_whole("lies.tfrecord", NULL, 2);
        assert_int_equal(catalog_extent(catalog, 0)->offset, 0);
        assert_int_equal(catalog_extent(catalog, 1)->offset, 20);
        catalog_destroy(catalog);
    }
}

static void compressed_shards(void **unused)
{
    static const char *const choices[] = {"shards:compression=gzip", "shards:compression=zlib"};

    for (uint32_t i = 0; i < 2; i++) {
        struct plugin_choice format;
        assert_int_equal(plugin_choose("format", format_registry, choices[i], &format), 0);
        write_shard(&shards, "plain.tfrecord");
        write_shard(&format, "packed.tfrecord");
        struct catalog *plain = index_of("plain.tfrecord"), *packed = index_of("packed.tfrecord");
        assert_non_null(packed);
        assert_true(packed->compressed);
        assert_int_equal(packed->shards[0].flags, i ? SHARD_ZLIB : SHARD_GZIP);
        assert_int_equal(packed->shards[0].stream_bytes, plain->shards[0].bytes);
        assert_true(packed->shards[0].bytes < plain->shards[0].bytes);
        assert_int_equal(packed->record_count, IMAGES);
        assert_memory_equal(packed->records, plain->records, IMAGES * sizeof(struct extent));
        catalog_destroy(packed);
        catalog_destroy(plain);

        /* Truncated anywhere: a message, and for verify the records before the cut. */
        char *file;
        size_t count;
        assert_int_equal(file_load(folder_path("packed.tfrecord"), 1 << 20, &file, &count), 0);
        for (size_t cut = 30; cut < count; cut += 97) {
            struct faults faults = {0};
            const struct format_scan scan = {.fault = note_fault, .fault_context = &faults};
            folder_write("cut.tfrecord", file, cut);
            expect_refusal("cut.tfrecord", "cut.tfrecord: offset ");
            catalog_destroy(index_with(&shards, "cut.tfrecord", &scan));
            assert_int_equal(faults.count, 1);
        }
        free(file);
        plugin_release(&format);
    }

    /* A length that is the most that is read, and one more: the file ends before either. */
    for (uint64_t more = 0; more < 2; more++) {
        uint8_t head[12];
        gzFile packed = gzopen(folder_path("cut.tfrecord"), "wb");
        bytes_put_le64(head, (uint64_t)CATALOG_RECORD_BYTES_MAX - 16 + more);
        bytes_put_le32(head + 8, masked(head, 8));
        assert_int_equal(gzwrite(packed, head, sizeof head), sizeof head);
        assert_int_equal(gzclose(packed), Z_OK);
        assert_null(index_of("cut.tfrecord"));
        assert_reason(more ? "a record larger than 1 GiB"
                           : "the inflated stream ends inside a record");
    }

    /* What was cut before it was compressed: in a head, and in a tail. */
    static const unsigned rests[] = {5, 14};
    for (int i = 0; i < 2; i++) {
        uint8_t records[32];
        gzFile packed = gzopen(folder_path("cut.tfrecord"), "wb");
        frame(records, "", 0);
        frame(records + 16, "", 0);
        assert_int_equal(gzwrite(packed, records, 16 + rests[i]), 16 + rests[i]);
        assert_int_equal(gzclose(packed), Z_OK);
        assert_null(index_of("cut.tfrecord"));
        assert_reason(
            i ? "cut.tfrecord: offset 16: the inflated stream ends inside a record"
              : "cut.tfrecord: offset 16: the inflated stream ends inside the frame of a record");
    }
}

static void the_first_failing_shard_is_told(void **unused)
{
    struct text example = field(1, image_entry("image", "some image"));
    uint8_t record[256];
    size_t bytes = frame(record, example.bytes, example.used);

    assert_int_equal(folder_make_path(folder_path("many")), 0);
    for (int i = 0; i < 40; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/train-%05d-of-00040", i);
        folder_write(name, record, i == 17 ? bytes - 1 : bytes);
    }
    for (int repeat = 0; repeat < 20; repeat++) {
        expect_refusal("many",
                       "many/train-00017-of-00040: offset 0: the file ends inside a record");
    }
    folder_write("many/train-00017-of-00040", record, bytes);
    /* What a download or a tool left beside the shards is none. */
    folder_write("many/train-00017-of-00040.partial", record, bytes - 1);
    folder_write("many/train.tfrecord.lst", "x", 1);
    folder_write("many/.train.tfrecord", "x", 1);
    struct catalog *catalog = index_whole("many", NULL, 40);
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(catalog->records[i].shard, i);
        assert_int_equal(catalog->shards[i].first_record, i);
    }
    catalog_destroy(catalog);
}

static void a_numbered_shard_is_no_companion(void **unused)
{
    uint8_t record[64];
    const size_t bytes = frame(record, "x", 1);

    assert_int_equal(folder_make_path(folder_path("rotated")), 0);
    folder_write("rotated/a.tfrecord", record, bytes);
    folder_write("rotated/a.tfrecord.1", record, bytes);
    folder_write("rotated/a.tfrecord.1.md5", record, bytes);
    struct catalog *catalog = index_whole("rotated", NULL, 2);
    assert_int_equal(catalog->remarks[REMARK_COMPANION].count, 1);
    catalog_destroy(catalog);
}

/* ---- compression bombs ---- */

enum { BOMB_RECORDS = 4500000, BOMB_BYTES = BOMB_RECORDS * 16 };

/* Empty records: 72 MB of them are 0.2 MB of gzip, and would make 72 MB of index. */
static void write_bomb(const char *name)
{
    uint8_t *records = malloc(BOMB_BYTES);
    gzFile file = gzopen(folder_path(name), "wb6");

    for (size_t i = 0; i < BOMB_RECORDS; i++)
        frame(records + 16 * i, "", 0);
    assert_int_equal(gzwrite(file, records, BOMB_BYTES), BOMB_BYTES);
    assert_int_equal(gzclose(file), Z_OK);
    free(records);
}

static void expect_limit(const char *settings, const char *reason)
{
    struct plugin_choice choice;

    assert_int_equal(plugin_choose("format", format_registry, settings, &choice), 0);
    struct catalog *catalog = index_with(&choice, "bomb.tfrecord", NULL);
    if (reason) {
        assert_null(catalog);
        assert_reason("bomb.tfrecord");
        assert_reason(reason);
    } else {
        assert_int_equal(catalog->record_count, BOMB_RECORDS);
    }
    catalog_destroy(catalog);
    plugin_release(&choice);
}

static void a_compressed_shard_is_no_larger_than_it_may_be(void **unused)
{
    write_bomb("bomb.tfrecord");
    expect_limit("shards", "inflates to more than 200 times its");
    expect_limit("shards:max-inflation=none", "exceeds 67108864 bytes; raise max-index=SIZE");
    expect_limit("shards:max-inflation=2000,max-index=1m", "exceeds 1048576 bytes");
    expect_limit("shards:max-inflation=none,max-index=1g", NULL);
}

static void tfrecord_is_another_name_of_shards(void **unused)
{
    struct plugin_choice choice;

    assert_int_equal(plugin_choose("format", format_registry, "tfrecord:max-index=1m", &choice), 0);
    assert_string_equal(choice.plugin->name, "shards");
    plugin_release(&choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_label_bases),
        cmocka_unit_test(labels_of_every_shape),
        cmocka_unit_test(examples_that_hold_no_sample),
        cmocka_unit_test(any_damage_is_found),
        cmocka_unit_test(verify_goes_on_after_damage),
        cmocka_unit_test(zeros_are_passed_quickly),
        cmocka_unit_test(a_bad_file_is_named),
        cmocka_unit_test(written_and_read_back),
        cmocka_unit_test(an_idx_saves_the_scan),
        cmocka_unit_test(an_idx_that_is_not_of_the_file_is_not_used),
        cmocka_unit_test(compressed_shards),
        cmocka_unit_test(the_first_failing_shard_is_told),
        cmocka_unit_test(a_compressed_shard_is_no_larger_than_it_may_be),
        cmocka_unit_test(tfrecord_is_another_name_of_shards),
        cmocka_unit_test(a_numbered_shard_is_no_companion),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
