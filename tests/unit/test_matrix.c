/* SPDX-License-Identifier: Apache-2.0
 *
 * The same samples, whatever the format, the reader, the shuffle and the number of ranks: the
 * order-independent digest of (label, image checksum), summed over the ranks, is always that of the
 * samples that were written. Everything in the registries takes part as it is added.
 *
 * IOBENCH_LONG=1 does it with 10,000 images.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/random.h"
#include "formats/format.h"
#include "pipeline/engine/engine.h"
#include "readers/reader.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CLASSES = 10, IMAGE_BYTES_MAX = 3000, LARGE_BYTES = 300000 };

static uint64_t samples_total, expected_sum, expected_xor;
static uint32_t failing, calls; /* 0, or which call fails */

static bool fails_now(void)
{
    errno = EIO;
    return failing && ++calls == failing;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    return fails_now() ? -1 : syscall(SYS_pread64, fd, to, bytes, offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    return fails_now() ? -1 : syscall(SYS_pwrite64, fd, from, bytes, offset);
}

int fsync(int fd)
{
    return fails_now() ? -1 : 0;
}

/* An image that starts like a JPEG, for formats that check. */
static size_t make_image(struct random *random, uint8_t *image)
{
    size_t bytes = 16 + random_below(random, IMAGE_BYTES_MAX - 16);

    for (size_t i = 0; i < bytes; i++)
        image[i] = (uint8_t)random_next(random);
    memcpy(image, "\xff\xd8\xff\xe0", 4);
    /* Some contain the RecordIO magic: such records have several parts. */
    if (bytes > 200 && bytes % 5 == 0)
        memcpy(image + 100, "\x0a\x23\xd7\xce", 4);
    return bytes;
}

static void write_shards(const struct plugin_choice *format, const char *folder, uint32_t shards)
{
    static uint8_t image[IMAGE_BYTES_MAX];
    struct random random = random_start(11);
    uint64_t written = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        struct format_writer writer;
        char *path = NULL;
        assert_int_equal(format_shard_path(format->plugin, folder, shard, shards, &path), 0);
        assert_int_equal(format_writer_open(&writer, format, path), 0);
        for (uint64_t end = samples_total * (shard + 1) / shards; written < end; written++) {
            char name[64];
            int length =
                snprintf(name, sizeof name, "class%llu/image%06llu.jpg",
                         (unsigned long long)(written % CLASSES), (unsigned long long)written);
            struct sample sample = {.image = image,
                                    .label = (int32_t)(written % CLASSES),
                                    .encoding = SAMPLE_ENCODED,
                                    .id = written,
                                    .name = name,
                                    .name_bytes = (size_t)length};
            sample.image_bytes = make_image(&random, image);
            if (format_writer_append(&writer, &sample))
                fail_msg("%s: %s", format->plugin->name, fail_reason());
        }
        if (format_writer_close(&writer, true))
            fail_msg("%s: %s", format->plugin->name, fail_reason());
        free(path);
    }
}

static const struct engine_hooks hooks = {0};

static void set(struct job *job, const char *name, const char *value)
{
    if (option_set(job_options, job, name, value, "test"))
        fail_msg("%s", fail_reason());
}

/* Two epochs of one rank; their digests are added. */
static void run_rank(const struct catalog *catalog, const char *format, const char *reader,
                     const char *shuffle, uint32_t rank, uint32_t ranks, uint64_t *sums,
                     uint64_t *xors)
{
    struct result result = {.valid = true};
    struct result_epoch epochs[2];
    struct result_run run = {.epochs = epochs};
    struct job job = {0};
    struct job_plugins plugins;
    char number[16];

    assert_int_equal(option_defaults(job_options, &job), 0);
    set(&job, "reader", reader);
    set(&job, "shuffle", shuffle);
    set(&job, "decode", "checksum");
    set(&job, "digest", "yes");
    set(&job, "batch-size", "37");
    set(&job, "decode-threads", "2");
    set(&job, "memory", getenv("IOBENCH_LONG") ? "128m" : "16m");
    snprintf(number, sizeof number, "%u", ranks);
    set(&job, "ranks", number);
    snprintf(number, sizeof number, "%u", rank);
    set(&job, "rank", number);
    if (job_choose(&job, &plugins) ||
        plugin_choose("format", format_registry, format, &plugins.format))
        fail_msg("%s", fail_reason());
    struct engine_config site = {.job = &job, .plugins = &plugins, .catalog = catalog};
    struct engine *engine;
    if (engine_create(&site, &result, &engine) || engine_run(engine, 2, &hooks, &run, &result))
        fail_msg("%s through %s, shuffle %s, rank %u of %u: %s", format, reader, shuffle, rank,
                 ranks, fail_reason());
    for (int i = 0; i < 2; i++) {
        sums[i] += epochs[i].digest_sum;
        xors[i] ^= epochs[i].digest_xor;
    }
    engine_destroy(engine);
    job_release(&plugins);
    option_release(job_options, &job);
}

