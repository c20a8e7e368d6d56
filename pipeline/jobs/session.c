/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/session.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "pipeline/evidence/validity.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

int session_tick(void *context)
{
    const struct session *session = context;

    return ranks_called_off(session->ranks) ? fail(ECANCELED, "another rank failed") : stop_check();
}

int session_meet(struct session *session, int code)
{
    if (code)
        ranks_call_off(session->ranks);
    return ranks_meet(session->ranks, code, NULL);
}

int session_enter_limit(struct session *session)
{
    const uint64_t bytes = session->job->cold.memory_limit_bytes;

    if (!bytes || session->job->dry_run || session->limit.from[0])
        return 0;
    return memory_limit_enter(&session->limit, &telemetry_roots_usual, bytes);
}

int session_open(struct session *session, int code)
{
    struct result *result = session->result;

    result->ranks = session->ranks->place.ranks;
    result->nodes = session->ranks->place.nodes;
    if (code == 0)
        code = session_enter_limit(session);
    session->beats = code == 0;
    if (code == 0)
        code = ranks_heart_start(session->ranks);
    code = ranks_meet(session->ranks, code, NULL);
    if (code || session->job->dry_run)
        return code;
    session->recorder =
        recorder_start(session->job->read.data, &session->job->output, session->ranks);
    if (!session->recorder)
        snprintf(result->timeline_reason, sizeof result->timeline_reason, "%.159s", fail_reason());
    return 0;
}

int session_watch(struct session *session, const struct catalog *catalog,
                  const struct job_plugins *plugins)
{
    session->witness = witness_open(&session->job->cold, catalog, plugins->reader.plugin);
    int code = ranks_meet(session->ranks, session->witness ? 0 : -ENOMEM, NULL);

    if (code == 0)
        witness_environment(session->witness, &session->result->environment);
    return code;
}

void session_close(struct session *session, int code)
{
    session->result->timeline = recorder_finish(session->recorder, code);
    if (session->beats)
        ranks_heart_stop(session->ranks);
    session->ranks->rank_timeout_ns = 0; /* the next phase may take any time */
    witness_close(session->witness);
    memory_limit_leave(&session->limit);
}

void session_judge(struct session *session, const struct job_plugins *plugins,
                   struct result_run *run)
{
    if (session->ranks->place.rank == 0)
        witness_ask_server(session->witness, &run->cold);
    validity_check(session->job, plugins, run, session->result);
    validity_account(session->result, run);
}

int session_before_epoch(struct session *session, struct result_epoch *epoch, int code)
{
    if (code == 0) /* an epoch may be too short for a tick */
        code = stop_check();
    code = ranks_meet(session->ranks, code, &epoch->start_barrier_ns);
    if (code == 0)
        witness_before(session->witness);
    return code;
}

int session_after_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct session *session = context;

    assert(session->witness);
    if (code)
        ranks_call_off(session->ranks);
    code = ranks_meet(session->ranks, code, &epoch->stop_barrier_ns);
    epoch->met_ns = clock_now_ns() - epoch->start_ns;
    witness_after(session->witness, &epoch->device);
    if (session->result->memory_during_bytes == 0)
        session->result->memory_during_bytes = memory_resident_bytes();
    epoch->guard.shortages = shortage_code() != 0;
    return code;
}
