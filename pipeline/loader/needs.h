/* SPDX-License-Identifier: Apache-2.0
 *
 * needs: what a loader needs before one is created: read sizes, record memory and tables. Pure
 * functions. Any thread.
 */
#ifndef IOBENCH_PIPELINE_LOADER_NEEDS_H
#define IOBENCH_PIPELINE_LOADER_NEEDS_H

#include "dataset/catalog.h"
#include "pipeline/settings/settings.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

#include <stdint.h>

/* Return the queue depth, or the largest that is searched with auto. */
uint32_t loader_depth_most(const struct read_settings *read);

struct loader_memory {
    uint64_t least_bytes, wanted_bytes;
};

/* Return the minimum and the recommended record memory. */
struct loader_memory loader_memory_needed(const struct catalog *catalog,
                                          const struct plan_traits *plan,
                                          const struct read_settings *read, uint64_t window);

/* Return how fetches are coalesced into reads with this record memory (UINT64_MAX: any). The
 * reader's alignment is not known yet. */
struct coalesce loader_reads(const struct catalog *catalog, uint64_t memory_bytes,
                             const struct read_settings *read, uint64_t window);

/* Return how many fetches are in use at most. */
uint64_t loader_fetches_most(const struct plan_traits *plan, uint32_t window);

/* Return the memory for everything but the records. */
uint64_t loader_tables_bytes(const struct coalesce *reads, const struct plan_traits *plan,
                             uint64_t memory_bytes, uint32_t alignment);

#endif
