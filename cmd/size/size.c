/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench size: computes what N GPUs need from storage, and how many a measured
 * storage feeds.
 */
#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/size/size.h"
#include "report/load.h"
#include "report/sizing.h"
#include "report/words.h"
#include "cmd/size/answer.h"
#include "trainer/accelerator.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* What the rate is not, in sentences. */
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

static void print_basis(const struct sizing_basis *basis, const json_t *job)
{
    const char *limit = load_text(job, "summary.limit"), *label = load_text(job, "label");
    const char *cache = load_text(job, "summary.cache_before");
    char rate[WORDS_BYTES], each[WORDS_BYTES], whom[64] = "one node";

    bytes_text((uint64_t)basis->sample_bytes, each, sizeof each);
    if (!job) {
        printf("Samples of %s; no measured result.\n", each);
        return;
    }
    if (label)
        printf("%s\n", escape_shown(label));
    if (nodes_of(job) > 1)
        snprintf(whom, sizeof whom, "each of %.0f concurrent nodes", nodes_of(job));
    if (!load_true(job, "valid"))
        words_printf(stdout, "", 0, "The result is INVALID (%s): do not rely on the following.",
                     escape_shown(invalid_reason(job)));
    if (load_degraded(job))
        words_printf(stdout, "", 0, "The result is DEGRADED (%s): do not rely on the following.",
                     escape_shown(load_degraded(job)));
    words_printf(stdout, "", 0,
                 "Measured: %s samples/s of %s to %s; cache before: %s; bottleneck: %s",
                 words_rate(basis->node_samples_per_s, rate), each, whom,
                 escape_shown(cache ? cache : "unknown"), escape_shown(limit ? limit : "unknown"));
    json_t *warnings = warnings_of(job);
    for (size_t i = 0; i < json_array_size(warnings); i++)
        printf("%s\n", json_string_value(json_array_get(warnings, i)));
    json_decref(warnings);
}

/* Print what a GPU needs, or add it to rows. job: NULL without a result. */
static void show_gpu(const struct size_settings *settings, const struct sizing_basis *basis,
                     const json_t *job, const char *title, double gpu_rate, double gpus,
                     json_t *rows)
{
    const struct sizing_need need = sizing_of(basis, gpu_rate, gpus, settings->busy_percent / 100);
    const bool measured = basis->node_samples_per_s > 0, valid = load_true(job, "valid");

    if (!rows) {
        char name[96], samples[WORDS_BYTES], mib[WORDS_BYTES], mb[WORDS_BYTES],
            gigabits[WORDS_BYTES], share[WORDS_BYTES], feeds[WORDS_BYTES];
        const double fed =
            measured ? basis->node_samples_per_s / (gpu_rate * settings->busy_percent / 100) : NAN;
        snprintf(name, sizeof name, "%.0f x %s", gpus, title);
        printf("  %-11s %11s %9s %9s %7s %11s %10s\n", name,
               words_rate(need.samples_per_s, samples), words_rate(need.bytes_per_s / 1048576, mib),
               words_rate(need.bytes_per_s / 1e6, mb), words_rate(need.bits_per_s / 1e9, gigabits),
               words_rate(need.nodes, share), words_rate(fed, feeds));
        return;
    }
    json_t *row = json_object();
    json_put_text(row, "gpu", title);
    json_object_set_new(row, "gpus", json_integer((json_int_t)gpus));
    json_put_number(row, "gpu_samples_per_s", gpu_rate);
    json_put_number(row, "busy_percent", settings->busy_percent);
    json_put_number(row, "needs_samples_per_s", need.samples_per_s);
    json_put_number(row, "needs_bytes_per_s", need.bytes_per_s);
    json_object_set_new(row, "nodes_like_measured",
                        measured ? json_number(need.nodes) : json_null());
    json_object_set_new(
        row, "node_feeds_gpus",
        measured ? json_number(basis->node_samples_per_s / gpu_rate * 100 / settings->busy_percent)
                 : json_null());
    json_put_text(row, "label", load_text(job, "label"));
    json_object_set_new(row, "valid", job ? json_boolean(valid) : json_null());
    json_put_text(row, "invalid_reason", job && !valid ? invalid_reason(job) : NULL);
    json_object_set_new(row, "degraded", job ? json_boolean(load_degraded(job)) : json_null());
    json_put_text(row, "degraded_reason", load_degraded(job));
    json_put_number(row, "sample_bytes", basis->sample_bytes);
    json_put_number(row, "node_samples_per_s", measured ? basis->node_samples_per_s : NAN);
    json_put_text(row, "cache_before", load_text(job, "summary.cache_before"));
    json_put_text(row, "limit", load_text(job, "summary.limit"));
    json_object_set_new(row, "warnings", job ? warnings_of(job) : json_array());
    json_array_append_new(rows, row);
}

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
        print_basis(&basis, job);
        printf("\nTo keep %s busy %g%% of the time:\n", settings->rate > 0 ? "them" : "ResNet-50",
               settings->busy_percent);
        printf("  %-11s%12s%10s%10s%8s%12s%11s\n", "", "samples/s", "MiB/s", "MB/s", "Gb/s",
               "such nodes", "GPUs/node");
    }
    for (int i = 0; i < count; i++) {
        const double gpus = (double)counts[i];
        const struct accelerator *gpu = accelerator_table();
        if (settings->rate > 0)
            show_gpu(settings, &basis, job, "own", settings->rate, gpus, rows);
        for (; gpu->name && !(settings->rate > 0); gpu++)
            if (!only || gpu == only)
                show_gpu(settings, &basis, job, gpu->title, gpu->mixed_samples_per_s, gpus, rows);
    }
    return 0;
}

/* Options of a simulation ask for one. */
static bool is_simulated(const struct size_settings *settings)
{
    return settings->simulate || settings->network || settings->node || settings->storage ||
           settings->fabric || settings->profile || settings->recording || settings->chart ||
           settings->acceptance;
}

static int size_run(const struct invocation *invocation)
{
    const struct size_settings *settings = invocation->settings;
    int code = 0;

    if (settings->measure) {
        if (!is_simulated(settings) && invocation->count == 0)
            return size_measure(invocation);
        fail(EINVAL, "--measure goes alone: then --simulate --storage FILE");
        return command_misused(invocation);
    }
    if (is_simulated(settings) && invocation->count == 0)
        return size_cluster(invocation);
    if (is_simulated(settings)) {
        fail(EINVAL, "a simulation takes profiles, no RESULT.json: 'iobench run --profile FILE' "
                     "makes one of what it measures");
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
