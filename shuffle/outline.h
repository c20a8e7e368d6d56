/* SPDX-License-Identifier: Apache-2.0
 *
 * outline: a catalog of records that lie nowhere, for looking at orders without a data set.
 */
#ifndef IOBENCH_SHUFFLE_OUTLINE_H
#define IOBENCH_SHUFFLE_OUTLINE_H

#include "dataset/catalog.h"

/* records in shards of even count; lengths are even within record_bytes +- spread_bytes (less
 * than record_bytes) and the same on every machine. NULL with a reason; catalog_destroy() it. */
struct catalog *outline_create(uint64_t records, uint32_t shards, uint32_t record_bytes,
                               uint32_t spread_bytes);

#endif
