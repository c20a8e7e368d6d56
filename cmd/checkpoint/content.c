/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/content.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/random.h"

#include <string.h>

enum { BLOCK_BYTES = 4096 };
static const uint64_t MEASURE_NS = 25000000;

void content_fill(void *chunk, size_t bytes, uint64_t seed)
{
    struct random random = random_start(seed);
    uint64_t *words = chunk;

    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = random_next(&random);
}

/* Block by block, so the checksum finds the stamped block in the CPU cache. */
uint32_t content_stamp(void *chunk, size_t bytes, uint64_t key, uint32_t file, uint64_t offset)
{
    uint8_t *at = chunk;
    uint32_t crc = 0;

    for (size_t i = 0; i < bytes; i += BLOCK_BYTES) {
        uint64_t stamp = random_hash(key, file, offset + i);
        memcpy(at + i, &stamp, sizeof stamp);
        crc = crc32c(crc, at + i, BLOCK_BYTES);
    }
    return crc;
}

void content_measure(void *chunk, size_t bytes, struct content_ceiling *ceiling)
{
    uint64_t count = 0, start_ns = clock_now_ns(), now_ns = start_ns;

    for (; now_ns - start_ns < MEASURE_NS; now_ns = clock_now_ns())
        content_stamp(chunk, bytes, 0, 0, count++ * bytes);
    ceiling->made_per_s = (double)(count * bytes) / ((double)(now_ns - start_ns) * 1e-9);
    start_ns = now_ns;
    volatile uint32_t sum = 0; /* prevents the loop from being optimised away */
    for (count = 0; now_ns - start_ns < MEASURE_NS; now_ns = clock_now_ns(), count++)
        sum = sum + crc32c(0, chunk, bytes);
    ceiling->checked_per_s = (double)(count * bytes) / ((double)(now_ns - start_ns) * 1e-9);
}