static void check_all_ranks(const struct catalog *catalog, const char *format, const char *reader,
                            const char *shuffle, uint32_t ranks)
{
    uint64_t sums[2] = {0}, xors[2] = {0};

    for (uint32_t rank = 0; rank < ranks; rank++)
        run_rank(catalog, format, reader, shuffle, rank, ranks, sums, xors);
    if (expected_sum == 0) { /* the first digest: every later one must match */
        expected_sum = sums[0];
        expected_xor = xors[0];
    }
    for (int i = 0; i < 2; i++)
        if (sums[i] != expected_sum || xors[i] != expected_xor)
            fail_msg("%s through %s, shuffle %s, %u ranks, epoch %d: other samples came out",
                     format, reader, shuffle, ranks, i);
}

/* The null reader returns no data; inflate and lmdb each read one kind of file only. */
static bool reads_everything(const struct plugin *reader)
{
    static const char *const special[] = {"null", "inflate", "lmdb", "nfs", NULL};

    for (int i = 0; special[i]; i++)
        if (strcmp(reader->name, special[i]) == 0)
            return false;
    return plugin_usable(reader) == 0;
}

static void check_format(const struct plugin *plugin)
{
    static const uint32_t ranks[] = {1, 2, 3, 5, 7};
    struct plugin_choice format;
    struct catalog *catalog;
    char folder[512];
    uint32_t variant = 0;

    snprintf(folder, sizeof folder, "%s/%s", test_folder, plugin->name);
    assert_int_equal(folder_make_path(folder), 0);
    assert_int_equal(plugin_choose("format", format_registry, plugin->name, &format), 0);
    char *unused_path;
    const int most = format_shard_path(plugin, folder, 0, 0, &unused_path);
    if (most < 0) { /* not by this build, or read only */
        print_message("%s\n", fail_reason());
        plugin_release(&format);
        return;
    }
    write_shards(&format, folder, most == 1 ? 1 : 4);
    if (format_catalog(&format, folder, false, &(struct format_scan){0}, &catalog))
        fail_msg("%s: %s", plugin->name, fail_reason());
    assert_int_equal(catalog->record_count, samples_total);
    assert_ptr_equal(format_detect(folder), plugin);

    /* Every reader with the three basic shuffles, and every shuffle through one reader; rank counts
     * rotate. All combinations with IOBENCH_LONG. */
    const bool all = getenv("IOBENCH_LONG") != NULL;
    for (const struct plugin *const *reader = reader_registry; *reader; reader++)
        for (const struct plugin *const *shuffle = shuffle_registry;
             reads_everything(*reader) && *shuffle; shuffle++, variant++)
            if (all || shuffle < shuffle_registry + 3 || strcmp((*reader)->name, "pread") == 0)
                check_all_ranks(catalog, plugin->name, (*reader)->name, (*shuffle)->name,
                                ranks[variant % 5]);
    for (int i = 0; i < 5; i++)
        check_all_ranks(catalog, plugin->name, "pread", "epoch", ranks[i]);
    catalog_destroy(catalog);
    plugin_release(&format);
}

static void the_same_samples_through_everything(void **unused)
{
    samples_total = getenv("IOBENCH_LONG") ? 10000 : 331;
    for (const struct plugin *const *format = format_registry; *format; format++)
        check_format(*format);
}

