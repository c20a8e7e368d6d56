/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/start_at.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/stop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double nap_s = 0.05, late_most_s = 1; /* of one nap, on a busy machine */
static const double most_s = 7 * 86400.0;          /* a later time is a mistake */

/* "2026-01-31T12:00:00Z", or "@1769860800" as of touch and date. Returns 0 or -EINVAL. */
static int parse(const char *text, double *unix_s)
{
    struct tm parts = {0};
    char *end = NULL;

    if (text[0] == '@' && text[1] >= '0' && text[1] <= '9') {
        *unix_s = strtod(text + 1, &end);
    } else {
        end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts);
        *unix_s = end ? (double)timegm(&parts) : 0;
    }
    return end && *end == '\0'
               ? 0
               : fail(EINVAL,
                      "--start-at: '%s' is neither UTC, as in 2026-01-31T12:00:00Z, nor "
                      "seconds since 1970, as in @1769860800",
                      text);
}

static double left_s(double unix_s)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return unix_s - (double)now.tv_sec - (double)now.tv_nsec * 1e-9;
}

int start_at_check(const struct job *job)
{
    double unix_s;

    if (!job->start_at)
        return 0;
    if (job->runs != 1 || job->against || job->beside || job->paired)
        return fail(EINVAL, "--start-at starts one run: it needs --runs 1, and neither --against, "
                            "--paired nor --beside");
    const int code = parse(job->start_at, &unix_s);
    return code || left_s(unix_s) <= most_s
               ? code
               : fail(EINVAL,
                      "--start-at %s: %.0f days from now, expected at most 7 (seconds, not "
                      "milliseconds)",
                      job->start_at, left_s(unix_s) / 86400);
}

static int wait_until(const struct start_at *start, double unix_s)
{
    double left = left_s(unix_s);

    if (left < 0)
        return fail(ETIME, "--start-at %s: the run was ready %.3f s too late: choose a later time",
                    start->text, -left);
    for (; left > 0; left = left_s(unix_s)) {
        if (flag_get(&stop_asked))
            return stop_check();
        if (ranks_called_off(start->ranks)) /* it is also the heartbeat */
            return fail(ECANCELED, "another rank failed");
        clock_sleep_ns((uint64_t)((left < nap_s ? left : nap_s) * 1e9));
    }
    return left >= -late_most_s
               ? 0
               : fail(ETIME,
                      "--start-at %s: the wait ended %.3f s too late: choose a later time (the "
                      "process was stopped, or the time of day was set)",
                      start->text, -left);
}

int start_at_wait(void *context, enum run_gate gate)
{
    const struct start_at *start = context;
    double unix_s;

    if (gate != RUN_GATE_START)
        return 0;
    const int code = parse(start->text, &unix_s);
    return ranks_meet(start->ranks, code ? code : wait_until(start, unix_s), NULL);
}
