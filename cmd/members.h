/* SPDX-License-Identifier: Apache-2.0
 *
 * members: jobs of `iobench run`, each in its own process. The parent runs them in stages; a stage
 * is one run of one of them, or of several that start together. For run --beside and net --beside.
 * What run.c shows of them. Main thread only.
 */
#ifndef IOBENCH_CMD_MEMBERS_H
#define IOBENCH_CMD_MEMBERS_H

#include "cmd/command.h"
#include "pipeline/jobs/run.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

enum { MEMBERS_MAX = 4, MEMBERS_LABEL_BYTES = 256 };

/* gate of struct run_observer, in a member; gate: its end of the socket to the parent. */
int member_wait(void *gate, enum run_gate what);

/* Run a job in a member and add its JSON to documents. Returns enum command_exit. */
typedef int member_work(const struct invocation *invocation, struct job *job, const int *gate,
                        json_t *documents);

struct member {
    struct job job;
    char label[MEMBERS_LABEL_BYTES];
    pid_t pid;
    int socket;       /* to the member; -1: it has ended */
    int text, result; /* unnamed files: its output, and its JSON */
    int status;       /* enum command_exit, once it has ended */
};

struct members {
    const struct invocation *invocation;
    struct member list[MEMBERS_MAX];
    uint32_t started;
    bool keeps_messages; /* what they write on stderr is part of `text` */
};

/* Start a process for a job; it does nothing until members_prepare(). what: its label is that of
 * the job, a comma, and this. Returns 0 or a negative errno with a reason. */
int members_start(struct members *members, const struct job *job, const char *what,
                  member_work *work);
/* Let them index and calibrate, one after the other. rank of ranks: the part of the set that each
 * reads; ranks 0: that of its job. */
int members_prepare(struct members *members, uint32_t rank, uint32_t ranks);
/* Let the members of a stage (bits) drop caches, and wait until all can start. */
int members_ready(struct members *members, unsigned stage);
/* Let them start. */
int members_go(struct members *members, unsigned stage);
/* Has the last run of a member ended, or the member? Does not wait. */
bool members_have_ended(struct members *members, unsigned stage);
/* Wait until they have ended that run; is_last: they may end. */
int members_await(struct members *members, unsigned stage, bool is_last);
/* Reap all members; after a failure (code) stop them first. */
void members_end(struct members *members, int code);
/* Print what a member wrote. */
void members_print(const struct member *member);
/* Return the last failure that it reported, without the program's name; free() it. NULL: none. */
char *members_reason(const struct member *member);
/* Append the member's result to documents. Returns 0 or -ENODATA with a reason. */
int members_collect(const struct member *member, json_t *documents);
void members_release(struct members *members);

/* ---- in cmd/run/run.c ---- */

/* Of type member_work. */
int run_as_member(const struct invocation *invocation, struct job *job, const int *gate,
                  json_t *documents);

/* Order of the documents: first job alone, second alone, first beside, second beside. */
enum { BESIDE_JOBS = 2, BESIDE_MEMBERS = 4 };

/* "beside" of the JSON document (docs/json.md). documents: of the members. NULL with a reason. */
json_t *beside_json(json_t *const documents[BESIDE_MEMBERS], bool has_shared_data);
void beside_text(FILE *stream, const json_t *beside);

/* progress() of struct run_observer: show the line of a run. context is a struct line. */
void progress_show(void *context, const struct run_progress *now);

#endif
