/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench gather: joins the results of runs that were started by hand at the same time, one on each
 * machine (iobench run --start-at). Looser than a job of mpirun: the machines' own times of day are
 * all that relates the runs.
 */
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN = 11, NOTE_BYTES = 256 };
static const double OVERLAP_GOOD = 0.9, CLOCK_STEP_MOST_S = 0.1;

struct gather_settings {
    char *output;
};

static const struct option_spec gather_options[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct gather_settings, output), .metavar = "FILE",
     .reach = OPTION_WRITES,
     .summary = "write the joined result, for size, compare and report; - is standard output "
                "instead of the table"},
    {0},
};

/* One result; its texts belong to the document. */
struct gathered_run {
    const char *path;
    json_t *document;
    const json_t *job;
    const char *host;
    double start_s, end_s; /* of its epochs, by its own time of day */
    double samples, bytes, ranks, rank;
};

struct gathered_job {
    struct gathered_run *members;
    size_t count, hosts;
    double start_s, end_s;
    double overlap; /* share of that time in which all were at work */
    double samples, bytes, ranks;
};

/* ---- loading ---- */

static int load_one(struct gathered_run *member, const char *path)
{
    member->path = path;
    member->document = load_document(path);
    if (!member->document)
        return -EINVAL;
    const json_t *jobs = json_object_get(member->document, "jobs");
    member->job = json_array_get(jobs, 0);
    const char *reason = load_text(member->job, "invalid_reason");
    if (json_array_size(jobs) != 1)
        return fail(EINVAL, "%s: has %zu jobs, where one is expected", path, json_array_size(jobs));
    if (!load_true(member->job, "valid"))
        return fail(EINVAL, "%s: not valid: %s", path, reason ? reason : "no reason given");
    if (!(load_number(member->job, "summary.complete_runs") == 1))
        return fail(EINVAL, "%s: has %g runs, where one is expected (--runs 1)", path,
                    load_number(member->job, "summary.complete_runs"));
    member->host = load_text(member->job, "place.host");
    member->samples = load_number(member->job, "summary.samples");
    member->bytes = load_number(member->job, "summary.record_bytes");
    member->ranks = fmax(load_number(member->job, "engine.ranks"), 1);
    member->rank = load_number(member->job, "settings.rank");
    if (!member->host || !(member->samples > 0) || !(member->bytes > 0))
        return fail(EINVAL, "%s: lacks host, samples or bytes", path);
    /* Its epochs would be placed by a clock that was changed while they ran. */
    const double step_s = load_number(member->job, "series.clock_step_s");
    int code = fabs(step_s) > CLOCK_STEP_MOST_S
                   ? fail(EINVAL,
                          "%s: the time of day was set by %.3f s while it ran: when it ran, by the "
                          "clocks of the others, is unknown",
                          member->path, step_s)
                   : 0;
    if (code)
        return code;
    /* From the first epoch's first read to the last epoch's last batch. */
    const json_t *phases = load_member(member->job, "series.phases"), *phase;
    const double second0 = load_number(member->job, "series.start_unix_s");
    size_t i;
    member->start_s = INFINITY;
    member->end_s = -INFINITY;
    json_array_foreach(phases, i, phase)
    {
        const char *name = load_text(phase, "phase");
        if (!name || strcmp(name, "epoch") != 0)
            continue;
        member->start_s = fmin(member->start_s, second0 + load_number(phase, "from_s"));
        member->end_s = fmax(member->end_s, second0 + load_number(phase, "to_s"));
    }
    return member->end_s > member->start_s
               ? 0
               : fail(EINVAL,
                      "%s: without a time series it is unknown when it ran (iobench run "
                      "--sample-interval none)",
                      member->path);
}

/* ---- do they belong together? ---- */

static int check_settings(const struct gathered_run *first, const struct gathered_run *other)
{
    const char *key;
    json_t *value;
    static const char *const set[] = {"dataset.samples", "dataset.record_bytes"};
    /* Paths and what a machine may have of its own, as for the ranks of one job. */
    static const char own[] =
        " data rank reader iodepth io_threads decode_threads profile json csv "
        "limit_rate_bytes memory_bytes series label calibrate start_at trace ";

    json_object_foreach(json_object_get(first->job, "settings"), key, value)
    {
        const json_t *another = json_object_get(json_object_get(other->job, "settings"), key);
        char word[64];
        snprintf(word, sizeof word, " %s ", key);
        if (!strstr(own, word) && !(another && json_equal(value, another)))
            return fail(EINVAL, "%s: its setting '%s' is not that of %s", other->path, key,
                        first->path);
    }
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (!(load_number(first->job, set[i]) == load_number(other->job, set[i])))
            return fail(EINVAL, "%s: another data set than %s: %s", other->path, first->path,
                        set[i]);
    return 0;
}

