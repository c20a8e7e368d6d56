/* SPDX-License-Identifier: Apache-2.0
 * The decoders, in the order users see them, and the readers of images that are no JPEGs. */
#include "base/fail.h"
#include "decode/image.h"
#include "decode/plugins.h"

#include <errno.h>

const struct plugin *const decoder_registry[] = {
    &decoder_none.plugin,
    &decoder_checksum.plugin,
    &decoder_jpeg.plugin,
#ifdef HAVE_CUDA
    &decoder_nvjpeg.plugin,
#endif
    NULL,
};

/* instead: what to do if there is no reader. */
static const struct {
    int (*decode)(const struct image_request *);
    const char *instead;
} readers[IMAGE_KINDS] = {
    [IMAGE_PNG] = {image_decode_png, NULL},   [IMAGE_NETPBM] = {image_decode_netpbm, NULL},
    [IMAGE_BMP] = {NULL, "convert it"},       [IMAGE_GIF] = {NULL, "convert it"},
#ifdef HAVE_WEBP
    [IMAGE_WEBP] = {image_decode_webp, NULL},
#else
    [IMAGE_WEBP] = {NULL, "install libwebp-dev and configure again"},
#endif
};

int image_decode_other(const struct image_request *request)
{
    const struct decode_source *source = request->source;
    const enum image_kind kind = image_kind_of(source->bytes, source->length);

    if (!readers[kind].decode && !readers[kind].instead)
        return DECODE_OTHER;
    request->figures->of_kind[kind]++;
    return readers[kind].decode
               ? readers[kind].decode(request)
               : fail(ENOTSUP, "the image is a %s, which this build does not decode: %s",
                      image_kind_name(kind), readers[kind].instead);
}
