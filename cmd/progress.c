/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/progress.h"

#include "base/bytes.h"
#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 20 };

struct progress progress_start(const struct job *job)
{
    const char *terminal = getenv("TERM");

    return (struct progress){.shown = isatty(STDERR_FILENO) &&
                                      (!terminal || strcmp(terminal, "dumb") != 0),
                             .runs = job->runs,
                             .epochs = job->epochs};
}

static unsigned terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20)
        return 80;
    return size.ws_col;
}

/* "[#########...........]  45%" */
static void write_bar(char *text, size_t bytes, double done)
{
    int filled = (int)(done * BAR);

    snprintf(text, bytes, "[%.*s%.*s] %3.0f%%", filled, "####################", BAR - filled,
             "....................", 100 * done);
}

/* "  0:42 left", once there is something to go by. */
static void write_left(char *text, size_t bytes, const struct run_progress *progress)
{
    text[0] = '\0';
    if (progress->done == 0 || progress->done > progress->total ||
        progress->elapsed_ns < 1000000000)
        return;
    double left = (double)progress->elapsed_ns * 1e-9 * (double)(progress->total - progress->done) /
                  (double)progress->done;
    if (left < 360000)
        snprintf(text, bytes, "  %d:%02d left", (int)left / 60, (int)left % 60);
}

static void write_line(char *line, size_t bytes, const struct progress *progress,
                       const struct run_progress *now)
{
    static const char *const phases[] = {
        [RUN_INDEX] = "indexing",       [RUN_SYNTHESIS] = "making data",
        [RUN_DROP] = "dropping caches", [RUN_CALIBRATE] = "calibrating",
        [RUN_EPOCH] = "reading",        [RUN_DONE] = "",
    };
    double share = now->total ? (double)now->done / (double)now->total : 0;
    double seconds = (double)now->elapsed_ns * 1e-9;
    char bar[48] = "", left[32], rate[WORDS_BYTES], mib[WORDS_BYTES];

    if (now->total)
        write_bar(bar, sizeof bar, share > 1 ? 1 : share);
    write_left(left, sizeof left, now);
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
    char line[sizeof progress->last];

    if (!progress->shown)
        return;
    if (now->phase == RUN_DONE) {
        progress_clear(progress);
        return;
    }
    write_line(line, sizeof line, progress, now);
    if (strcmp(line, progress->last) == 0)
        return;
    fprintf(stderr, "\r%.*s\033[K", (int)terminal_columns() - 1, line);
    fflush(stderr);
    memcpy(progress->last, line, sizeof line);
}

void progress_clear(struct progress *progress)
{
    if (progress->shown && progress->last[0])
        fprintf(stderr, "\r\033[K");
    progress->last[0] = '\0';
}
