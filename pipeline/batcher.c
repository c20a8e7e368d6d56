/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants, under the lock: batches [taken - 1 or taken, opened) hold a slot each, batch b the
 * slot b % slots; opened <= known, the number of batches of the epochs announced so far. `opened`
 * is a gate, so that workers look at it without the lock.
 */
#include "pipeline/batcher.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/stall.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { EPOCHS_KEPT = 16 };

struct epoch_range {
    uint64_t first_batch, batches, draws;
};

struct slot {
    uint32_t rows_left;
    bool complete;
    struct batch_account account;
};

struct batcher {
    struct batcher_site site;
    pthread_mutex_t lock;
    pthread_cond_t batch_opened, batch_complete;
    struct gate opened;
    uint64_t known, taken, given;
    uint64_t epochs, take_epoch;
    struct stall opening;
    bool cancelled;
    struct epoch_range ranges[EPOCHS_KEPT]; /* a ring: the loader is few epochs ahead */
    struct slot *slots;
    int32_t *labels; /* slots x batch_size */
};

struct batcher *batcher_create(const struct batcher_site *site)
{
    struct batcher *batcher = memory_zeroed(sizeof *batcher);

    if (!batcher)
        return NULL;
    batcher->site = *site;
    pthread_mutex_init(&batcher->lock, NULL);
    pthread_cond_init(&batcher->batch_opened, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&batcher->batch_complete, &monotonic);
    pthread_condattr_destroy(&monotonic);
    batcher->slots = memory_array(site->slots, sizeof *batcher->slots);
    batcher->labels = memory_array((size_t)site->slots * site->batch_size, sizeof *batcher->labels);
    if (!batcher->slots || !batcher->labels) {
        batcher_destroy(batcher);
        return NULL;
    }
    return batcher;
}

void batcher_destroy(struct batcher *batcher)
{
    if (!batcher)
        return;
    free(batcher->labels);
    free(batcher->slots);
    pthread_cond_destroy(&batcher->batch_complete);
    pthread_cond_destroy(&batcher->batch_opened);
    pthread_mutex_destroy(&batcher->lock);
    free(batcher);
}

void batcher_reset(struct batcher *batcher)
{
    gate_raise(&batcher->opened, 0);
    batcher->known = batcher->taken = batcher->given = 0;
    batcher->epochs = batcher->take_epoch = 0;
    batcher->cancelled = false;
    batcher->opening = (struct stall){0};
    for (uint32_t i = 0; i < batcher->site.slots; i++)
        batcher->slots[i].complete = false;
}

/* Rows of a batch: all of them but in the last batch of its epoch. epoch: a lower bound. */
static uint32_t rows_of(const struct batcher *batcher, uint64_t batch, uint64_t epoch)
{
    const uint32_t size = batcher->site.batch_size;

    while (batch >= batcher->ranges[epoch % EPOCHS_KEPT].first_batch +
                        batcher->ranges[epoch % EPOCHS_KEPT].batches)
        epoch++;
    const struct epoch_range *range = &batcher->ranges[epoch % EPOCHS_KEPT];
    uint64_t left = range->draws - (batch - range->first_batch) * size;
    return left < size ? (uint32_t)left : size;
}

static void open_batches(struct batcher *batcher)
{
    uint64_t opened = gate_value(&batcher->opened), before = opened;

    while (opened < batcher->known && opened < batcher->given + batcher->site.slots) {
        struct slot *slot = &batcher->slots[opened % batcher->site.slots];
        slot->complete = false;
        slot->rows_left = rows_of(batcher, opened, batcher->take_epoch);
        slot->account = (struct batch_account){0};
        opened++;
    }
    if (opened == before)
        return;
    gate_raise(&batcher->opened, opened);
    if (batcher->opening.waiters)
        pthread_cond_broadcast(&batcher->batch_opened);
}

uint64_t batcher_expect(struct batcher *batcher, uint64_t draws)
{
    pthread_mutex_lock(&batcher->lock);
    const uint32_t size = batcher->site.batch_size;
    uint64_t first = batcher->known, batches = (draws + size - 1) / size;
    batcher->ranges[batcher->epochs++ % EPOCHS_KEPT] =
        (struct epoch_range){.first_batch = first, .batches = batches, .draws = draws};
    batcher->known += batches;
    open_batches(batcher);
    pthread_cond_signal(&batcher->batch_complete);
    pthread_mutex_unlock(&batcher->lock);
    return first * size;
}

