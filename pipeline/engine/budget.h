/* SPDX-License-Identifier: Apache-2.0
 *
 * budget: what a job will take of memory, weighed against what it may take, before anything is
 * allocated. Any thread.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_BUDGET_H
#define IOBENCH_PIPELINE_ENGINE_BUDGET_H

#include "base/headroom.h"
#include "dataset/catalog.h"
#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

struct budget_config {
    const struct job *job;
    const struct catalog *catalog;
    const struct plan_traits *plan;
    const struct ranks *ranks; /* NULL: one alone */
    bool direct;
    uint32_t workers;
    uint64_t batches_bytes;
    uint64_t held_bytes; /* of --memory-limit, by a network that was there before */
};

struct budget {
    uint64_t records_bytes, tables_bytes, batches_bytes, decode_bytes;
    uint64_t available_bytes;
    struct coalesce reads; /* what this memory lets the loader read at once */
};

/* Memory that may still be taken: a share of the machine's, or its control group's; or what is left
 * of --memory-limit. *headroom says what decides. */
uint64_t budget_available_bytes(const struct job *job, const struct ranks *ranks,
                                uint64_t held_bytes, struct headroom *headroom);

/* 0, or -ENOMEM with a reason that has both figures. The budget is filled in either case, as far as
 * it was found. */
int budget_make(const struct budget_config *config, struct budget *budget, struct result *result);
uint64_t budget_total_bytes(const struct budget *budget);

#endif
