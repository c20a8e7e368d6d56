/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/train/report.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/gradients.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "cmd/json_file.h"
#include "cmd/outputs.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <inttypes.h>
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
