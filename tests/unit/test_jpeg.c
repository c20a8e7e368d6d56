/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/decoding.h"
#include "tests/unit/fixture.h"
#include "tests/unit/resize_reference.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/random.h"
#include "decode/decoder.h"
#include "tests/unit/allocations.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <zlib.h>

static const char *const fixtures[] = {
    "yuv420.jpg",    "yuv422.jpg",    "yuv444.jpg", "progressive.jpg",     "grayscale.jpg",
    "cmyk.jpg",      "one_pixel.jpg", "large.jpg",  "large420.jpg",        "exif_rotated.jpg",
    "truncated.jpg", "palette.png",   "grey16.png", "png_named_jpeg.JPEG", "alpha.png",
    "interlaced.png"};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

static double mean_difference(const uint8_t *a, const uint8_t *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += abs(a[i] - b[i]);
    return sum / (double)count;
}

static void evaluation_gives_the_pixels_of_pillow(void **unused)
{
    struct decode_source golden = load("large.evaluate.64.rgb"), image = load("large.jpg");
    struct bench bench;
    int worst = 0;

    start(&bench, "jpeg:size=64,view=evaluate,scale=none");
    assert_int_equal(golden.length, bench.decoder.traits.row_bytes);
    assert_int_equal(decode(&bench, &image, 1), 0);
    for (size_t i = 0; i < golden.length; i++)
        worst = abs(bench.row[i] - ((const uint8_t *)golden.bytes)[i]) > worst
                    ? abs(bench.row[i] - ((const uint8_t *)golden.bytes)[i])
                    : worst;
    assert_true(worst <= 2); /* Pillow rounds between its passes */
    stop(&bench);
    /* Shrinking in the DCT is a different filter; the image is the same. */
    start(&bench, "jpeg:size=64,view=evaluate");
    assert_int_equal(decode(&bench, &image, 1), 0);
    assert_true(mean_difference(bench.row, golden.bytes, golden.length) < 3);
    stop(&bench);
    drop(&golden);
    drop(&image);
}

/* Decode the whole image with plain libjpeg. */
static uint8_t *decode_whole(const struct decode_source *source, bool fancy, uint32_t *width,
                             uint32_t *height)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;

    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, source->bytes, source->length);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_EXT_RGBX;
    jpeg.do_fancy_upsampling = fancy;
    jpeg_start_decompress(&jpeg);
    *width = jpeg.output_width;
    *height = jpeg.output_height;
    uint8_t *image = malloc((size_t)*width * *height * RESIZE_PIXEL_BYTES);
    while (jpeg.output_scanline < jpeg.output_height) {
        uint8_t *row = image + (size_t)jpeg.output_scanline * *width * RESIZE_PIXEL_BYTES;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return image;
}

/* Skipping rows and columns changes no pixel: 200 random crops, some mirrored, against the same box
 * of the whole image. */
static void crops_equal_those_of_the_whole_image(const char *name, const char *text, bool fancy,
                                                 double most, double mean)
{
    struct decode_source source = load(name);
    struct bench bench;
    uint32_t width, height;
    double exact[48 * 48 * 3], sum = 0, worst = 0;
    uint8_t *image = decode_whole(&source, fancy, &width, &height);

    start(&bench, text);
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct view view = {.kind = VIEW_TRAIN, .seed = seed};
        struct view_box crop = view_box(&view, &view_rules_imagenet, width, height);
        struct resize_box box = {crop.x, crop.y, crop.width,  crop.height,
                                 width,  height, crop.mirror, RESIZE_TRIANGLE};
        resize_reference(image, &box, 48, exact);
        assert_int_equal(decode(&bench, &source, seed), 0);
        for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
            worst = fmax(worst, fabs(bench.row[i] - exact[i]));
            sum += fabs(bench.row[i] - exact[i]);
        }
    }
    sum /= 200 * 48 * 48 * 3;
    print_message("%s, %s: worst %.2f levels, mean %.3f\n", name, text, worst, sum);
    assert_true(worst < most);
    assert_true(sum < mean);
    stop(&bench);
    free(image);
    drop(&source);
}

