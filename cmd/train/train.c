/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench train: trains a network; prints a line per epoch, then the report of `iobench run` on the
 * input pipeline, and writes curves as CSV and JSON.
 */
#include "cmd/train/report.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/gradients.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/layers.h"
#include "cmd/line.h"
#include "pipeline/jobs/session.h"
#include "pipeline/jobs/train.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double share(uint64_t part_ns, const struct result_epoch *epoch)
{
    return epoch->wall_ns ? 100 * (double)part_ns / (double)epoch->wall_ns : 0;
}

void train_report_epoch(const char *network, const struct train_result *result,
                        const struct train_epoch *epoch)
{
    char rate[WORDS_BYTES], time[WORDS_BYTES], top1[WORDS_BYTES], top5[WORDS_BYTES];

    if (result->epoch_count == 1) {
        char activations[32], sent[80] = "", shared[64] = "";
        if (result->exchange[0])
            snprintf(sent, sizeof sent, ", gradients sent as %s by %s", result->wire,
                     result->exchange);
        if (result->accumulate > 1)
            snprintf(shared, sizeof shared, ", an update per %u batches", result->accumulate);
        words_printf(
            stdout, "", 0,
            "%s on %s, %s, %.2f M parameters, %.3f GMAC and %s of activations per image%s%s",
            network, result->backend, result->precision, (double)result->cost.parameters * 1e-6,
            (double)result->cost.forward_macs * 1e-9,
            bytes_text(result->activation_bytes, activations, sizeof activations), sent, shared);
        printf("%34s %22s %14s\n", "training ------------------", "evaluation -----------",
               "share of time");
        printf("%5s %7s %6s %7s %6s %6s %7s %7s %6s %5s %8s\n", "epoch", "rate", "loss", "top-1",
               "img/s", "loss", "top-1", "top-5", "wait", "exch.", "time");
    }
    printf("%5" PRIu64 " %7.5f %6.4f %7s %6s ", epoch->io.epoch + 1, epoch->rate, epoch->loss,
           words_percent(epoch->accuracy, top1), words_rate(epoch->samples_per_s, rate));
    if (epoch->evaluated)
        printf("%6.4f %7s %7s", epoch->evaluation_loss, words_percent(epoch->top1, top1),
               words_percent(epoch->top5, top5));
    else
        printf("%6s %7s %7s", "", "", "");
    printf(" %5.1f%% %4.0f%% %8s\n", share(epoch->io.wait_ns, &epoch->io),
           share(epoch->io.exchange_ns, &epoch->io), words_duration(epoch->elapsed_ns, time));
    fflush(stdout);
}

/* ---- files ---- */

static int write_csv(const char *path, const struct train_result *result)
{
    struct text_stream draft;
    int code = text_stream_open(&draft);

    if (code)
        return code;
    FILE *stream = draft.stream;
    fputs("epoch,rate,loss,accuracy,evaluation_loss,top1,top5,samples_per_s,wall_s,wait_s,"
          "compute_s,exchange_s,update_s,evaluation_s,elapsed_s,cache_before," REPORT_CSV_MARKS
          "\n",
          stream);
    const struct result *of = &result->result;
    const char *cache = of->run_count ? summary_cache_name(of->runs[0].cold.state) : "";
    const bool degraded = report_is_degraded(of);
    for (uint32_t i = 0; i < result->epoch_count; i++) {
        const struct train_epoch *epoch = &result->epochs[i];
        fprintf(stream, "%" PRIu64 ",%.9g,%.9g,%.9g,", epoch->io.epoch + 1, epoch->rate,
                epoch->loss, epoch->accuracy);
        if (epoch->evaluated)
            fprintf(stream, "%.9g,%.9g,%.9g", epoch->evaluation_loss, epoch->top1, epoch->top5);
        else
            fputs(",,", stream);
        fprintf(stream, ",%.3f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,", epoch->samples_per_s,
                (double)epoch->io.wall_ns * 1e-9, (double)epoch->io.wait_ns * 1e-9,
                (double)epoch->io.compute_ns * 1e-9, (double)epoch->io.exchange_ns * 1e-9,
                (double)epoch->io.update_ns * 1e-9, (double)epoch->evaluation_ns * 1e-9,
                (double)epoch->elapsed_ns * 1e-9);
        report_csv_quoted(stream, cache);
        fputc(',', stream);
        report_csv_marks(stream, of, NULL, degraded);
        fputc('\n', stream);
    }
    return outputs_write(path, &draft);
}

