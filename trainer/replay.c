/* SPDX-License-Identifier: Apache-2.0
 *
 * The replay trainer: sleeps for as long as a GPU would compute, to find out whether storage and
 * decoding can keep up with GPUs that are not present.
 *
 * A sleep ends tens of microseconds late. The excess is subtracted from the next step, so that the
 * sum of all steps is exact without spinning: decode workers need the CPU. They also have it when
 * this thread comes to start the next step, milliseconds late where they outnumber the cores. A GPU
 * has work queued: a step begins when its batch is ready and the step before has ended.
 *
 * In an open loop a batch is due every step time / load. Batches that are late do not delay the
 * ones after them, so their lateness adds up while storage is too slow, and is not hidden by
 * requests that were never made (coordinated omission). During the first steps of an epoch a late
 * batch moves the schedule instead: pipelines fill and batches are ready in bursts.
 */
#include "trainer/plugins.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "trainer/accelerator.h"
#include "trainer/profile.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>

/* ---- profiles ---- */

enum { FILE_BYTES_MAX = 64 << 20, LINE_BYTES_MAX = 4096 };

/* A step longer than a day is a mistake in the file. */
static const double STEP_MS_MAX = 86400e3;

static int add_step(struct profile *profile, const char *name, size_t place, double ms)
{
    if (!isfinite(ms) || ms < 0 || ms > STEP_MS_MAX)
        return fail(EINVAL, "%s: step %zu: %g is not a step time in milliseconds", name, place, ms);
    profile->step_ns[profile->count++] = (uint64_t)llround(ms * 1e6);
    return 0;
}

static int parse_json(const char *name, const char *text, size_t bytes, struct profile *profile)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    int code = 0;

    if (!root)
        return fail(EINVAL, "%s:%d: %s", name, error.line, error.text);
    json_t *steps = json_is_object(root) ? json_object_get(root, "step_ms") : root;
    json_int_t batch = json_integer_value(json_object_get(root, "batch_size"));
    if (!json_is_array(steps))
        code =
            fail(EINVAL, "%s: expected an array of milliseconds or an object with step_ms", name);
    else if (batch < 0)
        code = fail(EINVAL, "%s: batch_size is negative", name);
    if (code == 0 && !(profile->step_ns = memory_array(json_array_size(steps), sizeof(uint64_t))))
        code = -ENOMEM;
    profile->batch_size = (uint64_t)batch;
    for (size_t i = 0; code == 0 && i < json_array_size(steps); i++) {
        json_t *step = json_array_get(steps, i);
        code = add_step(profile, name, i, json_is_number(step) ? json_number_value(step) : NAN);
    }
    json_decref(root);
    return code;
}

/* Find a column in a line of comma-separated values; -1: the last. Return its start and its length
 * without surrounding blanks, or NULL. */
static const char *find_column(const char *line, int column, size_t *length)
{
    const char *cell = line;

    for (int i = 0;; i++) {
        const char *comma = strchr(cell, ',');
        if (i == column || (column < 0 && !comma)) {
            cell += strspn(cell, " \t\"");
            *length = strcspn(cell, ",");
            while (*length && strchr(" \t\"\r", cell[*length - 1]))
                --*length;
            return cell;
        }
        if (!comma)
            return NULL;
        cell = comma + 1;
    }
}

static int parse_text(const char *name, const char *text, size_t bytes, struct profile *profile)
{
    char line[LINE_BYTES_MAX];
    size_t lines = 1, number = 0, length;
    bool heading_allowed = true;
    int column = -1, code = 0;

    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    profile->step_ns = memory_array(lines, sizeof(uint64_t));
    if (!profile->step_ns)
        return -ENOMEM;
    for (const char *at = text, *end = text + bytes; code == 0 && at < end;) {
        size_t span = strcspn(at, "\n");
        number++;
        if (span >= sizeof line)
            return fail(EINVAL, "%s:%zu: the line is longer than %d bytes", name, number,
                        LINE_BYTES_MAX - 1);
        memcpy(line, at, span);
        line[span] = '\0';
        at += span + 1;
        const char *first = line + strspn(line, " \t\r");
        if (*first == '\0' || *first == '#')
            continue;
        const char *cell = find_column(line, column, &length);
        char *stop = NULL;
        double ms = cell && length ? strtod(cell, &stop) : NAN;
        bool is_number = stop && stop == cell + length;
        if (!is_number && heading_allowed)
            for (int i = 0; column < 0 && (cell = find_column(line, i, &length)); i++) {
                if ((length == 7 && strncasecmp(cell, "step_ms", 7) == 0) ||
                    (length == 2 && strncasecmp(cell, "ms", 2) == 0))
                    column = i;
            }
        else if (!is_number)
            code = fail(EINVAL, "%s:%zu: expected a step time in milliseconds", name, number);
        else
            code = add_step(profile, name, number, ms);
        heading_allowed = false;
    }
    return code;
}

