/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/image.h"

#include "base/fail.h"

#include <errno.h>

/* library: the package that a build lacks if there is no reader. */
static const struct {
    int (*decode)(const struct image_request *);
    const char *library;
} readers[IMAGE_KINDS] = {
    [IMAGE_PNG] = {image_decode_png, NULL},   [IMAGE_NETPBM] = {image_decode_netpbm, NULL},
    [IMAGE_BMP] = {image_decode_bmp, NULL},
#ifdef HAVE_WEBP
    [IMAGE_WEBP] = {image_decode_webp, NULL},
#else
    [IMAGE_WEBP] = {NULL, "libwebp-dev"},
#endif
#ifdef HAVE_GIF
    [IMAGE_GIF] = {image_decode_gif, NULL},
#else
    [IMAGE_GIF] = {NULL, "libgif-dev"},
#endif
};

int image_decode_other(const struct image_request *request)
{
    const struct decode_source *source = request->source;
    const enum image_kind kind = image_kind_of(source->bytes, source->length);

    if (!readers[kind].decode && !readers[kind].library)
        return IMAGE_IS_JPEG;
    request->figures->of_kind[kind]++;
    return readers[kind].decode ? readers[kind].decode(request)
                                : fail(ENOTSUP,
                                       "the image is a %s, which this build does not decode: "
                                       "install %s and configure again",
                                       image_kind_name(kind), readers[kind].library);
}
