/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "base/escape.h"

#include <inttypes.h>
#include <string.h>

void report_csv_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (text = escape_shown(text); *text; text++) {
        if (*text == '"')
            fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

bool report_is_degraded(const struct result *result)
{
    bool skipped = result->index_faults > 0;

    for (uint32_t i = 0; i < result->run_count; i++)
        skipped |= result_run_total(&result->runs[i]).skipped > 0;
    return skipped || *result->degraded_reason;
}

/* Why a row is not to be used, or its job; "" if there is no doubt. */
static const char *reason_of(const struct result *result, const struct result_run *run,
                             bool degraded)
{
    if (run && !run->valid)
        return run->invalid_reason;
    if (!result->valid)
        return result->invalid_reason;
    return *result->degraded_reason ? result->degraded_reason
           : degraded               ? "samples were skipped"
                                    : "";
}

void report_csv_marks(FILE *stream, const struct result *result, const struct result_run *run,
                      bool degraded)
{
    fprintf(stream, "%d,%d,%d,", degraded, result->valid, result->data_was_made);
    report_csv_quoted(stream, reason_of(result, run, degraded));
}

static void print_row(FILE *stream, const struct result *result, const struct result_run *run,
                      const struct result_epoch *epoch, bool degraded)
{
    report_csv_quoted(stream, result->job->output.label ? result->job->output.label : "");
    fprintf(stream, ",%d,%" PRIu64 ",%" PRIu64 ",", run->valid, run->number, epoch->epoch);
    const char *cache = summary_cache_name(run->cold.state);
    if (strchr(cache, ','))
        report_csv_quoted(stream, cache);
    else
        fputs(cache, stream);
    fputc(',', stream);
    if (run->cold.pages != RESIDENCY_UNVERIFIED)
        fprintf(stream, "%.4f", run->cold.residue_percent);
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, epoch->samples, epoch->skipped,
            epoch->batches);
    fprintf(stream, ",%.9f,%.3f,%.0f", (double)epoch->wall_ns * 1e-9,
            result_epoch_samples_per_s(epoch), result_epoch_bytes_per_s(epoch));
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", epoch->record_bytes,
            epoch->request_bytes, epoch->requests);
    if (epoch->device.known)
        fprintf(stream, "%" PRIu64, epoch->device.bytes);
    fprintf(stream, ",%.9f,%.9f", (double)epoch->shuffle_ns * 1e-9,
            (double)epoch->first_batch_ns * 1e-9);
    fprintf(stream, ",%.9f,%.9f,%.9f,%.9f,%.9f,", (double)epoch->wait_ns * 1e-9,
            (double)epoch->compute_ns * 1e-9, (double)epoch->upload_ns * 1e-9,
            (double)epoch->exchange_ns * 1e-9, (double)epoch->update_ns * 1e-9);
    if (epoch->compute_ns)
        fprintf(stream, "%.4f,%.4f", result_epoch_au_percent(epoch),
                result_epoch_mlperf_au_percent(epoch));
    else
        fputc(',', stream);
    fprintf(stream, ",%.3f,%.3f,%s,", epoch->cpu_user_s, epoch->cpu_system_s,
            summary_limit_name(epoch->limit));
    report_csv_marks(stream, result, run, degraded);
    fputc('\n', stream);
}

void report_csv(FILE *stream, const struct result *result, bool heading)
{
    if (heading)
        fputs(
            "label,valid,run,epoch,cache_before,cold_residue_percent,samples,skipped,batches,"
            "wall_s,samples_per_s,record_bytes_per_s,record_bytes,request_bytes,requests,"
            "device_read_bytes,shuffle_s,first_batch_s,wait_s,compute_s,upload_s,exchange_s,"
            "update_s,au_percent,mlperf_au_percent,cpu_user_s,cpu_system_s,limit," REPORT_CSV_MARKS
            "\n",
            stream);
    const bool degraded = report_is_degraded(result);
    for (uint32_t i = 0; i < result->run_count; i++)
        for (uint32_t k = 0; k < result->runs[i].epoch_count; k++)
            print_row(stream, result, &result->runs[i], &result->runs[i].epochs[k], degraded);
}
