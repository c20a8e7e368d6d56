/* SPDX-License-Identifier: Apache-2.0
 * Several I/O threads give the same result as one: the same samples in the same draw order, with
 * every reader, in each of the basic orders. The labels are the numbers of the samples, so that
 * what the trainer sees is the order; the rows are checksums of the images.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/random.h"
#include "formats/format.h"
#include "pipeline/engine/engine.h"
#include "readers/reader.h"

#include <fcntl.h>
#include <string.h>

enum { SAMPLES = 1500, SHARDS = 3, BYTES_MAX = 30000 };

/* ---- a trainer that records its input ---- */

enum { BATCH = 64 };

static bool prepared[BATCH + 1]; /* by size of a batch, before the clock starts */

struct seen {
    uint32_t count;
    struct {
        int32_t label;
        uint64_t checksum;
    } draws[2 * SAMPLES];
};

static struct seen *seen;

static int prepare(void *state, uint32_t count)
{
    assert_int_equal(seen->count, 0);
    assert_true(count > 0 && count <= BATCH);
    prepared[count] = true;
    return 0;
}

static int write_down(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    const uint64_t *rows = batch->rows;

    assert_true(prepared[batch->count]);
    *times = (struct trainer_times){.wait_ns = batch->waited_ns};
    for (uint32_t i = 0; i < batch->count; i++) {
        assert_true(seen->count < 2 * SAMPLES);
        seen->draws[seen->count].label = batch->labels[i];
        seen->draws[seen->count++].checksum = rows[i];
    }
    return 0;
}

static const struct trainer_ops recorder = {
    .plugin = {.name = "recorder"}, .prepare = prepare, .step = write_down};

/* ---- data sets ---- */

static void write_set(const char *format_text, const char *folder, struct plugin_choice *format,
                      struct catalog **catalog)
{
    static uint8_t image[BYTES_MAX];
    struct random random = random_start(7);
    struct format_writer writer;
    uint64_t number = 0;

    assert_int_equal(plugin_choose("format", format_registry, format_text, format), 0);
    assert_int_equal(folder_make_path(folder_path(folder)), 0);
    char *path;
    const int most = format_shard_path(format->plugin, folder_path(folder), 0, 0, &path);
    const uint32_t shards = most == 1 ? 1 : SHARDS;
    for (uint32_t shard = 0; shard < shards; shard++) {
        assert_int_equal(
            format_shard_path(format->plugin, folder_path(folder), shard, shards, &path), 0);
        assert_int_equal(format_writer_open(&writer, format, path), 0);
        uint64_t end = SAMPLES * (shard + 1) / shards;
        for (; number < end; number++) {
            struct sample sample = {.image = image,
                                    .image_bytes = 100 + random_below(&random, BYTES_MAX - 100),
                                    .label = (int32_t)number,
                                    .encoding = SAMPLE_ENCODED,
                                    .id = number};
            for (size_t i = 0; i < sample.image_bytes; i += 97)
                image[i] = (uint8_t)random_next(&random);
            memcpy(image, "\xff\xd8\xff\xe0", 4);
            assert_int_equal(format_writer_append(&writer, &sample), 0);
        }
        assert_int_equal(format_writer_close(&writer, true), 0);
        free(path);
    }
    if (format_catalog(format, folder_path(folder), false, &(struct format_scan){0}, catalog))
        fail_msg("%s", fail_reason());
    assert_int_equal((*catalog)->record_count, SAMPLES);
}

/* ---- runs ---- */