int profile_parse(const char *name, const char *text, size_t bytes, struct profile *profile)
{
    size_t start = 0;

    *profile = (struct profile){0};
    if (memchr(text, '\0', bytes))
        return fail(EINVAL, "%s: not a text file: contains NUL bytes", name);
    while (start < bytes && isspace((unsigned char)text[start]))
        start++;
    bool json = start < bytes && (text[start] == '{' || text[start] == '[');
    int code =
        json ? parse_json(name, text, bytes, profile) : parse_text(name, text, bytes, profile);
    if (code)
        return code;
    for (size_t i = 0; i < profile->count; i++)
        if (profile->step_ns[i])
            return 0;
    return fail(EINVAL, "%s: all steps take 0 ms", name);
}

void profile_release(struct profile *profile)
{
    free(profile->step_ns);
    *profile = (struct profile){0};
}

/* ---- the trainer ---- */

enum { OPEN_WARMUP_STEPS = 10 };

/* A longer step is a mistake. */
static const double step_most_ns = 3600e9;

enum replay_precision { REPLAY_MIXED, REPLAY_FP32 };

struct replay_settings {
    char *gpu;
    int precision; /* enum replay_precision */
    uint64_t gpus;
    double rate;
    char *file;
    double scale;
};

struct replay_state {
    uint32_t batch_size;
    double sample_ns; /* per sample; 0 when replaying a profile */
    double scale;     /* of the profile's steps */
    struct profile profile;
    uint64_t step; /* next step of the profile */
    int64_t overslept_ns;
    uint64_t end_ns;  /* of the step before */
    double open_load; /* 0: closed loop */
    uint64_t due_ns;  /* open loop: of the next batch */
};

static const char *const precision_choices[] = {"mixed", "fp32", NULL};

static const struct option_spec replay_options[] = {
    {"gpu", 0, OPTION_TEXT, offsetof(struct replay_settings, gpu), .metavar = "NAME",
     .summary = "v100, a100, h100 or h200, training ResNet-50 at its best published rate"},
    {"precision", 0, OPTION_CHOICE, offsetof(struct replay_settings, precision),
     .fallback = "mixed", .choices = precision_choices, .summary = "precision on that GPU"},
    {"gpus", 0, OPTION_COUNT, offsetof(struct replay_settings, gpus), .fallback = "1", .minimum = 1,
     .maximum = 1e6, .summary = "number of GPUs that share the batch"},
    {"rate", 0, OPTION_REAL, offsetof(struct replay_settings, rate), .fallback = "0",
     .maximum = 1e9, .metavar = "N",
     .summary = "samples per second of one GPU, if not in the table"},
    {"file", 0, OPTION_TEXT, offsetof(struct replay_settings, file), .metavar = "FILE",
     .reach = OPTION_READS,
     .summary = "step times in milliseconds, one per line or JSON, replayed in a loop"},
    {"scale", 0, OPTION_REAL, offsetof(struct replay_settings, scale), .fallback = "1",
     .minimum = 1e-6, .maximum = 1e6, .metavar = "X", .summary = "multiply step times by X"},
    {0},
};

/* Samples per second of one GPU in the table. */
static int find_rate(const struct replay_settings *settings, double *rate)
{
    const struct accelerator *gpu = accelerator_find(settings->gpu);

    if (!gpu)
        return fail(EINVAL, "trainer replay: %s (or give rate=N)", fail_reason());
    *rate = settings->precision == REPLAY_FP32 ? gpu->fp32_samples_per_s : gpu->mixed_samples_per_s;
    if (*rate == 0)
        return fail(EINVAL, "trainer replay: no FP32 rate of the %s is published; give rate=N",
                    gpu->title);
    return 0;
}

static int replay_check(const void *settings_given)
{
    const struct replay_settings *settings = settings_given;
    const int ways = (settings->gpu != NULL) + (settings->rate > 0) + (settings->file != NULL);
    double rate;

    if (ways != 1)
        return fail(EINVAL, "trainer replay: expected a GPU (replay:h200), rate=N or file=FILE");
    return settings->gpu ? find_rate(settings, &rate) : 0;
}

/* Return the nominal duration of the longest step. */
static double longest_step_ns(const struct replay_state *replay)
{
    double most = replay->sample_ns * replay->batch_size;

    for (uint64_t i = 0; replay->sample_ns <= 0 && i < replay->profile.count; i++)
        most = fmax(most, (double)replay->profile.step_ns[i] * replay->scale);
    return replay->open_load > 0 ? most / replay->open_load : most;
}

