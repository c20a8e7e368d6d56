/* SPDX-License-Identifier: Apache-2.0
 *
 * batcher: the batch slots between the decode workers and the trainer.
 *
 * A draw's number is its address: row = address % batch size of batch = address / batch size.
 * Addresses run on over the epochs of a run; each epoch starts a new batch, so its last one may
 * be short. Workers finish rows in any order and write straight into them; the trainer takes the
 * batches in order. A batch is open while one of the slots is its own.
 *
 * No deadlock: workers wait only for batches that are not open yet, and get their draws in
 * order, so the rows of every open batch are with a worker already or still to come.
 */
#ifndef IOBENCH_PIPELINE_BATCHER_H
#define IOBENCH_PIPELINE_BATCHER_H

#include <stddef.h>
#include <stdint.h>

struct batcher;

struct batcher_site {
    uint32_t batch_size, slots;
    size_t row_bytes;
    void *rows; /* slots x batch_size x row_bytes, the trainer's; NULL when row_bytes is 0 */
    uint64_t epochs_max;
};

#define BATCHER_PATIENCE_NS UINT64_C(100000000)

/* What became of the rows of a batch: counted where they are written, summed where the batch is
 * taken, so that it belongs to the right epoch however far ahead others are. */
struct batch_account {
    uint64_t samples, skipped;
    uint64_t record_bytes;           /* of the samples, framing included */
    uint64_t digest_sum, digest_xor; /* over (label, image bytes) of the samples */
};

void batch_account_add(struct batch_account *sum, const struct batch_account *part);

struct batcher_batch {
    void *rows;
    int32_t *labels;
    uint32_t count;
    uint64_t epoch; /* from 0 in this run */
    uint64_t step;  /* of this epoch */
    struct batch_account account;
};

struct batcher *batcher_create(const struct batcher_site *site); /* NULL with a reason */
void batcher_destroy(struct batcher *batcher);

/* Empty again, for the next run. Only when no thread uses it. */
void batcher_reset(struct batcher *batcher);

/* The loader: the next epoch has so many draws. Returns the address of its first. */
uint64_t batcher_expect(struct batcher *batcher, uint64_t draws);

/* The trainer: wait until the loader has announced an epoch. 0 and its draws, or -ECANCELED. */
int batcher_wait_epoch(struct batcher *batcher, uint64_t epoch, uint64_t *draws);

/* A worker: wait until the batch of this address is open. *waited_ns is added to. 0 or -ECANCELED.
 */
int batcher_wait_open(struct batcher *batcher, uint64_t address, uint64_t *waited_ns);
void *batcher_row(struct batcher *batcher, uint64_t address);
int32_t *batcher_label(struct batcher *batcher, uint64_t address);
/* A worker: so many rows of this batch are written, and what became of them. */
void batcher_done(struct batcher *batcher, uint64_t batch, uint32_t rows,
                  const struct batch_account *account);
/* Workers waited for a batch to open, until now; since batcher_reset(). */
uint64_t batcher_open_wait_ns(struct batcher *batcher);

/* The trainer: wait for the next batch. 1; 0 when none came within BATCHER_PATIENCE_NS, so that the
 * caller may look around; or -ECANCELED. */
int batcher_take(struct batcher *batcher, struct batcher_batch *batch);
/* The trainer: the batch taken last is no longer needed. */
void batcher_give(struct batcher *batcher);

void batcher_cancel(struct batcher *batcher);

#endif
