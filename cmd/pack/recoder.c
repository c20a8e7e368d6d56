/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/recoder.h"

#include "base/fail.h"
#include "base/image_header.h"
#include "cmd/pack/image_check.h"
#include "cmd/pack/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
