/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "dataset/synthesis.h"
#include "tests/unit/allocations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <zlib.h>

enum { BLOCK = 4096 };

static struct synthesis *start(const struct synthesis_settings *settings)
{
    struct synthesis *synthesis = synthesis_open(settings);

    if (!synthesis)
        print_message("%s\n", fail_reason());
    assert_non_null(synthesis);
    return synthesis;
}

static struct sample make(struct synthesis *synthesis, uint64_t index)
{
    struct sample sample;

    if (synthesis_make(synthesis, index, &sample))
        print_message("%s\n", fail_reason());
    return sample;
}

static uint32_t checksum(const struct sample *sample)
{
    return (uint32_t)crc32(0, sample->image, (uInt)sample->image_bytes);
}

/* Fixed forever: a seed names the same data set on every machine and in every version. */
static void the_first_images_are_fixed(void **unused)
{
    static const uint32_t known[] = {0x72bf9323u, 0x21f541ebu, 0x7a74ee2du, 0xb8f36923u};
    struct synthesis *synthesis = start(&synthesis_imagenet);
    int wrong = 0;

    for (uint64_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct sample sample = make(synthesis, i * 1000003);
        print_message("0x%08x (label %d, %zu bytes)\n", checksum(&sample), sample.label,
                      sample.image_bytes);
        assert_int_equal(sample.label, synthesis_label(&synthesis_imagenet, i * 1000003));
        wrong += checksum(&sample) != known[i];
    }
    assert_int_equal(wrong, 0);
    synthesis_close(synthesis);
}

/* An image depends on index and seed alone, not on order or on earlier images. */
static void an_image_depends_on_seed_and_index_alone(void **unused)
{
    struct synthesis_settings other = synthesis_imagenet;
    struct synthesis *a = start(&synthesis_imagenet), *b = start(&synthesis_imagenet);

    other.seed = 2;
    struct synthesis *c = start(&other);
    for (uint64_t i = 0; i < 6; i++) {
        struct sample x = make(a, i), y = make(b, 5 - i), z = make(c, i);
        uint32_t x_sum = checksum(&x);
        assert_int_not_equal(x_sum, checksum(&z));
        if (i != 5 - i)
            assert_int_not_equal(x_sum, checksum(&y));
        y = make(b, i);
        assert_int_equal(x_sum, checksum(&y));
    }
    synthesis_close(a);
    synthesis_close(b);
    synthesis_close(c);
}

static void sizes_are_log_normal_about_the_mean(void **unused)
{
    enum { IMAGES = 300 };
    const uint32_t means[] = {110000, 12000};

    for (int i = 0; i < 2; i++) {
        struct synthesis_settings settings = synthesis_imagenet;
        settings.mean_bytes = means[i];
        struct synthesis *synthesis = start(&settings);
        double sum = 0, logs = 0, squares = 0, cubes = 0, values[IMAGES];
        for (int k = 0; k < IMAGES; k++) {
            struct sample sample = make(synthesis, (uint64_t)k);
            sum += (double)sample.image_bytes;
            values[k] = log((double)sample.image_bytes);
            logs += values[k] / IMAGES;
        }
        for (int k = 0; k < IMAGES; k++) {
            squares += pow(values[k] - logs, 2) / IMAGES;
            cubes += pow(values[k] - logs, 3) / IMAGES;
        }
        print_message("mean %.0f, deviation of the logarithm %.3f, its skew %.2f\n", sum / IMAGES,
                      sqrt(squares), cubes / pow(squares, 1.5));
        assert_true(fabs(sum / IMAGES / means[i] - 1) < 0.1);
        assert_true(sqrt(squares) > 0.4 && sqrt(squares) < 0.58);
        assert_true(fabs(cubes / pow(squares, 1.5)) < 0.6);
        synthesis_close(synthesis);
    }
}

static void labels_are_even(void **unused)
{
    enum { CLASSES = 50, DRAWS = 50000 };
    const struct synthesis_settings settings = {.seed = 3, .classes = CLASSES, .mean_bytes = 4000};
    int counts[CLASSES] = {0};
    double chi = 0;

    for (uint64_t i = 0; i < DRAWS; i++)
        counts[synthesis_label(&settings, i)]++;
    for (int i = 0; i < CLASSES; i++)
        chi += pow(counts[i] - DRAWS / CLASSES, 2) / (DRAWS / CLASSES);
    assert_true(chi < 86); /* 49 degrees of freedom: once in a thousand */
}

static int compare_blocks(const void *a, const void *b)
{
    return memcmp(a, b, BLOCK);
}

/* Deduplication and compression gain nothing: neither in blocks of a shard (images back to back)
 * nor in blocks of single files. */
