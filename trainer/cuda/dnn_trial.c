/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/dnn_trial.h"

#include "base/fail.h"
#include "trainer/cuda/dnn_choices.h"
#include "trainer/cuda/dnn_verify.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 2,
    LAUNCHES = 8, /* of a round: queued, as in a step */
    SLOW = 2,
    REPEATS = 3,
};

static const uint64_t compared_bytes = 4 << 20; /* of a tensor */

static const double start_ms = 0.05; /* a single launch also waits for the host */

static int fill(const struct dnn_trial *trial, enum dnn_tensor which)
{
    const struct device_noise noise = dnn_noise(trial->shape, which);

    return device_noise(&noise, dnn_count(trial->shape, which), trial->tensors.at[which],
                        trial->runtime->stream);
}

int dnn_trial_open(struct dnn_trial *trial, const struct runtime *runtime,
                   const struct dnn_shape *shape, uint64_t workspace_bytes)
{
    int code = 0;

    *trial =
        (struct dnn_trial){.shape = shape, .runtime = runtime, .workspace_bytes = workspace_bytes};
    for (enum dnn_tensor i = 0; i < DNN_TENSORS && code == 0; i++) {
        if (!dnn_takes(shape, i))
            continue;
        trial->tensors.at[i] = runtime_allocate(dnn_tensor_bytes(shape, i));
        code = trial->tensors.at[i] ? fill(trial, i) : -ENOMEM;
    }
    if (code == 0)
        code = runtime_event_create(&trial->first);
    if (code == 0)
        code = runtime_event_create(&trial->last);
    if (code)
        return code;
    trial->tensors.workspace = runtime_allocate(workspace_bytes);
    return trial->tensors.workspace ? 0 : -ENOMEM;
}

void dnn_trial_close(struct dnn_trial *trial)
{
    if (trial->runtime)
        runtime_wait(trial->runtime->stream); /* after an error some work may still use it */
    for (int i = 0; i < DNN_TENSORS; i++)
        runtime_release(trial->tensors.at[i]);
    runtime_release(trial->tensors.workspace);
    runtime_event_destroy(trial->first);
    runtime_event_destroy(trial->last);
}

static int start(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                 uint32_t which)
{
    return candidates->start(candidates->context, which, &trial->tensors);
}

static int time_launches(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                         uint32_t which, int launches, double *milliseconds)
{
    void *stream = trial->runtime->stream;
    double elapsed = 0;
    int code = runtime_event_record(trial->first, stream);

    for (int launch = 0; launch < launches && code == 0; launch++)
        code = start(trial, candidates, which);
    if (code == 0)
        code = runtime_event_record(trial->last, stream);
    if (code == 0)
        code = runtime_event_synchronise(trial->last);
    if (code == 0)
        code = runtime_event_elapsed(trial->first, trial->last, &elapsed);
    *milliseconds = elapsed / launches;
    return code;
}

/* best: of those before. One that is far slower is not measured any better: some take a hundred
 * times as long as the best. */
static int time_candidate(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                          uint32_t which, double best, double *milliseconds)
{
    int code = start(trial, candidates, which); /* warm */

    if (code == 0)
        code = time_launches(trial, candidates, which, 1, milliseconds);
    if (code == 0 && *milliseconds > SLOW * best + start_ms)
        return 0;
    for (int i = 0; i < ROUNDS && code == 0; i++) {
        double each = 0;
        code = time_launches(trial, candidates, which, LAUNCHES, &each);
        *milliseconds = i == 0 ? each : fmin(*milliseconds, each);
    }
    if (code)
        *milliseconds = INFINITY;
    return code;
}

/* Leave nothing of what an earlier run wrote, so that only this one's results are right. */
static int poison(const struct dnn_trial *trial)
{
    static const struct device_noise nan = {.kind = DEVICE_NOISE_POISON};
    int code = device_noise(&nan, trial->workspace_bytes / sizeof(float), trial->tensors.workspace,
                            trial->runtime->stream);

    for (enum dnn_tensor i = 0; i < DNN_TENSORS && code == 0; i++)
        if (dnn_takes(trial->shape, i) && dnn_writes(trial->shape, i))
            code = fill(trial, i);
    return code;
}