static void skipping_changes_no_pixel(void **unused)
{
    static const char *const plain = "jpeg:size=48,scale=none,upsampling=plain";

    crops_equal_those_of_the_whole_image("large.jpg", plain, false, 0.6, 0.3);
    crops_equal_those_of_the_whole_image("large420.jpg", plain, false, 0.6, 0.3);
    crops_equal_those_of_the_whole_image("large420.jpg", "jpeg:size=48,scale=none", true, 0.6, 0.3);
    crops_equal_those_of_the_whole_image("large.jpg", "jpeg:size=48", true, 60, 4);
    crops_equal_those_of_the_whole_image("large.jpg", "jpeg:size=48,scale=any", true, 60, 4);
}

/* All kinds show the same scene; each is compared with the lossless PNG. */
static void every_kind_of_image_is_decoded_and_counted(void **unused)
{
    static const struct {
        const char *name;
        double difference;
        struct decode_figures figures;
    } kinds[] = {
        {"yuv420.jpg", 6, {0}},
        {"yuv422.jpg", 6, {0}},
        {"yuv444.jpg", 5, {0}},
        {"exif_rotated.jpg", 6, {0}},
        {"progressive.jpg", 6, {.progressive = 1}},
        {"cmyk.jpg", 5, {.cmyk = 1}},
        {"grayscale.jpg", 60, {.grayscale = 1}},
        {"grey16.png", 60, {.grayscale = 1, .of_kind[IMAGE_PNG] = 1}},
        {"palette.png", 15, {.of_kind[IMAGE_PNG] = 1}},
        {"alpha.png", 0.01, {.of_kind[IMAGE_PNG] = 1}},
        {"interlaced.png", 0.01, {.of_kind[IMAGE_PNG] = 1}},
        {"truncated.jpg", 60, {.truncated = 1}}, /* accepted below */
    };
    struct decode_source png = load("png_named_jpeg.JPEG");
    struct bench reference, bench;

    start(&reference, "jpeg:size=40,view=evaluate");
    assert_int_equal(decode(&reference, &png, 0), 0);
    assert_int_equal(reference.decoder.figures.of_kind[IMAGE_PNG], 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct decode_source source = load(kinds[i].name);
        struct decode_figures expected = kinds[i].figures;
        start(&bench, "jpeg:size=40,view=evaluate,damaged=decode");
        assert_int_equal(decode(&bench, &source, 0), expected.truncated ? DECODE_DAMAGED : 0);
        double difference = mean_difference(bench.row, reference.row, 40 * 40 * 3);
        print_message("%s: differs by %.2f\n", kinds[i].name, difference);
        assert_true(difference < kinds[i].difference);
        expected.images = 1;
        expected.bytes = source.length;
        assert_memory_equal(&bench.decoder.figures, &expected, sizeof expected);
        stop(&bench);
        drop(&source);
    }
    stop(&reference);
    drop(&png);
}

/* An image truncated anywhere after its headers is refused, whatever rows the crop needs, or, on
 * request, decoded as far as possible. */
static void cut_images_are_told(void **unused)
{
    static const char *const names[] = {"yuv420.jpg", "progressive.jpg", "palette.png"};
    struct bench strict, lenient;

    start(&strict, "jpeg:size=8,view=train");
    start(&lenient, "jpeg:size=8,view=train,damaged=decode");
    uint64_t told = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct decode_source image = load(names[i]);
        const bool is_png = strstr(names[i], ".png") != NULL;
        for (uint64_t cut = 2; cut < 42; cut++, told++) {
            struct decode_source part = image;
            part.length -= cut;
            assert_refused(decode(&strict, &part, cut), -EBADMSG, "is cut short");
            int code = decode(&lenient, &part, cut);
            assert_true(code == DECODE_DAMAGED || (is_png && code == -EBADMSG));
        }
        drop(&image);
    }
    assert_int_equal(strict.decoder.figures.truncated, told);
    assert_int_equal(strict.decoder.figures.failed, told);
    assert_int_equal(lenient.decoder.figures.truncated, told);
    stop(&strict);
    stop(&lenient);
}

/* Its end marker is intact, its data are not. */
static void corrupt_images_are_told(void **unused)
{
    struct decode_source image = load("yuv420.jpg");
    uint8_t *copy = malloc(image.length);
    struct decode_source source = {.bytes = copy, .length = image.length};
    struct bench strict, lenient;

    memcpy(copy, image.bytes, image.length);
    copy[image.length / 2] = 0xff; /* a marker within the data */
    copy[image.length / 2 + 1] = 0xd9;
    start(&strict, "jpeg:size=8,view=evaluate,crop=1");
    start(&lenient, "jpeg:size=8,view=evaluate,crop=1,damaged=decode");
    assert_refused(decode(&strict, &source, 0), -EBADMSG, "premature end of data segment");
    assert_int_equal(strict.decoder.figures.corrupt, 1);
    assert_int_equal(strict.decoder.figures.failed, 1);
    assert_int_equal(decode(&lenient, &source, 0), DECODE_DAMAGED);
    assert_int_equal(lenient.decoder.figures.corrupt, 1);
    assert_int_equal(lenient.decoder.figures.failed, 0);
    stop(&strict);
    stop(&lenient);
    free(copy);
    drop(&image);
}

