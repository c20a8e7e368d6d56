/* SPDX-License-Identifier: Apache-2.0
 * Tar shards. The first byte chooses: parse, index or verify; its fourth bit: correct the checksum
 * of each header first. */
#include "tests/fuzz/fuzz_format.h"

#include "formats/tar_walk.h"

/* Correct the checksums of all headers reachable through the sizes. */
static void mend(uint8_t *bytes, size_t count)
{
    for (size_t offset = 0; count - offset >= TAR_BLOCK_BYTES;) {
        uint8_t *block = bytes + offset;
        unsigned sum = 0;
        memset(block + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
            sum += block[i];
        snprintf((char *)block + 148, 8, "%06o", sum);
        size_t size = 0;
        for (size_t i = 124; i < 136 && block[i] >= '0' && block[i] <= '7'; i++)
            size = size * 8 + (size_t)(block[i] - '0');
        size = (size + 2 * TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
        if (size > count - offset)
            break;
        offset += size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct plugin_choice *format = fuzz_format("tar");
    const struct shard shard = {.label = -1};

    if (count < 1)
        return 0;
    unsigned what = bytes[0] % 3;
    uint8_t *archive = fuzz_exact(bytes + 1, count - 1);
    if (bytes[0] & 8)
        mend(archive, count - 1);
    if (what == 0)
        fuzz_parse(format, &shard, archive, count - 1, 0);
    else
        fuzz_index(format, fuzz_write("x.tar", archive, count - 1), what == 2, archive, count - 1);
    free(archive);
    return 0;
}
