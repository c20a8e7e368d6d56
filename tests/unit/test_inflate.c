/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "dataset/catalog.h"
#include "dataset/inflate.h"
#include "base/random.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SHARDS = 5, STREAM_BYTES = 700000, EXTENT_BYTES = 1000, DEPTH = 8 };

static uint8_t content[SHARDS][STREAM_BYTES];
static struct catalog *catalog;

/* Half noise, half runs, so that both stored blocks and matches occur. */
static void fill(uint8_t *bytes, size_t count, uint64_t seed)
{
    struct random random = random_start(seed);

    for (size_t i = 0; i < count; i++)
        bytes[i] = (i / 3000) % 2 ? (uint8_t)(i / 700) : (uint8_t)random_next(&random);
}

static size_t pack(uint8_t *to, size_t capacity, const uint8_t *bytes, size_t count, bool gzip)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes,
                       .avail_in = (uInt)count,
                       .next_out = to,
                       .avail_out = (uInt)capacity};

    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + (gzip ? 16 : 0), 8, 0), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

static int setup(void **unused)
{
    static uint8_t packed[2 * STREAM_BYTES];

    if (folder_setup(unused))
        return -1;
    catalog = catalog_create(test_folder, "test");
    for (uint32_t i = 0; i < SHARDS; i++) {
        char name[8];
        snprintf(name, sizeof name, "%u", i);
        fill(content[i], STREAM_BYTES, i);
        bool gzip = i % 2;
        folder_write(name, packed, pack(packed, sizeof packed, content[i], STREAM_BYTES, gzip));
        catalog_begin_shard(catalog, folder_path(name), NULL, gzip ? SHARD_GZIP : SHARD_ZLIB);
        for (uint32_t at = 0; at < STREAM_BYTES; at += EXTENT_BYTES)
            catalog_add(catalog, at, EXTENT_BYTES);
        catalog_last(catalog)->stream_bytes = STREAM_BYTES;
    }
    return catalog_seal(catalog);
}

static int teardown(void **unused)
{
    catalog_destroy(catalog);
    return folder_teardown(unused);
}

/* ---- base/inflate ---- */

static void any_step_gives_the_stream(void **unused)
{
    static uint8_t got[STREAM_BYTES];
    static const uint32_t steps[] = {1009, 65536, 300007, STREAM_BYTES};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int code;
        struct inflate *stream = inflate_open(folder_path("1"), SHARD_GZIP, &code);
        uint64_t at = 0;
        assert_non_null(stream);
        for (int64_t count; (count = inflate_read(stream, got, steps[i])) > 0;) {
            assert_memory_equal(got, content[1] + at, (size_t)count);
            at += (uint64_t)count;
            count = inflate_read(stream, NULL, 77); /* and skip some */
            at += (uint64_t)count;
            assert_int_equal(inflate_stream_offset(stream), at);
        }
        assert_int_equal(at, STREAM_BYTES);
        inflate_close(stream);
    }
}

/* Members of a gzip file form one stream, wherever the input buffer cuts them. */
static void members_are_joined(void **unused)
{
    static uint8_t packed[600000], got[STREAM_BYTES];
    size_t used = 0, at = 0;

    for (size_t member = 0; used < sizeof packed - 20000; member++) {
        size_t bytes = member % 7 * 1777;
        if (bytes > STREAM_BYTES - at)
            break;
        used += pack(packed + used, sizeof packed - used, content[0] + at, bytes, true);
        at += bytes;
    }
    folder_write("members", packed, used);
    int code;
    struct inflate *stream = inflate_open(folder_path("members"), SHARD_GZIP, &code);
    assert_non_null(stream);
    assert_int_equal(inflate_read(stream, got, STREAM_BYTES), at);
    assert_memory_equal(got, content[0], at);
    inflate_close(stream);
}

static int64_t read_all(const char *name, uint32_t compression)
{
    int code;
    struct inflate *stream = inflate_open(folder_path(name), compression, &code);

    if (!stream)
        return code;
    int64_t got = inflate_read(stream, NULL, UINT64_MAX / 2);
    inflate_close(stream);
    return got;
}