static int replay_open(void *state, const void *settings_given, const struct trainer_config *config)
{
    struct replay_state *replay = state;
    const struct replay_settings *settings = settings_given;
    double rate = settings->rate;
    int code = replay_check(settings);

    if (code)
        return code;
    replay->batch_size = config->batch_size;
    replay->open_load = config->open_load;
    replay->scale = settings->scale / (double)settings->gpus;
    if (settings->file) {
        char *text = NULL;
        size_t bytes = 0;
        code = file_load(settings->file, FILE_BYTES_MAX, &text, &bytes);
        if (code == 0)
            code = profile_parse(settings->file, text, bytes, &replay->profile);
        free(text);
        if (code == 0 && replay->profile.batch_size)
            replay->scale *= (double)config->batch_size / (double)replay->profile.batch_size;
    } else {
        if (settings->gpu)
            code = find_rate(settings, &rate);
        replay->sample_ns = code ? 0 : 1e9 / rate * replay->scale;
    }
    if (code == 0 && !(longest_step_ns(replay) <= step_most_ns))
        code = fail(EINVAL,
                    "trainer replay: a step of %u samples takes %.3g s, expected at most an hour",
                    replay->batch_size, longest_step_ns(replay) * 1e-9);
    /* By default the kernel may extend a sleep by 50 us; request the minimum. */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    return code;
}

static void replay_close(void *state)
{
    struct replay_state *replay = state;

    profile_release(&replay->profile);
    prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);
}

/* Nominal duration of the next step of count samples. */
static uint64_t next_step_ns(struct replay_state *replay, uint32_t count)
{
    if (replay->sample_ns > 0)
        return (uint64_t)llround(replay->sample_ns * count);
    uint64_t whole = replay->profile.step_ns[replay->step++ % replay->profile.count];
    return (uint64_t)llround((double)whole * replay->scale * count / replay->batch_size);
}

static int wait_until(uint64_t deadline_ns, const struct trainer_batch *batch)
{
    const uint64_t tick_ns = 100000000;
    int code = 0;

    for (uint64_t now = clock_now_ns(); code == 0 && now < deadline_ns; now = clock_now_ns()) {
        const bool is_last = deadline_ns - now <= tick_ns;
        clock_sleep_until_ns(is_last ? deadline_ns : now + tick_ns);
        if (!is_last)
            code = tick_ask(batch->tick);
    }
    return code;
}

/* Hold the batch until the next one is due. */
static int open_step(struct replay_state *replay, const struct trainer_batch *batch,
                     struct trainer_times *times)
{
    const uint64_t start = clock_now_ns();

    times->nominal_ns =
        (uint64_t)llround((double)next_step_ns(replay, batch->count) / replay->open_load);
    times->is_due = batch->step >= OPEN_WARMUP_STEPS;
    if (batch->step == 0 || (!times->is_due && batch->ready_ns > replay->due_ns))
        replay->due_ns = batch->ready_ns;
    if (batch->ready_ns > replay->due_ns)
        times->late_ns = batch->ready_ns - replay->due_ns;
    replay->due_ns += times->nominal_ns;
    const int code = wait_until(replay->due_ns, batch);
    times->compute_ns = clock_now_ns() - start;
    return code;
}

static int replay_step(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    struct replay_state *replay = state;

    if (replay->open_load > 0)
        return open_step(replay, batch, times);
    const int64_t nominal = (int64_t)next_step_ns(replay, batch->count);
    const int64_t wanted = nominal - replay->overslept_ns;
    const uint64_t now = clock_now_ns(), ready = batch->ready_ns;
    /* When a GPU would begin the step, at most one step ago; epochs start when this thread does. */
    uint64_t start = ready > replay->end_ns ? ready : replay->end_ns;
    if (batch->step == 0 || start > now)
        start = now;
    else if (now - start > (uint64_t)nominal)
        start = now - (uint64_t)nominal;
    const int code = wanted > 0 ? wait_until(start + (uint64_t)wanted, batch) : 0;
    replay->end_ns = clock_now_ns();
    times->compute_ns = replay->end_ns - start;
    times->wait_ns -= now - start < times->wait_ns ? now - start : times->wait_ns;
    replay->overslept_ns = (int64_t)times->compute_ns - wanted;
    times->nominal_ns = (uint64_t)nominal;
    if (replay->overslept_ns > nominal) /* do not catch up after the machine stalled */
        replay->overslept_ns = nominal;
    return code;
}

const struct trainer_ops trainer_replay = {
    .plugin = {.name = "replay",
               .summary = "takes as long per batch as a GPU would",
               .options = replay_options,
               .settings_size = sizeof(struct replay_settings),
               .state_size = sizeof(struct replay_state)},
    .replays = true,
    .check = replay_check,
    .open = replay_open,
    .close = replay_close,
    .step = replay_step,
};

/* ---- the trainer that does nothing ---- */

const struct trainer_ops trainer_none = {
    .plugin = {.name = "none", .summary = "accepts batches without delay", .idle = true},
};
