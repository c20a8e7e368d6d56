/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON document. Every key carries its unit; unmeasured values are null, with the reason in
 * KEY_reason. docs/json.md describes it; a change of meaning raises SCHEMA_VERSION.
 */
#include "report/latency.h"
#include "report/report.h"
#include "report/seal.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/module.h"
#include "report/mlperf.h"
#include "report/ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1, KEY_BYTES = 96 };

/* Each null has a reason beside it, except a null reason. */
static void put_null(json_t *object, const char *key, const char *reason)
{
    const size_t length = strlen(key), end = strlen("_reason");
    char name[KEY_BYTES + 8];

    json_object_set_new(object, key, json_null());
    if (length > end && strcmp(key + length - end, "_reason") == 0)
        return;
    snprintf(name, sizeof name, "%s_reason", key);
    json_put_text(object, name, reason[0] ? reason : "not measured");
}

static void put_real(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_put_number(object, key, value);
    else
        put_null(object, key, "not a finite number");
}

static void put_real_if(json_t *object, const char *key, bool known, double value,
                        const char *reason)
{
    if (known)
        put_real(object, key, value);
    else
        put_null(object, key, reason);
}

static void put_text_if(json_t *object, const char *key, const char *text, const char *reason)
{
    if (text && text[0])
        json_put_text(object, key, text);
    else
        put_null(object, key, reason);
}

static void put_seconds(json_t *object, const char *key, uint64_t duration_ns)
{
    put_real(object, key, (double)duration_ns / 1e9);
}

/* Add KEY, KEY_low95, KEY_high95, KEY_min and KEY_max. */
static void put_stats(json_t *object, const char *key, const struct stats_summary *stats,
                      const char *reason)
{
    const struct {
        const char *suffix;
        double value;
    } parts[] = {{"", stats->median},
                 {"_low95", stats->low},
                 {"_high95", stats->high},
                 {"_min", stats->minimum},
                 {"_max", stats->maximum}};
    char name[KEY_BYTES];

    if (reason || stats->count == 0) {
        put_null(object, key, reason ? reason : "no complete run");
        return;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(name, sizeof name, "%s%s", key, parts[i].suffix);
        put_real(object, name, parts[i].value);
    }
}

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
            put_seconds(settings, key, *(const uint64_t *)field);
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
    json_t *object = json_object();

    put_text_if(object, "host", environment->host, "not reported by the kernel");
    put_text_if(object, "kernel", environment->kernel, "not reported by the kernel");
    put_text_if(object, "cpu", environment->cpu, "not reported by the kernel");
    json_put_count(object, "cpu_count", environment->cpu_count);
    json_put_count(object, "memory_bytes", environment->memory_bytes);
    if (environment->memory_limit_bytes)
        json_put_count(object, "memory_limit_bytes", environment->memory_limit_bytes);
    else
        put_null(object, "memory_limit_bytes", "no limit is set");
    put_text_if(object, "clock_source", environment->clock_source, "not reported by the kernel");
    put_text_if(object, "sandbox", environment->sandbox, "not recorded");
    json_object_set_new(object, "modules", module_list());
    return object;
}

json_t *report_environment(const struct environment *environment)
{
    json_t *object = report_machine(environment);

    put_text_if(object, "file_system", environment->file_system, "not found in the mount table");
    put_text_if(object, "mount_point", environment->mount_point, "not found in the mount table");
    put_text_if(object, "mount_options", environment->mount_options,
                "not found in the mount table");
    put_text_if(object, "devices", environment->devices, "no block device below the data");
    return object;
}

static const char not_auto[] = "--runs auto was not given";

