/* SPDX-License-Identifier: Apache-2.0
 * LMDB. The first byte chooses: parse a value (by its first bytes, as a Datum, as TensorProtos),
 * index a database, or verify one. No byte of an indexed database belongs to two values. */
#include "tests/fuzz/fuzz_format.h"

#include "formats/caffe.h"

static int compare_extents(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void check_overlap(const struct plugin_choice *format, const char *path)
{
    struct catalog *catalog = NULL;

    if (format_catalog(format, path, false, NULL, &catalog))
        return;
    struct extent *sorted = calloc(catalog->record_count, sizeof *sorted);
    FUZZ_CHECK(sorted);
    memcpy(sorted, catalog->records, catalog->record_count * sizeof *sorted);
    qsort(sorted, catalog->record_count, sizeof *sorted, compare_extents);
    for (uint64_t i = 1; i < catalog->record_count; i++)
        FUZZ_CHECK(sorted[i - 1].offset + sorted[i - 1].bytes <= sorted[i].offset);
    free(sorted);
    catalog_destroy(catalog);
}

/* A value that was parsed can be written, and then parses to the same. */
static void parse_value(enum caffe_flavour flavour, const uint8_t *bytes, size_t count)
{
    uint8_t *value = fuzz_exact(bytes, count);
    struct sample sample = {.label = -1}, back = {.label = -1};

    if (caffe_parse(flavour, value, count, &sample) == 0 && flavour != CAFFE_AUTO) {
        size_t written = caffe_put(flavour, &sample, NULL);
        uint8_t *again = malloc(written);
        FUZZ_CHECK(again);
        caffe_put(flavour, &sample, again);
        FUZZ_CHECK(caffe_parse(flavour, again, written, &back) == 0);
        FUZZ_CHECK(back.label == sample.label && back.encoding == sample.encoding);
        FUZZ_CHECK(back.image_bytes == sample.image_bytes && back.channels == sample.channels);
        FUZZ_CHECK(memcmp(back.image, sample.image, sample.image_bytes) == 0);
        free(again);
    }
    free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const enum caffe_flavour flavours[] = {CAFFE_AUTO, CAFFE_DATUM, CAFFE_TENSORS};
    const struct plugin_choice *format = fuzz_format("lmdb");

    if (count < 1)
        return 0;
    unsigned what = bytes[0] % 5;
    bytes++;
    count--;
    if (what < 3) {
        parse_value(flavours[what], bytes, count);
        return 0;
    }
    const char *path = fuzz_write("data.mdb", bytes, count);
    if (what == 3)
        check_overlap(format, path);
    fuzz_index(format, path, what == 4, bytes, count);
    return 0;
}
