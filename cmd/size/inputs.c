/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/inputs.h"

#include "base/fail.h"
#include "base/nearest.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off: one row each */
const struct sizing_input_row sizing_input_table[SIZING_INPUT_COUNT] = {
    [SIZING_GPU_RATE] = {"gpu", "samples-per-s", 0, "samples/s of one GPU fed from memory"},
    [SIZING_BATCH] = {"network", "batch", 256, "samples of a GPU in a step"},
    [SIZING_GRADIENT_BYTES] = {"network", "gradient-bytes", 0, "gradients of a step, one rank"},
    [SIZING_SAMPLE_BYTES] = {"data", "sample-bytes", 114660, "mean size of a sample"},
    [SIZING_SAMPLE_SD_BYTES] = {"data", "sample-sd-bytes", 0, "standard deviation of that"},
    [SIZING_SAMPLES] = {"data", "samples", 1281167, "samples of an epoch, all nodes"},
    [SIZING_READ_BYTES] = {"data", "read-bytes", 1048576, "mean size of a read"},
    [SIZING_AMPLIFICATION] = {"data", "amplification", 1, "bytes read over bytes delivered"},
    [SIZING_DECODE_S] = {"cpu", "decode-core-s", 0, "CPU time of one core to decode a sample"},
    [SIZING_LOAD_S] = {"cpu", "load-core-s", 0, "CPU time of the I/O thread for a sample"},
    [SIZING_GPUS] = {"node", "gpus", 8, "GPUs of a node"},
    [SIZING_CORES] = {"node", "cores", 64, "CPU cores of a node"},
    [SIZING_THREADS] = {"node", "decode-threads", 0, "decode threads; 0: one per core"},
    [SIZING_CACHE_BYTES] = {"node", "cache-bytes", 0, "page cache of a node"},
    [SIZING_CACHE_RATE] = {"node", "cache-bytes-per-s", 20e9, "bytes/s from the page cache"},
    [SIZING_RECORD_BYTES] = {"node", "record-bytes", 4e9, "memory for records in flight"},
    [SIZING_DEPTH] = {"node", "depth", 256, "reads in flight of a node"},
    [SIZING_PREFETCH] = {"node", "prefetch", 2, "batches ready ahead"},
    [SIZING_START_S] = {"node", "start-s", 0, "from the start of an epoch to its first read"},
    [SIZING_PORT_RATE] = {"node", "storage-port-bytes-per-s", 0, "port to storage; 0: unlimited"},
    [SIZING_PORT_SHARED] = {"node", "port-is-shared", 0, "1: gradients use the storage port"},
    [SIZING_FABRIC_RATE] = {"node", "fabric-port-bytes-per-s", 0, "ports of a node for gradients"},
    [SIZING_FABRIC_LATENCY_S] = {"fabric", "latency-s", 2e-6, "latency of a message"},
    [SIZING_FABRIC_EFFICIENCY] = {"fabric", "efficiency", 0.85,
                                  "share of the ports that a collective gets"},
    [SIZING_STORAGE_RATE] = {"storage", "read-bytes-per-s", 0, "bytes/s read, all nodes"},
    [SIZING_STORAGE_WRITE_RATE] = {"storage", "write-bytes-per-s", 0, "bytes/s written, all nodes"},
    [SIZING_STORAGE_READS] = {"storage", "read-iops", 0, "reads/s, all nodes; 0: unlimited"},
    [SIZING_STORAGE_LATENCY_S] = {"storage", "latency-s", 0, "latency of a read without a queue"},
    [SIZING_STORAGE_LATENCY_CV] = {"storage", "latency-cv", 0, "deviation of that over its mean"},
    [SIZING_STORAGE_CREDIT_S] = {"storage", "credit-s", 0,
                                 "unused time that a throttle makes up; 0: not throttled"},
    [SIZING_STORAGE_CLIENT_RATE] = {"storage", "client-bytes-per-s", 0,
                                    "bytes/s of one node; 0: unlimited"},
    [SIZING_SERVER_CACHE_BYTES] = {"storage", "cache-bytes", 0,
                                   "memory of the servers that caches data"},
    [SIZING_SERVER_CACHE_RATE] = {"storage", "cache-bytes-per-s", 0, "bytes/s from that"},
    [SIZING_EPOCHS] = {"job", "epochs", 3, "epochs simulated"},
    [SIZING_SEQUENTIAL] = {"job", "is-sequential", 0, "1: each epoch reads in the same order"},
    [SIZING_FIXED] = {"job", "partition-is-fixed", 0,
                      "1: a node's share is the same in each epoch"},
    [SIZING_BUFFER] = {"job", "buffer-samples", 0, "samples of a shuffle buffer"},
    [SIZING_UNDRAWN] = {"job", "undrawn-samples", 0,
                        "samples of the order after the last one of a limited epoch"},
    [SIZING_WINDOW] = {"job", "window-samples", 0, "samples of the look-ahead window"},
    [SIZING_CHECKPOINT_BYTES] = {"checkpoint", "bytes", 0, "size of a checkpoint"},
    [SIZING_CHECKPOINT_INTERVAL_S] = {"checkpoint", "interval-s", 0,
                                      "between checkpoints; 0: Young's"},
};
/* clang-format on */

static const char curve_prefix[] = "curve-";

/* Default share of a node's memory that caches data, without cache-bytes=. */
static const double cache_share = 0.75;

void sizing_inputs_start(struct sizing_inputs *inputs)
{
    *inputs = (struct sizing_inputs){0};
    for (int i = 0; i < SIZING_INPUT_COUNT; i++)
        inputs->of[i].value = sizing_input_table[i].fallback;
}

