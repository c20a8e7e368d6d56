/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON document. Every key carries its unit; unmeasured values are null, with the reason in
 * KEY_reason. docs/json.md describes it; a change of meaning raises SCHEMA_VERSION.
 */
#include "report/report.h"
#include "report/seal.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/module.h"
#include "report/mlperf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1, KEY_BYTES = 96 };

static void put_real(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_put_number(object, key, value);
    else
        report_null(object, key, "not a finite number");
}

static void put_real_if(json_t *object, const char *key, bool known, double value,
                        const char *reason)
{
    if (known)
        put_real(object, key, value);
    else
        report_null(object, key, reason);
}

static void put_text_if(json_t *object, const char *key, const char *text, const char *reason)
{
    if (text && text[0])
        json_put_text(object, key, text);
    else
        report_null(object, key, reason);
}

#define PUT(object, rows, of) report_figures(object, rows, sizeof rows / sizeof *rows, of)
#define AT(type, of, field) FIGURE_AT(type, of, field)

/* ---- parts of a job ---- */

/* Add the options, keyed by their first name with _ for - and the unit appended. */
static json_t *settings_of(const struct job *job)
{
    json_t *settings = json_object();

    for (const struct option_spec *row = job_options; row->name; row++) {
        const void *field = (const char *)job + row->offset;
        const char *unit = row->type == OPTION_SIZE       ? "_bytes"
                           : row->type == OPTION_DURATION ? "_s"
                                                          : "";
        char key[KEY_BYTES], text[1024];
        snprintf(key, sizeof key, "%s%s", row->alias ? row->alias : row->name, unit);
        for (char *at = key; *at; at++)
            *at = *at == '-' ? '_' : *at;
        switch (row->type) {
        case OPTION_FLAG:
            json_object_set_new(settings, key, json_boolean(*(const bool *)field));
            break;
        case OPTION_COUNT:
        case OPTION_SIZE:
            json_put_count(settings, key, *(const uint64_t *)field);
            break;
        case OPTION_DURATION:
            put_real(settings, key, (double)*(const uint64_t *)field / 1e9);
            break;
        case OPTION_REAL:
            put_real(settings, key, *(const double *)field);
            break;
        case OPTION_TEXT:
        case OPTION_CHOICE:
            option_text(row, job, text, sizeof text);
            if (row->type == OPTION_TEXT && !*(char *const *)field)
                json_object_set_new(settings, key, json_null());
            else
                json_put_text(settings, key, text);
            break;
        }
    }
    return settings;
}

json_t *report_machine(const struct environment *environment)
{
    static const char not_reported[] = "not reported by the kernel";
    static const struct figure rows[] = {
        {"host", AT(TEXT, environment, host), .unknown = not_reported},
        {"kernel", AT(TEXT, environment, kernel), .unknown = not_reported},
        {"cpu", AT(TEXT, environment, cpu), .unknown = not_reported},
        {"cpu_count", AT(NUMBER, environment, cpu_count)},
        {"memory_bytes", AT(COUNT, environment, memory_bytes)},
        {"memory_limit_bytes", AT(COUNT, environment, memory_limit_bytes),
         .unknown = "no limit is set"},
        {"clock_source", AT(TEXT, environment, clock_source), .unknown = not_reported},
        {"sandbox", AT(TEXT, environment, sandbox), .unknown = "not recorded"},
    };
    json_t *object = json_object();

    PUT(object, rows, environment);
    json_object_set_new(object, "modules", module_list());
    return object;
}

json_t *report_environment(const struct environment *environment)
{
    static const char no_mount[] = "not found in the mount table";
    static const struct figure rows[] = {
        {"file_system", AT(TEXT, environment, file_system), .unknown = no_mount},
        {"mount_point", AT(TEXT, environment, mount_point), .unknown = no_mount},
        {"mount_options", AT(TEXT, environment, mount_options), .unknown = no_mount},
        {"devices", AT(TEXT, environment, devices), .unknown = "no block device below the data"},
    };
    json_t *object = report_machine(environment);

    PUT(object, rows, environment);
    return object;
}