static json_t *sitting_of(const struct result_sitting *sitting)
{
    json_t *object = json_object();

    put_text_if(object, "id", sitting->id, "not started");
    put_text_if(object, "boot_id", sitting->boot_id, "not reported by the kernel");
    json_put_count(object, "jobs", sitting->jobs);
    json_put_count(object, "job", sitting->job);
    if (sitting->jobs > 1)
        json_put_count(object, "order_seed", sitting->order_seed);
    else
        put_null(object, "order_seed", "a single job");
    json_put_count(object, "turns", sitting->turns);
    json_object_set_new(object, "runs_auto", json_boolean(sitting->is_until));
    if (sitting->is_until)
        json_object_set_new(object, "until_reached", json_boolean(sitting->is_reached));
    else
        put_null(object, "until_reached", not_auto);
    put_real_if(object, "until_half_width_percent", sitting->is_until && sitting->half_percent > 0,
                sitting->half_percent, sitting->is_until ? "too few runs" : not_auto);
    return object;
}

json_t *report_dataset(const struct result *result)
{
    json_t *object = json_object();
    char identity[17];

    json_put_text(object, "path", result->data);
    json_put_text(object, "format", result->format);
    json_put_count(object, "shards", result->shards);
    json_put_count(object, "samples", result->records);
    json_put_count(object, "file_bytes", result->data_bytes);
    json_put_count(object, "record_bytes", result->record_bytes_total);
    put_real_if(object, "mean_record_bytes", result->records > 0,
                result->records ? (double)result->record_bytes_total / (double)result->records : 0,
                "no records");
    json_object_set_new(object, "synthetic", json_boolean(result->data_was_made));
    json_put_count(object, "unread_samples", result->unread_samples);
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
    json_t *object = json_object();

    put_text_if(object, "reader_engine", result->reader_engine, "no reader was opened");
    put_text_if(object, "decoder_engine", result->decoder_engine,
                "the decoder is the same on every machine");
    put_text_if(object, "shuffle", result->shuffle, "no data set was found");
    if (result->iodepth)
        json_put_count(object, "iodepth", result->iodepth);
    else
        put_null(object, "iodepth", "no saturation depth found");
    json_put_count(object, "loaders", read_io_threads(&result->job->read));
    json_put_count(object, "decode_threads", result->threads);
    json_put_count(object, "memory_bytes", result->memory_bytes);
    json_put_count(object, "window_records", result->reads.window);
    json_put_count(object, "read_bytes_max", result->reads.read_bytes);
    json_put_count(object, "shuffle_slots", result->slots);
    json_put_count(object, "ranks", result->ranks);
    json_put_count(object, "nodes", result->nodes);
    put_real_if(object, "resident_before_bytes", result->memory_before_bytes > 0,
                (double)result->memory_before_bytes, "not reported by the kernel");
    put_real_if(object, "resident_during_bytes", result->memory_during_bytes > 0,
                (double)result->memory_during_bytes, "no complete epoch");
    json_put_count(object, "device_bytes", result->trainer_memory.device_bytes);
    json_put_count(object, "device_batch_bytes", result->trainer_memory.batch_bytes);
    json_put_count(object, "pinned_bytes", result->trainer_memory.pinned_bytes);
    return object;
}

static json_t *call_of(const struct server_call *call)
{
    json_t *object = json_object();

    put_real_if(object, "exit_status", call->status >= 0, call->status, "did not exit");
    put_seconds(object, "took_s", call->took_ns);
    json_put_text(object, "output", call->output);
    return object;
}

static void put_call(json_t *object, const char *key, const struct server_call *call,
                     const char *option)
{
    char reason[64];

    snprintf(reason, sizeof reason, "%s did not run", option);
    if (call->made)
        json_object_set_new(object, key, call_of(call));
    else
        put_null(object, key, reason);
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
    put_resident(
        object, "total_bytes", server->looked,
        &(struct server_look){.resident_known = true, .resident_bytes = server->start.total_bytes});
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
    put_seconds(object, "drop_s", cold->drop_ns);
    put_call(object, "server_drop", &cold->server.drop, "--server-drop-cmd");
    if (cold->server.state != SERVER_NONE)
        json_object_set_new(object, "server", server_of(&cold->server, server_percent));
    else
        put_null(object, "server", "the files are on local disks or in memory");
    put_text_if(object, "method", cold->method, "nothing dropped or measured");
    put_text_if(object, "remark", cold->reason, "no remark");
    return object;
}

