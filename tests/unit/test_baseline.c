/* SPDX-License-Identifier: Apache-2.0
 *
 * The baseline decoder against libjpeg-turbo: the same pixels, bit for bit, of synthetic images in
 * all samplings, of any region, at each level of CPU; and of mutated images, unless it leaves them
 * to libjpeg. Half of them are entered at a point. IOBENCH_LONG=1: a million images.
 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "decode/baseline/baseline.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

enum { SIDE_MAX = 200, MUTATIONS = 4, POINTS_MAX = SIDE_MAX / 8 };

struct judge {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    uint8_t pixels[SIDE_MAX * SIDE_MAX * 4];
};

struct made {
    unsigned char *bytes;
    unsigned long count;
    uint32_t width, height;
};

static struct random dice;
static bool is_progressive; /* the image made last */

static uint32_t below(uint32_t limit)
{
    return (uint32_t)random_below(&dice, limit);
}

static void on_error(j_common_ptr jpeg)
{
    longjmp(((struct judge *)(void *)jpeg)->escape, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    jpeg->err->num_warnings += level < 0;
}

/* Decode rows up to `end`. Returns whether libjpeg found nothing wrong with them. */
static bool judge_decode(struct judge *judge, const struct made *made, uint32_t eighths,
                         uint32_t end)
{
    struct jpeg_decompress_struct *jpeg = &judge->jpeg;

    jpeg->err = jpeg_std_error(&judge->errors);
    judge->errors.error_exit = on_error;
    judge->errors.emit_message = on_message;
    if (setjmp(judge->escape)) {
        jpeg_destroy_decompress(jpeg);
        return false;
    }
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, made->bytes, made->count);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = JCS_EXT_RGBX;
    jpeg->scale_num = eighths;
    jpeg->scale_denom = 8;
    if (jpeg->image_width > SIDE_MAX || jpeg->image_height > SIDE_MAX) {
        jpeg_destroy_decompress(jpeg);
        return false;
    }
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < end) {
        uint8_t *row = judge->pixels + jpeg->output_scanline * jpeg->output_width * 4;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    const bool good = judge->errors.num_warnings == 0;
    jpeg_destroy_decompress(jpeg);
    return good;
}

/* Noise, gradients or a constant, with edges that saturate. */
static void paint(uint8_t *pixels, uint32_t count)
{
    const uint32_t kind = below(5), base = below(2) ? below(256) : 255 * below(2),
                   step = 1 + below(20);

    for (uint32_t i = 0; i < count; i++)
        pixels[i] = (uint8_t)(kind == 0   ? below(256)
                              : kind == 1 ? base + i / step
                              : kind == 2 ? (below(20) ? base : below(256))
                              : kind == 3 ? base
                                          : (i / step % 2) * 255);
}

static void set_sampling(struct jpeg_compress_struct *jpeg)
{
    static const uint8_t samplings[][3] = {
        {0x22, 0x11, 0x11}, {0x22, 0x11, 0x11}, {0x21, 0x11, 0x11}, {0x11, 0x11, 0x11},
        {0x12, 0x11, 0x11}, {0x41, 0x11, 0x11}, {0x42, 0x11, 0x11}, {0x22, 0x21, 0x12},
        {0x11, 0x22, 0x11}, {0x22, 0x22, 0x11}, {0x14, 0x11, 0x11}, {0x31, 0x11, 0x11},
        {0x21, 0x21, 0x11}, {0x24, 0x11, 0x11}, {0x12, 0x21, 0x11}, {0x13, 0x11, 0x13},
        {0x22, 0x11, 0x12}, {0x22, 0x12, 0x11}};
    const uint8_t *sampling = samplings[below(sizeof samplings / sizeof *samplings)];

    for (int i = 0; i < jpeg->num_components; i++) {
        jpeg->comp_info[i].h_samp_factor = sampling[i] >> 4;
        jpeg->comp_info[i].v_samp_factor = sampling[i] & 15;
    }
}

/* All bits of all coefficients, in scans at random: by component, bands of one to all, refined or
 * not. */