static json_t *sitting_of(const struct result_sitting *sitting)
{
    static const char not_auto[] = "--runs auto was not given";
    static const struct figure rows[] = {
        {"id", AT(TEXT, result_sitting, id), .unknown = "not started"},
        {"boot_id", AT(TEXT, result_sitting, boot_id), .unknown = "not reported by the kernel"},
        {"jobs", AT(NUMBER, result_sitting, jobs)},
        {"job", AT(NUMBER, result_sitting, job)},
    };
    static const struct figure turns[] = {
        {"turns", AT(COUNT, result_sitting, turns)},
        {"runs_auto", AT(FLAG, result_sitting, is_until)},
        {"until_reached", AT(FLAG, result_sitting, is_reached),
         FIGURE_KNOWN(result_sitting, is_until), .unknown = not_auto},
    };
    json_t *object = json_object();

    PUT(object, rows, sitting);
    if (sitting->jobs > 1)
        json_put_count(object, "order_seed", sitting->order_seed);
    else
        report_null(object, "order_seed", "a single job");
    PUT(object, turns, sitting);
    put_real_if(object, "until_half_width_percent", sitting->is_until && sitting->half_percent > 0,
                sitting->half_percent, sitting->is_until ? "too few runs" : not_auto);
    return object;
}

json_t *report_dataset(const struct result *result)
{
    static const struct figure counts[] = {
        {"path", AT(TEXT, result, data)},
        {"format", AT(TEXT, result, format)},
        {"shards", AT(COUNT, result, shards)},
        {"samples", AT(COUNT, result, records)},
        {"file_bytes", AT(COUNT, result, data_bytes)},
        {"record_bytes", AT(COUNT, result, record_bytes_total)},
    };
    static const struct figure kinds[] = {
        {"synthetic", AT(FLAG, result, data_was_made)},
        {"unread_samples", AT(COUNT, result, unread_samples)},
    };
    json_t *object = json_object();
    char identity[17];

    PUT(object, counts, result);
    put_real_if(object, "mean_record_bytes", result->records > 0,
                result->records ? (double)result->record_bytes_total / (double)result->records : 0,
                "no records");
    PUT(object, kinds, result);
    json_object_set_new(object, "first_unread",
                        json_texts(result->unread_samples > 0, 0, result->first_unread));
    json_put_count(object, "other_files", result->other_files);
    json_object_set_new(object, "remarks",
                        json_texts(result->remark_count, REMARK_TEXT_BYTES, result->remarks[0]));
    snprintf(identity, sizeof identity, "%016" PRIx64, result->data_identity);
    json_put_text(object, "identity", identity);
    return object;
}

static json_t *engine_of(const struct result *result)
{
    static const struct figure chosen[] = {
        {"reader_engine", AT(TEXT, result, reader_engine), .unknown = "no reader was opened"},
        {"decoder_engine", AT(TEXT, result, decoder_engine),
         .unknown = "the decoder is the same on every machine"},
        {"shuffle", AT(TEXT, result, shuffle), .unknown = "no data set was found"},
        {"iodepth", AT(NUMBER, result, iodepth), .unknown = "no saturation depth found"},
    };
    static const struct figure used[] = {
        {"decode_threads", AT(NUMBER, result, threads)},
        {"memory_bytes", AT(COUNT, result, memory_bytes)},
        {"window_records", AT(NUMBER, result, reads.window)},
        {"read_bytes_max", AT(COUNT, result, reads.read_bytes)},
        {"shuffle_slots", AT(COUNT, result, slots)},
        {"ranks", AT(NUMBER, result, ranks)},
        {"nodes", AT(NUMBER, result, nodes)},
        {"resident_before_bytes", AT(COUNT, result, memory_before_bytes),
         .unknown = "not reported by the kernel"},
        {"resident_during_bytes", AT(COUNT, result, memory_during_bytes),
         .unknown = "no complete epoch"},
        {"device_bytes", AT(COUNT, result, trainer_memory.device_bytes)},
        {"device_batch_bytes", AT(COUNT, result, trainer_memory.batch_bytes)},
        {"pinned_bytes", AT(COUNT, result, trainer_memory.pinned_bytes)},
    };
    json_t *object = json_object();

    PUT(object, chosen, result);
    json_put_count(object, "loaders", read_io_threads(&result->job->read));
    PUT(object, used, result);
    return object;
}

