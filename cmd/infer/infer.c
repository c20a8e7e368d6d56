/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench infer: measures inference; prints a line per batch size, or JSON.
 */
#include "pipeline/jobs/infer.h"
#include "pipeline/jobs/session.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/line.h"
#include "cmd/layers.h"
#include "report/report.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct infer_settings {
    struct network_settings network;
    struct infer_job infer; /* with the options that need no look */
    char *batch_sizes, *precisions;
    uint64_t warmup, calibrate;
};

/* clang-format off: one or two rows each */
#define FIELD(field) .offset = offsetof(struct infer_settings, field)
#define JOB NETWORK_JOB(struct infer_settings)
static const struct option_spec infer_options[] = {
    NETWORK_OPTIONS(struct infer_settings),
    {"checkpoint", 0, OPTION_TEXT, FIELD(infer.checkpoint), .metavar = "PATH",
     .reach = OPTION_READS,
     .summary = "trained weights: a file, or the folder of 'train --checkpoint'; default: random "
                "weights, no accuracy"},
    {"init", 0, OPTION_TEXT, FIELD(infer.weights), .metavar = "FILE", .reach = OPTION_READS,
     .summary = "load weights from a safetensors file (torchvision names)"},
    JOB_READER_ROWS(JOB),
    JOB_DECODE_ROWS(JOB),

    {"batch-size", 'B', OPTION_TEXT, FIELD(batch_sizes), .fallback = "1,8,64",
     .metavar = "N[,N...]", .section = "Measurement",
     .summary = "comma-separated batch sizes; "
                "one pass over the data set each"},
    {"precision", 0, OPTION_TEXT, FIELD(precisions), .metavar = "NAME[,NAME...]",
     .summary = "fp32 (without TF32 on GPUs), tf32, fp16, bf16, int8; one pass each, compared "
                "with the first; default: the backend's own"},
    {"calibrate-images", 0, OPTION_COUNT, FIELD(calibrate), .fallback = "1250", .minimum = 1,
     .maximum = 1 << 24, .summary = "images for calibrating the activation ranges of INT8"},
    {"calibrate-data", 0, OPTION_TEXT, FIELD(infer.calibrate_data), .metavar = "PATH",
     .reach = OPTION_INDEXES_SET,
     .summary = "data set of the calibration images; default: the first images of --data"},
    {"calibrate-by", 0, OPTION_CHOICE, FIELD(infer.calibrate_by), .fallback = "kl",
     .choices = quantise_methods,
     .summary = "range with the least information loss, of the largest value, or of 99.99% of "
                "the values"},
    {"warmup", 0, OPTION_COUNT, FIELD(warmup), .fallback = "3", .maximum = 1 << 20,
     .summary = "batches to compute before the clock starts"},
    {"json", 'j', OPTION_TEXT, JOB_FIELD(JOB, output.json), .metavar = "FILE",
     .reach = OPTION_WRITES, .section = "Output",
     .summary = "write the result as JSON; - is standard output instead of the table"},
    {0},
};
#undef JOB
#undef FIELD
/* clang-format on */

struct infer_show {
    const struct infer_settings *settings;
    struct line line;
    bool table; /* on standard output */
};

static void show_pass(void *context, const struct infer_row *row, uint64_t done, uint64_t total,
                      uint64_t elapsed_ns)
{
    struct infer_show *show = context;
    char what[64] = "calibrating";
    char text[sizeof show->line.last], bar[LINE_PART_BYTES], left[LINE_PART_BYTES];

    if (row)
        snprintf(what, sizeof what, "%s, batch size %u", row->precision, row->batch_size);
    snprintf(text, sizeof text, "%s %s%s", what, line_bar(bar, done, total),
             line_left(left, done, total, elapsed_ns));
    line_show(&show->line, text);
}

static bool has_accuracy(const struct infer_result *result, const struct infer_row *row)
{
    return result->weights[0] && row->counted;
}

