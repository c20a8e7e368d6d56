/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as an image for verify: its header, or a reason. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "decode/image.h"

#include <errno.h>

enum { PIXELS = 1 << 20 }; /* keeps decoding fast */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const struct image_limits limits = {.pixels = PIXELS, .scans = 64};
    uint8_t *copy = fuzz_exact(bytes, count);
    struct image_header header;

    fail_clear();
    int code = image_header_check(copy, count, &header);
    FUZZ_CHECK(code == 0 || (code == -EBADMSG && *fail_reason()));
    if (code == 0) {
        fail_clear();
        code = image_verify(copy, count, &limits);
        FUZZ_CHECK(code == 0 || *fail_reason());
    }
    free(copy);
    return 0;
}