/* Two shards of records that are larger than what an index reads at once. */
static int write_large(const struct plugin_choice *format, const char *folder)
{
    static uint8_t image[LARGE_BYTES] = "\xff\xd8\xff\xe0";
    int code = 0;

    for (uint32_t shard = 0; shard < 2 && code == 0; shard++) {
        struct format_writer writer;
        char *path = NULL;
        assert_int_equal(format_shard_path(format->plugin, folder, shard, 2, &path), 0);
        code = format_writer_open(&writer, format, path);
        for (uint32_t i = 0; code == 0 && i < 3; i++) {
            char name[] = "a/0.jpg";
            name[2] += (char)i;
            code = format_writer_append(&writer, &(struct sample){.image = image,
                                                                  .image_bytes = sizeof image,
                                                                  .encoding = SAMPLE_ENCODED,
                                                                  .id = 3 * shard + i,
                                                                  .name = name,
                                                                  .name_bytes = 7});
        }
        const int closed = format_writer_close(&writer, code == 0);
        code = code ? code : closed;
        free(path);
    }
    return code;
}

static int index_large(const struct plugin_choice *format, const char *folder)
{
    struct catalog *catalog = NULL;
    const int code = format_catalog(format, folder, false, NULL, &catalog);

    if (code == 0)
        assert_int_equal(catalog->record_count, 6);
    catalog_destroy(catalog);
    return code;
}

/* Whichever of its calls to the kernel fails, it does. */
static void check_each_call(int (*run)(const struct plugin_choice *format, const char *folder),
                            const struct plugin_choice *format, const char *folder)
{
    int code = -EIO;

    for (failing = 1; code; failing++) {
        calls = 0;
        code = run(format, folder);
        if (code ? code != -EIO : failing <= calls)
            fail_msg("%s: call %u of %u failed: %d", folder, failing, calls, code);
    }
    print_message("%s: %u calls\n", folder, calls);
    assert_true(calls >= 6);
    failing = 0;
}

/* What a format cannot hold is refused, before it is read. */
static void samples_that_do_not_fit(void **unused)
{
    static const struct {
        const char *format, *raw, *large;
        size_t bytes;
    } rows[] = {{"recordio", "set.rec: RecordIO holds encoded images, not bare pixels",
                 "set.rec: an image of 536870888 bytes is too large for RecordIO (512 MiB)",
                 536870888},
                {"tar", "set.rec: tar shards hold encoded images, not bare pixels",
                 "set.rec: an image of 1073610753 bytes is too large", 1073610753},
                {"shards", "set.rec: an Example holds an encoded image, not bare pixels", NULL, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sample sample = {
            .image = (const uint8_t *)"x", .image_bytes = 1, .name = "a", .name_bytes = 1};
        struct plugin_choice format;
        struct format_writer writer;
        assert_int_equal(plugin_choose("format", format_registry, rows[i].format, &format), 0);
        assert_int_equal(format_writer_open(&writer, &format, folder_path("set.rec")), 0);
        sample.encoding = SAMPLE_RAW_HWC;
        assert_refused(format_writer_append(&writer, &sample), -EINVAL, rows[i].raw);
        sample.encoding = SAMPLE_ENCODED;
        sample.image_bytes = rows[i].bytes;
        if (rows[i].large) {
            assert_refused(format_writer_append(&writer, &sample), -EFBIG, rows[i].large);
        }
        assert_int_equal(format_writer_close(&writer, false), 0);
        plugin_release(&format);
    }
}

static void each_call_matters(void **unused)
{
    for (const struct plugin *const *plugin = format_registry; *plugin; plugin++) {
        struct plugin_choice format;
        char folder[512], pattern[520], *path = NULL;
        glob_t indexes; /* .idx files only save reads */
        if (!format_of(*plugin)->shard_open || format_shard_path(*plugin, "", 0, 0, &path))
            continue; /* read only, or of one file */
        snprintf(folder, sizeof folder, "%s/large-%s", test_folder, (*plugin)->name);
        assert_int_equal(folder_make_path(folder), 0);
        assert_int_equal(plugin_choose("format", format_registry, (*plugin)->name, &format), 0);
        if (format_check_writable(*plugin) == 0) {
            check_each_call(write_large, &format, folder);
            snprintf(pattern, sizeof pattern, "%s/*.idx", folder);
            if (glob(pattern, 0, NULL, &indexes) == 0)
                for (size_t i = 0; i < indexes.gl_pathc; i++)
                    assert_int_equal(unlink(indexes.gl_pathv[i]), 0);
            globfree(&indexes);
            check_each_call(index_large, &format, folder);
        }
        plugin_release(&format);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_matters),
        cmocka_unit_test(samples_that_do_not_fit),
        cmocka_unit_test(the_same_samples_through_everything),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