static void storage_gains_nothing(void **unused)
{
    enum { IMAGES = 40 };
    struct synthesis *synthesis = start(&synthesis_imagenet);
    uint8_t *bytes = malloc((size_t)IMAGES * 1000000), *aligned = calloc(IMAGES, 1000000);
    size_t total = 0, blocks = 0;

    for (uint64_t i = 0; i < IMAGES; i++) {
        struct sample sample = make(synthesis, i);
        assert_true(sample.image_bytes < 1000000);
        memcpy(bytes + total, sample.image, sample.image_bytes);
        total += sample.image_bytes;
        memcpy(aligned + blocks * BLOCK, sample.image, sample.image_bytes);
        blocks += (sample.image_bytes + BLOCK - 1) / BLOCK;
    }
    uLongf packed = compressBound(total);
    uint8_t *squeezed = malloc(packed);
    assert_int_equal(compress2(squeezed, &packed, bytes, total, 6), Z_OK);
    print_message("deflate leaves %.2f%%\n", 100.0 * (double)packed / (double)total);
    assert_true((double)packed > 0.98 * (double)total);
    size_t whole = total / BLOCK;
    qsort(bytes, whole, BLOCK, compare_blocks);
    for (size_t i = 1; i < whole; i++)
        assert_memory_not_equal(bytes + (i - 1) * BLOCK, bytes + i * BLOCK, BLOCK);
    qsort(aligned, blocks, BLOCK, compare_blocks);
    for (size_t i = 1; i < blocks; i++)
        assert_memory_not_equal(aligned + (i - 1) * BLOCK, aligned + i * BLOCK, BLOCK);
    free(bytes);
    free(aligned);
    free(squeezed);
    synthesis_close(synthesis);
}

/* Mean colour difference, from the DC coefficients alone; any libjpeg warning fails. */
static void mean_colour(const struct sample *sample, double colour[2])
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t line[3 * 2048], *row = line;
    double count = 0;

    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, sample->image, sample->image_bytes);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.scale_denom = 8;
    jpeg.out_color_space = JCS_YCbCr;
    jpeg_start_decompress(&jpeg);
    colour[0] = colour[1] = 0;
    while (jpeg.output_scanline < jpeg.output_height) {
        jpeg_read_scanlines(&jpeg, &row, 1);
        for (uint32_t x = 0; x < jpeg.output_width; x++, count++) {
            colour[0] += line[3 * x + 1];
            colour[1] += line[3 * x + 2];
        }
    }
    jpeg_finish_decompress(&jpeg);
    assert_int_equal(errors.num_warnings, 0);
    jpeg_destroy_decompress(&jpeg);
    colour[0] /= count;
    colour[1] /= count;
}

/* Mean colour alone, without texture, separates four classes far better than chance. */
static void classes_can_be_learnt(void **unused)
{
    enum { CLASSES = 4, IMAGES = 200 };
    const struct synthesis_settings settings = {.seed = 5, .classes = CLASSES, .mean_bytes = 8000};
    struct synthesis *synthesis = start(&settings);
    double centre[CLASSES][3] = {{0}}, colour[2];
    int right = 0;

    for (uint64_t i = 0; i < 2 * IMAGES; i++) {
        struct sample sample = make(synthesis, i);
        mean_colour(&sample, colour);
        if (i < IMAGES) {
            double *c = centre[sample.label];
            c[2]++;
            c[0] += (colour[0] - c[0]) / c[2];
            c[1] += (colour[1] - c[1]) / c[2];
            continue;
        }
        int nearest = 0;
        for (int k = 1; k < CLASSES; k++)
            if (hypot(colour[0] - centre[k][0], colour[1] - centre[k][1]) <
                hypot(colour[0] - centre[nearest][0], colour[1] - centre[nearest][1]))
                nearest = k;
        right += nearest == sample.label;
    }
    print_message("%d of %d by mean colour\n", right, IMAGES);
    assert_true(right > IMAGES / 2);
    synthesis_close(synthesis);
}

static void making_allocates_nothing(void **unused)
{
    if (!allocations_counted)
        skip();
    struct synthesis *synthesis = start(&synthesis_imagenet);
    make(synthesis, 0);
    uint64_t before = counter_get(&allocations);
    for (uint64_t i = 1; i < 60; i++)
        make(synthesis, i);
    assert_int_equal(counter_get(&allocations), before);
    synthesis_close(synthesis);
}

static void settings_are_checked(void **unused)
{
    struct synthesis_settings settings = synthesis_imagenet;

    settings.classes = 0;
    assert_null(synthesis_open(&settings));
    settings.classes = 1;
    settings.mean_bytes = 3999;
    assert_null(synthesis_open(&settings));
    assert_reason("3999");
    settings.mean_bytes = 4000;
    struct synthesis *synthesis = start(&settings);
    assert_int_equal(make(synthesis, 7).label, 0);
    synthesis_close(synthesis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_images_are_fixed),
        cmocka_unit_test(an_image_depends_on_seed_and_index_alone),
        cmocka_unit_test(sizes_are_log_normal_about_the_mean),
        cmocka_unit_test(labels_are_even),
        cmocka_unit_test(storage_gains_nothing),
        cmocka_unit_test(classes_can_be_learnt),
        cmocka_unit_test(making_allocates_nothing),
        cmocka_unit_test(settings_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
