/* SPDX-License-Identifier: Apache-2.0
 * beside: what `iobench run --beside` reports. Main thread only. */
#ifndef IOBENCH_CMD_RUN_BESIDE_H
#define IOBENCH_CMD_RUN_BESIDE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Order of the documents: first job alone, second alone, first beside, second beside. */
enum { BESIDE_JOBS = 2, BESIDE_MEMBERS = 4 };

/* "beside" of the JSON document (docs/json.md). documents: of the members. NULL with a reason. */
json_t *beside_json(json_t *const documents[BESIDE_MEMBERS], bool has_shared_data);
void beside_text(FILE *stream, const json_t *beside);

struct run_progress;
/* Of struct run_observer: show the line of a run; context is a struct line. */
void progress_show(void *context, const struct run_progress *now);

#endif
