/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/model.h"

#include "base/fail.h"
#include "base/gradients.h"
#include "base/memory.h"
#include "base/option.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SIZING_NODES_MOST = 32, SIZING_PIECES_MOST = 64, SIZING_STEPS_MOST = 4096 };

/* ---- curve ---- */

enum { POINT_BYTES = 64 };

/* ---- text ---- */

static const char *skip_space(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

int sizing_curve_parse(struct sizing_curve *curve, double read_bytes, const char *text)
{
    struct sizing_curve_row row = {.read_bytes = read_bytes};
    unsigned at = 0;

    if (!(read_bytes >= 1 && read_bytes <= 1e12))
        return -EINVAL;
    for (const char *point = skip_space(text); *point;) {
        const size_t length = strcspn(point, ",");
        const unsigned i = row.count++;
        char copy[POINT_BYTES], *end; /* "DEPTH:RATE +-P%" */
        if (length >= sizeof copy || i == SIZING_CURVE_DEPTHS)
            return -EINVAL;
        memcpy(copy, point, length);
        copy[length] = '\0';
        row.depths[i] = strtod(copy, &end);
        if (end == copy || *end != ':' || !(row.depths[i] >= 1 && row.depths[i] <= 1e9) ||
            quantity_parse(end + 1, &row.bytes_per_s[i]) || !(row.bytes_per_s[i].value > 0) ||
            (i && row.depths[i] <= row.depths[i - 1]))
            return -EINVAL;
        point = skip_space(point + length + (point[length] == ','));
    }
    while (at < curve->count && curve->rows[at].read_bytes < read_bytes)
        at++;
    const int replaces = at < curve->count && curve->rows[at].read_bytes <= read_bytes;
    if (row.count == 0 || (curve->count == SIZING_CURVE_SIZES && !replaces))
        return -EINVAL;
    if (!replaces)
        memmove(&curve->rows[at + 1], &curve->rows[at],
                (curve->count++ - at) * sizeof curve->rows[0]);
    curve->rows[at] = row;
    return 0;
}

void sizing_curve_print(FILE *stream, const struct sizing_curve_row *row)
{
    for (unsigned i = 0; i < row->count; i++) {
        fprintf(stream, "%s%.0f:", i ? ", " : "", row->depths[i]);
        quantity_print(stream, &row->bytes_per_s[i]);
    }
}

/* ---- rates ---- */

/* Return the logarithm of a point that lies `share` of the way between two. */
static double between(double low, double high, double share)
{
    return low + share * (high - low);
}

static double share_of(double value, double low, double high)
{
    return log(value / low) / log(high / low);
}

static double log_rate(const struct quantity *rate, double deviations)
{
    return log(rate->value) + quantity_deviation(rate) * deviations;
}

/* Return the logarithm of a row's rate. */
static double row_rate(const struct sizing_curve_row *row, double depth, double deviations)
{
    const unsigned last = row->count - 1;
    unsigned at = 0;

    assert(row->count > 0);
    if (depth <= row->depths[0])
        return log_rate(&row->bytes_per_s[0], deviations) + log(depth / row->depths[0]);
    if (depth >= row->depths[last])
        return log_rate(&row->bytes_per_s[last], deviations);
    while (depth > row->depths[at + 1])
        at++;
    return between(log_rate(&row->bytes_per_s[at], deviations),
                   log_rate(&row->bytes_per_s[at + 1], deviations),
                   share_of(depth, row->depths[at], row->depths[at + 1]));
}

double sizing_curve_rate(const struct sizing_curve *curve, double read_bytes, double depth,
                         double deviations)
{
    const struct sizing_curve_row *rows = curve->rows;
    unsigned at = 0;

    if (curve->count == 0)
        return INFINITY;
    if (read_bytes <= rows[0].read_bytes)
        return exp(row_rate(&rows[0], depth, deviations)) * read_bytes / rows[0].read_bytes;
    if (read_bytes >= rows[curve->count - 1].read_bytes)
        return exp(row_rate(&rows[curve->count - 1], depth, deviations));
    while (read_bytes > rows[at + 1].read_bytes)
        at++;
    return exp(between(row_rate(&rows[at], depth, deviations),
                       row_rate(&rows[at + 1], depth, deviations),
                       share_of(read_bytes, rows[at].read_bytes, rows[at + 1].read_bytes)));
}

double sizing_curve_best(const struct sizing_curve *curve, double read_bytes, double deviations)
{
    double best = curve->count ? 0 : INFINITY;

    for (unsigned i = 0; i < curve->count; i++)
        for (unsigned k = 0; k < curve->rows[i].count; k++)
            best = fmax(best,
                        sizing_curve_rate(curve, read_bytes, curve->rows[i].depths[k], deviations));
    return best;
}

/* ---- inputs ---- */

/* clang-format off: one row each */
const struct sizing_input_row sizing_input_table[SIZING_INPUT_COUNT] = {
    [SIZING_GPU_RATE] = {"gpu", "samples-per-s", 0, "samples/s of one GPU fed from memory"},
    [SIZING_BATCH] = {"network", "batch", 256, "samples of a GPU in a step"},
    [SIZING_GRADIENT_BYTES] = {"network", "gradient-bytes", 0, "gradients of a step, one rank"},
    [SIZING_SAMPLE_BYTES] = {"data", "sample-bytes", 114660, "mean size of a sample"},
    [SIZING_SAMPLE_SD_BYTES] = {"data", "sample-sd-bytes", 0, "deviation of the sample size"},
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
    [SIZING_STORAGE_LATENCY_CV] = {"storage", "latency-cv", 0, "deviation of latency over mean"},
    [SIZING_STORAGE_CREDIT_S] = {"storage", "credit-s", 0,
                                 "unused time that a throttle makes up; 0: not throttled"},
    [SIZING_STORAGE_CLIENT_RATE] = {"storage", "client-bytes-per-s", 0,
                                    "bytes/s of one node; 0: unlimited"},
    [SIZING_SERVER_CACHE_BYTES] = {"storage", "cache-bytes", 0,
                                   "memory of the servers that caches data"},
    [SIZING_SERVER_CACHE_RATE] = {"storage", "cache-bytes-per-s", 0, "bytes/s from that memory"},
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
                                      "interval between checkpoints; 0: Young's"},
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

/* ---- rates ---- */

const char *const sizing_part_names[SIZING_PART_COUNT] = {
    [SIZING_PART_GPU] = "GPUs",           [SIZING_PART_STORAGE] = "storage bandwidth",
    [SIZING_PART_READS] = "storage IOPS", [SIZING_PART_CLIENT] = "node's storage port",
    [SIZING_PART_DEPTH] = "read latency", [SIZING_PART_CORES] = "CPU cores",
    [SIZING_PART_LOADER] = "I/O thread",
};

/* Share of a step in the backward pass, which overlaps the gradient exchange: two of three
 * multiply-accumulates. */
static const double backward_share = 2.0 / 3;

/* Llama 3, 16,384 GPUs: 419 unexpected stops in 54 days (arXiv 2407.21783). */
static const double gpu_mtbf_s = 54.0 * 86400 * 16384 / 419;

static double positive_or_infinite(double value)
{
    return value > 0 ? value : INFINITY;
}

static double compute_s(const struct sizing_plant *plant)
{
    const double rate = plant->of[SIZING_GPU_RATE];

    return rate > 0 ? plant->of[SIZING_BATCH] / rate : 0;
}

/* Through a node's ports each way. Gradients are reduced inside a node first, and sent once. */
static double exchanged_bytes(const struct sizing_plant *plant)
{
    return gradients_sent_bytes(plant->of[SIZING_GRADIENT_BYTES], plant->nodes);
}

double sizing_exchange_s(const struct sizing_plant *plant)
{
    const double bytes = exchanged_bytes(plant), nodes = plant->nodes;
    const double rate = plant->of[SIZING_FABRIC_RATE] * plant->of[SIZING_FABRIC_EFFICIENCY];

    if (nodes < 2 || bytes <= 0 || rate <= 0)
        return 0;
    return bytes / rate + 2 * ceil(log2(nodes)) * plant->of[SIZING_FABRIC_LATENCY_S];
}

double sizing_hidden_exchange_rate(const struct sizing_plant *plant)
{
    const double hidden_s = compute_s(plant) * backward_share;

    return hidden_s > 0 ? exchanged_bytes(plant) / hidden_s : 0;
}

double sizing_step_s(const struct sizing_plant *plant)
{
    const double compute = compute_s(plant);

    return fmax(compute, compute * (1 - backward_share) + sizing_exchange_s(plant));
}

/* Hit rate of an LRU cache that holds a share f of a node's data. A cyclic scan hits always or
 * never. In a new random order a sample hits if the samples used since its last use fit the cache:
 * for two independent positions P((1 - u)(1 - v) >= 1 - f) = f + (1 - f) ln(1 - f).
 *
 * If nodes draw new shares every epoch, a cache hits with at most its share of the whole data, and
 * holds no more than the node has read so far. */
double sizing_hits(const struct sizing_plant *plant, unsigned epoch)
{
    const double bytes = plant->of[SIZING_SAMPLES] * plant->of[SIZING_SAMPLE_BYTES];
    const double nodes = plant->nodes;
    double share = plant->of[SIZING_CACHE_BYTES] / bytes;

    if (epoch == 0 || !(bytes > 0))
        return 0;
    if (nodes >= 2 && !(plant->of[SIZING_FIXED] > 0))
        return fmin(fmin(share, 1), 1 - pow(1 - 1 / nodes, epoch));
    share *= nodes;
    if (share >= 1)
        return 1;
    return plant->of[SIZING_SEQUENTIAL] > 0 || share <= 0 ? 0 : share + (1 - share) * log1p(-share);
}

/* Return the servers' bytes/s, from disk and from their memory. */
static double server_rate(const struct sizing_plant *plant, unsigned epoch)
{
    double disks = positive_or_infinite(plant->of[SIZING_STORAGE_RATE]);
    const double memory = plant->of[SIZING_SERVER_CACHE_RATE];
    const double bytes = plant->of[SIZING_SAMPLES] * plant->of[SIZING_SAMPLE_BYTES];

    if (plant->curve) /* the most that it gives at any depth */
        disks = fmin(disks,
                     plant->storages * sizing_curve_best(plant->curve, plant->of[SIZING_READ_BYTES],
                                                         plant->curve_deviations));
    if (epoch == 0 || memory <= disks || bytes <= 0)
        return disks;
    const double hits = fmin(1, plant->of[SIZING_SERVER_CACHE_BYTES] / bytes);
    return 1 / (hits / memory + (1 - hits) / disks);
}

static double reads_rate(const struct sizing_plant *plant)
{
    return positive_or_infinite(plant->of[SIZING_STORAGE_READS]) * plant->of[SIZING_READ_BYTES];
}

/* Reads get half of a shared port while gradients use it. */
static double client_rate(const struct sizing_plant *plant)
{
    double port = positive_or_infinite(plant->of[SIZING_PORT_RATE]);
    const double step = sizing_step_s(plant);

    if (plant->of[SIZING_PORT_SHARED] > 0 && step > 0)
        port *= 1 - fmin(1, sizing_exchange_s(plant) / step) / 2;
    return fmin(port, positive_or_infinite(plant->of[SIZING_STORAGE_CLIENT_RATE]));
}

/* A measured curve knows more than the latency of one read. */
static double depth_rate(const struct sizing_plant *plant)
{
    const double latency = plant->of[SIZING_STORAGE_LATENCY_S];

    if (plant->curve) /* of all nodes together, with the reads that equal storages share */
        return plant->storages *
               sizing_curve_rate(plant->curve, plant->of[SIZING_READ_BYTES],
                                 plant->of[SIZING_DEPTH] * plant->nodes / plant->storages,
                                 plant->curve_deviations) /
               plant->nodes;
    return latency > 0 ? plant->of[SIZING_DEPTH] * plant->of[SIZING_READ_BYTES] / latency
                       : INFINITY;
}

double sizing_node_bytes_per_s(const struct sizing_plant *plant, unsigned epoch)
{
    const double shared = fmin(server_rate(plant, epoch), reads_rate(plant)) / plant->nodes;

    return fmin(fmin(shared, client_rate(plant)), depth_rate(plant));
}

static double sizing_threads(const struct sizing_plant *plant)
{
    return plant->of[SIZING_THREADS] > 0 ? plant->of[SIZING_THREADS]
                                         : ceil(plant->of[SIZING_CORES]);
}

/* T decode threads on C cores that also run the I/O thread. */
double sizing_decode_s(const struct sizing_plant *plant)
{
    const double decode = plant->of[SIZING_DECODE_S], load = plant->of[SIZING_LOAD_S];

    return fmax(decode / sizing_threads(plant), (decode + load) / plant->of[SIZING_CORES]);
}

double sizing_checkpoint_s(const struct sizing_plant *plant)
{
    const double ports = plant->nodes * positive_or_infinite(plant->of[SIZING_PORT_RATE]);
    const double rate = fmin(positive_or_infinite(plant->of[SIZING_STORAGE_WRITE_RATE]), ports);

    return plant->of[SIZING_CHECKPOINT_BYTES] / rate;
}

double sizing_mtbf_s(const struct sizing_plant *plant)
{
    return gpu_mtbf_s / (plant->nodes * plant->of[SIZING_GPUS]);
}

double sizing_checkpoint_interval_s(const struct sizing_plant *plant)
{
    if (plant->of[SIZING_CHECKPOINT_INTERVAL_S] > 0)
        return plant->of[SIZING_CHECKPOINT_INTERVAL_S];
    return sqrt(2 * sizing_checkpoint_s(plant) * sizing_mtbf_s(plant));
}

struct sizing_rates sizing_rates(const struct sizing_plant *plant, unsigned epoch)
{
    const double nodes = plant->nodes, misses = 1 - sizing_hits(plant, epoch);
    const double sample = plant->of[SIZING_SAMPLE_BYTES] * plant->of[SIZING_AMPLIFICATION];
    const double step = sizing_step_s(plant), read = sample * misses;
    struct sizing_rates rates;

    assert(nodes > 0 && misses >= 0 && misses <= 1);
    rates.of[SIZING_PART_GPU] =
        step > 0 ? nodes * plant->of[SIZING_GPUS] * plant->of[SIZING_BATCH] / step : INFINITY;
    rates.of[SIZING_PART_STORAGE] = server_rate(plant, epoch) / read;
    rates.of[SIZING_PART_READS] = reads_rate(plant) / read;
    rates.of[SIZING_PART_CLIENT] = nodes * client_rate(plant) / read;
    rates.of[SIZING_PART_DEPTH] = nodes * depth_rate(plant) / read;
    rates.of[SIZING_PART_CORES] = nodes / sizing_decode_s(plant);
    rates.of[SIZING_PART_LOADER] = nodes / plant->of[SIZING_LOAD_S];
    rates.limit = rates.next = SIZING_PART_COUNT;
    for (int i = 0; i < SIZING_PART_COUNT; i++)
        if (rates.limit == SIZING_PART_COUNT || rates.of[i] < rates.of[rates.limit]) {
            rates.next = rates.limit;
            rates.limit = (enum sizing_part)i;
        } else if (rates.next == SIZING_PART_COUNT || rates.of[i] < rates.of[rates.next]) {
            rates.next = (enum sizing_part)i;
        }
    return rates;
}

/* ---- simulation ---- */

enum { RING_MOST = 1 << 14, EPOCHS_FOLLOWED = 4 };

/* One node. Times are seconds since the start of the epoch. */
struct followed_node {
    struct random random;
    double read_free;       /* when storage can begin the next read */
    double io_free;         /* when the I/O thread can look after it */
    double decode_free;     /* when decode threads can begin the next piece */
    double cores_free;      /* when the cores have done all that was asked of them */
    double *rings;          /* memory of both rings: */
    double *read;           /* when each piece was in memory */
    double *decoded;        /* when its memory was released */
    uint64_t reads, pieces; /* pieces read and decoded so far */
};

struct simulation {
    const struct sizing_plant *plant;
    struct followed_node *nodes;
    unsigned node_count, pieces; /* pieces: per batch */
    unsigned ahead;              /* pieces between storage and decoding */
    unsigned buffer, window;     /* of the shuffle, in pieces */
    unsigned read;               /* pieces that one read brings, at least one */
    unsigned turn;               /* reads that the I/O thread ends before it delivers any */
    uint64_t last;               /* index of the last piece that the epoch reads */
    unsigned buffers;            /* batch buffers: those ready and the one in use */
    double *given_back;          /* ring of buffers: when the step released each */
    double end;                  /* of the epoch before: its last step */
    double batch;                /* samples per step of a node */
    double piece_s, load_s,
        decode_s;             /* per piece: storage or cache, I/O thread, one decode thread */
    double threads;           /* that decode */
    double step_s, deviation; /* deviation: of a piece's bytes, relative to the mean */
    double credit_s, owed_s;  /* of a throttle: owed for the last read, which has begun */
    double latency_s, latency_deviation;
};

struct epoch_times {
    double seconds, first_batch_s, stalled_s;
};

static unsigned whole(double value, unsigned least, unsigned most)
{
    if (!(value > least))
        return least;
    return value < most ? (unsigned)(value + 1e-9) : most;
}

/* Divide a batch into 16 to 64 pieces, or into its samples if fewer. */
static int start(struct simulation *simulation, uint64_t seed)
{
    const struct sizing_plant *plant = simulation->plant;
    const unsigned followed = whole(plant->nodes, 1, SIZING_NODES_MOST);
    /* The slowest of all nodes counts, not of those simulated: the expected maximum of n normal
     * values grows as sqrt(2 ln n). */
    const double grow =
        plant->nodes > followed && followed > 1 ? sqrt(log(plant->nodes) / log(followed)) : 1;

    simulation->node_count = followed;
    simulation->batch = plant->of[SIZING_BATCH] * plant->of[SIZING_GPUS];
    simulation->pieces =
        whole(simulation->batch, 1, simulation->node_count > 4 ? 16 : SIZING_PIECES_MOST);
    simulation->buffers = whole(plant->of[SIZING_PREFETCH], 1, 1024) + 1;
    const double samples = simulation->batch / simulation->pieces;
    const double bytes = samples * plant->of[SIZING_SAMPLE_BYTES];
    simulation->buffer = whole(ceil(plant->of[SIZING_BUFFER] / samples), 0, RING_MOST / 2);
    simulation->window = whole(round(plant->of[SIZING_WINDOW] / samples), 0, RING_MOST / 4);
    simulation->read = whole(round(plant->of[SIZING_READ_BYTES] / bytes), 1, RING_MOST / 8);
    /* A shuffle that needs more memory would not start; sizing does not check for that. */
    simulation->ahead =
        whole(plant->of[SIZING_RECORD_BYTES] / bytes,
              simulation->buffer + simulation->window + simulation->read, RING_MOST);
    simulation->deviation =
        grow * plant->of[SIZING_SAMPLE_SD_BYTES] / plant->of[SIZING_SAMPLE_BYTES] / sqrt(samples);
    /* The latencies of a piece's reads average out. */
    const double reads = fmax(1, bytes / plant->of[SIZING_READ_BYTES]);
    simulation->latency_deviation = grow * plant->of[SIZING_STORAGE_LATENCY_CV] / sqrt(reads);
    simulation->step_s = sizing_step_s(plant);
    simulation->threads = sizing_threads(plant);
    simulation->given_back = memory_array(simulation->buffers, sizeof(double));
    simulation->nodes = memory_array(simulation->node_count, sizeof *simulation->nodes);
    for (unsigned i = 0; simulation->nodes && i < simulation->node_count; i++) {
        simulation->nodes[i].random = random_start(random_hash(seed, i, 0));
        simulation->nodes[i].rings = memory_array(2 * (size_t)simulation->ahead, sizeof(double));
        if (!simulation->nodes[i].rings)
            return -ENOMEM;
        simulation->nodes[i].read = simulation->nodes[i].rings;
        simulation->nodes[i].decoded = simulation->nodes[i].rings + simulation->ahead;
    }
    return simulation->given_back && simulation->nodes ? 0 : -ENOMEM;
}

static double vary(struct random *random, double deviation)
{
    return deviation > 0 ? fmax(0.05, 1 + deviation * random_normal(random)) : 1;
}

/* Simulate one turn of the I/O thread. Reads from memory end in the call that begins them, so it
 * delivers none before it has begun all that depth, memory and a throttle allow. */
static void read_turn(const struct simulation *simulation, struct followed_node *node)
{
    const uint64_t first = node->reads, memory = node->pieces + simulation->ahead;
    const double cores = simulation->plant->of[SIZING_CORES];

    for (unsigned reads = 0; reads < simulation->turn; reads++) {
        const struct followed_node before = *node;
        const uint64_t left = simulation->last + 1 - node->reads;
        const uint64_t count = left < simulation->read ? left : simulation->read;
        if (reads && (count == 0 || node->reads + count > memory))
            break;
        const double size = (double)count * vary(&node->random, simulation->deviation);
        /* This piece reuses the memory of the piece `ahead` pieces earlier. */
        const double ask = node->decoded[(node->reads + count - 1) % simulation->ahead];
        const double seconds = simulation->piece_s * size;
        /* A throttle makes up for unused time, up to its credit, and charges a read only after it
         * has begun. */
        const double latency =
            simulation->latency_s * vary(&node->random, simulation->latency_deviation);
        node->read_free = fmax(node->read_free, ask - simulation->credit_s) + seconds;
        const double ready =
            fmax(ask, node->read_free - fmin(simulation->owed_s, seconds)) + latency;
        if (reads && ready > node->io_free) {
            *node = before;
            break;
        }
        node->io_free = fmax(node->io_free, ready) + simulation->load_s * size;
        node->cores_free = fmax(node->cores_free, ready) + simulation->load_s * size / cores;
        node->reads += count;
    }
    for (uint64_t piece = first; piece < node->reads; piece++)
        node->read[piece % simulation->ahead] = node->io_free;
}

/* Read one piece and decode it at `open` or later. Returns the time when it is in its batch. */
static double carry_piece(const struct simulation *simulation, struct followed_node *node,
                          double open)
{
    /* The last piece that must be in memory before this one is drawn: the end of the window of the
     * one that refills its place in the buffer. */
    const uint64_t window = simulation->window, filled = node->pieces + simulation->buffer;
    const uint64_t end = window ? (filled / window + 1) * window - 1 : filled;
    const uint64_t until = end < simulation->last ? end : simulation->last;

    assert(simulation->buffer + simulation->window + simulation->read <= simulation->ahead);
    while (node->reads <= until)
        read_turn(simulation, node);
    const double ready = fmax(node->read[until % simulation->ahead], open);
    node->cores_free =
        fmax(node->cores_free, ready) + simulation->decode_s / simulation->plant->of[SIZING_CORES];
    node->decode_free = fmax(node->decode_free, ready) + simulation->decode_s / simulation->threads;
    node->decode_free = fmax(node->decode_free, node->cores_free);
    node->decoded[node->pieces++ % simulation->ahead] = node->decode_free;
    return node->decode_free;
}

/* Steps not simulated take as long as the second half of those simulated. */
static struct epoch_times run_epoch(struct simulation *simulation, unsigned epoch,
                                    unsigned steps_most)
{
    const struct sizing_plant *plant = simulation->plant;
    const double steps = plant->of[SIZING_SAMPLES] / (simulation->batch * plant->nodes);
    const unsigned followed = whole(ceil(steps), 1, steps_most);
    struct epoch_times times = {0};
    double end = 0, half = 0;

    /* A batch's end may be part of a piece: the share of one that pieces have on average. */
    const double pieces = fmax(1, ceil(steps * simulation->pieces - 1e-6));
    const double fill = fmin(1, steps * simulation->pieces / pieces);
    const double samples = fill * simulation->batch / simulation->pieces;
    const double bytes = samples * plant->of[SIZING_SAMPLE_BYTES] * plant->of[SIZING_AMPLIFICATION];
    const double hits = sizing_hits(plant, epoch);
    const double rate = sizing_node_bytes_per_s(plant, epoch);
    const double start_s = plant->of[SIZING_START_S], credit_s = plant->of[SIZING_STORAGE_CREDIT_S];
    simulation->piece_s = (1 - hits) * bytes / rate + hits * bytes / plant->of[SIZING_CACHE_RATE];
    simulation->load_s = plant->of[SIZING_LOAD_S] * samples;
    simulation->decode_s = plant->of[SIZING_DECODE_S] * samples;
    simulation->latency_s = hits < 1 ? plant->of[SIZING_STORAGE_LATENCY_S] : 0;
    simulation->turn = simulation->latency_s > 0 ? 1 : whole(plant->of[SIZING_DEPTH], 1, RING_MOST);
    simulation->credit_s = credit_s;
    simulation->owed_s = credit_s > 0 ? plant->of[SIZING_READ_BYTES] / rate : 0;
    /* Carry over what a throttle could have given in the epoch before, and what is still to be
     * charged. */
    for (unsigned i = 0; i < simulation->node_count; i++) {
        struct followed_node *node = &simulation->nodes[i];
        node->read_free =
            credit_s > 0 ? fmax(node->read_free - simulation->end, start_s - credit_s) : start_s;
        node->io_free = start_s;
        node->decode_free = node->cores_free = 0;
        node->reads = node->pieces = 0;
        memset(node->decoded, 0, simulation->ahead * sizeof *node->decoded);
    }
    memset(simulation->given_back, 0, simulation->buffers * sizeof *simulation->given_back);
    /* Where a limit ends the epoch, the buffer has been filled from the rest of the order. */
    const double rest =
        plant->of[SIZING_UNDRAWN] / (simulation->batch * plant->nodes) * simulation->pieces;
    simulation->last = (uint64_t)(pieces + fmin(ceil(rest), simulation->buffer)) - 1;
    for (unsigned step = 0; step < followed; step++) {
        double *buffer = &simulation->given_back[step % simulation->buffers];
        const double share = followed >= steps && step + 1 == followed ? steps - step : 1;
        const unsigned count = whole(ceil(share * simulation->pieces), 1, simulation->pieces);
        double ready = 0; /* when the last node has its batch */
        for (unsigned i = 0; i < simulation->node_count; i++)
            for (unsigned piece = 0; piece < count; piece++)
                ready = fmax(ready, carry_piece(simulation, &simulation->nodes[i], *buffer));
        times.stalled_s += fmax(0, ready - end);
        if (step == 0)
            times.first_batch_s = ready;
        if (step == followed / 2)
            half = end;
        end = fmax(end, ready) + simulation->step_s * share;
        *buffer = end;
    }
    times.seconds = simulation->end = end;
    if (steps > followed) {
        const double scale = (steps - followed) / (followed - followed / 2);
        times.stalled_s += times.stalled_s * (steps - followed) / followed;
        times.seconds += (end - half) * scale;
    }
    return times;
}

int sizing_simulate(const struct sizing_plant *plant, unsigned steps, uint64_t seed,
                    struct sizing_outcome *outcome)
{
    struct simulation simulation = {.plant = plant};
    const unsigned epochs = whole(plant->of[SIZING_EPOCHS], 1, 1000);
    double seconds = 0, first = 0, stalled = 0;
    int code = start(&simulation, seed);

    *outcome = (struct sizing_outcome){0};
    for (unsigned epoch = 0; code == 0 && epoch < epochs && epoch < EPOCHS_FOLLOWED; epoch++) {
        /* All other epochs equal the last one simulated. */
        const double times_over = epoch + 1 < EPOCHS_FOLLOWED ? 1 : epochs - epoch;
        struct epoch_times times = run_epoch(&simulation, epoch, steps ? steps : SIZING_STEPS_MOST);
        if (epoch == 0) {
            first = times.seconds;
            outcome->first_batch_s = times.first_batch_s;
        }
        seconds += times.seconds * times_over;
        stalled += times.stalled_s * times_over;
    }
    for (unsigned i = 0; simulation.nodes && i < simulation.node_count; i++)
        free(simulation.nodes[i].rings);
    free(simulation.nodes);
    free(simulation.given_back);
    if (code)
        return code;
    const double samples = plant->of[SIZING_SAMPLES], save = sizing_checkpoint_s(plant);
    outcome->samples_per_s = samples * epochs / seconds;
    outcome->first_samples_per_s = samples / first;
    outcome->later_samples_per_s =
        epochs > 1 ? samples * (epochs - 1) / (seconds - first) : outcome->first_samples_per_s;
    outcome->stall_share = stalled / seconds;
    if (save > 0)
        outcome->checkpoint_share = save / (save + sizing_checkpoint_interval_s(plant));
    outcome->reached_samples_per_s = outcome->samples_per_s * (1 - outcome->checkpoint_share);
    return 0;
}

/* ---- answer ---- */

enum { STEPS_OF_A_DRAW = 256 };

/* Return the plant of the stated values, or of a random draw. */
static struct sizing_plant plant_of(const struct sizing_request *request, struct random *random)
{
    const double gpus = fmax(1, request->inputs->of[SIZING_GPUS].value);
    struct sizing_plant plant =
        sizing_plant_of(request->inputs, fmax(1, ceil(request->gpus / gpus)), random);

    /* A job that does not fill its nodes has fewer GPUs in each: their mean. */
    plant.of[SIZING_GPUS] = fmin(plant.of[SIZING_GPUS], request->gpus / plant.nodes);
    return plant;
}

/* A figure of a draw, and where its interval goes. */
static const struct {
    size_t figure, range;
} figures[] = {
    {offsetof(struct sizing_outcome, reached_samples_per_s),
     offsetof(struct sizing_answer, samples_per_s)},
    {offsetof(struct sizing_outcome, first_batch_s), offsetof(struct sizing_answer, first_batch_s)},
    {offsetof(struct sizing_outcome, first_samples_per_s),
     offsetof(struct sizing_answer, first_samples_per_s)},
    {offsetof(struct sizing_outcome, later_samples_per_s),
     offsetof(struct sizing_answer, later_samples_per_s)},
    {offsetof(struct sizing_outcome, stall_share), offsetof(struct sizing_answer, stall_share)},
    {offsetof(struct sizing_outcome, checkpoint_share),
     offsetof(struct sizing_answer, checkpoint_share)},
};

enum { FIGURES = sizeof figures / sizeof *figures };

static int draw_all(const struct sizing_request *request, struct sizing_answer *answer)
{
    const size_t draws = request->draws, last = draws - 1;
    double *values = memory_array(FIGURES * draws, sizeof *values);
    unsigned reached = 0;
    int code = values ? 0 : -ENOMEM;

    assert(draws > 0);
    for (unsigned i = 0; code == 0 && i < draws; i++) {
        struct random random = random_start(random_hash(request->seed, i, 1));
        const struct sizing_plant plant = plant_of(request, &random);
        struct sizing_outcome outcome;
        code = sizing_simulate(&plant, STEPS_OF_A_DRAW, request->seed, &outcome);
        for (unsigned k = 0; k < FIGURES; k++)
            memcpy(&values[k * draws + i], (char *)&outcome + figures[k].figure, sizeof *values);
        /* The target utilisation is relative to this draw's GPU rate. */
        reached += outcome.reached_samples_per_s >=
                   0.999 * request->busy * request->gpus * plant.of[SIZING_GPU_RATE];
    }
    for (unsigned k = 0; code == 0 && k < FIGURES; k++) {
        double *drawn = values + k * draws;
        stats_sort(drawn, draws);
        const struct sizing_range range = {drawn[last / 2], drawn[(size_t)(0.05 * (double)last)],
                                           drawn[(size_t)ceil(0.95 * (double)last)]};
        memcpy((char *)answer + figures[k].range, &range, sizeof range);
    }
    answer->probability = (double)reached / request->draws;
    free(values);
    return code;
}

static int compare_upgrades(const void *one, const void *other)
{
    const struct sizing_upgrade *a = one, *b = other;

    return (a->gain < b->gain) - (a->gain > b->gain);
}

static int find_upgrades(const struct sizing_request *request, struct sizing_answer *answer)
{
    /* The inputs that double a part's rate; for the I/O thread a time, which is halved. */
    static const enum sizing_input rates[SIZING_PART_COUNT][2] = {
        [SIZING_PART_GPU] = {SIZING_GPU_RATE, SIZING_FABRIC_RATE},
        [SIZING_PART_STORAGE] = {SIZING_STORAGE_RATE, SIZING_STORAGE_WRITE_RATE},
        [SIZING_PART_READS] = {SIZING_STORAGE_READS, SIZING_INPUT_COUNT},
        [SIZING_PART_CLIENT] = {SIZING_PORT_RATE, SIZING_STORAGE_CLIENT_RATE},
        [SIZING_PART_DEPTH] = {SIZING_DEPTH, SIZING_INPUT_COUNT},
        [SIZING_PART_CORES] = {SIZING_CORES, SIZING_THREADS},
        [SIZING_PART_LOADER] = {SIZING_INPUT_COUNT, SIZING_INPUT_COUNT},
    };

    for (int part = 0; part < SIZING_PART_COUNT; part++) {
        struct sizing_plant plant = answer->plant;
        struct sizing_outcome outcome;
        if (isinf(answer->first.of[part]))
            continue;
        for (int i = 0; i < 2 && rates[part][i] != SIZING_INPUT_COUNT; i++)
            plant.of[rates[part][i]] *= 2;
        if (part == SIZING_PART_STORAGE)
            plant.storages *= 2;
        if (part == SIZING_PART_LOADER)
            plant.of[SIZING_LOAD_S] /= 2;
        int code = sizing_simulate(&plant, STEPS_OF_A_DRAW, request->seed, &outcome);
        if (code)
            return code;
        const double rate = outcome.reached_samples_per_s;
        answer->upgrades[answer->upgrade_count++] = (struct sizing_upgrade){
            (enum sizing_part)part, rate, rate / answer->outcome.reached_samples_per_s - 1};
    }
    qsort(answer->upgrades, answer->upgrade_count, sizeof *answer->upgrades, compare_upgrades);
    return 0;
}

int sizing_answer(const struct sizing_request *request, struct sizing_answer *answer)
{
    const struct sizing_inputs *inputs = request->inputs;
    static const int needed[] = {SIZING_BATCH,      SIZING_SAMPLE_BYTES, SIZING_SAMPLES,
                                 SIZING_READ_BYTES, SIZING_GPUS,         SIZING_CACHE_RATE,
                                 SIZING_CORES,      SIZING_RECORD_BYTES, SIZING_DEPTH};

    *answer = (struct sizing_answer){0};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(inputs->of[needed[i]].value > 0)) {
            const struct sizing_input_row *row = &sizing_input_table[needed[i]];
            return fail(EINVAL, "[%s] %s (%s) must be above 0", row->section, row->key,
                        row->summary);
        }
    answer->plant = plant_of(request, NULL);
    const double goal = request->busy * request->gpus * inputs->of[SIZING_GPU_RATE].value;
    answer->first = sizing_rates(&answer->plant, 0);
    answer->later = sizing_rates(&answer->plant, 1);
    answer->goal_samples_per_s = goal;
    /* What that goal needs. */
    const struct sizing_plant *plant = &answer->plant;
    const double read = plant->of[SIZING_SAMPLE_BYTES] * plant->of[SIZING_AMPLIFICATION];
    const double saved = plant->of[SIZING_CHECKPOINT_BYTES];
    const double lost = SIZING_SAVING_SHARE / (1 - SIZING_SAVING_SHARE);
    const double interval_s = plant->of[SIZING_CHECKPOINT_INTERVAL_S];
    const double batch = plant->nodes * plant->of[SIZING_GPUS] * plant->of[SIZING_BATCH] * read;
    answer->storage_bytes_per_s = goal * read;
    answer->storage_reads_per_s = answer->storage_bytes_per_s / plant->of[SIZING_READ_BYTES];
    answer->node_bytes_per_s = answer->storage_bytes_per_s / plant->nodes;
    answer->cores = goal / plant->nodes * (plant->of[SIZING_DECODE_S] + plant->of[SIZING_LOAD_S]);
    answer->start_bytes = batch * (plant->of[SIZING_PREFETCH] + 1);
    answer->start_bytes_per_s =
        sizing_step_s(plant) > 0 ? answer->start_bytes / sizing_step_s(plant) : 0;
    answer->fabric_bytes_per_s = sizing_hidden_exchange_rate(plant);
    /* Young's interval is sqrt(2 M s) for a saving time s: s / sqrt(2 M s) = lost. */
    answer->checkpoint_write_per_s =
        saved / (interval_s > 0 ? lost * interval_s : 2 * lost * lost * sizing_mtbf_s(plant));
    /* Each failure costs a restore. */
    answer->checkpoint_read_per_s = saved / (SIZING_SAVING_SHARE * sizing_mtbf_s(plant));
    answer->checkpoint_s = sizing_checkpoint_s(plant);
    answer->checkpoint_interval_s = sizing_checkpoint_interval_s(plant);
    if (answer->checkpoint_s > 0)
        answer->checkpoint_bytes_per_s = plant->of[SIZING_CHECKPOINT_BYTES] / answer->checkpoint_s;
    int code = sizing_simulate(&answer->plant, 0, request->seed, &answer->outcome);
    if (code == 0)
        code = draw_all(request, answer);
    return code ? code : find_upgrades(request, answer);
}

/* ---- need ---- */

struct sizing_need sizing_of(const struct sizing_basis *basis, double gpu_samples_per_s,
                             double gpus, double busy)
{
    struct sizing_need need = {.samples_per_s = gpu_samples_per_s * gpus * busy};

    need.bytes_per_s = need.samples_per_s * basis->sample_bytes * basis->amplification;
    need.bits_per_s = 8 * need.bytes_per_s;
    need.nodes =
        basis->node_samples_per_s > 0 ? need.samples_per_s / basis->node_samples_per_s : NAN;
    return need;
}
