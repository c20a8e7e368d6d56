/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/webp_check.h"

#include "base/fail.h"

#include <errno.h>

#include <webp/decode.h>

int webp_check(const void *bytes, size_t count)
{
    WebPDecoderConfig config;

    if (!WebPInitDecoderConfig(&config))
        return fail(ENOSYS, "libwebp has another version than its headers");
    config.output.colorspace = MODE_YUVA; /* whether it decodes, not the pixels */
    const VP8StatusCode status = WebPDecode(bytes, count, &config);
    WebPFreeDecBuffer(&config.output);
    if (status == VP8_STATUS_OUT_OF_MEMORY)
        return fail(ENOMEM, "out of memory for a WebP");
    if (status == VP8_STATUS_UNSUPPORTED_FEATURE)
        return fail(EBADMSG, "the WebP is animated");
    return status == VP8_STATUS_OK ? 0 : fail(EBADMSG, "the WebP does not decode");
}