static void run(const struct catalog *catalog, const struct plugin_choice *format,
                const char *reader, const char *shuffle, const char *loaders, struct seen *into)
{
    static const struct engine_hooks hooks = {0};
    const struct trainer trainer = {.ops = &recorder};
    struct result result = {.valid = true};
    struct result_epoch epochs[2];
    struct result_run result_run = {.epochs = epochs};
    struct job job = {0};
    struct job_plugins plugins;
    const char *const settings[][2] = {
        {"reader", reader},     {"shuffle", shuffle}, {"io-threads", loaders},
        {"decode", "checksum"}, {"batch-size", "64"}, {"decode-threads", "2"},
        {"iodepth", "8"},       {"memory", "64m"},    {"overlap-epochs", "yes"}};

    assert_int_equal(option_defaults(job_options, &job), 0);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (option_set(job_options, &job, settings[i][0], settings[i][1], "test"))
            fail_msg("%s", fail_reason());
    if (job_choose(&job, &plugins))
        fail_msg("%s", fail_reason());
    plugins.format = *format;
    struct engine_config site = {
        .job = &job, .plugins = &plugins, .catalog = catalog, .trainer = &trainer};
    seen = into;
    memset(seen, 0, sizeof *seen);
    memset(prepared, 0, sizeof prepared);
    struct engine *engine;
    if (engine_create(&site, &result, &engine) ||
        engine_run(engine, 2, &hooks, &result_run, &result))
        fail_msg("%s, %s, %s loaders: %s", reader, shuffle, loaders, fail_reason());
    assert_int_equal(seen->count, 2 * SAMPLES);
    if (strcmp(loaders, "1") != 0)
        assert_non_null(strstr(result.reader_engine, " I/O threads"));
    engine_destroy(engine);
    plugins.format = (struct plugin_choice){0};
    job_release(&plugins);
    option_release(job_options, &job);
}

static void compare(const struct catalog *catalog, const struct plugin_choice *format,
                    const char *reader)
{
    static const char *const shuffles[] = {"none", "buffer:100", "epoch", "tfdata"};
    static struct seen one, several;
    /* A compressed shard has no random access. */
    const int count = catalog->compressed ? 2 : 4;

    for (int i = 0; i < count; i++) {
        run(catalog, format, reader, shuffles[i], "1", &one);
        run(catalog, format, reader, shuffles[i], "2", &several);
        assert_memory_equal(&one, &several, sizeof one);
        run(catalog, format, reader, shuffles[i], "3", &several);
        assert_memory_equal(&one, &several, sizeof one);
    }
}

static bool can_be_direct(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void every_reader_gives_the_same_order(void **unused)
{
    struct plugin_choice format;
    struct catalog *catalog;
    char direct[32];

    write_set("recordio", "recordio", &format, &catalog);
    for (const struct plugin *const *reader = reader_registry; *reader; reader++) {
        const char *name = (*reader)->name;
        if (plugin_usable(*reader) || strcmp(name, "inflate") == 0 || strcmp(name, "lmdb") == 0 ||
            strcmp(name, "nfs") == 0)
            continue;
        compare(catalog, &format, name);
        if (!(*reader)->options || !option_find((*reader)->options, "direct") ||
            !can_be_direct(catalog->shards[0].path))
            continue;
        snprintf(direct, sizeof direct, "%s:direct=yes", name);
        compare(catalog, &format, direct);
    }
    if (plugin_find(reader_registry, "uring") &&
        plugin_usable(plugin_find(reader_registry, "uring")) == 0)
        compare(catalog, &format, "uring:registered=no");
    catalog_destroy(catalog);
    plugin_release(&format);
}

static void shards_inflated_in_order(void **unused)
{
    struct plugin_choice format;
    struct catalog *catalog;

    write_set("shards:compression=gzip", "compressed", &format, &catalog);
    assert_true(catalog->compressed);
    compare(catalog, &format, "inflate");
    catalog_destroy(catalog);
    plugin_release(&format);
}

static void values_lent_by_lmdb(void **unused)
{
    struct plugin_choice format;
    struct catalog *catalog;

    if (!plugin_find(reader_registry, "lmdb"))
        skip();
    write_set("lmdb", "lmdb", &format, &catalog);
    compare(catalog, &format, "lmdb");
    catalog_destroy(catalog);
    plugin_release(&format);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reader_gives_the_same_order),
        cmocka_unit_test(shards_inflated_in_order),
        cmocka_unit_test(values_lent_by_lmdb),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
