/* SPDX-License-Identifier: Apache-2.0
 * In builds without libwebp. */
#include "decode/image.h"

#include "base/fail.h"

#include <errno.h>

int image_decode_webp(const struct image_request *request)
{
    request->figures->webp++;
    return fail(EBADMSG, "the image is a WebP, which this build does not decode: install "
                         "libwebp-dev and configure again");
}