static void put_device(json_t *object, const struct result_bytes *device)
{
    if (device->known) {
        json_put_count(object, "device_read_bytes", device->bytes);
        json_put_text(object, "device_read_method", device->method);
    } else {
        put_null(object, "device_read_bytes", device->reason);
        put_null(object, "device_read_method", device->reason);
    }
}

static json_t *waits_of(const struct result_waits *waits)
{
    json_t *object = json_object();

    put_seconds(object, "loader_for_storage_s", waits->loader_storage_ns);
    put_seconds(object, "loader_for_memory_s", waits->loader_memory_ns);
    put_seconds(object, "decode_for_records_s", waits->decode_input_ns);
    put_seconds(object, "decode_for_batch_s", waits->decode_slot_ns);
    put_seconds(object, "decode_busy_s", waits->decode_busy_ns);
    put_seconds(object, "decode_entry_points_s", waits->decode_hints_ns);
    put_seconds(object, "trainer_for_batch_s", waits->trainer_input_ns);
    return object;
}

static const char no_work[] = "the trainer does not compute";

static const char not_steady[] = "read-ahead grew or shrank, or fewer than 20 batches";
static const char few_reads[] = "too few reads to split, or reads overlapped the next epoch";

static json_t *epoch_of(const struct result_epoch *epoch, bool digest)
{
    json_t *object = json_object();
    bool trains = epoch->compute_ns > 0;

    json_put_count(object, "epoch", epoch->epoch);
    json_put_count(object, "epochs_merged", epoch->merged ? epoch->merged : 1);
    json_put_count(object, "samples", epoch->samples);
    json_put_count(object, "skipped_samples", epoch->skipped);
    json_put_count(object, "batches", epoch->batches);
    put_seconds(object, "wall_s", epoch->wall_ns);
    put_real(object, "samples_per_s", result_epoch_samples_per_s(epoch));
    put_real(object, "record_bytes_per_s", result_epoch_bytes_per_s(epoch));
    json_put_count(object, "record_bytes", epoch->record_bytes);
    json_put_count(object, "request_bytes", epoch->request_bytes);
    json_put_count(object, "requests", epoch->requests);
    put_device(object, &epoch->device);
    put_seconds(object, "shuffle_s", epoch->shuffle_ns);
    put_seconds(object, "storage_idle_s", epoch->storage_idle_ns);
    put_seconds(object, "first_batch_s", epoch->first_batch_ns);
    put_real_if(object, "steady_samples_per_s", epoch->steady_ns > 0,
                result_epoch_steady_samples_per_s(epoch), not_steady);
    const bool has_head = isfinite(result_epoch_head_ratio(epoch));
    put_real_if(object, "read_head_s", has_head, (double)epoch->read_head_ns / 1e9, few_reads);
    put_real_if(object, "read_rest_s", has_head, (double)epoch->read_rest_ns / 1e9, few_reads);
    put_seconds(object, "start_barrier_s", epoch->start_barrier_ns);
    put_seconds(object, "stop_barrier_s", epoch->stop_barrier_ns);
    put_seconds(object, "wait_s", epoch->wait_ns);
    put_seconds(object, "compute_s", epoch->compute_ns);
    put_seconds(object, "upload_s", epoch->upload_ns);
    put_seconds(object, "upload_copy_s", epoch->copy_ns);
    put_seconds(object, "exchange_s", epoch->exchange_ns);
    put_seconds(object, "update_s", epoch->update_ns);
    put_real_if(object, "au_percent", trains, result_epoch_au_percent(epoch), no_work);
    put_seconds(object, "nominal_s", epoch->nominal_ns);
    put_real_if(object, "mlperf_au_percent", trains, result_epoch_mlperf_au_percent(epoch),
                no_work);
    put_real(object, "cpu_user_s", epoch->cpu_user_s);
    put_real(object, "cpu_system_s", epoch->cpu_system_s);
    json_put_text(object, "limit", summary_limit_name(epoch->limit));
    json_object_set_new(object, "waits", waits_of(&epoch->waits));
    if (digest) {
        char text[40];
        snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)epoch->digest_sum,
                 (unsigned long long)epoch->digest_xor);
        json_put_text(object, "digest", text);
    } else {
        put_null(object, "digest", "--digest was not given");
    }
    return object;
}

