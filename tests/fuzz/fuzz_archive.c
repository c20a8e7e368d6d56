/* SPDX-License-Identifier: Apache-2.0
 * Archives as a source: two passes over one file agree in what they find. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "cmd/pack/source.h"

enum { READ_MOST = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct source_config config = {.threads = 1, .quality = 50, .skip = count & 1};
    const char *path = fuzz_write("a.tar", bytes, count);
    struct source source;
    struct source_buffer slot = {0};
    struct sample sample;
    void *cursor = NULL;

    fail_clear();
    int code = source_open(&source, "archive", path, &config);
    FUZZ_CHECK(code == 0 || *fail_reason());
    if (code == 0)
        code = source_cursor_open(&source, &cursor);
    for (uint64_t i = 0; code == 0 && i < source.traits.count && i < READ_MOST; i++) {
        fail_clear();
        code = source_read(&source, cursor, i, &slot, &sample);
        if (code == 0)
            FUZZ_CHECK(sample.label >= -1 && sample.name_bytes > 0);
        else
            FUZZ_CHECK(*fail_reason());
    }
    if (cursor)
        source_cursor_close(&source, cursor);
    source_buffer_release(&slot);
    source_close(&source);
    return 0;
}
