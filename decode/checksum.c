/* SPDX-License-Identifier: Apache-2.0
 *
 * The checksum decoder: every byte of the image is read once and nothing is decoded, the least a
 * consumer of the bytes can do. The row is 8 bytes, a little-endian u64: the CRC-32C of the image
 * in the low half, its length (mod 2^32) in the high half. So a run can keep a digest of
 * (label, image) pairs that does not depend on the order, as a sum of hashes of rows.
 */
#include "base/bytes.h"
#include "decode/plugins.h"

#include <isa-l/crc.h>

enum { ROW_BYTES = 8, STEP_BYTES = 1 << 30 };

static int checksum_open(void *state, const void *settings, struct decoder_traits *traits)
{
    (void)state;
    (void)settings;
    traits->row_bytes = ROW_BYTES;
    traits->reads_image = true;
    return 0;
}

static void checksum_close(void *state)
{
    (void)state;
}

static int checksum_decode(void *state, const struct decode_source *source, const struct view *view,
                           void *row, struct decode_figures *figures)
{
    /* ISA-L takes bytes it does not change without const, and an int for their count. */
    unsigned char *bytes = (unsigned char *)(uintptr_t)source->bytes;
    uint32_t crc = UINT32_MAX;

    (void)state;
    (void)view;
    (void)figures;
    for (size_t left = source->length; left;) {
        size_t step = left < STEP_BYTES ? left : STEP_BYTES;
        crc = crc32_iscsi(bytes, (int)step, crc);
        bytes += step;
        left -= step;
    }
    bytes_put_le32(row, ~crc);
    bytes_put_le32((uint8_t *)row + 4, (uint32_t)source->length);
    return 0;
}

const struct decoder_ops decoder_checksum = {
    .plugin = {.name = "checksum", .summary = "reads every byte of the image, decodes nothing"},
    .open = checksum_open,
    .close = checksum_close,
    .decode = checksum_decode,
};
