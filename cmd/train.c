/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench train: a network learns; a line an epoch, curves as CSV and JSON.
 */
#include "pipeline/train.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/line.h"
#include "cmd/network.h"
#include "report/ranks.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct train_settings {
    struct network_settings network;
    char *evaluation_data, *shuffle, *checkpoint, *json, *csv, *series, *exchange;
    uint64_t batch_size, epochs, evaluate_every, buckets, silence_ns, sample_interval_ns;
    int recipe;
    double rate, momentum, weight_decay, label_smoothing, warmup_epochs, target;
    bool resume;
};

static const char *const recipe_names[] = {"sgd", "lars", NULL};

/* clang-format off: a row or two each */
#define FIELD(field) .offset = offsetof(struct train_settings, field)
static const struct option_spec train_options[] = {
    NETWORK_OPTIONS(struct train_settings),
    {"eval-data", 0, OPTION_TEXT, FIELD(evaluation_data), .metavar = "PATH",
     .summary = "the one to be evaluated on"},
    {"shuffle", 's', OPTION_TEXT, FIELD(shuffle), .fallback = "epoch", .metavar = "NAME[:...]",
     .summary = "order of the samples of an epoch"},

    {"epochs", 'e', OPTION_COUNT, FIELD(epochs), .fallback = "1", .minimum = 1, .maximum = 1 << 20,
     .section = "How", .summary = "passes over the data set"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(batch_size), .fallback = "64", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples in a batch of one rank"},
    {"recipe", 0, OPTION_CHOICE, FIELD(recipe), .fallback = "sgd", .choices = recipe_names,
     .summary = "SGD with cosine decay, or LARS for large batches"},
    {"lr", 0, OPTION_REAL, FIELD(rate), .fallback = "-1", .minimum = -1, .maximum = 1e6,
     .summary = "highest learning rate; below 0: what the recipe has for the batch"},
    {"momentum", 0, OPTION_REAL, FIELD(momentum), .fallback = "-1", .minimum = -1, .maximum = 1,
     .summary = "below 0: the recipe's"},
    {"weight-decay", 0, OPTION_REAL, FIELD(weight_decay), .fallback = "-1", .minimum = -1,
     .maximum = 1e6, .summary = "not of BN and biases; below 0: the recipe's"},
    {"label-smoothing", 0, OPTION_REAL, FIELD(label_smoothing), .fallback = "-1", .minimum = -1,
     .maximum = 0.99, .summary = "below 0: the recipe's"},
    {"warmup", 0, OPTION_REAL, FIELD(warmup_epochs), .fallback = "-1", .minimum = -1,
     .maximum = 1e6, .summary = "epochs in which the rate rises; below 0: the recipe's"},
    {"exchange", 0, OPTION_TEXT, FIELD(exchange), .fallback = "auto", .metavar = "NAME",
     .summary = "how ranks add up gradients: mpi; between GPUs nccl, p2p:ring, p2p:tree; auto is "
                "mpi where "
                "an MPI launcher started it"},
    {"buckets", 0, OPTION_COUNT, FIELD(buckets), .fallback = "4", .minimum = 1, .maximum = 1024,
     .summary = "the gradients are sent in so many parts, each as soon as it is known"},
    {"silence", 0, OPTION_DURATION, FIELD(silence_ns), .fallback = "60s", .zero = "none",
     .summary =
         "a rank that gives no sign of life for so long while others wait for it ends the job"},

    {"eval-every", 0, OPTION_COUNT, FIELD(evaluate_every), .fallback = "1", .minimum = 1,
     .maximum = 1 << 20, .section = "How far", .summary = "epochs between evaluations"},
    {"target", 0, OPTION_REAL, FIELD(target), .fallback = "0", .maximum = 1,
     .summary = "stop at this top-1 share, as 0.759; the time to it is reported"},
    {"checkpoint", 0, OPTION_TEXT, FIELD(checkpoint), .metavar = "DIR",
     .summary = "keep all that is learnt in DIR/last.checkpoint after each epoch"},
    {"resume", 0, OPTION_FLAG, FIELD(resume), .fallback = "no",
     .summary = "go on from the checkpoint that lies there, as if it had never stopped"},
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .section = "What comes out",
     .summary = "write settings and curves; - is standard output instead of the table"},
    {"csv", 0, OPTION_TEXT, FIELD(csv), .metavar = "FILE", .summary = "write a row an epoch"},
    {"sample-interval", 0, OPTION_DURATION, FIELD(sample_interval_ns), .fallback = "100ms",
     .zero = "none", .minimum = 0.01, .maximum = 3600,
     .summary = "read the counters of machine and pipeline so often, for the time series"},
    {"series", 0, OPTION_TEXT, FIELD(series), .metavar = "FILE",
     .summary = "write the time series as CSV, a row a sample"},
    {0},
};
#undef FIELD
/* clang-format on */

