/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/model.h"
#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/gradients.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stats.h"
#include "cmd/checkpoint/model.h"
#include "cmd/commands.h"
#include "cmd/line.h"
#include "cmd/outputs.h"
#include "pipeline/result/result.h"
#include "readers/reader.h"
#include "report/report.h"
#include "report/svg.h"
#include "report/words.h"
#include "telemetry/storage.h"
#include "trainer/accelerator.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE_TITLE_BYTES = 128, SIZE_DOUBTS_MOST = 8, SIZE_DOUBT_BYTES = 256 };
enum { SIZE_FORMS_MOST = 8, SIZE_FORM_TITLE_BYTES = 40 };

/* The same data stored otherwise, as a [form NAME] section of a network's profile says: bytes are
 * exchanged for CPU time. */
struct size_form {
    char title[SIZE_FORM_TITLE_BYTES];
    struct quantity sample_bytes, decode_s;
    struct sizing_answer answer; /* without intervals */
};

struct size_case {
    double gpus;
    char gpu[SIZE_TITLE_BYTES], network[SIZE_TITLE_BYTES], node[SIZE_TITLE_BYTES],
        storage[SIZE_TITLE_BYTES];
    double recorded_s, recorded_bytes_per_s, recorded_peak_bytes_per_s; /* 0: not recorded */
    struct sizing_inputs inputs;
    struct sizing_answer answer;
    struct size_form forms[SIZE_FORMS_MOST]; /* of the data, which are not recorded */
    unsigned form_count;
    char doubts[SIZE_DOUBTS_MOST][SIZE_DOUBT_BYTES]; /* of the profiles */
    unsigned doubt_count;
};

struct size_table {
    struct size_case *cases; /* by storage, then by GPUs */
    size_t count;
    int storages;
};

enum { SIZE_COUNTS_MOST = 64 };

struct size_settings {
    char *gpu;
    char *gpus; /* a list */
    double rate;
    double busy_percent;
    uint64_t sample_bytes;
    char *json; /* file or "-" for standard output; NULL: a table */
    bool simulate;
    char *network, *node, *storage, *fabric; /* storage: a list */
    char *profile;                           /* figures that override the other profiles */
    char *profiles;                          /* folder */
    char *recording;                         /* of `iobench monitor` */
    uint64_t recorded_gpus;
    uint64_t draws, seed;
    char *chart, *acceptance;
    char *measure, *read_sizes, *depths, *save; /* of a storage */
    uint64_t measure_ns;
};

/* ---- recording ---- */

enum { RECORDING_BYTES_MAX = 256 << 20 };

/* Reads that were counted. */
struct recorded_reads {
    double count, bytes;
};

/* Read a rate; null, which a probe did not count, as 0. */
static double rate_of(const json_t *line, const char *key)
{
    return fmax(0, load_number(line, key)); /* fmax() of 0 and NAN is 0 */
}

/* A storage whose reads were not counted, as Lustre's are not, says nothing of their size. */
static void add_reads(const json_t *line, const char *count_key, const char *bytes_key,
                      double seconds, struct recorded_reads *reads)
{
    const double count = load_number(line, count_key);

    if (!(count > 0))
        return;
    reads->count += count * seconds;
    reads->bytes += rate_of(line, bytes_key) * seconds;
}

int size_recording_load(const char *path, struct size_recording *recording)
{
    struct {
        double seconds, bytes;
    } halves[2] = {{0}};
    struct recorded_reads reads = {0};
    char *text = NULL;
    size_t bytes = 0, lines = 0;

    *recording = (struct size_recording){0};
    int code = file_load(path, RECORDING_BYTES_MAX, &text, &bytes);
    if (code)
        return code;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    for (size_t i = 0, begin = 0; i < lines && code == 0; i++) {
        const size_t length =
            (size_t)((const char *)memchr(text + begin, '\n', bytes - begin) - (text + begin));
        json_t *line = json_loadb(text + begin, length, 0, NULL);
        const double interval_s = load_number(line, "interval_s");
        const double rate = rate_of(line, "storage_read_bytes_per_s") +
                            rate_of(line, "nfs_read_bytes_per_s") +
                            rate_of(line, "lustre_read_bytes_per_s");
        const bool is_second = 2 * i >= lines;
        if (interval_s > 0) {
            halves[is_second].seconds += interval_s;
            halves[is_second].bytes += rate * interval_s;
            add_reads(line, "storage_read_count_per_s", "storage_read_bytes_per_s", interval_s,
                      &reads);
            add_reads(line, "nfs_read_count_per_s", "nfs_read_bytes_per_s", interval_s, &reads);
            recording->peak_bytes_per_s = fmax(recording->peak_bytes_per_s, rate);
        } else {
            code = -EINVAL;
        }
        json_decref(line);
        begin += length + 1;
    }
    free(text);
    const double seconds = halves[0].seconds + halves[1].seconds;
    const double read = halves[0].bytes + halves[1].bytes;

    if (code || lines < 2)
        return fail(EINVAL, "%s: expected two or more lines of 'iobench monitor --json'", path);
    if (!(read > 0))
        return fail(EINVAL, "%s: nothing was read from storage while it was recorded", path);
    recording->seconds = seconds;
    recording->bytes_per_s = (struct quantity){
        .value = read / seconds,
        /* The difference between the halves of the recording is its uncertainty. */
        .spread = fabs(halves[0].bytes / halves[0].seconds - halves[1].bytes / halves[1].seconds) /
                  (2 * read / seconds),
    };
    /* A few reads of a disk beside the storage that is read from say nothing of that one. */
    recording->read_bytes = reads.bytes > read / 2 ? reads.bytes / reads.count : 0;
    return 0;
}

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

static void size_page_print(const struct size_case *cluster)
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

static void size_page_table(const struct size_table *table)
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

/* ---- files ---- */

/* Returns 0 or a negative errno with a reason. */
static int size_page_chart(const struct size_table *table, const char *path)
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

static int size_page_acceptance(const struct size_case *cluster, const char *path)
{
    const struct sizing_answer *answer = &cluster->answer;
    const struct sizing_plant *plant = &answer->plant;
    const double nodes = plant->nodes, bytes = plant->of[SIZING_CHECKPOINT_BYTES];
    /* Gradients travel in buckets: an all-reduce of one. */
    const double bucket = plant->of[SIZING_GRADIENT_BYTES] / GRADIENTS_BUCKETS;
    const double size = (1 << 20) * exp2(round(log2(fmin(256, fmax(1, bucket / (1 << 20))))));
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
            "#\n"
            "#     mpirun -n %.0f --map-by node iobench accept.ini\n"
            "#\n"
            "# Exit status 0: passed. 1: failed; each figure and its goal are in the messages.\n"
            "[global]\n"
            "data=/mnt/set\n"
            "drop-caches=strict\n"
            "runs=3\n"
            "epochs=1\n"
            "bs=%.0f\n"
            "batch-size=%.0f\n"
            "prefetch=%.0f\n\n"
            "[storage]\n"
            "decode=none\n"
            "require-rate=%.0fB/s\n\n"
            "[storage and CPUs]\n"
            "decode=%s\n"
            "require-samples-per-s=%.6g\n",
            cluster->storage, cluster->gpus, cluster->gpu, cluster->network,
            words_byte_rate(answer->storage_bytes_per_s, rate), nodes, nodes,
            fmax(512, plant->of[SIZING_READ_BYTES]), plant->of[SIZING_BATCH],
            plant->of[SIZING_PREFETCH], answer->storage_bytes_per_s,
            plant->of[SIZING_DECODE_S] > 0 ? "jpeg" : "none", answer->goal_samples_per_s);
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

