/* SPDX-License-Identifier: Apache-2.0
 *
 * outline: a catalog of hypothetical records, to study shuffles without a data set.
 */
#ifndef IOBENCH_SHUFFLE_OUTLINE_H
#define IOBENCH_SHUFFLE_OUTLINE_H

#include "dataset/catalog.h"

/* Spread records evenly over shards, with lengths uniform in record_bytes +- spread_bytes (less
 * than record_bytes), the same on every machine. Returns NULL with a reason; free with
 * catalog_destroy(). */
struct catalog *outline_create(uint64_t records, uint32_t shards, uint32_t record_bytes,
                               uint32_t spread_bytes);

#endif
