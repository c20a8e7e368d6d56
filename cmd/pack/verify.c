/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench verify: checks every record of a data set.
 */
#include "cmd/pack/verification.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/line.h"
#include "cmd/outputs.h"
#include "report/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watcher {
    struct line line;
    bool quiet;     /* standard output is for JSON */
    json_t *faults; /* NULL without --json */
};

static void show(void *context, const struct verify_progress *now)
{
    struct watcher *watcher = context;
    double seconds = (double)now->elapsed_ns * 1e-9;
    char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], rate[WORDS_BYTES], mib[WORDS_BYTES];
    char text[sizeof watcher->line.last];

    if (!watcher->line.shown)
        return;
    line_bar(bar, now->done, now->total);
    line_left(left, now->done, now->total, now->elapsed_ns);
    words_rate(seconds > 0 ? (double)now->done / seconds : 0, rate);
    words_rate(seconds > 0 ? (double)now->bytes / seconds / 1048576 : 0, mib);
    if (now->indexing)
        snprintf(text, sizeof text, "indexing %s%s", bar, left);
    else
        snprintf(text, sizeof text, "checking %s %s records/s %s MiB/s%s", bar, rate, mib, left);
    line_show(&watcher->line, text);
}

static void take_fault(void *context, const struct verify_fault *fault)
{
    struct watcher *watcher = context;

    if (!watcher->quiet) {
        line_clear(&watcher->line);
        printf("%s: offset %" PRIu64 ": %s\n", escape_shown(fault->path), fault->offset,
               escape_shown(fault->what));
    }
    if (watcher->faults) /* a name need not be UTF-8 */
        json_array_append_new(watcher->faults,
                              json_pack("{s:o, s:I, s:o}", "file", json_text(fault->path), "offset",
                                        (json_int_t)fault->offset, "what", json_text(fault->what)));
}

static int verify_command(const struct invocation *invocation)
{
    struct verify_job *job = invocation->settings;
    struct watcher watcher = {.line = line_start(),
                              .quiet = job->json && strcmp(job->json, "-") == 0,
                              .faults = job->json ? json_array() : NULL};
    const struct verify_observer observer = {
        .progress = show, .fault = take_fault, .context = &watcher};
    struct verify_figures figures;
    struct guard_moment start;
    struct guard_counts guard = {0};

    job->path = invocation->operands[0];
    command_on_interrupt();
    guard_begin(&start);
    int code = verify_run(job, &observer, &figures);
    guard_end(&start, &guard);
    line_clear(&watcher.line);
    if (code == 0 && job->json)
        code = json_file_write(
            job->json,
            json_pack("{s:o, s:s, s:I, s:I, s:I, s:b, s:I, s:o, s:b, s:I, s:o, s:O}", "data",
                      json_text(job->path), "format", figures.format, "shards",
                      (json_int_t)figures.shards, "records", (json_int_t)figures.records,
                      "record_bytes", (json_int_t)figures.bytes, "decoded",
                      job->decode == VERIFY_PIXELS, "entry_point_images", (json_int_t)figures.hints,
                      "elapsed_s", json_number((double)figures.elapsed_ns * 1e-9), "sound",
                      (int)(figures.faults == 0), "fault_count", (json_int_t)figures.faults,
                      "remarks",
                      json_texts(figures.remark_count, REMARK_TEXT_BYTES, figures.remarks[0]),
                      "faults", watcher.faults));
    json_decref(watcher.faults);
    if (code == 0 && !watcher.quiet) {
        char records[WORDS_BYTES], faults[WORDS_BYTES], time[WORDS_BYTES], mib[WORDS_BYTES],
            bytes[32];
        double seconds = (double)figures.elapsed_ns * 1e-9;
        words_rate(seconds > 0 ? (double)figures.bytes / seconds / 1048576 : 0, mib);
        printf("%s: %s, %" PRIu32 " shard%s, %s records, %s, %s, %s MiB/s\n",
               escape_shown(job->path), figures.format, figures.shards,
               figures.shards == 1 ? "" : "s", words_count(figures.records, records),
               bytes_text(figures.bytes, bytes, sizeof bytes),
               words_duration(figures.elapsed_ns, time), mib);
        if (figures.faults)
            printf(
                "%s fault%s%s\n", words_count(figures.faults, faults),
                figures.faults == 1 ? "" : "s",
                figures.faults < figures.records || job->decode == VERIFY_RECORDS
                    ? ""
                    : ", in all records; if they hold no images, --decode=none checks framing and "
                      "checksums alone");
        else
            printf("no faults in framing%s\n",
                   job->decode == VERIFY_PIXELS    ? ", checksums and whole images"
                   : job->decode == VERIFY_HEADERS ? ", checksums and image headers"
                                                   : " and checksums");
        if (figures.hints_path)
            printf("entry points of %s images are in %s\n", words_count(figures.hints, records),
                   escape_shown(figures.hints_path));
    }
    free(figures.hints_path);
    if (code)
        return command_failed(invocation);
    command_guard(&guard); /* of the rate: what was found is as it is */
    return figures.faults ? COMMAND_FAILED : COMMAND_OK;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "check every record of a data set",
    .operands = "DATA",
    .operands_minimum = 1,
    .operands_maximum = 1,
    .description =
        "Reads every record of DATA and checks its framing, its checksums if the format has them, "
        "the sample and the header of its image. Prints a line with file, offset and cause for "
        "each fault, and continues. Exits with 1 if there are faults.",
    .examples = "iobench verify /mnt/imagenet/train\tframing, checksums, image headers\n"
                "iobench verify --decode /mnt/set\tall pixels too\n"
                "iobench verify --decode=none /mnt/tokens\trecords that hold no images\n"
                "iobench verify --entry-points /mnt/set\tfor faster random crops\n",
    .options = verify_options,
    .settings_size = sizeof(struct verify_job),
    .operands_exist = true,
    .operands_reach = {OPTION_READS_SET},
    .is_confined = true,
    .run = verify_command,
};
