/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "base/escape.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
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

void report_csv_marks(FILE *stream, const struct result *result, const struct result_run *run,
                      bool degraded)
{
    fprintf(stream, "%d,%d,%d,", degraded, result->valid, result->data_was_made);
    report_csv_quoted(stream, run && !run->valid         ? run->invalid_reason
                              : !result->valid           ? result->invalid_reason
                              : *result->degraded_reason ? result->degraded_reason
                              : degraded                 ? "samples were skipped"
                                                         : "");
}

static void print_epoch_row(FILE *stream, const struct result *result, const struct result_run *run,
                            const struct result_epoch *epoch, bool degraded)
{
    report_csv_quoted(stream, result->job->output.label ? result->job->output.label : "");
    fprintf(stream, ",%d,%" PRIu64 ",%" PRIu64 ",", run->valid, run->number, epoch->epoch + 1);
    const char *cache = summary_cache_name(run->cold.state);
    if (strchr(cache, ','))
        report_csv_quoted(stream, cache);
    else
        fputs(cache, stream);
    fputc(',', stream);
    if (run->cold.pages != RESIDENCY_UNVERIFIED)
        fprintf(stream, "%.4f", run->cold.residue_percent);
    for (size_t i = 0; i < figures_of_epoch_count; i++) {
        const struct figure *row = &figures_of_epoch[i];
        const void *at = (const char *)epoch + row->offset;
        if (!row->column)
            continue;
        fputc(',', stream);
        if (row->known_at && !*((const bool *)(const void *)epoch + row->known_at))
            continue;
        if (row->type == FIGURE_LIMIT) {
            fputs(summary_limit_name(epoch->limit), stream);
        } else if (row->type == FIGURE_COUNT) {
            fprintf(stream, "%" PRIu64, *(const uint64_t *)at);
        } else {
            assert(row->type == FIGURE_TIME || row->type == FIGURE_REAL || row->value);
            const double value = row->type == FIGURE_TIME   ? (double)*(const uint64_t *)at * 1e-9
                                 : row->type == FIGURE_REAL ? *(const double *)at
                                                            : row->value(epoch);
            if (isfinite(value))
                fprintf(stream, "%.*f", row->digits, value);
        }
    }
    fputc(',', stream);
    report_csv_marks(stream, result, run, degraded);
    fputc('\n', stream);
}

void report_csv(FILE *stream, const struct result *result, bool heading)
{
    const bool degraded = report_is_degraded(result);

    if (heading) {
        fputs("label,valid,run,epoch,cache_before,cold_residue_percent", stream);
        for (size_t i = 0; i < figures_of_epoch_count; i++)
            if (figures_of_epoch[i].column)
                fprintf(stream, ",%s", figures_of_epoch[i].column);
        fputs("," REPORT_CSV_MARKS "\n", stream);
    }
    for (uint32_t i = 0; i < result->run_count; i++)
        for (uint32_t k = 0; k < result->runs[i].epoch_count; k++)
            print_epoch_row(stream, result, &result->runs[i], &result->runs[i].epochs[k], degraded);
}
