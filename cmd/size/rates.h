/* SPDX-License-Identifier: Apache-2.0
 *
 * rates: the closed formula: how many samples/s each part of a cluster allows, as if nothing else
 * limited it. It knows no queues; cmd/size/simulation.h does. Pure; any thread.
 */
#ifndef IOBENCH_CMD_SIZE_RATES_H
#define IOBENCH_CMD_SIZE_RATES_H

#include "cmd/size/inputs.h"

enum sizing_part {
    SIZING_PART_GPU,     /* including gradient exchange not hidden by compute */
    SIZING_PART_STORAGE, /* bytes/s */
    SIZING_PART_READS,   /* reads/s */
    SIZING_PART_CLIENT,  /* bytes/s of one node, limited by its port or the storage */
    SIZING_PART_DEPTH,   /* latency: too few reads in flight */
    SIZING_PART_CORES,
    SIZING_PART_LOADER, /* the I/O thread */
    SIZING_PART_COUNT,
};

extern const char *const sizing_part_names[SIZING_PART_COUNT];

/* Samples/s of the whole job as limited by each part. INFINITY: no limit. */
struct sizing_rates {
    double of[SIZING_PART_COUNT];
    enum sizing_part limit; /* the smallest, and the second smallest */
    enum sizing_part next;
};

/* epoch: from 0; caches are empty in the first. */
struct sizing_rates sizing_rates(const struct sizing_plant *plant, unsigned epoch);

/* Components of the rates. */
double sizing_hits(const struct sizing_plant *plant, unsigned epoch); /* share from page caches */
double sizing_node_bytes_per_s(const struct sizing_plant *plant, unsigned epoch); /* of storage */
double sizing_exchange_s(const struct sizing_plant *plant);                       /* of gradients */
double sizing_threads(const struct sizing_plant *plant);                          /* that decode */
double sizing_step_s(const struct sizing_plant *plant);   /* compute and exchange, overlapped */
double sizing_decode_s(const struct sizing_plant *plant); /* per sample, all threads of a node */
/* A node's bytes/s each way at which the backward pass hides the exchange; 0: nothing to exchange.
 */
double sizing_hidden_exchange_rate(const struct sizing_plant *plant);
double sizing_mtbf_s(const struct sizing_plant *plant); /* of the whole job */
double sizing_checkpoint_s(const struct sizing_plant *plant);
double sizing_checkpoint_interval_s(const struct sizing_plant *plant);

#endif
