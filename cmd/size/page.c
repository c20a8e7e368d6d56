/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/page.h"

#include "base/fail.h"
#include "base/gradients.h"
#include "base/json.h"
#include "base/text_stream.h"
#include "cmd/checkpoint/model.h"
#include "cmd/outputs.h"
#include "report/report.h"
#include "report/svg.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

static const char *seconds(double value, char *text)
{
    return words_duration((uint64_t)(fmin(value, 1e9) * 1e9), text);
}

static double busy_of(const struct size_case *cluster)
{
    const double gpus = cluster->gpus * cluster->answer.plant.of[SIZING_GPU_RATE];

    return cluster->answer.samples_per_s.median / gpus;
}

/* ---- the page ---- */

/* Print a range in another unit. */
static void print_range(const char *what, const struct sizing_range *range, double factor)
{
    char median[WORDS_BYTES], low[WORDS_BYTES], high[WORDS_BYTES];

    printf("    %-26s%16s%16s ..%12s\n", what, words_rate(range->median * factor, median),
           words_rate(range->low * factor, low), words_rate(range->high * factor, high));
}

static void print_need(const char *what, const char *needs, const char *has, double share)
{
    printf("    %-28s%16s%16s", what, needs, has);
    if (isfinite(share))
        printf("%9.0f%%", 100 * share);
    putchar('\n');
}

/* Print each doubt of the profiles once. */
static void print_doubts(const struct size_table *table)
{
    const char *before = "\n";

    for (size_t i = 0; i < table->count; i++)
        for (unsigned k = 0; k < table->cases[i].doubt_count; k++) {
            const char *doubt = table->cases[i].doubts[k];
            bool is_new = true;
            for (size_t j = 0; j < i; j++)
                for (unsigned l = 0; l < table->cases[j].doubt_count; l++)
                    is_new = is_new && strcmp(table->cases[j].doubts[l], doubt) != 0;
            if (!is_new)
                continue;
            fputs(before, stdout);
            words_print(stdout, "In doubt", 10, doubt);
            before = "";
        }
}

static void print_form(const char *title, const struct sizing_answer *answer)
{
    char bytes[WORDS_BYTES], cores[WORDS_BYTES], storage[WORDS_BYTES], rate[WORDS_BYTES];

    printf("    %-30s%10s%10s%12s%12s\n", title,
           words_rate(answer->plant.of[SIZING_SAMPLE_BYTES] / 1000, bytes),
           words_rate(answer->cores, cores), words_byte_rate(answer->storage_bytes_per_s, storage),
           words_rate(answer->outcome.reached_samples_per_s, rate));
}