/* ---- simulated cluster ---- */

enum { STORAGES_MOST = 16, CHART_COUNTS = 15 /* 1, 2, 4 ... 16,384 GPUs */ };

/* Add the doubts that measured profiles state about their figures. */
static void add_doubts(struct size_case *cluster, const char *name, const struct ini *ini)
{
    for (size_t i = 0; i < ini->section_count; i++) {
        const struct ini_entry *entry = ini_find(ini, &ini->sections[i], "doubt");
        if (!entry || !entry->value || cluster->doubt_count == SIZE_DOUBTS_MOST)
            continue;
        char *doubt = cluster->doubts[cluster->doubt_count++];
        const size_t used = (size_t)snprintf(
            doubt, SIZE_DOUBT_BYTES, "%s of %.100s: ", escape_shown(ini->sections[i].name), name);
        snprintf(doubt + used, SIZE_DOUBT_BYTES - used, "%.*s", (int)(SIZE_DOUBT_BYTES - used - 1),
                 escape_shown(entry->value));
    }
}

/* name: NULL: nothing. network: see sizing_inputs_apply(). title: may be NULL. */
static int add_profile(const struct size_settings *settings, const char *family, const char *name,
                       const char *network, struct size_case *cluster, char *title)
{
    struct ini ini;

    if (!name)
        return 0;
    int code = profiles_load(family, name, settings->profiles, &ini);
    if (code == 0 && !profiles_section(&ini, family))
        code = fail(EINVAL, "%s: has no section [%s], so it describes no %s", ini.path, family,
                    family);
    if (code == 0)
        code = sizing_inputs_apply(&cluster->inputs, &ini, network);
    if (code == 0)
        add_doubts(cluster, name, &ini);
    const bool has_forms =
        code == 0 && title == cluster->network && !settings->recording && !settings->sample_bytes;
    for (size_t i = 0; has_forms && i < ini.section_count && code == 0; i++) {
        const char *section = ini.sections[i].name;
        if (strncmp(section, "form ", 5) != 0)
            continue;
        if (cluster->form_count == SIZE_FORMS_MOST) {
            code = fail(EINVAL, "%s: more than %d forms", ini.path, SIZE_FORMS_MOST);
            break;
        }
        struct size_form *form = &cluster->forms[cluster->form_count++];
        const char *form_title = profiles_text(&ini, section, "title");
        const char *bytes = profiles_text(&ini, section, "sample-bytes");
        const char *decode = profiles_text(&ini, section, "decode-core-s");
        if (!form_title || !bytes || quantity_parse(bytes, &form->sample_bytes) ||
            !(form->sample_bytes.value > 0) || !decode || quantity_parse(decode, &form->decode_s))
            code = fail(EINVAL, "%s: [%s] needs title, sample-bytes and decode-core-s", ini.path,
                        section);
        else
            snprintf(form->title, sizeof form->title, "%s", escape_shown(form_title));
    }
    if (code == 0 && title) {
        const char *text = profiles_text(&ini, family, "title");
        snprintf(title, SIZE_TITLE_BYTES, "%s", escape_shown(text ? text : name));
    }
    ini_release(&ini);
    return code;
}

/* Figures that override the other profiles, and names of what they describe. */
static int add_own_figures(const struct size_settings *settings, struct size_case *cluster)
{
    const struct {
        const char *section;
        char *title;
    } named[] = {{"network", cluster->network},
                 {"gpu", cluster->gpu},
                 {"node", cluster->node},
                 {"storage", cluster->storage}};
    const struct sizing_inputs before = cluster->inputs;
    struct ini ini;

    if (!settings->profile)
        return 0;
    int code = profiles_load("profile", settings->profile, settings->profiles, &ini);
    if (code == 0)
        code = sizing_inputs_apply(&cluster->inputs, &ini, NULL);
    if (code == 0)
        add_doubts(cluster, settings->profile, &ini);
    for (size_t i = 0; code == 0 && i < sizeof named / sizeof *named; i++) {
        const char *text = profiles_text(&ini, named[i].section, "title");
        const size_t used = strlen(named[i].title);
        if (text)
            snprintf(named[i].title, SIZE_TITLE_BYTES, "%s", escape_shown(text));
        else if (profiles_text(&ini, named[i].section, "source"))
            snprintf(named[i].title + used, SIZE_TITLE_BYTES - used, " with figures of %s",
                     escape_shown(settings->profile));
        if (text && i == 0)
            cluster->form_count = 0; /* of another network */
    }
    /* The forms describe the network's own samples, and cannot be compared with other ones. */
    static const int of_data[] = {SIZING_SAMPLE_BYTES, SIZING_DECODE_S};
    for (size_t i = 0; i < 2; i++)
        if (before.of[of_data[i]].value != cluster->inputs.of[of_data[i]].value)
            cluster->form_count = 0;
    ini_release(&ini);
    return code;
}

static int describe(const struct size_settings *settings, const char *storage,
                    struct size_case *cluster)
{
    const char *network = settings->network ? settings->network : "resnet50";
    const char *gpu = settings->gpu ? settings->gpu : "h200";
    char section[64];

