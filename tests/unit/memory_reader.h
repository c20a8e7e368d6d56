/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_reader: a reader of files whose bytes are a function of shard and offset; answers late,
 * out of order or wrongly, as `storage` says. For one program that includes it once. */
#ifndef IOBENCH_TESTS_MEMORY_READER_H
#define IOBENCH_TESTS_MEMORY_READER_H

#include "tests/unit/unit.h"

#include "base/atomic.h"
#include "base/random.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The bytes of shard s at offset o are a function of (s, o): those of a random text, again and
 * again. */
enum { PERIOD = 65537, SHARD_STEP = 12240 };
static uint8_t period[PERIOD];

static void fill_period(void)
{
    for (uint32_t i = 0; i < PERIOD; i++)
        period[i] = (uint8_t)(i * 0x9e3779b1u >> 24);
}

static uint64_t place_in_period(uint32_t shard, uint64_t offset)
{
    return (offset + (uint64_t)shard * SHARD_STEP) % PERIOD;
}

static uint8_t byte_at(uint32_t shard, uint64_t offset)
{
    return period[place_in_period(shard, offset)];
}

static void bytes_at(uint32_t shard, uint64_t offset, uint8_t *bytes, uint64_t count)
{
    for (uint64_t done = 0, now; done < count; done += now) {
        const uint64_t place = place_in_period(shard, offset + done);
        now = count - done < PERIOD - place ? count - done : PERIOD - place;
        memcpy(bytes + done, period + place, now);
    }
}

static struct {
    bool zero_copy, late, scatters;
    uint32_t alignment;
    struct counter scattered;       /* reads */
    uint64_t bad_shard, bad_offset; /* a read that covers it fails with EIO */
    bool bad_comes_last;            /* ... and ends when no other read is left */
    uint64_t reads_until_broken;    /* then reap itself fails; 0: never */
    uint64_t patience;   /* this read completes only when a later one is submitted; 0: none */
    uint64_t held_until; /* no read completes before so many are submitted */
    uint64_t naps_most;  /* ... or after this many milliseconds: */
    bool gave_up;
} storage;

struct test_reader {
    struct random random;
    struct read_request *held[64];
    uint32_t count, depth;
    uint64_t reads, submitted, naps;
    const struct catalog *catalog;
};

static int test_open(void *state, const void *settings, const struct reader_config *site,
                     struct reader_traits *traits)
{
    struct test_reader *reader = state;

    fill_period();
    reader->random = random_start(99);
    reader->depth = site->depth < 64 ? site->depth : 64;
    reader->catalog = site->catalog;
    traits->alignment = storage.alignment;
    traits->zero_copy = storage.zero_copy;
    traits->scatters = storage.scatters && storage.alignment == 1;
    return 0;
}

static void test_close(void *state)
{
    struct test_reader *reader = state;

    for (uint32_t i = 0; i < reader->count; i++)
        if (storage.zero_copy)
            free((void *)(uintptr_t)reader->held[i]->data);
}

static int test_submit(void *state, struct read_request *request)
{
    struct test_reader *reader = state;

    if (reader->count == reader->depth)
        return -EAGAIN;
    if (storage.held_until)
        usleep(2000); /* the next epoch's order is made meanwhile */
    if (storage.zero_copy)
        request->buffer = NULL;
    reader->held[reader->count++] = request;
    reader->submitted++;
    return 0;
}

/* True while the last submitted read waits for the next one, or all for more. */
static bool is_patient(struct test_reader *reader)
{
    const bool waits = reader->submitted < storage.held_until ||
                       (storage.patience && reader->submitted == storage.patience);

    if (!waits || storage.gave_up)
        return false;
    usleep(1000);
    storage.gave_up = ++reader->naps == storage.naps_most;
    return true;
}

/* Move the bytes from the buffer, which may be a part itself, to the parts. */
static void scatter(const struct read_request *request, const uint8_t *bytes)
{
    uint32_t bytes_left = request->bytes;

    for (uint32_t i = 0; i < request->part_count; i++) {
        memcpy(request->parts[i].iov_base, bytes, request->parts[i].iov_len);
        bytes += request->parts[i].iov_len;
        bytes_left -= (uint32_t)request->parts[i].iov_len;
    }
    assert_int_equal(bytes_left, 0);
    counter_add(&storage.scattered, 1);
}

static bool is_bad(const struct read_request *request)
{
    return request->shard == storage.bad_shard && request->offset <= storage.bad_offset &&
           storage.bad_offset < request->offset + request->bytes;
}

/* Return the index of the read to answer next. */
static uint32_t pick(struct test_reader *reader)
{
    uint32_t first = storage.late ? (uint32_t)random_below(&reader->random, reader->count) : 0;

    for (uint32_t i = 0; storage.bad_comes_last && i < reader->count; i++)
        if (!is_bad(reader->held[(first + i) % reader->count]))
            return (first + i) % reader->count;
    return first;
}

static void answer(struct test_reader *reader, struct read_request *request)
{
    const struct shard *shard = &reader->catalog->shards[request->shard];
    const bool is_scattered = request->part_count > 0;
    uint8_t *bytes = storage.zero_copy || is_scattered ? malloc(request->bytes) : request->buffer;
    uint64_t end = request->offset + request->bytes;

    request->data = is_scattered ? request->buffer : bytes;
    request->result = (int)(end > shard->bytes ? shard->bytes - request->offset : request->bytes);
    bytes_at(request->shard, request->offset, bytes, (uint64_t)request->result);
    if (is_scattered) {
        scatter(request, bytes);
        free(bytes);
    }
    if (is_bad(request)) {
        request->result = -EIO;
        if (storage.zero_copy)
            free(bytes);
    }
}

static int test_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct test_reader *reader = state;
    uint32_t count = 0;

    if (storage.reads_until_broken && ++reader->reads > storage.reads_until_broken)
        return -EIO;
    if (storage.late && wait_ns == 0)
        return 0;
    const uint32_t kept = !is_patient(reader) ? 0 : storage.held_until ? reader->count : 1;
    while (count < max && reader->count > kept &&
           (count == 0 || random_next(&reader->random) % 2)) {
        const uint32_t next = pick(reader);
        done[count] = reader->held[next];
        reader->held[next] = reader->held[--reader->count];
        answer(reader, done[count++]);
    }
    return (int)count;
}

static void test_release(void *state, struct read_request *request)
{
    free((void *)(uintptr_t)request->data);
}

static const struct reader_ops test_reader = {
    .plugin = {.name = "test", .state_size = sizeof(struct test_reader)},
    .open = test_open,
    .close = test_close,
    .submit = test_submit,
    .reap = test_reap,
    .release = test_release,
};

#endif
