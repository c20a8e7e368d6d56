/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor: the bytes of one record after the other, off the clock, for pack, verify and inspect.
 * Any order, except that in a compressed shard going back means inflating it anew. One thread;
 * each thread its own.
 */
#ifndef IOBENCH_PACK_CURSOR_H
#define IOBENCH_PACK_CURSOR_H

#include "dataset/catalog.h"

struct cursor;

struct cursor *cursor_create(const struct catalog *catalog); /* NULL with a reason */
void cursor_destroy(struct cursor *cursor);                  /* NULL is fine */

/* buffer: at least the bytes of the record's extent. 0, or a negative errno with file and
 * offset in the reason. */
int cursor_read(struct cursor *cursor, uint64_t record, void *buffer);

#endif