static void show_row(void *context, const struct infer_result *result, const struct infer_row *row)
{
    struct infer_show *show = context;
    static const double shown[] = {0.5, 0.9, 0.99, 1};
    char whole[WORDS_BYTES], network[WORDS_BYTES];

    assert(result->row_count > 0);
    if (!show->table)
        return;
    line_clear(&show->line);
    if (result->row_count == 1) {
        char records[WORDS_BYTES];
        words_printf(
            stdout, "", 0, "%s on %s, %.2f M parameters, %.3f GMAC per image, %s images per pass",
            show->settings->network.name, result->backend, (double)result->cost.parameters * 1e-6,
            (double)result->cost.forward_macs * 1e-9,
            words_count(result->rows[0].io.samples, records));
        if (result->calibrated)
            printf("INT8 calibrated by %s on %s images\n",
                   quantise_methods[show->settings->infer.calibrate_by],
                   words_count(result->calibrated, records));
        printf("%27s  %s\n", "images/s", "batch latency");
        printf("%4s %5s %8s %7s %7s %7s %7s %7s %6s %6s %6s\n", "", "batch", "pipeline", "network",
               "median", "90%", "99%", "max", "wait", "top-1", "top-5");
    }
    printf("%-4s %5u %8s %7s", row->precision, row->batch_size,
           words_rate(result_epoch_samples_per_s(&row->io), whole),
           words_rate(infer_compute_samples_per_s(row), network));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        printf(" %7s", words_duration(histogram_quantile(&row->latency_ns, shown[i]), whole));
    printf(" %5.1f%%",
           row->io.wall_ns ? 100 * (double)row->io.wait_ns / (double)row->io.wall_ns : 0);
    if (has_accuracy(result, row))
        printf(" %6s %6s\n", words_percent(row->top1, whole), words_percent(row->top5, network));
    else
        printf(" %6s %6s\n", "-", "-");
    fflush(stdout);
}

static const char *accuracy_reason(const struct infer_result *result, const struct infer_row *row)
{
    if (!result->weights[0])
        return "random weights: use --checkpoint or --init";
    return row->counted ? "" : "no sample has a label";
}

static void print_comparison(const struct infer_result *result, const struct infer_row *row)
{
    const struct infer_row *first = result->rows; /* of this batch size */

    while (first->batch_size != row->batch_size)
        first++;
    if (row->is_int8)
        printf("int8, batches of %u: %u of %u layers ran in INT8%s\n", row->batch_size,
               row->int8.in_int8, row->int8.layers,
               row->int8.in_int8 ? "" : ", all in floating point: nothing to compare");
    /* Do not compare a precision with itself, or with INT8 of which no layer ran in INT8. */
    if (strcmp(first->precision, row->precision) == 0 || (row->is_int8 && !row->int8.in_int8) ||
        (first->is_int8 && !first->int8.in_int8))
        return;
    printf("%s vs %s, batches of %u: network speed x%.2f", row->precision, first->precision,
           row->batch_size, infer_compute_samples_per_s(row) / infer_compute_samples_per_s(first));
    if (has_accuracy(result, row))
        printf(", top-1 %+.2f, top-5 %+.2f points", 100 * (row->top1 - first->top1),
               100 * (row->top5 - first->top5));
    printf("\n");
}

/* ---- JSON ---- */

static json_t *json_row(const struct infer_result *result, const struct infer_row *row)
{
    const bool known = has_accuracy(result, row);
    const double storage = result_epoch_device_percent(&row->io);
    static const struct {
        const char *key;
        double fraction;
    } quantiles[] = {
        {"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p99_ms", 0.99}, {"p99_9_ms", 0.999}, {"max_ms", 1}};
    json_t *object = json_object();
    json_object_set_new(object, "batches", json_integer((json_int_t)row->latency_ns.count));
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        json_object_set_new(
            object, quantiles[i].key,
            json_number((double)histogram_quantile(&row->latency_ns, quantiles[i].fraction) *
                        1e-6));
    return json_pack(
        "{s:I, s:o, s:s, s:o, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, "
        "s:o, s:s}",
        "record_bytes", (json_int_t)row->io.record_bytes, "storage_percent",
        json_number(storage < 0 ? NAN : storage), "storage_percent_reason",
        storage < 0 ? row->io.device.reason : "", "int8_layers",
        row->is_int8 ? json_integer((json_int_t)row->int8.in_int8) : json_null(), "weight_layers",
        row->is_int8 ? json_integer((json_int_t)row->int8.layers) : json_null(), "precision",
        row->precision, "batch_size", (json_int_t)row->batch_size, "samples",
        (json_int_t)row->io.samples, "samples_per_s",
        json_number(result_epoch_samples_per_s(&row->io)), "network_samples_per_s",
        json_number(infer_compute_samples_per_s(row)), "latency", object, "wall_s",
        json_number((double)row->io.wall_ns * 1e-9), "wait_s",
        json_number((double)row->io.wait_ns * 1e-9), "compute_s",
        json_number((double)row->io.compute_ns * 1e-9), "labelled", (json_int_t)row->counted,
        "loss", json_number(known ? row->loss : NAN), "top1", json_number(known ? row->top1 : NAN),
        "top5", json_number(known ? row->top5 : NAN), "accuracy_reason",
        accuracy_reason(result, row));
}

