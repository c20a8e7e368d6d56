/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints. With an odd first byte the CRC is corrected, so that the content is accepted. A
 * checkpoint that was read can be written, giving the same file. */
#include "tests/fuzz/fuzz.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "trainer/weights.h"

enum { PARAMETERS = 6, STATISTICS = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct checkpoint wanted = {.network = "lenet",
                                      .side = 28,
                                      .classes = 10,
                                      .parameter_floats = PARAMETERS,
                                      .statistic_floats = STATISTICS};
    float floats[2 * PARAMETERS + STATISTICS];
    struct checkpoint found;
    char *again;
    size_t again_bytes;

    if (count < 1)
        return 0;
    uint8_t *copy = fuzz_exact(bytes + 1, count - 1);
    if ((bytes[0] & 1) && count > 5)
        bytes_put_le32(copy + count - 5, crc32c(0, copy, count - 5));
    const char *path = fuzz_write("checkpoint", copy, count - 1);
    fail_clear();
    if (checkpoint_read(path, &wanted, &found, floats)) {
        FUZZ_CHECK(*fail_reason());
    } else {
        FUZZ_CHECK(checkpoint_write(path, &found, floats) == 0);
        FUZZ_CHECK(file_load(path, 1 << 20, &again, &again_bytes) == 0);
        /* Bytes after the CRC are dropped; version 1 has no settings, and is written as version 2.
         */
        FUZZ_CHECK(again_bytes <= count - 1 + CHECKPOINT_SETTINGS_BYTES);
        free(again);
        struct checkpoint same;
        FUZZ_CHECK(checkpoint_read(path, &wanted, &same, floats) == 0);
        FUZZ_CHECK(same.position.epoch == found.position.epoch && same.step == found.step &&
                   same.seed == found.seed && same.position.samples == found.position.samples);
    }
    free(copy);
    return 0;
}