static void set_scans(struct jpeg_compress_struct *jpeg)
{
    static jpeg_scan_info scans[1 + 3 * 4 * 64];
    const int components = jpeg->num_components, dc_low = (int)below(3);
    int count = 0;

    const bool together = below(2);
    for (int i = 0; i < (together ? 1 : components); i++)
        scans[count++] =
            (jpeg_scan_info){together ? components : 1, {together ? 0 : i, 1, 2}, 0, 0, 0, dc_low};
    for (int i = 0; i < components; i++)
        for (int last, first = 1; first < 64; first = last + 1) {
            int low = (int)below(3);
            last = below(2) ? 63 : first + (int)below((uint32_t)(64 - first));
            scans[count++] = (jpeg_scan_info){1, {i}, first, last, 0, low};
            for (; low > 0; low--)
                scans[count++] = (jpeg_scan_info){1, {i}, first, last, low, low - 1};
        }
    for (int low = dc_low; low > 0; low--) /* all at once, or one by one */
        if (below(2))
            scans[count++] = (jpeg_scan_info){components, {0, 1, 2}, 0, 0, low, low - 1};
        else
            for (int i = 0; i < components; i++)
                scans[count++] = (jpeg_scan_info){1, {i}, 0, 0, low, low - 1};
    jpeg->scan_info = scans;
    jpeg->num_scans = count;
}

static struct made make(void)
{
    static uint8_t row[SIDE_MAX * 3];
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct made made = {.width = 1 + below(below(2) ? SIDE_MAX : 40),
                        .height = 1 + below(below(2) ? 80 : 20)};
    const bool gray = below(8) == 0;
    uint8_t *line = row;

    jpeg.err = jpeg_std_error(&errors);
    errors.emit_message = on_message; /* quiet */
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &made.bytes, &made.count);
    jpeg.image_width = made.width;
    jpeg.image_height = made.height;
    jpeg.input_components = gray ? 1 : 3;
    jpeg.in_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    set_sampling(&jpeg);
    jpeg_set_quality(&jpeg, 1 + (int)below(100), below(4) != 0);
    jpeg.optimize_coding = below(2) == 0;
    if (below(3) == 0)
        jpeg.restart_interval = 1 + below(20);
    jpeg.write_JFIF_header = below(2) == 0;
    is_progressive = below(4) == 0;
    if (is_progressive && below(2))
        jpeg_simple_progression(&jpeg);
    else if (is_progressive)
        set_scans(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        paint(row, made.width * 3);
        jpeg_write_scanlines(&jpeg, &line, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return made;
}

static uint64_t entered, noted;

/* What is noted of one image. */
struct notes {
    uint32_t spacing; /* 0: nothing */
    struct baseline_point points[POINTS_MAX];
};

/* Without a row of pixels. Returns 0 or BASELINE_OTHER. */
static int find_points(struct baseline *decoder, void *memory, struct notes *notes)
{
    baseline_note_points(decoder, notes->spacing, notes->points);
    return baseline_start(decoder, memory) ? BASELINE_OTHER : baseline_finish_points(decoder);
}

/* Start at the top, or with some of the image's points. */
static int start(struct baseline *decoder, const struct baseline_image *image,
                 const struct baseline_region *region, void *memory, struct notes *notes)
{
    const uint32_t way = below(4), spacing = 1 + below(3);
    uint32_t count = 0;

    *notes = (struct notes){.spacing = way == 0 ? 0 : spacing};
    if (way < 2) {
        baseline_note_points(decoder, notes->spacing, notes->points);
        return baseline_start(decoder, memory);
    }
    const int code = find_points(decoder, memory, notes);
    baseline_select(decoder, region);
    if (code)
        return baseline_start(decoder, memory);
    notes->spacing = 0;
    const uint32_t last = baseline_last_entry(decoder), chosen = 1 + below(4);
    assert_true(last < image->mcu_rows);
    for (uint32_t i = 0; (i + 1) * spacing < image->mcu_rows; i++) {
        assert_int_equal(notes->points[i].row, (i + 1) * spacing);
        entered += notes->points[i].row <= last;
        if (below(4) < chosen)
            notes->points[count++] = notes->points[i];
    }
    return baseline_start_at(decoder, memory, notes->points, count);
}

/* Points noted while the region was decoded are those of the image, and none if it is damaged. */
static void check_notes(struct baseline *decoder, const struct made *made, struct notes *notes)
{
    const struct baseline_region corner = {0, 0, 1, 1};
    struct notes found = {.spacing = notes->spacing};
    struct baseline_image image;

    if (notes->spacing == 0)
        return;
    const int code = baseline_finish_points(decoder);
    assert_int_equal(baseline_open(decoder, made->bytes, made->count, &image), 0);
    void *memory = aligned_alloc(64, baseline_select(decoder, &corner));
    assert_int_equal(find_points(decoder, memory, &found), code);
    if (code == 0)
        assert_memory_equal(notes, &found, sizeof found);
    noted += code == 0 && image.mcu_rows > notes->spacing;
    free(memory);
}

/* Returns 0 if all rows of the region were decoded; their pixels are then in `pixels`. */
static int decode(struct baseline *decoder, const struct made *made, uint32_t eighths,
                  struct baseline_region *region, uint8_t *pixels)
{
    struct baseline_image image;
    int code;

    /* A copy of exact size, for sanitizers. */
    uint8_t *copy = malloc(made->count ? made->count : 1);
    memcpy(copy, made->bytes, made->count);
    code = baseline_open(decoder, copy, made->count, &image);
    if (code || image.width > SIDE_MAX || image.height > SIDE_MAX ||
        (code = baseline_scale(decoder, eighths, &image))) {
        free(copy);
        return BASELINE_OTHER;
    }
    region->x = below(3) ? below(image.width) : 0;
    region->y = below(3) ? below(image.height) : 0;
    region->width = below(3) ? 1 + below(image.width - region->x) : image.width - region->x;
    region->height = below(3) ? 1 + below(image.height - region->y) : image.height - region->y;
    const size_t bytes = baseline_select(decoder, region);
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0xa5, bytes);
    struct notes notes;
    code = start(decoder, &image, region, memory, &notes);
    for (uint32_t y = 0; y < region->height && code == 0; y++)
        code = baseline_read(decoder, pixels + (size_t)y * region->width * 4);
    if (code == 0)
        check_notes(decoder, made, &notes);
    free(memory);
    free(copy);
    return code;
}

