/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoders, in the order users see them, after those that decode nothing; and the readers of
 * images that are no JPEGs.
 *
 * none ignores the image, which leaves storage, framing and CRC; with --no-crc, storage alone.
 * checksum reads every byte of it once, the least a consumer of the bytes can do. Its row is a
 * little-endian u64: the CRC-32C of the image in the low half, its length (mod 2^32) in the high
 * half. A run can thus sum hashes of rows to an order-independent digest of its (label, image)
 * pairs. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "decode/image.h"
#include "decode/plugins.h"

#include <errno.h>

static int none_decode(void *state, const struct decode_source *source, const struct view *view,
                       void *row, struct decode_figures *figures)
{
    (void)state, (void)source, (void)view, (void)row, (void)figures;
    return 0;
}

const struct decoder_ops decoder_none = {
    .plugin = {.name = "none", .summary = "does not decode images", .idle = true},
    .decode = none_decode,
};

static int checksum_open(void *state, const void *settings, struct decoder_traits *traits)
{
    (void)state, (void)settings;
    traits->row_bytes = 8;
    return 0;
}

static int checksum_decode(void *state, const struct decode_source *source, const struct view *view,
                           void *row, struct decode_figures *figures)
{
    (void)state, (void)view, (void)figures;
    bytes_put_le32(row, crc32c(0, source->bytes, source->length));
    bytes_put_le32((uint8_t *)row + 4, (uint32_t)source->length);
    return 0;
}

const struct decoder_ops decoder_checksum = {
    .plugin = {.name = "checksum", .summary = "reads every byte of the image without decoding it"},
    .open = checksum_open,
    .decode = checksum_decode,
};

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
