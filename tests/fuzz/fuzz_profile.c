/* SPDX-License-Identifier: Apache-2.0
 * Step times for --trainer replay: CSV, JSON or lines of numbers. */
#include "tests/fuzz/fuzz_text.h"

#include "base/fail.h"
#include "trainer/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = fuzz_text(bytes, count);
    struct profile profile;

    fail_clear();
    int code = profile_parse("x.csv", text, count, &profile);
    FUZZ_CHECK(code ? *fail_reason() != 0 : profile.count > 0);
    profile_release(&profile);
    free(text);
    return 0;
}