static void put_call(json_t *object, const char *key, const struct server_call *call,
                     const char *option)
{
    char reason[64];

    if (!call->made) {
        snprintf(reason, sizeof reason, "%s did not run", option);
        report_null(object, key, reason);
        return;
    }
    json_t *made = json_object();
    put_real_if(made, "exit_status", call->status >= 0, call->status, "did not exit");
    put_real(made, "took_s", (double)call->took_ns / 1e9);
    json_put_text(made, "output", call->output);
    json_object_set_new(object, key, made);
}

static void put_resident(json_t *object, const char *key, bool looked,
                         const struct server_look *look)
{
    put_real_if(object, key, looked && look->resident_known, (double)look->resident_bytes,
                !looked ? "not reported by --server-check-cmd" : look->reason);
}

static json_t *server_of(const struct server_result *server, double delivered_percent)
{
    static const char *const names[] = {
        [SERVER_COLD] = "cold", [SERVER_UNVERIFIED] = "unverified", [SERVER_WARM] = "warm"};
    static const char no_disks[] = "bytes read by disks not reported by --server-check-cmd";
    json_t *object = json_object();

    json_put_text(object, "cache_before", names[server->state]);
    put_text_if(object, "remark", server->reason, "no remark");
    put_resident(object, "resident_bytes", server->looked, &server->start);
    put_real_if(object, "total_bytes", server->looked, (double)server->start.total_bytes,
                "not reported by --server-check-cmd");
    put_resident(object, "resident_before_drop_bytes", server->looked_before, &server->before);
    put_real_if(object, "disk_read_bytes", server->disk_known, (double)server->disk_read_bytes,
                no_disks);
    put_real_if(object, "disk_percent", delivered_percent >= 0, delivered_percent, no_disks);
    put_call(object, "check", &server->check, "--server-check-cmd");
    return object;
}

static json_t *cold_of(const struct result_cold *cold, double server_percent)
{
    json_t *object = json_object();
    bool verified = cold->pages != RESIDENCY_UNVERIFIED;

    json_put_text(object, "cache_before", summary_cache_name(cold->state));
    json_object_set_new(object, "dropped", json_boolean(cold->dropped));
    json_object_set_new(object, "metadata_dropped", json_boolean(cold->metadata_dropped));
    put_real_if(object, "cold_residue_percent", verified, cold->residue_percent, cold->reason);
    put_real_if(object, "resident_bytes", verified, (double)cold->resident_bytes, cold->reason);
    json_put_count(object, "total_bytes", cold->read_bytes);
    put_real(object, "drop_s", (double)cold->drop_ns / 1e9);
    put_call(object, "server_drop", &cold->server.drop, "--server-drop-cmd");
    if (cold->server.state != SERVER_NONE)
        json_object_set_new(object, "server", server_of(&cold->server, server_percent));
    else
        report_null(object, "server", "the files are on local disks or in memory");
    put_text_if(object, "method", cold->method, "nothing dropped or measured");
    put_text_if(object, "remark", cold->reason, "no remark");
    return object;
}

static json_t *decode_of(const struct decode_figures *decode)
{
    static const struct figure rows[] = {
        {"images", AT(COUNT, decode_figures, images)},
        {"image_bytes", AT(COUNT, decode_figures, bytes)},
        {"grayscale_images", AT(COUNT, decode_figures, grayscale)},
        {"cmyk_images", AT(COUNT, decode_figures, cmyk)},
        {"progressive_images", AT(COUNT, decode_figures, progressive)},
        {"png_images", AT(COUNT, decode_figures, of_kind[IMAGE_PNG])},
        {"webp_images", AT(COUNT, decode_figures, of_kind[IMAGE_WEBP])},
        {"gif_images", AT(COUNT, decode_figures, of_kind[IMAGE_GIF])},
        {"bmp_images", AT(COUNT, decode_figures, of_kind[IMAGE_BMP])},
        {"raw_images", AT(COUNT, decode_figures, raw)},
        {"failed_images", AT(COUNT, decode_figures, failed)},
        {"truncated_images", AT(COUNT, decode_figures, truncated)},
        {"corrupt_images", AT(COUNT, decode_figures, corrupt)},
        {"entered_images", AT(COUNT, decode_figures, entered)},
        {"stale_hints", AT(COUNT, decode_figures, stale)},
        {"cpu_images", AT(COUNT, decode_figures, on_cpu)},
    };
    json_t *object = json_object();

    PUT(object, rows, decode);
    return object;
}

