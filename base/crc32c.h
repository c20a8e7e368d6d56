/* SPDX-License-Identifier: Apache-2.0
 *
 * crc32c: CRC-32C (Castagnoli, RFC 3720 appendix B.4), in hardware if available. Any thread.
 */
#ifndef IOBENCH_BASE_CRC32C_H
#define IOBENCH_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extend crc, that of the preceding bytes, or 0, over these bytes. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);

#endif
