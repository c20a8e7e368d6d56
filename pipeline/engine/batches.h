/* SPDX-License-Identifier: Apache-2.0
 *
 * batches: the batch buffers between decode threads (workers) and trainer.
 *
 * The number of a draw is its address: batch = address / batch size, row = address % batch size.
 * Addresses continue over the epochs of a run; each epoch starts a new batch, so that its last one
 * may be short. Workers write rows in place, in any order; the trainer takes batches in order. A
 * batch is open while it owns a buffer.
 *
 * No deadlock: workers wait only for batches that are not open yet, and get draws in order, so each
 * row of an open batch is with a worker or will be.
 */
#ifndef IOBENCH_PIPELINE_ENGINE_BATCHES_H
#define IOBENCH_PIPELINE_ENGINE_BATCHES_H

#include "pipeline/loader/loader.h"

#include <stddef.h>
#include <stdint.h>

struct batches;

struct batches_config {
    uint32_t batch_size, buffers;
    size_t row_bytes;
    struct meter *meter; /* counts waits for a batch to open; may be NULL */
    void *rows; /* buffers x batch_size x row_bytes, the trainer's; NULL when row_bytes is 0 */
};

#define BATCHES_PATIENCE_NS UINT64_C(100000000)

/* What the rows of a batch hold. Decode threads count, and the counts are summed when the batch is
 * taken, so they belong to the right epoch however far ahead the decode threads are. */
struct batch_account {
    uint64_t samples, skipped;
    uint64_t record_bytes;           /* including framing */
    uint64_t digest_sum, digest_xor; /* over (label, image bytes) */
};

void batch_account_add(struct batch_account *sum, const struct batch_account *part);

struct batch {
    void *rows;
    int32_t *labels;
    uint32_t count;
    uint64_t number;   /* from 0 in this run */
    uint64_t epoch;    /* from 0 in this run */
    uint64_t step;     /* of the epoch */
    uint64_t ready_ns; /* when its last row was written */
    struct batch_account account;
};

struct batches *batches_create(const struct batches_config *config); /* NULL with a reason */
void batches_destroy(struct batches *batches);

/* Reset for the next run. Call only while no thread uses it. */
void batches_reset(struct batches *batches);

/* The loader's sink; the loader announces each epoch to it. */
struct loader_sink batches_sink(struct batches *batches);

/* Trainer: wait until the loader has announced an epoch; *draws is its length. Returns 1; 0 after
 * BATCHES_PATIENCE_NS, so that the caller can check for cancellation; or -ECANCELED. */
int batches_wait_epoch(struct batches *batches, uint64_t epoch, uint64_t *draws);

/* Any thread. An open batch remains open until all its rows are reported. */
bool batches_is_open(const struct batches *batches, uint64_t batch);
/* Decode threads: wait until this batch is open, adding the time to *waited_ns. Returns 0 or
 * -ECANCELED. */
int batches_wait_open(struct batches *batches, uint64_t batch, uint64_t *waited_ns);
void *batches_row(struct batches *batches, uint64_t address);
int32_t *batches_label(struct batches *batches, uint64_t address);
/* Decode threads: report that this many rows of the batch are written; account: what they hold. */
void batches_done(struct batches *batches, uint64_t batch, uint32_t rows,
                  const struct batch_account *account);
/* Return the total time that decode threads waited for a batch to open, since batches_reset(). */
uint64_t batches_open_wait_ns(struct batches *batches);

/* Trainer: wait for the next batch. Returns 1; 0 after BATCHES_PATIENCE_NS, so that the caller can
 * check for cancellation; or -ECANCELED. */
int batches_take(struct batches *batches, struct batch *batch);
/* Trainer: release the batch taken last. */
void batches_give(struct batches *batches);

void batches_cancel(struct batches *batches);

#endif
