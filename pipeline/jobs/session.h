/* SPDX-License-Identifier: Apache-2.0
 *
 * session: what run, train and infer do around their epochs: memory limit, telemetry, cold caches,
 * witnesses, ranks that begin and end an epoch together, interruption, finding the data set and
 * keeping its hints. It knows no engine. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_SESSION_H
#define IOBENCH_PIPELINE_JOBS_SESSION_H

#include "base/control_group.h"
#include "dataset/hints.h"
#include "formats/format.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/result/result.h"
#include "pipeline/settings/job.h"
#include "telemetry/probe.h"

/* ---- the memory limit ----
 *
 * Caps memory and page cache of this process with its own control group (version 1:
 * memory.limit_in_bytes, version 2: memory.max), so that a small data set behaves like one larger
 * than memory. Requires a group that this user may write to: root's or a delegated one. One thread,
 * while no other works.
 *
 * Memory allocated before stays charged to the previous group. So do pages that other processes
 * read, which bypass the limit: evict them first. */

struct memory_limit {
    char from[CONTROL_GROUP_BYTES];       /* the previous group; "" if no limit was entered */
    char group[CONTROL_GROUP_BYTES + 32]; /* the group created */
};

/* Create a group with this limit and move this process into it. Returns 0, or -errno with a reason.
 */
int memory_limit_enter(struct memory_limit *limit, const struct telemetry_roots *roots,
                       uint64_t bytes);
/* Move this process back and remove the group. Accepts a zeroed struct. */
void memory_limit_leave(struct memory_limit *limit);

/* The caller sets the first three. */
struct session {
    const struct job *job;
    struct ranks *ranks;
    struct result *result;
    struct memory_limit limit;
    struct recorder *recorder; /* NULL: no telemetry; the job runs without it */
    /* Set by session_watch(); NULL before. */
    struct catalog *catalog;
    const struct job_plugins *plugins;
    struct witness *witness;
    struct hinting hinting; /* hints that the engine makes, if the job asks for them */
    bool beats;             /* the ranks' heart was started */
};

/* Enter the memory limit, then start telemetry inside it; a dry run does neither. Collective; code:
 * the caller's status so far. Returns 0 or -errno, the same on all ranks; close in either case. */
int session_open(struct session *session, int code);
/* Open the witnesses of this data set and record the environment. Collective. */
int session_watch(struct session *session, struct catalog *catalog,
                  const struct job_plugins *plugins);
/* Stop telemetry, put its timeline into the result, and undo the rest. code: the job's status. */
void session_close(struct session *session, int code);

/* Enter the memory limit unless already inside. */
int session_enter_limit(struct session *session);

/* After a run was gathered: mark it invalid if its evidence says so. */
void session_judge(struct session *session, struct result_run *run);

/* Around an epoch: the barriers at which all ranks start and stop, and the witnesses, whose
 * counters the ranks of a node share. Each takes the current status and returns the one to use. */
int session_before_epoch(struct session *session, struct result_epoch *epoch, int code);
int session_after_epoch(void *session, struct result_epoch *epoch, int code); /* a hook */

/* Return 0, or why to stop now: -EINTR after stop_ask(), -ECANCELED when another rank
 * failed. A hook. */
int session_tick(void *session);

/* Collective check after work that calls session_tick(): if a rank failed, this ends the work on
 * the others, too. It waits only a few seconds for them, so do not use it where one may be saving
 * something. */
int session_meet(struct session *session, int code);

/* Find the data set of a job, with format, catalog and reader. Off the clock. plugins: from
 * job_choose(); the format is added, and the reader is replaced, with a notice, if only another one
 * can read the set. Collective. Returns 0 or -errno, the same on all ranks; destroy the catalog in
 * either case. */
int find_data(const struct job *job, struct ranks *ranks, const struct format_scan *scan,
              struct job_plugins *plugins, struct catalog **catalog, struct result *result);

/* Write the hints that an epoch made to those of the data set. Hints already there stay, if their
 * records were not drawn or the hints are good. Rank 0 writes the hints of all ranks, and then all
 * ranks load them for later epochs. Once only, while no decode thread works. code: the status of
 * the epoch, which is returned: if it failed, only an interrupted process that is alone writes what
 * it has. A failure to write does not fail the job. Collective if code is 0. */
int keep_hints(struct session *session, int code);

#endif