int batcher_wait_epoch(struct batcher *batcher, uint64_t epoch, uint64_t *draws)
{
    int code = 0;

    pthread_mutex_lock(&batcher->lock);
    while (batcher->epochs <= epoch && !batcher->cancelled)
        pthread_cond_wait(&batcher->batch_complete, &batcher->lock);
    if (batcher->cancelled)
        code = -ECANCELED;
    else
        *draws = batcher->ranges[epoch % EPOCHS_KEPT].draws;
    pthread_mutex_unlock(&batcher->lock);
    return code;
}

int batcher_wait_open(struct batcher *batcher, uint64_t address, uint64_t *waited_ns)
{
    uint64_t batch = address / batcher->site.batch_size;
    int code = 0;

    if (batch < gate_value(&batcher->opened))
        return 0;
    uint64_t start_ns = clock_now_ns();
    pthread_mutex_lock(&batcher->lock);
    stall_begin(&batcher->opening, clock_now_ns());
    while (batch >= gate_value(&batcher->opened) && !batcher->cancelled)
        pthread_cond_wait(&batcher->batch_opened, &batcher->lock);
    stall_end(&batcher->opening, clock_now_ns());
    if (batcher->cancelled)
        code = -ECANCELED;
    pthread_mutex_unlock(&batcher->lock);
    *waited_ns += clock_now_ns() - start_ns;
    return code;
}

static uint64_t place_of(const struct batcher *batcher, uint64_t address)
{
    return address % ((uint64_t)batcher->site.slots * batcher->site.batch_size);
}

void *batcher_row(struct batcher *batcher, uint64_t address)
{
    if (!batcher->site.row_bytes)
        return NULL;
    return (char *)batcher->site.rows + place_of(batcher, address) * batcher->site.row_bytes;
}

int32_t *batcher_label(struct batcher *batcher, uint64_t address)
{
    return &batcher->labels[place_of(batcher, address)];
}

void batch_account_add(struct batch_account *sum, const struct batch_account *part)
{
    sum->samples += part->samples;
    sum->skipped += part->skipped;
    sum->record_bytes += part->record_bytes;
    sum->digest_sum += part->digest_sum;
    sum->digest_xor ^= part->digest_xor;
}

void batcher_done(struct batcher *batcher, uint64_t batch, uint32_t rows,
                  const struct batch_account *account)
{
    struct slot *slot = &batcher->slots[batch % batcher->site.slots];

    pthread_mutex_lock(&batcher->lock);
    batch_account_add(&slot->account, account);
    slot->rows_left -= rows;
    slot->complete = slot->rows_left == 0;
    if (slot->complete && batch == batcher->taken)
        pthread_cond_signal(&batcher->batch_complete);
    pthread_mutex_unlock(&batcher->lock);
}

uint64_t batcher_open_wait_ns(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    uint64_t waited_ns = stall_ns(&batcher->opening, clock_now_ns());
    pthread_mutex_unlock(&batcher->lock);
    return waited_ns;
}

int batcher_take(struct batcher *batcher, struct batcher_batch *batch)
{
    const uint64_t until_ns = clock_now_ns() + BATCHER_PATIENCE_NS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};
    int code = 1;

    pthread_mutex_lock(&batcher->lock);
    uint64_t number = batcher->taken;
    struct slot *slot = &batcher->slots[number % batcher->site.slots];
    while (code == 1 && !batcher->cancelled &&
           !(number < gate_value(&batcher->opened) && slot->complete))
        if (pthread_cond_timedwait(&batcher->batch_complete, &batcher->lock, &until))
            code = 0;
    if (batcher->cancelled) {
        code = -ECANCELED;
    } else if (code == 1) {
        const struct epoch_range *range = &batcher->ranges[batcher->take_epoch % EPOCHS_KEPT];
        while (number >= range->first_batch + range->batches)
            range = &batcher->ranges[++batcher->take_epoch % EPOCHS_KEPT];
        uint64_t address = number * batcher->site.batch_size;
        batch->rows = batcher_row(batcher, address);
        batch->labels = batcher_label(batcher, address);
        batch->count = rows_of(batcher, number, batcher->take_epoch);
        batch->epoch = batcher->take_epoch;
        batch->step = number - range->first_batch;
        batch->account = slot->account;
        batcher->taken++;
    }
    pthread_mutex_unlock(&batcher->lock);
    return code;
}

void batcher_give(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    batcher->given++;
    open_batches(batcher);
    pthread_mutex_unlock(&batcher->lock);
}

void batcher_cancel(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    batcher->cancelled = true;
    pthread_cond_broadcast(&batcher->batch_opened);
    pthread_cond_broadcast(&batcher->batch_complete);
    pthread_mutex_unlock(&batcher->lock);
}