struct show {
    const struct train_settings *settings;
    struct line line;
    bool speaks; /* rank 0; the others are silent */
    bool table;  /* on the standard output */
};

static void show_progress(void *context, uint64_t epoch, bool evaluating, uint64_t done,
                          uint64_t total, uint64_t elapsed_ns, double loss)
{
    struct show *show = context;
    char text[sizeof show->line.last], bar[LINE_PART_BYTES], left[LINE_PART_BYTES];
    char rate[WORDS_BYTES];
    double seconds = (double)elapsed_ns * 1e-9;

    if (!show->line.shown || !show->speaks)
        return;
    words_rate(seconds > 0 ? (double)done / seconds : 0, rate);
    snprintf(text, sizeof text, "epoch %" PRIu64 "/%" PRIu64 "%s %s%s loss %.3f %s img/s",
             epoch + 1, show->settings->epochs, evaluating ? " evaluating" : "",
             line_bar(bar, done, total), line_left(left, done, total, elapsed_ns), loss, rate);
    if (evaluating)
        snprintf(text, sizeof text, "evaluating %s %s img/s", line_bar(bar, done, total), rate);
    line_show(&show->line, text);
}

static void print_heading(const char *network, const struct train_result *result)
{
    char activations[32];

    printf("%s on %s, %.2f M parameters, %.3f GMAC and %s of activations an image\n", network,
           result->backend, (double)result->cost.parameters * 1e-6,
           (double)result->cost.forward_macs * 1e-9,
           bytes_text(result->cost.activation_bytes, activations, sizeof activations));
    printf("%5s %9s %8s %8s %8s %9s %7s %7s %7s %8s %6s\n", "epoch", "rate", "loss", "train",
           "img/s", "eval loss", "top-1", "top-5", "wait", "exchange", "time");
}

static double share(uint64_t part_ns, const struct result_epoch *epoch)
{
    return epoch->wall_ns ? 100 * (double)part_ns / (double)epoch->wall_ns : 0;
}

static void show_epoch(void *context, const struct train_result *result,
                       const struct train_epoch *epoch)
{
    struct show *show = context;
    char rate[WORDS_BYTES], time[WORDS_BYTES];

    if (!show->speaks || !show->table)
        return;
    line_clear(&show->line);
    if (result->epoch_count == 1)
        print_heading(show->settings->network.name, result);
    printf("%5" PRIu64 " %9.5f %8.4f %7.2f%% %8s ", epoch->io.epoch + 1, epoch->rate, epoch->loss,
           100 * epoch->accuracy, words_rate(epoch->samples_per_s, rate));
    if (epoch->evaluated)
        printf("%9.4f %6.2f%% %6.2f%%", epoch->evaluation_loss, 100 * epoch->top1,
               100 * epoch->top5);
    else
        printf("%9s %7s %7s", "", "", "");
    printf(" %6.1f%% %7.1f%% %8s\n", share(epoch->io.wait_ns, &epoch->io),
           share(epoch->io.exchange_ns, &epoch->io), words_duration(epoch->elapsed_ns, time));
    fflush(stdout);
}

/* ---- files ---- */

static int write_csv(const char *path, const struct train_result *result)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);

    if (!stream)
        return fail(ENOMEM, "out of memory");
    fputs("epoch,rate,loss,accuracy,evaluation_loss,top1,top5,samples_per_s,wall_s,wait_s,"
          "compute_s,exchange_s,update_s,evaluation_s,elapsed_s\n",
          stream);
    for (uint32_t i = 0; i < result->epoch_count; i++) {
        const struct train_epoch *epoch = &result->epochs[i];
        fprintf(stream, "%" PRIu64 ",%.9g,%.9g,%.9g,", epoch->io.epoch + 1, epoch->rate,
                epoch->loss, epoch->accuracy);
        if (epoch->evaluated)
            fprintf(stream, "%.9g,%.9g,%.9g", epoch->evaluation_loss, epoch->top1, epoch->top5);
        else
            fputs(",,", stream);
        fprintf(stream, ",%.3f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f\n", epoch->samples_per_s,
                (double)epoch->io.wall_ns * 1e-9, (double)epoch->io.wait_ns * 1e-9,
                (double)epoch->io.compute_ns * 1e-9, (double)epoch->io.exchange_ns * 1e-9,
                (double)epoch->io.update_ns * 1e-9, (double)epoch->evaluation_ns * 1e-9,
                (double)epoch->elapsed_ns * 1e-9);
    }
    fclose(stream);
    int code = report_write_file(path, text, bytes);
    free(text);
    return code;
}