void size_page_print(const struct size_case *cluster)
{
    const struct sizing_answer *answer = &cluster->answer;
    const struct sizing_rates *rates = &answer->first;
    const double goal = answer->goal_samples_per_s;
    const double sample =
        answer->plant.of[SIZING_SAMPLE_BYTES] * answer->plant.of[SIZING_AMPLIFICATION];
    const double fabric =
        answer->plant.of[SIZING_FABRIC_RATE] * answer->plant.of[SIZING_FABRIC_EFFICIENCY];
    char rate[WORDS_BYTES], low[WORDS_BYTES], high[WORDS_BYTES];

    assert(rates->limit < SIZING_PART_COUNT);
    printf("iobench size: %.0f x %s, %s, on %.0f x %s\nwith %s\n\n", cluster->gpus, cluster->gpu,
           cluster->network, cluster->answer.plant.nodes, cluster->node, cluster->storage);
    printf("  Reaches  %s samples/s: GPUs busy %.1f%% of the time\n",
           words_rate(answer->samples_per_s.median, rate), 100 * busy_of(cluster));
    printf("  Goal     %s samples/s, reached in %.0f%% of cases\n",
           words_rate(answer->goal_samples_per_s, rate), 100 * answer->probability);
    printf("  Limit    %s", sizing_part_names[rates->limit]);
    if (rates->next < SIZING_PART_COUNT && isfinite(rates->of[rates->next]))
        printf("; next %s, at %s times that rate", sizing_part_names[rates->next],
               words_rate(rates->of[rates->next] / rates->of[rates->limit], rate));
    putchar('\n');
    if (answer->checkpoint_s > 0)
        printf("  Saving   %s every %s, at %s\n", seconds(answer->checkpoint_s, low),
               seconds(answer->checkpoint_interval_s, high),
               words_byte_rate(answer->checkpoint_bytes_per_s, rate));
    if (cluster->recorded_s > 0)
        printf("  Recorded %s on average, %s at most, in %s\n",
               words_byte_rate(cluster->recorded_bytes_per_s, low),
               words_byte_rate(cluster->recorded_peak_bytes_per_s, high),
               seconds(cluster->recorded_s, rate));
    printf("\n  Predicted%35s%30s\n", "median", "90% between");
    print_range("samples/s", &answer->samples_per_s, 1);
    print_range("first epoch, samples/s", &answer->first_samples_per_s, 1);
    print_range("later epochs, samples/s", &answer->later_samples_per_s, 1);
    print_range("first batch after, ms", &answer->first_batch_s, 1000);
    print_range("stalls on batches, %", &answer->stall_share, 100);
    if (answer->checkpoint_s > 0)
        print_range("stopped to save, %", &answer->checkpoint_share, 100);
    printf("\n  For that goal%33s%16s%10s\n", "needs", "has", "used");
    print_need("storage, bytes", words_byte_rate(answer->storage_bytes_per_s, low),
               words_byte_rate(rates->of[SIZING_PART_STORAGE] * sample, high),
               goal / rates->of[SIZING_PART_STORAGE]);
    const double reads =
        rates->of[SIZING_PART_READS] * sample / answer->plant.of[SIZING_READ_BYTES];
    print_need("storage, reads/s", words_rate(answer->storage_reads_per_s, low),
               words_rate(reads, high), goal / rates->of[SIZING_PART_READS]);
    print_need("each node from storage", words_byte_rate(answer->node_bytes_per_s, low),
               words_byte_rate(rates->of[SIZING_PART_CLIENT] * sample / answer->plant.nodes, high),
               goal / rates->of[SIZING_PART_CLIENT]);
    print_need("each node, CPU cores", words_rate(answer->cores, low),
               words_rate(answer->plant.of[SIZING_CORES], high),
               goal / rates->of[SIZING_PART_CORES]);
    print_need("GPUs, samples/s", words_rate(goal, low),
               words_rate(rates->of[SIZING_PART_GPU], high), goal / rates->of[SIZING_PART_GPU]);
    print_need("storage, as an epoch begins", words_byte_rate(answer->start_bytes_per_s, low), "-",
               NAN);
    if (answer->fabric_bytes_per_s > 0 && fabric > 0)
        print_need("each node, gradients", words_byte_rate(answer->fabric_bytes_per_s, low),
                   words_byte_rate(fabric, high), answer->fabric_bytes_per_s / fabric);
    if (answer->checkpoint_s > 0)
        print_need("writes, at 1% lost to saving",
                   words_byte_rate(answer->checkpoint_write_per_s, low),
                   words_byte_rate(answer->checkpoint_bytes_per_s, high),
                   answer->checkpoint_write_per_s / answer->checkpoint_bytes_per_s);
    if (answer->checkpoint_s > 0)
        print_need("reads, at 1% lost to restores",
                   words_byte_rate(answer->checkpoint_read_per_s, low), "-", NAN);
    printf("\n  Twice as much of%30s%16s\n", "samples/s", "gain");
    for (unsigned i = 0; i < answer->upgrade_count; i++)
        printf("    %-28s%14s%15.1f%%\n", sizing_part_names[answer->upgrades[i].part],
               words_rate(answer->upgrades[i].samples_per_s, rate),
               fmax(0, 100 * answer->upgrades[i].gain));
    if (cluster->form_count) {
        printf("\n  Stored as%35s%10s%12s%12s\n", "kB", "cores", "storage", "reaches/s");
        print_form("published", answer);
    }
    for (unsigned i = 0; i < cluster->form_count; i++)
        print_form(cluster->forms[i].title, &cluster->forms[i].answer);
    print_doubts(&(struct size_table){.cases = (struct size_case *)(uintptr_t)cluster, .count = 1});
    printf("\nSimulated from profiles (iobench list profiles). Intervals are what their stated\n"
           "uncertainties amount to. Verify with: iobench size --simulate --acceptance\n");
}

