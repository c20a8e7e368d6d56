/* SPDX-License-Identifier: Apache-2.0
 * A job of `iobench run` in a process of its own (cmd/members.h). */
#ifndef IOBENCH_CMD_MEMBER_H
#define IOBENCH_CMD_MEMBER_H

#include "cmd/members.h"

/* Of type member_work; in cmd/run/run.c. */
int run_as_member(const struct invocation *invocation, struct job *job,
                  const struct member_gate *gate, json_t *documents);

#endif