static void assert_same_pixels(const struct judge *judge, const struct baseline_region *region,
                               const uint8_t *pixels)
{
    const size_t stride = (size_t)judge->jpeg.output_width * 4;

    for (uint32_t y = 0; y < region->height; y++)
        if (memcmp(pixels + (size_t)y * region->width * 4,
                   judge->pixels + (region->y + y) * stride + (size_t)region->x * 4,
                   (size_t)region->width * 4))
            fail_msg("row %u of region %u %u %u %u of %u x %u, sampling %u%u", y, region->x,
                     region->y, region->width, region->height, judge->jpeg.output_width,
                     judge->jpeg.output_height, judge->jpeg.max_h_samp_factor,
                     judge->jpeg.max_v_samp_factor);
}

static uint32_t images(void)
{
    const char *text = getenv("IOBENCH_LONG");

    return text && *text == '1' ? 1000000 / (MUTATIONS + 1) : 1500;
}

/* Return the offset of a marker after `from`, or 0. */
static size_t find_marker(const struct made *made, uint8_t first, uint8_t last, size_t from)
{
    for (size_t i = from; i + 4 < made->count; i++)
        if (made->bytes[i] == 0xff && made->bytes[i + 1] >= first && made->bytes[i + 1] <= last)
            return i;
    return 0;
}

/* Insert bytes. */
static void insert(struct made *made, size_t at, const unsigned char *bytes, size_t count)
{
    unsigned char *more = malloc(made->count + count);

    memcpy(more, made->bytes, at);
    memcpy(more + at, bytes, count);
    memcpy(more + at + count, made->bytes + at, made->count - at);
    free(made->bytes);
    made->bytes = more;
    made->count += count;
}

