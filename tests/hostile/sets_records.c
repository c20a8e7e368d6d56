/* SPDX-License-Identifier: Apache-2.0
 *
 * TFRecord and RecordIO: false lengths, checksums, parts, labels and indexes; compressed shards
 * that are truncated or inflate hugely.
 */
#include "tests/hostile/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SHARD "train-00000-of-00001"

enum {
    RECORDS = 4,
    MAGIC_MULTIPART_PARTS = 20000,
    ZLIB = 15, /* zlib's windowBits */
    GZIP = 15 + 16,
};

#define RECORDIO_MAGIC UINT32_C(0xced7230a)

static void add_examples(struct blob *blob)
{
    for (uint64_t i = 0; i < RECORDS; i++)
        add_example(blob, i, i + 1);
}

static void save_examples(const struct hostile_act *act)
{
    struct blob blob = {0};

    add_examples(&blob);
    blob_save(&blob, act->path);
}

/* ---- TFRecord ---- */

static void shards_huge_length(void)
{
    struct blob blob = {0};

    add_examples(&blob);
    blob_le64(&blob, UINT64_C(1) << 63);
    blob_le32(&blob, 0);
    blob_save(&blob, SHARD);
}

static void shards_huge_length_first(void)
{
    struct blob blob = {0};

    blob_le64(&blob, UINT64_C(1) << 63);
    blob_fill(&blob, 0, 100);
    blob_save(&blob, SHARD);
}

static void shards_cut_header(void)
{
    struct blob blob = {0};

    add_example(&blob, 0, 1);
    blob_fill(&blob, 7, 5);
    blob_save(&blob, SHARD);
}

static void shards_empty_records(void)
{
    struct blob blob = {0};

    for (int i = 0; i < 1000; i++)
        add_tfrecord(&blob, "", 0);
    blob_save(&blob, SHARD);
}

static void shards_nested(void)
{
    struct blob blob = {0}, deep = {0};

    /* Each level claims the rest of the message as its contents. */
    for (int left = 6000; left > 3; left -= 3) {
        const uint8_t level[3] = {0x0a, (uint8_t)(0x80 | (left & 0x7f)), (uint8_t)(left >> 7)};
        blob_add(&deep, level, 3);
    }
    for (int i = 0; i < RECORDS; i++)
        add_tfrecord(&blob, deep.bytes, deep.count);
    free(deep.bytes);
    blob_save(&blob, SHARD);
}

static void shards_groups(void)
{
    struct blob blob = {0}, deep = {0};

    blob_fill(&deep, 0x0b, 50000); /* start of a group that never ends */
    add_tfrecord(&blob, deep.bytes, deep.count);
    free(deep.bytes);
    blob_save(&blob, SHARD);
}

static void shards_length_lie(void)
{
    struct blob blob = {0};

    add_example(&blob, 0, 1);
    add_tfrecord(&blob, "\x0a\xff\xff\xff\xff\x0f\x00", 7);
    add_tfrecord(&blob, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11);
    blob_save(&blob, SHARD);
}

static void shards_label_huge(void)
{
    struct blob blob = {0};

    for (uint64_t i = 0; i < RECORDS; i++)
        add_example(&blob, i, i % 2 ? UINT64_C(1) << 63 : UINT64_C(1) << 40);
    blob_save(&blob, SHARD);
}

static void shards_label_negative(void)
{
    struct blob blob = {0};

    for (uint64_t i = 0; i < RECORDS; i++)
        add_example(&blob, i, (uint64_t)(-7 - (int64_t)i));
    blob_save(&blob, SHARD);
}

/* ---- TFRecord, compressed as a whole ---- */