    /* A GPU's section is named after the network, not after its file. */
    snprintf(section, sizeof section, "%s", file_name(network));
    if (strlen(section) > 4 && strcmp(section + strlen(section) - 4, ".ini") == 0)
        section[strlen(section) - 4] = '\0';
    sizing_inputs_start(&cluster->inputs);
    struct sizing_inputs *inputs = &cluster->inputs;
    struct quantity *sample_bytes = &inputs->of[SIZING_SAMPLE_BYTES];
    const struct quantity own_bytes = {.value = (double)settings->sample_bytes};
    int code = add_profile(settings, "network", network, NULL, cluster, cluster->network);
    if (code == 0)
        code = add_profile(settings, "gpu", gpu, section, cluster, cluster->gpu);
    if (code == 0)
        code = add_profile(settings, "node", settings->node ? settings->node : "dgx-h200", NULL,
                           cluster, cluster->node);
    if (code == 0)
        code = add_profile(settings, "fabric", settings->fabric, NULL, cluster, NULL);
    if (code == 0)
        code = add_profile(settings, "storage", storage, NULL, cluster, cluster->storage);
    if (code == 0 && settings->recording) { /* it replaces what the profile says about reading */
        struct size_recording recording;
        code = size_recording_load(settings->recording, &recording);
        *sample_bytes = settings->sample_bytes ? own_bytes : *sample_bytes;
        if (code == 0) { /* a GPU reads what one of the recorded job's GPUs read */
            inputs->of[SIZING_GPU_RATE] = recording.bytes_per_s;
            inputs->of[SIZING_GPU_RATE].value /=
                (double)settings->recorded_gpus * sample_bytes->value;
            if (recording.read_bytes > 0)
                inputs->of[SIZING_READ_BYTES] = (struct quantity){.value = recording.read_bytes};
        }
        cluster->recorded_bytes_per_s = recording.bytes_per_s.value;
        cluster->recorded_peak_bytes_per_s = recording.peak_bytes_per_s;
        cluster->recorded_s = recording.seconds;
        snprintf(cluster->network, sizeof cluster->network, "a recorded job");
    }
    if (code == 0)
        code = add_own_figures(settings, cluster);
    if (settings->rate > 0)
        inputs->of[SIZING_GPU_RATE] = (struct quantity){.value = settings->rate};
    *sample_bytes = settings->sample_bytes ? own_bytes : *sample_bytes;
    if (code == 0 && !(inputs->of[SIZING_STORAGE_RATE].value > 0) && !inputs->curve.count)
        return fail(EINVAL, "%s: [storage] needs read-bytes-per-s or a curve", cluster->storage);
    if (code == 0 && !(inputs->of[SIZING_GPU_RATE].value > 0))
        return fail(EINVAL, "no rate of %s on %s is published; give --rate", cluster->network,
                    cluster->gpu);
    return code;
}

/* Parse the numbers of GPUs. Returns how many there are, or -EINVAL with a reason. */
static int size_counts(const char *text, uint64_t counts[SIZE_COUNTS_MOST])
{
    const struct option_list list = {.option = "gpus",
                                     .parse = option_parse_count,
                                     .most = 1000000000,
                                     .count_most = SIZE_COUNTS_MOST};

    return option_parse_list(&list, text, counts);
}

static int answer_all(const struct size_settings *settings, struct size_table *table)
{
    uint64_t counts[SIZE_COUNTS_MOST];
    int count = 0;
    char *list = strdup(settings->storage ? settings->storage : "parallel-k3000");
    char *cursor = list, *storage;

    if (settings->chart)
        while (count < CHART_COUNTS) {
            counts[count] = UINT64_C(1) << count;
            count++;
        }
    else
        count = size_counts(settings->gpus, counts);
    int code = count < 0 ? count : 0;
    table->cases = memory_array(STORAGES_MOST * SIZE_COUNTS_MOST, sizeof *table->cases);
    if (!list || !table->cases)
        code = fail(ENOMEM, "out of memory");
    while (code == 0 && (storage = strsep(&cursor, ","))) {
        if (table->storages++ == STORAGES_MOST) {
            code = fail(EINVAL, "--storage: at most %d", STORAGES_MOST);
            break;
        }
        for (int i = 0; i < count && code == 0; i++) {
            struct size_case *cluster = &table->cases[table->count++];
            cluster->gpus = (double)counts[i];
            code = describe(settings, storage, cluster);
            struct sizing_request request = {.inputs = &cluster->inputs,
                                             .gpus = cluster->gpus,
                                             .busy = settings->busy_percent / 100,
                                             .draws = (unsigned)settings->draws,
                                             .seed = settings->seed};
            if (code == 0)
                code = sizing_answer(&request, &cluster->answer);
            const double share = cluster->answer.plant.of[SIZING_GPUS];
            /* All nodes are simulated alike. */
            if (code == 0 && share != floor(share) && cluster->doubt_count < SIZE_DOUBTS_MOST)
                snprintf(cluster->doubts[cluster->doubt_count++], SIZE_DOUBT_BYTES,
                         "%.0f GPUs on %.0f nodes: simulated with %.3g in each; those with %.0f "
                         "need more",
                         cluster->gpus, cluster->answer.plant.nodes, share, ceil(share));
            /* The other forms of the data. */
            const bool has_forms = !settings->chart && !settings->acceptance;
            for (unsigned k = 0; k < cluster->form_count && has_forms && code == 0; k++) {
                struct size_form *form = &cluster->forms[k];
                struct sizing_inputs inputs = cluster->inputs;
                inputs.of[SIZING_SAMPLE_BYTES] = form->sample_bytes;
                inputs.of[SIZING_SAMPLE_SD_BYTES].value *=
                    form->sample_bytes.value / cluster->inputs.of[SIZING_SAMPLE_BYTES].value;
                inputs.of[SIZING_DECODE_S] = form->decode_s;
                request.inputs = &inputs;
                request.draws = 1;
                code = sizing_answer(&request, &form->answer);
                form->answer.plant.curve = NULL; /* was that of `inputs` */
            }
        }
    }
    free(list);
    return code;
}

static int size_cluster(const struct invocation *invocation)
{
    const struct size_settings *settings = invocation->settings;
    struct size_table table = {0};

    if ((settings->chart != NULL) + (settings->acceptance != NULL) + (settings->json != NULL) > 1) {
        fail(EINVAL, "only one of --json, --chart and --acceptance");
        return command_misused(invocation);
    }
    int code = answer_all(settings, &table);
    if (code == 0 && settings->chart)
        code = size_page_chart(&table, settings->chart);
    else if (code == 0 && settings->acceptance)
        code = size_page_acceptance(&table.cases[0], settings->acceptance);
    else if (code == 0 && settings->json) {
        json_t *cases = json_array();
        for (size_t i = 0; i < table.count; i++)
            json_array_append_new(cases, case_json(&table.cases[i]));
        code = json_file_write(settings->json,
                               json_pack("{s:s, s:i, s:o}", "schema", "iobench-size",
                                         "schema_version", SCHEMA_VERSION, "cases", cases));
    } else if (code == 0 && table.count == 1)
        size_page_print(&table.cases[0]);
    else if (code == 0)
        size_page_table(&table);
    free(table.cases);
    if (code == 0)
        return COMMAND_OK;
    return code == -EINVAL || code == -ENOENT ? command_misused(invocation)
                                              : command_failed(invocation);
}

/* ---- measured storage ---- */

enum { ROUNDS = 5, CELLS_MOST = SIZING_CURVE_SIZES * SIZING_CURVE_DEPTHS, FOLDERS_DEEP = 16 };
/* Percent of the bytes read, as of a run; a larger count of all processes is not of these. */
static const double share_least = 98, share_most = 150;
static const uint64_t memory_most = 512 << 20, timeout_ns = UINT64_C(60000000000);

struct cell {
    uint32_t read_bytes, depth; /* of each rank */
    double rates[ROUNDS];       /* bytes/s of all ranks */
    double latency_s, latency_cv;
    struct stats_summary rate;
};

