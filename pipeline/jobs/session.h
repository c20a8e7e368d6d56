/* SPDX-License-Identifier: Apache-2.0
 *
 * session: what run, train and infer do around their epochs: memory limit, telemetry, cold caches,
 * witnesses, ranks that begin and end an epoch together, and interruption. It knows no engine.
 * Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_SESSION_H
#define IOBENCH_PIPELINE_JOBS_SESSION_H

#include "pipeline/evidence/memory_limit.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/result/result.h"

/* The caller sets the first three. */
struct session {
    const struct job *job;
    struct ranks *ranks;
    struct result *result;
    struct memory_limit limit;
    struct recorder *recorder; /* NULL: no telemetry; the job runs without it */
    struct witness *witness;   /* NULL before session_watch() */
    bool beats;                /* the ranks' heart was started */
};

/* Enter the memory limit, then start telemetry inside it; a dry run does neither. Collective; code:
 * the caller's status so far. Returns 0 or -errno, the same on all ranks; close in either case. */
int session_open(struct session *session, int code);
/* Open the witnesses of this data set and record the environment. Collective. */
int session_watch(struct session *session, const struct catalog *catalog,
                  const struct job_plugins *plugins);
/* Stop telemetry, put its timeline into the result, and undo the rest. code: the job's status. */
void session_close(struct session *session, int code);

/* Enter the memory limit unless already inside. */
int session_enter_limit(struct session *session);

/* After a run was gathered: mark it invalid if its evidence says so. */
void session_judge(struct session *session, const struct job_plugins *plugins,
                   struct result_run *run);

/* Around an epoch: the barriers at which all ranks start and stop, and the witnesses, whose
 * counters the ranks of a node share. Each takes the current status and returns the one to use. */
int session_before_epoch(struct session *session, struct result_epoch *epoch, int code);
int session_after_epoch(void *session, struct result_epoch *epoch, int code); /* a hook */

/* Return 0, or why to stop now: -EINTR after stop_ask(), -ECANCELED when another rank
 * failed. A hook. */
int session_tick(void *session);

/* Collective check after what asks session_tick(): a rank that failed ends that on the others, too.
 * It waits for them a few seconds only, so not for where one may be saving something. */
int session_meet(struct session *session, int code);

#endif