static json_t *json_of(const struct infer_job *job, const struct infer_result *result,
                       const char *command)
{
    json_t *document = json_object(), *rows = json_array();

    json_put_text(document, "schema", "iobench-infer");
    json_put_count(document, "schema_version", SCHEMA_VERSION);
    json_put_text(document, "iobench_version", PACKAGE_VERSION);
    json_put_text(document, "command", command);
    json_put_text(document, "started", result->result.environment.started);
    json_object_set_new(document, "place", report_environment(&result->result.environment));
    json_put_text(document, "network", job->training.network->name);
    json_put_text(document, "backend", result->backend);
    report_verdict(document, &result->result);
    json_put_count(document, "calibrated", result->calibrated);
    json_put_text(document, "calibrated_by", quantise_methods[job->calibrate_by]);
    json_put_count(document, "side", job->training.side);
    json_put_count(document, "classes", job->training.classes);
    json_put_count(document, "parameters", result->cost.parameters);
    json_put_number(document, "gmacs", (double)result->cost.forward_macs * 1e-9);
    json_put_text(document, "data", job->job.read.data);
    json_object_set_new(document, "dataset", report_dataset(&result->result));
    json_put_text(document, "checkpoint", result->weights[0] ? result->weights : NULL);
    for (uint32_t i = 0; i < result->row_count; i++)
        json_array_append_new(rows, json_row(result, &result->rows[i]));
    json_object_set_new(document, "batch_sizes", rows);
    return seal_add(document);
}

/* ---- the command ---- */

/* Split text into names, in place. */
static int parse_precisions(char *text, struct infer_job *job)
{
    static const char *const known[] = {"fp32", "tf32", "fp16", "bf16", "int8"};
    char *rest = NULL;

    for (char *name = text ? strtok_r(text, ",", &rest) : NULL; name;
         name = strtok_r(NULL, ",", &rest)) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(name, known[i]) != 0)
            i++;
        if (i == sizeof known / sizeof *known)
            return fail(EINVAL, "--precision: '%s' is not one of fp32, tf32, fp16, bf16, int8",
                        name);
        if (job->precision_count == INFER_PRECISIONS_MAX)
            return fail(EINVAL, "--precision: more than %d", INFER_PRECISIONS_MAX);
        job->precisions[job->precision_count++] = name;
    }
    if (job->precision_count == 0)
        job->precision_count = 1; /* the backend's own */
    return 0;
}

/* Complete settings->infer. */
static int fill_job(struct infer_settings *settings)
{
    const struct option_list list = {.option = "batch-size",
                                     .parse = option_parse_count,
                                     .most = 1 << 20,
                                     .count_most = INFER_BATCH_SIZES_MAX};
    struct infer_job *infer = &settings->infer;
    uint64_t sizes[INFER_BATCH_SIZES_MAX];
    int code = network_choose(&settings->network, infer_options, NETWORK_JOB(struct infer_settings),
                              &infer->training);

    if (code == 0)
        code = arguments_check_data("checkpoint", infer->checkpoint);
    if (code == 0)
        code = arguments_check_data("init", infer->weights);
    if (code == 0)
        code = arguments_check_data("calibrate-data", infer->calibrate_data);
    if (code)
        return code;
    infer->job = settings->network.job;
    if (infer->checkpoint && infer->weights)
        return fail(EINVAL, "only one of --checkpoint and --init can be given");
    infer->warmup = (uint32_t)settings->warmup;
    infer->calibrate = (uint32_t)settings->calibrate;
    code = parse_precisions(settings->precisions, infer);
    const int count = code ? code : option_parse_list(&list, settings->batch_sizes, sizes);
    for (int i = 0; i < count; i++)
        infer->batch_sizes[infer->batch_size_count++] = (uint32_t)sizes[i];
    return count < 0 ? count : 0;
}