struct storage_survey {
    const struct size_settings *settings;
    const char *command;
    struct ranks ranks;
    struct catalog *files;
    struct plugin_choice reader;
    struct iovec memory;
    struct cell cells[CELLS_MOST];
    uint32_t cell_count;
    bool is_direct;
    bool is_local;    /* disks of the nodes; else one storage serves all */
    uint32_t sharing; /* ranks that share a storage: those of a node, or all */
    struct storage *storage;
    struct guard_counts guard;
    uint64_t bytes;      /* read by this rank */
    double left_percent; /* of the bytes of all ranks, that left storage; NAN: unknown */
    bool others_read;    /* it is unknown, as more was counted than these ranks read */
    char witness[160];   /* what counted them, or why nothing did */
    char engine[SERVICE_ENGINE_BYTES];
};

/* ---- what is measured ---- */

static int add_files(struct storage_survey *survey, const char *path, int depth);

struct file_search {
    struct storage_survey *survey;
    const char *folder;
    int depth;
};

static int add_entry(void *context, const struct store_entry *entry)
{
    const struct file_search *search = context;

    if (entry->kind == STORE_OTHER || (entry->kind == STORE_FOLDER && entry->is_link))
        return 0;
    char *path = file_format_path("%s/%s", search->folder, entry->name);
    int code = path ? add_files(search->survey, path, search->depth + 1) : -ENOMEM;
    free(path);
    return code;
}

/* Add a file, or all files of a folder. */
static int add_files(struct storage_survey *survey, const char *path, int depth)
{
    struct file_search search = {survey, path, depth};
    struct store_status status;
    int code = store_stat(path, &status);

    if (code)
        return code;
    if (status.kind == STORE_FOLDER)
        return depth == FOLDERS_DEEP ? 0 : store_list(path, add_entry, &search);
    return status.kind == STORE_FILE && status.bytes
               ? catalog_begin_shard(survey->files, path, &status, 0)
               : 0;
}

/* ---- measuring ---- */

/* Collective. Find out whether each node has a storage of its own: then figures are those of a
 * node, the mean of all. */
static int find_sharing(struct storage_survey *survey)
{
    const struct ranks_place *place = &survey->ranks.place;
    const char *path = survey->settings->measure;
    struct device_list *devices = memory_zeroed(sizeof *devices);
    /* Disks and memory of this machine serve this node alone. */
    const bool is_local = devices && store_is_local(path) &&
                          devices_of_path(&telemetry_roots_usual, path, devices) == 0 &&
                          (devices->count || devices->memory[0]) && !devices->elsewhere[0];
    double sums[] = {is_local, place->local_ranks * place->nodes != place->ranks};
    int code = ranks_sum(&survey->ranks, sums, 2);

    free(devices);
    survey->is_local = is_local;
    survey->sharing = is_local ? place->local_ranks : place->ranks;
    if (code == 0 && sums[0] > 0 && sums[0] < place->ranks)
        code = fail(EINVAL, "--measure %s: on a local disk on some nodes, but not on all",
                    survey->settings->measure);
    if (code == 0 && is_local && sums[1] > 0)
        code = fail(EINVAL, "--measure %s: local disks, but not as many ranks on each node",
                    survey->settings->measure);
    return code;
}

static int choose_reader(struct storage_survey *survey, bool direct)
{
    const struct store_ops *store = store_of(survey->settings->measure);
    const struct plugin *reader = reader_auto(store->scheme, false);

    plugin_release(&survey->reader);
    survey->reader = (struct plugin_choice){0};
    if (!reader)
        return fail(ENOTSUP, "no reader for %s", survey->settings->measure);
    int code = plugin_choose("reader", reader_registry, reader->name, &survey->reader);
    const bool has_option = reader->options && option_find(reader->options, "direct");
    survey->is_direct = reader_of(reader)->bypasses_cache || (has_option && direct);
    if (code == 0 && has_option && direct)
        code = option_set(reader->options, survey->reader.settings, "direct", "yes", "direct");
    return code;
}

/* Find the files, the cells that they have room for, memory and a reader. */
static int prepare(struct storage_survey *survey)
{
    const char *path = survey->settings->measure;
    uint64_t sizes[SIZING_CURVE_SIZES], depths[SIZING_CURVE_DEPTHS], bytes = 0;
    const struct option_list size_list = {"read-sizes", option_parse_size, 1 << 30,
                                          SIZING_CURVE_SIZES, true};
    const struct option_list depth_list = {"depths", option_parse_count, 1 << 16,
                                           SIZING_CURVE_DEPTHS, true};
    struct service_figures figures;

    survey->files = catalog_create(path, "files");
    int code = survey->files ? add_files(survey, path, 0) : -ENOMEM;
    if (code == 0 && survey->files->shard_count == 0)
        code = fail(ENODATA, "--measure %s: no files to read", path);
    if (code)
        return code;
    const int size_count = option_parse_list(&size_list, survey->settings->read_sizes, sizes);
    const int depth_count = option_parse_list(&depth_list, survey->settings->depths, depths);
    if (size_count < 0 || depth_count < 0)
        return -EINVAL;
    for (int i = 0; i < size_count; i++) {
        if (sizes[i] % 4096)
            return fail(EINVAL, "--read-sizes: %llu is not a multiple of 4 KiB",
                        (unsigned long long)sizes[i]);
        const uint64_t places = service_places(survey->files, (uint32_t)sizes[i]);
        for (int k = 0; k < depth_count && places; k++) {
            if (k && sizes[i] * depths[k] > memory_most)
                continue;
            survey->cells[survey->cell_count++] =
                (struct cell){.read_bytes = (uint32_t)sizes[i], .depth = (uint32_t)depths[k]};
            bytes = sizes[i] * depths[k] > bytes ? sizes[i] * depths[k] : bytes;
        }
    }
    if (survey->cell_count == 0)
        return fail(ENODATA, "--measure %s: no file is as large as a read", path);
    survey->memory = (struct iovec){.iov_base = memory_pages(bytes), .iov_len = bytes};
    if (!survey->memory.iov_base)
        return -ENOMEM;
    memset(survey->memory.iov_base, 0, bytes); /* page faults stay off the clock */
    const struct service one = {.catalog = survey->files,
                                .reader = &survey->reader,
                                .read_bytes = survey->cells[0].read_bytes,
                                .depth = 1,
                                .timeout_ns = timeout_ns,
                                .memory = survey->memory};
    code = choose_reader(survey, true);
    if (code == 0)
        code = service_measure(&one, &figures);
    if (code == -EINVAL && survey->is_direct) { /* the file system may refuse to bypass its cache */
        code = choose_reader(survey, false);
        if (code == 0)
            code = service_measure(&one, &figures);
    }
    snprintf(survey->engine, sizeof survey->engine, "%s", figures.engine);
    return code;
}

