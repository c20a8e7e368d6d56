/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks: renders the comparison of a job's ranks as text and JSON; measures and judges nothing. Any
 * thread.
 */
#ifndef IOBENCH_REPORT_RANKS_H
#define IOBENCH_REPORT_RANKS_H

#include "pipeline/result/result.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* Print a table of lowest, median and highest rank, and the straggler. Prints nothing for one rank.
 */
void report_ranks_text(FILE *stream, const struct result_comparison *comparison);

/* docs/json.md, "ranks_compared"; null for one rank. */
json_t *report_ranks_json(const struct result_comparison *comparison);
/* One rank of a run. */
json_t *report_ranks_json_one(const struct result_rank *rank);

/* Describe a step of the mean rank: "63.4 ms: wait for batches 0.5%, upload 0.0%, ...". total: over
 * all ranks. Returns text. */
char *report_step(const struct result_epoch *total, uint32_t ranks, char *text, size_t text_bytes);
/* Describe the trainer's device memory: "; 3.2 GiB of the GPU, ...", or "". Returns text. */
char *report_device_memory(const struct trainer_memory *memory, char *text, size_t text_bytes);

#endif
