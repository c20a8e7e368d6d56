/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/progress.h"

#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>

struct progress progress_start(void)
{
    return (struct progress){.line = line_start()};
}

void progress_show(void *context, const struct run_progress *now)
{
    struct progress *progress = context;
    char line[sizeof progress->line.last];

    if (now->phase == RUN_DONE) {
        progress_clear(progress);
    } else if (progress->line.shown) {
        if (now->phase == RUN_EPOCH) {
            /* Short enough for any terminal: the time left comes before the rate. */
            const struct job *job = now->job;
            double seconds = (double)now->elapsed_ns * 1e-9;
            char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], epoch[64] = "", rate[WORDS_BYTES];
            char mib[WORDS_BYTES], of[32] = "";
            if (job->epochs > 1)
                snprintf(epoch, sizeof epoch, ", epoch %" PRIu64 "/%" PRIu64, now->epoch + 1,
                         job->epochs);
            if (job->runs)
                snprintf(of, sizeof of, "/%" PRIu64, job->runs);
            int length = snprintf(line, sizeof line, "run %" PRIu64 "%s%s  %s%s", now->run + 1, of,
                                  epoch, line_bar(bar, now->done, now->total),
                                  line_left(left, now->done, now->total, now->elapsed_ns));
            if (now->done && seconds > 0 && (size_t)length < sizeof line)
                snprintf(line + length, sizeof line - (size_t)length, "  %s samples/s  %s MiB/s",
                         words_rate((double)now->done / seconds, rate),
                         words_rate((double)now->bytes / seconds / 1048576, mib));
        } else {
            const size_t bytes = sizeof line;
            const bool drops = now->job->cold.drop_caches != JOB_DROP_NO;
            const char *const phases[] = {
                [RUN_INDEX] = "indexing",
                [RUN_DROP] = drops ? "dropping caches" : "checking the caches",
                [RUN_CALIBRATE] = "calibrating",
            };
            char bar[LINE_PART_BYTES], left[LINE_PART_BYTES];
            if (now->total)
                snprintf(line, bytes, "%s  %s%s", phases[now->phase],
                         line_bar(bar, now->done, now->total),
                         line_left(left, now->done, now->total, now->elapsed_ns));
            else
                snprintf(line, bytes, "%s, %.0f s", phases[now->phase],
                         (double)now->elapsed_ns * 1e-9);
        }
        line_show(&progress->line, line);
    }
}

void progress_clear(struct progress *progress)
{
    line_clear(&progress->line);
}