/* ---- the result ---- */

static void note(const struct gathered_job *joined, char *text)
{
    snprintf(text, NOTE_BYTES,
             "%zu runs started by hand: all were at work in %.1f%% of the time; looser than one "
             "job, since only the machines' times of day relate them",
             joined->count, 100 * joined->overlap);
}

/* Return whether any result is degraded; `text` names the first one. */
static bool tell_degraded(const struct gathered_job *joined, char *text)
{
    for (size_t i = 0; i < joined->count; i++) {
        const struct gathered_run *member = &joined->members[i];
        const char *reason = load_degraded(member->job);
        if (!reason)
            continue;
        snprintf(text, NOTE_BYTES, "%s: %s", member->path, reason);
        return true;
    }
    return false;
}

/* Return the word that all results have at this path, "mixed" if they differ, NULL if none has. */
static const char *word_of(const struct gathered_job *joined, const char *path)
{
    const char *word = load_text(joined->members[0].job, path);

    for (size_t i = 1; i < joined->count; i++) {
        const char *other = load_text(joined->members[i].job, path);
        if (word && other ? strcmp(word, other) != 0 : word != other)
            return "mixed";
    }
    return word;
}

static const char *doubt_of(const struct gathered_job *joined)
{
    return joined->overlap < OVERLAP_GOOD ? "the rest of the time some were idle, so the others "
                                            "had more: start them at the same time, on enough data"
                                          : NULL;
}

/* The five keys of a figure of one run. */
static void put_figure(json_t *object, const char *key, double value)
{
    static const char *const ends[] = {"", "_low95", "_high95", "_min", "_max"};
    char name[80];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", key, ends[i]);
        json_put_number(object, name, value);
    }
}

