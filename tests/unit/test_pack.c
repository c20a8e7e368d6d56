/* SPDX-License-Identifier: Apache-2.0
 * The parts of pack and verify: images checked and encoded, samples that keep labels, ids and names
 * through every format that supports them.
 */
#include "tests/unit/folder.h"
#include "tests/unit/allocations.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/option.h"
#include "cmd/pack/cursor.h"
#include "cmd/pack/source.h"
#include "cmd/pack/packing.h"
#include "decode/image.h"
#include "shuffle/quality.h"

#include <errno.h>
#include <string.h>

static const struct image_limits limits = {.pixels = 1 << 20, .scans = 16};

/* 16 x 32 pixels with a red upper half and a blue lower half, until the next call. */
static struct sample make_raw(enum sample_encoding encoding)
{
    static uint8_t pixels[32 * 16 * 3];
    struct sample raw = {.image = pixels,
                         .image_bytes = sizeof pixels,
                         .encoding = encoding,
                         .width = 16,
                         .height = 32,
                         .channels = 3};

    memset(pixels, 0, sizeof pixels);
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 16; x++) {
            if (encoding == SAMPLE_RAW_HWC)
                pixels[(y * 16 + x) * 3 + (y < 16 ? 0 : 2)] = 255;
            else if (encoding == SAMPLE_RAW_HWC_BGR)
                pixels[(y * 16 + x) * 3 + (y < 16 ? 2 : 0)] = 255;
            else /* planes: blue, green, red */
                pixels[(y < 16 ? 2 : 0) * 512 + y * 16 + x] = 255;
        }
    return raw;
}

static size_t make_jpeg(void **jpeg, enum sample_encoding encoding)
{
    const struct sample raw = make_raw(encoding);
    size_t capacity = 0, count;

    *jpeg = NULL;
    assert_int_equal(image_to_jpeg(&raw, 90, jpeg, &capacity, &count), 0);
    return count;
}

static void raw_pixels_become_the_same_jpeg_from_each_layout(void **unused)
{
    void *hwc, *chw, *bgr;
    struct image_header header;
    size_t hwc_bytes = make_jpeg(&hwc, SAMPLE_RAW_HWC), chw_bytes = make_jpeg(&chw, SAMPLE_RAW_CHW);

    assert_int_equal(hwc_bytes, chw_bytes);
    assert_memory_equal(hwc, chw, hwc_bytes);
    assert_int_equal(make_jpeg(&bgr, SAMPLE_RAW_HWC_BGR), hwc_bytes);
    assert_memory_equal(hwc, bgr, hwc_bytes);
    free(bgr);
    assert_int_equal(image_header_check(hwc, hwc_bytes, &header), 0);
    assert_int_equal(header.kind, IMAGE_JPEG);
    assert_int_equal(header.width, 16);
    assert_int_equal(header.height, 32);
    assert_int_equal(header.components, 3);
    assert_false(header.progressive);
    assert_int_equal(image_verify(hwc, hwc_bytes, &limits), 0);
    free(hwc);
    free(chw);
}

/* Shrink a red over blue image to 8 x 16 pixels and look at its corners. */
static void shrink_to_8(struct recoder *recoder, struct sample sample)
{
    const struct view view = {.kind = VIEW_WHOLE, .width = 8, .height = 16};
    struct image_header header;
    uint8_t row[16 * 8 * 3];
    void *jpeg = NULL;
    size_t capacity = 0;

    assert_int_equal(recoder_apply(recoder, &sample, &jpeg, &capacity), 1);
    assert_ptr_equal(sample.image, jpeg);
    assert_int_equal(sample.encoding, SAMPLE_ENCODED);
    assert_int_equal(image_header_check(sample.image, sample.image_bytes, &header), 0);
    assert_int_equal(header.kind, IMAGE_JPEG);
    assert_int_equal(header.width, 8);
    assert_int_equal(header.height, 16);
    const struct decode_source source = {.bytes = jpeg, .length = sample.image_bytes};
    assert_int_equal(decoder_decode(&recoder->decoder, &source, &view, row), 0);
    assert_true(row[0] > 230 && row[2] < 25);
    assert_true(row[sizeof row - 3] < 25 && row[sizeof row - 1] > 230);
    free(jpeg);
}