static const char no_work[] = "the trainer does not compute";

static json_t *run_of(const struct result_run *run, bool digest)
{
    static const char none[] = "no complete epoch";
    static const struct figure numbers[] = {{"run", AT(COUNT, result_run, number)},
                                            {"turn", AT(COUNT, result_run, turn)},
                                            {"valid", AT(FLAG, result_run, valid)}};
    static const struct figure counts[] = {
        {"read_errors", AT(COUNT, result_run, read_errors)},
        {"short_reads", AT(COUNT, result_run, short_reads)},
        {"memory_peak_bytes", AT(COUNT, result_run, memory_peak_bytes)},
    };
    const double server = result_run_server_percent(run), device = result_run_device_percent(run);
    const double au = result_run_au_percent(run);
    json_t *object = json_object(), *findings = json_object();
    json_t *epochs = json_array(), *nodes = json_array(), *ranks = json_array();

    PUT(object, numbers, run);
    put_text_if(object, "invalid_reason", run->valid ? NULL : run->invalid_reason, "valid");
    put_real_if(object, "samples_per_s", run->epoch_count > 0, result_run_samples_per_s(run), none);
    put_real_if(object, "record_bytes_per_s", run->epoch_count > 0, result_run_bytes_per_s(run),
                none);
    put_real_if(object, "au_percent", au > 0, au, no_work);
    put_real_if(object, "first_epoch_device_percent", device >= 0, device,
                "bytes read from storage unknown");
    json_object_set_new(object, "cold", cold_of(&run->cold, server));
    json_object_set_new(object, "read_latency",
                        latency_json(&run->read_latency_ns, run->epoch_latency_ns, false));
    PUT(object, counts, run);
    json_object_set_new(object, "decoded", decode_of(&run->decode));
    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &run->findings.kinds[i];
        json_t *one = json_object();
        json_put_count(one, "count", kind->count);
        json_object_set_new(one, "first", json_texts(kind->named, FINDING_BYTES, kind->texts[0]));
        json_object_set_new(findings, finding_keys[i], one);
    }
    json_object_set_new(object, "findings", findings);
    json_put_count(object, "epochs_run", run->epochs_run);
    for (uint32_t i = 0; i < run->epoch_count; i++) {
        json_t *epoch = json_object();
        report_figures(epoch, figures_of_epoch, figures_of_epoch_count, &run->epochs[i]);
        if (!digest)
            report_null(epoch, "digest", "--digest was not given");
        json_array_append_new(epochs, epoch);
    }
    json_object_set_new(object, "epochs", epochs);
    for (uint32_t i = 0; i < run->node_count; i++) {
        json_t *node = json_object();
        json_put_text(node, "host", run->nodes[i].host);
        json_put_count(node, "ranks", run->nodes[i].ranks);
        json_object_set_new(node, "cold", cold_of(&run->nodes[i].cold, server));
        json_array_append_new(nodes, node);
    }
    json_object_set_new(object, "nodes", nodes);
    for (uint32_t i = 0; i < run->rank_count; i++)
        json_array_append_new(ranks, report_ranks_json_one(&run->ranks[i]));
    json_object_set_new(object, "ranks", ranks);
    return object;
}

/* ---- over all runs ---- */

static json_t *shares_of(const struct summary_shares *shares)
{
    static const struct figure rows[] = {
        {"loader_for_storage_percent", AT(REAL, summary_shares, loader_storage)},
        {"loader_for_memory_percent", AT(REAL, summary_shares, loader_memory)},
        {"decode_for_records_percent", AT(REAL, summary_shares, decode_input)},
        {"decode_for_batch_percent", AT(REAL, summary_shares, decode_slot)},
        {"decode_busy_percent", AT(REAL, summary_shares, decode_busy)},
        {"decode_entry_points_percent", AT(REAL, summary_shares, decode_hints)},
        {"trainer_for_batch_percent", AT(REAL, summary_shares, trainer_input)},
        {"trainer_upload_percent", AT(REAL, summary_shares, trainer_upload)},
        {"trainer_compute_percent", AT(REAL, summary_shares, trainer_compute)},
        {"trainer_exchange_percent", AT(REAL, summary_shares, trainer_exchange)},
    };
    json_t *object = json_object();

    PUT(object, rows, shares);
    return object;
}