/* Remove the segments with this marker. */
static struct decode_source without(const struct decode_source *image, uint8_t marker)
{
    const uint8_t *from = image->bytes;
    uint8_t *to = malloc(image->length);
    size_t at = 2, count = 2;

    memcpy(to, from, 2);
    while (from[at + 1] != 0xda) {
        const size_t bytes = 2 + (size_t)(from[at + 2] << 8 | from[at + 3]);
        if (from[at + 1] != marker) {
            memcpy(to + count, from + at, bytes);
            count += bytes;
        }
        at += bytes;
    }
    memcpy(to + count, from + at, image->length - at);
    return (struct decode_source){.bytes = to, .length = count + image->length - at};
}

/* Files without tables: those of quantisers are not, those of Huffman codes are the standard's. */
static void tables_are_not_those_of_the_image_before(void **unused)
{
    static const char *const engines[] = {"jpeg:size=16,view=evaluate,engine=own",
                                          "jpeg:size=16,view=evaluate,engine=turbo"};
    struct decode_source image = load("yuv420.jpg"), before = load("large.jpg"),
                         progressive = load("progressive.jpg"),
                         no_quantisers = without(&image, 0xdb), no_codes = without(&image, 0xc4);
    struct bench bench;
    uint8_t row[16 * 16 * 3];

    for (int i = 0; i < 2; i++) {
        start(&bench, engines[i]);
        assert_int_equal(decode(&bench, &image, 0), 0);
        memcpy(row, bench.row, sizeof row);
        for (int j = 0; j < 2; j++) {
            assert_refused(decode(&bench, &no_quantisers, 0), -EBADMSG, "Quantization table");
            assert_int_equal(decode(&bench, &no_codes, 0), 0);
            assert_memory_equal(bench.row, row, sizeof row);
            assert_int_equal(decode(&bench, &before, 0), 0);
            assert_int_equal(decode(&bench, &progressive, 0), 0);
        }
        stop(&bench);
    }
    drop(&image);
    drop(&before);
    drop(&progressive);
    free((void *)(uintptr_t)no_quantisers.bytes);
    free((void *)(uintptr_t)no_codes.bytes);
}

/* YCCK, which Pillow cannot write: inks of a plain colour, and the expected colours. */
static void ycck_and_inks_without_adobe_marker(void **unused)
{
    static const uint8_t inks[4] = {200, 100, 50, 230};

    for (int adobe = 0; adobe < 2; adobe++) {
        struct jpeg_compress_struct jpeg;
        struct jpeg_error_mgr errors;
        unsigned char *bytes = NULL;
        unsigned long length = 0;
        uint8_t line[32 * 4], *row = line;
        struct bench bench;

        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_compress(&jpeg);
        jpeg_mem_dest(&jpeg, &bytes, &length);
        jpeg.image_width = jpeg.image_height = 32;
        jpeg.input_components = 4;
        jpeg.in_color_space = JCS_CMYK;
        jpeg_set_defaults(&jpeg);
        jpeg_set_colorspace(&jpeg, adobe ? JCS_YCCK : JCS_CMYK);
        jpeg.write_Adobe_marker = adobe;
        jpeg_set_quality(&jpeg, 100, TRUE);
        jpeg_start_compress(&jpeg, TRUE);
        for (size_t i = 0; i < sizeof line; i++)
            line[i] = inks[i % 4];
        for (int i = 0; i < 32; i++)
            jpeg_write_scanlines(&jpeg, &row, 1);
        jpeg_finish_compress(&jpeg);
        jpeg_destroy_compress(&jpeg);

        struct decode_source source = {.bytes = bytes, .length = length};
        start(&bench, "jpeg:size=8,view=evaluate");
        assert_int_equal(decode(&bench, &source, 0), 0);
        assert_int_equal(bench.decoder.figures.cmyk, 1);
        for (int i = 0; i < 8 * 8 * 3; i++) {
            int ink = inks[i % 3], black = inks[3];
            int light = adobe ? ink * black / 255 : (255 - ink) * (255 - black) / 255;
            assert_true(abs(bench.row[i] - light) <= 3);
        }
        stop(&bench);
        free(bytes);
    }
}

