/* SPDX-License-Identifier: Apache-2.0
 * Archives as a source: two passes over one file agree in what they find. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "pack/origin.h"

enum { READ_MOST = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct origin_site site = {.threads = 1, .quality = 50};
    const char *path = fuzz_write("a.tar", bytes, count);
    struct origin origin;
    struct origin_slot slot = {0};
    struct sample sample;
    void *cursor = NULL;

    fail_clear();
    int code = origin_open(&origin, "archive", path, &site);
    FUZZ_CHECK(code == 0 || *fail_reason());
    if (code == 0)
        code = origin_cursor_open(&origin, &cursor);
    for (uint64_t i = 0; code == 0 && i < origin.traits.count && i < READ_MOST; i++) {
        fail_clear();
        code = origin_read(&origin, cursor, i, &slot, &sample);
        if (code == 0)
            FUZZ_CHECK(sample.label >= -1 && sample.name_bytes > 0);
        else
            FUZZ_CHECK(*fail_reason());
    }
    if (cursor)
        origin_cursor_close(&origin, cursor);
    origin_slot_release(&slot);
    origin_close(&origin);
    return 0;
}