static json_t *summary_of(const struct result *result, const struct summary *summary)
{
    static const char no_later[] = "only one epoch", no_calibration[] = "not calibrated";
    static const char no_run[] = "no complete run", too_few_to_drift[] = "needs 5 runs";
    static const struct figure rates[] = {
        {"samples_per_s", AT(STATS, summary, samples_per_s)},
        {"record_bytes_per_s", AT(STATS, summary, bytes_per_s)},
        {"first_epoch_samples_per_s", AT(STATS, summary, first.samples_per_s)},
        {"first_epoch_record_bytes_per_s", AT(STATS, summary, first.bytes_per_s)},
        {"later_epochs_samples_per_s", AT(STATS, summary, later.samples_per_s),
         .unknown = no_later},
        {"later_epochs_record_bytes_per_s", AT(STATS, summary, later.bytes_per_s),
         .unknown = no_later},
        {"au_percent", AT(STATS, summary, au_percent), FIGURE_KNOWN(summary, trains),
         .unknown = no_work},
        {"mlperf_au_percent", AT(STATS, summary, mlperf_au_percent), FIGURE_KNOWN(summary, trains),
         .unknown = "the trainer does not compute, or no epoch has a second step"},
        {"steady_samples_per_s", AT(STATS, summary, steady_samples_per_s),
         .unknown = "read-ahead grew or shrank, or fewer than 20 batches"},
        {"read_head_ratio", AT(STATS, summary, head_ratio),
         .unknown = "too few reads to split, or reads overlapped the next epoch"},
        {"bursts", AT(FLAG, summary, bursts)},
    };
    static const struct figure counts[] = {
        {"drifts", AT(FLAG, summary, drifts)},
        {"samples", AT(COUNT, summary, all.samples)},
        {"skipped_samples", AT(COUNT, summary, all.skipped)},
        {"record_bytes", AT(COUNT, summary, all.record_bytes)},
        {"request_bytes", AT(COUNT, summary, all.request_bytes)},
        {"requests", AT(COUNT, summary, all.requests)},
        {"read_errors", AT(COUNT, summary, read_errors)},
        {"short_reads", AT(COUNT, summary, short_reads)},
        {"first_epoch_record_bytes", AT(COUNT, summary, first_record_bytes)},
        {"first_epoch_device_read_bytes", AT(COUNT, summary, device_bytes),
         FIGURE_KNOWN(summary, device_known), .unknown = "not known for every run; see runs"},
    };
    static const struct figure ceilings[] = {
        {"floor_samples_per_s", AT(REAL, result, floor_samples_per_s), .unknown = no_calibration},
        {"au_calibration_percent", AT(REAL, result, au_calibration_percent),
         .unknown = no_calibration},
    };
    const bool can_drift = summary->runs >= TREND_LEAST;
    json_t *object = json_object(), *feeds = json_array();

    json_put_count(object, "complete_runs", summary->runs);
    put_real(object, "interval_coverage", summary->samples_per_s.coverage);
    PUT(object, rates, summary);
    put_real_if(object, "drift_percent", can_drift, 100 * summary->drift.drift, too_few_to_drift);
    put_real_if(object, "drift_p", can_drift, summary->drift.p, too_few_to_drift);
    PUT(object, counts, summary);
    put_text_if(object, "cache_before", summary->runs ? summary_cache_name(summary->cache) : NULL,
                no_run);
    put_real_if(object, "cold_residue_percent", summary->residue_known, summary->residue_percent,
                "not verified; see runs");
    json_object_set_new(object, "read_latency",
                        latency_json(&summary->read_latency_ns, summary->epoch_latency_ns, true));
    put_text_if(object, "limit", summary->runs ? summary_limit_name(summary->limit) : NULL, no_run);
    put_text_if(object, "limit_sentence", summary->runs ? summary->limit_sentence : NULL, no_run);
    json_object_set_new(object, "shares", shares_of(&summary->shares));
    if (summary->ranks.ranks > 1)
        json_object_set_new(object, "ranks_compared", report_ranks_json(&summary->ranks));
    else
        report_null(object, "ranks_compared", "only one rank");
    PUT(object, ceilings, result);
    for (const struct accelerator *gpu = accelerator_table(); summary->runs && gpu->name; gpu++) {
        json_t *feed = json_object();
        json_put_text(feed, "gpu", gpu->title);
        put_real(feed, "count", accelerator_count(gpu, summary->samples_per_s.median));
        put_real(feed, "gpu_samples_per_s", gpu->mixed_samples_per_s);
        json_put_text(feed, "source", gpu->mixed_source);
        json_array_append_new(feeds, feed);
    }
    json_object_set_new(object, "resnet50_feeds", feeds);
    struct mlperf mlperf;
    if (summary->runs && result->job->workload && mlperf_check(result, &mlperf) == 0)
        json_object_set_new(object, "mlperf", mlperf_json(&mlperf, summary->samples_per_s.median));
    else
        report_null(object, "mlperf", "no --workload, or no complete run");
    return object;
}