static json_t *json_epoch(const struct train_epoch *epoch)
{
    const struct result_epoch *io = &epoch->io;

    return json_pack(
        "{s:I, s:f, s:f, s:f, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:f, s:s, s:o}",
        "epoch", (json_int_t)io->epoch + 1, "rate", epoch->rate, "loss", epoch->loss, "accuracy",
        epoch->accuracy, "evaluation_loss",
        epoch->evaluated ? json_real(epoch->evaluation_loss) : json_null(), "top1",
        epoch->evaluated ? json_real(epoch->top1) : json_null(), "top5",
        epoch->evaluated ? json_real(epoch->top5) : json_null(), "samples_per_s",
        epoch->samples_per_s, "wall_s", (double)io->wall_ns * 1e-9, "wait_s",
        (double)io->wait_ns * 1e-9, "upload_s", (double)io->upload_ns * 1e-9, "upload_copy_s",
        (double)io->copy_ns * 1e-9, "compute_s", (double)io->compute_ns * 1e-9, "exchange_s",
        (double)io->exchange_ns * 1e-9, "update_s", (double)io->update_ns * 1e-9, "evaluation_s",
        (double)epoch->evaluation_ns * 1e-9, "elapsed_s", (double)epoch->elapsed_ns * 1e-9,
        "au_percent", result_epoch_au_percent(io), "mlperf_au_percent",
        summary_mlperf_au_percent(io), "limit", summary_limit_name(io->limit), "ranks_compared",
        report_ranks_json(&epoch->ranks));
}

static json_t *json_of(const struct train_job *job, const struct train_result *result)
{
    const struct recipe *recipe = &result->recipe;
    json_t *epochs = json_array();

    for (uint32_t i = 0; i < result->epoch_count; i++)
        json_array_append_new(epochs, json_epoch(&result->epochs[i]));
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:s, s:f, s:f, s:f, s:f, s:I, s:I}, s:I, "
        "s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o}",
        "network", job->network->name, "backend", result->backend, "side", (json_int_t)job->side,
        "classes", (json_int_t)job->classes, "batch_size", (json_int_t)job->job.batch_size, "ranks",
        (json_int_t)job->ranks->place.ranks, "seed", (json_int_t)job->job.seed, "records",
        (json_int_t)result->records, "evaluation_records", (json_int_t)result->evaluation_records,
        "recipe", "name", recipe_names[recipe->kind], "rate", recipe->rate, "momentum",
        recipe->momentum, "weight_decay", recipe->weight_decay, "label_smoothing",
        recipe->label_smoothing, "steps", (json_int_t)recipe->steps, "warmup_steps",
        (json_int_t)recipe->warmup_steps, "memory_before_bytes",
        (json_int_t)result->memory_before_bytes, "memory_bytes", (json_int_t)result->memory_bytes,
        "device_bytes", (json_int_t)result->result.trainer_memory.device_bytes,
        "device_batch_bytes", (json_int_t)result->result.trainer_memory.batch_bytes, "pinned_bytes",
        (json_int_t)result->result.trainer_memory.pinned_bytes, "target_top1", job->target,
        "time_to_target_s",
        result->reached ? json_real((double)result->reached_ns * 1e-9) : json_null(), "epochs",
        epochs, "series",
        result->result.timeline ? report_timeline(result->result.timeline) : json_null());
}

/* ---- the command ---- */

static int fill_job(const struct train_settings *settings, struct train_job *train)
{
    struct network_choice choice;
    int code = network_choose(&settings->network, settings->shuffle, &train->job, &choice);

    if (code)
        return code;
    *train = (struct train_job){
        .job = train->job,
        .evaluation_data = settings->evaluation_data,
        .evaluate_every = settings->evaluate_every,
        .network = choice.network,
        .backend = settings->network.backend,
        .side = choice.side,
        .classes = choice.classes,
        .threads = choice.threads,
        .epochs = settings->epochs,
        .recipe = settings->recipe ? BACKEND_LARS : BACKEND_SGD,
        .rate = settings->rate,
        .momentum = settings->momentum,
        .weight_decay = settings->weight_decay,
        .label_smoothing = settings->label_smoothing,
        .warmup_epochs = settings->warmup_epochs,
        .target = settings->target,
        .checkpoint = settings->checkpoint,
        .resume = settings->resume,
        .exchange = settings->exchange,
        .buckets = (uint32_t)settings->buckets,
    };
    train->job.silence_ns = settings->silence_ns;
    train->job.batch_size = settings->batch_size;
    train->job.sample_interval_ns = settings->sample_interval_ns;
    if (settings->target > 0 && !settings->evaluation_data)
        return fail(EINVAL, "--target needs --eval-data");
    return 0;
}