void size_page_table(const struct size_table *table)
{
    const struct size_case *previous = NULL;

    for (size_t i = 0; i < table->count; i++) {
        const struct size_case *cluster = &table->cases[i];
        const struct sizing_answer *answer = &cluster->answer;
        char median[WORDS_BYTES], low[WORDS_BYTES], high[WORDS_BYTES], storage[WORDS_BYTES];
        if (!previous || strcmp(previous->storage, cluster->storage) != 0)
            printf("%s%s of %s with %s\n  %5s%6s%10s%18s%6s%11s  %s\n", previous ? "\n" : "",
                   cluster->network, cluster->gpu, cluster->storage, "GPUs", "nodes", "samples/s",
                   "90% between", "busy", "storage", "limit");
        printf("  %5.0f%6.0f%10s%8s ..%7s%5.0f%%%11s  %s\n", cluster->gpus, answer->plant.nodes,
               words_short_rate(answer->samples_per_s.median, median),
               words_short_rate(answer->samples_per_s.low, low),
               words_short_rate(answer->samples_per_s.high, high), 100 * busy_of(cluster),
               words_byte_rate(answer->storage_bytes_per_s, storage),
               sizing_part_names[answer->first.limit]);
        previous = cluster;
    }
    print_doubts(table);
}

/* ---- JSON ---- */

static void put_range(json_t *object, const char *key, const struct sizing_range *range)
{
    json_object_set_new(object, key,
                        json_pack("{s:o, s:o, s:o}", "median", json_number(range->median), "low",
                                  json_number(range->low), "high", json_number(range->high)));
}

static json_t *case_json(const struct size_case *cluster)
{
    const struct sizing_answer *answer = &cluster->answer;
    const struct sizing_outcome *outcome = &answer->outcome;
    const struct sizing_rates *rates = &answer->first;
    const struct sizing_curve *curve = &cluster->inputs.curve;
    const bool is_recorded = cluster->recorded_s > 0;
    const struct {
        const char *key;
        double value;
    } figures[] = {
        {"gpus", cluster->gpus},
        {"recorded_bytes_per_s", is_recorded ? cluster->recorded_bytes_per_s : NAN},
        {"recorded_peak_bytes_per_s", is_recorded ? cluster->recorded_peak_bytes_per_s : NAN},
        {"recorded_s", is_recorded ? cluster->recorded_s : NAN},
        {"nodes", answer->plant.nodes},
        {"stated_samples_per_s", outcome->samples_per_s},
        {"first_epoch_samples_per_s", outcome->first_samples_per_s},
        {"later_epochs_samples_per_s", outcome->later_samples_per_s},
        {"first_batch_s", outcome->first_batch_s},
        {"stall_share", outcome->stall_share},
        {"checkpoint_share", outcome->checkpoint_share},
        {"checkpoint_s", answer->checkpoint_s},
        {"checkpoint_interval_s", answer->checkpoint_interval_s},
        {"goal_samples_per_s", answer->goal_samples_per_s},
        {"goal_probability", answer->probability},
        {"needs_storage_bytes_per_s", answer->storage_bytes_per_s},
        {"needs_storage_reads_per_s", answer->storage_reads_per_s},
        {"needs_node_bytes_per_s", answer->node_bytes_per_s},
        {"needs_node_cores", answer->cores},
        {"needs_fabric_bytes_per_s", answer->fabric_bytes_per_s},
        {"needs_checkpoint_bytes_per_s", answer->checkpoint_write_per_s},
        {"needs_restore_bytes_per_s", answer->checkpoint_read_per_s},
        {"start_bytes", answer->start_bytes},
        {"start_bytes_per_s", answer->start_bytes_per_s},
    };
    json_t *object = json_object(), *part = json_array();

    json_put_text(object, "gpu", cluster->gpu);
    json_put_text(object, "network", cluster->network);
    json_put_text(object, "node", cluster->node);
    json_put_text(object, "storage", cluster->storage);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        json_put_number(object, figures[i].key, figures[i].value);
    for (unsigned i = 0; i < cluster->doubt_count; i++)
        json_array_append_new(part, json_text(cluster->doubts[i]));
    json_object_set_new(object, "doubts", part);
    put_range(object, "samples_per_s", &answer->samples_per_s);
    part = json_put_new(object, "intervals", json_object());
    put_range(part, "first_epoch_samples_per_s", &answer->first_samples_per_s);
    put_range(part, "later_epochs_samples_per_s", &answer->later_samples_per_s);
    put_range(part, "first_batch_s", &answer->first_batch_s);
    put_range(part, "stall_share", &answer->stall_share);
    put_range(part, "checkpoint_share", &answer->checkpoint_share);
    json_put_text(object, "limit", sizing_part_names[rates->limit]);
    json_put_text(object, "next", sizing_part_names[rates->next]);
    part = json_put_new(object, "rates_samples_per_s", json_object());
    for (int i = 0; i < SIZING_PART_COUNT; i++)
        json_put_number(part, sizing_part_names[i], rates->of[i]);
    part = json_put_new(object, "upgrades", json_array());
    for (unsigned i = 0; i < answer->upgrade_count; i++)
        json_array_append_new(
            part, json_pack("{s:s, s:o, s:o}", "part", sizing_part_names[answer->upgrades[i].part],
                            "samples_per_s", json_number(answer->upgrades[i].samples_per_s), "gain",
                            json_number(answer->upgrades[i].gain)));
    part = json_put_new(object, "forms", json_array());
    for (unsigned i = 0; i < cluster->form_count; i++) {
        const struct sizing_answer *form = &cluster->forms[i].answer;
        json_array_append_new(
            part,
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "title", json_text(cluster->forms[i].title),
                      "sample_bytes", json_number(form->plant.of[SIZING_SAMPLE_BYTES]),
                      "decode_core_s", json_number(form->plant.of[SIZING_DECODE_S]),
                      "needs_node_cores", json_number(form->cores), "needs_storage_bytes_per_s",
                      json_number(form->storage_bytes_per_s), "samples_per_s",
                      json_number(form->outcome.reached_samples_per_s)));
    }
    part = json_put_new(object, "inputs", json_object());
    for (int i = 0; i < SIZING_INPUT_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", sizing_input_table[i].section,
                 sizing_input_table[i].key);
        json_object_set_new(part, name,
                            json_pack("{s:o, s:o}", "value",
                                      json_number(cluster->inputs.of[i].value), "spread",
                                      json_number(cluster->inputs.of[i].spread)));
    }
    part = json_put_new(object, "curve", json_array());
    for (unsigned i = 0; i < curve->count; i++)
        for (unsigned k = 0; k < curve->rows[i].count; k++) {
            const struct sizing_curve_row *row = &curve->rows[i];
            json_array_append_new(part, json_pack("{s:o, s:o, s:o, s:o}", "read_bytes",
                                                  json_number(row->read_bytes), "depth",
                                                  json_number(row->depths[k]), "bytes_per_s",
                                                  json_number(row->bytes_per_s[k].value), "spread",
                                                  json_number(row->bytes_per_s[k].spread)));
        }
    return object;
}

