/* SPDX-License-Identifier: Apache-2.0
 *
 * labels: the label of every record of a data set, off the clock. Main thread.
 */
#ifndef IOBENCH_PACK_LABELS_H
#define IOBENCH_PACK_LABELS_H

#include "base/plugin.h"
#include "dataset/catalog.h"

/* The labels there are, numbered from 0 in rising order, so that gaps do not matter. */
struct labels {
    int32_t *of; /* of each record: 0 .. classes - 1; free() it */
    uint32_t classes;
};

/* Do the paths of the data set tell every label, so that nothing need be read? */
bool labels_in_paths(const struct catalog *catalog);

/* From the paths, else by reading every record; then progress (may be NULL) is told record bytes
 * now and then. 0, -ENODATA when a record has no label, or another negative errno. */
int labels_read(const struct plugin_choice *format, const struct catalog *catalog,
                void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes),
                void *context, struct labels *labels);

#endif
