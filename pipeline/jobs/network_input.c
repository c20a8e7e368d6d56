/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/network_input.h"

#include "base/fail.h"
#include "base/memory.h"
#include "pipeline/jobs/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int input_find(struct network_input *input, const struct job *job, const char *data,
               enum input_use use, uint32_t side, struct ranks *ranks, struct result *result)
{
    const struct format_scan scan = {0};

    *input = (struct network_input){.job = *job, .ranks = ranks, .use = use};
    input->job.read.data = (char *)(uintptr_t)data;
    input->job.decode.decoder = input->decode;
    input->job.order.rank = ranks->place.rank;
    input->job.order.ranks = ranks->place.ranks;
    if (use == INPUT_EVALUATE) {
        input->job.order.shuffle = (char *)(uintptr_t)plugin_idle(shuffle_registry)->name;
        input->job.order.partition = PLAN_DISJOINT;
        input->job.order.remainder = PLAN_UNEVEN;
        input->job.order.limit_samples = input->job.order.limit_samples_per_rank = 0;
    } else if (input->job.order.ranks > 1 && input->job.order.remainder == PLAN_UNEVEN) {
        input->job.order.remainder = PLAN_DROP; /* all ranks take the same number of steps */
    }
    /* The job's decoder settings with the network's image size. A view that was named holds for
     * evaluation as well. */
    const char *text = job->decode.decoder, *settings = strchr(text, ':');
    const int name = settings ? (int)(settings - text) : (int)strlen(text);
    const int bytes =
        snprintf(input->decode, sizeof input->decode, "%.*s:%s%s%ssize=%u", name, text,
                 use == INPUT_EVALUATE ? "view=evaluate," : "", settings ? settings + 1 : "",
                 settings && settings[1] ? "," : "", side);
    int code = bytes < (int)sizeof input->decode ? 0 : fail(EINVAL, "--decode: too long: %s", text);
    if (code == 0)
        code = job_choose(&input->job, &input->plugins);
    code = ranks_meet(ranks, code, NULL);
    return code ? code
                : find_data(&input->job, ranks, &scan, &input->plugins, &input->catalog, result);
}

void input_shut(struct network_input *input)
{
    engine_destroy(input->engine);
    free(input->run.epochs);
    input->engine = NULL;
    input->run = (struct result_run){0};
}

static void count_batch(struct network_input *input, const struct trainer_times *times,
                        const struct backend_loss *loss)
{
    if (loss->update_due)
        meter_add(input->meter, METER_GRADIENT_BYTES, input->gradient_bytes);
    if (loss->count == 0) /* the batch is still in flight */
        return;
    input->loss += loss->loss * loss->counted;
    input->counted += loss->counted;
    input->correct += loss->correct;
    input->correct_top5 += loss->correct_top5;
    if (input->finished)
        input->finished(input->context, times, loss);
}

static int network_prepare(void *state, uint32_t count)
{
    const struct network_input *input = state;

    return training_prepare(input->training, count, input->use == INPUT_LEARN);
}

static int network_step(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    struct network_input *input = state;
    struct backend_loss loss;
    int code = input->use == INPUT_LEARN ? training_step(input->training, batch, times, &loss)
                                         : training_infer(input->training, batch, times, &loss);

    if (code == 0)
        count_batch(input, times, &loss);
    return code;
}

static int network_finish(void *state, struct trainer_times *times)
{
    struct network_input *input = state;
    struct backend_loss loss;
    int code = training_finish(input->training, times, &loss);

    if (code == 1)
        count_batch(input, times, &loss);
    return code;
}

static void *network_allocate(void *state, size_t bytes)
{
    return training_allocate(((struct network_input *)state)->training, bytes);
}

static void network_release(void *state, void *memory)
{
    training_release(((struct network_input *)state)->training, memory);
}

static void measure_memory(void *state, struct trainer_memory *memory)
{
    training_memory(((struct network_input *)state)->training, memory);
}

static const char *notice(void *state)
{
    return training_notice(((struct network_input *)state)->training);
}

static const struct trainer_ops network_trainer = {.plugin = {.name = "network"},
                                                   .allocate = network_allocate,
                                                   .release = network_release,
                                                   .prepare = network_prepare,
                                                   .step = network_step,
                                                   .finish = network_finish,
                                                   .memory = measure_memory,
                                                   .notice = notice};

int input_open(struct network_input *input, struct training *training, uint64_t first_epoch,
               uint64_t epochs, struct result *result)
{
    input_shut(input);
    snprintf(input->resume_at, sizeof input->resume_at, "%llu:0", (unsigned long long)first_epoch);
    input->job.order.resume_at = input->resume_at;
    input->training = training;
    input->trainer = (struct trainer){.ops = &network_trainer, .state = input};
    input->run.epochs = memory_array(epochs, sizeof *input->run.epochs);
    const struct engine_config config = {.job = &input->job,
                                         .plugins = &input->plugins,
                                         .catalog = input->catalog,
                                         .ranks = input->ranks,
                                         .trainer = &input->trainer,
                                         .meter = input->meter,
                                         .hinting = input->hinting,
                                         .recorder = input->recorder,
                                         .tick = training->config.tick};
    return input->run.epochs ? engine_create(&config, result, &input->engine) : -ENOMEM;
}

void input_close(struct network_input *input)
{
    input_shut(input);
    catalog_destroy(input->catalog);
    job_release(&input->plugins);
}

void input_forget(struct network_input *input)
{
    input->loss = 0;
    input->counted = input->correct = input->correct_top5 = 0;
}
