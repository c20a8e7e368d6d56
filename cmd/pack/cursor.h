/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor: reads one record at a time, off the clock, for pack, verify and inspect, and the labels
 * of all. Any order works, but seeking back in a compressed shard inflates it again. One cursor per
 * thread.
 */
#ifndef IOBENCH_CMD_PACK_CURSOR_H
#define IOBENCH_CMD_PACK_CURSOR_H

#include "base/plugin.h"
#include "base/sample.h"
#include "dataset/catalog.h"

struct cursor;

struct cursor *cursor_create(const struct catalog *catalog); /* NULL with a reason */
void cursor_destroy(struct cursor *cursor);                  /* may be NULL */

/* buffer: at least as large as the record's extent. Returns 0, or a negative errno with file and
 * offset in the reason. */
int cursor_read(struct cursor *cursor, uint64_t record, void *buffer);
/* The same into memory of the cursor. */
int cursor_load(struct cursor *cursor, uint64_t record);
/* format_parse() the loaded record; the sample lasts until the next one is loaded. */
int cursor_parse(struct cursor *cursor, const struct plugin_choice *format, unsigned flags,
                 struct sample *sample);

/* The labels that occur, numbered from 0 in ascending order, so gaps do not matter. */
struct labels {
    int32_t *of; /* per record: 0 to classes - 1; free() it */
    uint32_t classes;
};

/* Do the paths of the data set give every label, so that nothing need be read? */
bool labels_in_paths(const struct catalog *catalog);

/* Take the labels from the paths, else read every record; then progress (may be NULL) is called
 * with record bytes. Returns 0, -ENODATA if a record has no label, or another negative errno. Main
 * thread. */
int labels_read(const struct plugin_choice *format, const struct catalog *catalog,
                void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes),
                void *context, struct labels *labels);

/* For qsort() of int32_t. */
int labels_compare(const void *a, const void *b);

#endif