static void damage_is_found(void **unused)
{
    static uint8_t packed[20000];

    for (int gzip = 0; gzip < 2; gzip++) {
        uint32_t compression = gzip ? SHARD_GZIP : SHARD_ZLIB;
        size_t used = pack(packed, sizeof packed, content[0], 4000, gzip);
        for (size_t cut = 0; cut < used; cut += cut < 30 || cut > used - 30 ? 1 : 91) {
            folder_write("cut", packed, cut);
            assert_int_equal(read_all("cut", compression), -EBADMSG);
        }
        for (size_t at = gzip ? 10 : 2; at < used; at += at < 30 || at > used - 30 ? 1 : 91) {
            packed[at] ^= 0x20;
            folder_write("flipped", packed, used);
            assert_int_equal(read_all("flipped", compression), -EBADMSG);
            packed[at] ^= 0x20;
        }
        memcpy(packed + used, "junk", 4);
        folder_write("behind", packed, used + 4);
        assert_int_equal(read_all("behind", compression), -EBADMSG);
        folder_write("whole", packed, used);
        assert_int_equal(read_all("whole", compression), 4000);
    }
    assert_int_equal(read_all("absent", SHARD_GZIP), -ENOENT);
    /* Headers of other things. */
    static const struct {
        const char bytes[24], *reason;
        uint32_t compression;
    } heads[] = {{"\x1f\x8b\x07\0\0\0\0\0\0\3", "compression method is not deflate", SHARD_GZIP},
                 {"\x77\x09\0\0\0\0", "compression method is not deflate", SHARD_ZLIB},
                 {"no gzip at all", "no gzip or zlib header", SHARD_GZIP},
                 {"\x78\x20\1\2\3\4\3\0", "compressed with a dictionary", SHARD_ZLIB},
                 {"\x78\x9c\7\2\3\4\3\0", "damaged compressed data", SHARD_ZLIB},
                 {"\x78\x9c\3\0\0\0\0\7", "wrong checksum of the compressed data", SHARD_ZLIB}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        folder_write("head", heads[i].bytes, sizeof heads[i].bytes);
        assert_refused(read_all("head", heads[i].compression), -EBADMSG, heads[i].reason);
    }
}

/* ---- the reader ---- */

struct bench {
    struct reader reader;
    struct plugin_choice choice;
    struct read_request requests[DEPTH];
    uint8_t *buffers;
};

static void bench_open(struct bench *bench, const char *choice)
{
    *bench = (struct bench){.buffers = malloc(DEPTH * EXTENT_BYTES)};
    struct iovec region = {.iov_base = bench->buffers, .iov_len = DEPTH * EXTENT_BYTES};
    struct reader_config site = {
        .catalog = catalog, .regions = &region, .region_count = 1, .depth = DEPTH};

    assert_int_equal(plugin_choose("reader", reader_registry, choice, &bench->choice), 0);
    if (reader_open(&bench->reader, &bench->choice, &site))
        fail_msg("%s", fail_reason());
    assert_true(bench->reader.traits.in_order);
}

static void bench_close(struct bench *bench)
{
    reader_close(&bench->reader);
    plugin_release(&bench->choice);
    free(bench->buffers);
}

/* Reap completions and check them. Returns their count. */
static int reap_some(struct bench *bench)
{
    struct read_request *done[DEPTH];
    int count = reader_reap(&bench->reader, done, DEPTH, PATIENCE_NS);

    for (int i = 0; i < count; i++) {
        if (done[i]->result != EXTENT_BYTES)
            fail_msg("%d: %s", done[i]->result, fail_reason());
        assert_memory_equal(done[i]->data, content[done[i]->shard] + done[i]->offset, EXTENT_BYTES);
        done[i]->bytes = 0; /* free */
    }
    return count;
}