static void larger_images_are_shrunk_from_each_layout(void **unused)
{
    void *jpeg, *none = NULL;
    const size_t bytes = make_jpeg(&jpeg, SAMPLE_RAW_HWC);
    const struct sample sample = {.image_bytes = bytes, .image = jpeg};
    struct sample cut = {.image_bytes = bytes - 8, .image = jpeg}, same = sample;
    struct recoder recoder;
    size_t capacity = 0;

    assert_int_equal(recoder_open(&recoder, &(struct recode){.side = 8, .quality = 95}), 0);
    shrink_to_8(&recoder, sample);
    static const enum sample_encoding raws[] = {SAMPLE_RAW_HWC, SAMPLE_RAW_CHW, SAMPLE_RAW_HWC_BGR};
    for (size_t i = 0; i < sizeof raws / sizeof *raws; i++)
        shrink_to_8(&recoder, make_raw(raws[i]));
    assert_refused(recoder_apply(&recoder, &cut, &none, &capacity), -EBADMSG, "cut short");
    recoder_close(&recoder);
    assert_int_equal(recoder_open(&recoder, &(struct recode){.side = 16, .quality = 95}), 0);
    assert_int_equal(recoder_apply(&recoder, &same, &none, &capacity), 0);
    assert_memory_equal(&same, &sample, sizeof same);
    assert_null(none);
    recoder_close(&recoder);
    free(jpeg);
}

static void images_become_the_pixels_that_they_decode_to(void **unused)
{
    const struct sample raw = make_raw(SAMPLE_RAW_HWC);
    struct image_header header;
    struct recoder recoder;
    void *image = NULL;
    size_t capacity = 0;

    assert_int_equal(recoder_open(&recoder, &(struct recode){.raw = true}), 0);
    static const enum sample_encoding raws[] = {SAMPLE_RAW_HWC, SAMPLE_RAW_CHW, SAMPLE_RAW_HWC_BGR};
    for (size_t i = 0; i < sizeof raws / sizeof *raws; i++) {
        struct sample sample = make_raw(raws[i]);
        uint64_t bytes;
        assert_int_equal(recode_pixel_bytes(&recoder.recode, &sample, &bytes), 0);
        assert_int_equal(recoder_apply(&recoder, &sample, &image, &capacity), 1);
        assert_true(bytes >= sample.image_bytes && bytes < sample.image_bytes + 32);
        assert_int_equal(image_header_check(sample.image, sample.image_bytes, &header), 0);
        assert_int_equal(image_verify(sample.image, sample.image_bytes, &limits), 0);
        assert_int_equal(header.width, 16);
        assert_int_equal(header.height, 32);
        const struct sample hwc = make_raw(SAMPLE_RAW_HWC);
        assert_int_equal(sample.image_bytes, header.bytes + raw.image_bytes);
        assert_memory_equal((const uint8_t *)image + header.bytes, hwc.image, hwc.image_bytes);
        assert_int_equal(recoder_apply(&recoder, &sample, &image, &capacity), 0); /* as it is */
        assert_int_equal(image_header_check(image, sample.image_bytes - 1, &header), -EBADMSG);
    }
    recoder_close(&recoder);
    free(image);
}

static void an_image_that_claims_too_many_pixels_is_not_shrunk(void **unused)
{
    struct sample huge = {.encoding = SAMPLE_RAW_HWC, .width = 65535, .height = 65535};
    struct recoder recoder;
    void *jpeg = NULL;
    size_t capacity = 0;

    assert_int_equal(recoder_open(&recoder, &(struct recode){.side = 65534}), 0);
    assert_int_equal(recoder_apply(&recoder, &huge, &jpeg, &capacity), -EBADMSG);
    assert_null(recoder.pixels);
    recoder_close(&recoder);
}

