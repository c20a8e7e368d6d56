/* SPDX-License-Identifier: Apache-2.0
 *
 * tfrecord_frame: shared by reading and writing the shards format: the frame of a TFRecord
 * (tensorflow/core/lib/io/record_writer.h) and the settings.
 *
 * u64 length, u32 masked CRC-32C of those 8 bytes, the payload, u32 masked CRC-32C of the
 * payload. */
#ifndef IOBENCH_FORMATS_TFRECORD_FRAME_H
#define IOBENCH_FORMATS_TFRECORD_FRAME_H

#include "base/crc32c.h"
#include "formats/example.h"
#include "formats/format.h"

enum tfrecord_frame {
    TFRECORD_HEAD_BYTES = 12,
    TFRECORD_TAIL_BYTES = 4,
    TFRECORD_FRAME_BYTES = 16,
};

enum tfrecord_compression { TFRECORD_PLAIN, TFRECORD_GZIP, TFRECORD_ZLIB };

struct tfrecord_settings {
    char *match;
    char *image, *label;
    int base;                                /* enum example_base */
    int compression;                         /* enum tfrecord_compression, for writing */
    bool idx;                                /* write an index */
    uint64_t max_inflation, max_index_bytes; /* of compressed shards */
};

static inline struct example_keys tfrecord_keys(const struct tfrecord_settings *settings)
{
    return (struct example_keys){.image = settings->image,
                                 .label = settings->label,
                                 .base = (enum example_base)settings->base};
}

/* Mask stored CRCs, since data may contain CRCs. */
static inline uint32_t tfrecord_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

#endif
