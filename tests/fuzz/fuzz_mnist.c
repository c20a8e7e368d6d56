/* SPDX-License-Identifier: Apache-2.0
 * IDX files of images and labels: the first byte says how many of the others are the labels'. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "cmd/pack/source.h"

enum { PIXELS = 1 << 16, READ_MOST = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct source_config config = {.threads = 1, .quality = 50};
    struct source source;
    struct source_buffer slot = {0};
    struct sample sample;

    if (count < 1)
        return 0;
    size_t labels = bytes[0] < count - 1 ? bytes[0] : count - 1;
    fuzz_write("a-labels-idx1-ubyte", bytes + 1, labels);
    const char *path = fuzz_write("a-images-idx3-ubyte", bytes + 1 + labels, count - 1 - labels);
    fail_clear();
    int code = source_open(&source, "idx", path, &config);
    FUZZ_CHECK(code == 0 || *fail_reason());
    for (uint64_t i = 0; code == 0 && i < source.traits.count && i < READ_MOST; i++) {
        fail_clear();
        if (source_read(&source, NULL, i, &slot, &sample) == 0)
            FUZZ_CHECK(sample.image_bytes > 0 && sample.label >= 0);
        else
            FUZZ_CHECK(*fail_reason());
    }
    source_buffer_release(&slot);
    source_close(&source);
    return 0;
}
