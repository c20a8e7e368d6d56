/* SPDX-License-Identifier: Apache-2.0
 *
 * quality: how random an order is and what it asks of storage, found by running its plans on
 * record numbers alone; nothing is read.
 *
 * Mean displacement is not among the measures: an order that shuffles whole shards scores like a
 * full permutation there, with two labels a batch.
 */
#ifndef IOBENCH_SHUFFLE_QUALITY_H
#define IOBENCH_SHUFFLE_QUALITY_H

#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

struct quality_terms {
    const struct plugin_choice *shuffle;
    struct plan_scope scope; /* rank is not used: all ranks are run, one after the other */
    uint64_t epochs;         /* 0 .. epochs - 1; rank retention needs two */
    /* Labels, one a record, 0 .. classes - 1. NULL: sorted by label, in even classes. */
    const int32_t *labels;
    uint32_t classes;
    struct coalesce reads; /* how fetches become reads: as the loader has it */
    /* Sees every draw, in order, rank after rank; NULL: nobody. */
    void (*draw)(void *context, uint32_t rank, uint64_t epoch, uint64_t draw, uint64_t record);
    void *context;
};

/* Means over all ranks, epochs and whole batches. NAN where there was nothing to measure. */
struct quality {
    double labels_per_batch, labels_at_random; /* distinct ones; at random: sum of 1-(1-p)^B */
    double shards_per_batch, shards_at_random; /* the same with the shard in place of the label */
    double same_label, same_label_at_random;   /* the next draw of the rank has the same label */
    double retention; /* share of a rank's draws that it also had in the epoch before */
    /* coverage of an epoch over all ranks, of the worst epoch */
    uint64_t missing;                        /* records never drawn */
    uint64_t repeated;                       /* draws beyond the first of a record */
    uint64_t draws, draws_least, draws_most; /* of all ranks, and of one */
    /* reads of an epoch over all ranks, the mean of the epochs */
    double reads;
    double seeks;                /* of them, those that do not begin where the one before ended */
    double amplification;        /* bytes of the pages (4 KiB) that are read over bytes drawn */
    double bytes_per_read;       /* as asked for */
    double distance_bytes;       /* from the end of a read to the start of the next, either way */
    uint64_t buffer_bytes;       /* most that one rank's plan held at once */
    uint64_t slots, state_bytes; /* as the plan stated them; of the first rank */
    uint64_t begin_ns;           /* the longest time that making an order took */
    uint64_t run_ns;             /* all plans and epochs, with the measuring */
};

/* Memory that is needed for each record, besides a byte for each epoch. */
enum { QUALITY_RECORD_BYTES = 4 };

/* 0, or negative with a reason. */
int quality_measure(const struct quality_terms *terms, struct quality *quality);

/* The label of a record under these terms. */
uint32_t quality_label(const struct quality_terms *terms, uint64_t record);

/* Distinct values expected in a batch drawn at random from `classes` equally frequent ones:
 * C (1 - (1 - 1/C)^B). */
double quality_distinct_at_random(double classes, double batch);

#endif