static void what_is_no_image_is_refused_with_a_reason(void **unused)
{
    struct decode_source image = load("yuv420.jpg"), png = load("palette.png");
    struct bench bench;

    start(&bench, "jpeg:size=16");
    struct decode_source source = {.bytes = "II*\0\x8\0", .length = 6};
    assert_refused(decode(&bench, &source, 0), -EBADMSG, "JPEG");
    source.length = 0;
    assert_int_equal(decode(&bench, &source, 0), -EBADMSG);
    source = png;
    source.length = 60;
    assert_refused(decode(&bench, &source, 0), -EBADMSG, "PNG");
    /* A header that claims 61680 x 61680 pixels costs no memory. */
    uint8_t *bytes = (uint8_t *)(uintptr_t)image.bytes;
    for (size_t i = 0; i + 9 < image.length; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) {
            memset(bytes + i + 5, 0xf0, 4);
            break;
        }
    assert_refused(decode(&bench, &image, 0), -EBADMSG, "61680 x 61680");
    assert_int_equal(bench.decoder.figures.failed, 4);
    stop(&bench);
    drop(&image);
    drop(&png);
}

/* Any damage ends in pixels or in a reason. The sanitizers find everything else. */
static void damaged_images_end_well(void **unused)
{
    struct random random = random_start(11);
    struct bench bench;
    uint64_t failed = 0;

    start(&bench, "jpeg:size=24,max-pixels=4m,damaged=decode");
    for (int i = 0; i < FIXTURES; i++) {
        struct decode_source image = load(fixtures[i]);
        uint8_t *copy = malloc(image.length);
        for (int round = 0; round < 250; round++) {
            struct decode_source source = {.bytes = copy, .length = image.length};
            memcpy(copy, image.bytes, image.length);
            for (uint64_t flips = 1 + random_below(&random, 4); flips; flips--) {
                /* Half of the changes are in the headers, where they have more effect. */
                uint64_t reach = round % 2 && image.length > 700 ? 700 : image.length;
                copy[random_below(&random, reach)] ^= (uint8_t)(1u << random_below(&random, 8));
            }
            if (round % 5 == 0)
                source.length = random_below(&random, image.length);
            int code = decode(&bench, &source, random_next(&random));
            assert_true(code == 0 || code == DECODE_DAMAGED || code == -EBADMSG || code == -ENOMEM);
            failed += code < 0;
        }
        free(copy);
        drop(&image);
    }
    assert_int_equal(bench.decoder.figures.failed, failed);
    assert_true(failed > 100 && bench.decoder.figures.truncated > 100 &&
                bench.decoder.figures.corrupt > 100);
    stop(&bench);
}

static void decoding_allocates_nothing(void **unused)
{
    struct decode_source images[FIXTURES];
    struct bench bench;

    if (!allocations_counted)
        skip();
    start(&bench, "jpeg:size=32,damaged=decode");
    for (int i = 0; i < FIXTURES; i++)
        images[i] = load(fixtures[i]);
    for (int i = 0; i < FIXTURES; i++)
        assert_true(decode(&bench, &images[i], 1) >= 0);
    uint64_t before = counter_get(&allocations);
    for (int round = 0; round < 20 * FIXTURES; round++)
        assert_true(decode(&bench, &images[round % FIXTURES], (uint64_t)round) >= 0);
    assert_int_equal(counter_get(&allocations), before);
    for (int i = 0; i < FIXTURES; i++)
        drop(&images[i]);
    stop(&bench);
}

/* A progressive image of one colour: few bytes, but coefficients for every pixel. */
static struct decode_source make_huge(uint32_t side)
{
    struct decode_source source = {.layout = SAMPLE_ENCODED};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t *row = calloc(side, 3), *bytes = NULL;
    unsigned long length = 0;

    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &length);
    jpeg.image_width = jpeg.image_height = side;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (uint32_t i = 0; i < side; i++)
        jpeg_write_scanlines(&jpeg, &row, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    source.bytes = bytes;
    source.length = length;
    return source;
}

/* Any number of threads decoding huge images stay within the limit, and report reaching it; memory
 * is released afterwards. */
