/* SPDX-License-Identifier: Apache-2.0
 *
 * batches: the batch buffers between the decode workers and the trainer.
 *
 * A draw's number is its address: row = address % batch size of batch = address / batch size.
 * Addresses run on over the epochs of a run; each epoch starts a new batch, so its last one may
 * be short. Workers finish rows in any order and write straight into them; the trainer takes the
 * batches in order. A batch is open while one of the buffers is its own.
 *
 * No deadlock: workers wait only for batches that are not open yet, and get their draws in
 * order, so the rows of every open batch are with a worker already or still to come.
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
    void *rows; /* buffers x batch_size x row_bytes, the trainer's; NULL when row_bytes is 0 */
    uint64_t epochs_max;
};

#define BATCHES_PATIENCE_NS UINT64_C(100000000)

/* What became of the rows of a batch: counted where they are written, summed where the batch is
 * taken, so that it belongs to the right epoch however far ahead others are. */
struct batch_account {
    uint64_t samples, skipped;
    uint64_t record_bytes;           /* of the samples, framing included */
    uint64_t digest_sum, digest_xor; /* over (label, image bytes) of the samples */
};

void batch_account_add(struct batch_account *sum, const struct batch_account *part);

struct batch {
    void *rows;
    int32_t *labels;
    uint32_t count;
    uint64_t epoch; /* from 0 in this run */
    uint64_t step;  /* of this epoch */
    struct batch_account account;
};

struct batches *batches_create(const struct batches_config *config); /* NULL with a reason */
void batches_destroy(struct batches *batches);

/* Empty again, for the next run. Only when no thread uses it. */
void batches_reset(struct batches *batches);

/* For the loader, which announces each epoch. */
struct loader_sink batches_sink(struct batches *batches);

/* The trainer: wait until the loader has announced an epoch. 0 and its draws, or -ECANCELED. */
int batches_wait_epoch(struct batches *batches, uint64_t epoch, uint64_t *draws);

/* A worker: wait until the batch of this address is open. *waited_ns is added to. 0 or -ECANCELED.
 */
int batches_wait_open(struct batches *batches, uint64_t address, uint64_t *waited_ns);
void *batches_row(struct batches *batches, uint64_t address);
int32_t *batches_label(struct batches *batches, uint64_t address);
/* A worker: so many rows of this batch are written, and what became of them. */
void batches_done(struct batches *batches, uint64_t batch, uint32_t rows,
                  const struct batch_account *account);
/* Workers waited for a batch to open, until now; since batches_reset(). */
uint64_t batches_open_wait_ns(struct batches *batches);

/* The trainer: wait for the next batch. 1; 0 when none came within BATCHES_PATIENCE_NS, so that the
 * caller may look around; or -ECANCELED. */
int batches_take(struct batches *batches, struct batch *batch);
/* The trainer: the batch taken last is no longer needed. */
void batches_give(struct batches *batches);

void batches_cancel(struct batches *batches);

#endif
