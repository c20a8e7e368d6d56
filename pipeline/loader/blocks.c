/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/blocks.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/fault_guard.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int blocks_create(struct blocks *blocks, uint32_t count, struct arenas *arenas,
                  struct inflight *inflight, bool skip_errors)
{
    *blocks = (struct blocks){
        .arenas = arenas, .inflight = inflight, .skip_errors = skip_errors, .count = count};
    blocks->all = memory_array(count, sizeof *blocks->all);
    blocks->free = memory_array(count, sizeof(void *));
    return blocks->all && blocks->free ? 0 : -ENOMEM;
}

void blocks_destroy(struct blocks *blocks)
{
    free(blocks->free);
    if (blocks->arenas && blocks->arenas->held) /* a late answer is written to its request, too */
        memory_keep(blocks->all);
    else
        free(blocks->all);
}

void blocks_reset(struct blocks *blocks)
{
    blocks->free_count = 0;
    for (uint32_t i = blocks->count; i-- > 0;)
        blocks->free[blocks->free_count++] = &blocks->all[i];
    blocks->refused = NULL;
    blocks->releases = 0;
    blocks->starved = blocks->saving = false;
}

/* ---- release ---- */

static void note_release(struct blocks *blocks)
{
    blocks->releases++;
    blocks->starved = false;
}

static void release_holder(struct blocks *blocks, struct block *block)
{
    assert(block->holders > 0);
    if (--block->holders > 0)
        return;
    reader_release(&blocks->inflight->reader, &block->request);
    note_release(blocks);
    if (block->memory && !block->request.held)
        arenas_release(blocks->arenas, block->memory);
    blocks->free[blocks->free_count++] = block;
}

void blocks_drop(struct blocks *blocks, struct fetch *fetch)
{
    if (fetch->copy)
        arenas_release(blocks->arenas, fetch->copy);
    if (fetch->block)
        release_holder(blocks, fetch->block);
}

/* Move the record to its own memory, if available, and release its block. */
static void copy_out(struct blocks *blocks, struct fetch *fetch)
{
    uint32_t region;
    void *copy = arenas_acquire(blocks->arenas, (uintptr_t)fetch->bytes, fetch->length, &region);

    if (!copy)
        return;
    fault_guard_begin();
    memcpy(copy, fetch->bytes, fetch->length);
    if (!fault_guard_end(fetch->bytes, fetch->length))
        fetch->code = -EFAULT; /* the decoders' fail_record() words the reason */
    fetch->bytes = fetch->copy = copy;
    release_holder(blocks, fetch->block);
    fetch->block = NULL;
}

void blocks_unmap(struct blocks *blocks, struct fetch *fetch)
{
    if (fetch->state == FETCH_READY && fetch->block && fetch->bytes &&
        fetch->block->request.result >= 0)
        copy_out(blocks, fetch);
}

/* ---- submission ---- */

static int submit(struct blocks *blocks, struct block *block)
{
    const bool was_idle = blocks->inflight->reader.in_flight == 0;

    assert(!blocks->starved);
    block->releases = blocks->releases;
    int code = inflight_submit(blocks->inflight, &block->request);
    if (code == -EAGAIN && was_idle)
        blocks->starved = true;
    return code;
}

int blocks_resubmit(struct blocks *blocks)
{
    int submitted = 0;

    while (blocks->refused && !blocks->starved) {
        struct block *block = blocks->refused;
        int code = submit(blocks, block);
        if (code == -EAGAIN)
            break;
        if (code)
            return code;
        blocks->refused = block->next;
        submitted = 1;
    }
    return submitted;
}

/* Return the bytes of gaps between the records of a run that is to be scattered: each record into
 * memory of its own, since it stays in a slot of the plan. Returns -1 if it is read into one block:
 * no record stays, the reader cannot, or records share bytes. */