static void huge_images_share_what_memory_there_is(void **unused)
{
    struct decode_source huge = make_huge(4000), small = load(fixtures[0]);
    struct bench bench;
    struct bump other;

    start(&bench, "jpeg:size=32");
    bump_limit_together(20 << 20);
    assert_int_equal(decode(&bench, &huge, 1), -ENOMEM); /* 3 bytes per pixel: 48 MB */
    assert_reason("being decoded need more than 20.00 MiB");
    assert_int_equal(decode(&bench, &small, 1), 0);
    bump_limit_together(100 << 20);
    assert_int_equal(decode(&bench, &huge, 1), 0);
    assert_int_equal(bump_open(&other, 4096, 1 << 30), 0);
    assert_null(bump_alloc(&other, 64 << 20)); /* the first keeps its block */
    assert_non_null(bump_alloc(&other, 30 << 20));
    bump_close(&other);
    stop(&bench);
    assert_int_equal(bump_open(&other, 4096, 1 << 30), 0);
    bump_limit_together(160 << 20);
    for (int i = 0; i < 3;
         i++) { /* all memory was released, and is again, except one block of the usual size */
        assert_non_null(bump_alloc(&other, 90 << 20));
        bump_reset(&other);
        assert_true(other.block_bytes <= BUMP_KEPT_MOST);
    }
    bump_close(&other);
    bump_limit_together(0);
    drop(&huge);
    drop(&small);
}

/* Whatever allocation of a first image fails, that is said, or the row is the same. */
static void an_image_without_memory(void **unused)
{
    for (int i = 0; allocations_counted && i <= FIXTURES; i++) {
        const char *name =
            i < FIXTURES ? fixtures[i] : "huge_interlaced.png"; /* with memory of its own */
        struct decode_source image = load(name);
        struct bench whole, bench;
        start(&whole, "jpeg:size=32,damaged=decode");
        const int wanted = decode(&whole, &image, 1);
        for (uint64_t refused = 1, met = 1; met; refused++) {
            start(&bench, "jpeg:size=32,damaged=decode");
            fail_clear();
            allocation_refused = counter_get(&allocations) + refused;
            const int code = decode(&bench, &image, 1);
            met = counter_get(&allocations) >= allocation_refused;
            allocation_refused = 0;
            if (code == -ENOMEM && *fail_reason())
                assert_true(met);
            else if (code != wanted ||
                     memcmp(bench.row, whole.row, bench.decoder.traits.row_bytes) != 0)
                fail_msg("%s: allocation %d: %d, not %d", name, (int)refused, code, wanted);
            stop(&bench);
        }
        stop(&whole);
        drop(&image);
    }
}

/* Debian's dataset-fashion-mnist: 28 x 28 grey bytes, stored raw. Unscaled they come back
 * unchanged, mirrored or not. */
static void fashion_mnist_comes_back(void **unused)
{
    gzFile file = gzopen("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz", "rb");
    uint8_t header[16], image[28 * 28];
    struct bench bench;

    if (!file) {
        print_message("dataset-fashion-mnist is not installed\n");
        skip();
    }
    start(&bench, "jpeg:size=28");
    assert_int_equal(gzread(file, header, sizeof header), sizeof header);
    for (uint64_t seed = 0; gzread(file, image, sizeof image) == sizeof image; seed++) {
        struct decode_source source = {.bytes = image,
                                       .length = sizeof image,
                                       .layout = SAMPLE_RAW_HWC,
                                       .width = 28,
                                       .height = 28,
                                       .channels = 1};
        struct view view = {.kind = VIEW_TRAIN, .seed = seed};
        struct view_box box = view_box(&view, &view_rules_imagenet, 28, 28);
        assert_int_equal(decode(&bench, &source, seed), 0);
        if (box.width < 28 || box.height < 28)
            continue;
        for (int i = 0; i < 28 * 28; i++)
            assert_int_equal(bench.row[3 * i + 1],
                             image[box.mirror ? i / 28 * 28 + 27 - i % 28 : i]);
    }
    assert_int_equal(bench.decoder.figures.grayscale, 10000);
    assert_int_equal(bench.decoder.figures.failed, 0);
    stop(&bench);
    gzclose(file);
}

