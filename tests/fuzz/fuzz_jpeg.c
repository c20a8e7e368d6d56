/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as an image: pixels or a reason, and never more memory than max-pixels allows. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "decode/decoder.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct decoder decoder;
    static struct plugin_choice choice;
    static uint8_t row[16 * 16 * 3];

    if (!decoder.state) {
        FUZZ_CHECK(
            plugin_choose("decoder", decoder_registry, "jpeg:size=16,max-pixels=1m", &choice) == 0);
        FUZZ_CHECK(decoder_open(&decoder, &choice) == 0);
        FUZZ_CHECK(decoder.traits.row_bytes == sizeof row);
    }
    uint8_t *copy = fuzz_exact(bytes, count);
    struct decode_source source = {.bytes = copy, .length = count, .layout = SAMPLE_ENCODED};
    struct view view = {.kind = count % 4 ? VIEW_TRAIN : VIEW_EVALUATE};
    /* The last bytes select the view, so the fuzzer finds crops by itself. */
    if (count >= sizeof view.seed)
        memcpy(&view.seed, copy + count - sizeof view.seed, sizeof view.seed);
    fail_clear();
    int code = decoder_decode(&decoder, &source, &view, row);
    FUZZ_CHECK(code == 0 || code == DECODE_DAMAGED || code == -EBADMSG || code == -ENOMEM);
    FUZZ_CHECK(code == 0 || *fail_reason());
    free(copy);
    return 0;
}
