/* SPDX-License-Identifier: Apache-2.0
 * A catalog of records that lie nowhere, for tests of orders. */
#ifndef IOBENCH_TESTS_MADE_CATALOG_H
#define IOBENCH_TESTS_MADE_CATALOG_H

#include "dataset/catalog.h"

/* shards of uneven length: shard s has about records / shards, the last ones fewer. */
struct catalog *made_catalog(uint64_t records, uint32_t shards, uint32_t record_bytes);
void made_catalog_free(struct catalog *catalog);

#endif
