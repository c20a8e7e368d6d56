/* SPDX-License-Identifier: Apache-2.0
 *
 * budget: checks the memory that a job needs against the memory it may use, before anything is
 * allocated. Any thread.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_BUDGET_H
#define IOBENCH_PIPELINE_ENGINE_BUDGET_H

#include "base/memory.h"
#include "pipeline/engine/engine.h"
#include "pipeline/result/result.h"
#include "shuffle/plan.h"

/* Return the memory still available to this rank: its share of the machine's or of the control
 * group's memory, or the rest of --memory-limit, of which a network already uses held_bytes;
 * and which of these decides. */
struct headroom budget_headroom(const struct engine_config *config, uint64_t held_bytes);

/* Divide the memory, see result->memory_bytes and the following; either way fills *result as far as
 * it got. workers: decode threads; decoder_bytes: held by each one's decoder. Returns 0, or -ENOMEM
 * with a reason that gives both figures. */
int budget_make(const struct engine_config *config, const struct plan_traits *plan,
                uint32_t workers, uint64_t batches_bytes, uint64_t decoder_bytes,
                uint64_t held_bytes, struct result *result);

#endif