static void save_packed(struct blob *plain, int window_bits)
{
    struct blob packed = {0};
    z_stream stream = {0};

    packed.room = packed.count = compressBound((uLong)plain->count) + 64;
    packed.bytes = malloc(packed.room);
    if (!packed.bytes ||
        deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        give_up("zlib");
    stream.next_in = plain->bytes;
    stream.avail_in = (uInt)plain->count;
    stream.next_out = packed.bytes;
    stream.avail_out = (uInt)packed.count;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        give_up("zlib");
    packed.count = stream.total_out;
    deflateEnd(&stream);
    blob_save(&packed, SHARD);
    free(plain->bytes);
}

static void save_examples_packed(const struct hostile_act *act)
{
    struct blob plain = {0};

    add_examples(&plain);
    save_packed(&plain, (int)act->number);
}

static void save_bomb(const struct hostile_act *act)
{
    struct blob plain = {0}, one = {0};

    add_tfrecord(&one, "", 0);
    for (uint64_t i = 0; i < act->number; i++)
        blob_add(&plain, one.bytes, one.count);
    free(one.bytes);
    save_packed(&plain, GZIP);
}

static void gzip_zeros(void)
{
    struct blob plain = {0};

    blob_fill(&plain, 0, 64 << 20);
    save_packed(&plain, GZIP);
}

/* ---- RecordIO ---- */

static void save_recordio(void)
{
    struct blob blob = {0};

    for (uint64_t i = 0; i < RECORDS; i++)
        add_recordio(&blob, i);
    blob_save(&blob, "train.rec");
}

static void add_part(struct blob *blob, uint32_t kind, uint32_t bytes)
{
    blob_le32(blob, RECORDIO_MAGIC);
    blob_le32(blob, kind << 29 | bytes);
}

static void recordio_never_ends(void)
{
    struct blob blob = {0};

    add_recordio(&blob, 0);
    add_part(&blob, 1, 8);
    blob_fill(&blob, 0, 8);
    for (int i = 0; i < 100; i++) {
        add_part(&blob, 2, 8);
        blob_fill(&blob, 0, 8);
    }
    blob_save(&blob, "train.rec");
}

static void recordio_middle_first(void)
{
    struct blob blob = {0};

    add_part(&blob, 2, 8);
    blob_fill(&blob, 0, 8);
    add_part(&blob, 3, 0);
    add_recordio(&blob, 0);
    blob_save(&blob, "train.rec");
}

static void recordio_parts(void)
{
    struct blob blob = {0};

    add_recordio(&blob, 0);
    add_part(&blob, 1, 0);
    for (int i = 0; i < MAGIC_MULTIPART_PARTS; i++)
        add_part(&blob, 2, 0);
    add_part(&blob, 3, 0);
    add_recordio(&blob, 1);
    blob_save(&blob, "train.rec");
}

static void recordio_past_end(void)
{
    struct blob blob = {0};

    add_recordio(&blob, 0);
    add_part(&blob, 0, (1 << 29) - 1);
    blob_fill(&blob, 0, 64);
    blob_save(&blob, "train.rec");
}

static void recordio_empty_records(void)
{
    struct blob blob = {0};

    for (int i = 0; i < 1000; i++)
        add_part(&blob, 0, 0);
    blob_save(&blob, "train.rec");
}

static void recordio_kind_7(void)
{
    struct blob blob = {0};

    for (uint32_t kind = 4; kind < 8; kind++) {
        add_part(&blob, kind, 24);
        blob_fill(&blob, 0, 24);
    }
    blob_save(&blob, "train.rec");
}

static void idx_long_line(void)
{
    struct blob blob = {0};

    save_recordio();
    blob_fill(&blob, '9', 1 << 20);
    blob_save(&blob, "train.idx");
}

const struct hostile_set hostile_records[] = {
    SET("shards-empty", "TFRecord of 0 bytes", NULL, REFUSED, .acts = {{TEXT(SHARD, "")}}),
    SET("shards-length-2^63", "a length of 2^63 after good records", shards_huge_length, DAMAGED),
    SET("shards-length-2^63-first", "a length of 2^63 first", shards_huge_length_first, DAMAGED),
    SET("shards-length-crc", "the CRC of a length is wrong", NULL, DAMAGED,
        .acts = {{CALL(save_examples), .path = SHARD}, {PATCH(SHARD, 8, "\x12\x34")}}),
    SET("shards-data-crc", "the CRC of the data is wrong", NULL, DAMAGED,
        .acts = {{CALL(save_examples), .path = SHARD}, {PATCH(SHARD, -4, "\x12\x34\x56\x78")}}),
    SET("shards-bit", "a byte of an image is another", NULL, DAMAGED,
        .acts = {{CALL(save_examples), .path = SHARD}, {PATCH(SHARD, 300, "\xa5")}}),
    SET("shards-cut-data", "the file ends inside a record", NULL, DAMAGED,
        .acts = {{CALL(save_examples), .path = SHARD}, {CUT(SHARD, 6000)}}),
    SET("shards-cut-header", "the file ends inside a header", shards_cut_header, DAMAGED),
    SET("shards-empty-records", "1,000 records of 0 bytes", shards_empty_records, EITHER),
    SET("shards-nested", "messages nested 2,000 deep", shards_nested, EITHER),
    SET("shards-groups", "50,000 groups that are never ended", shards_groups, EITHER),
    SET("shards-length-lie", "fields longer than their message", shards_length_lie, DAMAGED),
    SET("shards-label-huge", "labels of 2^40 and 2^63", shards_label_huge, EITHER),
    SET("shards-label-negative", "labels below 0", shards_label_negative, EITHER),
    SET("shards-missing", "one of three shards is missing", NULL, REFUSED,
        .acts = {{CALL(save_examples), .path = "train-00000-of-00003"},
                 {CALL(save_examples), .path = "train-00002-of-00003"}}),
    SET("shards-many", "one of 99,999 shards is there", NULL, REFUSED,
        .acts = {{CALL(save_examples), .path = "train-00000-of-99999"}}),
    SET("shards-same-number", "two shards of one number", NULL, EITHER,
        .acts = {{CALL(save_examples), .path = "train-00000-of-00001"},
                 {CALL(save_examples), .path = "train-00000-of-00002"},
                 {CALL(save_examples), .path = "valid-00000-of-00002"}}),
    SET("gzip-empty-records", "gzip: 20,000 records of 0 bytes in 1 KB", NULL, EITHER,
        .acts = {{CALL_WITH(save_bomb, 20000)}}),
    SET("gzip-empty-records-long", "gzip: 20,000,000 records of 0 bytes", NULL, EITHER,
        .flags = LONG_RUN, .acts = {{CALL_WITH(save_bomb, 20000000)}}),
    SET("gzip-zeros", "gzip: 64 MiB of zeros in 64 KB", gzip_zeros, DAMAGED),
    SET("gzip-cut", "gzip: cut off", NULL, DAMAGED,
        .acts = {{CALL_WITH(save_examples_packed, GZIP)}, {CUT(SHARD, 7000)}}),
    SET("gzip-trailer", "gzip: wrong length and CRC at its end", NULL, EITHER,
        .acts = {{CALL_WITH(save_examples_packed, GZIP)},
                 {PATCH(SHARD, -8, "\1\2\3\4\5\6\7\x08")}}),
    SET("zlib-bits", "zlib: damaged inside", NULL, DAMAGED,
        .acts = {{CALL_WITH(save_examples_packed, ZLIB)}, {PATCH(SHARD, 200, "\xff\xff\xff\xff")}}),
    SET("recordio-empty", "RecordIO of 0 bytes", NULL, REFUSED, .acts = {{TEXT("train.rec", "")}}),
    SET("recordio-magic", "the first magic number is wrong", save_recordio, EITHER,
        .acts = {{PATCH("train.rec", 0, "\1\2\3\4")}}),
    SET("recordio-2015", "the variant of 2015", save_recordio, EITHER,
        .acts = {{PATCH("train.rec", 3, "\x3e")}}),
    SET("recordio-never-ends", "a record of parts without its last one", recordio_never_ends,
        DAMAGED),
    SET("recordio-middle-first", "begins inside a record of parts", recordio_middle_first, DAMAGED),
    SET("recordio-parts", "a record of 20,000 parts of 0 bytes", recordio_parts, EITHER),
    SET("recordio-past-end", "a record beyond the end of the file", recordio_past_end, DAMAGED),
    SET("recordio-empty-records", "1,000 records of 0 bytes", recordio_empty_records, DAMAGED),
    SET("recordio-kinds", "kinds of parts that do not exist", recordio_kind_7, DAMAGED),
    SET("recordio-flag", "a record of 4,294,967,295 labels", save_recordio, DAMAGED,
        .acts = {{PATCH("train.rec", 8, "\xff\xff\xff\xff")}}),
    SET("recordio-label-nan", "a label that is not a number", save_recordio, EITHER,
        .acts = {{PATCH("train.rec", 12, "\0\0\xc0\x7f")}}),
    SET("recordio-label-huge", "a label of 3e38", save_recordio, EITHER,
        .acts = {{PATCH("train.rec", 12, "\xff\xff\x7f\x7f")}}),
    SET("idx-past-end", "the index points past the end", save_recordio, EITHER,
        .acts = {{TEXT("train.idx", "0\t0\n1\t99999999\n2\t18446744073709551615\n")}}),
    SET("idx-unordered", "the index is in no order", save_recordio, EITHER,
        .acts = {{TEXT("train.idx", "3\t8000\n2\t4000\n1\t0\n0\t12\n")}}),
    SET("idx-twice", "the index names records twice", save_recordio, EITHER,
        .acts = {{TEXT("train.idx", "0\t0\n0\t0\n1\t0\n1\t0\n")}}),
    SET("idx-garbage", "the index holds no numbers", save_recordio, EITHER,
        .acts = {{TEXT("train.idx",
                       "0\t-1\n\xff\xfe\t99999999999999999999999\nnan\tinf\n\x1b[31m\t\0x\n")}}),
    SET("idx-odd", "the index points into records", save_recordio, EITHER,
        .acts = {{TEXT("train.idx", "0\t1\n1\t2\n2\t3\n3\t5\n")}}),
    SET("idx-long-line", "the index is one line of 1 MiB", idx_long_line, EITHER),
    SET("idx-fifo", "the index is a FIFO", save_recordio, EITHER, .acts = {{FIFO("train.idx")}}),
    SET("idx-folder", "the index is a folder", save_recordio, EITHER,
        .acts = {{FOLDER("train.idx")}}),
    SET("idx-link", "the index is a link to a secret", save_recordio, EITHER,
        .acts = {{LINK("../sentinel/secret", "train.idx")}}),
    {0},
};
