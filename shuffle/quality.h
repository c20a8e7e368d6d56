/* SPDX-License-Identifier: Apache-2.0
 *
 * quality: measure how random a sample order is and what it demands of storage, by running its
 * plans on record numbers only. Reads nothing.
 *
 * Mean displacement is not measured: shuffling whole shards scores like a full permutation there,
 * with two labels per batch.
 */
#ifndef IOBENCH_SHUFFLE_QUALITY_H
#define IOBENCH_SHUFFLE_QUALITY_H

#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

struct quality_terms {
    const struct plugin_choice *shuffle;
    struct plan_scope scope; /* rank is ignored: all ranks are run in turn */
    uint64_t epochs;         /* 0 .. epochs - 1; rank retention needs two */
    /* One label per record, 0 .. classes - 1. NULL: sorted by label, classes of equal size. */
    const int32_t *labels;
    uint32_t classes;
    struct coalesce reads; /* how fetches become reads, as in the loader */
    /* Called for every draw, in order, rank by rank; may be NULL. */
    void (*draw)(void *context, uint32_t rank, uint64_t epoch, uint64_t draw, uint64_t record);
    void *context;
};

/* Means over all ranks, epochs and full batches. NAN: nothing to measure. */
struct quality {
    double labels_per_batch, labels_at_random; /* distinct ones; at random: sum of 1-(1-p)^B */
    double shards_per_batch, shards_at_random; /* the same for shards */
    double same_label, same_label_at_random;   /* the next draw of the rank has the same label */
    double retention; /* share of a rank's draws that it also had in the previous epoch */
    /* coverage of an epoch over all ranks, worst epoch */
    uint64_t missing;                        /* records never drawn */
    uint64_t repeated;                       /* draws beyond the first of a record */
    uint64_t draws, draws_least, draws_most; /* of all ranks, and of one rank */
    /* reads of an epoch over all ranks, averaged over epochs */
    double reads;
    double seeks;                /* reads that do not start where the previous one ended */
    double amplification;        /* bytes of pages (4 KiB) read / bytes drawn */
    double bytes_per_read;       /* as requested */
    double distance_bytes;       /* from the end of a read to the start of the next, either way */
    uint64_t buffer_bytes;       /* largest amount that one rank's plan held at once */
    uint64_t slots, state_bytes; /* as declared by the plan of the first rank */
    uint64_t begin_ns;           /* longest time to compute an order */
    uint64_t run_ns;             /* all plans and epochs, measuring included */
};

/* Memory per record, plus one byte per epoch. */
enum { QUALITY_RECORD_BYTES = 4 };

/* Returns 0, or a negative errno with a reason. */
int quality_measure(const struct quality_terms *terms, struct quality *quality);

/* Return the label of a record under these terms. */
uint32_t quality_label(const struct quality_terms *terms, uint64_t record);

/* Make a catalog of hypothetical records, to study shuffles without a data set: spread records
 * evenly over shards, with lengths uniform in record_bytes +- spread_bytes (less than
 * record_bytes), the same on every machine. Returns NULL with a reason; free with
 * catalog_destroy(). */
struct catalog *outline_create(uint64_t records, uint32_t shards, uint32_t record_bytes,
                               uint32_t spread_bytes);

#endif