static int write_document(const struct gathered_job *joined, const char *path)
{
    json_t *jobs = json_array(), *members = json_object(), *gathered = json_object();

    /* Copy the first result's job, and replace its own figures by those of all results. */
    json_t *job = json_copy((json_t *)(uintptr_t)joined->members[0].job);
    json_t *engine = json_copy(json_object_get(job, "engine"));
    static const char *const sums[] = {"samples", "skipped_samples", "record_bytes",
                                       "request_bytes", "requests"};
    const double time_s = joined->end_s - joined->start_s;
    json_t *summary = json_object(), *run = json_object();
    json_object_set_new(summary, "complete_runs", json_integer(1));
    json_put_number(summary, "interval_coverage", 0);
    put_figure(summary, "samples_per_s", joined->samples / time_s);
    put_figure(summary, "record_bytes_per_s", joined->bytes / time_s);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        char member[64];
        double sum = 0;
        snprintf(member, sizeof member, "summary.%s", sums[i]);
        for (size_t k = 0; k < joined->count; k++)
            sum += load_number(joined->members[k].job, member);
        json_put_number(summary, sums[i], sum);
    }
    json_put_text(summary, "cache_before", word_of(joined, "summary.cache_before"));
    json_put_text(summary, "limit", word_of(joined, "summary.limit"));
    const char *cache = word_of(joined, "summary.cache_before");
    char text[NOTE_BYTES], headline[NOTE_BYTES + 64];
    const bool degraded = tell_degraded(joined, text);
    json_object_set_new(job, "degraded", json_boolean(degraded));
    json_object_set_new(job, "degraded_reason", degraded ? json_text(text) : json_null());
    note(joined, text);
    json_put_number(engine, "ranks", joined->ranks);
    json_object_set_new(engine, "nodes", json_integer((json_int_t)joined->hosts));
    json_object_set_new(job, "engine", engine);
    json_object_set_new(run, "run", json_integer(1));
    json_object_set_new(run, "turn", json_integer(0));
    json_object_set_new(run, "valid", json_true());
    json_object_set(run, "samples_per_s", json_object_get(summary, "samples_per_s"));
    json_object_set(run, "record_bytes_per_s", json_object_get(summary, "record_bytes_per_s"));
    json_object_set_new(job, "runs", json_pack("[o]", run));
    json_object_set_new(job, "summary", summary);
    json_object_set_new(job, "label", json_text("gathered"));
    snprintf(headline, sizeof headline, "%s, %s, %s", degraded ? "DEGRADED" : "valid",
             cache ? cache : "caches unknown", text);
    json_put_text(job, "headline", headline);
    /* Copy the first result's data set, without what does not hold for all. */
    json_t *dataset = json_copy(json_object_get(joined->members[0].job, "dataset"));
    const char *identity = load_text(dataset, "identity");
    bool is_synthetic = false, is_one = identity != NULL;
    for (size_t i = 0; i < joined->count; i++) {
        const char *other = load_text(joined->members[i].job, "dataset.identity");
        is_synthetic |= load_true(joined->members[i].job, "dataset.synthetic");
        is_one = is_one && other && strcmp(identity, other) == 0;
    }
    json_object_set_new(dataset, "synthetic", json_boolean(is_synthetic));
    if (!is_one)
        json_object_set_new(dataset, "identity", json_null());
    json_object_set_new(job, "dataset", dataset);
    json_object_set_new(job, "entries", json_array());
    json_object_set_new(job, "notices", json_pack("[s]", text));
    json_object_set_new(job, "advice", json_array());
    json_object_set_new(job, "series", json_null());
    json_object_set_new(job, "series_reason", json_text("each run has its own"));
    json_array_append_new(jobs, job);
    json_put_number(gathered, "overlap_percent", 100 * joined->overlap);
    json_put_number(gathered, "time_s", time_s);
    json_put_text(gathered, "doubt", doubt_of(joined));
    json_t *all = json_array();
    for (size_t i = 0; i < joined->count; i++) {
        const struct gathered_run *member = &joined->members[i];
        json_t *entry = json_object();
        json_put_text(entry, "file", member->path);
        json_put_text(entry, "host", member->host);
        json_put_number(entry, "start_unix_s", member->start_s);
        json_put_number(entry, "end_unix_s", member->end_s);
        json_put_number(entry, "samples", member->samples);
        json_put_number(entry, "samples_per_s", load_number(member->job, "summary.samples_per_s"));
        json_put_text(entry, "limit", load_text(member->job, "summary.limit"));
        json_put_text(entry, "cache_before", load_text(member->job, "summary.cache_before"));
        json_put_text(entry, "degraded_reason", load_degraded(member->job));
        json_array_append_new(all, entry);
    }
    json_object_set_new(gathered, "runs", all);
    json_object_set_new(members, "gathered", gathered);
    json_t *document = json_check() ? NULL : report_json_document(jobs, members);
    json_decref(jobs);
    json_decref(members);
    return document ? json_file_write(path, document) : -ENOMEM;
}

/* ---- the table ---- */

static int join_runs(struct gathered_job *joined)
{
    int code = 0;

    joined->start_s = INFINITY;
    joined->end_s = -INFINITY;
    for (size_t i = 0; i < joined->count && code == 0; i++) {
        const struct gathered_run *member = &joined->members[i];
        for (size_t k = 0; k < i && code == 0; k++)
            code = load_refuse_copy(member->path, member->document, joined->members[k].path,
                                    joined->members[k].document);
        if (i && code == 0)
            code = check_settings(joined->members, member);
        joined->start_s = fmin(joined->start_s, member->start_s);
        joined->end_s = fmax(joined->end_s, member->end_s);
        joined->samples += member->samples;
        joined->bytes += member->bytes;
        joined->ranks += member->ranks;
        size_t known = 0;
        while (known < i && strcmp(joined->members[known].host, member->host) != 0)
            known++;
        joined->hosts += known == i;
    }
    /* Runs of --ranks N must be ranks 0 to N-1, each once; runs of one rank read all of the set. */
    const double ranks = load_number(joined->members[0].job, "settings.ranks");
    const bool are_ranks = ranks > 1 && !(joined->members[0].ranks > 1);
    if (code == 0 && are_ranks && !(ranks == (double)joined->count))
        code = fail(EINVAL, "%zu results of the %g ranks of --ranks", joined->count, ranks);
    for (size_t i = 0; are_ranks && i < joined->count; i++)
        for (size_t k = 0; k < i && code == 0; k++)
            if (joined->members[i].rank == joined->members[k].rank)
                code = fail(EINVAL, "%s: is rank %g, as %s", joined->members[i].path,
                            joined->members[i].rank, joined->members[k].path);
    if (code)
        return code;
    const struct gathered_run *late = joined->members, *early = joined->members;
    for (size_t i = 1; i < joined->count; i++) {
        if (joined->members[i].start_s > late->start_s)
            late = &joined->members[i];
        if (joined->members[i].end_s < early->end_s)
            early = &joined->members[i];
    }
    joined->overlap = (early->end_s - late->start_s) / (joined->end_s - joined->start_s);
    return joined->overlap > 0 ? 0
                               : fail(EINVAL,
                                      "%s: began %.3f s after the end of %s: they did not "
                                      "run at the same time (iobench run --start-at)",
                                      late->path, late->start_s - early->end_s, early->path);
}