static bool is_listed(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Keys that describe a profile, rather than being inputs of the model. */
static const char *const descriptions[] = {"title",     "source",     "doubt",
                                           "precision", "parameters", NULL};
static const char *const model_sections[] = {"network", "data", "cpu",        "node", "fabric",
                                             "storage", "job",  "checkpoint", "gpu",  NULL};
/* Sections that other readers of a profile know; and those of [form NAME]. */
static const char *const other_sections[] = {"peak", "workload", "run", NULL};

static int apply_entry(struct sizing_inputs *inputs, const struct ini *profile, const char *section,
                       const struct ini_entry *entry)
{
    struct quantity quantity;

    assert(entry->key);
    if (is_listed(entry->key, descriptions))
        return 0;
    if (strcmp(section, "storage") == 0 && strcmp(entry->key, "scope") == 0 && entry->value) {
        inputs->is_node_storage = strcmp(entry->value, "node") == 0;
        if (!inputs->is_node_storage && strcmp(entry->value, "job") != 0)
            return fail(EINVAL, "%s:%u: scope is 'job' or 'node', not '%s'", profile->path,
                        entry->line, entry->value);
        return 0;
    }
    if (strcmp(section, "storage") == 0 &&
        strncmp(entry->key, curve_prefix, sizeof curve_prefix - 1) == 0) {
        char *end; /* "curve-65536=1:12e6, 4:40e6" */
        const double read_bytes = strtod(entry->key + sizeof curve_prefix - 1, &end);
        if (*end || !entry->value || sizing_curve_parse(&inputs->curve, read_bytes, entry->value))
            return fail(EINVAL,
                        "%s:%u: %s: expected rates by ascending depth, as in curve-65536=1:12e6 "
                        "+-5%%, 4:40e6; at most %d sizes and %d depths",
                        profile->path, entry->line, entry->key, SIZING_CURVE_SIZES,
                        SIZING_CURVE_DEPTHS);
        return 0;
    }
    if (!entry->value || quantity_parse(entry->value, &quantity))
        return fail(EINVAL, "%s:%u: %s: expected a number, as in 14e9 or 14e9 +-10%%",
                    profile->path, entry->line, entry->key);
    int row = 0;
    while (row < SIZING_INPUT_COUNT && (strcmp(sizing_input_table[row].section, section) != 0 ||
                                        strcmp(sizing_input_table[row].key, entry->key) != 0))
        row++;
    if (strcmp(section, "node") == 0 && strcmp(entry->key, "memory-bytes") == 0) {
        quantity.value *= cache_share;
        row = SIZING_CACHE_BYTES;
    }
    if (strcmp(section, "fabric") == 0 && strcmp(entry->key, "port-bytes-per-s") == 0)
        return 0; /* of one port: sizing_inputs_apply() multiplies it by the node's ports */
    if (row == SIZING_INPUT_COUNT)
        return fail(EINVAL, "%s:%u: unknown figure '%s' of [%s]", profile->path, entry->line,
                    entry->key, section);
    inputs->of[row] = quantity;
    return 0;
}

int sizing_inputs_apply(struct sizing_inputs *inputs, const struct ini *profile,
                        const char *network)
{
    int code = 0;

    for (size_t i = 0; i < profile->section_count && code == 0; i++) {
        const struct ini_section *section = &profile->sections[i];
        const bool is_rate = network && strcmp(section->name, network) == 0;
        if (!is_rate && !is_listed(section->name, model_sections)) {
            if (network || is_listed(section->name, other_sections) ||
                strncmp(section->name, "form ", 5) == 0)
                continue; /* it may be another network's */
            struct nearest nearest = nearest_start(section->name);
            for (int k = 0; k < SIZING_INPUT_COUNT; k++)
                if (k == 0 ||
                    strcmp(sizing_input_table[k].section, sizing_input_table[k - 1].section) != 0)
                    nearest_offer(&nearest, sizing_input_table[k].section);
            return fail(EINVAL, "%s: unknown section [%s]%s", profile->path, section->name,
                        nearest_hint(&nearest));
        }
        for (size_t k = 0; k < section->count && code == 0; k++)
            code = apply_entry(inputs, profile, is_rate ? "gpu" : section->name,
                               &profile->entries[section->first + k]);
    }
    const char *text = profiles_text(profile, "fabric", "port-bytes-per-s");
    struct quantity port;
    if (code || !text)
        return code;
    if (quantity_parse(text, &port))
        return fail(EINVAL, "%s: port-bytes-per-s: expected a number", profile->path);
    /* A fabric has one port per GPU, so a node's rate is the port's times its GPUs. */
    port.value *= inputs->of[SIZING_GPUS].value;
    inputs->of[SIZING_FABRIC_RATE] = port;
    return 0;
}

struct sizing_plant sizing_plant_of(const struct sizing_inputs *inputs, double nodes,
                                    struct random *random)
{
    static const int of_storage[] = {SIZING_STORAGE_RATE, SIZING_STORAGE_WRITE_RATE,
                                     SIZING_STORAGE_READS};
    struct sizing_plant plant = {.nodes = nodes,
                                 .curve = inputs->curve.count ? &inputs->curve : NULL,
                                 .storages = inputs->is_node_storage ? nodes : 1};

    assert(nodes > 0);
    for (int i = 0; i < SIZING_INPUT_COUNT; i++) {
        const struct quantity *quantity = &inputs->of[i];
        plant.of[i] = quantity->value;
        if (random && quantity->spread > 0)
            plant.of[i] *= exp(quantity_deviation(quantity) * random_normal(random));
    }
    for (size_t i = 0; i < sizeof of_storage / sizeof *of_storage; i++)
        plant.of[of_storage[i]] *= plant.storages;
    if (random && inputs->curve.count)
        plant.curve_deviations = random_normal(random);
    return plant;
}
