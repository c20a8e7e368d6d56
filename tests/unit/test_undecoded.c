/* SPDX-License-Identifier: Apache-2.0
 *
 * BMP and GIF images: read, counted, checked for their end, and not decoded.
 */
#include "tests/unit/pictures.h"

#include "base/image_header.h"
#include "base/sample.h"
#include "base/bytes.h"

static uint8_t file[PICTURE_MOST];

struct form {
    unsigned bits, header, compression, colours;
    bool top_down;
};

static const struct form forms[] = {
    {.bits = 24, .header = 40},
    {.bits = 24, .header = 12},
    {.bits = 24, .header = 124, .top_down = true},
    {.bits = 32, .header = 108, .compression = 3},
    {.bits = 16, .header = 40, .compression = 6, .top_down = true},
    {.bits = 8, .header = 12, .colours = 256},
    {.bits = 1, .header = 40, .colours = 2},
};

static struct decode_source make_bmp(const struct form *form)
{
    const unsigned masks = form->compression && form->header == 40 ? 12 : 0;
    const unsigned entry = form->header == 12 ? 3 : 4;
    const unsigned offset = 14 + form->header + masks + form->colours * entry;
    const unsigned stride = (WIDTH * form->bits + 31) / 32 * 4;

    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (uint8_t)random_hash(6, i, 0);
    memcpy(file, "BM", 2);
    bytes_put_le32(file + 6, 0);
    bytes_put_le32(file + 10, offset);
    bytes_put_le32(file + 14, form->header);
    if (form->header == 12) {
        bytes_put_le16(file + 18, WIDTH);
        bytes_put_le16(file + 20, HEIGHT);
        bytes_put_le16(file + 24, (uint16_t)form->bits);
    } else {
        bytes_put_le32(file + 18, WIDTH);
        bytes_put_le32(file + 22, form->top_down ? (uint32_t)-HEIGHT : HEIGHT);
        bytes_put_le16(file + 28, (uint16_t)form->bits);
        bytes_put_le32(file + 30, form->compression);
    }
    return (struct decode_source){
        .bytes = file, .length = offset + stride * HEIGHT, .layout = SAMPLE_ENCODED};
}

/* A frame of any codes: sub-blocks, the last of them empty. */
static uint8_t *put_frame(uint8_t *at, bool own_colours)
{
    memcpy(at, "\x2c\0\0\0\0", 5);
    bytes_put_le16(at + 5, WIDTH);
    bytes_put_le16(at + 7, HEIGHT);
    at[9] = own_colours ? 0x87 : 0x40;
    at += 10 + (own_colours ? 768 : 0);
    *at++ = 8;
    for (int i = 0; i < 5; i++) {
        *at = (uint8_t)(i == 4 ? 0 : 255 - i);
        at += *at + 1;
    }
    return at;
}

static struct decode_source make_gif(bool own_colours)
{
    uint8_t *at = file + 13 + 768;

    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (uint8_t)random_hash(7, i, 0);
    memcpy(file, "GIF89a", 6);
    bytes_put_le16(file + 6, WIDTH);
    bytes_put_le16(file + 8, HEIGHT);
    file[10] = 0xf7;
    memcpy(at, "\x21\xfe\x05hello", 9); /* a comment */
    at = put_frame(at + 9, own_colours);
    at = put_frame(at, !own_colours);
    *at++ = 0x3b;
    return (struct decode_source){
        .bytes = file, .length = (size_t)(at - file), .layout = SAMPLE_ENCODED};
}

static void is_counted_and_refused(const struct decode_source *source, enum image_kind kind)
{
    struct bench bench;

    start(&bench, "jpeg:size=24,damaged=decode");
    assert_int_equal(decode(&bench, source, 1), -EBADMSG);
    assert_reason(image_kind_name(kind));
    assert_reason("convert");
    assert_int_equal(bench.decoder.figures.of_kind[kind], 1);
    assert_int_equal(bench.decoder.figures.failed, 1);
    stop(&bench);
}

static void each_form_is_read_and_counted(void **unused)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct decode_source source = make_bmp(&forms[i]);
        header_is_read_and_checked(&source, IMAGE_BMP);
        is_counted_and_refused(&source, IMAGE_BMP);
        mutations_end_well(&source, 2);
    }
    for (int i = 0; i < 2; i++) {
        const struct decode_source source = make_gif(i);
        header_is_read_and_checked(&source, IMAGE_GIF);
        is_counted_and_refused(&source, IMAGE_GIF);
        mutations_end_well(&source, 6);
    }
}

static void a_part_is_cut_short(void **unused)
{
    const struct decode_source source = make_gif(true);
    struct image_header header;

    for (size_t bytes = 13; bytes < source.length; bytes++) {
        assert_refused(image_header_check(file, bytes, &header), -EBADMSG, "the GIF is cut short");
    }
}

static void unsupported_forms_are_named(void **unused)
{
    static const struct {
        unsigned at, value;
        const char *why;
    } changes[] = {
        {30, 1, "run-length"},       {30, 4, "compression"},          {28, 7, "bits per pixel"},
        {18, 0, "without pixels"},   {22, 0, "without pixels"},       {14, 39, "unknown size"},
        {14, 1 << 30, "its header"}, {10, 20, "begin in its header"}, {18, 0x80000000, "without"},
    };
    struct image_header header;

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const struct decode_source source = make_bmp(&forms[0]);
        bytes_put_le32(file + changes[i].at, changes[i].value);
        assert_refused(image_header_read(file, source.length, &header), -EBADMSG, changes[i].why);
    }
    /* A text that begins with BM is no image. */
    assert_int_equal(image_kind_of("BMW is a maker of cars", 22), IMAGE_UNKNOWN);
}

static void a_gif_is_cut_in_its_screen(void **unused)
{
    static const char gif[] = "GIF89a\003\0\002\0\0\0";
    struct image_header header;

    assert_int_equal(image_header_read(gif, 13, &header), 0);
    assert_int_equal(header.width, 3);
    assert_int_equal(header.height, 2);
    assert_int_equal(image_header_read(gif, 12, &header), -EBADMSG);
    assert_reason("byte 12 of the image: the GIF ends in its header");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_is_read_and_counted),
        cmocka_unit_test(a_part_is_cut_short),
        cmocka_unit_test(unsupported_forms_are_named),
        cmocka_unit_test(a_gif_is_cut_in_its_screen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