static int submit_one(struct bench *bench, uint32_t shard, uint64_t offset)
{
    for (;;) {
        for (uint32_t i = 0; i < DEPTH; i++) {
            struct read_request *request = &bench->requests[i];
            if (request->bytes)
                continue;
            *request = (struct read_request){.shard = shard,
                                             .offset = offset,
                                             .bytes = EXTENT_BYTES,
                                             .needed = EXTENT_BYTES,
                                             .buffer = bench->buffers + i * EXTENT_BYTES};
            int code = reader_submit(&bench->reader, request);
            if (code == 0)
                return 0;
            request->bytes = 0;
            if (code != -EAGAIN)
                return code;
            break;
        }
        assert_true(reap_some(bench) > 0);
    }
}

static void drain(struct bench *bench)
{
    while (bench->reader.in_flight)
        assert_true(reap_some(bench) > 0);
}

/* Shards side by side, also with fewer cursors than shards, in two passes. */
static void shards_advance_side_by_side(void **unused)
{
    static const char *const choices[] = {"inflate", "inflate:threads=1", "inflate:threads=3",
                                          "inflate:threads=2,cursors=2"};

    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        struct bench bench;
        struct random random = random_start(i);
        bench_open(&bench, choices[i]);
        for (int pass = 0; pass < 2; pass++) {
            uint64_t next[SHARDS] = {0};
            uint32_t steps = i == 3 ? 40 : 400;
            for (uint32_t step = 0; step < steps; step++) {
                uint32_t shard = (uint32_t)random_below(&random, SHARDS);
                if (next[shard] >= STREAM_BYTES)
                    continue;
                assert_int_equal(submit_one(&bench, shard, next[shard]), 0);
                next[shard] += EXTENT_BYTES * (1 + random_below(&random, 3));
            }
            drain(&bench);
        }
        bench_close(&bench);
    }
}

static void going_back_is_refused(void **unused)
{
    struct bench bench;

    bench_open(&bench, "inflate");
    assert_int_equal(submit_one(&bench, 2, 5000), 0);
    assert_int_equal(submit_one(&bench, 2, 9000), 0);
    assert_refused(submit_one(&bench, 2, 7000), -ESPIPE,
                   "compressed shards have no random access; use --shuffle "
                   "auto, none or buffer:N, or `iobench pack`");
    /* A new pass: from the beginning of this one, from the start, or past the end. */
    assert_int_equal(submit_one(&bench, 2, 5000), 0);
    assert_int_equal(submit_one(&bench, 2, 6000), 0);
    assert_int_equal(submit_one(&bench, 2, 0), 0);
    assert_int_equal(submit_one(&bench, 2, STREAM_BYTES - EXTENT_BYTES), 0);
    assert_int_equal(submit_one(&bench, 2, 3000), 0);
    drain(&bench);
    bench_close(&bench);
}

static void a_changed_file_is_noticed(void **unused)
{
    struct bench bench;
    struct read_request *done;

    bench_open(&bench, "inflate");
    folder_write("4", "another", 7);
    assert_int_equal(submit_one(&bench, 4, 0), 0);
    assert_int_equal(reader_reap(&bench.reader, &done, 1, PATIENCE_NS), 1);
    assert_refused(done->result, -ESTALE, "the file changed");
    bench_close(&bench);
}

/* Data read ahead is still delivered; then the stream ends too early. */
static void a_file_cut_short_while_open(void **unused)
{
    struct bench bench;
    struct read_request *done;

    bench_open(&bench, "inflate");
    assert_int_equal(submit_one(&bench, 3, 0), 0);
    drain(&bench);
    assert_int_equal(truncate(folder_path("3"), 100), 0);
    assert_int_equal(submit_one(&bench, 3, STREAM_BYTES - EXTENT_BYTES), 0);
    assert_int_equal(reader_reap(&bench.reader, &done, 1, PATIENCE_NS), 1);
    assert_refused(done->result, -EBADMSG, "the compressed data is damaged");
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_step_gives_the_stream),
        cmocka_unit_test(members_are_joined),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(shards_advance_side_by_side),
        cmocka_unit_test(going_back_is_refused),
        cmocka_unit_test(a_changed_file_is_noticed),
        cmocka_unit_test(a_file_cut_short_while_open),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
