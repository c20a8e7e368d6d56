/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/progress.h"

#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>

struct progress progress_start(const struct job *job)
{
    return (struct progress){.line = line_start(), .runs = job->runs, .epochs = job->epochs};
}

static void write_line(char *line, size_t bytes, const struct progress *progress,
                       const struct run_progress *now)
{
    static const char *const phases[] = {
        [RUN_INDEX] = "indexing",       [RUN_SYNTHESIS] = "making data",
        [RUN_DROP] = "dropping caches", [RUN_CALIBRATE] = "calibrating",
        [RUN_EPOCH] = "reading",        [RUN_DONE] = "",
    };
    double seconds = (double)now->elapsed_ns * 1e-9;
    char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], rate[WORDS_BYTES], mib[WORDS_BYTES];

    line_bar(bar, now->done, now->total);
    line_left(left, now->done, now->total, now->elapsed_ns);
    if (now->phase != RUN_EPOCH) {
        snprintf(line, bytes, "%s %s%s", phases[now->phase], bar, left);
        if (!now->total && now->elapsed_ns)
            snprintf(line, bytes, "%s, %.0f s", phases[now->phase], seconds);
        return;
    }
    words_rate(seconds > 0 ? (double)now->done / seconds : 0, rate);
    words_rate(seconds > 0 ? (double)now->bytes / seconds / 1048576 : 0, mib);
    snprintf(line, bytes,
             "run %" PRIu64 "/%" PRIu64 " epoch %" PRIu64 "/%" PRIu64 " %s %s samples/s %s MiB/s%s",
             now->run + 1, progress->runs, now->epoch + 1, progress->epochs, bar, rate, mib, left);
}

void progress_show(void *context, const struct run_progress *now)
{
    struct progress *progress = context;
    char line[sizeof progress->line.last];

    if (now->phase == RUN_DONE) {
        progress_clear(progress);
    } else if (progress->line.shown) {
        write_line(line, sizeof line, progress, now);
        line_show(&progress->line, line);
    }
}

void progress_clear(struct progress *progress)
{
    line_clear(&progress->line);
}
