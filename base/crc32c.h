/* SPDX-License-Identifier: Apache-2.0
 *
 * crc32c: CRC-32C (Castagnoli, RFC 3720 appendix B.4), by the CPU's instruction where it has one.
 * Any thread.
 */
#ifndef IOBENCH_BASE_CRC32C_H
#define IOBENCH_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes that follow those whose CRC is crc; start with 0. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);

#endif
