/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/shrinker.h"

#include "base/fail.h"
#include "base/image_limits.h"
#include "dataset/image_header.h"
#include "pack/image_check.h"

#include <errno.h>
#include <stdlib.h>

int shrinker_open(struct shrinker *shrinker, uint32_t side, int quality)
{
    *shrinker = (struct shrinker){.side = side, .quality = quality};
    if (side == 0)
        return 0;
    int code =
        plugin_choose("decoder", decoder_registry, decoder_of_pixels()->name, &shrinker->choice);
    return code ? code : decoder_open(&shrinker->decoder, &shrinker->choice);
}

void shrinker_close(struct shrinker *shrinker)
{
    if (shrinker->decoder.state)
        decoder_close(&shrinker->decoder);
    plugin_release(&shrinker->choice);
    free(shrinker->pixels);
    *shrinker = (struct shrinker){0};
}

static struct decode_source source_of(const struct sample *sample)
{
    static const unsigned layouts[] = {[SAMPLE_ENCODED] = DECODE_ENCODED,
                                       [SAMPLE_RAW_HWC] = DECODE_RAW_HWC_RGB,
                                       [SAMPLE_RAW_CHW] = DECODE_RAW_CHW_BGR,
                                       [SAMPLE_RAW_HWC_BGR] = DECODE_RAW_HWC_BGR};

    return (struct decode_source){sample->image, sample->image_bytes, layouts[sample->encoding],
                                  sample->width, sample->height,      sample->channels};
}

/* Find the size of the image. Checked before memory is requested for the pixels. */
static int measure(const struct sample *sample, uint32_t *width, uint32_t *height)
{
    const struct image_limits limits = {.pixels = strtoull(IMAGE_LIMITS_PIXELS, NULL, 10)};
    struct image_header header = {.width = sample->width, .height = sample->height};
    int code = sample->encoding == SAMPLE_ENCODED
                   ? image_header_read(sample->image, sample->image_bytes, &header)
                   : 0;

    *width = header.width;
    *height = header.height;
    if (code)
        return code;
    return image_limits_size(&limits, header.width, header.height)
               ? 0
               : fail(EBADMSG, "the image claims %u x %u pixels, more than %s", header.width,
                      header.height, IMAGE_LIMITS_PIXELS);
}

int shrinker_apply(struct shrinker *shrinker, struct sample *sample, void **jpeg, size_t *capacity)
{
    const struct decode_source source = source_of(sample);
    struct view view = {.kind = VIEW_WHOLE};
    uint32_t width, height;
    size_t bytes;
    int code = measure(sample, &width, &height);

    if (code)
        return code;
    const uint64_t shorter = width < height ? width : height;
    if (shrinker->side == 0 || shorter <= shrinker->side)
        return 0;
    view.width = (uint32_t)((width * (uint64_t)shrinker->side + shorter / 2) / shorter);
    view.height = (uint32_t)((height * (uint64_t)shrinker->side + shorter / 2) / shorter);
    struct sample raw = {.image_bytes = (size_t)view.width * view.height * 3,
                         .encoding = SAMPLE_RAW_HWC,
                         .width = view.width,
                         .height = view.height,
                         .channels = 3};
    if (raw.image_bytes > shrinker->capacity) {
        free(shrinker->pixels);
        shrinker->capacity = raw.image_bytes;
        shrinker->pixels = malloc(raw.image_bytes);
        if (!shrinker->pixels) {
            shrinker->capacity = 0;
            return fail(ENOMEM, "out of memory for an image of %zu bytes", raw.image_bytes);
        }
    }
    raw.image = shrinker->pixels;
    code = decoder_decode(&shrinker->decoder, &source, &view, shrinker->pixels);
    if (code == 0)
        code = image_to_jpeg(&raw, shrinker->quality, jpeg, capacity, &bytes);
    if (code)
        return code;
    sample->image = *jpeg;
    sample->image_bytes = bytes;
    sample->encoding = SAMPLE_ENCODED;
    return 1;
}
