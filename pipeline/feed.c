/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/feed.h"

#include "base/fail.h"
#include "base/memory.h"
#include "pipeline/find.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The job's decoder for images of the network's size. */
static int describe_decoder(struct feed *feed, const char *text, enum feed_use use, uint32_t side)
{
    int bytes =
        snprintf(feed->decode, sizeof feed->decode, "%s%ssize=%u%s", text,
                 strchr(text, ':') ? "," : ":", side, use == FEED_EVALUATE ? ",view=evaluate" : "");

    return bytes < (int)sizeof feed->decode ? 0 : fail(EINVAL, "--decode: too long: %s", text);
}

int feed_find(struct feed *feed, const struct job *job, const char *data, enum feed_use use,
              uint32_t side, struct ranks *ranks, struct result *result)
{
    const struct format_scan scan = {0};

    *feed = (struct feed){.job = *job, .ranks = ranks};
    feed->job.data = (char *)(uintptr_t)data;
    feed->job.decode = feed->decode;
    feed->job.rank = ranks->place.rank;
    feed->job.ranks = ranks->place.ranks;
    if (use == FEED_EVALUATE) {
        snprintf(feed->order, sizeof feed->order, "none");
        feed->job.shuffle = feed->order;
        feed->job.partition = PLAN_DISJOINT;
        feed->job.remainder = PLAN_UNEVEN;
        feed->job.limit_samples = 0;
    } else if (feed->job.ranks > 1 && feed->job.remainder == PLAN_UNEVEN) {
        feed->job.remainder = PLAN_DROP; /* all ranks take the same steps */
    }
    int code = describe_decoder(feed, job->decode, use, side);
    if (code == 0)
        code = job_choose(&feed->job, &feed->plugins);
    code = ranks_meet(ranks, code, NULL);
    return code ? code
                : find_data(&feed->job, ranks, &scan, &feed->plugins, &feed->catalog, result);
}

int feed_draws(const struct feed *feed, uint64_t *draws)
{
    struct plan_scope scope = engine_scope(&feed->job, feed->catalog);
    struct plan plan;

    scope.memory_bytes = memory_available_bytes();
    int code = plan_open(&plan, &feed->plugins.shuffle, &scope);

    if (code == 0)
        code = plan_begin(&plan, 0);
    if (code == 0)
        *draws = plan_draws(&plan);
    plan_close(&plan);
    if (code == 0 && feed->job.limit_samples && *draws > feed->job.limit_samples)
        *draws = feed->job.limit_samples;
    return code;
}

void feed_shut(struct feed *feed)
{
    engine_destroy(feed->engine);
    free(feed->run.epochs);
    feed->engine = NULL;
    feed->run = (struct result_run){0};
}

int feed_open(struct feed *feed, const struct trainer_ops *ops, void *state, uint64_t first_epoch,
              uint64_t epochs, struct result *result)
{
    feed_shut(feed);
    snprintf(feed->resume_at, sizeof feed->resume_at, "%llu:0", (unsigned long long)first_epoch);
    feed->job.resume_at = feed->resume_at;
    feed->trainer = (struct trainer){.ops = ops, .state = state};
    feed->run.epochs = memory_array(epochs, sizeof *feed->run.epochs);
    const struct engine_site site = {.job = &feed->job,
                                     .plugins = &feed->plugins,
                                     .catalog = feed->catalog,
                                     .epochs_max = epochs,
                                     .ranks = feed->ranks,
                                     .trainer = &feed->trainer,
                                     .meter = feed->meter,
                                     .recorder = feed->recorder};
    feed->engine = feed->run.epochs ? engine_create(&site, result) : NULL;
    return feed->engine ? 0 : -ENOMEM;
}

void feed_close(struct feed *feed)
{
    feed_shut(feed);
    catalog_destroy(feed->catalog);
    job_release(&feed->plugins);
}

void feed_forget(struct feed *feed)
{
    feed->loss = 0;
    feed->counted = feed->correct = feed->correct_top5 = 0;
}

void feed_count(struct feed *feed, const struct backend_loss *loss)
{
    feed->loss += loss->loss * loss->counted;
    feed->counted += loss->counted;
    feed->correct += loss->correct;
    feed->correct_top5 += loss->correct_top5;
}