static int64_t scattered_gap(const struct blocks *blocks, const struct coalesce_run *run,
                             const struct placed_fetch *fetches)
{
    uint64_t end = run->start, gap = 0;
    bool stays = false;

    if (run->count == 1 || !blocks->inflight->reader.traits.scatters)
        return -1;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct extent *place = &fetches[i].place;
        if (place->offset < end || place->bytes == 0)
            return -1;
        if (place->offset - end > gap)
            gap = place->offset - end;
        end = place->offset + place->bytes;
        stays |= fetches[i].fetch->address == FETCH_UNDRAWN;
    }
    return stays ? (int64_t)gap : -1;
}

/* Release the records' own memory, unless the kernel may still write there. */
static void release_copies(struct blocks *blocks, struct fetch *fetch, bool held)
{
    if (fetch->copy && !held)
        arenas_release(blocks->arenas, fetch->copy);
    fetch->copy = NULL;
}

/* List where the bytes of the run go. The list and the bytes of its gaps, which nobody needs, are
 * the block's memory. Returns false if memory is short. */
static bool scatter(struct blocks *blocks, struct block *block, const struct coalesce_run *run,
                    const struct placed_fetch *fetches, uint64_t gap)
{
    struct read_request *request = &block->request;
    const uint64_t list_bytes = 2 * run->count * sizeof(struct iovec);
    uint64_t end = run->start;

    block->memory = arenas_acquire(blocks->arenas, run->start, list_bytes + gap, &request->region);
    if (!block->memory)
        return false;
    request->parts = block->memory;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct extent *place = &fetches[i].place;
        uint32_t region = request->region;
        void *copy = arenas_acquire_near(blocks->arenas, place->offset, place->bytes, &region);
        if (!copy) {
            while (i-- > 0)
                release_copies(blocks, fetches[i].fetch, false);
            arenas_release(blocks->arenas, block->memory);
            request->part_count = 0;
            return false;
        }
        fetches[i].fetch->copy = copy;
        if (place->offset > end)
            request->parts[request->part_count++] = (struct iovec){
                .iov_base = (char *)block->memory + list_bytes, .iov_len = place->offset - end};
        request->parts[request->part_count++] =
            (struct iovec){.iov_base = copy, .iov_len = place->bytes};
        end = place->offset + place->bytes;
    }
    return true;
}

/* Acquire the memory that the run is read into. Returns false if memory is short. */
static bool acquire_memory(struct blocks *blocks, struct block *block,
                           const struct coalesce_run *run, const struct placed_fetch *fetches)
{
    const struct reader_traits *traits = &blocks->inflight->reader.traits;
    const int64_t gap = scattered_gap(blocks, run, fetches);

    block->memory = NULL;
    block->request.region = block->request.part_count = 0;
    if (traits->zero_copy || traits->no_bytes)
        return true;
    if (gap >= 0 && scatter(blocks, block, run, fetches, (uint64_t)gap))
        return true;
    block->memory =
        arenas_acquire(blocks->arenas, run->start, run->end - run->start, &block->request.region);
    return block->memory;
}

static void hold(struct block *block, const struct placed_fetch *fetches)
{
    block->fetches = NULL;
    for (uint32_t i = 0; i < block->fetch_count; i++) {
        struct fetch *fetch = fetches[i].fetch;
        assert(fetch->state == FETCH_PENDING && !fetch->block);
        fetch->block = block;
        fetch->offset = (uint32_t)(fetches[i].place.offset - block->request.offset);
        fetch->state = FETCH_READING;
        fetch->next_in_block = block->fetches;
        block->fetches = fetch;
    }
}