/* Run it once more and compare. wrong: "" if it is right. */
static int judge(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                 uint32_t which, char wrong[DNN_WRONG_BYTES])
{
    int code = poison(trial);

    wrong[0] = '\0';
    if (code)
        return code;
    code = start(trial, candidates, which);
    if (code == 0)
        code = runtime_wait(trial->runtime->stream);
    if (code == 0)
        return dnn_verify(trial, wrong);
    snprintf(wrong, DNN_WRONG_BYTES, "does not run: %s", fail_reason());
    return 0;
}

/* Run it and copy the first part of each tensor it wrote to the host. copied: bytes in all. */
static int take(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                uint32_t which, uint8_t *to, uint64_t *copied)
{
    void *stream = trial->runtime->stream;
    int code = start(trial, candidates, which);

    *copied = 0;
    for (enum dnn_tensor i = 0; i < DNN_TENSORS && code == 0; i++) {
        if (!dnn_takes(trial->shape, i) || !dnn_writes(trial->shape, i))
            continue;
        const uint64_t bytes = dnn_tensor_bytes(trial->shape, i);
        const uint64_t part = bytes < compared_bytes ? bytes : compared_bytes;
        code = runtime_copy(to + *copied, trial->tensors.at[i], part, stream);
        *copied += part;
    }
    int waited = runtime_wait(stream);
    return code ? code : waited;
}

/* Return whether it writes the same bits each time; sums by atomic operations do not, and cuDNN
 * does not say so of all engines that have them: those that add up statistics of a convolution. */
static int compare_runs(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                        uint32_t which, bool *same)
{
    uint64_t bytes = 0;
    uint8_t *first = malloc(DNN_TENSORS * compared_bytes);
    uint8_t *again = malloc(DNN_TENSORS * compared_bytes);
    int code = first && again ? take(trial, candidates, which, first, &bytes)
                              : fail(ENOMEM, "out of memory to compare engines");

    *same = true;
    for (int i = 0; i < REPEATS && code == 0 && *same; i++) {
        code = take(trial, candidates, which, again, &bytes);
        *same = code || memcmp(first, again, bytes) == 0;
    }
    free(first);
    free(again);
    return code;
}

int dnn_trial_choose(struct dnn_trial *trial, const struct dnn_candidates *candidates,
                     uint32_t *chosen, double *milliseconds, char wrong[DNN_WRONG_BYTES])
{
    double times[DNN_CONFIGS_MAX] = {0};
    bool dropped[DNN_CONFIGS_MAX] = {false};
    const bool timed = candidates->timed || candidates->count > 1;
    double least = INFINITY;

    wrong[0] = '\0';
    if (timed)
        for (uint32_t i = 0; i < candidates->count; i++) { /* one that fails is the slowest */
            time_candidate(trial, candidates, i, least, &times[i]);
            least = fmin(least, times[i]);
        }
    for (uint32_t tried = 0; tried < candidates->count; tried++) {
        char reason[DNN_WRONG_BYTES];
        uint32_t best = candidates->count;
        for (uint32_t i = 0; i < candidates->count; i++)
            if (!dropped[i] && (best == candidates->count || times[i] < times[best]))
                best = i;
        int code = judge(trial, candidates, best, reason);
        if (code)
            return code;
        *chosen = best;
        if (timed)
            *milliseconds = isfinite(times[best]) ? times[best] : 0;
        bool same = true;
        if (!reason[0] && candidates->repeats)
            code = compare_runs(trial, candidates, best, &same);
        if (code || (!reason[0] && same))
            return code;
        dropped[best] = true;
        if (!wrong[0])
            snprintf(wrong, DNN_WRONG_BYTES, "%s", reason);
    }
    return wrong[0] ? fail(ENOTSUP, "no engine computes it right: the fastest %s", wrong)
                    : fail(ENOTSUP, "no engine computes the same bits twice");
}