static void raw_pixels_that_cannot_be_are_refused(void **unused)
{
    static const uint8_t pixels[12];
    struct sample raw = {.image = pixels,
                         .image_bytes = 12,
                         .encoding = SAMPLE_RAW_HWC,
                         .width = 2,
                         .height = 2,
                         .channels = 3};
    void *jpeg = NULL;
    size_t capacity = 0, count;

    raw.width = 3;
    assert_int_equal(image_to_jpeg(&raw, 90, &jpeg, &capacity, &count), -EBADMSG);
    raw.width = 70000;
    assert_int_equal(image_to_jpeg(&raw, 90, &jpeg, &capacity, &count), -EBADMSG);
    raw.width = 2, raw.channels = 2;
    assert_int_equal(image_to_jpeg(&raw, 90, &jpeg, &capacity, &count), -EBADMSG);
    free(jpeg);
}

/* A JPEG truncated anywhere is refused with a reason; the copies have exact size. */
static void a_jpeg_that_is_cut_short_is_refused(void **unused)
{
    void *jpeg;
    size_t bytes = make_jpeg(&jpeg, SAMPLE_RAW_HWC);
    struct image_header header;

    for (size_t cut = 0; cut < bytes; cut++) {
        void *copy = malloc(cut ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, jpeg, cut);
        fail_clear();
        assert_refused(image_header_check(copy, cut, &header), -EBADMSG, "of the image");
        assert_int_equal(image_verify(copy, cut, &limits), -EBADMSG);
        free(copy);
    }
    free(jpeg);
}

/* What went wrong first is the cause; later errors are of bytes that are no longer in step. */
static void the_first_complaint_is_given(void **unused)
{
    static const struct {
        size_t lost; /* bytes before the end marker */
        uint8_t bytes[5];
        const char *says;
    } rests[] = {{8, {0xff, 0x28, 0, 0, 0}, "premature end of data segment"},
                 {0, {0xff, 0xc4, 0xff, 0, 0x10}, "Premature end of JPEG file"}};
    void *jpeg;
    size_t bytes = make_jpeg(&jpeg, SAMPLE_RAW_HWC);

    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        const size_t kept = bytes - 2 - rests[i].lost;
        uint8_t *copy = malloc(kept + sizeof rests[i].bytes + 2);
        assert_non_null(copy);
        memcpy(copy, jpeg, kept);
        memcpy(copy + kept, rests[i].bytes, sizeof rests[i].bytes);
        memcpy(copy + kept + sizeof rests[i].bytes, "\xff\xd9", 2);
        const size_t count = kept + sizeof rests[i].bytes + 2;
        assert_refused(image_verify(copy, count, &limits), -EBADMSG, rests[i].says);
        free(copy);
    }
    free(jpeg);
}

static void without_memory_no_jpeg_is_called_damaged(void **unused)
{
    void *jpeg;
    size_t bytes = make_jpeg(&jpeg, SAMPLE_RAW_HWC);
    const uint64_t before = counter_get(&allocations);
    unsigned refused = 0;

    assert_int_equal(image_verify(jpeg, bytes, &limits), 0);
    const uint64_t count = counter_get(&allocations) - before;
    for (uint64_t at = 1; at <= count; at++) {
        allocation_refused = counter_get(&allocations) + at;
        int code = image_verify(jpeg, bytes, &limits); /* libjpeg may need less */
        assert_true(code == 0 || code == -ENOMEM);
        refused += code == -ENOMEM;
    }
    allocation_refused = 0;
    assert_true(refused || !allocations_counted);
    free(jpeg);
}

static void damage_in_the_pixels_is_seen_by_decoding_alone(void **unused)
{
    void *jpeg;
    size_t bytes = make_jpeg(&jpeg, SAMPLE_RAW_HWC);
    struct image_header header;

    memcpy((uint8_t *)jpeg + bytes - 6, "\xff\xd9\xff\xd9", 4);
    assert_int_equal(image_header_check(jpeg, bytes, &header), 0);
    assert_refused(image_verify(jpeg, bytes, &limits), -EBADMSG, "Corrupt JPEG data");
    free(jpeg);
}

