/* SPDX-License-Identifier: Apache-2.0
 *
 * Why the window cannot starve: its records take at most a quarter of the memory and the plan's
 * slots at most half (checked before the run). Records of earlier windows are returned without
 * needing this one, so a whole window fits in the end. Records of a failed block do need it, while
 * draws behind them may hold all other memory: they come first, in draw order, so that the memory
 * which their block released is enough for the next to be drawn.
 */
#include "pipeline/loader/window.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int window_create(struct window *window, const struct catalog *catalog,
                  const struct coalesce *rules, uint64_t slots, uint64_t fetches)
{
    *window = (struct window){.catalog = catalog, .rules = *rules, .slot_count = slots};
    if (fetches > UINT32_MAX)
        return fail(EINVAL, "a shuffle of %llu slots is too large", (unsigned long long)slots);
    window->fetch_count = (uint32_t)fetches;
    window->fetches = memory_array(fetches, sizeof *window->fetches);
    window->free = memory_array(fetches, sizeof(void *));
    window->slots = memory_array(window->slot_count, sizeof(void *));
    window->entries = memory_array(rules->window + COALESCE_RECORDS_MAX, sizeof *window->entries);
    window->scratch = memory_array(rules->window, sizeof *window->scratch);
    return window->fetches && window->free && window->slots && window->entries && window->scratch
               ? 0
               : -ENOMEM;
}

void window_destroy(struct window *window)
{
    free(window->fetches);
    free(window->free);
    free(window->slots);
    free(window->entries);
    free(window->scratch);
}

void window_reset(struct window *window)
{
    window->free_count = 0;
    for (uint32_t i = window->fetch_count; i-- > 0;) {
        window->fetches[i].state = FETCH_FREE;
        window->free[window->free_count++] = &window->fetches[i];
    }
    memset(window->slots, 0, window->slot_count * sizeof *window->slots);
    window->at = window->count = 0;
    window->cut = 0;
}

void window_begin(struct window *window, struct plan *plan, uint64_t epoch, uint64_t draws,
                  uint64_t first_address)
{
    window->plan = plan;
    window->epoch = epoch;
    window->draws = draws;
    window->drawn = 0;
    window->first_address = first_address;
    window->op_at = window->op_count = 0;
    window->plan_ended = draws == 0;
}

static unsigned digit_of(const struct placed_fetch *entry, unsigned digit)
{
    const struct extent *place = &entry->place;

    return (unsigned)(digit < 8 ? place->offset >> 8 * digit : place->shard >> 8 * (digit - 8)) &
           255;
}

/* Sort by shard, then offset: a radix sort from the least significant byte up, which is stable,
 * allocates nothing and skips bytes that are the same in all entries. */
static void sort_entries(struct window *window)
{
    enum { DIGITS = sizeof(uint64_t) + sizeof(uint32_t) };
    struct placed_fetch *from = window->entries, *to = window->scratch;
    uint64_t offsets = 0;
    uint32_t shards = 0;

    for (uint32_t i = 1; i < window->count; i++) {
        offsets |= from[i].place.offset ^ from[0].place.offset;
        shards |= from[i].place.shard ^ from[0].place.shard;
    }
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        uint32_t starts[256] = {0}, start = 0;
        if (((digit < 8 ? offsets >> 8 * digit : shards >> 8 * (digit - 8)) & 255) == 0)
            continue;
        for (uint32_t i = 0; i < window->count; i++)
            starts[digit_of(&from[i], digit)]++;
        for (uint32_t value = 0; value < 256; value++) {
            const uint32_t count = starts[value];
            starts[value] = start;
            start += count;
        }
        for (uint32_t i = 0; i < window->count; i++)
            to[starts[digit_of(&from[i], digit)]++] = from[i];
        struct placed_fetch *other = from;
        from = to;
        to = other;
    }
    if (from != window->entries)
        memcpy(window->entries, from, window->count * sizeof *from);
}