/* Of a progressive image: leave a scan out, repeat it, or change quantisers between scans. */
static void mutate_scans(struct made *made)
{
    static unsigned char quantisers[69] = {0xff, 0xdb, 0, 67};
    const uint32_t skipped = below(below(2) ? 3 : 12);
    size_t at = find_marker(made, 0xda, 0xda, 0), end;

    for (uint32_t i = 0; i < skipped && (end = find_marker(made, 0xda, 0xda, at + 1)); i++)
        at = end;
    end = find_marker(made, 0xc0, 0xfe, at + 1);
    while (end && made->bytes[end + 1] >= 0xd0 && made->bytes[end + 1] <= 0xd7)
        end = find_marker(made, 0xc0, 0xfe, end + 1);
    end = end ? end : made->count - 2; /* the last scan */
    const size_t count = end - at;
    const uint32_t kind = below(3);
    if (kind == 0) {
        memmove(made->bytes + at, made->bytes + end, made->count - end);
        made->count -= count;
    } else if (kind == 1) {
        unsigned char *scan = malloc(count);
        memcpy(scan, made->bytes + at, count);
        insert(made, end, scan, count);
        free(scan);
    } else {
        quantisers[4] = (unsigned char)below(2);
        for (size_t i = 5; i < sizeof quantisers; i++)
            quantisers[i] = (unsigned char)(1 + below(50));
        insert(made, at, quantisers, sizeof quantisers);
    }
}

static void mutate(struct made *made)
{
    const uint32_t kind = below(8), count = kind < 5 ? 1 + below(3) : 0;
    size_t at;

    if (is_progressive && below(2)) {
        mutate_scans(made);
        return;
    }

    if (kind == 5) /* without an end */
        made->count -= made->count > 100 ? 2 + below(3) * below(20) : 0;
    if (kind == 6 && (at = find_marker(made, 0xd0, 0xd7, below(2000)))) /* RST out of order */
        made->bytes[at + 1] = (uint8_t)(0xd0 + below(8));
    if (kind == 7 && (at = find_marker(made, 0xdb, 0xdb, 0))) /* coarse: DC values overflow */
        made->bytes[at + 5] = 255;
    for (uint32_t i = 0; i < count; i++) {
        at = below((uint32_t)(below(3) || made->count < 700 ? made->count : 700));
        made->bytes[at] = (uint8_t)(below(2) ? below(256) : made->bytes[at] ^ 1U << below(8));
    }
}

/* Sums beyond 16 bits, which damage brings, are those of libjpeg-turbo's code for x86, as
 * everywhere here; its code for other CPUs has others. */
#ifdef __x86_64__
static const bool damage_has_one_result = true;
#else
static const bool damage_has_one_result = false;
#endif

/* Levels from plain C to the best of this machine take turns. */
static void run(bool mutates)
{
    static struct judge judge;
    static uint8_t pixels[SIDE_MAX * SIDE_MAX * 4];
    struct baseline_region region;
    struct baseline *decoders[3];
    uint32_t accepted = 0, total = 0;

    entered = noted = 0;
    for (int i = 0; i < 3; i++) {
        baseline_limit_level(i);
        decoders[i] = baseline_create();
        assert_non_null(decoders[i]);
    }
    for (uint32_t i = 0; i < images(); i++) {
        dice = random_start(i + (mutates ? 1000000 : 0));
        struct made made = make();
        for (int j = 0; j < (mutates ? MUTATIONS : 1); j++, total++) {
            if (mutates)
                mutate(&made);
            const uint32_t eighths = below(2) ? 8 : 1U << below(3);
            const int code = decode(decoders[total % 3], &made, eighths, &region, pixels);
            accepted += code == 0;
            if (!mutates)
                assert_int_equal(code, 0);
            if (code)
                continue;
            assert_true(judge_decode(&judge, &made, eighths, region.y + region.height));
            if (!mutates || damage_has_one_result)
                assert_same_pixels(&judge, &region, pixels);
        }
        free(made.bytes);
    }
    for (int i = 0; i < 3; i++)
        baseline_destroy(decoders[i]);
    print_message("%u of %u images decoded, %llu entered, points of %llu noted\n", accepted, total,
                  (unsigned long long)entered, (unsigned long long)noted);
    assert_true(entered > total / 200 && noted > total / 200);
    assert_true(accepted > 0 && (!mutates || accepted < total));
}

static void pixels_equal_those_of_libjpeg(void **unused)
{
    run(false);
}

static void mutated_images_equal_or_are_left_to_libjpeg(void **unused)
{
    run(true);
}

/* Wrong points: no crash, no endless loop, no read outside the image; points that cannot be are
 * refused. */
