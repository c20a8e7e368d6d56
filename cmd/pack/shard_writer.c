/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant: places [written, claimed) are in slots place % PENDING_MOST, each being filled or
 * ready; claimed <= written + PENDING_MOST. A slot belongs to the producer that claimed its place
 * until ready, then to the writer.
 */
#include "cmd/pack/shard_writer.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "cmd/pack/image_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MOST = 32, PRODUCERS_MOST = 64 };

struct pending_sample {
    struct source_buffer memory;
    void *encoded; /* image made from the stored one */
    size_t encoded_capacity;
    struct sample sample;
    char name[24];
    bool ready, skipped;
};

struct shard_writer {
    struct shard_writer_common *common;
    pthread_mutex_t lock;
    pthread_cond_t filled; /* the writer waits for the slot of the place `written` */
    pthread_cond_t freed;  /* producers wait for slots */
    uint64_t claimed, written, end;
    uint32_t waiting; /* producers */
    bool cancelled;   /* by either side */
    struct pending_sample slots[PENDING_MOST];
};

static void cancel(struct shard_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->cancelled = true;
    pthread_cond_broadcast(&writer->filled);
    pthread_cond_broadcast(&writer->freed);
    pthread_mutex_unlock(&writer->lock);
}

/* ---- producers ---- */

static bool claim(struct shard_writer *writer, uint64_t *place)
{
    pthread_mutex_lock(&writer->lock);
    while (!writer->cancelled && writer->claimed < writer->end &&
           writer->claimed >= writer->written + PENDING_MOST) {
        writer->waiting++;
        pthread_cond_wait(&writer->freed, &writer->lock);
        writer->waiting--;
    }
    bool got = !writer->cancelled && writer->claimed < writer->end;
    if (got)
        *place = writer->claimed++;
    pthread_mutex_unlock(&writer->lock);
    return got;
}

/* Count what the last failure tells, and keep the first reason. */
static void note(struct shard_writer_common *common, struct counter *counter, char first[512])
{
    counter_add(counter, 1);
    pthread_mutex_lock(&common->lock);
    if (!first[0])
        snprintf(first, 512, "%s", fail_reason());
    pthread_mutex_unlock(&common->lock);
}

/* A copy of a damaged image is no fault of pack, but nobody else may look. Generated samples may be
 * no images. */
static void look_at_image(struct shard_writer_common *common, const struct sample *sample)
{
    struct image_header header;

    if (common->source->ops->generates ||
        image_check_headers(sample->image, sample->image_bytes, &header) == 0)
        return;
    fail(EBADMSG, "%.*s: %s", (int)sample->name_bytes, sample->name, fail_reason());
    note(common, &common->damaged, common->first_damaged);
    fail_clear();
}

static int recode(struct shard_writer_common *common, struct recoder *recoder, uint64_t number,
                  struct pending_sample *slot)
{
    const size_t bytes = slot->sample.image_bytes;
    int code = recoder_apply(recoder, &slot->sample, &slot->encoded, &slot->encoded_capacity);

    if (code < 0)
        return fail(code, "sample %llu: %s", (unsigned long long)number, fail_reason());
    if (code == 1) {
        counter_add(&common->recoded, 1);
        counter_add(&common->unrecoded_bytes, bytes);
    }
    return 0;
}

/* Read one sample. Every format can hold an encoded image with a name. */
static int fill(struct shard_writer *writer, struct recoder *recoder, void *cursor, uint64_t place,
                struct pending_sample *slot)
{
    struct shard_writer_common *common = writer->common;
    struct sample *sample = &slot->sample;
    uint64_t number = common->order ? permutation_at(common->order, place) : place;
    int code = source_read(common->source, cursor, number, &slot->memory, sample);

