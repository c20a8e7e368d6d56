/* SPDX-License-Identifier: Apache-2.0
 *
 * beside: two jobs, each alone and both at once. Four processes, one for each job alone and one for
 * each beside the other, make one run a round; this process tells them when, so that no more than
 * one stage is at work at a time, and the two of a pair start together. Main thread only.
 */
#ifndef IOBENCH_CMD_RUN_BESIDE_H
#define IOBENCH_CMD_RUN_BESIDE_H

#include "cmd/members.h"

#include <jansson.h>

/* Run jobs[0] (with --beside) and jobs[1] (its options applied). Returns enum command_exit. */
int beside_carry_out(const struct invocation *invocation, struct job *jobs, member_work *work);

/* Order of the documents: first job alone, second alone, first beside, second beside. */
enum { BESIDE_JOBS = 2, BESIDE_MEMBERS = 4 };

/* "beside" of the JSON document (docs/json.md). documents: of the members. NULL with a reason. */
json_t *beside_json(json_t *const documents[BESIDE_MEMBERS], bool has_shared_data);
void beside_text(FILE *stream, const json_t *beside);

#endif