static json_t *json_epoch(const struct train_epoch *epoch)
{
    const struct result_epoch *io = &epoch->io;

    return json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:s, s:o}",
        "epoch", (json_int_t)io->epoch + 1, "rate", json_number(epoch->rate), "loss",
        json_number(epoch->loss), "accuracy", json_number(epoch->accuracy), "evaluation_loss",
        epoch->evaluated ? json_number(epoch->evaluation_loss) : json_null(), "top1",
        epoch->evaluated ? json_number(epoch->top1) : json_null(), "top5",
        epoch->evaluated ? json_number(epoch->top5) : json_null(), "samples_per_s",
        json_number(epoch->samples_per_s), "wall_s", json_number((double)io->wall_ns * 1e-9),
        "wait_s", json_number((double)io->wait_ns * 1e-9), "upload_s",
        json_number((double)io->upload_ns * 1e-9), "upload_copy_s",
        json_number((double)io->copy_ns * 1e-9), "compute_s",
        json_number((double)io->compute_ns * 1e-9), "exchange_s",
        json_number((double)io->exchange_ns * 1e-9), "update_s",
        json_number((double)io->update_ns * 1e-9), "evaluation_s",
        json_number((double)epoch->evaluation_ns * 1e-9), "elapsed_s",
        json_number((double)epoch->elapsed_ns * 1e-9), "au_percent",
        json_number(result_epoch_au_percent(io)), "mlperf_au_percent",
        json_number(result_epoch_mlperf_au_percent(io)), "limit", summary_limit_name(io->limit),
        "ranks_compared", report_ranks_json(&epoch->ranks));
}

/* The training curves. */
static json_t *json_course(const struct train_job *job, const struct train_result *result)
{
    const struct recipe *recipe = &result->recipe;
    json_t *epochs = json_array();

    for (uint32_t i = 0; i < result->epoch_count; i++)
        json_array_append_new(epochs, json_epoch(&result->epochs[i]));
    json_t *course = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:s, s:o, s:o, s:o, s:b, s:I, "
        "s:o, s:o, s:I, s:I}, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
        "network", job->training.network->name, "backend", result->backend, "precision",
        result->precision, "side", (json_int_t)job->training.side, "classes",
        (json_int_t)job->training.classes, "batch_size", (json_int_t)job->job.batch_size,
        "accumulate", (json_int_t)result->accumulate, "ranks", (json_int_t)job->ranks->place.ranks,
        "seed", (json_int_t)job->job.order.seed, "records", (json_int_t)result->records,
        "evaluation_records", (json_int_t)result->evaluation_records, "recipe", "name",
        recipe->kind == BACKEND_LARS ? "lars" : "sgd", "rate", json_number(recipe->rate),
        "momentum", json_number(recipe->momentum), "weight_decay",
        json_number(recipe->weight_decay), "decays_fc_bias", recipe->decays_fc_bias, "zero_gammas",
        (json_int_t)result->zero_gammas, "label_smoothing", json_number(recipe->label_smoothing),
        "clip_norm", recipe->clip_norm > 0 ? json_number(recipe->clip_norm) : json_null(), "steps",
        (json_int_t)recipe->steps, "warmup_steps", (json_int_t)recipe->warmup_steps,
        "memory_before_bytes", (json_int_t)result->result.memory_before_bytes, "memory_bytes",
        (json_int_t)result->result.memory_during_bytes, "device_bytes",
        (json_int_t)result->result.trainer_memory.device_bytes, "device_batch_bytes",
        (json_int_t)result->result.trainer_memory.batch_bytes, "pinned_bytes",
        (json_int_t)result->result.trainer_memory.pinned_bytes, "target_top1",
        json_number(job->target), "time_to_target_s",
        result->reached ? json_number((double)result->reached_ns * 1e-9) : json_null(), "epochs",
        epochs);
    json_put_text(course, "exchange", result->exchange[0] ? result->exchange : NULL);
    json_put_text(course, "wire", result->exchange[0] ? result->wire : NULL);
    json_put_text(course, "initial_weights", job->initial_weights);
    json_put_text(course, "final_weights", job->final_weights);
    return course;
}