static void print_end(const struct train_job *job, const struct train_result *result)
{
    char time[WORDS_BYTES], before[32], during[32], text[256];

    if (result->reached)
        printf("top-1 of %.2f%% after %u epochs: %s\n", 100 * job->target, result->epoch_count,
               words_duration(result->reached_ns, time));
    else if (job->target > 0)
        printf("top-1 of %.2f%% was not reached\n", 100 * job->target);
    if (result->epoch_count) {
        const struct train_epoch *last = &result->epochs[result->epoch_count - 1];
        printf("AU in the last epoch: %.1f%% (compute over compute and wait), %.1f%% as MLPerf "
               "Storage "
               "counts\nstep: %s\nlimit: %s\n",
               result_epoch_au_percent(&last->io), summary_mlperf_au_percent(&last->io),
               report_step(&last->io, 1, text, sizeof text), summary_limit_name(last->io.limit));
        report_ranks_text(stdout, &last->ranks);
    }
    printf("memory: %s before training, %s while training%s\n",
           bytes_text(result->memory_before_bytes, before, sizeof before),
           bytes_text(result->memory_bytes, during, sizeof during),
           report_device_memory(&result->result.trainer_memory, text, sizeof text));
    if (result->result.timeline)
        report_timeline_text(stdout, result->result.timeline);
}

static int write_series(const char *path, const struct result *result)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);

    if (!stream)
        return fail(ENOMEM, "out of memory");
    report_series_csv(stream, result->timeline);
    fclose(stream);
    int code = report_write_file(path, text, bytes);
    free(text);
    return code;
}

static int write_files(const struct train_settings *settings, const struct train_job *job,
                       const struct train_result *result)
{
    int code = settings->csv ? write_csv(settings->csv, result) : 0;

    if (code == 0 && settings->series && result->result.timeline)
        code = write_series(settings->series, &result->result);
    if (code == 0 && settings->json)
        code = json_file_write(settings->json, json_of(job, result));
    return code;
}

static void on_signal(int number)
{
    (void)number;
    train_interrupt();
}

static int learn(const struct invocation *invocation, struct train_job *job)
{
    const struct train_settings *settings = invocation->settings;
    struct show show = {.settings = settings,
                        .line = line_start(),
                        .speaks = job->ranks->place.rank == 0,
                        .table = !settings->json || strcmp(settings->json, "-") != 0};
    const struct train_observer observer = {
        .progress = show_progress, .epoch = show_epoch, .context = &show};
    struct train_result result;
    int code = train_run(job, &observer, &result);

    line_clear(&show.line);
    if (code == 0 && show.speaks) {
        if (show.table)
            print_end(job, &result);
        code = write_files(settings, job, &result);
    }
    train_destroy(&result);
    return code;
}

static int train_command(const struct invocation *invocation)
{
    const struct train_settings *settings = invocation->settings;
    struct ranks ranks;
    struct train_job job = {0};
    int status = COMMAND_OK;

    if (fill_job(settings, &job)) {
        option_release(job_options, &job.job);
        return command_misused(invocation);
    }
    int code = command_join(&ranks);
    command_on_interrupt(on_signal); /* after MPI's own */
    job.ranks = &ranks;
    if (code == 0)
        code = learn(invocation, &job);
    if (code) /* who is stuck does not say why: the others then speak for it */
        status =
            ranks.place.rank == 0 || ranks.is_unheard ? command_failed(invocation) : COMMAND_FAILED;
    ranks_leave(&ranks, code != 0);
    option_release(job_options, &job.job);
    return status;
}

const struct command command_train = {
    .name = "train",
    .summary = "let a network learn from a data set, and report accuracy over time",
    .description =
        "Trains a network for real, through the same pipeline that 'iobench run' times: reads in "
        "a shuffled order, decodes, crops and mirrors, computes, updates; evaluates between "
        "epochs. Reports the loss, accuracy and images a second of each epoch and the time to a "
        "target accuracy, from the first step to the evaluation that passes. With --checkpoint it "
        "can be stopped at any time and goes on bit for bit after the last whole epoch. Started by "
        "mpirun or srun, all processes learn together and rank 0 prints.",
    .examples =
        "iobench train --network tiny --data train --eval-data test --epochs 3\ta small network\n"
        "iobench train --data imagenet --epochs 90 --checkpoint DIR --resume\tResNet-50 goes on\n",
    .options = train_options,
    .settings_size = sizeof(struct train_settings),
    .run = train_command,
};
