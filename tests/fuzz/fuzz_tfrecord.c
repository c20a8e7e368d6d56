/* SPDX-License-Identifier: Apache-2.0
 * TFRecords. The first byte chooses: parse as it is, parse as an Example with correct framing,
 * index, verify, index a file with corrected length CRCs, or index with an .idx file, whose length
 * the second byte gives. */
#include "tests/fuzz/fuzz_format.h"

#include "base/bytes.h"
#include "base/crc32c.h"

enum { TFRECORD_HEAD_BYTES = 12, TFRECORD_FRAME_BYTES = 16 };

static uint32_t tfrecord_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static void parse_framed(const struct plugin_choice *format, const uint8_t *bytes, size_t count)
{
    const struct shard shard = {.label = -1};
    uint8_t *record = malloc(count + TFRECORD_FRAME_BYTES);

    FUZZ_CHECK(record);
    bytes_put_le64(record, count);
    bytes_put_le32(record + 8, tfrecord_mask(crc32c(0, record, 8)));
    memcpy(record + TFRECORD_HEAD_BYTES, bytes, count);
    bytes_put_le32(record + TFRECORD_HEAD_BYTES + count, tfrecord_mask(crc32c(0, bytes, count)));
    fuzz_parse(format, &shard, record, count + TFRECORD_FRAME_BYTES, 0);
    free(record);
}

/* Correct the CRC of each length that is reachable through the chain of records. */
static void mend(uint8_t *bytes, size_t count)
{
    size_t offset = 0;

    while (count - offset >= TFRECORD_FRAME_BYTES) {
        uint64_t length = bytes_le64(bytes + offset);
        bytes_put_le32(bytes + offset + 8, tfrecord_mask(crc32c(0, bytes + offset, 8)));
        if (length > count - offset - TFRECORD_FRAME_BYTES)
            break;
        offset += TFRECORD_FRAME_BYTES + (size_t)length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct plugin_choice *format = fuzz_format("shards");
    const struct shard shard = {.label = -1};

    if (count < 2)
        return 0;
    unsigned what = bytes[0] % 6;
    size_t idx_bytes = bytes[1] < count - 2 ? bytes[1] : count - 2;
    uint8_t *all = fuzz_exact(bytes + 2, count - 2), *at = all;
    count -= 2;
    unlink(fuzz_path("x.idx"));
    if (what == 5) {
        fuzz_write("x.idx", at, idx_bytes);
        at += idx_bytes;
        count -= idx_bytes;
    }
    if (what >= 4)
        mend(at, count);
    if (what == 0)
        fuzz_parse(format, &shard, at, count, FORMAT_SKIP_CRC);
    else if (what == 1)
        parse_framed(format, at, count);
    else
        fuzz_index(format, fuzz_write("x.tfrecord", at, count), what == 3, at, count);
    free(all);
    return 0;
}