static json_t *decode_of(const struct decode_figures *decode)
{
    json_t *object = json_object();

    json_put_count(object, "images", decode->images);
    json_put_count(object, "image_bytes", decode->bytes);
    json_put_count(object, "grayscale_images", decode->grayscale);
    json_put_count(object, "cmyk_images", decode->cmyk);
    json_put_count(object, "progressive_images", decode->progressive);
    json_put_count(object, "png_images", decode->of_kind[IMAGE_PNG]);
    json_put_count(object, "webp_images", decode->of_kind[IMAGE_WEBP]);
    json_put_count(object, "gif_images", decode->of_kind[IMAGE_GIF]);
    json_put_count(object, "bmp_images", decode->of_kind[IMAGE_BMP]);
    json_put_count(object, "raw_images", decode->raw);
    json_put_count(object, "failed_images", decode->failed);
    json_put_count(object, "truncated_images", decode->truncated);
    json_put_count(object, "corrupt_images", decode->corrupt);
    json_put_count(object, "entered_images", decode->entered);
    json_put_count(object, "stale_hints", decode->stale);
    json_put_count(object, "cpu_images", decode->on_cpu);
    return object;
}

static json_t *entry_points_of(const struct result_hints *hints)
{
    json_t *object = json_object();

    json_put_count(object, "records", hints->records);
    json_put_count(object, "images", hints->images);
    put_seconds(object, "decode_threads_s", hints->decode_ns);
    put_seconds(object, "write_s", hints->keep_ns);
    json_put_count(object, "file_images", hints->kept_images);
    put_text_if(object, "file", hints->path[0] ? hints->path : NULL, hints->reason);
    return object;
}

static json_t *findings_of(const struct findings *findings)
{
    json_t *object = json_object();

    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &findings->kinds[i];
        json_t *one = json_object();
        json_put_count(one, "count", kind->count);
        json_object_set_new(one, "first", json_texts(kind->named, FINDING_BYTES, kind->texts[0]));
        json_object_set_new(object, finding_keys[i], one);
    }
    return object;
}

static json_t *nodes_of(const struct result_run *run)
{
    json_t *nodes = json_array();

    for (uint32_t i = 0; i < run->node_count; i++) {
        json_t *object = json_object();
        json_put_text(object, "host", run->nodes[i].host);
        json_put_count(object, "ranks", run->nodes[i].ranks);
        json_object_set_new(object, "cold",
                            cold_of(&run->nodes[i].cold, result_run_server_percent(run)));
        json_array_append_new(nodes, object);
    }
    return nodes;
}

static json_t *ranks_of(const struct result_run *run)
{
    json_t *ranks = json_array();

    for (uint32_t i = 0; i < run->rank_count; i++)
        json_array_append_new(ranks, report_ranks_json_one(&run->ranks[i]));
    return ranks;
}

