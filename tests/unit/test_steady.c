/* SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is allocated in steady state: from the second epoch on the whole process, libraries
 * included, asks the allocator for nothing, with every reader, shuffle and decoder.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/random.h"
#include "formats/format.h"
#include "pipeline/engine/engine.h"
#include "readers/reader.h"
#include "shuffle/plan.h"
#include "tests/unit/allocations.h"
#include "telemetry/guard.h"

#include <string.h>

static struct plugin_choice format;
static struct catalog *catalog;

static void write_samples(void)
{
    static const char *const names[] = {"yuv420.jpg", "large.jpg", "grayscale.jpg", "yuv444.jpg"};
    const char *srcdir = getenv("srcdir");
    struct format_writer writer;
    char path[512], *images[4];
    size_t bytes[4];

    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/tests/fixtures/images/%s", srcdir ? srcdir : ".", names[i]);
        assert_int_equal(file_load(path, 1 << 20, &images[i], &bytes[i]), 0);
    }
    assert_int_equal(plugin_choose("format", format_registry, "recordio", &format), 0);
    assert_int_equal(format_writer_open(&writer, &format, folder_path("train.rec")), 0);
    for (int i = 0; i < 400; i++) {
        struct sample sample = {
            .image = images[i % 4], .image_bytes = bytes[i % 4], .label = i % 7, .id = (uint64_t)i};
        assert_int_equal(format_writer_append(&writer, &sample), 0);
    }
    assert_int_equal(format_writer_close(&writer, true), 0);
    for (int i = 0; i < 4; i++)
        free(images[i]);
    assert_int_equal(format_catalog(&format, folder_path("train.rec"), false,
                                    &(struct format_scan){0}, &catalog),
                     0);
}

static uint64_t counts[8];
static int count_at;

static int count_before(void *context, struct result_epoch *epoch, int code)
{
    counts[count_at++] = counter_get(&allocations);
    return code;
}

static int count_after(void *context, struct result_epoch *epoch, int code)
{
    counts[count_at++] = counter_get(&allocations);
    return code;
}

static void check(const char *reader, const char *shuffle, const char *decoder, const char *loaders)
{
    static const struct engine_hooks hooks = {.before = count_before, .after = count_after};
    struct result result = {.valid = true};
    struct result_epoch epochs[3];
    struct result_run run = {.epochs = epochs};
    struct job job = {0};
    struct job_plugins plugins;
    const char *const settings[][2] = {
        {"reader", reader},      {"shuffle", shuffle}, {"decode", decoder},    {"batch-size", "32"},
        {"decode-threads", "2"}, {"memory", "64m"},    {"io-threads", loaders}};

    assert_int_equal(option_defaults(job_options, &job), 0);
    for (int i = 0; i < 7; i++)
        if (option_set(job_options, &job, settings[i][0], settings[i][1], "test"))
            fail_msg("%s", fail_reason());
    if (job_choose(&job, &plugins))
        fail_msg("%s", fail_reason());
    assert_int_equal(plugin_choose("format", format_registry, "recordio", &plugins.format), 0);
    struct engine_config site = {.job = &job, .plugins = &plugins, .catalog = catalog};
    struct engine *engine;
    count_at = 0;
    if (engine_create(&site, &result, &engine) || engine_run(engine, 3, &hooks, &run, &result))
        fail_msg("%s", fail_reason());
    if (counts[5] != counts[2])
        fail_msg("%s, %s, %s, %s loaders: %llu allocations in the second and third epoch", reader,
                 shuffle, decoder, loaders, (unsigned long long)(counts[5] - counts[2]));
    engine_destroy(engine);
    job_release(&plugins);
    option_release(job_options, &job);
}

static void nothing_is_allocated_in_steady_state(void **unused)
{
    static const char *const decoders[] = {"none", "checksum", "jpeg"};
    struct guard_counts guard = {0};
    struct guard_moment start;
    uint32_t variant = 0;

    if (!allocations_counted)
        skip();
    write_samples();
    guard_begin(&start); /* or its thread ends between epochs on a busy machine, and a new one is
                            allocated */
    for (const struct plugin *const *reader = reader_registry; *reader; reader++) {
        const char *name = (*reader)->name;
        if (plugin_usable(*reader) || strcmp(name, "inflate") == 0 || strcmp(name, "lmdb") == 0 ||
            strcmp(name, "nfs") == 0)
            continue;
        for (int i = 0; i < 3; i++)
            check(name, "epoch", decoders[i], "1");
        check(name, "epoch", "checksum", "3");
    }
    for (const struct plugin *const *shuffle = shuffle_registry; *shuffle; shuffle++)
        check("pread", (*shuffle)->name, decoders[variant++ % 2], "1");
    guard_end(&start, &guard);
    catalog_destroy(catalog);
    plugin_release(&format);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_in_steady_state),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
