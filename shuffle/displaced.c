/* SPDX-License-Identifier: Apache-2.0
 * MosaicML streaming's py1e: shards in random order, shuffled inside; then each record is displaced
 * by a uniform random distance, and all are sorted by where they fell.
 *
 * Streamed: a record falls at most `reach` before its own position, so once records up to p are
 * thrown, those that fell before p - reach are final. A heap holds the others. Distances are
 * multiples of 2^-20 of a record: the same bits on every machine.
 *
 * Under the elastic partition there are `nodes` such streams (see shuffle/mosaic.c for the reason),
 * and every rank throws all records and keeps its own: a sorted order cannot be entered in the
 * middle. */
#include "base/fail.h"
#include "base/option.h"
#include "shuffle/mosaic.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

#include <errno.h>
#include <stdlib.h>

enum { FRACTION_BITS = 20 };

struct fallen {
    int64_t where; /* in 2^-20 records from the start of the stream */
    uint64_t position;
};

struct stream {
    uint64_t begin, end; /* positions of the walk */
    uint64_t thrown;     /* the next position to throw */
    struct fallen *heap; /* smallest first */
    uint64_t count;
    struct random random;
    /* the shard part that contains position thrown */
    uint64_t part_begin, part_end;
    int64_t low;    /* lower bound of the distance, in 2^-20 records */
    uint64_t width; /* range of the distance; 0: the part stays in place */
    struct permutation permutation;
};

struct displaced_settings {
    uint64_t block, nodes;
};

struct displaced_state {
    struct sequence sequence;
    struct sequence_cursor cursor;
    uint32_t nodes;
    uint64_t block_records;
    uint64_t heap_capacity; /* per stream */
    uint64_t total, seed;
    uint64_t walked; /* draws of all ranks so far */
    uint64_t last;   /* position of the last of these draws */
    struct stream *streams;
    struct fallen *heaps;
};

static void heap_push(struct stream *stream, struct fallen fallen)
{
    struct fallen *heap = stream->heap;
    uint64_t at = stream->count++;

    for (; at > 0; at = (at - 1) / 2) {
        const struct fallen *parent = &heap[(at - 1) / 2];
        if (parent->where <= fallen.where)
            break;
        heap[at] = *parent;
    }
    heap[at] = fallen;
}

static uint64_t heap_pop(struct stream *stream)
{
    struct fallen *heap = stream->heap;
    const uint64_t position = heap[0].position, count = --stream->count;
    const struct fallen moved = heap[count];
    uint64_t at = 0;

    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].where < heap[child].where)
            child++;
        if (moved.where <= heap[child].where)
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
    return position;
}

/* A part of n records may fall up to (U(0.75, 1.25) x block - n) / 2 to either side, within the
 * stream; a part larger than its block stays in place. */
static void enter_part(struct displaced_state *displaced, struct stream *stream)
{
    const uint64_t low = displaced->block_records * 3 / 4;
    const uint64_t high = displaced->block_records * 5 / 4;

    sequence_bounds(&displaced->sequence, stream->thrown, &stream->part_begin, &stream->part_end);
    if (stream->part_end > stream->end)
        stream->part_end = stream->end;
    const uint64_t records = stream->part_end - stream->part_begin;
    const uint64_t size = low + random_below(&stream->random, high - low);
    const uint64_t cutoff = size > records ? (size - records) << (FRACTION_BITS - 1) : 0;
    const uint64_t before = (stream->part_begin - stream->begin) << FRACTION_BITS;
    const uint64_t after = (stream->end - stream->part_end) << FRACTION_BITS;
    const uint64_t back = cutoff < before ? cutoff : before;
    stream->low = -(int64_t)back;
    stream->width = back + (cutoff < after ? cutoff : after);
    stream->permutation = permutation_start(
        random_hash(displaced->seed, stream->part_begin, stream->part_end), records);
}

static uint64_t stream_next(struct displaced_state *displaced, struct stream *stream)
{
    const int64_t reach = (int64_t)displaced->block_records * 5 << (FRACTION_BITS - 3);

    while (stream->thrown < stream->end) {
        const int64_t here = (int64_t)((stream->thrown - stream->begin) << FRACTION_BITS);
        if (stream->count && stream->heap[0].where < here - reach)
            break;
        if (stream->thrown >= stream->part_end)
            enter_part(displaced, stream);
        struct fallen fallen = {.where = here + stream->low};
        if (stream->width)
            fallen.where += (int64_t)random_below(&stream->random, stream->width);
        fallen.position = stream->part_begin +
                          permutation_at(&stream->permutation, stream->thrown - stream->part_begin);
        heap_push(stream, fallen);
        stream->thrown++;
    }
    return heap_pop(stream);
}

static void start_streams(struct displaced_state *displaced)
{
    for (uint32_t node = 0; node < displaced->nodes; node++) {
        const uint64_t begin = mosaic_node_start(displaced->total, node, displaced->nodes);
        displaced->streams[node] = (struct stream){
            .begin = begin,
            .end = mosaic_node_start(displaced->total, node + 1, displaced->nodes),
            .thrown = begin,
            .part_begin = begin,
            .part_end = begin,
            .heap = displaced->heaps + node * displaced->heap_capacity,
            .random = random_start(random_hash(displaced->seed, node, 0)),
        };
    }
    displaced->walked = 0;
}