/* Collective. */
static int measure_and_ask(struct storage_survey *survey)
{
    struct line line = line_start();
    uint32_t order[CELLS_MOST];
    char bar[LINE_PART_BYTES], text[sizeof line.last];
    struct storage_bytes before;
    struct guard_moment start;
    const struct catalog *files = survey->files;
    const char **paths = memory_array(files->shard_count, sizeof *paths);

    for (uint32_t i = 0; paths && i < files->shard_count; i++)
        paths[i] = files->shards[i].path;
    if (paths)
        survey->storage = storage_open(&telemetry_roots_usual, paths, files->shard_count);
    free(paths);
    int code = ranks_meet(&survey->ranks, survey->storage ? 0 : -ENOMEM, NULL);
    if (code)
        return code;
    storage_read(survey->storage, &before);
    guard_begin(&start);
    for (uint32_t round = 0; round < ROUNDS && code == 0; round++) {
        random_order(survey->settings->seed, round, order, survey->cell_count);
        for (uint32_t i = 0; i < survey->cell_count && code == 0; i++) {
            snprintf(text, sizeof text, "measuring %s",
                     line_bar(bar, (uint64_t)round * survey->cell_count + i,
                              (uint64_t)ROUNDS * survey->cell_count));
            if (survey->ranks.place.rank == 0)
                line_show(&line, text);
            struct cell *cell = &survey->cells[order[i]];
            struct service_figures figures;
            const struct service service = {
                .catalog = survey->files,
                .reader = &survey->reader,
                .read_bytes = cell->read_bytes,
                .depth = cell->depth,
                .duration_ns = survey->settings->measure_ns,
                .timeout_ns = timeout_ns,
                .seed = random_hash(survey->settings->seed, round, survey->ranks.place.rank),
                .memory = survey->memory};
            code = ranks_meet(&survey->ranks, 0, NULL); /* all begin together */
            if (code == 0)
                code = service_measure(&service, &figures);
            code = ranks_meet(&survey->ranks, code, NULL);
            if (code)
                break;
            survey->bytes += figures.bytes;
            cell->rates[round] = figures.bytes_per_s * survey->sharing / survey->ranks.place.ranks;
            cell->latency_s = figures.latency_s;
            cell->latency_cv = figures.latency_cv;
            code = ranks_sum(&survey->ranks, &cell->rates[round], 1);
        }
    }
    line_clear(&line);
    guard_end(&start, &survey->guard);
    for (uint32_t i = 0; i < survey->cell_count && code == 0; i++)
        survey->cells[i].rate = stats_summarise(survey->cells[i].rates, ROUNDS);
    if (code == 0)
        code = gather_guard(&survey->ranks, &survey->guard);
    if (code)
        return code;
    /* Did the bytes leave storage? Neither reads past the page cache nor a rate that looks like a
     * disk's prove it: files have holes, and file systems read some files through the page cache
     * all the same. */
    struct storage_bytes after;
    struct storage_share share;
    storage_read(survey->storage, &after);
    storage_between(survey->storage, &before, &after, &share);
    const bool is_local = store_is_local(survey->settings->measure);
    const bool counts = !share.of_node || survey->ranks.place.local_rank == 0;
    double sums[] = {(double)survey->bytes, counts ? (double)share.bytes : 0,
                     !(share.known || share.in_memory) || !is_local, share.of_node};
    code = ranks_sum(&survey->ranks, sums, 4);
    const double percent = sums[0] > 0 ? 100 * sums[1] / sums[0] : NAN;
    survey->others_read = sums[2] <= 0 && sums[3] > 0 && percent > share_most;
    survey->left_percent = sums[2] > 0 || survey->others_read ? NAN : percent;
    snprintf(survey->witness, sizeof survey->witness, "%s",
             share.known ? share.method
             : is_local  ? share.reason
                         : "it bypasses the kernel's file systems, which do not count it");
    if (survey->others_read)
        snprintf(survey->witness, sizeof survey->witness, "others read, too: %.1f%%, %.100s",
                 percent, share.method);
    return code;
}

/* ---- the result ---- */

static struct quantity quantity_of(const struct stats_summary *rate, double scale)
{
    return quantity_of_interval(rate->median * scale, rate->low * scale, rate->high * scale);
}

enum { STARVED_BYTES = 128 };

static const char *starved_text(const struct storage_survey *survey, char *text)
{
    snprintf(
        text, STARVED_BYTES,
        "CPUs were short: a thread waited for one %.0f%% of the time, the hypervisor had %.0f%%",
        survey->guard.delayed_percent, survey->guard.stolen_percent);
    return text;
}

static void write_profile(FILE *stream, const struct storage_survey *survey)
{
    const struct cell *cells = survey->cells, *fastest = cells, *most = cells;
    const uint32_t ranks = survey->ranks.place.ranks, nodes = survey->ranks.place.nodes;
    char host[256] = "?", text[STARVED_BYTES];

    for (uint32_t i = 1; i < survey->cell_count; i++) {
        fastest = cells[i].rate.median > fastest->rate.median ? &cells[i] : fastest;
        most = cells[i].rate.median / cells[i].read_bytes > most->rate.median / most->read_bytes
                   ? &cells[i]
                   : most;
    }
    const struct quantity rate = quantity_of(&fastest->rate, 1),
                          reads = quantity_of(&most->rate, 1.0 / most->read_bytes);
    gethostname(host, sizeof host - 1);
    fputs(report_profile_mark, stream);
    fprintf(stream, "[storage]\ntitle=%s\nscope=%s\n", escape_shown(survey->settings->measure),
            survey->is_local ? "node" : "job");
    fputs("read-bytes-per-s=", stream);
    quantity_print(stream, &rate);
    fputs("\nread-iops=", stream);
    quantity_print(stream, &reads);
    fprintf(stream, "\nlatency-s=%.4g\nlatency-cv=%.3g\n", cells[0].latency_s, cells[0].latency_cv);
    for (uint32_t i = 0; i < survey->cell_count;) {
        struct sizing_curve_row row = {.read_bytes = cells[i].read_bytes};
        for (; i < survey->cell_count && cells[i].read_bytes == row.read_bytes; i++) {
            row.depths[row.count] = (double)cells[i].depth * survey->sharing;
            row.bytes_per_s[row.count++] = quantity_of(&cells[i].rate, 1);
        }
        fprintf(stream, "curve-%.0f=", row.read_bytes);
        sizing_curve_print(stream, &row);
        fputc('\n', stream);
    }
    if (survey->left_percent < share_least)
        fprintf(stream, "doubt=DEGRADED: only %.1f%% of the bytes left storage\n",
                survey->left_percent);
    else if (survey->others_read)
        fputs("doubt=how many bytes left storage is not known: others read, too\n", stream);
    else if (survey->guard.is_starved)
        fprintf(stream, "doubt=%s\n", starved_text(survey, text));
    else if (!survey->is_direct)
        fputs("doubt=measured through the page cache, which was not verified cold\n", stream);
    fprintf(stream, "source=measured by iobench %s on %s", PACKAGE_VERSION, escape_shown(host));
    fprintf(stream, ": %s", escape_shown(survey->command));
    fprintf(stream, "; %u rank%s", ranks, ranks > 1 ? "s" : "");
    if (survey->is_local && nodes > 1)
        fprintf(stream, " on %u nodes, each with its own disks: their mean", nodes);
    fprintf(stream, "; %s%s", survey->engine,
            survey->is_direct ? "; caches of servers not verified"
                              : "; through the page cache, not verified cold");
    if (isfinite(survey->left_percent))
        fprintf(stream, "; %s%.1f%% of the bytes left storage",
                survey->left_percent < share_least ? "DEGRADED: only " : "", survey->left_percent);
    fprintf(stream, " (%s)\n", survey->witness);
}

