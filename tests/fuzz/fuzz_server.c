/* SPDX-License-Identifier: Apache-2.0
 * Output of a storage server's check command. */
#include "tests/fuzz/fuzz_text.h"

#include "base/fail.h"
#include "cachectl/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = fuzz_text(bytes, count);
    struct server_look look;

    fail_clear();
    int code = server_parse(text, &look);
    FUZZ_CHECK(strlen(look.reason) < sizeof look.reason);
    if (code)
        FUZZ_CHECK(*fail_reason());
    else if (look.resident_known)
        FUZZ_CHECK(look.resident_bytes <= look.total_bytes && look.total_bytes <= INT64_MAX);
    free(text);
    return 0;
}
