/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"
#include "base/profiles/profiles.h"
#include "report/report.h"

#include <stdbool.h>

const char report_profile_mark[] = "# Made by iobench: profile\n";

/* "1.2e+09 +-3%": the interval of the runs, where there are several. */
static void put_rate(FILE *stream, const char *key, const struct stats_summary *rate, double scale)
{
    const bool has_interval = rate->count > 1;
    const struct quantity quantity = quantity_of_interval(
        rate->median * scale, (has_interval ? rate->low : rate->median) * scale,
        (has_interval ? rate->high : rate->median) * scale);

    fprintf(stream, "%s=", key);
    quantity_print(stream, &quantity);
    fputc('\n', stream);
}

static void put_source(FILE *stream, const struct result *result, const struct summary *summary)
{
    if (report_is_degraded(result)) /* reports of a simulation repeat the doubt */
        fprintf(stream, "doubt=DEGRADED: %s\n",
                *result->degraded_reason ? escape_shown(result->degraded_reason)
                                         : "samples were skipped");
    fprintf(stream, "source=measured by iobench %s on %s", PACKAGE_VERSION,
            escape_shown(result->environment.host));
    fprintf(stream, ": %s", escape_shown(result->environment.command));
    fprintf(stream, "; cache %s, bottleneck %s\n\n", summary_cache_name(summary->cache),
            summary_limit_name(summary->limit));
}

/* A storage that did not limit gives more than was asked of it: nobody knows how much. Nor do
 * epochs count that something else limited, such as later ones from memory. */
static void put_storage(FILE *stream, const struct result *result, const struct summary *summary)
{
    const struct environment *environment = &result->environment;
    /* What is not a disk of this machine, all nodes share. */
    const bool local = result->run_count && result->runs[0].cold.server.state == SERVER_NONE &&
                       environment->devices[0];
    const double nodes = result->nodes > 1 ? result->nodes : 1;

    if (result->degraded_reason[0]) {
        fputs("# DEGRADED: ", stream);
        fprintf(stream, "%s\n# The rate of the storage is not known.\n",
                escape_shown(result->degraded_reason));
        return;
    }
    if (summary->limit != RESULT_LIMIT_STORAGE) {
        fputs(
            "# Storage was not the bottleneck: its rate is not known. Measure it with 'iobench run "
            "--drop-caches --decode none', or 'iobench size --measure'.\n",
            stream);
        return;
    }
    fputs("# Storage was the bottleneck: read-bytes-per-s is what it gives.\n", stream);
    fprintf(stream, "[storage]\ntitle=%s", escape_shown(environment->file_system));
    fprintf(stream, " at %s", escape_shown(environment->mount_point));
    fprintf(stream, " of %s\nscope=%s\n", escape_shown(environment->host), local ? "node" : "job");
    put_rate(stream, "read-bytes-per-s", &summary->storage_bytes_per_s, 1 / (local ? nodes : 1));
    if (summary->cache > RESULT_CACHE_DATA_COLD)
        fprintf(stream, "doubt=the caches were not verified cold: %s\n",
                summary_cache_name(summary->cache));
    if (nodes > 1 && !local)
        put_rate(stream, "client-bytes-per-s", &summary->storage_bytes_per_s, 1 / nodes);
    put_source(stream, result, summary);
}

void report_profile(FILE *stream, const struct result *result, const struct summary *summary,
                    const struct report_trained *trained)
{
    const struct result_epoch *all = &summary->all;
    const double amplification = (double)all->request_bytes / (double)all->record_bytes;

    fputs(report_profile_mark, stream);
    if (trained) {
        fprintf(stream, "[network]\ntitle=%s\n", escape_shown(trained->network));
        fprintf(stream, "batch=%.0f\nparameters=%.0f\ngradient-bytes=%.0f\n", trained->batch,
                trained->parameters, trained->gradient_bytes);
        put_source(stream, result, summary);
        fprintf(stream, "[gpu]\ntitle=%s\n", escape_shown(trained->gpu));
        put_rate(stream, "samples-per-s", &trained->samples_per_s, 1);
        put_source(stream, result, summary);
    }
    put_storage(stream, result, summary);
    fprintf(stream, "[data]\nsample-bytes=%.6g\nsamples=%.10g\n",
            (double)all->record_bytes / (double)all->samples, (double)result->records);
    if (all->requests)
        fprintf(stream, "read-bytes=%.6g\namplification=%.6g\n",
                (double)all->request_bytes / (double)all->requests, amplification);
    put_source(stream, result, summary);
    if (!summary->decodes)
        return;
    /* Times of an epoch are means over the ranks, samples are sums. */
    fprintf(stream, "[cpu]\ndecode-core-s=%.4g\n",
            (double)all->waits.decode_busy_ns * 1e-9 * result->ranks / (double)all->samples);
    put_source(stream, result, summary);
}