static void print_table(const struct storage_survey *survey)
{
    const struct cell *cells = survey->cells;
    char size[32], rate[WORDS_BYTES], reads[WORDS_BYTES], text[STARVED_BYTES];

    printf("Random reads of %u file%s, %s%s\n\n", survey->files->shard_count,
           survey->files->shard_count > 1 ? "s" : "", survey->engine,
           survey->is_direct ? "" : "; through the page cache: may be the speed of memory");
    printf("  %10s%10s%12s%12s%8s\n", "size", "in flight", "MB/s", "reads/s", "+-");
    for (uint32_t i = 0; i < survey->cell_count; i++) {
        const struct quantity figure = quantity_of(&cells[i].rate, 1);
        printf("  %10s%10u%12s%12s%7.1f%%\n", bytes_text(cells[i].read_bytes, size, sizeof size),
               cells[i].depth * survey->sharing, words_rate(figure.value / 1e6, rate),
               words_rate(figure.value / cells[i].read_bytes, reads), 100 * figure.spread);
    }
    if (survey->is_local && survey->ranks.place.nodes > 1)
        printf("\nOf a node's own disks: the mean of %u nodes.", survey->ranks.place.nodes);
    if (isfinite(survey->left_percent))
        printf("\n%.1f%% of the bytes left storage (%s).", survey->left_percent, survey->witness);
    else
        printf("\nHow many bytes left storage is not known: %s.", survey->witness);
    if (survey->guard.is_starved)
        printf("\nIn doubt: %s.", starved_text(survey, text));
    printf("\nMedians of %d rounds; +-: their 95%% interval. %s\n", ROUNDS,
           survey->settings->save ? "" : "--save FILE writes them as a profile.");
}

/* Return enum command_exit. */
static int size_measure(const struct invocation *invocation)
{
    struct storage_survey *survey = memory_zeroed(sizeof *survey);
    char command[4096];

    if (!survey)
        return command_failed(invocation);
    command_text(invocation, command, sizeof command);
    survey->settings = invocation->settings;
    survey->command = command;
    int code = command_join(&survey->ranks);
    command_on_interrupt(); /* after MPI has installed its handlers */
    const bool speaks = survey->ranks.place.rank == 0;
    if (code == 0 && speaks)
        code = outputs_check_path(survey->settings->save, report_profile_mark);
    if (code == 0)
        code = prepare(survey);
    if (survey->ranks.state)
        code = ranks_meet(&survey->ranks, code, NULL);
    if (code == 0)
        code = find_sharing(survey);
    if (code == 0)
        code = measure_and_ask(survey);
    if (code == 0 && speaks) {
        const char *path = survey->settings->save;
        const bool is_good = command_guard(&survey->guard) == GUARD_NOTICE;
        struct text_stream stream;
        if (!is_good || !path || strcmp(path, "-") != 0)
            print_table(survey);
        if (!is_good)
            code = fail(EPROTO, "not of the storage%s", path ? ": no profile" : "");
        else if (path && (code = text_stream_open(&stream)) == 0) {
            write_profile(stream.stream, survey);
            code = outputs_write(path, &stream);
        }
    }
    /* A figure that is not of a storage is written, but with a reason and exit status 1. */
    if (code == 0 && speaks && survey->left_percent < share_least)
        code = fail(EPROTO,
                    "DEGRADED: only %.1f%% of the bytes left storage (%s): the others are holes "
                    "of the files, or came from memory, or the file system compresses",
                    survey->left_percent, survey->witness);
    const int status = code == 0                            ? COMMAND_OK
                       : speaks || survey->ranks.is_unheard ? command_failed(invocation)
                                                            : COMMAND_FAILED;
    command_leave(&survey->ranks, code < 0);
    if (code != -ETIMEDOUT) /* the kernel may still write to it */
        free(survey->memory.iov_base);
    plugin_release(&survey->reader);
    storage_close(survey->storage);
    catalog_destroy(survey->files);
    free(survey);
    return status;
}

/* ---- options ---- */