int blocks_submit(struct blocks *blocks, const struct coalesce_run *run,
                  const struct placed_fetch *fetches)
{
    assert(!blocks->refused);
    if (blocks->free_count == 0)
        return 0;
    struct block *block = blocks->free[blocks->free_count - 1];
    if (!acquire_memory(blocks, block, run, fetches))
        return 0;
    blocks->free_count--;
    block->fetch_count = block->holders = run->count;
    /* Member by member: an initialiser is compiled to REP STOS, and reads after it wait for it. */
    block->request.offset = run->start;
    block->request.shard = run->shard;
    block->request.bytes = (uint32_t)(run->end - run->start);
    block->request.needed = (uint32_t)(run->records_end - run->start);
    block->request.buffer = block->memory;
    block->request.owner = block;
    int code = submit(blocks, block);
    if (code) {
        if (block->memory)
            arenas_release(blocks->arenas, block->memory);
        for (uint32_t i = 0; i < run->count; i++)
            release_copies(blocks, fetches[i].fetch, false);
        blocks->free[blocks->free_count++] = block;
        return code;
    }
    hold(block, fetches);
    inflight_count(blocks->inflight, &block->request);
    return 1;
}

/* ---- completion ---- */

/* Every record of a failed block is read once more, alone, so that only the bad one is lost. */
static int split(struct blocks *blocks, struct block *block, struct placed_fetch *retry)
{
    const struct read_request *request = &block->request;
    const uint32_t count = block->fetch_count;
    struct fetch *fetch = block->fetches;

    for (uint32_t i = 0; i < count; i++, fetch = fetch->next_in_block) {
        retry[i] = (struct placed_fetch){.place = {.offset = request->offset + fetch->offset,
                                                   .bytes = fetch->length,
                                                   .shard = request->shard},
                                         .fetch = fetch};
        fetch->block = NULL;
        release_holder(blocks, block);
    }
    return (int)count;
}

int blocks_complete(struct blocks *blocks, struct read_request *request, struct placed_fetch *retry,
                    uint32_t room)
{
    struct block *block = request->owner;
    const uint32_t count = block->fetch_count;
    const bool failed = request->result < 0;

    assert(block->holders == count);
    if (request->result == -EAGAIN) { /* the reader had no free file */
        block->next = blocks->refused;
        blocks->refused = block;
        blocks->starved = block->releases == blocks->releases;
        return 0;
    }
    note_release(blocks);
    if (failed) {
        for (struct fetch *fetch = block->fetches; fetch; fetch = fetch->next_in_block)
            release_copies(blocks, fetch, request->held);
        int code = reader_explain(&blocks->inflight->reader, request);
        if (!blocks->skip_errors)
            return code;
        if (count > 1 && count <= room)
            return split(blocks, block, retry);
    }
    for (struct fetch *fetch = block->fetches; fetch; fetch = fetch->next_in_block) {
        assert(fetch->state == FETCH_READING && fetch->block == block);
        fetch->state = FETCH_READY;
        fetch->code = failed ? request->result : 0;
        if (failed || !request->data)
            continue;
        if (fetch->copy) { /* scattered */
            fetch->bytes = fetch->copy;
            fetch->block = NULL;
            release_holder(blocks, block);
            continue;
        }
        fetch->bytes = (const char *)request->data + fetch->offset;
        /* A record that stays in a slot of the plan must not keep the others' memory. */
        if (fetch->address == FETCH_UNDRAWN && count > 1 && block->memory && !blocks->saving)
            copy_out(blocks, fetch);
    }
    return 0;
}

/* ---- failure ---- */

int blocks_fail_starved(const struct blocks *blocks, uint64_t memory_bytes)
{
    const struct reader *reader = &blocks->inflight->reader;
    const char *name = blocks->inflight->name;
    char memory[32];

    if (reader->held)
        return fail(
            ETIMEDOUT,
            "%u reads that timed out hold every file that the %s reader may open; check the "
            "storage or raise the limit (ulimit -n)",
            reader->held, name);
    if (reader->traits.zero_copy)
        return fail(
            EMFILE,
            "records of the shuffle hold every file that the %s reader may have mapped, and the "
            "record memory of %s has no room to copy them; use more --memory, a smaller "
            "shuffle or another reader",
            name, bytes_text(memory_bytes, memory, sizeof memory));
    return fail(EMFILE,
                "the %s reader cannot start a read with none in flight: no file can be opened; "
                "raise the limit (ulimit -n)",
                name);
}