static int write_profile(const struct train_job *job, const struct train_result *result,
                         const struct summary *summary)
{
    double *rates = memory_array(result->epoch_count + 1, sizeof *rates);
    struct text_stream stream;

    if (!rates || text_stream_open(&stream)) {
        free(rates);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < result->epoch_count; i++) {
        const uint64_t busy_ns = result->epochs[i].io.compute_ns + result->epochs[i].io.upload_ns +
                                 result->epochs[i].io.update_ns;
        rates[i] = busy_ns ? (double)result->epochs[i].io.samples / result->result.ranks /
                                 ((double)busy_ns * 1e-9)
                           : 0;
    }
    const struct report_trained trained = {
        .network = job->training.network->name,
        .gpu = result->backend,
        .batch = (double)(job->job.batch_size * result->accumulate), /* of an exchange */
        .parameters = (double)result->cost.parameters,
        .gradient_bytes = gradients_bytes((double)result->cost.parameters, result->number_bytes),
        .samples_per_s = stats_summarise(rates, result->epoch_count),
    };
    free(rates);
    report_profile(stream.stream, &result->result, summary, &trained);
    return outputs_write(job->job.output.profile, &stream);
}

/* ---- the end ---- */

int train_report_end(const struct train_job *job, const struct train_result *result)
{
    struct summary *summary = memory_zeroed(sizeof *summary);
    int code = summary ? summary_make(&result->result, summary) : -ENOMEM;

    if (code == 0 && job_stdout_count(&job->job) == 0) {
        char time[WORDS_BYTES];
        if (result->reached)
            printf("top-1 of %.2f%% after %u epochs: %s\n", 100 * job->target, result->epoch_count,
                   words_duration(result->reached_ns, time));
        else if (job->target > 0)
            printf("top-1 of %.2f%% was not reached\n", 100 * job->target);
        putchar('\n');
        report_text(stdout, &result->result, summary, false);
        fflush(stdout);
    }
    if (code == 0) {
        const struct job *files = &job->job;
        code = files->output.csv ? write_csv(files->output.csv, result) : 0;
        if (code == 0 && files->output.series) {
            const char *path = files->output.series;
            struct text_stream draft;
            if (!result->result.timeline)
                code = fail(ENODATA, "--series %s: no samples: %s", path,
                            result->result.timeline_reason);
            else {
                code = text_stream_open(&draft);
                if (code == 0) {
                    report_series_csv(draft.stream, result->result.timeline);
                    code = outputs_write(path, &draft);
                }
            }
        }
        if (code == 0 && files->output.json) {
            /* The document of a run, with the training curves beside its job. */
            json_t *jobs = json_array(), *document = NULL, *course = json_course(job, result);
            if (course && json_array_append_new(jobs, report_json(&result->result, summary)) == 0)
                document = report_json_document(jobs, course);
            json_decref(course);
            json_decref(jobs);
            code = json_file_write(files->output.json, document);
        }
    }
    const bool complete = result->result.valid && summary && summary->all.skipped == 0 &&
                          !*result->result.degraded_reason;
    if (code == 0 && complete && job->job.output.profile && summary->all.samples)
        code = write_profile(job, result, summary);
    free(summary);
    return code ? code : !complete;
}

/* ---- options ---- */

struct train_settings {
    struct network_settings network;
    struct train_job train; /* with the options that need no look */
    char *exchange;
    uint64_t buckets, accumulate;
};

static const char *const recipe_names[] = {"sgd", "lars", NULL};

