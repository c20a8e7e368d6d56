/* SPDX-License-Identifier: Apache-2.0
 * RecordIO. The first byte chooses: parse, index, verify, or index with an .idx file, whose
 * length the second byte gives. */
#include "tests/fuzz/fuzz_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct plugin_choice *format = fuzz_format("recordio");
    const struct shard shard = {.label = -1};

    if (count < 2)
        return 0;
    unsigned what = bytes[0] & 3;
    size_t idx_bytes = bytes[1] < count - 2 ? bytes[1] : count - 2;
    const uint8_t *idx = bytes + 2;
    bytes += 2;
    count -= 2;
    if (what == 0) {
        fuzz_parse(format, &shard, bytes, count, 0);
        return 0;
    }
    unlink(fuzz_path("x.idx"));
    if (what == 3) {
        fuzz_write("x.idx", idx, idx_bytes);
        bytes += idx_bytes;
        count -= idx_bytes;
    }
    fuzz_index(format, fuzz_write("x.rec", bytes, count), what == 2, bytes, count);
    return 0;
}