#define FIELD(field) offsetof(struct size_settings, field)
static const struct option_spec size_options[] = {
    {"gpus", 'g', OPTION_TEXT, FIELD(gpus), "8", .metavar = "N[,N...]",
     .summary = "numbers of GPUs"},
    {"gpu", 0, OPTION_TEXT, FIELD(gpu), .metavar = "NAME", .reach = OPTION_READS,
     .summary = "v100, a100, h100 or h200; default: each of them, h200 with --simulate; a profile "
                "or its file"},
    {"rate", 0, OPTION_REAL, FIELD(rate), "0", .maximum = 1e12, .metavar = "N",
     .summary = "samples/s of one GPU, for a network other than ResNet-50"},
    {"busy", 0, OPTION_REAL, FIELD(busy_percent), "100", .minimum = 1, .maximum = 100,
     .metavar = "PERCENT", .summary = "target GPU utilisation (AU)"},
    {"sample-size", 0, OPTION_SIZE, FIELD(sample_bytes), "0",
     .summary = "sample size; 0 is that of the result, or 110 KB (ImageNet) without one"},
    {"json", 0, OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES, .implied = "-",
     .summary = "write JSON instead; to standard output without FILE"},
    {"simulate", 0, OPTION_FLAG, FIELD(simulate), "no", .section = "Simulated cluster",
     .summary = "simulate a cluster of these profiles: what it reaches, what limits it, what more "
                "of each part would bring; implied by the options below"},
    {"network", 0, OPTION_TEXT, FIELD(network), .metavar = "NAME", .reach = OPTION_READS,
     .summary = "profile of the network and its data; default: resnet50"},
    {"node", 0, OPTION_TEXT, FIELD(node), .metavar = "NAME", .reach = OPTION_READS,
     .summary = "profile of a node; default: dgx-h200"},
    {"storage", 0, OPTION_TEXT, FIELD(storage), .metavar = "NAME[,NAME...]", .reach = OPTION_READS,
     .summary = "profiles of storages to compare; default: parallel-k3000"},
    {"fabric", 0, OPTION_TEXT, FIELD(fabric), .metavar = "NAME", .reach = OPTION_READS,
     .summary = "profile of the ports for gradients, one a GPU; default: the node's"},
    {"profile", 0, OPTION_TEXT, FIELD(profile), .metavar = "FILE", .reach = OPTION_READS,
     .summary = "more figures, which override those of all other profiles"},
    {"profiles", 0, OPTION_TEXT, FIELD(profiles), .metavar = "FOLDER", .reach = OPTION_READS,
     .summary = "your own profiles, as FOLDER/storage/NAME.ini"},
    {"recording", 0, OPTION_TEXT, FIELD(recording), .metavar = "FILE", .reach = OPTION_READS,
     .summary = "your own job instead of a network, as 'iobench monitor --json=FILE' recorded it: "
                "each GPU reads what one of that job did"},
    {"recorded-gpus", 0, OPTION_COUNT, FIELD(recorded_gpus), "1", .minimum = 1, .maximum = 1000000,
     .summary = "GPUs of the job in --recording"},
    {"draws", 0, OPTION_COUNT, FIELD(draws), "100", .minimum = SIZING_DRAWS_LEAST,
     .maximum = SIZING_DRAWS_MOST,
     .summary = "simulations with other values of uncertain figures, for the interval"},
    {"seed", 0, OPTION_COUNT, FIELD(seed), "1", .summary = "random seed of the simulation"},
    {"chart", 0, OPTION_TEXT, FIELD(chart), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "chart 1 to 16,384 GPUs: .svg, .png or .pdf"},
    {"acceptance", 0, OPTION_TEXT, FIELD(acceptance), .metavar = "FILE", .reach = OPTION_WRITES,
     .implied = "-",
     .summary = "write a job file that passes where the storage suffices; to standard output "
                "without FILE"},
    {"measure", 0, OPTION_TEXT, FIELD(measure), .metavar = "PATH", .reach = OPTION_READS_SET,
     .section = "Measured storage",
     .summary = "measure how a storage serves random reads of this file, or of all files in this "
                "folder, by size and reads in flight; under mpirun by all ranks at once"},
    {"read-sizes", 0, OPTION_TEXT, FIELD(read_sizes), "4k,32k,256k,1m,4m",
     .metavar = "SIZE[,SIZE...]", .summary = "sizes of reads, multiples of 4 KiB"},
    {"depths", 0, OPTION_TEXT, FIELD(depths), "1,4,16,64,256", .metavar = "N[,N...]",
     .summary = "reads in flight of a rank"},
    {"measure-time", 0, OPTION_DURATION, FIELD(measure_ns), "200ms", .minimum = 1e-3,
     .maximum = 3600, .summary = "time of each size and depth in each of five rounds"},
    {"save", 0, OPTION_TEXT, FIELD(save), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write the profile for --storage; - is standard output instead of the table"},
    {0},
};
#undef FIELD

/* ImageNet (ILSVRC-2012): 1,281,167 JPEG files of 143 GB. */
static const double imagenet_sample_bytes = 143e9 / 1281167;

/* Return the number of nodes of the job. */
static double nodes_of(const json_t *job)
{
    return fmax(load_number(job, "engine.nodes"), 1); /* fmax() of NAN and 1 is 1 */
}

static const char *invalid_reason(const json_t *job)
{
    const char *reason = load_text(job, "invalid_reason");

    return reason ? reason : "no reason given";
}

/* Sentences that limit what the rate means. */
static json_t *warnings_of(const json_t *job)
{
    const char *limit = load_text(job, "summary.limit");
    const char *cache = load_text(job, "summary.cache_before");
    const json_t *run, *epoch;
    json_t *list = json_array();
    bool is_partly_from_memory = false; /* the rate is that of some epochs from storage */
    size_t i, k;

    json_array_foreach(load_member(job, "runs"), i, run)
    {
        json_array_foreach(load_member(run, "epochs"), k, epoch)
        {
            const char *its = load_text(epoch, "limit");
            is_partly_from_memory |= its && strcmp(its, "page_cache") == 0;
        }
    }
    if (is_partly_from_memory && limit && strcmp(limit, "storage") == 0)
        json_array_append_new(list, json_string("Some epochs were read from memory: storage alone "
                                                "may be slower than this."));
    if (nodes_of(job) < 2)
        json_array_append_new(list, json_string("Only one node was measured: to measure concurrent "
                                                "nodes, use mpirun or srun."));
    if (limit && strcmp(limit, "page_cache") == 0)
        json_array_append_new(
            list, json_string("Most bytes came from memory: storage may be slower than this."));
    else if (limit && strcmp(limit, "storage") != 0)
        json_array_append_new(
            list, json_string("Storage was not the bottleneck: it may be faster than this."));
    if (cache && strcmp(cache, "cold") != 0)
        json_array_append_new(
            list, json_string("The cache was not verified cold: this may be the speed of memory."));
    return list;
}

/* Print, or add to rows, what a job measured and what GPUs need. job: NULL without a result. */
static int size_job(const struct size_settings *settings, const json_t *job, json_t *rows)
{
    struct sizing_basis basis = {.sample_bytes = imagenet_sample_bytes, .amplification = 1};
    const struct accelerator *only = settings->gpu ? accelerator_find(settings->gpu) : NULL;
    uint64_t counts[SIZE_COUNTS_MOST];
    const int count = size_counts(settings->gpus, counts);

    if (count < 0)
        return count;
    if (job) {
        const double measured = load_number(job, "dataset.mean_record_bytes");
        const double asked = load_number(job, "summary.request_bytes");
        const double delivered = load_number(job, "summary.record_bytes");
        const double rate = load_number(job, "summary.samples_per_s");
        if (measured > 0)
            basis.sample_bytes = measured;
        if (asked > delivered && delivered > 0)
            basis.amplification = asked / delivered;
        if (rate > 0)
            basis.node_samples_per_s = rate / nodes_of(job);
    }
    if (settings->sample_bytes)
        basis.sample_bytes = (double)settings->sample_bytes;
    if (!rows) {
        const char *limit = load_text(job, "summary.limit"), *label = load_text(job, "label");
        const char *cache = load_text(job, "summary.cache_before");
        char rate[WORDS_BYTES], each[WORDS_BYTES], whom[64] = "one node";
        bytes_text((uint64_t)basis.sample_bytes, each, sizeof each);
        if (!job) {
            printf("Samples of %s; no measured result.\n", each);
        } else {
            if (label)
                printf("%s\n", escape_shown(label));
            if (nodes_of(job) > 1)
                snprintf(whom, sizeof whom, "each of %.0f concurrent nodes", nodes_of(job));
            if (!load_true(job, "valid"))
                words_printf(stdout, "", 0,
                             "The result is INVALID (%s): do not rely on the following.",
                             escape_shown(invalid_reason(job)));
            if (load_degraded(job))
                words_printf(stdout, "", 0,
                             "The result is DEGRADED (%s): do not rely on the following.",
                             escape_shown(load_degraded(job)));
            words_printf(stdout, "", 0,
                         "Measured: %s samples/s of %s to %s; cache before: %s; bottleneck: %s",
                         words_rate(basis.node_samples_per_s, rate), each, whom,
                         escape_shown(cache ? cache : "unknown"),
                         escape_shown(limit ? limit : "unknown"));
            json_t *warnings = warnings_of(job);
            for (size_t i = 0; i < json_array_size(warnings); i++)
                printf("%s\n", json_string_value(json_array_get(warnings, i)));
            json_decref(warnings);
        }
        printf("\nTo keep %s busy %g%% of the time:\n", settings->rate > 0 ? "them" : "ResNet-50",
               settings->busy_percent);
        printf("  %-11s%12s%10s%10s%8s%12s%11s\n", "", "samples/s", "MiB/s", "MB/s", "Gb/s",
               "such nodes", "GPUs/node");
    }
    /* What each GPU needs. */
    const struct accelerator own[] = {
        {.name = "own", .title = "own", .mixed_samples_per_s = settings->rate}, {0}};
    const struct accelerator *table = settings->rate > 0 ? own : accelerator_table();
    for (int i = 0; i < count; i++)
        for (const struct accelerator *gpu = table; gpu->name; gpu++) {
            const double gpus = (double)counts[i], rate = gpu->mixed_samples_per_s;
            if (table != own && only && gpu != only)
                continue;
            const struct sizing_need need =
                sizing_of(&basis, rate, gpus, settings->busy_percent / 100);
            const bool measured = basis.node_samples_per_s > 0, valid = load_true(job, "valid");
            if (!rows) {
                char name[96], samples[WORDS_BYTES], mib[WORDS_BYTES], mb[WORDS_BYTES],
                    gigabits[WORDS_BYTES], share[WORDS_BYTES], feeds[WORDS_BYTES];
                const double fed =
                    measured ? basis.node_samples_per_s / (rate * settings->busy_percent / 100)
                             : NAN;
                snprintf(name, sizeof name, "%.0f x %s", gpus, gpu->title);
                printf("  %-11s %11s %9s %9s %7s %11s %10s\n", name,
                       words_rate(need.samples_per_s, samples),
                       words_rate(need.bytes_per_s / 1048576, mib),
                       words_rate(need.bytes_per_s / 1e6, mb),
                       words_rate(need.bits_per_s / 1e9, gigabits), words_rate(need.nodes, share),
                       words_rate(fed, feeds));
                continue;
            }
            json_t *row = json_object();
            json_put_text(row, "gpu", gpu->title);
            json_object_set_new(row, "gpus", json_integer((json_int_t)gpus));
            json_put_number(row, "gpu_samples_per_s", rate);
            json_put_number(row, "busy_percent", settings->busy_percent);
            json_put_number(row, "needs_samples_per_s", need.samples_per_s);
            json_put_number(row, "needs_bytes_per_s", need.bytes_per_s);
            json_put_number(row, "nodes_like_measured", need.nodes);
            json_put_number(
                row, "node_feeds_gpus",
                measured ? basis.node_samples_per_s / rate * 100 / settings->busy_percent : NAN);
            json_put_text(row, "label", load_text(job, "label"));
            json_object_set_new(row, "valid", job ? json_boolean(valid) : json_null());
            json_put_text(row, "invalid_reason", job && !valid ? invalid_reason(job) : NULL);
            json_object_set_new(row, "degraded",
                                job ? json_boolean(load_degraded(job)) : json_null());
            json_put_text(row, "degraded_reason", load_degraded(job));
            json_put_number(row, "sample_bytes", basis.sample_bytes);
            json_put_number(row, "node_samples_per_s", measured ? basis.node_samples_per_s : NAN);
            json_put_text(row, "cache_before", load_text(job, "summary.cache_before"));
            json_put_text(row, "limit", load_text(job, "summary.limit"));
            json_object_set_new(row, "warnings", job ? warnings_of(job) : json_array());
            json_array_append_new(rows, row);
        }
    return 0;
}

static int size_run(const struct invocation *invocation)
{
    const struct size_settings *settings = invocation->settings;
    /* Return whether an option was given that only a simulation has. */
    const bool is_simulated = settings->simulate || settings->network || settings->node ||
                              settings->storage || settings->fabric || settings->profile ||
                              settings->recording || settings->chart || settings->acceptance;
    int code = 0;

    if (settings->measure) {
        if (!is_simulated && invocation->count == 0)
            return size_measure(invocation);
        fail(EINVAL, "--measure cannot be combined with a simulation: run --simulate --storage "
                     "FILE afterwards");
        return command_misused(invocation);
    }
    if (is_simulated && invocation->count == 0)
        return size_cluster(invocation);
    if (is_simulated) {
        fail(EINVAL, "a simulation takes profiles, no RESULT.json: 'iobench run --profile FILE' "
                     "writes one of its measurements");
        return command_misused(invocation);
    }
    if (settings->gpu && !accelerator_find(settings->gpu)) {
        fail(EINVAL, "--gpu: %s (or use --rate)", fail_reason());
        return command_misused(invocation);
    }
    json_t *document = NULL, *rows = settings->json ? json_array() : NULL;

    if (invocation->count) {
        document = load_document(invocation->operands[0]);
        if (!document) {
            json_decref(rows);
            return command_failed(invocation);
        }
        const json_t *jobs = json_object_get(document, "jobs");
        for (size_t i = 0; i < json_array_size(jobs) && code == 0; i++) {
            if (i && !rows)
                putchar('\n');
            code = size_job(settings, json_array_get(jobs, i), rows);
        }
    } else {
        code = size_job(settings, NULL, rows);
    }
    json_decref(document);
    if (code) {
        json_decref(rows);
        return command_misused(invocation);
    }
    if (rows)
        return json_file_write(settings->json, rows) ? command_failed(invocation) : COMMAND_OK;
    printf("\nSamples/s of one GPU: %s\nGb/s is payload; leave room for protocols and for the "
           "exchange "
           "of gradients.\n",
           settings->rate > 0 ? "as given by --rate."
                              : "best published for ResNet-50 in mixed precision.");
    return COMMAND_OK;
}

const struct command command_size = {
    .name = "size",
    .summary = "what N GPUs need from storage, or how many a storage feeds",
    .operands = "[RESULT.json]",
    .operands_maximum = 1,
    .description =
        "Computes the samples/s, bytes/s and network bandwidth that keep a number of GPUs busy, "
        "and how many nodes like those measured that takes. Nodes scale only as far as storage and "
        "network do: measure with as many as there will be, with mpirun or srun. Storage that "
        "feeds fewer GPUs per node than a node has is too slow. With --simulate, no result is "
        "needed: a cluster of profiles ('iobench list profiles') is simulated, batch by batch. "
        "With --measure, a storage is measured for such a profile.",
    .examples = "iobench size --gpus 64 --gpu h200\tneeds of 64 H200\n"
                "iobench size result.json --gpus 64\tand how many the measured storage feeds\n"
                "iobench size --simulate --gpus 8,64,512 --storage nfs-100g,nvme-9550\ttwo "
                "storages compared\n"
                "iobench size --simulate --recording job.jsonl --recorded-gpus 8 --gpus 64\ta job "
                "of your own on 64 GPUs\n"
                "iobench size --measure /mnt/set --save own.ini\tmeasure a storage, for --simulate "
                "--storage own.ini\n",
    .options = size_options,
    .settings_size = sizeof(struct size_settings),
    .operands_exist = true,
    .operands_reach = {OPTION_READS, OPTION_READS},
    .is_confined = true,
    .run = size_run,
};
