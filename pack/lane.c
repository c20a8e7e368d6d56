/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant: places [written, claimed) are in slots place % LANE_SLOTS, each being filled or
 * ready; claimed <= written + LANE_SLOTS. A slot belongs to the producer that claimed its place
 * until it is ready, then to the writer.
 */
#include "pack/lane.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "pack/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANE_SLOTS = 32, LANE_PRODUCERS_LIMIT = 64 };

struct lane_slot {
    struct origin_slot memory;
    void *encoded; /* a raw image, made into a JPEG */
    size_t encoded_capacity;
    struct sample sample;
    char name[24];
    bool ready, skipped;
};

struct lane {
    struct lane_site *site;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t claimed, written, end;
    bool cancelled; /* by either side */
    struct lane_slot slots[LANE_SLOTS];
};

static void cancel(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->cancelled = true;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}

/* ---- producers ---- */

static bool claim(struct lane *lane, uint64_t *place)
{
    pthread_mutex_lock(&lane->lock);
    while (!lane->cancelled && lane->claimed < lane->end &&
           lane->claimed >= lane->written + LANE_SLOTS)
        pthread_cond_wait(&lane->changed, &lane->lock);
    bool got = !lane->cancelled && lane->claimed < lane->end;
    if (got)
        *place = lane->claimed++;
    pthread_mutex_unlock(&lane->lock);
    return got;
}

/* Bring one sample. Every format can hold an encoded image with a name. */
static int fill(struct lane *lane, void *cursor, uint64_t place, struct lane_slot *slot)
{
    struct lane_site *site = lane->site;
    struct sample *sample = &slot->sample;
    uint64_t number = site->order ? permutation_at(site->order, place) : place;
    int code = origin_read(site->origin, cursor, number, &slot->memory, sample);

    if (code == 0 && sample->encoding != SAMPLE_ENCODED) {
        code = picture_encode(sample, site->quality, &slot->encoded, &slot->encoded_capacity,
                              &sample->image_bytes);
        sample->image = slot->encoded;
        sample->encoding = SAMPLE_ENCODED;
    }
    if (code)
        return code;
    if (sample->id == 0)
        sample->id = number;
    if (sample->name_bytes == 0) {
        sample->name = slot->name;
        sample->name_bytes =
            (size_t)snprintf(slot->name, sizeof slot->name, "%08llu", (unsigned long long)number);
    }
    return 0;
}

static void note_skipped(struct lane_site *site)
{
    counter_add(&site->skipped, 1);
    pthread_mutex_lock(&site->lock);
    if (!site->first_skipped[0])
        snprintf(site->first_skipped, sizeof site->first_skipped, "%s", fail_reason());
    pthread_mutex_unlock(&site->lock);
}

static int produce(void *argument)
{
    struct lane *lane = argument;
    void *cursor;
    uint64_t place;
    int code = origin_cursor_open(lane->site->origin, &cursor);

    while (code == 0 && claim(lane, &place)) {
        struct lane_slot *slot = &lane->slots[place % LANE_SLOTS];
        code = fill(lane, cursor, place, slot);
        slot->skipped = code != 0;
        if (code && lane->site->skip && code != -ENOMEM) {
            note_skipped(lane->site);
            code = 0;
        }
        if (code)
            break;
        pthread_mutex_lock(&lane->lock);
        slot->ready = true;
        pthread_cond_broadcast(&lane->changed);
        pthread_mutex_unlock(&lane->lock);
    }
    if (code)
        cancel(lane);
    if (cursor)
        origin_cursor_close(lane->site->origin, cursor);
    return code;
}

/* ---- the writer ---- */

static int append_all(struct lane *lane, struct format_writer *writer)
{
    int code = 0;

    while (code == 0 && lane->written < lane->end) {
        struct lane_slot *slot = &lane->slots[lane->written % LANE_SLOTS];
        pthread_mutex_lock(&lane->lock);
        while (!slot->ready && !lane->cancelled)
            pthread_cond_wait(&lane->changed, &lane->lock);
        bool ready = slot->ready && !lane->cancelled;
        pthread_mutex_unlock(&lane->lock);
        if (!ready || flag_get(&lane->site->stop))
            return -ECANCELED;
        if (!slot->skipped) {
            code = format_writer_append(writer, &slot->sample);
            counter_add(&lane->site->bytes, slot->sample.image_bytes);
        }
        counter_add(&lane->site->samples, 1);
        pthread_mutex_lock(&lane->lock);
        slot->ready = false;
        lane->written++;
        pthread_cond_broadcast(&lane->changed);
        pthread_mutex_unlock(&lane->lock);
    }
    return code;
}

static int write_shard(struct lane *lane, struct thread *producers, const char *path)
{
    struct format_writer writer;
    char reason[FAIL_REASON_BYTES];
    uint32_t count =
        lane->site->producers < LANE_PRODUCERS_LIMIT ? lane->site->producers : LANE_PRODUCERS_LIMIT;
    int code = format_writer_open(&writer, lane->site->format, path);

    for (uint32_t i = 0; code == 0 && i < count; i++)
        code = thread_start(&producers[i], "producer", produce, lane);
    if (code == 0)
        code = append_all(lane, &writer);
    if (code)
        cancel(lane);
    /* A writer that only waited in vain has no reason: the producer that failed has it. */
    snprintf(reason, sizeof reason, "%s", fail_reason());
    for (uint32_t i = 0; i < count; i++) {
        int failed = thread_join(&producers[i]);
        if (failed && code == -ECANCELED) {
            code = failed;
            snprintf(reason, sizeof reason, "%s", fail_reason());
        }
    }
    int closed = format_writer_close(&writer, code == 0);
    if (code == 0)
        return closed;
    return code == -ECANCELED ? code : fail(code, "%s", reason);
}

int lane_write(struct lane_site *site, const char *path, uint64_t begin, uint64_t end)
{
    struct lane *lane = memory_zeroed(sizeof *lane);
    struct thread *producers = memory_array(LANE_PRODUCERS_LIMIT, sizeof *producers);
    int code = -ENOMEM;

    if (lane && producers) {
        lane->site = site;
        lane->claimed = lane->written = begin;
        lane->end = end;
        pthread_mutex_init(&lane->lock, NULL);
        pthread_cond_init(&lane->changed, NULL);
        code = write_shard(lane, producers, path);
        for (int i = 0; i < LANE_SLOTS; i++) {
            origin_slot_release(&lane->slots[i].memory);
            free(lane->slots[i].encoded);
        }
        pthread_cond_destroy(&lane->changed);
        pthread_mutex_destroy(&lane->lock);
    }
    free(producers);
    free(lane);
    return code;
}
