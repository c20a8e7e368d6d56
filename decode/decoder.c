/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/decoder.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const struct plugin *decoder_of_pixels(void)
{
    const struct plugin *const *row = decoder_registry;

    while (!decoder_of(*row)->gives_pixels)
        row++;
    return *row;
}

int decoder_open(struct decoder *decoder, const struct plugin_choice *choice)
{
    *decoder = (struct decoder){0};
    const struct plugin *plugin = module_plugin(choice->plugin);
    if (!plugin)
        return -ENODEV;
    decoder->ops = decoder_of(plugin);
    decoder->state = memory_zeroed(plugin->state_size);
    if (!decoder->state)
        return -ENOMEM;
    return decoder->ops->open
               ? decoder->ops->open(decoder->state, choice->settings, &decoder->traits)
               : 0;
}

void decoder_close(struct decoder *decoder)
{
    if (decoder->state && decoder->ops->close)
        decoder->ops->close(decoder->state);
    free(decoder->state);
    decoder->state = NULL;
}

int decoder_begin(struct decoder *decoder, const struct decode_source *source,
                  const struct view *view, void *row)
{
    const int code =
        source->length == 0 && decoder->traits.shown
            ? fail(EBADMSG, "no image in it")
            : decoder->ops->decode(decoder->state, source, view, row, &decoder->figures);

    assert(code != DECODE_FULL || decoder->pending > 0);
    if (code == DECODE_FULL)
        return code;
    decoder->figures.images++;
    decoder->figures.bytes += source->length;
    decoder->figures.failed += code < 0;
    decoder->pending += code == DECODE_PENDING;
    return code;
}

int decoder_finish(struct decoder *decoder, uint32_t index)
{
    assert(index < decoder->pending);
    const int code = decoder->ops->finish(decoder->state, index, &decoder->figures);

    decoder->figures.failed += code < 0;
    if (index + 1 == decoder->pending)
        decoder->pending = 0;
    return code;
}

int decoder_decode(struct decoder *decoder, const struct decode_source *source,
                   const struct view *view, void *row)
{
    assert(decoder->pending == 0);
    const int code = decoder_begin(decoder, source, view, row);

    return code == DECODE_PENDING ? decoder_finish(decoder, 0) : code;
}

bool decoder_uses_hints(const struct plugin_choice *choice)
{
    const struct decoder_ops *ops = decoder_of(choice->plugin);

    return ops->uses_hints && ops->uses_hints(choice->settings);
}

size_t decoder_make_hint(struct decoder *decoder, const struct decode_source *source,
                         uint8_t hint[DECODE_HINT_MAX])
{
    return decoder->ops->make_hint ? decoder->ops->make_hint(decoder->state, source, hint) : 0;
}

struct decode_source decode_source_of(const struct sample *sample)
{
    return (struct decode_source){.bytes = sample->image,
                                  .length = sample->image_bytes,
                                  .layout = sample->encoding,
                                  .width = sample->width,
                                  .height = sample->height,
                                  .channels = sample->channels};
}

void decode_figures_add(struct decode_figures *into, const struct decode_figures *from)
{
    uint64_t *sums = (void *)into;
    const uint64_t *counts = (const void *)from;

    for (size_t i = 0; i < sizeof *into / sizeof *sums; i++) /* counts, and nothing else */
        sums[i] += counts[i];
}

bool decode_figures_describe(const struct decode_figures *figures, char *text, size_t bytes)
{
    const struct {
        uint64_t count;
        const char *what;
    } rows[] = {{figures->grayscale, "grayscale"},      {figures->cmyk, "CMYK"},
                {figures->progressive, "progressive"},  {figures->of_kind[IMAGE_PNG], "PNG"},
                {figures->of_kind[IMAGE_WEBP], "WebP"}, {figures->of_kind[IMAGE_GIF], "GIF"},
                {figures->of_kind[IMAGE_BMP], "BMP"},   {figures->truncated, "cut short"},
                {figures->corrupt, "corrupt"},          {figures->failed, "could not be decoded"},
                {figures->on_cpu, "left to the CPU"}};
    size_t used = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].count && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%" PRIu64 " %s",
                                     used ? ", " : "", rows[i].count, rows[i].what);
    return used > 0;
}
