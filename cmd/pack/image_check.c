/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/image_check.h"

#include "base/fail.h"
#include "base/image_header.h"
#include "base/memory.h"
#include "decode/image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

int image_check_headers(const void *bytes, size_t count, struct image_header *header)
{
    int code = image_header_read(bytes, count, header);

    if (code)
        return code;
    if (header->kind == IMAGE_JPEG && !image_end_jpeg(bytes, count, header->bytes))
        return fail(EBADMSG, "byte %zu of the image: cut short, no JPEG end marker", count);
    if (header->kind == IMAGE_PNG && !image_end_png(bytes, count))
        return fail(EBADMSG, "byte %zu of the image: cut short, no PNG end chunk", count);
    if (header->kind == IMAGE_WEBP && !image_end_webp(bytes, count))
        return fail(EBADMSG, "byte %zu of the image: the WebP is cut short", count);
    if (header->kind == IMAGE_GIF && !image_end_gif(bytes, count))
        return fail(EBADMSG, "byte %zu of the image: the GIF is cut short", count);
    if (header->whole_bytes > count)
        return fail(EBADMSG, "byte %zu of the image: the %s is cut short", count,
                    image_kind_name(header->kind));
    return 0;
}

static const char too_many_pixels[] = "%u x %u pixels are more than max-pixels=%llu";

/* ---- libjpeg, whose errors must not end the program ---- */

struct jpeg_errors {
    struct jpeg_error_mgr manager; /* first, so libjpeg's pointer is ours */
    const struct image_limits *limits;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    char complaint[JMSG_LENGTH_MAX];
};

static void keep_complaint(j_common_ptr jpeg)
{
    struct jpeg_errors *errors = (struct jpeg_errors *)(void *)jpeg->err;

    if (!errors->complaint[0])
        jpeg->err->format_message(jpeg, errors->complaint);
}

static void jpeg_failed(j_common_ptr jpeg)
{
    keep_complaint(jpeg);
    longjmp(((struct jpeg_errors *)(void *)jpeg->err)->escape, 1);
}

static void jpeg_said(j_common_ptr jpeg, int level)
{
    if (level < 0) /* a warning: corrupt bytes */
        keep_complaint(jpeg);
}

/* A small file can demand that the same pixels be refined thousands of times. */
static void limit_scans(j_common_ptr jpeg)
{
    struct jpeg_errors *errors = (struct jpeg_errors *)(void *)jpeg->err;
    const struct jpeg_decompress_struct *image = (j_decompress_ptr)jpeg;

    if (!image_limits_scan(errors->limits, (uint64_t)image->input_scan_number, image->image_width,
                           image->image_height, errors->complaint, sizeof errors->complaint))
        longjmp(errors->escape, 1);
}

static struct jpeg_error_mgr *jpeg_errors_start(struct jpeg_errors *errors)
{
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = jpeg_failed;
    errors->manager.emit_message = jpeg_said;
    errors->complaint[0] = '\0';
    return &errors->manager;
}

static int jpeg_code(const struct jpeg_errors *errors, int code)
{
    return errors->manager.msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : code;
}

/* row: memory for one row, which the caller frees, since longjmp() may skip code here. */
static int decode_jpeg(struct jpeg_decompress_struct *jpeg, struct jpeg_errors *errors,
                       const void *bytes, size_t count, void *volatile *row)
{
    if (setjmp(errors->escape))
        return jpeg_code(errors, -EBADMSG);
    jpeg_create_decompress(jpeg);
    jpeg->progress = &errors->progress;
    jpeg_mem_src(jpeg, bytes, (unsigned long)count);
    jpeg_read_header(jpeg, TRUE);
    if (!image_limits_size(errors->limits, jpeg->image_width, jpeg->image_height)) {
        snprintf(errors->complaint, sizeof errors->complaint, too_many_pixels, jpeg->image_width,
                 jpeg->image_height, (unsigned long long)errors->limits->pixels);
        return -EBADMSG;
    }
    /* All coefficients must be readable; the pixels do not matter. */
    jpeg->out_color_space = jpeg->jpeg_color_space;
    jpeg->do_fancy_upsampling = FALSE;
    jpeg->dct_method = JDCT_IFAST;
    jpeg_start_decompress(jpeg);
    JSAMPROW line = *row = malloc((size_t)jpeg->output_width * (size_t)jpeg->output_components + 1);
    if (!line)
        return -ENOMEM;
    while (jpeg->output_scanline < jpeg->output_height)
        jpeg_read_scanlines(jpeg, &line, 1);
    jpeg_finish_decompress(jpeg);
    return errors->complaint[0] ? -EBADMSG : 0;
}

