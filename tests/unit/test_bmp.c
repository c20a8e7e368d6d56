/* SPDX-License-Identifier: Apache-2.0
 *
 * BMP images of each depth, made here with the pixels that they must have; what is refused.
 */
#include "tests/unit/pictures.h"

#include "base/bmp.h"
#include "base/bytes.h"

static uint8_t file[PICTURE_MOST], pixels[PIXELS_BYTES];

struct form {
    unsigned bits, header, compression, colours;
    bool top_down;
    uint32_t masks[3];
};

static const struct form forms[] = {
    {.bits = 24, .header = 40},
    {.bits = 24, .header = 12},
    {.bits = 24, .header = 124, .top_down = true},
    {.bits = 32, .header = 40},
    {.bits = 32, .header = 108, .compression = 3, .masks = {0xff, 0xff00, 0xff0000}},
    {.bits = 32,
     .header = 40,
     .compression = 6,
     .masks = {0xff000000, 0xff0000, 0xff00},
     .top_down = true},
    {.bits = 16, .header = 40},
    {.bits = 16, .header = 40, .compression = 3, .masks = {0xf800, 0x7e0, 0x1f}},
    {.bits = 8, .header = 40, .colours = 200},
    {.bits = 8, .header = 12, .colours = 256},
    {.bits = 4, .header = 40, .colours = 16},
    {.bits = 1, .header = 40, .colours = 2},
};

static unsigned value(int x, int y, int channel)
{
    return (unsigned)random_hash(5, (uint64_t)(y * WIDTH + x), (uint64_t)channel);
}

/* Write one pixel, and what it must be decoded to. */
static void put_pixel(const struct form *form, uint8_t *row, int x, uint8_t *rgb,
                      const uint8_t *palette)
{
    static const uint32_t fives[3] = {0x7c00, 0x3e0, 0x1f}, bytes[3] = {0xff0000, 0xff00, 0xff};
    const int y = (int)((rgb - pixels) / 3 / WIDTH);

    if (form->bits <= 8) {
        const unsigned index = value(x, y, 0) % form->colours;
        const unsigned entry = form->header == 12 ? 3 : 4;
        row[x * (int)form->bits / 8] |=
            (uint8_t)(index << (8 - form->bits - (unsigned)x * form->bits % 8));
        for (int i = 0; i < 3; i++)
            rgb[i] = palette[index * entry + 2 - (unsigned)i];
        return;
    }
    const uint32_t *masks = form->compression ? form->masks : form->bits == 16 ? fives : bytes;
    uint32_t pixel = 0;
    for (int i = 0; i < 3; i++) {
        const uint32_t low = masks[i] & (0 - masks[i]), most = masks[i] / low;
        const uint32_t v = value(x, y, i) % (most + 1);
        pixel |= v * low;
        rgb[i] = (uint8_t)(v * 255 / most);
    }
    uint8_t *to = row + x * (int)form->bits / 8;
    for (unsigned i = 0; i < form->bits / 8; i++)
        to[i] = (uint8_t)(pixel >> 8 * i);
}

static struct decode_source make(const struct form *form)
{
    const unsigned masks = form->compression && form->header == 40 ? 12 : 0;
    const unsigned palette = 14 + form->header + masks, entry = form->header == 12 ? 3 : 4;
    const unsigned offset = palette + form->colours * entry,
                   stride = (WIDTH * form->bits + 31) / 32 * 4;
    const uint32_t height = form->top_down ? (uint32_t)-HEIGHT : HEIGHT;

    memset(file, 0, sizeof file);
    memcpy(file, "BM", 2);
    bytes_put_le32(file + 10, offset);
    bytes_put_le32(file + 14, form->header);
    if (form->header == 12) {
        bytes_put_le16(file + 18, WIDTH);
        bytes_put_le16(file + 20, HEIGHT);
        bytes_put_le16(file + 24, (uint16_t)form->bits);
    } else {
        bytes_put_le32(file + 18, WIDTH);
        bytes_put_le32(file + 22, height);
        bytes_put_le16(file + 28, (uint16_t)form->bits);
        bytes_put_le32(file + 30, form->compression);
        bytes_put_le32(file + 46, form->colours);
        for (int i = 0; i < 3 && form->compression; i++)
            bytes_put_le32(file + 54 + 4 * i, form->masks[i]);
    }
    for (unsigned i = 0; i < form->colours * entry; i++)
        file[palette + i] = (uint8_t)random_hash(6, i, 0);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            put_pixel(form,
                      file + offset + stride * (unsigned)(form->top_down ? y : HEIGHT - 1 - y), x,
                      pixels + (y * WIDTH + x) * 3, file + palette);
    return (struct decode_source){
        .bytes = file, .length = offset + stride * HEIGHT, .layout = DECODE_ENCODED};
}

static void each_form_has_its_pixels(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct decode_source source = make(&forms[i]);
        header_is_read_and_checked(&source, IMAGE_BMP);
        boxes_have_the_pixels(&source, pixels, IMAGE_BMP, 0);
        cuts_are_told(&source, 14 + forms[i].header + 12 + 4 * forms[i].colours);
        mutations_end_well(&source, 2);
    }
}

static void unsupported_forms_are_named(void **unused)
{
    static const struct {
        unsigned at, value;
        const char *why;
    } changes[] = {
        {30, 1, "run-length"},       {30, 4, "compressed"},
        {28, 7, "bits a pixel"},     {18, 0, "without pixels"},
        {22, 0, "without pixels"},   {14, 39, "unknown size"},
        {14, 1 << 30, "its header"}, {10, 20, "begin in its header"},
        {18, 0x80000000, "without"}, {30, 3, "masks"},
    };
    struct bmp header;

    (void)unused;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const struct decode_source source = make(&forms[0]);
        bytes_put_le32(file + changes[i].at, changes[i].value);
        const char *why = bmp_read(file, source.length, &header);
        assert_non_null(why);
        assert_non_null(strstr(why, changes[i].why));
    }
    /* A text that begins with BM is no image. */
    assert_false(bmp_is("BMW is a maker of cars", 22));
    /* An index that is not in the palette is black. */
    const struct decode_source source = make(&forms[8]);
    memset(file + source.length - WIDTH / 4 * 4 - 4, 255,
           WIDTH); /* of 200 colours; the first row */
    memset(pixels, 0, (size_t)WIDTH * 3);
    boxes_have_the_pixels(&source, pixels, IMAGE_BMP, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_has_its_pixels),
        cmocka_unit_test(unsupported_forms_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