static void wrong_points_do_no_harm(void **unused)
{
    static uint8_t pixels[SIDE_MAX * SIDE_MAX * 4];
    struct baseline_image image;

    for (uint32_t i = 0; i < images(); i++) {
        dice = random_start(2000000 + i);
        struct made made = make();
        struct baseline *decoder = baseline_create();
        uint8_t *copy = malloc(made.count);
        memcpy(copy, made.bytes, made.count);
        assert_int_equal(baseline_open(decoder, copy, made.count, &image), 0);
        const uint32_t y = below(image.height);
        const struct baseline_region region = {0, y, 1 + below(image.width), image.height - y};
        void *memory = aligned_alloc(64, baseline_select(decoder, &region));
        struct baseline_point points[3];
        const uint32_t count = below(4);
        bool ascend = true;
        for (uint32_t j = 0; j < count; j++) {
            const struct baseline_point before =
                j ? points[j - 1]
                  : (struct baseline_point){.row = 0, .bit = image.header_bytes * 8};
            points[j] = (struct baseline_point){
                .row = below(8) ? before.row + 1 + below(3) : below(before.row + 1),
                .bit = below(8) ? before.bit + below(999) : below((uint32_t)made.count * 8 + 64),
                .dc = {(uint16_t)below(65536), (uint16_t)below(65536), 7}};
            ascend = ascend && points[j].row > before.row && points[j].bit >= before.bit &&
                     points[j].bit / 8 < made.count;
        }
        int code = baseline_start_at(decoder, memory, points, count);
        if (!ascend)
            assert_int_equal(code, BASELINE_OTHER);
        for (uint32_t j = 0; code == 0 && j < region.height; j++)
            code = baseline_read(decoder, pixels);
        points[0] = (struct baseline_point){.row = 0, .bit = (uint64_t)image.header_bytes * 8};
        assert_int_equal(baseline_start_at(decoder, memory, points, 1), BASELINE_OTHER);
        baseline_destroy(decoder);
        free(memory);
        free(copy);
        free(made.bytes);
    }
}

/* Their coefficients could be more bytes than 32 bits count. */
static void huge_progressive_images_are_left_to_libjpeg(void **unused)
{
    struct baseline *decoder = baseline_create();
    struct baseline_image image;
    struct made made;
    size_t at;

    dice = random_start(1);
    for (made = make(); !is_progressive; made = make())
        free(made.bytes);
    assert_true((at = find_marker(&made, 0xc2, 0xc2, 0)));
    assert_int_equal(baseline_open(decoder, made.bytes, made.count, &image), 0);
    memcpy(made.bytes + at + 5, (const uint8_t[]){0x40, 0, 0x40, 1}, 4); /* 2^28 pixels, and more */
    assert_int_equal(baseline_open(decoder, made.bytes, made.count, &image), BASELINE_OTHER);
    made.bytes[at + 8] = 0;
    assert_int_equal(baseline_open(decoder, made.bytes, made.count, &image), 0);
    free(made.bytes);
    baseline_destroy(decoder);
}

/* ---- one image by hand ---- */

struct writer {
    uint8_t bytes[8192];
    size_t count;
    uint32_t bits, pending; /* not yet a byte */
};

static void put_bits(struct writer *writer, uint32_t value, uint32_t count)
{
    writer->pending = writer->pending << count | value;
    for (writer->bits += count; writer->bits >= 8; writer->bits -= 8) {
        const uint8_t byte = (uint8_t)(writer->pending >> (writer->bits - 8));
        writer->bytes[writer->count++] = byte;
        if (byte == 0xff)
            writer->bytes[writer->count++] = 0;
    }
}

static void put(struct writer *writer, const uint8_t *bytes, size_t count)
{
    memcpy(writer->bytes + writer->count, bytes, count);
    writer->count += count;
}

/* A column of blocks full of values of 10 bits, each with a code of 10 bits: by tables of so many
 * bits, three look-ups could take more than a refill has. Their DC codes, of 9 bits, differ in the
 * last one. */
