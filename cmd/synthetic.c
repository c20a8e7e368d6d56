/* SPDX-License-Identifier: Apache-2.0
 *
 * An existing set is complete, or pack (cmd/pack/packing.h) completes it after an interruption.
 * While another process generates it, this one waits.
 */
#include "cmd/synthetic.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/thread.h"
#include "cmd/line.h"
#include "dataset/synthesis.h"
#include "formats/format.h"
#include "cmd/pack/packing.h"
#include "cmd/pack/source.h"
#include "report/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One CPU generates this many in about ten seconds and decodes them in about five, so that small
 * and large machines take equally long. */
enum { SAMPLES_A_CPU = 5000, SAMPLES_LEAST = 1000, FREE_SHARE = 4 };

/* Wait at most an hour for another process that generates the set. */
enum { WAIT_STEP_NS = 250000000, WAIT_TRIES = 4 * 3600 };

char *synthetic_folder(void)
{
    char *folder = file_cache_path("");

    if (!folder)
        fail(EINVAL, "no folder for a synthetic data set: use --data, or set XDG_CACHE_HOME to an "
                     "absolute path");
    return folder;
}

/* Return the path of a set, with NAME:OPTIONS of its format as a file name. */
static char *set_path(const char *folder, const char *format)
{
    char name[96];

    snprintf(name, sizeof name, "synthetic-%s", format);
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-')
            *at = '-';
    return file_join(folder, name);
}

/* Return the number of samples that fit into a share of the free space, limited by the CPUs. */
static int choose_count(const char *folder, uint64_t *count)
{
    uint64_t free_bytes;
    char text[32];
    int code = file_free_bytes(folder, &free_bytes);

    if (code)
        return code;
    *count = (uint64_t)SAMPLES_A_CPU * thread_cpu_count();
    uint64_t fitting = free_bytes / FREE_SHARE / synthesis_imagenet.mean_bytes;
    if (*count > fitting)
        *count = fitting;
    if (*count < SAMPLES_LEAST)
        return fail(ENOSPC,
                    "%s: only %s free, too little for a synthetic data set: use --data, or set "
                    "XDG_CACHE_HOME to a larger file system",
                    folder, bytes_text(free_bytes, text, sizeof text));
    return 0;
}

/* Return whether there is a readable set of this name. Keeps the current failure reason. */
static bool is_there(const char *path)
{
    fail_hold();
    bool found = file_exists(path) && format_detect(path) != NULL;
    fail_release();
    return found;
}

static int make(const char *folder, const char *path, const char *format)
{
    char source[64], words[WORDS_BYTES], bytes[32];
    struct pack_line line = {.line = line_start(), .working = "generating data"};
    struct pack_job job = {0};
    uint64_t count;
    int code = choose_count(folder, &count);

    if (code)
        return code;
    snprintf(source, sizeof source, "%s:count=%llu", source_generator()->name,
             (unsigned long long)count);
    char *command = file_format_path("iobench pack %s %s --format %s", source, path, format);
    if (!command || option_defaults(pack_options, &job) ||
        option_set(pack_options, &job, "format", format, "--format")) {
        code = -EINVAL;
        goto end;
    }
    bytes_text(count * synthesis_imagenet.mean_bytes, bytes, sizeof bytes);
    fprintf(stderr,
            "iobench: no --data: generating %s synthetic images (%s) in %s\niobench: this is done "
            "once; you may remove them at any time\n",
            words_count(count, words), bytes, escape_shown(path));
    job.source = source;
    job.target = path;
    job.command = command;
    job.start_over = true; /* the number that fits may have changed */
    /* While another process generates the same set, wait until it succeeds or fails. */
    struct pack_figures figures;
    code = pack_run(&job, &line, &figures);
    if (code == -EBUSY)
        fprintf(stderr, "iobench: waiting: %s\n", fail_reason());
    for (int i = 0; code == -EBUSY && i < WAIT_TRIES && !is_there(job.target); i++) {
        clock_sleep_ns(WAIT_STEP_NS);
        code = pack_run(&job, &line, &figures);
    }
    code = code && is_there(job.target) ? 0 : code;
    line_clear(&line.line);
end:
    option_release(pack_options, &job);
    free(command);
    return code;
}

int synthetic_prepare(struct job *job)
{
    const char *format = strcmp(job->read.format, "auto") == 0
                             ? option_find(pack_options, "format")->fallback
                             : job->read.format;
    char *folder = synthetic_folder();
    char *path = folder ? set_path(folder, format) : NULL;
    int code = path ? folder_make_path(folder) : -EINVAL;

    if (path && code)
        fail(code, "%s; use --data, or set XDG_CACHE_HOME to a folder of yours", fail_reason());
    if (code == 0 && !is_there(path)) {
        if (job->dry_run)
            code = fail(ENOENT, "without --data a synthetic set would be generated in %s", path);
        else
            code = make(folder, path, format);
    }
    if (code == 0)
        code = option_set(job_options, job, "data", path, "--data");
    free(path);
    free(folder);
    return code;
}