json_t *size_page_json(const struct size_table *table)
{
    json_t *document = json_object(), *cases = json_array();

    for (size_t i = 0; i < table->count; i++)
        json_array_append_new(cases, case_json(&table->cases[i]));
    json_object_set_new(document, "schema", json_text("iobench-size"));
    json_object_set_new(document, "schema_version", json_integer(1));
    json_object_set_new(document, "cases", cases);
    return document;
}

/* ---- files ---- */

int size_page_chart(const struct size_table *table, const char *path)
{
    const size_t count = table->count / (size_t)table->storages;
    char title[2 * SIZE_TITLE_BYTES + 64];
    bool in_doubt = false;
    struct svg svg;

    for (size_t i = 0; i < table->count; i++)
        in_doubt |= table->cases[i].doubt_count > 0;
    snprintf(title, sizeof title, "%s on %s, 90%% intervals%s", table->cases[0].network,
             table->cases[0].gpu, in_doubt ? "; profiles in doubt" : "");
    svg_begin(&svg, title, 900, 440, 1);
    struct svg_panel *panel = svg_panel(&svg, "");
    struct svg_curve *busy = svg_curve(panel, "all GPUs busy", "#000000", 1, SVG_DASHED);
    svg_x(panel, "GPUs", SVG_LOG, NAN, NAN);
    svg_y(panel, "samples/s", SVG_LOG, NAN, NAN);
    for (size_t i = 0; i < count; i++)
        svg_point(busy, table->cases[i].gpus, table->cases[i].answer.goal_samples_per_s);
    for (size_t storage = 0; storage < (size_t)table->storages; storage++) {
        const struct size_case *cases = table->cases + storage * count;
        struct svg_curve *curve = svg_curve(panel, cases->storage, svg_color(storage), 2, SVG_LINE);
        for (size_t i = 0; i < count; i++)
            svg_interval(curve, cases[i].gpus, cases[i].answer.samples_per_s.median,
                         cases[i].answer.samples_per_s.low, cases[i].answer.samples_per_s.high);
    }
    int code = svg_save(&svg, path);
    svg_release(&svg);
    return code;
}

