/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a JPEG: all levels of the baseline decoder agree, and what they accept libjpeg-turbo
 * decodes to the same pixels, without a warning. Any bits as an entry point: all levels agree. */
#include "tests/fuzz/fuzz.h"

#include "decode/baseline/baseline.h"

#include <setjmp.h>

#include <jpeglib.h>

enum { LEVELS = 3, PIXELS_MAX = 1 << 16 };

struct fuzz_judge {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
};

static uint8_t pixels[LEVELS][PIXELS_MAX * 4], expected[PIXELS_MAX * 4];

static void on_error(j_common_ptr jpeg)
{
    longjmp(((struct fuzz_judge *)(void *)jpeg)->escape, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    jpeg->err->num_warnings += level < 0;
}

/* Also by the last bytes: 8, 4, 2 or 1. */
static uint32_t choose_scale(const uint8_t *bytes, size_t count)
{
    return count < 9 ? 8 : 8U >> (bytes[count - 9] & 3);
}

/* Decode rows up to `end`. Returns whether libjpeg found nothing wrong with them. */
static bool judge_decode(const uint8_t *bytes, size_t count, uint32_t eighths, uint32_t end)
{
    static struct fuzz_judge judge;
    struct jpeg_decompress_struct *jpeg = &judge.jpeg;

    jpeg->err = jpeg_std_error(&judge.errors);
    judge.errors.error_exit = on_error;
    judge.errors.emit_message = on_message;
    if (setjmp(judge.escape)) {
        jpeg_destroy_decompress(jpeg);
        return false;
    }
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, bytes, count);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = JCS_EXT_RGBX;
    jpeg->scale_num = eighths;
    jpeg->scale_denom = 8;
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < end) {
        uint8_t *row = expected + (size_t)jpeg->output_scanline * jpeg->output_width * 4;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    const bool good = judge.errors.num_warnings == 0;
    jpeg_destroy_decompress(jpeg);
    return good;
}

/* The last bytes select the region, so the fuzzer finds crops by itself. */
static struct baseline_region choose(const struct baseline_image *image, const uint8_t *bytes,
                                     size_t count)
{
    uint16_t dice[4] = {0};

    if (count >= sizeof dice)
        memcpy(dice, bytes + count - sizeof dice, sizeof dice);
    struct baseline_region region = {.x = dice[0] % image->width, .y = dice[1] % image->height};
    region.width = 1 + dice[2] % (image->width - region.x);
    region.height = 1 + dice[3] % (image->height - region.y);
    return region;
}

/* The bytes after a first marker select two points, usually wrong ones. */
static int enter(struct baseline *decoder, const uint8_t *bytes, size_t count, void *memory)
{
    static struct baseline_point points[2]; /* stay until the last row is read */
    struct {
        uint32_t row, bit;
        uint16_t dc[3], rows, bits;
    } dice = {0};

    if (count >= sizeof dice + 6)
        memcpy(&dice, bytes + 6, sizeof dice);
    const uint32_t rows = baseline_last_entry(decoder);
    points[0].row = dice.row % (rows + 1);
    points[0].bit = dice.bit % (count * 8 + 8);
    memcpy(points[0].dc, dice.dc, sizeof dice.dc);
    points[1] = points[0];
    points[1].row += dice.rows % 4;
    points[1].bit += dice.bits;
    return baseline_start_at(decoder, memory, points, 1 + dice.rows / 4 % 2);
}

/* Returns 0 if all rows of the region were decoded. */
static int decode(struct baseline *decoder, const uint8_t *bytes, size_t count, bool enters,
                  struct baseline_image *image, struct baseline_region *region, uint8_t *rows)
{
    int code = baseline_open(decoder, bytes, count, image);

    if (code || (size_t)image->width * image->height * (1 + image->scans / 16) > PIXELS_MAX ||
        baseline_scale(decoder, choose_scale(bytes, count), image))
        return BASELINE_OTHER;
    *region = choose(image, bytes, count);
    const size_t size = baseline_select(decoder, region);
    void *memory = aligned_alloc(64, size);
    FUZZ_CHECK(memory);
    memset(memory, 0xa5, size);
    code = enters ? enter(decoder, bytes, count, memory) : baseline_start(decoder, memory);
    for (uint32_t y = 0; y < region->height && code == 0; y++)
        code = baseline_read(decoder, rows + (size_t)y * region->width * 4);
    free(memory);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct baseline *decoders[LEVELS];
    struct baseline_image image;
    struct baseline_region region;
    int codes[LEVELS];

    for (int i = 0; i < LEVELS && !decoders[i]; i++) {
        baseline_limit_level(i);
        FUZZ_CHECK((decoders[i] = baseline_create()));
    }
    uint8_t *copy = fuzz_exact(bytes, count);
    for (int i = 0; i < LEVELS; i++)
        codes[i] = decode(decoders[i], copy, count, false, &image, &region, pixels[i]);
    for (int i = 1; i < LEVELS; i++)
        FUZZ_CHECK(codes[i] == codes[0]);
    if (codes[0] == 0) {
        const size_t stride = (size_t)region.width * 4;
        FUZZ_CHECK(judge_decode(copy, count, choose_scale(copy, count), region.y + region.height));
        for (uint32_t y = 0; y < region.height; y++) {
            const uint8_t *row = expected + ((size_t)(region.y + y) * image.width + region.x) * 4;
            for (int i = 0; i < LEVELS; i++)
                FUZZ_CHECK(memcmp(pixels[i] + y * stride, row, stride) == 0);
        }
    }
    for (int i = 0; i < LEVELS; i++)
        codes[i] = decode(decoders[i], copy, count, true, &image, &region, pixels[i]);
    for (int i = 1; i < LEVELS; i++)
        FUZZ_CHECK(
            codes[i] == codes[0] &&
            (codes[0] || !memcmp(pixels[i], pixels[0], (size_t)region.width * region.height * 4)));
    free(copy);
    return 0;
}
