/* SPDX-License-Identifier: Apache-2.0
 * Fuzzing one format: indexing a file with and without a fault handler, and parsing. */
#ifndef IOBENCH_TESTS_FUZZ_FUZZ_FORMAT_H
#define IOBENCH_TESTS_FUZZ_FUZZ_FORMAT_H

#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "formats/format.h"

#include <errno.h>

static inline int fuzz_note_fault(void *context, const struct catalog_fault *fault)
{
    const uint64_t *file_bytes = context;

    FUZZ_CHECK(fault->path && fault->what && *fault->what && fault->offset <= *file_bytes * 1032);
    return 0;
}

static inline const struct plugin_choice *fuzz_format(const char *name)
{
    static struct plugin_choice choice;

    if (!choice.plugin)
        FUZZ_CHECK(plugin_choose("format", format_registry, name, &choice) == 0);
    return &choice;
}

static inline void fuzz_parse(const struct plugin_choice *format, const struct shard *shard,
                              const uint8_t *bytes, size_t count, unsigned flags)
{
    uint8_t *record = fuzz_exact(bytes, count);
    struct format_scratch scratch = {.bytes = malloc(count + 1), .capacity = count};
    struct sample sample;
    int code = format_parse(format, shard, record, count, flags, &scratch, &sample);

    FUZZ_CHECK(code == 0 || (code < 0 && *fail_reason()));
    if (code == 0) {
        /* Image and name are in the record or in the scratch buffer: touch both ends. */
        volatile uint8_t touched = 0;
        const uint8_t *image = sample.image;
        if (sample.image_bytes)
            touched = (uint8_t)(image[0] ^ image[sample.image_bytes - 1]);
        if (sample.name_bytes)
            touched = (uint8_t)(sample.name[0] ^ sample.name[sample.name_bytes - 1]);
        (void)touched;
        FUZZ_CHECK(sample.image_bytes <= count && sample.label >= -1);
    }
    /* What is intact is a sample as a whole where nothing decodes it. */
    const int whole =
        format_parse(format, shard, record, count, flags | FORMAT_WHOLE, &scratch, &sample);
    FUZZ_CHECK(code || whole == 0);
    FUZZ_CHECK(whole || sample.image_bytes <= count);
    free(record);
    free(scratch.bytes);
}

static inline void fuzz_index(const struct plugin_choice *format, const char *path, bool verify,
                              const uint8_t *bytes, size_t count)
{
    uint64_t file_bytes = count;
    const struct format_scan scan = {.fault = verify ? fuzz_note_fault : NULL,
                                     .fault_context = &file_bytes};
    struct catalog *catalog = NULL;

    fail_clear();
    if (format_catalog(format, path, false, &scan, &catalog)) {
        FUZZ_CHECK(*fail_reason());
        return;
    }
    FUZZ_CHECK(catalog->shard_count == 1 && catalog->record_count > 0);
    for (uint64_t i = 0; i < catalog->record_count && !catalog->compressed; i++) {
        const struct extent *extent = catalog_extent(catalog, i);
        FUZZ_CHECK(extent->offset <= count && extent->bytes <= count - extent->offset);
        /* Records of a database are in key order, not in file order. */
        FUZZ_CHECK(i == 0 || strcmp(format->plugin->name, "lmdb") == 0 ||
                   extent->offset >= extent[-1].offset + extent[-1].bytes);
        fuzz_parse(format, &catalog->shards[0], bytes + extent->offset, extent->bytes, 0);
    }
    catalog_destroy(catalog);
}

#endif