static int run_gather(const struct invocation *invocation)
{
    const struct gather_settings *settings = invocation->settings;
    struct gathered_job joined = {.count = (size_t)invocation->count};
    int code = outputs_check_path(settings->output, "{\"schema\"");

    if (code)
        return command_misused(invocation);
    joined.members = memory_array(joined.count, sizeof *joined.members);
    code = joined.members ? 0 : -ENOMEM;
    for (size_t i = 0; i < joined.count && code == 0; i++)
        code = load_one(&joined.members[i], invocation->operands[i]);
    if (code == 0)
        code = join_runs(&joined);
    if (code == 0 && !(settings->output && strcmp(settings->output, "-") == 0)) {
        const double time_s = joined.end_s - joined.start_s;
        const char *cache = word_of(&joined, "summary.cache_before");
        char rate[WORDS_BYTES], bytes[WORDS_BYTES], text[NOTE_BYTES];
        printf("iobench gather: %zu results of %zu %s\n\n", joined.count, joined.hosts,
               joined.hosts == 1 ? "host" : "hosts");
        words_printf(stdout, "  Rate", COLUMN,
                     "%s samples/s, %s MiB/s: all samples, from the first start to the "
                     "last end, %.3f s",
                     words_rate(joined.samples / time_s, rate),
                     words_rate(joined.bytes / time_s / (1 << 20), bytes), time_s);
        note(&joined, text);
        words_print(stdout, "  Basis", COLUMN, text);
        if (tell_degraded(&joined, text))
            words_print(stdout, "  DEGRADED", COLUMN, text);
        words_printf(stdout, "  Cache", COLUMN, "%s before the runs",
                     escape_shown(cache ? cache : "unknown"));
        if (doubt_of(&joined))
            words_print(stdout, "  Doubt", COLUMN, doubt_of(&joined));
        printf("\n  %-20s %12s %10s %10s  %s\n", "host", "samples/s", "start", "time", "limit");
        for (size_t i = 0; i < joined.count; i++) {
            const struct gathered_run *member = &joined.members[i];
            const char *limit = load_text(member->job, "summary.limit");
            printf("  %-20.20s %12s %8.3f s %8.3f s  %.16s\n", escape_shown(member->host),
                   words_rate(load_number(member->job, "summary.samples_per_s"), rate),
                   member->start_s - joined.start_s, member->end_s - member->start_s,
                   limit ? escape_shown(limit) : "-");
        }
    }
    if (code == 0 && settings->output)
        code = write_document(&joined, settings->output);
    for (size_t i = 0; joined.members && i < joined.count; i++)
        json_decref(joined.members[i].document);
    free(joined.members);
    return code ? command_failed(invocation) : COMMAND_OK;
}

const struct command command_gather = {
    .name = "gather",
    .summary = "join results of runs that were started by hand together",
    .operands = "A.json B.json...",
    .operands_minimum = 2,
    .operands_maximum = -1,
    .description =
        "For clusters without MPI: 'iobench run --start-at TIME --runs 1 --json FILE' on each "
        "machine, then gather the files. The rate is that of all samples from the first start to "
        "the last end, by the machines' times of day. This is looser than one job of mpirun: keep "
        "the clocks synchronised, and prefer runs of a minute or more.\n"
        "Refuses results that did not run at the same time, differ in data set or settings (but "
        "paths and what a machine may have of its own, such as --decode-threads), are not valid, "
        "or are the same rank of --ranks.",
    .examples = "iobench run --data /mnt/set -c --runs 1 --start-at 2026-01-31T12:00:00Z --json "
                "n1.json\ton each machine, with its own name\n"
                "iobench gather n1.json n2.json -o all.json\tthen once\n"
                "iobench size all.json --gpus 64 --gpu h200\tis that enough?\n",
    .options = gather_options,
    .settings_size = sizeof(struct gather_settings),
    .operands_exist = true,
    .operands_reach = {OPTION_READS, OPTION_READS},
    .is_confined = true,
    .run = run_gather,
};
