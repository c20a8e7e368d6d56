/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/source.h"

#include "base/fail.h"
#include "base/image_header.h"
#include "base/sample.h"
#include "base/memory.h"
#include "dataset/manifest.h"
#include "dataset/store.h"
#include "formats/format.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

static const struct source_ops *source_of(const struct plugin *plugin)
{
    return (const struct source_ops *)(const void *)plugin; /* plugin is the first member */
}

const struct plugin *source_generator(void)
{
    const struct plugin *const *row = source_registry;

    while (!source_of(*row)->generates)
        row++;
    return *row;
}

static bool names(const struct plugin *const *registry, const char *text)
{
    char name[64];
    size_t length = strcspn(text, ":");

    if (length >= sizeof name)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return plugin_find(registry, name) != NULL;
}

int source_detect_inside(const struct source_ops *front, const char *path)
{
    const struct source_ops *ops = source_of(module_plugin(&front->plugin));
    const int sure = ops ? ops->detect(path) : 0;

    fail_clear();
    return sure;
}

/* The request, as the text of a source. */
static int choose_source(struct source *source, const char *from, const char *path)
{
    struct store_status status;

    if (strcmp(from, "auto") == 0) {
        if (names(source_registry, path) && !store_exists(path))
            return plugin_choose("source", source_registry, path, &source->choice);
        int code = store_stat(path, &status);
        if (code)
            return code;
        /* Find the source with the highest detect() for path. If none claims it, the data set
         * source is tried, since a format's reason is better than "none". */
        const struct source_ops *best = source_of(source_registry[0]);
        int surest = 0;
        for (const struct plugin *const *row = source_registry; *row; row++) {
            const struct source_ops *ops = source_of(*row);
            int sure = ops->detect ? ops->detect(path) : 0;
            if (sure > surest) {
                surest = sure;
                best = ops;
            }
        }
        return plugin_choose("source", source_registry, best->plugin.name, &source->choice);
    }
    if (names(format_registry, from)) { /* parsed by the data set source, whose option it is */
        int code =
            plugin_choose("source", source_registry, source_registry[0]->name, &source->choice);
        if (code)
            return code;
        char **format = source->choice.settings;
        free(*format);
        *format = strdup(from);
        return *format ? 0 : fail(ENOMEM, "out of memory");
    }
    return plugin_choose("source", source_registry, from, &source->choice);
}

int source_open(struct source *source, const char *from, const char *path,
                const struct source_config *config)
{
    *source = (struct source){0};
    int code = manifest_check_complete(path);
    if (code == 0)
        code = choose_source(source, from, path);
    if (code)
        return code;
    code = plugin_usable(source->choice.plugin);
    if (code)
        return code;
    source->ops = source_of(module_plugin(source->choice.plugin));
    if (!source->ops)
        return -ENODEV;
    source->state = memory_zeroed(source->ops->plugin.state_size);
    if (!source->state)
        return -ENOMEM;
    code = source->ops->open(source->state, source->choice.settings, path, config, &source->traits);
    if (code == 0 && source->traits.count == 0)
        code = fail(ENODATA, "%s: no samples found", path);
    return code;
}

void source_close(struct source *source)
{
    if (source->state && source->ops->close)
        source->ops->close(source->state);
    free(source->state);
    plugin_release(&source->choice);
    *source = (struct source){0};
}

int source_cursor_open(struct source *source, void **cursor)
{
    *cursor = NULL;
    return source->ops->cursor_open ? source->ops->cursor_open(source->state, cursor) : 0;
}

void source_cursor_close(struct source *source, void *cursor)
{
    if (source->ops->cursor_close)
        source->ops->cursor_close(source->state, cursor);
}

int source_read(struct source *source, void *cursor, uint64_t number, struct source_buffer *slot,
                struct sample *sample)
{
    assert(number < source->traits.count);
    *sample = (struct sample){.label = -1};
    return source->ops->read(source->state, cursor, number, slot, sample);
}

int source_reserve(void **buffer, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity)
        return 0;
    free(*buffer);
    *capacity = 0;
    *buffer = malloc(bytes + bytes / 4);
    if (!*buffer)
        return fail(ENOMEM, "out of memory for a sample of %zu bytes", bytes);
    *capacity = bytes + bytes / 4;
    return 0;
}

int source_keep(struct source_buffer *slot, struct sample *sample)
{
    int code = source_reserve(&slot->record, &slot->record_capacity, sample->image_bytes);

    if (code == 0)
        code = source_reserve(&slot->scratch, &slot->scratch_capacity, sample->name_bytes);
    if (code)
        return code;
    memcpy(slot->record, sample->image, sample->image_bytes);
    sample->image = slot->record;
    if (sample->name_bytes) {
        memcpy(slot->scratch, sample->name, sample->name_bytes);
        sample->name = slot->scratch;
    }
    return 0;
}

void source_buffer_release(struct source_buffer *slot)
{
    free(slot->record);
    free(slot->scratch);
    *slot = (struct source_buffer){0};
}

