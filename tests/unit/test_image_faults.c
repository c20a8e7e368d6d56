/* SPDX-License-Identifier: Apache-2.0
 * Readers that parse their file, inflate and lmdb, on failing storage. Needs root and
 * FUSE; skipped without. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "formats/format.h"
#include "readers/reader.h"
#include "tests/unit/fault_fs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { STREAM_BYTES = 500000, EXTENT_BYTES = 5000, DEPTH = 4 };
static const uint64_t TIMEOUT_NS = 200000000;

static char folder[64], path[80];
static struct fault_fs *fs;
static struct catalog *catalog;

/* Memory that an abandoned thread of a reader may still write to. */
static uint8_t buffers[DEPTH][EXTENT_BYTES], content[STREAM_BYTES];
static struct read_request requests[DEPTH];

struct run {
    struct reader reader;
    struct plugin_choice choice;
};

static void start(struct run *run, const char *reader, uint64_t timeout_ns)
{
    struct reader_config site = {.catalog = catalog, .depth = DEPTH, .timeout_ns = timeout_ns};

    assert_int_equal(plugin_choose("reader", reader_registry, reader, &run->choice), 0);
    if (reader_open(&run->reader, &run->choice, &site))
        fail_msg("%s", fail_reason());
}

static void stop(struct run *run)
{
    reader_close(&run->reader);
    plugin_release(&run->choice);
}

static void submit(struct run *run, uint32_t index, uint64_t record)
{
    const struct extent *extent = catalog_extent(catalog, record);

    requests[index] = (struct read_request){.shard = extent->shard,
                                            .offset = extent->offset,
                                            .bytes = extent->bytes,
                                            .needed = extent->bytes,
                                            .buffer = buffers[index]};
    assert_int_equal(reader_submit(&run->reader, &requests[index]), 0);
}

/* Return the next completion: bytes, or a negative errno with its reason. */
static int answer(struct run *run)
{
    struct read_request *done;

    assert_int_equal(reader_reap(&run->reader, &done, 1, PATIENCE_NS), 1);
    reader_release(&run->reader, done);
    return done->result;
}

static int read_one(struct run *run, uint64_t record)
{
    submit(run, 0, record);
    return answer(run);
}

/* Mapped reads go through the page cache. */
static void set_faults(struct fault_knobs knobs)
{
    knobs.cached = catalog->shards[0].flags == 0;
    fault_fs_set(fs, &knobs);
}

/* The last record is unreadable while the file has a fault at the offset; the first is readable. */
static void an_error_is_told(const char *reader, uint64_t offset)
{
    const uint64_t last = catalog->record_count - 1;
    struct run run;

    set_faults((struct fault_knobs){0});
    start(&run, reader, PATIENCE_NS);
    assert_true(read_one(&run, 0) > 0);
    set_faults((struct fault_knobs){.eio_begin = offset, .eio_end = offset + 1});
    assert_refused(read_one(&run, last), -EIO, path);
    assert_reason("offset");
    set_faults((struct fault_knobs){0});
    assert_true(read_one(&run, last) > 0);
    stop(&run);
}

/* Unresponsive storage: all requests fail in time, and close does not wait. */
static void no_answer_is_no_hang(const char *reader)
{
    const uint64_t last = catalog->record_count - 1;
    struct run run;

    set_faults((struct fault_knobs){0});
    start(&run, reader, TIMEOUT_NS);
    set_faults((struct fault_knobs){.stuck = true});
    for (uint32_t i = 0; i < DEPTH; i++)
        submit(&run, i, last - DEPTH + 1 + i);
    for (uint32_t i = 0; i < DEPTH; i++) {
        assert_refused(answer(&run), -ETIMEDOUT, "no answer for 0.2 s");
    }
    assert_int_equal(run.reader.held, 1); /* the others waited for it */
    stop(&run);
    set_faults((struct fault_knobs){0});
    fault_fs_await_threads();
}

static void inflate_tells_errors(void **unused)
{
    an_error_is_told("inflate", catalog->shards[0].bytes - 1);
}

static void inflate_resumes_short_reads(void **unused)
{
    struct run run;

    set_faults((struct fault_knobs){.short_every = 2});
    start(&run, "inflate", PATIENCE_NS);
    for (uint64_t i = 0; i < catalog->record_count; i++) {
        assert_int_equal(read_one(&run, i), EXTENT_BYTES);
        assert_memory_equal(buffers[0], content + i * EXTENT_BYTES, EXTENT_BYTES);
    }
    stop(&run);
}

static void inflate_does_not_hang(void **unused)
{
    no_answer_is_no_hang("inflate");
}

static void lmdb_tells_errors(void **unused)
{
    if (!catalog)
        skip();
    an_error_is_told("lmdb:readahead=no",
                     catalog_extent(catalog, catalog->record_count - 1)->offset);
}

static void lmdb_does_not_hang(void **unused)
{
    if (!catalog)
        skip();
    no_answer_is_no_hang("lmdb:readahead=no");
}

/* ---- the files ---- */

static int mount_image(const void *image, uint64_t bytes)
{
    strcpy(folder, "test_image_faults.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/0", folder);
    return fault_fs_mount(&fs, folder, 1, bytes, image, true);
}

static int mount_stream(void **unused)
{
    static uint8_t packed[2 * STREAM_BYTES];
    uLongf used = sizeof packed;

    for (size_t i = 0; i < STREAM_BYTES; i++)
        content[i] = (uint8_t)(i * i >> 7);
    for (size_t i = 0; i < STREAM_BYTES; i += 2)
        content[i] = fault_fs_byte(0, i);
    if (compress(packed, &used, content, STREAM_BYTES) != Z_OK || mount_image(packed, used))
        return -1;
    catalog = catalog_create(folder, "test");
    assert_int_equal(catalog_begin_shard(catalog, path, NULL, SHARD_ZLIB), 0);
    for (uint32_t at = 0; at < STREAM_BYTES; at += EXTENT_BYTES)
        assert_int_equal(catalog_add(catalog, at, EXTENT_BYTES), 0);
    catalog_last(catalog)->stream_bytes = STREAM_BYTES;
    return catalog_seal(catalog);
}

static int mount_lmdb(void **unused)
{
    static char *image;
    struct plugin_choice format;
    size_t bytes;

    free(image);
    image = NULL;
    if (!plugin_find(reader_registry, "lmdb"))
        return 0;
    if (file_load(GOLDEN "/lmdb/deep/data.mdb", 1 << 24, &image, &bytes) ||
        mount_image(image, bytes) || plugin_choose("format", format_registry, "lmdb", &format))
        return -1;
    int code = format_catalog(&format, path, false, NULL, &catalog);
    plugin_release(&format);
    return code;
}

static int unmount(void **unused)
{
    if (!catalog)
        return 0;
    catalog_destroy(catalog);
    catalog = NULL;
    fault_fs_unmount(fs);
    return rmdir(folder);
}

#define IMAGE_TEST(test, mount) cmocka_unit_test_setup_teardown(test, mount, unmount)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IMAGE_TEST(inflate_tells_errors, mount_stream),
        IMAGE_TEST(inflate_resumes_short_reads, mount_stream),
        IMAGE_TEST(inflate_does_not_hang, mount_stream),
        IMAGE_TEST(lmdb_tells_errors, mount_lmdb),
        IMAGE_TEST(lmdb_does_not_hang, mount_lmdb),
    };

    alarm(PATIENCE_S); /* a reader that hangs */
    if (mount_stream(NULL)) {
        printf("skipped: %s\n", fail_reason());
        rmdir(folder);
        return 77;
    }
    unmount(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
