/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants, under the lock, asserted by check_batches():
 * 1. Each batch in [given, opened) owns a buffer: batch b owns buffer b % buffers.
 * 2. given <= taken <= given + 1, and taken <= opened <= known, the batches announced so far.
 * 3. `opened` is a gate, which workers read without the lock.
 */
#include "pipeline/engine/batches.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { EPOCHS_KEPT = 16 };

struct epoch_range {
    uint64_t first_batch, batches, draws;
};

struct batch_buffer {
    uint32_t rows_left;
    bool complete;
    uint64_t ready_ns; /* when it became complete */
    struct batch_account account;
};

struct batches {
    struct batches_config config;
    pthread_mutex_t lock;
    pthread_cond_t batch_opened, batch_complete;
    struct gate opened;
    uint64_t known, taken, given;
    uint64_t epochs, take_epoch;
    struct stall opening;
    bool cancelled;
    struct epoch_range ranges[EPOCHS_KEPT]; /* a ring: the loader is at most a few epochs ahead */
    struct batch_buffer *buffers;
    int32_t *labels; /* buffers x batch_size */
};

struct batches *batches_create(const struct batches_config *config)
{
    struct batches *batches = memory_zeroed(sizeof *batches);

    assert(config->batch_size > 0 && config->buffers > 0);
    if (!batches)
        return NULL;
    batches->config = *config;
    pthread_mutex_init(&batches->lock, NULL);
    thread_condition_init(&batches->batch_opened);
    thread_condition_init(&batches->batch_complete);
    batches->buffers = memory_array(config->buffers, sizeof *batches->buffers);
    batches->labels =
        memory_array((size_t)config->buffers * config->batch_size, sizeof *batches->labels);
    if (!batches->buffers || !batches->labels) {
        batches_destroy(batches);
        return NULL;
    }
    return batches;
}

void batches_destroy(struct batches *batches)
{
    if (!batches)
        return;
    free(batches->labels);
    free(batches->buffers);
    pthread_cond_destroy(&batches->batch_complete);
    pthread_cond_destroy(&batches->batch_opened);
    pthread_mutex_destroy(&batches->lock);
    free(batches);
}

void batches_reset(struct batches *batches)
{
    gate_raise(&batches->opened, 0);
    batches->known = batches->taken = batches->given = 0;
    batches->epochs = batches->take_epoch = 0;
    batches->cancelled = false;
    batches->opening = (struct stall){0};
    for (uint32_t i = 0; i < batches->config.buffers; i++)
        batches->buffers[i].complete = false;
}

/* Return the number of rows of a batch: batch_size, except in the last batch of an epoch. epoch: a
 * lower bound of the batch's epoch. */
static uint32_t rows_of(const struct batches *batches, uint64_t batch, uint64_t epoch)
{
    const uint32_t size = batches->config.batch_size;

    while (batch >= batches->ranges[epoch % EPOCHS_KEPT].first_batch +
                        batches->ranges[epoch % EPOCHS_KEPT].batches)
        epoch++;
    const struct epoch_range *range = &batches->ranges[epoch % EPOCHS_KEPT];
    uint64_t left = range->draws - (batch - range->first_batch) * size;
    return left < size ? (uint32_t)left : size;
}

static void open_batches(struct batches *batches)
{
    uint64_t opened = gate_value(&batches->opened), before = opened;

    while (opened < batches->known && opened < batches->given + batches->config.buffers) {
        struct batch_buffer *buffer = &batches->buffers[opened % batches->config.buffers];
        buffer->complete = false;
        buffer->rows_left = rows_of(batches, opened, batches->take_epoch);
        buffer->account = (struct batch_account){0};
        opened++;
    }
    if (opened == before)
        return;
    gate_raise(&batches->opened, opened);
    if (batches->opening.waiters)
        pthread_cond_broadcast(&batches->batch_opened);
}

static void check_batches(const struct batches *batches)
{
    const uint64_t opened = gate_value(&batches->opened);

    assert(batches->given <= batches->taken && batches->taken <= batches->given + 1);
    assert(batches->taken <= opened && opened <= batches->known);
    assert(opened - batches->given <= batches->config.buffers);
}

static uint64_t expect_draws(void *state, uint64_t draws)
{
    struct batches *batches = state;

    pthread_mutex_lock(&batches->lock);
    const uint32_t size = batches->config.batch_size;
    uint64_t first = batches->known, count = (draws + size - 1) / size;
    batches->ranges[batches->epochs++ % EPOCHS_KEPT] =
        (struct epoch_range){.first_batch = first, .batches = count, .draws = draws};
    batches->known += count;
    open_batches(batches);
    check_batches(batches);
    pthread_cond_signal(&batches->batch_complete);
    pthread_mutex_unlock(&batches->lock);
    return first * size;
}

int batches_wait_epoch(struct batches *batches, uint64_t epoch, uint64_t *draws)
{
    const uint64_t until_ns = clock_now_ns() + BATCHES_PATIENCE_NS;
    int code = 1;

    pthread_mutex_lock(&batches->lock);
    while (code == 1 && batches->epochs <= epoch && !batches->cancelled)
        code = thread_condition_wait(&batches->batch_complete, &batches->lock, until_ns);
    if (batches->cancelled)
        code = -ECANCELED;
    else if (code == 1)
        *draws = batches->ranges[epoch % EPOCHS_KEPT].draws;
    pthread_mutex_unlock(&batches->lock);
    return code;
}