/* ---- encoding ---- */

/* libjpeg's errors must not end the program. */
struct encoder_errors {
    struct jpeg_error_mgr manager; /* first, so libjpeg's pointer is ours */
    jmp_buf escape;
    char complaint[JMSG_LENGTH_MAX];
};

static void encoder_failed(j_common_ptr jpeg)
{
    struct encoder_errors *errors = (struct encoder_errors *)(void *)jpeg->err;

    jpeg->err->format_message(jpeg, errors->complaint);
    longjmp(errors->escape, 1);
}

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

static int encode_jpeg(struct jpeg_compress_struct *jpeg, struct encoder_errors *errors,
                       const struct sample *raw, int quality, unsigned char **to,
                       unsigned long *bytes, uint8_t *row)
{
    if (setjmp(errors->escape))
        return errors->manager.msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
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
    struct encoder_errors errors;

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
    jpeg.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = encoder_failed;
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

/* ---- decoding and encoding again ---- */

int recoder_open(struct recoder *recoder, const struct recode *recode)
{
    *recoder = (struct recoder){.recode = *recode};
    if (recode->side == 0 && !recode->raw)
        return 0;
    int code =
        plugin_choose("decoder", decoder_registry, decoder_of_pixels()->name, &recoder->choice);
    return code ? code : decoder_open(&recoder->decoder, &recoder->choice);
}

void recoder_close(struct recoder *recoder)
{
    if (recoder->decoder.state)
        decoder_close(&recoder->decoder);
    plugin_release(&recoder->choice);
    free(recoder->pixels);
    *recoder = (struct recoder){0};
}

/* Find the size of the new image. The old one is limited before memory is requested for pixels.
 * Returns 1, 0 if the image stays as it is, or -EBADMSG. */
static int measure_view(const struct recode *recode, const struct sample *sample, struct view *view)
{
    const struct image_limits limits = {.pixels = strtoull(IMAGE_LIMITS_PIXELS, NULL, 10)};
    struct image_header header = {.width = sample->width, .height = sample->height};
    int code = sample->encoding == SAMPLE_ENCODED
                   ? image_header_read(sample->image, sample->image_bytes, &header)
                   : 0;

    if (code)
        return code;
    if (!image_limits_size(&limits, header.width, header.height))
        return fail(EBADMSG, "the image claims %u x %u pixels, more than %s", header.width,
                    header.height, IMAGE_LIMITS_PIXELS);
    const uint64_t shorter = header.width < header.height ? header.width : header.height;
    const bool shrinks = recode->side > 0 && shorter > recode->side;
    const uint64_t side = shrinks ? recode->side : shorter;
    if (side == 0)
        return fail(EBADMSG, "the image has no pixels");
    *view = (struct view){.kind = VIEW_WHOLE,
                          .width = (uint32_t)((header.width * side + shorter / 2) / shorter),
                          .height = (uint32_t)((header.height * side + shorter / 2) / shorter)};
    return shrinks || (recode->raw && header.kind != IMAGE_NETPBM);
}

int recode_pixel_bytes(const struct recode *recode, const struct sample *sample, uint64_t *bytes)
{
    struct view view;
    int code = measure_view(recode, sample, &view);

    if (code >= 0)
        *bytes = NETPBM_HEADER_MOST + (uint64_t)view.width * view.height * 3;
    return code < 0 ? code : 0;
}

int recoder_apply(struct recoder *recoder, struct sample *sample, void **image, size_t *capacity)
{
    const struct decode_source source = decode_source_of(sample);
    void *pixels = recoder->pixels;
    struct view view;
    size_t bytes;
    int code = measure_view(&recoder->recode, sample, &view);

    if (code <= 0)
        return code;
    code = source_reserve(&pixels, &recoder->capacity, (size_t)view.width * view.height * 3);
    recoder->pixels = pixels;
    if (code == 0)
        code = decoder_decode(&recoder->decoder, &source, &view, recoder->pixels);
    if (code == 0) {
        const struct sample raw = {.image = recoder->pixels,
                                   .image_bytes = (size_t)view.width * view.height * 3,
                                   .encoding = SAMPLE_RAW_HWC,
                                   .width = view.width,
                                   .height = view.height,
                                   .channels = 3};
        char header[NETPBM_HEADER_MOST];
        if (!recoder->recode.raw)
            code = image_to_jpeg(&raw, recoder->recode.quality, image, capacity, &bytes);
        else {
            const size_t header_bytes = netpbm_write_header(header, view.width, view.height);
            bytes = header_bytes + raw.image_bytes;
            if (source_reserve(image, capacity, bytes))
                code = -ENOMEM;
            else {
                memcpy(*image, header, header_bytes);
                memcpy((uint8_t *)*image + header_bytes, raw.image, raw.image_bytes);
            }
        }
    }
    if (code)
        return code;
    sample->image = *image;
    sample->image_bytes = bytes;
    sample->encoding = SAMPLE_ENCODED;
    return 1;
}