static int displaced_open(void *state, const void *settings, const struct plan_scope *scope,
                          struct plan_traits *traits)
{
    struct displaced_state *displaced = state;
    const struct displaced_settings *chosen = settings;
    const bool elastic = scope->partition == PLAN_ELASTIC;
    const struct sequence_rules rules = {.unit = SEQUENCE_SHARDS,
                                         .permute = true,
                                         .stride = true,
                                         .nodes = elastic ? (uint32_t)chosen->nodes : 1};

    displaced->nodes = rules.nodes;
    if (rules.nodes > scope->catalog->record_count)
        return fail(EINVAL, "%u canonical nodes exceed the %llu records", rules.nodes,
                    (unsigned long long)scope->catalog->record_count);
    int code = sequence_open(&displaced->sequence, scope, &rules, traits);
    if (code)
        return code;
    displaced->block_records = chosen->block;
    /* The heap holds records thrown from less than twice the reach before, and at most one stream's
     * records. */
    const uint64_t length = sequence_length_max(&displaced->sequence) > scope->catalog->record_count
                                ? sequence_length_max(&displaced->sequence)
                                : scope->catalog->record_count;
    const uint64_t most = length / displaced->nodes + 1;
    displaced->heap_capacity = chosen->block * 5 / 4 + 2;
    if (displaced->heap_capacity > most)
        displaced->heap_capacity = most;
    displaced->streams = sequence_table(scope, traits, displaced->nodes, sizeof(struct stream),
                                        "its canonical nodes");
    if (!displaced->streams)
        return -ENOMEM;
    displaced->heaps = sequence_table(scope, traits, displaced->nodes * displaced->heap_capacity,
                                      sizeof(struct fallen), "displaced records");
    return displaced->heaps ? 0 : -ENOMEM;
}

static void displaced_close(void *state)
{
    struct displaced_state *displaced = state;

    sequence_close(&displaced->sequence);
    free(displaced->streams);
    free(displaced->heaps);
    displaced->streams = NULL;
    displaced->heaps = NULL;
}

static int displaced_begin(void *state, uint64_t epoch)
{
    struct displaced_state *displaced = state;
    const struct plan_scope *scope = &displaced->sequence.scope;
    int code = sequence_begin(&displaced->sequence, epoch);

    if (code)
        return code;
    displaced->cursor = (struct sequence_cursor){0};
    displaced->seed = sequence_seed(scope, SEQUENCE_INSIDE, epoch, sequence_is_shared(scope));
    displaced->total =
        scope->partition == PLAN_ELASTIC ? displaced->sequence.own : displaced->sequence.length;
    start_streams(displaced);
    return 0;
}

static uint64_t displaced_record(void *context, uint64_t place)
{
    struct displaced_state *displaced = context;
    const uint64_t wanted = sequence_position(&displaced->sequence, place);

    while (displaced->walked <= wanted) {
        const uint64_t draw = displaced->walked++ % displaced->total;
        if (draw == 0 && displaced->walked > 1) { /* padding starts the order over */
            const uint64_t walked = displaced->walked;
            start_streams(displaced);
            displaced->walked = walked;
        }
        /* Only the longer parts take part in the last round; the woven position gives the part. */
        const uint64_t turn = displaced->total / displaced->nodes * displaced->nodes;
        uint64_t node = draw % displaced->nodes;
        if (draw >= turn) {
            const uint64_t woven = mosaic_weave(draw, displaced->total, displaced->nodes);
            for (node = 0; displaced->streams[node].end <= woven; node++)
                ;
        }
        displaced->last = stream_next(displaced, &displaced->streams[node]);
    }
    return sequence_at(&displaced->sequence, displaced->last);
}

static int displaced_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct displaced_state *displaced = state;

    return sequence_next(&displaced->cursor, displaced->sequence.draws, displaced_record, displaced,
                         ops, max);
}

static uint64_t displaced_draws(void *state)
{
    return ((struct displaced_state *)state)->sequence.draws;
}

/* The records before this draw are thrown when the next one is requested. */
static void displaced_seek(void *state, uint64_t draw)
{
    ((struct displaced_state *)state)->cursor = (struct sequence_cursor){.place = draw};
}

static const struct option_spec displaced_options[] = {
    {.name = "block",
     .type = OPTION_COUNT,
     .offset = offsetof(struct displaced_settings, block),
     .fallback = "256k",
     .minimum = 4,
     .maximum = 4e9,
     .summary = "records over which a shard is spread, give or take a quarter"},
    {.name = "nodes",
     .type = OPTION_COUNT,
     .offset = offsetof(struct displaced_settings, nodes),
     .fallback = "1",
     .minimum = 1,
     .maximum = 1e6,
     .summary = "canonical nodes, for partition elastic"},
    {0},
};

const struct shuffle_ops shuffle_py1e = {
    .plugin = {.name = "py1e",
               .summary = "MosaicML py1e: random shards, each record displaced at random",
               .options = displaced_options,
               .settings_size = sizeof(struct displaced_settings),
               .state_size = sizeof(struct displaced_state)},
    .open = displaced_open,
    .close = displaced_close,
    .begin = displaced_begin,
    .next = displaced_next,
    .draws = displaced_draws,
    .seek = displaced_seek,
};