int window_fill(struct window *window, struct draw_list *drawn)
{
    uint64_t bytes = 0;
    bool sorted = true;

    window->at = window->count = 0;
    if (window->free_count < window->rules.window)
        return 0;
    while (!window->plan_ended) {
        if (window->op_at == window->op_count) {
            int count = plan_next(window->plan, window->ops, WINDOW_OPS);
            if (count < 0)
                return count;
            assert(count > 0);
            window->op_at = 0;
            window->op_count = (uint32_t)count;
            /* Records of a shuffled order are anywhere in the catalog: a cache miss each, of which
             * the processor waits for several at once if nothing is done between them. */
            for (int i = 0; i < count; i++)
                if (window->ops[i].kind != PLAN_DRAW)
                    window->places[i] = *catalog_extent(window->catalog, window->ops[i].record);
        }
        const struct plan_op *op = &window->ops[window->op_at];
        if (op->kind == PLAN_DRAW) {
            struct fetch *fetch = window->slots[op->slot];
            assert(fetch);
            window->slots[op->slot] = NULL;
            fetch->address = window->first_address + window->drawn++;
            draw_list_append(drawn, fetch);
            window->plan_ended = window->drawn == window->draws;
            window->op_at++;
            continue;
        }
        if (coalesce_is_full(&window->rules, window->count, bytes))
            break;
        const struct extent *place = &window->places[window->op_at++];
        struct fetch *fetch = window->free[--window->free_count];
        assert(fetch->state == FETCH_FREE && !window->slots[op->slot]);
        /* Member by member: an initialiser is compiled to REP STOS, and reads after it wait for it.
         */
        fetch->record = op->record;
        fetch->address = FETCH_UNDRAWN;
        fetch->bytes = NULL;
        fetch->length = place->bytes;
        fetch->shard = place->shard;
        fetch->code = 0;
        fetch->epoch = window->epoch;
        fetch->state = FETCH_PENDING;
        fetch->offset = 0;
        fetch->alone = false;
        fetch->next_in_block = fetch->next_drawn = NULL;
        fetch->block = NULL;
        fetch->copy = NULL;
        window->slots[op->slot] = fetch;
        bytes += place->bytes;
        if (sorted && window->count > 0)
            sorted = !coalesce_before(place, &window->entries[window->count - 1].place);
        window->entries[window->count++] = (struct placed_fetch){.place = *place, .fetch = fetch};
    }
    if (!sorted)
        sort_entries(window);
    window->cut += !window->plan_ended && window->count < window->rules.window;
    return 0;
}

struct coalesce_run window_next(const struct window *window, bool single)
{
    const struct placed_fetch *next = window_fetches(window);
    const uint32_t left = window->count - window->at;
    struct coalesce_run run = coalesce_start(&window->rules, &next[0].place);

    if (single || next[0].fetch->alone)
        return run;
    while (run.count < left && !next[run.count].fetch->alone &&
           coalesce_extend(&window->rules, &run, &next[run.count].place))
        ;
    return run;
}

uint32_t window_room(const struct window *window)
{
    return window->rules.window + COALESCE_RECORDS_MAX - (window->count - window->at);
}

static int by_draw(const void *a, const void *b)
{
    const uint64_t first = ((const struct placed_fetch *)a)->fetch->address;
    const uint64_t second = ((const struct placed_fetch *)b)->fetch->address;

    return (first > second) - (first < second);
}

void window_put_back(struct window *window, const struct placed_fetch *fetches, uint32_t count)
{
    const uint32_t left = window->count - window->at;

    assert(count <= window_room(window));
    memmove(window->entries + count, window->entries + window->at, left * sizeof *window->entries);
    memcpy(window->entries, fetches, count * sizeof *fetches);
    window->at = 0;
    window->count = count + left;
    for (uint32_t i = 0; i < count; i++) {
        assert(fetches[i].fetch->state == FETCH_READING);
        fetches[i].fetch->state = FETCH_PENDING;
        fetches[i].fetch->alone = true;
    }
    while (count < window->count && window->entries[count].fetch->alone)
        count++;
    qsort(window->entries, count, sizeof *window->entries, by_draw);
}

void window_recycle(struct window *window, struct fetch *fetch)
{
    assert(fetch->state == FETCH_READY || fetch->state == FETCH_DELIVERED);
    fetch->state = FETCH_FREE;
    window->free[window->free_count++] = fetch;
}
