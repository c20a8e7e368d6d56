/* SPDX-License-Identifier: Apache-2.0 */

#include "base/escape.h"
#include "base/json.h"
#include "base/bytes.h"
#include "report/report.h"
#include "report/words.h"

#include <inttypes.h>
#include <string.h>

enum { INDENT = 11 };

static const double behind_notable_percent = 5;

static const char *phase_name(enum result_phase phase)
{
    static const char *const names[] = {
        [RESULT_PHASE_WAIT] = "wait for batches",
        [RESULT_PHASE_UPLOAD] = "upload",
        [RESULT_PHASE_COMPUTE] = "forward and backward",
        [RESULT_PHASE_EXCHANGE] = "exchange",
        [RESULT_PHASE_UPDATE] = "update",
        [RESULT_PHASES] = "",
    };

    return names[phase];
}

char *report_step(const struct result_epoch *total, uint32_t ranks, char *text, size_t text_bytes)
{
    const double wall_ns = total->wall_ns ? (double)total->wall_ns : 1;
    char step[WORDS_BYTES];
    int used = snprintf(
        text, text_bytes, "%s:",
        words_duration(total->wall_ns * (ranks ? ranks : 1) / (total->batches ? total->batches : 1),
                       step));

    for (int phase = 0; phase < RESULT_PHASES && used < (int)text_bytes; phase++)
        used += snprintf(text + used, text_bytes - (size_t)used, "%s %s %.1f%%", phase ? "," : "",
                         phase_name((enum result_phase)phase),
                         100 * (double)result_epoch_phase_ns(total, (enum result_phase)phase) /
                             wall_ns);
    return text;
}

char *report_device_memory(const struct trainer_memory *memory, char *text, size_t text_bytes)
{
    char device[WORDS_BYTES], batches[WORDS_BYTES], pinned[WORDS_BYTES];

    text[0] = '\0';
    if (memory->device_bytes)
        snprintf(text, text_bytes, "; %s of the GPU, of which %s for uploaded batches; %s pinned",
                 bytes_text(memory->device_bytes, device, sizeof device),
                 bytes_text(memory->batch_bytes, batches, sizeof batches),
                 bytes_text(memory->pinned_bytes, pinned, sizeof pinned));
    return text;
}

/* ---- text ---- */

static void print_spread(FILE *stream, const char *name, const char *low, const char *middle,
                         const char *high)
{
    fprintf(stream, "           %-22s%13s%13s%13s\n", name, low, middle, high);
}

static void print_times(FILE *stream, const char *name, const struct result_spread *seconds)
{
    char low[WORDS_BYTES], middle[WORDS_BYTES], high[WORDS_BYTES];

    if (seconds->maximum > 0)
        print_spread(stream, name, words_duration((uint64_t)(seconds->minimum * 1e9), low),
                     words_duration((uint64_t)(seconds->median * 1e9), middle),
                     words_duration((uint64_t)(seconds->maximum * 1e9), high));
}

void report_ranks_text(FILE *stream, const struct result_comparison *comparison)
{
    const bool behind = comparison->behind_percent >= behind_notable_percent;
    const bool waits = comparison->behind_phase == RESULT_PHASE_WAIT;
    char low[WORDS_BYTES], middle[WORDS_BYTES], high[WORDS_BYTES], title[64];
    char text[512], where[96] = "";

    if (comparison->ranks < 2)
        return;
    snprintf(title, sizeof title, "%u on %u %s", comparison->ranks, comparison->nodes,
             comparison->nodes == 1 ? "node" : "nodes");
    fprintf(stream, "  Ranks    %-22s%13s%13s%13s\n", title, "lowest", "median", "highest");
    print_spread(stream, "samples/s", words_rate(comparison->samples_per_s.minimum, low),
                 words_rate(comparison->samples_per_s.median, middle),
                 words_rate(comparison->samples_per_s.maximum, high));
    print_times(stream, "time", &comparison->wall_s);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        print_times(stream, phase_name((enum result_phase)phase), &comparison->phase_s[phase]);
    print_times(stream, "barriers between epochs", &comparison->barrier_s);
    if (behind)
        snprintf(where, sizeof where, ", mostly in %s%s%s%s", phase_name(comparison->behind_phase),
                 waits ? " (limit: " : "",
                 waits ? summary_limit_name(comparison->straggler_limit) : "", waits ? ")" : "");
    snprintf(text, sizeof text, "rank %u on %s: %.1f%% slower than the median rank%s",
             comparison->straggler, escape_shown(comparison->straggler_host),
             comparison->behind_percent, where);
    words_print(stream, behind ? "  Straggler" : "  Slowest", INDENT + 1, text);
}

/* ---- JSON ---- */

static void put_spread(json_t *object, const char *key, const struct result_spread *spread)
{
    json_object_set_new(object, key,
                        json_pack("{s:o, s:o, s:o}", "min", json_number(spread->minimum), "median",
                                  json_number(spread->median), "max",
                                  json_number(spread->maximum)));
}

static const char *const phase_keys[] = {
    [RESULT_PHASE_WAIT] = "wait_s",       [RESULT_PHASE_UPLOAD] = "upload_s",
    [RESULT_PHASE_COMPUTE] = "compute_s", [RESULT_PHASE_EXCHANGE] = "exchange_s",
    [RESULT_PHASE_UPDATE] = "update_s",
};

json_t *report_ranks_json(const struct result_comparison *comparison)
{
    if (comparison->ranks < 2)
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "ranks", json_integer(comparison->ranks));
    json_object_set_new(object, "nodes", json_integer(comparison->nodes));
    put_spread(object, "samples_per_s", &comparison->samples_per_s);
    put_spread(object, "wall_s", &comparison->wall_s);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        put_spread(object, phase_keys[phase], &comparison->phase_s[phase]);
    put_spread(object, "barrier_s", &comparison->barrier_s);
    json_object_set_new(object, "straggler",
                        json_pack("{s:i, s:o, s:o, s:s, s:s}", "rank", (int)comparison->straggler,
                                  "host", json_text(comparison->straggler_host), "behind_percent",
                                  json_number(comparison->behind_percent), "phase",
                                  phase_name(comparison->behind_phase), "limit",
                                  summary_limit_name(comparison->straggler_limit)));
    return object;
}

json_t *report_ranks_json_one(const struct result_rank *rank)
{
#define AT(type, field) FIGURE_AT(type, result_rank, field)
    static const struct figure rows[] = {
        {"rank", AT(NUMBER, rank)},
        {"node", AT(NUMBER, node)},
        {"host", AT(TEXT, host)},
        {"samples", AT(COUNT, total.samples)},
        {"samples_per_s", AT(DERIVED, total), .value = result_epoch_samples_per_s},
        {"wall_s", AT(TIME, total.wall_ns)},
        {"start_barrier_s", AT(TIME, total.start_barrier_ns)},
        {"stop_barrier_s", AT(TIME, total.stop_barrier_ns)},
        {"read_p50_s", AT(TIME, read_p50_ns)},
        {"read_p99_s", AT(TIME, read_p99_ns)},
        {"read_max_s", AT(TIME, read_max_ns)},
        {"limit", AT(LIMIT, total.limit)},
        {"wait_s", AT(TIME, total.wait_ns)},
        {"upload_s", AT(TIME, total.upload_ns)},
        {"compute_s", AT(TIME, total.compute_ns)},
        {"exchange_s", AT(TIME, total.exchange_ns)},
        {"update_s", AT(TIME, total.update_ns)},
    };
#undef AT
    json_t *object = json_object();

    report_figures(object, rows, sizeof rows / sizeof *rows, rank);
    return object;
}
