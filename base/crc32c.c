/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <isa-l/crc.h>

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    enum { MOST = 1 << 30 }; /* ISA-L takes an int */
    const uint8_t *at = bytes;

    crc = ~crc;
    while (count > 0) {
        size_t part = count < MOST ? count : MOST;
        crc = crc32_iscsi((unsigned char *)(uintptr_t)at, (int)part, crc);
        at += part;
        count -= part;
    }
    return ~crc;
}