    if (code == 0 && sample->image_bytes == 0)
        code = fail(ENODATA, "sample %llu (%.*s) has no image", (unsigned long long)number,
                    (int)sample->name_bytes, sample->name);
    if (code == 0 && (common->recode.side || common->recode.raw))
        code = recode(common, recoder, number, slot);
    if (code == 0 && sample->encoding != SAMPLE_ENCODED) {
        code = image_to_jpeg(sample, common->recode.quality, &slot->encoded,
                             &slot->encoded_capacity, &sample->image_bytes);
        sample->image = slot->encoded;
        sample->encoding = SAMPLE_ENCODED;
        counter_add(&common->encoded, 1);
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
    look_at_image(common, sample);
    return 0;
}

static int produce(void *argument)
{
    struct shard_writer *writer = argument;
    struct recoder recoder;
    void *cursor;
    uint64_t place;
    int code = source_cursor_open(writer->common->source, &cursor);

    if (code == 0)
        code = recoder_open(&recoder, &writer->common->recode);
    else
        recoder = (struct recoder){0};

    while (code == 0 && claim(writer, &place)) {
        struct pending_sample *slot = &writer->slots[place % PENDING_MOST];
        code = fill(writer, &recoder, cursor, place, slot);
        slot->skipped = code != 0;
        if (code && writer->common->skip && code != -ENOMEM) {
            note(writer->common, &writer->common->skipped, writer->common->first_skipped);
            code = 0;
        }
        if (code)
            break;
        pthread_mutex_lock(&writer->lock);
        slot->ready = true;
        if (place == writer->written)
            pthread_cond_signal(&writer->filled);
        pthread_mutex_unlock(&writer->lock);
    }
    if (code)
        cancel(writer);
    recoder_close(&recoder);
    if (cursor)
        source_cursor_close(writer->common->source, cursor);
    return code;
}

/* ---- the output ---- */

static int append_all(struct shard_writer *writer, struct format_writer *output)
{
    int code = 0;

    while (code == 0 && writer->written < writer->end) {
        struct pending_sample *slot = &writer->slots[writer->written % PENDING_MOST];
        pthread_mutex_lock(&writer->lock);
        while (!slot->ready && !writer->cancelled)
            pthread_cond_wait(&writer->filled, &writer->lock);
        bool ready = slot->ready && !writer->cancelled;
        pthread_mutex_unlock(&writer->lock);
        if (!ready || flag_get(&writer->common->stop))
            return -ECANCELED;
        if (!slot->skipped) {
            code = format_writer_append(output, &slot->sample);
            counter_add(&writer->common->bytes, slot->sample.image_bytes);
        }
        counter_add(&writer->common->samples, 1);
        pthread_mutex_lock(&writer->lock);
        slot->ready = false;
        writer->written++;
        /* A wake-up costs more than a small sample: one for many slots. */
        if (writer->waiting && writer->claimed - writer->written <= PENDING_MOST / 2)
            pthread_cond_broadcast(&writer->freed);
        pthread_mutex_unlock(&writer->lock);
    }
    return code;
}

static int write_shard(struct shard_writer *writer, struct thread *producers, const char *path)
{
    struct format_writer output;
    char reason[FAIL_REASON_BYTES];
    uint32_t count =
        writer->common->producers < PRODUCERS_MOST ? writer->common->producers : PRODUCERS_MOST;
    int code = format_writer_open(&output, writer->common->format, path);

    for (uint32_t i = 0; code == 0 && i < count; i++)
        code = thread_start(&producers[i], "producer", produce, writer);
    if (code == 0)
        code = append_all(writer, &output);
    if (code)
        cancel(writer);
    /* A writer that waited in vain has no reason: the failed producer has it. */
    snprintf(reason, sizeof reason, "%s", fail_reason());
    for (uint32_t i = 0; i < count; i++) {
        int failed = thread_join(&producers[i]);
        if (failed && code == -ECANCELED) {
            code = failed;
            snprintf(reason, sizeof reason, "%s", fail_reason());
        }
    }
    int closed = format_writer_close(&output, code == 0);
    if (code == 0)
        return closed;
    return code == -ECANCELED ? code : fail(code, "%s", reason);
}

int shard_writer_run(struct shard_writer_common *common, const char *path, uint64_t begin,
                     uint64_t end)
{
    struct shard_writer *writer = memory_zeroed(sizeof *writer);
    struct thread *producers = memory_array(PRODUCERS_MOST, sizeof *producers);
    int code = -ENOMEM;

    if (writer && producers) {
        writer->common = common;
        writer->claimed = writer->written = begin;
        writer->end = end;
        pthread_mutex_init(&writer->lock, NULL);
        pthread_cond_init(&writer->filled, NULL);
        pthread_cond_init(&writer->freed, NULL);
        code = write_shard(writer, producers, path);
        for (int i = 0; i < PENDING_MOST; i++) {
            source_buffer_release(&writer->slots[i].memory);
            free(writer->slots[i].encoded);
        }
        pthread_cond_destroy(&writer->filled);
        pthread_cond_destroy(&writer->freed);
        pthread_mutex_destroy(&writer->lock);
    }
    free(producers);
    free(writer);
    return code;
}