/* ---- the acceptance test: a job file with the figures to reach ---- */

static const double bytes_per_parameter = 14; /* of a checkpoint: cmd/checkpoint/model.h */
static const double mib = 1 << 20;

int size_page_acceptance(const struct size_case *cluster, const char *path)
{
    const struct sizing_answer *answer = &cluster->answer;
    const struct sizing_plant *plant = &answer->plant;
    const double nodes = plant->nodes, bytes = plant->of[SIZING_CHECKPOINT_BYTES];
    /* Gradients travel in buckets: an all-reduce of one. */
    const double bucket = plant->of[SIZING_GRADIENT_BYTES] / GRADIENTS_BUCKETS;
    const double size = mib * exp2(round(log2(fmin(256, fmax(1, bucket / mib)))));
    struct text_stream stream;
    char rate[WORDS_BYTES];

    if (text_stream_open(&stream))
        return -ENOMEM;
    FILE *file = stream.stream;
    fputs(report_acceptance_mark, file);
    for (unsigned i = 0; i < cluster->doubt_count; i++)
        fprintf(file, "# In doubt: %s\n", cluster->doubts[i]);
    fprintf(file,
            "# Acceptance of %s for %.0f x %s, %s.\n"
            "# Storage must sustain %s, read by all %.0f nodes at once. Mount it on each of them;\n"
            "# set data= to a data set there (iobench pack synthetic:... makes one) that is at\n"
            "# least five times as large as the memory of a node, and start one rank a node:\n"
            "#\n",
            cluster->storage, cluster->gpus, cluster->gpu, cluster->network,
            words_byte_rate(answer->storage_bytes_per_s, rate), nodes);
    fprintf(file,
            "#     mpirun -n %.0f --map-by node iobench accept.ini\n"
            "#\n"
            "# Exit status 0: passed. 1: failed; each figure and its goal are in the messages.\n",
            nodes);
    fprintf(file,
            "[global]\n"
            "data=/mnt/set\n"
            "drop-caches=strict\n"
            "runs=3\n"
            "epochs=1\n"
            "bs=%.0f\n"
            "batch-size=%.0f\n"
            "prefetch=%.0f\n\n",
            fmax(512, plant->of[SIZING_READ_BYTES]), plant->of[SIZING_BATCH],
            plant->of[SIZING_PREFETCH]);
    fprintf(file,
            "[storage]\n"
            "decode=none\n"
            "require-rate=%.0fB/s\n\n"
            "[storage and CPUs]\n"
            "decode=%s\n"
            "require-samples-per-s=%.6g\n",
            answer->storage_bytes_per_s, plant->of[SIZING_DECODE_S] > 0 ? "jpeg" : "none",
            answer->goal_samples_per_s);
    if (answer->fabric_bytes_per_s > 0)
        fprintf(
            file,
            "\n# A ring all-reduce over the nodes, hidden by the backward pass. MPI must use all\n"
            "# ports of a node that the figure needs.\n"
            "[fabric]\n"
            "command=net\n"
            "messages=no\n"
            "from=%.0f\n"
            "to=%.0f\n"
            "require-nodes=%.0f\n"
            "require-all-reduce=%.0fB/s\n",
            size, size, answer->plant.nodes, ceil(answer->fabric_bytes_per_s));
    if (bytes > 0)
        fprintf(file,
                "\n# Saving and restoring may each cost %g%% of the time. Needs space for three "
                "checkpoints.\n"
                "[checkpoint]\n"
                "command=checkpoint\n"
                "folder=/mnt/checkpoints\n"
                "model=job,params=%.0f\n"
                "ranks=%.0f\n"
                "rank-shift=%.0f\n"
                "writes=3\n"
                "reads=2\n"
                "require-write-rate=%.0fB/s\n"
                "require-read-rate=%.0fB/s\n",
                100 * SIZING_SAVING_SHARE, ceil(bytes / bytes_per_parameter),
                fmin(cluster->gpus, MODEL_RANKS_MAX),
                answer->plant.nodes > 1 ? ceil(answer->plant.of[SIZING_GPUS]) : 0,
                ceil(answer->checkpoint_write_per_s), ceil(answer->checkpoint_read_per_s));
    return outputs_write(path, &stream);
}
