/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/resumed.h"

#include "base/escape.h"
#include "shuffle/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES = 256 };

void resumed_describe(const struct train_job *job, const struct train_result *result,
                      const char *decoder, char text[CHECKPOINT_SETTINGS_BYTES])
{
    const struct recipe *recipe = &result->recipe;
    const struct order_settings *order = &result->job.order;

    snprintf(text, CHECKPOINT_SETTINGS_BYTES,
             "backend %s\nprecision %s\nranks %u\nbatch-size %" PRIu64 "\naccumulate %u\n"
             "epochs %" PRIu64 "\nrecipe %s\nlr %.12g\nmomentum %.12g\nweight-decay %.12g\n"
             "label-smoothing %.12g\nwarmup-steps %" PRIu64 "\nclip-norm %.12g\n"
             "partition %s\ndataset.identity %016" PRIx64 "\nshuffle %.200s\ndecode %.300s\n",
             result->backend, result->precision, job->ranks->place.ranks, job->job.batch_size,
             result->accumulate, job->job.epochs, recipe->kind == BACKEND_LARS ? "lars" : "sgd",
             recipe->rate, recipe->momentum, recipe->weight_decay, recipe->label_smoothing,
             recipe->warmup_steps, recipe->clip_norm, plan_partition_names[order->partition],
             result->result.data_identity, result->result.shuffle, decoder);
}

/* Find the line of this option. Returns its value and its length, or NULL. */
static const char *find_value(const char *text, const char *option, int option_bytes, int *bytes)
{
    for (const char *line = text; *line;) {
        const int line_bytes = (int)strcspn(line, "\n");
        *bytes = line_bytes - option_bytes - 1;
        if (*bytes >= 0 && strncmp(line, option, (size_t)option_bytes) == 0 &&
            line[option_bytes] == ' ')
            return line + option_bytes + 1;
        line += line_bytes + (line[line_bytes] == '\n');
    }
    return NULL;
}

void resumed_note_differences(const char *before, const char *now, struct result *result)
{
    for (const char *line = now; *line;) {
        const int option_bytes = (int)strcspn(line, " "), line_bytes = (int)strcspn(line, "\n");
        const char *value = line + option_bytes + 1;
        const int bytes = line_bytes - option_bytes - 1;
        int old_bytes;
        const char *old = find_value(before, line, option_bytes, &old_bytes);
        if (old && (old_bytes != bytes || strncmp(old, value, (size_t)bytes) != 0)) {
            char was[VALUE_BYTES];
            snprintf(was, sizeof was, "%.*s", old_bytes, old);
            result_notice(result, "resumed with another setting: %.*s %.*s, was %s", option_bytes,
                          line, bytes, value, escape_shown(was));
        }
        line += line_bytes + (line[line_bytes] == '\n');
    }
}