bool batches_is_open(const struct batches *batches, uint64_t batch)
{
    return batch < gate_value(&batches->opened);
}

int batches_wait_open(struct batches *batches, uint64_t batch, uint64_t *waited_ns)
{
    int code = 0;

    if (batches_is_open(batches, batch))
        return 0;
    const uint64_t start_ns = clock_now_ns();
    uint64_t now_ns = start_ns;
    pthread_mutex_lock(&batches->lock);
    stall_begin(&batches->opening, clock_now_ns());
    while (batch >= gate_value(&batches->opened) && !batches->cancelled) {
        const uint64_t before_ns = now_ns;
        thread_condition_wait(&batches->batch_opened, &batches->lock, before_ns + METER_WAIT_NS);
        now_ns = clock_now_ns();
        meter_add(batches->config.meter, METER_DECODE_BATCH_NS, now_ns - before_ns);
    }
    stall_end(&batches->opening, clock_now_ns());
    if (batches->cancelled)
        code = -ECANCELED;
    pthread_mutex_unlock(&batches->lock);
    *waited_ns += now_ns - start_ns;
    return code;
}

static uint64_t ring_row(const struct batches *batches, uint64_t address)
{
    return address % ((uint64_t)batches->config.buffers * batches->config.batch_size);
}

void *batches_row(struct batches *batches, uint64_t address)
{
    if (!batches->config.row_bytes)
        return NULL;
    return (char *)batches->config.rows + ring_row(batches, address) * batches->config.row_bytes;
}

int32_t *batches_label(struct batches *batches, uint64_t address)
{
    return &batches->labels[ring_row(batches, address)];
}

void batch_account_add(struct batch_account *sum, const struct batch_account *part)
{
    sum->samples += part->samples;
    sum->skipped += part->skipped;
    sum->record_bytes += part->record_bytes;
    sum->digest_sum += part->digest_sum;
    sum->digest_xor ^= part->digest_xor;
}

void batches_done(struct batches *batches, uint64_t batch, uint32_t rows,
                  const struct batch_account *account)
{
    struct batch_buffer *buffer = &batches->buffers[batch % batches->config.buffers];

    pthread_mutex_lock(&batches->lock);
    batch_account_add(&buffer->account, account);
    assert(rows <= buffer->rows_left && !buffer->complete);
    buffer->rows_left -= rows;
    buffer->complete = buffer->rows_left == 0;
    buffer->ready_ns = buffer->complete ? clock_now_ns() : 0;
    const bool is_awaited = buffer->complete && batch == batches->taken;
    pthread_mutex_unlock(&batches->lock);
    if (is_awaited) /* without the lock, for which a trainer woken at once would only wait */
        pthread_cond_signal(&batches->batch_complete);
}

uint64_t batches_open_wait_ns(struct batches *batches)
{
    pthread_mutex_lock(&batches->lock);
    uint64_t waited_ns = stall_ns(&batches->opening, clock_now_ns());
    pthread_mutex_unlock(&batches->lock);
    return waited_ns;
}

int batches_take(struct batches *batches, struct batch *batch)
{
    const uint64_t until_ns = clock_now_ns() + BATCHES_PATIENCE_NS;
    int code = 1;

    pthread_mutex_lock(&batches->lock);
    uint64_t number = batches->taken;
    struct batch_buffer *buffer = &batches->buffers[number % batches->config.buffers];
    while (code == 1 && !batches->cancelled &&
           !(number < gate_value(&batches->opened) && buffer->complete))
        code = thread_condition_wait(&batches->batch_complete, &batches->lock, until_ns);
    if (batches->cancelled) {
        code = -ECANCELED;
    } else if (code == 1) {
        const struct epoch_range *range = &batches->ranges[batches->take_epoch % EPOCHS_KEPT];
        while (number >= range->first_batch + range->batches)
            range = &batches->ranges[++batches->take_epoch % EPOCHS_KEPT];
        uint64_t address = number * batches->config.batch_size;
        batch->rows = batches_row(batches, address);
        batch->labels = batches_label(batches, address);
        batch->count = rows_of(batches, number, batches->take_epoch);
        batch->number = number;
        batch->epoch = batches->take_epoch;
        batch->step = number - range->first_batch;
        batch->ready_ns = buffer->ready_ns;
        batch->account = buffer->account;
        batches->taken++;
        check_batches(batches);
    }
    pthread_mutex_unlock(&batches->lock);
    return code;
}

void batches_give(struct batches *batches)
{
    pthread_mutex_lock(&batches->lock);
    batches->given++;
    open_batches(batches);
    check_batches(batches);
    pthread_mutex_unlock(&batches->lock);
}

void batches_cancel(struct batches *batches)
{
    pthread_mutex_lock(&batches->lock);
    batches->cancelled = true;
    pthread_cond_broadcast(&batches->batch_opened);
    pthread_cond_broadcast(&batches->batch_complete);
    pthread_mutex_unlock(&batches->lock);
}

static void cancel_batches(void *state)
{
    batches_cancel(state);
}

struct loader_sink batches_sink(struct batches *batches)
{
    return (struct loader_sink){.expect = expect_draws, .cancel = cancel_batches, .state = batches};
}