static json_t *run_of(const struct result_run *run, bool digest)
{
    json_t *object = json_object(), *epochs = json_array();
    bool trains = result_run_au_percent(run) > 0;

    json_put_count(object, "run", run->number);
    json_put_count(object, "turn", run->turn);
    json_object_set_new(object, "valid", json_boolean(run->valid));
    put_text_if(object, "invalid_reason", run->valid ? NULL : run->invalid_reason, "valid");
    put_real_if(object, "samples_per_s", run->epoch_count > 0, result_run_samples_per_s(run),
                "no complete epoch");
    put_real_if(object, "record_bytes_per_s", run->epoch_count > 0, result_run_bytes_per_s(run),
                "no complete epoch");
    put_real_if(object, "au_percent", trains, result_run_au_percent(run), no_work);
    double device = result_run_device_percent(run);
    put_real_if(object, "first_epoch_device_percent", device >= 0, device,
                "bytes read from storage unknown");
    json_object_set_new(object, "cold", cold_of(&run->cold, result_run_server_percent(run)));
    json_object_set_new(object, "read_latency",
                        latency_json(&run->read_latency_ns, run->epoch_latency_ns, false));
    json_put_count(object, "read_errors", run->read_errors);
    json_put_count(object, "short_reads", run->short_reads);
    json_put_count(object, "memory_peak_bytes", run->memory_peak_bytes);
    json_object_set_new(object, "decoded", decode_of(&run->decode));
    json_object_set_new(object, "findings", findings_of(&run->findings));
    json_put_count(object, "epochs_run", run->epochs_run);
    for (uint32_t i = 0; i < run->epoch_count; i++)
        json_array_append_new(epochs, epoch_of(&run->epochs[i], digest));
    json_object_set_new(object, "epochs", epochs);
    json_object_set_new(object, "nodes", nodes_of(run));
    json_object_set_new(object, "ranks", ranks_of(run));
    return object;
}

/* ---- over all runs ---- */

static json_t *feeds_of(double samples_per_s)
{
    json_t *feeds = json_array();

    for (const struct accelerator *gpu = accelerator_table(); gpu->name; gpu++) {
        json_t *object = json_object();
        json_put_text(object, "gpu", gpu->title);
        put_real(object, "count", accelerator_count(gpu, samples_per_s));
        put_real(object, "gpu_samples_per_s", gpu->mixed_samples_per_s);
        json_put_text(object, "source", gpu->mixed_source);
        json_array_append_new(feeds, object);
    }
    return feeds;
}

static json_t *shares_of(const struct summary_shares *shares)
{
    json_t *object = json_object();

    put_real(object, "loader_for_storage_percent", shares->loader_storage);
    put_real(object, "loader_for_memory_percent", shares->loader_memory);
    put_real(object, "decode_for_records_percent", shares->decode_input);
    put_real(object, "decode_for_batch_percent", shares->decode_slot);
    put_real(object, "decode_busy_percent", shares->decode_busy);
    put_real(object, "decode_entry_points_percent", shares->decode_hints);
    put_real(object, "trainer_for_batch_percent", shares->trainer_input);
    put_real(object, "trainer_upload_percent", shares->trainer_upload);
    put_real(object, "trainer_compute_percent", shares->trainer_compute);
    put_real(object, "trainer_exchange_percent", shares->trainer_exchange);
    return object;
}

static const char too_few_to_drift[] = "needs 5 runs";

static void put_rates(json_t *object, const struct summary *summary)
{
    const char *no_later = summary->later.samples_per_s.count ? NULL : "only one epoch";
    const char *no_au = summary->trains ? NULL : no_work;

    put_stats(object, "samples_per_s", &summary->samples_per_s, NULL);
    put_stats(object, "record_bytes_per_s", &summary->bytes_per_s, NULL);
    put_stats(object, "first_epoch_samples_per_s", &summary->first.samples_per_s, NULL);
    put_stats(object, "first_epoch_record_bytes_per_s", &summary->first.bytes_per_s, NULL);
    put_stats(object, "later_epochs_samples_per_s", &summary->later.samples_per_s, no_later);
    put_stats(object, "later_epochs_record_bytes_per_s", &summary->later.bytes_per_s, no_later);
    put_stats(object, "au_percent", &summary->au_percent, no_au);
    put_stats(object, "mlperf_au_percent", &summary->mlperf_au_percent,
              no_au                                   ? no_au
              : summary->mlperf_au_percent.count == 0 ? "no epoch has a second step"
                                                      : NULL);
    put_stats(object, "steady_samples_per_s", &summary->steady_samples_per_s,
              summary->steady_samples_per_s.count ? NULL : not_steady);
    put_stats(object, "read_head_ratio", &summary->head_ratio,
              summary->head_ratio.count ? NULL : few_reads);
    json_object_set_new(object, "bursts", json_boolean(summary->bursts));
    const bool can_drift = summary->runs >= TREND_LEAST;
    put_real_if(object, "drift_percent", can_drift, 100 * summary->drift.drift, too_few_to_drift);
    put_real_if(object, "drift_p", can_drift, summary->drift.p, too_few_to_drift);
}

