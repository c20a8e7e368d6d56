/* SPDX-License-Identifier: Apache-2.0
 *
 * labels: the label of every record of a data set, off the clock. Main thread.
 */
#ifndef IOBENCH_CMD_PACK_LABELS_H
#define IOBENCH_CMD_PACK_LABELS_H

#include "base/plugin.h"
#include "dataset/catalog.h"

/* The labels that occur, numbered from 0 in ascending order, so gaps do not matter. */
struct labels {
    int32_t *of; /* per record: 0 to classes - 1; free() it */
    uint32_t classes;
};

/* Do the paths of the data set give every label, so that nothing need be read? */
bool labels_in_paths(const struct catalog *catalog);

/* Take the labels from the paths, else read every record; then progress (may be NULL) is called
 * with record bytes. Returns 0, -ENODATA if a record has no label, or another negative errno. */
int labels_read(const struct plugin_choice *format, const struct catalog *catalog,
                void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes),
                void *context, struct labels *labels);

#endif