static int check_jpeg(const void *bytes, size_t count, const struct image_limits *limits)
{
    struct jpeg_decompress_struct jpeg = {0};
    struct jpeg_errors errors = {.limits = limits, .progress = {.progress_monitor = limit_scans}};
    void *volatile row = NULL;

    jpeg.err = jpeg_errors_start(&errors);
    int code = decode_jpeg(&jpeg, &errors, bytes, count, &row);
    jpeg_destroy_decompress(&jpeg);
    free(row);
    if (code == -ENOMEM)
        return fail(ENOMEM, "out of memory for a JPEG");
    return code ? fail(code, "the JPEG does not decode: %s", errors.complaint) : 0;
}

/* ---- others, by the decoders on the clock ---- */

int image_check_decode(const void *bytes, size_t count, const struct image_limits *limits)
{
    struct image_header header;
    int code = image_check_headers(bytes, count, &header);

    if (code)
        return code;
    if (!image_limits_size(limits, header.width, header.height))
        return fail(EBADMSG, too_many_pixels, header.width, header.height,
                    (unsigned long long)limits->pixels);
    if (header.kind == IMAGE_JPEG)
        return check_jpeg(bytes, count, limits);
    /* All rows are decoded, for a picture of a few pixels. A kind that this build does not decode
     * passes. */
    enum { SIDE = 8, BUMP_BYTES = 1 << 20, PIXEL_BYTES = 8 };
    const struct decode_source source = {.bytes = bytes, .length = count, .layout = DECODE_ENCODED};
    const struct view whole = {.kind = VIEW_WHOLE};
    struct decode_figures figures = {0};
    struct view_shown shown;
    uint8_t row[SIDE * SIDE * 3];
    struct bump bump;
    code = bump_open(&bump, BUMP_BYTES, BUMP_BYTES + limits->pixels * PIXEL_BYTES);
    if (code)
        return code;
    const struct image_request request = {
        .source = &source,
        .view = &whole,
        .rules = &view_rules_imagenet,
        .limits = limits,
        .width = SIDE,
        .height = SIDE,
        .bump = &bump,
        .row = row,
        .figures = &figures,
        .shown = &shown,
    };
    code = image_decode_other(&request);
    bump_close(&bump);
    return code == -ENOTSUP ? 0 : code;
}

/* ---- encoding ---- */

static void raw_row(const struct sample *raw, uint32_t y, uint8_t *row)
{
    const uint8_t *image = raw->image;
    size_t plane = (size_t)raw->width * raw->height, line = (size_t)y * raw->width;

    if (raw->encoding == SAMPLE_RAW_HWC || raw->channels == 1) {
        memcpy(row, image + line * raw->channels, (size_t)raw->width * raw->channels);
        return;
    }
    const bool planes = raw->encoding == SAMPLE_RAW_CHW; /* blue is first in both layouts */
    const size_t pixel_step = planes ? 1 : 3, channel_step = planes ? plane : 1;
    for (uint32_t x = 0; x < raw->width; x++)
        for (uint32_t channel = 0; channel < 3; channel++)
            row[x * 3 + channel] = image[(2 - channel) * channel_step + (line + x) * pixel_step];
}

static int encode_jpeg(struct jpeg_compress_struct *jpeg, struct jpeg_errors *errors,
                       const struct sample *raw, int quality, unsigned char **to,
                       unsigned long *bytes, uint8_t *row)
{
    if (setjmp(errors->escape))
        return jpeg_code(errors, -EINVAL);
    jpeg_create_compress(jpeg);
    jpeg_mem_dest(jpeg, to, bytes);
    jpeg->image_width = raw->width;
    jpeg->image_height = raw->height;
    jpeg->input_components = (int)raw->channels;
    jpeg->in_color_space = raw->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        raw_row(raw, jpeg->next_scanline, row);
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    return 0;
}

int image_to_jpeg(const struct sample *raw, int quality, void **jpeg_bytes, size_t *capacity,
                  size_t *count)
{
    struct jpeg_compress_struct jpeg = {0};
    struct jpeg_errors errors;

    if ((raw->channels != 1 && raw->channels != 3) || !raw->width || !raw->height ||
        raw->width > JPEG_MAX_DIMENSION || raw->height > JPEG_MAX_DIMENSION ||
        (uint64_t)raw->width * raw->height * raw->channels != raw->image_bytes)
        return fail(EBADMSG, "raw pixels of %u x %u x %u in %zu bytes cannot become a JPEG",
                    raw->width, raw->height, raw->channels, raw->image_bytes);
    uint8_t *row = memory_zeroed((size_t)raw->width * raw->channels);
    if (!row)
        return -ENOMEM;
    unsigned char *to = *jpeg_bytes;
    unsigned long bytes = (unsigned long)*capacity;
    jpeg.err = jpeg_errors_start(&errors);
    int code = encode_jpeg(&jpeg, &errors, raw, quality, &to, &bytes, row);
    jpeg_destroy_compress(&jpeg);
    free(row);
    if (to != *jpeg_bytes) { /* too small: libjpeg allocated another and left ours */
        free(*jpeg_bytes);
        *jpeg_bytes = to;
        *capacity = bytes;
    }
    *count = bytes;
    return code ? fail(code, "cannot encode a JPEG: %s", errors.complaint) : 0;
}
