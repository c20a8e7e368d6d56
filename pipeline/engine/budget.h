/* SPDX-License-Identifier: Apache-2.0
 *
 * budget: checks the memory that a job needs against the memory it may use, before anything is
 * allocated. Any thread.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_BUDGET_H
#define IOBENCH_PIPELINE_ENGINE_BUDGET_H

#include "base/headroom.h"
#include "dataset/catalog.h"
#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"
#include "shuffle/plan.h"

struct budget_config {
    const struct read_settings *read;
    const struct order_settings *order;
    const struct cold_settings *cold;
    const struct catalog *catalog;
    const struct plan_traits *plan;
    const struct ranks *ranks; /* NULL: a single process */
    bool direct;
    uint32_t workers;
    uint64_t batches_bytes;
    uint64_t held_bytes; /* part of --memory-limit that a network already uses */
};

/* Return the memory still available to this rank: its share of the machine's or of the control
 * group's memory, or the rest of --memory-limit. *headroom names which of these decides. */
uint64_t budget_available_bytes(const struct cold_settings *cold, const struct ranks *ranks,
                                uint64_t held_bytes, struct headroom *headroom);

/* Divide the memory, see result->memory_bytes and the following; either way fills *result as far as
 * it got. Returns 0, or -ENOMEM with a reason that gives both figures. */
int budget_make(const struct budget_config *config, struct result *result);

#endif