static struct made make_long_values(struct writer *writer)
{
    enum { BLOCKS = 20, SIZE = 10, CODE = 1 << 8 };
    static const uint8_t quantisers[] = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
    static const uint8_t header[] = {
        0xff, 0xc0, 0, 11, 8, 0, BLOCKS * 8, 0, 8, 1, 1, 0x11, 0, /* gray */
        /* DC: 111111100 is followed by 3 bits, the next two codes by 2 and 1. AC: 00 ends the
         * block, 0100000000 is followed by a value. */
        0xff, 0xc4, 0, 29, 0x00, 1, 1, 1, 1, 1, 1, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 7, 8,
        9, 3, 2, 1, 0xff, 0xc4, 0, 21, 0x10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        SIZE, 0xff, 0xda, 0, 8, 1, 1, 0x00, 0, 63, 0};

    put(writer, quantisers, sizeof quantisers);
    memset(writer->bytes + writer->count, 1, 64);
    writer->count += 64;
    put(writer, header, sizeof header);
    for (int i = 0; i < BLOCKS; i++) {
        const uint32_t dc_size = 1 + below(3);
        put_bits(writer, 0x1fc + 3 - dc_size, 9);
        put_bits(writer, below(1 << dc_size), dc_size);
        for (int k = 1; k < 64; k++) {
            put_bits(writer, CODE, SIZE);
            put_bits(writer, below(1 << SIZE), SIZE);
        }
    }
    put_bits(writer, 0x7f, 7);
    put(writer, (const uint8_t[]){0xff, 0xd9}, 2);
    return (struct made){writer->bytes, writer->count, 8, BLOCKS * 8};
}

static void long_values_are_stepped_over(void **unused)
{
    static struct judge judge;
    static struct writer writer;
    static uint8_t pixels[SIDE_MAX * 8 * 4];

    dice = random_start(3);
    const struct made made = make_long_values(&writer);
    for (int level = 0; level < 3; level++) {
        baseline_limit_level(level);
        struct baseline *decoder = baseline_create();
        for (uint32_t i = 0; i < 40; i++) {
            struct baseline_region region;
            assert_int_equal(decode(decoder, &made, 1U << i % 4, &region, pixels), 0);
            assert_true(judge_decode(&judge, &made, 1U << i % 4, region.y + region.height));
            assert_same_pixels(&judge, &region, pixels);
        }
        baseline_destroy(decoder);
    }
}

/* Any 0xff before a marker are filling; they are none at the end of the file, nor before a zero. */
static void filling_is_no_marker(void **unused)
{
    static const struct {
        uint8_t bytes[4];
        uint32_t count;
        bool ends;
    } ends[] = {{{0xff, 0xd9}, 2, true},
                {{0xff, 0xff, 0xff, 0xd9}, 4, true},
                {{0xff, 0xff}, 2, false},
                {{0xff, 0xff, 0xff}, 3, false},
                {{0xff, 0xff, 0x00}, 3, false}};
    static struct judge judge;
    static struct writer writer;
    static uint8_t pixels[SIDE_MAX * 8 * 4];
    struct baseline_region region;

    dice = random_start(4);
    struct made made = make_long_values(&writer);
    const size_t data = made.count - 2;
    struct baseline *decoder = baseline_create();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        memcpy(writer.bytes + data, ends[i].bytes, ends[i].count);
        made.count = data + ends[i].count;
        assert_int_equal(decode(decoder, &made, 8, &region, pixels) == 0, ends[i].ends);
        assert_true(judge_decode(&judge, &made, 8, made.height) || !ends[i].ends);
    }
    baseline_destroy(decoder);
}

static void other_scales_are_refused(void **unused)
{
    struct baseline *decoder = baseline_create();
    struct baseline_image image;

    dice = random_start(1);
    struct made made = make();
    assert_int_equal(baseline_open(decoder, made.bytes, made.count, &image), 0);
    for (uint32_t eighths = 0; eighths < 20; eighths++)
        assert_int_equal(baseline_scale(decoder, eighths, &image) == 0,
                         eighths == 1 || eighths == 2 || eighths == 4 || eighths == 8);
    baseline_destroy(decoder);
    free(made.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_scales_are_refused),
        cmocka_unit_test(long_values_are_stepped_over),
        cmocka_unit_test(filling_is_no_marker),
        cmocka_unit_test(pixels_equal_those_of_libjpeg),
        cmocka_unit_test(mutated_images_equal_or_are_left_to_libjpeg),
        cmocka_unit_test(wrong_points_do_no_harm),
        cmocka_unit_test(huge_progressive_images_are_left_to_libjpeg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
