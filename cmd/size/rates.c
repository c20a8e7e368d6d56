/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/rates.h"

#include "base/gradients.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

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

/* Through a node's ports each way. Gradients are reduced inside a node first, so a node sends them
 * once. */
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
 * for two independent positions P((1 - u)(1 - v) >= 1 - f) = f + (1 - f) ln(1 - f). */
static double hits_of(double share, bool sequential)
{
    if (share >= 1)
        return 1;
    return sequential || share <= 0 ? 0 : share + (1 - share) * log1p(-share);
}

/* If nodes draw new shares every epoch, a cache hits with at most its share of the whole data, and
 * holds no more than the node has read so far. */
double sizing_hits(const struct sizing_plant *plant, unsigned epoch)
{
    const double bytes = plant->of[SIZING_SAMPLES] * plant->of[SIZING_SAMPLE_BYTES];
    const double share = plant->of[SIZING_CACHE_BYTES] / bytes, nodes = plant->nodes;

    if (epoch == 0 || !(bytes > 0))
        return 0;
    if (nodes < 2 || plant->of[SIZING_FIXED] > 0)
        return hits_of(share * nodes, plant->of[SIZING_SEQUENTIAL] > 0);
    return fmin(fmin(share, 1), 1 - pow(1 - 1 / nodes, epoch));
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

double sizing_threads(const struct sizing_plant *plant)
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