/* ---- what samples preserve ---- */

static void pack(const char *source, const char *target, const char *format)
{
    struct pack_job job = {0};
    struct pack_figures figures;

    assert_int_equal(option_defaults(pack_options, &job), 0);
    assert_int_equal(option_set(pack_options, &job, "format", format, "test"), 0);
    job.source = source;
    job.target = target;
    if (pack_run(&job, NULL, &figures))
        fail_msg("%s", fail_reason());
    option_release(pack_options, &job);
}

static void labels_ids_and_names_are_kept(void **unused)
{
    static const struct {
        const char *format;
        bool keeps_id, keeps_name;
    } steps[] = {{"recordio", true, false}, {"shards", false, true}, {"tar", false, false}};
    const char *made = "synthetic:count=12,classes=5,mean=4k";
    const struct source_config site = {.threads = 1, .quality = 90};
    struct source before, after;

    if (source_open(&before, "auto", made, &site))
        fail_msg("%s", fail_reason());
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct source_buffer slots[2] = {0};
        void *cursors[2];
        char *target = strdup(folder_path(steps[i].format));
        pack(made, target, steps[i].format);
        if (source_open(&after, "auto", target, &site))
            fail_msg("%s", fail_reason());
        assert_int_equal(after.traits.count, 12);
        assert_int_equal(source_cursor_open(&before, &cursors[0]), 0);
        assert_int_equal(source_cursor_open(&after, &cursors[1]), 0);
        for (uint64_t number = 0; number < 12; number++) {
            struct sample was, is;
            assert_int_equal(source_read(&before, cursors[0], number, &slots[0], &was), 0);
            assert_int_equal(source_read(&after, cursors[1], number, &slots[1], &is), 0);
            assert_int_equal(is.label, was.label);
            assert_int_equal(is.image_bytes, was.image_bytes);
            assert_memory_equal(is.image, was.image, was.image_bytes);
            if (steps[i].keeps_id)
                assert_int_equal(is.id, number);
            if (steps[i].keeps_name) {
                assert_int_equal(is.name_bytes, was.name_bytes);
                assert_memory_equal(is.name, was.name, was.name_bytes);
            }
        }
        source_cursor_close(&before, cursors[0]);
        source_cursor_close(&after, cursors[1]);
        source_buffer_release(&slots[0]);
        source_buffer_release(&slots[1]);
        source_close(&after);
        free(target);
    }
    source_close(&before);
}

static void labels_of_paths_are_numbered_without_gaps(void **unused)
{
    struct catalog *catalog = outline_create(6, 3, 100, 0);
    static const int32_t want[] = {1, 1, 2, 2, 0, 0};
    struct labels labels;

    assert_non_null(catalog);
    assert_false(labels_in_paths(catalog));
    catalog->shards[0].label = 40;
    catalog->shards[1].label = 1000000;
    catalog->shards[2].label = 7;
    assert_true(labels_in_paths(catalog));
    assert_int_equal(labels_read(NULL, catalog, NULL, NULL, &labels), 0);
    assert_int_equal(labels.classes, 3);
    assert_memory_equal(labels.of, want, sizeof want);
    free(labels.of);
    catalog_destroy(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_of_paths_are_numbered_without_gaps),
        cmocka_unit_test(raw_pixels_become_the_same_jpeg_from_each_layout),
        cmocka_unit_test(larger_images_are_shrunk_from_each_layout),
        cmocka_unit_test(images_become_the_pixels_that_they_decode_to),
        cmocka_unit_test(an_image_that_claims_too_many_pixels_is_not_shrunk),
        cmocka_unit_test(raw_pixels_that_cannot_be_are_refused),
        cmocka_unit_test(a_jpeg_that_is_cut_short_is_refused),
        cmocka_unit_test(the_first_complaint_is_given),
        cmocka_unit_test(without_memory_no_jpeg_is_called_damaged),
        cmocka_unit_test(damage_in_the_pixels_is_seen_by_decoding_alone),
        cmocka_unit_test(labels_ids_and_names_are_kept),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
