/* SPDX-License-Identifier: Apache-2.0
 *
 * bytes: little- and big-endian numbers in memory, alignment, and sizes as text.
 */
#ifndef IOBENCH_BASE_BYTES_H
#define IOBENCH_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t bytes_le16(const void *p)
{
    const uint8_t *b = p;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t bytes_le32(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t bytes_le64(const void *p)
{
    return (uint64_t)bytes_le32(p) | (uint64_t)bytes_le32((const uint8_t *)p + 4) << 32;
}

static inline uint32_t bytes_be16(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 8 | b[1];
}

static inline uint32_t bytes_be32(const void *p)
{
    return bytes_be16(p) << 16 | bytes_be16((const uint8_t *)p + 2);
}

static inline void bytes_put_le16(void *p, uint16_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}

static inline void bytes_put_le32(void *p, uint32_t v)
{
    bytes_put_le16(p, (uint16_t)v);
    bytes_put_le16((uint8_t *)p + 2, (uint16_t)(v >> 16));
}

static inline void bytes_put_le64(void *p, uint64_t v)
{
    bytes_put_le32(p, (uint32_t)v);
    bytes_put_le32((uint8_t *)p + 4, (uint32_t)(v >> 32));
}

static inline float bytes_le_float(const void *p)
{
    uint32_t v = bytes_le32(p);
    float f;
    memcpy(&f, &v, sizeof f);
    return f;
}

static inline void bytes_put_le_float(void *p, float f)
{
    uint32_t v;
    memcpy(&v, &f, sizeof v);
    bytes_put_le32(p, v);
}

/* alignment: a power of two. */
static inline uint64_t bytes_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline uint64_t bytes_align_down(uint64_t value, uint64_t alignment)
{
    return value & ~(alignment - 1);
}

/* Format as "1.50 GiB", in binary units, into text of at least 32 bytes; returns text. */
const char *bytes_text(uint64_t bytes, char *text, size_t text_bytes);

#endif