static json_t *summary_of(const struct result *result, const struct summary *summary)
{
    json_t *object = json_object();
    static const char no_calibration[] = "not calibrated";

    json_put_count(object, "complete_runs", summary->runs);
    put_real(object, "interval_coverage", summary->samples_per_s.coverage);
    put_rates(object, summary);
    json_object_set_new(object, "drifts", json_boolean(summary->drifts));
    json_put_count(object, "samples", summary->all.samples);
    json_put_count(object, "skipped_samples", summary->all.skipped);
    json_put_count(object, "record_bytes", summary->all.record_bytes);
    json_put_count(object, "request_bytes", summary->all.request_bytes);
    json_put_count(object, "requests", summary->all.requests);
    json_put_count(object, "read_errors", summary->read_errors);
    json_put_count(object, "short_reads", summary->short_reads);
    json_put_count(object, "first_epoch_record_bytes", summary->first_record_bytes);
    put_real_if(object, "first_epoch_device_read_bytes", summary->device_known,
                (double)summary->device_bytes, "not known for every run; see runs");
    put_text_if(object, "cache_before", summary->runs ? summary_cache_name(summary->cache) : NULL,
                "no complete run");
    put_real_if(object, "cold_residue_percent", summary->residue_known, summary->residue_percent,
                "not verified; see runs");
    json_object_set_new(object, "read_latency",
                        latency_json(&summary->read_latency_ns, summary->epoch_latency_ns, true));
    put_text_if(object, "limit", summary->runs ? summary_limit_name(summary->limit) : NULL,
                "no complete run");
    put_text_if(object, "limit_sentence", summary->runs ? summary->limit_sentence : NULL,
                "no complete run");
    json_object_set_new(object, "shares", shares_of(&summary->shares));
    if (summary->ranks.ranks > 1)
        json_object_set_new(object, "ranks_compared", report_ranks_json(&summary->ranks));
    else
        put_null(object, "ranks_compared", "only one rank");
    put_real_if(object, "floor_samples_per_s", result->floor_samples_per_s > 0,
                result->floor_samples_per_s, no_calibration);
    put_real_if(object, "au_calibration_percent", result->au_calibration_percent > 0,
                result->au_calibration_percent, no_calibration);
    json_object_set_new(object, "resnet50_feeds",
                        summary->runs ? feeds_of(summary->samples_per_s.median) : json_array());
    struct mlperf mlperf;
    if (summary->runs && result->job->workload && mlperf_check(result, &mlperf) == 0)
        json_object_set_new(object, "mlperf", mlperf_json(&mlperf, summary->samples_per_s.median));
    else
        put_null(object, "mlperf", "no --workload, or no complete run");
    return object;
}

json_t *report_json(const struct result *result, const struct summary *summary)
{
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
    if (result->hints.were_made)
        json_object_set_new(object, "entry_points", entry_points_of(&result->hints));
    else
        put_null(object, "entry_points", "none were made: --entry-points was not given");
    if (result->timeline)
        json_object_set_new(object, "series", report_timeline(result->timeline));
    else
        put_null(object, "series", result->timeline_reason);
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