/* clang-format off: one or two rows each */
#define FIELD(field) .offset = offsetof(struct train_settings, field)
#define JOB NETWORK_JOB(struct train_settings)
static const struct option_spec train_options[] = {
    NETWORK_OPTIONS(struct train_settings),
    {"eval-data", 0, OPTION_TEXT, FIELD(train.evaluation_data), .metavar = "PATH",
     .reach = OPTION_INDEXES_SET, .summary = "data set for evaluation"},
    JOB_AS_ROW(JOB),
    JOB_READER_ROWS(JOB),
    JOB_ORDER_ROWS(JOB),
    JOB_RANK_TIMEOUT_ROW(JOB),
    JOB_DECODE_ROWS(JOB),
    JOB_ENTRY_POINTS_ROW(JOB),

    {"epochs", 'e', OPTION_COUNT, JOB_FIELD(JOB, epochs), .fallback = "1", .minimum = 1,
     .maximum = 1 << 20, .section = "Training", .summary = "passes over the data set"},
    {"batch-size", 'B', OPTION_COUNT, JOB_FIELD(JOB, batch_size), .fallback = "64", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples per batch of one rank"},
    {"accumulate", 0, OPTION_COUNT, FIELD(accumulate), .fallback = "1", .minimum = 1,
     .maximum = 1 << 20,
     .summary = "batches of one rank whose gradients are added up before they are exchanged and "
                "the weights updated"},
    {"recipe", 0, OPTION_CHOICE, FIELD(train.recipe), .fallback = "sgd", .choices = recipe_names,
     .summary = "SGD with cosine decay, or LARS for large batches"},
    {"lr", 0, OPTION_REAL, FIELD(train.rate), .fallback = "-1", .minimum = -1, .maximum = 1e6,
     .summary = "peak learning rate; below 0: the recipe's for the batch size"},
    {"momentum", 0, OPTION_REAL, FIELD(train.momentum), .fallback = "-1", .minimum = -1,
     .maximum = 1, .summary = "momentum; below 0: the recipe's"},
    {"weight-decay", 0, OPTION_REAL, FIELD(train.weight_decay), .fallback = "-1", .minimum = -1,
     .maximum = 1e6,
     .summary = "weight decay of weights (lars: and fc biases); below 0: the recipe's"},
    {"label-smoothing", 0, OPTION_REAL, FIELD(train.label_smoothing), .fallback = "-1",
     .minimum = -1, .maximum = 0.99, .summary = "below 0: the recipe's"},
    {"warmup", 0, OPTION_REAL, FIELD(train.warmup_epochs), .fallback = "-1", .minimum = -1,
     .maximum = 1e6, .summary = "warm-up epochs of the learning rate; below 0: the recipe's"},
    {"clip-norm", 0, OPTION_REAL, FIELD(train.clip_norm), .fallback = "-1", .minimum = -1,
     .maximum = 1e9,
     .summary = "shorten an update's gradients to this norm over all parameters if theirs is "
                "larger; 0: never; below 0: the recipe's"},
    {"exchange", 0, OPTION_TEXT, FIELD(exchange), .fallback = "auto", .metavar = "NAME",
     .reach = OPTION_CONNECTS,
     .summary = "all-reduce of the gradients: mpi; between GPUs nccl, p2p:ring, p2p:tree; auto "
                "is mpi under an MPI launcher"},
    {"buckets", 0, OPTION_COUNT, FIELD(buckets), .fallback = "4", .minimum = 1, .maximum = 1024,
     .summary =
         "at most this many buckets of gradients, cut at layers, each reduced once complete"},

    {"eval-every", 0, OPTION_COUNT, FIELD(train.evaluate_every), .fallback = "1", .minimum = 1,
     .maximum = 1 << 20, .section = "Duration", .summary = "epochs between evaluations"},
    {"target", 0, OPTION_REAL, FIELD(train.target), .fallback = "0", .maximum = 1,
     .summary = "stop at this top-1 accuracy (example: 0.759) and report the time to reach it"},
    {"checkpoint", 0, OPTION_TEXT, FIELD(train.checkpoint), .metavar = "DIR",
     .reach = OPTION_WRITES_IN,
     .summary = "save the training state to DIR/last.checkpoint after each epoch"},
    {"resume", 0, OPTION_FLAG, FIELD(train.resume), .fallback = "no",
     .summary = "resume from that checkpoint, as if never interrupted"},
    {"restart", 0, OPTION_FLAG, FIELD(train.restart), .fallback = "no",
     .summary = "train from the beginning and replace that checkpoint after the first epoch"},
    {"init", 0, OPTION_TEXT, FIELD(train.initial_weights), .metavar = "FILE", .reach = OPTION_READS,
     .summary = "start from the weights in a safetensors file (torchvision names)"},
    {"export", 0, OPTION_TEXT, FIELD(train.final_weights), .metavar = "FILE",
     .reach = OPTION_WRITES,
     .summary = "write the trained weights to a new safetensors file (torchvision names)"},

    JOB_COLD_ROWS(JOB),

    {"json", 'j', OPTION_TEXT, JOB_FIELD(JOB, output.json), .metavar = "FILE",
     .reach = OPTION_WRITES, .section = "Output",
     .summary = "write settings, curves and input pipeline figures as JSON; - is standard output "
                "instead of the table"},
    {"csv", 0, OPTION_TEXT, JOB_FIELD(JOB, output.csv), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write one CSV row per epoch; - is standard output instead of the table"},
    JOB_SERIES_ROWS(JOB),
    {"profile", 0, OPTION_TEXT, JOB_FIELD(JOB, output.profile), .metavar = "FILE",
     .reach = OPTION_WRITES,
     .summary = "write network, step and data as measured, as a profile for 'iobench size'"},
    {0},
};
#undef JOB
#undef FIELD
/* clang-format on */

struct train_show {
    const struct train_settings *settings;
    struct line line; /* on rank 0; the other ranks print nothing */
    bool table;       /* on its standard output */
};

static void show_progress(void *context, uint64_t epoch, bool evaluating, uint64_t done,
                          uint64_t total, uint64_t elapsed_ns, double loss)
{
    struct train_show *show = context;
    char text[sizeof show->line.last], bar[LINE_PART_BYTES], left[LINE_PART_BYTES];
    char rate[WORDS_BYTES];
    double seconds = (double)elapsed_ns * 1e-9;

    if (!show->line.shown)
        return;
    words_rate(seconds > 0 ? (double)done / seconds : 0, rate);
    snprintf(text, sizeof text, "epoch %" PRIu64 "/%" PRIu64 "%s %s%s loss %.3f %s img/s",
             epoch + 1, show->settings->network.job.epochs, evaluating ? " evaluating" : "",
             line_bar(bar, done, total), line_left(left, done, total, elapsed_ns), loss, rate);
    if (evaluating)
        snprintf(text, sizeof text, "evaluating %s %s img/s", line_bar(bar, done, total), rate);
    line_show(&show->line, text);
}

static void show_cold(void *context, uint64_t elapsed_ns)
{
    struct train_show *show = context;
    const bool drops = show->settings->network.job.cold.drop_caches != JOB_DROP_NO;
    char text[64];

    snprintf(text, sizeof text, "%s, %.0f s", drops ? "dropping caches" : "checking the caches",
             (double)elapsed_ns * 1e-9);
    line_show(&show->line, text);
}

static void show_stage(void *context, const char *stage)
{
    struct train_show *show = context;
    char text[64];

    snprintf(text, sizeof text, "%s: %s", show->settings->network.name, stage);
    line_show(&show->line, text);
}

static void show_epoch(void *context, const struct train_result *result,
                       const struct train_epoch *epoch)
{
    struct train_show *show = context;

    if (!show->table)
        return;
    line_clear(&show->line);
    train_report_epoch(show->settings->network.name, result, epoch);
}

/* ---- the command ---- */

/* Complete settings->train. */
static int fill_job(struct train_settings *settings)
{
    struct train_job *train = &settings->train;
    int code = network_choose(&settings->network, train_options, NETWORK_JOB(struct train_settings),
                              &train->training);

    if (code)
        return code;
    train->job = settings->network.job;
    train->training.exchange = settings->exchange;
    train->training.buckets = (uint32_t)settings->buckets;
    train->training.accumulate = (uint32_t)settings->accumulate;
    if (train->resume && train->restart)
        return fail(EINVAL, "only one of --resume and --restart can be given");
    if (train->resume && train->initial_weights)
        return fail(EINVAL,
                    "only one of --resume and --init can be given: a checkpoint has weights");
    if (train->final_weights && file_exists(train->final_weights))
        return fail(EEXIST, "--export %s: the file exists: name another", train->final_weights);
    if (train->target > 0 && !train->evaluation_data)
        return fail(EINVAL, "--target needs --eval-data");
    code = arguments_check_data("init", train->initial_weights);
    return code ? code : arguments_check_data("eval-data", train->evaluation_data);
}

static int train_command(const struct invocation *invocation)
{
    struct train_settings *settings = invocation->settings;
    struct train_job *job = &settings->train;
    struct ranks ranks;
    bool is_usage = false;
    int code = 0, status = COMMAND_OK;

    /* The command line names the preset and overrides its settings. */
    if (settings->network.job.as)
        code = layers_preset(settings->network.job.as, train_options, settings);
    if (code == 0 && settings->network.job.as)
        code = layers_command_line(invocation, train_options, settings);
    if (code == 0)
        code = fill_job(settings);
    if (code) {
        option_release(job_options, &settings->network.job);
        return command_misused(invocation);
    }
    code = command_join(&ranks);
    command_on_interrupt(); /* after MPI's own */
    job->ranks = &ranks;
    const bool speaks = ranks.place.rank == 0;
    if (code == 0) { /* check before spending hours */
        code = ranks_meet(&ranks,
                          speaks ? outputs_check(&job->job, "{\"schema\"", "epoch,rate") : 0, NULL);
        is_usage = code < 0;
    }
    if (code == 0)
        code = options_check_alike(train_options, settings, &ranks);
    if (code == 0) {
        struct train_show show = {.settings = settings,
                                  .line = speaks ? line_start() : (struct line){0},
                                  .table = speaks && job_stdout_count(&job->job) == 0};
        const struct train_observer observer = {.progress = show_progress,
                                                .cold = show_cold,
                                                .stage = show_stage,
                                                .epoch = show_epoch,
                                                .context = &show};
        struct train_result result;
        code = train_run(job, &observer, &result);
        line_clear(&show.line);
        command_text(invocation, result.result.environment.command,
                     sizeof result.result.environment.command);
        if (code == 0)
            code = speaks ? train_report_end(job, &result) : !result.result.valid;
        train_destroy(&result);
    }
    if (is_usage)
        status = command_misused(invocation);
    else if (code < 0 && (speaks || ranks.is_unheard))
        status = command_failed(invocation); /* a stuck rank reports no cause: the other ranks do */
    else if (code)
        status = COMMAND_FAILED;
    ranks_leave(&ranks, code < 0);
    option_release(job_options, &settings->network.job);
    return status;
}

const struct command command_train = {
    .name = "train",
    .summary = "train a network on a data set, and report accuracy over time",
    .description =
        "Trains a network through the same pipeline that 'iobench run' times: reads in shuffled "
        "order, decodes, crops and mirrors, computes, updates; evaluates between epochs. Reports "
        "loss, accuracy and images/s of each epoch and the time to a target accuracy, from the "
        "first step to the evaluation that reaches it; then what 'iobench run' reports: input "
        "throughput, AU, stalls, and with --drop-caches whether the caches were verified cold at "
        "the start. With --checkpoint it can be interrupted at any time and resumes bit for bit "
        "after the last full epoch. Under mpirun or srun all processes train together and rank 0 "
        "prints.",
    .examples =
        "iobench train --data /mnt/imagenet --drop-caches --batch-size 256\tcan a cold data set "
        "feed ResNet-50?\n"
        "iobench train --network tiny --data train --eval-data test --epochs 3\ta small network\n"
        "iobench train --data imagenet --epochs 90 --checkpoint DIR --resume\tresume ResNet-50\n",
    .options = train_options,
    .settings_size = sizeof(struct train_settings),
    .is_confined = true,
    .run = train_command,
};
