/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor: reads one record at a time, off the clock, for pack, verify and inspect. Any order works,
 * but seeking back in a compressed shard inflates it again. One cursor per thread.
 */
#ifndef IOBENCH_CMD_PACK_CURSOR_H
#define IOBENCH_CMD_PACK_CURSOR_H

#include "dataset/catalog.h"

struct cursor;

struct cursor *cursor_create(const struct catalog *catalog); /* NULL with a reason */
void cursor_destroy(struct cursor *cursor);                  /* may be NULL */

/* buffer: at least as large as the record's extent. Returns 0, or a negative errno with file and
 * offset in the reason. */
int cursor_read(struct cursor *cursor, uint64_t record, void *buffer);

#endif