/* Mean differences, signed and absolute, from the exact box of the whole image. */
static void compare_photograph(const char *path, const char *text, double most, double bias)
{
    struct decode_source source = {.layout = SAMPLE_ENCODED};
    static double exact[96 * 96 * 3];
    double sum = 0, signs = 0;
    uint32_t width, height;
    struct bench bench;
    char *bytes;

    start(&bench, text);
    assert_int_equal(file_load(path, 64 << 20, &bytes, &source.length), 0);
    source.bytes = bytes;
    uint8_t *image = decode_whole(&source, true, &width, &height);
    struct view view = {.kind = VIEW_EVALUATE};
    struct view_box crop = view_box(&view, &view_rules_imagenet, width, height);
    struct resize_box box = {crop.x, crop.y, crop.width, crop.height,
                             width,  height, false,      RESIZE_TRIANGLE};
    resize_reference(image, &box, 96, exact);
    assert_int_equal(decode(&bench, &source, 0), 0);
    for (int i = 0; i < 96 * 96 * 3; i++) {
        sum += fabs(bench.row[i] - exact[i]) / (96 * 96 * 3);
        signs += (bench.row[i] - exact[i]) / (96 * 96 * 3);
    }
    print_message("%s, %s: differs by %.2f levels, mean %.3f\n", path, text, sum, signs);
    assert_true(sum < most && fabs(signs) < bias);
    free(image);
    free(bytes);
    stop(&bench);
}

/* Photographs from Debian's mate-backgrounds. Skipping changes nothing; shrinking in the DCT is a
 * sharper filter, which shows in fine texture but shifts no mean. */
static void photographs_look_the_same(void **unused)
{
    glob_t found;

    if (glob("/usr/share/backgrounds/mate/nature/[A-D]*.jpg", 0, NULL, &found)) {
        print_message("mate-backgrounds is not installed\n");
        skip();
    }
    for (size_t i = 0; i < found.gl_pathc && i < 3; i++) {
        compare_photograph(found.gl_pathv[i], "jpeg:view=evaluate,size=96,scale=none", 0.4, 0.1);
        compare_photograph(found.gl_pathv[i], "jpeg:view=evaluate,size=96", 4, 0.3);
    }
    globfree(&found);
}

/* The same rows, figures and verdicts, whoever decodes. */
static void compare_engines(const char *own_choice, const char *turbo_choice)
{
    struct bench own, turbo;

    start(&own, own_choice);
    start(&turbo, turbo_choice);
    for (int i = 0; i < FIXTURES; i++) {
        struct decode_source source = load(fixtures[i]);
        uint8_t *bytes = (void *)(uintptr_t)source.bytes;
        for (uint64_t seed = 0; seed < 40; seed++) {
            /* From the 20th on, damaged: each a bit more. */
            if (seed == 20)
                bytes[source.length - 1] ^= 0x10; /* the end marker is another */
            if (seed > 20)
                bytes[random_hash(seed, (uint64_t)i, 0) % source.length] ^= 0x10;
            const int expected = decode(&turbo, &source, seed);
            assert_int_equal(decode(&own, &source, seed), expected);
            if (expected == 0)
                assert_memory_equal(own.row, turbo.row, turbo.decoder.traits.row_bytes);
        }
        drop(&source);
    }
    assert_memory_equal(&own.decoder.figures, &turbo.decoder.figures, sizeof own.decoder.figures);
    stop(&own);
    stop(&turbo);
}

static void engines_agree(void **unused)
{
    compare_engines("jpeg:size=40,scale=none,engine=own", "jpeg:size=40,scale=none,engine=turbo");
    compare_engines("jpeg:size=9,engine=own", "jpeg:size=9,engine=turbo"); /* shrunk in the DCT */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_gives_the_pixels_of_pillow),
        cmocka_unit_test(skipping_changes_no_pixel),
        cmocka_unit_test(every_kind_of_image_is_decoded_and_counted),
        cmocka_unit_test(ycck_and_inks_without_adobe_marker),
        cmocka_unit_test(what_is_no_image_is_refused_with_a_reason),
        cmocka_unit_test(cut_images_are_told),
        cmocka_unit_test(corrupt_images_are_told),
        cmocka_unit_test(tables_are_not_those_of_the_image_before),
        cmocka_unit_test(damaged_images_end_well),
        cmocka_unit_test(huge_images_share_what_memory_there_is),
        cmocka_unit_test(fashion_mnist_comes_back),
        cmocka_unit_test(photographs_look_the_same),
        cmocka_unit_test(decoding_allocates_nothing),
        cmocka_unit_test(an_image_without_memory),
        cmocka_unit_test(engines_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