json_t *report_json(const struct result *result, const struct summary *summary)
{
    static const struct figure hints[] = {
        {"records", AT(COUNT, result_hints, records)},
        {"images", AT(COUNT, result_hints, images)},
        {"decode_threads_s", AT(TIME, result_hints, decode_ns)},
        {"write_s", AT(TIME, result_hints, keep_ns)},
        {"file_images", AT(COUNT, result_hints, kept_images)},
        {"file", AT(TEXT, result_hints, path), FIGURE_REASON(result_hints, reason)},
    };
    json_t *object = json_object(), *runs = json_array();
    char headline[REPORT_HEADLINE_BYTES];

    put_text_if(object, "label", result->job->output.label, "--label was not given");
    json_object_set_new(object, "valid", json_boolean(result->valid));
    put_text_if(object, "invalid_reason", result->valid ? NULL : result->invalid_reason, "valid");
    json_object_set_new(object, "degraded",
                        json_boolean(summary->all.skipped > 0 || *result->degraded_reason));
    put_text_if(object, "degraded_reason",
                *result->degraded_reason ? result->degraded_reason : NULL, "not degraded");
    json_put_text(object, "headline", report_headline(result, summary, headline));
    json_object_set_new(object, "entries", report_entries(result, summary));
    put_text_if(object, "started", result->environment.started, "not recorded");
    put_text_if(object, "command", result->environment.command, "not recorded");
    json_object_set_new(object, "settings", settings_of(result->job));
    json_object_set_new(object, "place", report_environment(&result->environment));
    json_object_set_new(object, "sitting", sitting_of(&result->sitting));
    json_object_set_new(object, "dataset", report_dataset(result));
    json_object_set_new(object, "engine", engine_of(result));
    json_object_set_new(object, "summary", summary_of(result, summary));
    for (uint32_t i = 0; i < result->run_count; i++)
        json_array_append_new(runs, run_of(&result->runs[i], result->job->decode.digest));
    json_object_set_new(object, "runs", runs);
    if (result->hints.were_made) {
        json_t *points = json_object();
        PUT(points, hints, &result->hints);
        json_object_set_new(object, "entry_points", points);
    } else {
        report_null(object, "entry_points", "none were made: --entry-points was not given");
    }
    if (result->timeline)
        json_object_set_new(object, "series", report_timeline(result->timeline));
    else
        report_null(object, "series", result->timeline_reason);
    json_object_set_new(object, "notices",
                        json_texts(result->notice_count, RESULT_NOTICE_BYTES, result->notices[0]));
    json_object_set_new(
        object, "advice",
        json_texts(summary->advice_count, SUMMARY_ADVICE_BYTES, summary->advice[0]));
    if (!object)
        fail(ENOMEM, "out of memory");
    return object;
}

json_t *report_json_document(json_t *jobs, json_t *members)
{
    json_t *document = json_object();

    json_put_text(document, "schema", "iobench-result");
    json_put_count(document, "schema_version", SCHEMA_VERSION);
    json_put_text(document, "iobench_version", PACKAGE_VERSION);
    json_object_set(document, "jobs", jobs);
    if (members && json_object_update(document, members)) {
        json_decref(document);
        document = NULL;
    }
    if (document && seal_add(document) == 0)
        return document;
    json_decref(document);
    fail(ENOMEM, "out of memory");
    return NULL;
}