static int infer_command(const struct invocation *invocation)
{
    struct infer_settings *settings = invocation->settings;
    struct infer_job *const job = &settings->infer;
    struct infer_result result = {0};

    if (fill_job(settings) || outputs_check(&job->job, "{\"schema\"", "")) {
        option_release(job_options, &settings->network.job);
        return command_misused(invocation);
    }
    char command[sizeof result.result.environment.command];
    command_text(invocation, command, sizeof command);
    command_on_interrupt();
    struct infer_show show = {.settings = settings,
                              .line = line_start(),
                              .table =
                                  !job->job.output.json || strcmp(job->job.output.json, "-") != 0};
    const struct infer_observer observer = {
        .progress = show_pass, .row = show_row, .context = &show};
    int code = infer_run(job, &observer, &result);
    uint64_t skipped = result.result.index_faults;
    for (uint32_t i = 0; i < result.row_count; i++)
        skipped += result.rows[i].io.skipped;
    if (skipped)
        result_degraded(&result.result, "records were skipped");
    const bool good = result.result.valid && !*result.result.degraded_reason;
    line_clear(&show.line);
    if (code == 0 && show.table) {
        /* Caches are used as they are found: tell where the bytes came from. */
        const struct infer_row *rows = result.rows;
        const double first = result.row_count ? result_epoch_device_percent(&rows[0].io) : 0;
        double most = 0;
        for (uint32_t i = 1; i < result.row_count; i++)
            most = fmax(most, result_epoch_device_percent(&rows[i].io));
        if (first < 0)
            printf("from storage: unknown: %s\n", escape_shown(rows[0].io.device.reason));
        else if (result.row_count)
            printf("from storage: %.0f%% of the bytes of the first pass", first);
        if (first >= 0 && result.row_count > 1)
            printf(", at most %.0f%% of a later one", most);
        if (first >= 0 && result.row_count)
            printf("\n");
        if (result.result.data_was_made)
            printf("data: synthetic images\n");
        for (uint32_t i = 0; i < result.row_count; i++)
            print_comparison(&result, &result.rows[i]);
        if (result.row_count && !has_accuracy(&result, &result.rows[0]))
            printf("no accuracy: %s\n", accuracy_reason(&result, &result.rows[0]));
        for (uint32_t i = 0; i < result.result.notice_count; i++)
            words_print(stdout, "note:", 6, escape_shown(result.result.notices[i]));
        if (*result.result.degraded_reason)
            words_print(stdout, "DEGRADED:", 10, escape_shown(result.result.degraded_reason));
        if (!result.result.valid)
            words_print(stdout, "INVALID:", 9, escape_shown(result.result.invalid_reason));
    }
    if (code == 0 && job->job.output.json)
        code = json_file_write(job->job.output.json, json_of(job, &result, command));
    infer_destroy(&result);
    option_release(job_options, &settings->network.job);
    return code ? command_failed(invocation) : good ? COMMAND_OK : COMMAND_FAILED;
}

const struct command command_infer = {
    .name = "infer",
    .summary = "measure inference throughput, latency and accuracy",
    .description =
        "Runs the forward pass over a data set, through the same pipeline that 'iobench run' "
        "times, once per batch size. Reports images/s of the whole pipeline and of the network "
        "alone (from its median time), the latency of a batch from input in memory to predictions, "
        "and with a checkpoint top-1 and top-5 accuracy. Where the two rates differ the network "
        "waited for data; the wait column says how long. INT8 folds BN into the convolutions and "
        "quantises weights per channel and activations per tensor; the first convolution and the "
        "last layers stay in floating point.",
    .examples =
        "iobench infer --data val --checkpoint DIR\tResNet-50 trained by 'iobench train'\n"
        "iobench infer --network vgg16 --data val --batch-size 1,2,4,8,16,32\ta curve over batch "
        "sizes\n"
        "iobench infer --data val --checkpoint DIR --precision fp32,int8\tspeed and accuracy of "
        "INT8\n",
    .options = infer_options,
    .settings_size = sizeof(struct infer_settings),
    .is_confined = true,
    .run = infer_command,
};
