/* SPDX-License-Identifier: Apache-2.0
 *
 * GIF images, made here without compression, with the pixels that they must have.
 */
#include "tests/unit/pictures.h"

#include "base/bytes.h"

static uint8_t file[PICTURE_MOST], pixels[PIXELS_BYTES];

struct form {
    int left, top, width, height; /* of the first frame */
    bool interlaced, own_colours, later_frame;
    int transparent; /* -1: no extension */
};

static const struct form forms[] = {
    {.width = WIDTH, .height = HEIGHT, .transparent = -1},
    {.width = WIDTH, .height = HEIGHT, .interlaced = true, .transparent = -1},
    {.width = 20, .height = 30, .left = 7, .top = 11, .own_colours = true, .transparent = -1},
    {.width = 20,
     .height = 1,
     .left = 41,
     .top = 46,
     .interlaced = true,
     .transparent = 9,
     .later_frame = true},
};

/* Codes of 9 bits: colours, and "clear" before the table of the decoder would grow to 10. */
static uint8_t *put_codes(uint8_t *at, const uint8_t *indices, int count)
{
    enum { CLEAR = 256, END = 257, BETWEEN = 200, BLOCK = 255 };
    static uint8_t packed[PICTURE_MOST];
    size_t bit = 0;

    memset(packed, 0, sizeof packed);
    for (int i = 0; i <= count; i++) {
        const unsigned codes[2] = {i % BETWEEN == 0 ? CLEAR : END + 1,
                                   i < count ? indices[i] : END};
        for (int j = codes[0] == CLEAR ? 0 : 1; j < 2; j++)
            for (int k = 0; k < 9; k++, bit++)
                packed[bit / 8] |= (uint8_t)((codes[j] >> k & 1) << bit % 8);
    }
    *at++ = 8;
    for (size_t done = 0, bytes = (bit + 7) / 8; done < bytes; done += BLOCK) {
        const size_t part = bytes - done < BLOCK ? bytes - done : BLOCK;
        *at++ = (uint8_t)part;
        memcpy(at, packed + done, part);
        at += part;
    }
    *at++ = 0;
    return at;
}

static uint8_t *put_colours(uint8_t *at, uint64_t seed)
{
    for (uint64_t i = 0; i < 256 * 3; i++)
        *at++ = (uint8_t)random_hash(seed, i, 0);
    return at;
}

/* The rows of a frame in the order in which they are stored. */
static int stored_row(const struct form *form, int number)
{
    static const int first[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};

    for (int pass = 0; form->interlaced && pass < 4; pass++) {
        const int rows = form->height > first[pass]
                             ? (form->height - first[pass] + step[pass] - 1) / step[pass]
                             : 0;
        if (number < rows)
            return first[pass] + number * step[pass];
        number -= rows;
    }
    return number;
}

static uint8_t *put_frame(uint8_t *at, const struct form *form, const uint8_t *screen_colours,
                          bool is_shown)
{
    static uint8_t indices[WIDTH * HEIGHT];
    const uint8_t *colours = screen_colours;

    *at++ = 0x2c;
    bytes_put_le16(at, (uint16_t)form->left);
    bytes_put_le16(at + 2, (uint16_t)form->top);
    bytes_put_le16(at + 4, (uint16_t)form->width);
    bytes_put_le16(at + 6, (uint16_t)form->height);
    at[8] = (uint8_t)((form->own_colours ? 0x87 : 0) | (form->interlaced ? 0x40 : 0));
    at += 9;
    if (form->own_colours) {
        colours = at;
        at = put_colours(at, 8);
    }
    for (int row = 0; row < form->height; row++)
        for (int x = 0; x < form->width; x++) {
            const int y = stored_row(form, row);
            const uint8_t index =
                (uint8_t)random_hash(is_shown ? 9 : 10, (uint64_t)(y * form->width + x), 0);
            indices[row * form->width + x] = index;
            if (is_shown)
                memcpy(pixels + ((form->top + y) * WIDTH + form->left + x) * 3, colours + index * 3,
                       3);
        }
    return put_codes(at, indices, form->width * form->height);
}

static struct decode_source make(const struct form *form)
{
    uint8_t *at = file + 13;

    memcpy(file, "GIF89a", 6);
    bytes_put_le16(file + 6, WIDTH);
    bytes_put_le16(file + 8, HEIGHT);
    file[10] = 0xf7;
    file[11] = 3; /* the background's colour, which viewers ignore */
    file[12] = 0;
    at = put_colours(at, 7);
    const uint8_t *around = file + 13 + 3 * (form->transparent < 0 ? 0 : form->transparent);
    if (form->own_colours)
        around = NULL; /* the first of its own, which follow the description of the frame */
    memcpy(at, "\x21\xfe\x05hello", 9); /* a comment */
    at += 9;
    if (form->transparent >= 0) {
        memcpy(at, "\x21\xf9\x04\x01\0\0\0", 8);
        at[6] = (uint8_t)form->transparent;
        at += 8;
    }
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        memcpy(pixels + i * 3, around ? around : (const uint8_t *)"\0\0\0", 3);
    if (!around) {
        uint8_t own[768];
        put_colours(own, 8);
        for (int i = 0; i < WIDTH * HEIGHT; i++)
            memcpy(pixels + i * 3, own, 3);
    }
    at = put_frame(at, form, file + 13, true);
    if (form->later_frame)
        at = put_frame(at, &forms[0], file + 13, false);
    *at++ = 0x3b;
    return (struct decode_source){
        .bytes = file, .length = (size_t)(at - file), .layout = DECODE_ENCODED};
}

static void each_form_has_its_pixels(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct decode_source source = make(&forms[i]);
        header_is_read_and_checked(&source, IMAGE_GIF);
        boxes_have_the_pixels(&source, pixels, IMAGE_GIF, 0);
        cuts_are_told(&source, 6);
        mutations_end_well(&source, 6);
    }
}

static void corrupt_images_are_told(void **unused)
{
    const struct decode_source source = make(&forms[0]);
    struct bench refuses, accepts;

    (void)unused;
    start(&refuses, "jpeg:size=24");
    start(&accepts, "jpeg:size=24,damaged=decode");
    /* A code that is not in the table yet, in the middle of the frame. */
    memset(file + source.length / 2, 0xff, 8);
    file[source.length / 2 + 3] = 0xfe;
    assert_int_equal(decode(&refuses, &source, 1), -EBADMSG);
    assert_int_equal(decode(&accepts, &source, 1), DECODE_DAMAGED);
    assert_int_equal(accepts.decoder.figures.corrupt + accepts.decoder.figures.truncated, 1);
    /* A frame beside the screen. */
    struct form outside = forms[0];
    outside.left = 1;
    outside.width = WIDTH - 1;
    struct decode_source beside = make(&outside);
    bytes_put_le16(file + 13 + 768 + 9 + 1, 2);
    assert_int_equal(decode(&accepts, &beside, 1), -EBADMSG);
    assert_non_null(strstr(fail_reason(), "not on its screen"));
    stop(&refuses);
    stop(&accepts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_has_its_pixels),
        cmocka_unit_test(corrupt_images_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
