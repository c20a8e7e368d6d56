/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs: the figures of a training cluster that the model needs, by section and key of profiles.
 * A profile may hold any of them; later ones override earlier ones. Pure; any thread.
 */
#ifndef IOBENCH_CMD_SIZE_INPUTS_H
#define IOBENCH_CMD_SIZE_INPUTS_H

#include "base/random.h"
#include "cmd/size/curve.h"

enum sizing_input {
    SIZING_GPU_RATE, /* samples/s of one GPU, fed from memory */
    SIZING_BATCH,    /* per GPU */
    SIZING_GRADIENT_BYTES,
    SIZING_SAMPLE_BYTES,
    SIZING_SAMPLE_SD_BYTES,
    SIZING_SAMPLES,       /* per epoch, all nodes together */
    SIZING_READ_BYTES,    /* mean size of a read */
    SIZING_AMPLIFICATION, /* bytes read over bytes delivered */
    SIZING_DECODE_S,      /* CPU time per sample on one core */
    SIZING_LOAD_S,        /* CPU time per sample of the I/O thread */
    SIZING_GPUS,          /* in each node */
    SIZING_CORES,
    SIZING_THREADS,      /* decode threads; 0: one per core */
    SIZING_CACHE_BYTES,  /* page cache of a node */
    SIZING_CACHE_RATE,   /* bytes/s from it */
    SIZING_RECORD_BYTES, /* per node: memory for records between storage and decoding */
    SIZING_DEPTH,        /* reads in flight per node */
    SIZING_PREFETCH,     /* batches prepared ahead */
    SIZING_START_S,      /* from the start of an epoch to its first read */
    SIZING_PORT_RATE,    /* from a node to storage, bytes/s; 0: unlimited */
    SIZING_PORT_SHARED,  /* 1: gradients share it */
    SIZING_FABRIC_RATE,  /* a node's rate for gradients, bytes/s each way */
    SIZING_FABRIC_LATENCY_S,
    SIZING_FABRIC_EFFICIENCY,
    SIZING_STORAGE_RATE, /* bytes/s read, of all nodes together */
    SIZING_STORAGE_WRITE_RATE,
    SIZING_STORAGE_READS,     /* reads/s, of all nodes together */
    SIZING_STORAGE_LATENCY_S, /* of one read without a queue */
    SIZING_STORAGE_LATENCY_CV,
    SIZING_STORAGE_CREDIT_S,    /* > 0: a throttle; it makes up for this long unasked */
    SIZING_STORAGE_CLIENT_RATE, /* per node, bytes/s; 0: unlimited */
    SIZING_SERVER_CACHE_BYTES,
    SIZING_SERVER_CACHE_RATE,
    SIZING_EPOCHS,
    SIZING_SEQUENTIAL, /* 1: every epoch reads in the same order */
    SIZING_FIXED,      /* 1: a node reads the same share of the data in each epoch */
    SIZING_BUFFER,     /* samples that a shuffle reads before its first draw */
    SIZING_UNDRAWN,    /* samples of the order after a limited epoch: they fill the buffer */
    SIZING_WINDOW,     /* look-ahead: samples read in file order before any is drawn */
    SIZING_CHECKPOINT_BYTES,
    SIZING_CHECKPOINT_INTERVAL_S, /* 0: Young's interval */
    SIZING_INPUT_COUNT,
};

struct sizing_inputs {
    struct quantity of[SIZING_INPUT_COUNT];
    struct sizing_curve curve; /* of the storage; may be empty */
    int is_node_storage;       /* storage figures are per node (local disks) */
};

/* One value for each input. */
struct sizing_plant {
    double of[SIZING_INPUT_COUNT];
    double nodes;
    const struct sizing_curve *curve; /* of one storage, the inputs'; NULL: none */
    double storages;                  /* like that one: a disk in each node, or an upgrade */
    double curve_deviations;
};

struct sizing_input_row {
    const char *section, *key;
    double fallback;
    const char *summary;
};

extern const struct sizing_input_row sizing_input_table[SIZING_INPUT_COUNT];

/* Set each input to its default. */
void sizing_inputs_start(struct sizing_inputs *inputs);

/* Apply each figure of a profile. network: the section of a GPU's profile that has the rate, or
 * NULL. Unknown keys are ignored in [gpu], [peak] and a GPU's network sections only.
 * Returns 0, or -EINVAL with a reason. */
int sizing_inputs_apply(struct sizing_inputs *inputs, const struct ini *profile,
                        const char *network);

/* Return one random draw: log-normal, 90% within the spread; random: NULL: the stated values. */
struct sizing_plant sizing_plant_of(const struct sizing_inputs *inputs, double nodes,
                                    struct random *random);

#endif
