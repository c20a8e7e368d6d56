/* SPDX-License-Identifier: Apache-2.0
 *
 * content: what a checkpoint holds: random bytes from a seed that neither compress nor repeat.
 *
 * A chunk is a pattern, the same for all chunks and filled in once, with a stamp in each block of
 * 4 KiB that no other block of any checkpoint has. So a chunk costs a checksum and a few stores,
 * far less than storage does, and a chunk that is misplaced, stale or damaged has another checksum.
 * Any thread.
 */
#ifndef IOBENCH_CHECKPOINT_CONTENT_H
#define IOBENCH_CHECKPOINT_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* Off the clock; chunk: 8-byte aligned. */
void content_fill(void *chunk, size_t bytes, uint64_t seed);

/* Stamp a filled chunk with its file offset and the checkpoint's key. Returns its CRC-32C. */
uint32_t content_stamp(void *chunk, size_t bytes, uint64_t key, uint32_t file, uint64_t offset);

/* Bytes per second that one thread generates, or verifies, measured for about 50 ms. */
struct content_ceiling {
    double made_per_s, checked_per_s;
};
void content_measure(void *chunk, size_t bytes, struct content_ceiling *ceiling);

#endif
