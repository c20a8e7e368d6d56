/* SPDX-License-Identifier: Apache-2.0
 *
 * model: a training cluster, from its figures to what a buyer asks of it. Pure; any thread.
 */
#ifndef IOBENCH_CMD_SIZE_MODEL_H
#define IOBENCH_CMD_SIZE_MODEL_H

#include "base/profiles/profiles.h"
#include "base/random.h"
#include "base/stats.h"

#include <stdio.h>

/* ---- curve: bytes/s of a storage by size of a read and number of reads in flight, as measured.
 * Between measured points the logarithm of the rate is linear in the logarithms of both. Fewer
 * reads in flight than measured get proportionally less, more get no more; smaller reads come at
 * the rate of reads of the smallest size, larger ones at the bytes/s of the largest. ---- */

enum { SIZING_CURVE_SIZES = 16, SIZING_CURVE_DEPTHS = 16 };

/* Reads of one size. */
struct sizing_curve_row {
    double read_bytes;
    unsigned count;
    double depths[SIZING_CURVE_DEPTHS]; /* ascending */
    struct quantity bytes_per_s[SIZING_CURVE_DEPTHS];
};

struct sizing_curve {
    unsigned count;
    struct sizing_curve_row rows[SIZING_CURVE_SIZES]; /* by size, ascending */
};

/* Add or replace a row: "1:12.5e6 +-3%, 4:48e6" is depth:bytes/s. Returns 0 or -EINVAL, no reason.
 */
int sizing_curve_parse(struct sizing_curve *curve, double read_bytes, const char *text);
/* Write a row as parse() reads it. */
void sizing_curve_print(FILE *stream, const struct sizing_curve_row *row);

/* Return bytes/s; INFINITY of an empty curve. deviations: how far all points lie from what they
 * state, in standard deviations. */
double sizing_curve_rate(const struct sizing_curve *curve, double read_bytes, double depth,
                         double deviations);
/* The same at the best of the measured depths: deep queues may be slower. */
double sizing_curve_best(const struct sizing_curve *curve, double read_bytes, double deviations);

/* ---- inputs: the figures of a training cluster that the model needs, by section and key of
 * profiles. A profile may hold any of them; later ones override earlier ones ---- */

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
    SIZING_STORAGE_CREDIT_S,    /* > 0: a throttle, which makes up for this much unused time */
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
/* ---- rates, the closed formula: how many samples/s each part of a cluster allows, as if nothing
 * else limited it. It knows no queues, which the simulation does ---- */

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
double sizing_step_s(const struct sizing_plant *plant);   /* compute and exchange, overlapped */
double sizing_decode_s(const struct sizing_plant *plant); /* per sample, all threads of a node */
/* A node's bytes/s each way at which the backward pass hides the exchange; 0: there is none. */
double sizing_hidden_exchange_rate(const struct sizing_plant *plant);
double sizing_mtbf_s(const struct sizing_plant *plant); /* of the whole job */
double sizing_checkpoint_s(const struct sizing_plant *plant);
double sizing_checkpoint_interval_s(const struct sizing_plant *plant);

struct sizing_outcome {
    double samples_per_s;         /* of all epochs, without checkpoints */
    double reached_samples_per_s; /* the same with them */
    double first_samples_per_s;   /* of the first epoch */
    double later_samples_per_s;   /* of the later epochs; with one epoch, that one's */
    double first_batch_s;         /* from the start until the first batch is complete */
    double stall_share;           /* share of time that steps wait for a batch */
    double checkpoint_share;      /* share of time stopped to save, if saving stops training */
};

/* steps: most steps simulated per epoch; the rest take the pace of the second half. 0:
 * SIZING_STEPS_MOST. Returns 0, or -ENOMEM with a reason. */
int sizing_simulate(const struct sizing_plant *plant, unsigned steps, uint64_t seed,
                    struct sizing_outcome *outcome);
/* ---- answer: will it do, what limits it, what comes next, what would more of each part bring, and
 * how sure is that ---- */

enum {
    SIZING_DRAWS_LEAST = 20, /* 90% of fewer is all of them or no interval */
    SIZING_DRAWS_MOST = 1000
};

/* Share of the time that a job may lose to saving checkpoints. */
#define SIZING_SAVING_SHARE 0.01

struct sizing_request {
    const struct sizing_inputs *inputs;
    double gpus;
    double busy; /* target utilisation of the GPUs, 0..1 */
    unsigned draws;
    uint64_t seed;
};

struct sizing_range {
    double median, low, high; /* 90% of the draws are between low and high */
};

/* What the job would reach with one part doubled. */
struct sizing_upgrade {
    enum sizing_part part;
    double samples_per_s, gain; /* gain: 0.25 is 25% more */
};

struct sizing_answer {
    struct sizing_plant plant; /* at the stated figures */
    struct sizing_rates first, later;
    struct sizing_outcome outcome;
    struct sizing_range samples_per_s; /* checkpoints included */
    struct sizing_range first_batch_s, first_samples_per_s, later_samples_per_s, stall_share,
        checkpoint_share;
    double goal_samples_per_s;
    double probability; /* share of draws that reach the goal */
    /* Required to reach the goal: */
    double storage_bytes_per_s, storage_reads_per_s, node_bytes_per_s, cores;
    double fabric_bytes_per_s;     /* of a node, to exchange gradients during the backward pass */
    double checkpoint_write_per_s; /* bytes/s, to lose at most SIZING_SAVING_SHARE to saving */
    double checkpoint_read_per_s;  /* the same, to lose it to restores after failures */
    double start_bytes;            /* read at the start of an epoch to fill all buffers */
    double start_bytes_per_s;      /* to fill them within one step */
    double checkpoint_bytes_per_s, checkpoint_s, checkpoint_interval_s;
    struct sizing_upgrade upgrades[SIZING_PART_COUNT]; /* best first */
    unsigned upgrade_count;
};

/* Returns 0 or a negative errno with a reason. */
int sizing_answer(const struct sizing_request *request, struct sizing_answer *answer);
/* ---- need: what GPUs need of a storage, without a simulation ---- */

struct sizing_basis {
    double sample_bytes;       /* bytes per record */
    double amplification;      /* bytes read over bytes delivered, at least 1 */
    double node_samples_per_s; /* throughput of each node; 0: not measured */
};

struct sizing_need {
    double samples_per_s;
    double bytes_per_s; /* read from storage */
    double bits_per_s;  /* the same on a network, payload only */
    double nodes;       /* need over the throughput of one node; NAN if not measured */
};

/* gpu_samples_per_s: rate of one GPU; busy: target utilisation, 0..1. */
struct sizing_need sizing_of(const struct sizing_basis *basis, double gpu_samples_per_s,
                             double gpus, double busy);

/* ---- recording: what a job read from storage while `iobench monitor --json` recorded it, as
 * inputs of a simulated cluster. Main thread ---- */

struct size_recording {
    double seconds;
    struct quantity bytes_per_s; /* mean; spread: half the difference between the halves */
    double peak_bytes_per_s;     /* of one interval */
    double read_bytes;           /* mean size of a read; 0: not known of most bytes */
};

/* Returns 0 or a negative errno with a reason. */
int size_recording_load(const char *path, struct size_recording *recording);

#endif
