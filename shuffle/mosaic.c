/* SPDX-License-Identifier: Apache-2.0
 * MosaicML streaming's py1s, py2s, py1br and py1e: shards in random order, records shuffled inside
 * shards or blocks, or displaced; fetched when they are drawn.
 *
 * Canonical nodes: under the elastic partition the walk is cut into `nodes` parts, each with shards
 * of its own for the whole run, and draw number g takes the next record of part g mod nodes. Any
 * number of ranks then sees the same global batches, and if the number of ranks divides `nodes`,
 * each shard is read on one rank only. Under other partitions the rank's walk is one part. */
#include "base/fail.h"
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

#include <assert.h>
#include <errno.h>

/* Return the first position of canonical node `node` of `nodes`, of total positions. */
static uint64_t node_start(uint64_t total, uint64_t node, uint32_t nodes)
{
    assert(node <= nodes && nodes > 0);
    return (uint64_t)((unsigned __int128)total * node / nodes);
}

/* Return the position of global draw `draw`: draws rotate over the nodes, each record once.
 * draw < total, 1 <= nodes <= total. */
static uint64_t weave(uint64_t draw, uint64_t total, uint32_t nodes)
{
    const uint64_t rounds = total / nodes, longer = total % nodes;

    assert(draw < total && nodes <= total);
    if (nodes == 1)
        return draw;
    if (draw < rounds * nodes)
        return node_start(total, draw % nodes, nodes) + draw / nodes;
    /* Only the parts that are one record longer take part in the last round: part n is longer if
     * its end times the remainder passes an integer. */
    const uint64_t turn = draw - rounds * nodes;
    const uint64_t node = ((turn + 1) * nodes + longer - 1) / longer - 1;
    return node_start(total, node, nodes) + rounds;
}

/* ---- state ---- */

struct mosaic_settings {
    uint64_t block, nodes;
};

struct mosaic_block {
    uint64_t begin, end;
};

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

struct mosaic_state {
    struct sequence sequence;
    bool fixes_shards;      /* py2s */
    uint64_t total;         /* positions before they wrap around */
    uint64_t block_records; /* of py1br and py1e */
    /* py1br only; else there are no blocks */
    uint64_t block_capacity, block_count;
    struct mosaic_block *blocks;
    /* the block or shard of the last draw */
    uint64_t now_begin, now_end;
    struct permutation permutation;
    /* py2s: the shard of that run, and its own permutation, which never changes */
    uint64_t shard_first;
    struct permutation fixed;
    /* py1e only; else there are no streams */
    struct stream *streams;
    struct fallen *heaps;
    uint64_t heap_capacity; /* per stream */
    uint64_t walked;        /* draws of all ranks so far */
    uint64_t last;          /* position of the last of these draws */
};

/* ---- random blocks of py1br, and shards of py1s and py2s ---- */

static uint64_t block_record(struct mosaic_state *mosaic, uint64_t position)
{
    uint64_t low = 0, high = mosaic->block_count;

    while (low < high) { /* find the first block that begins after position */
        uint64_t middle = low + (high - low) / 2;
        if (mosaic->blocks[middle].begin <= position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || position >= mosaic->blocks[low - 1].end) /* in no block */
        return sequence_at(&mosaic->sequence, position);
    for (uint64_t number = low - 1;; number--) { /* back through the overlapping blocks */
        const struct mosaic_block *block = &mosaic->blocks[number];
        if (mosaic->now_begin != block->begin || mosaic->now_end != block->end) {
            mosaic->permutation =
                permutation_start(random_hash(mosaic->sequence.seed, block->begin, block->end),
                                  block->end - block->begin);
            mosaic->now_begin = block->begin;
            mosaic->now_end = block->end;
        }
        position = block->begin + permutation_at(&mosaic->permutation, position - block->begin);
        if (number == 0 || position >= block[-1].end || position < block[-1].begin)
            return sequence_at(&mosaic->sequence, position);
    }
}

static uint64_t shard_record(struct mosaic_state *mosaic, uint64_t position)
{
    const struct catalog *catalog = mosaic->sequence.scope.catalog;

    if (position < mosaic->now_begin || position >= mosaic->now_end) {
        sequence_bounds(&mosaic->sequence, position, &mosaic->now_begin, &mosaic->now_end);
        if (mosaic->now_end > mosaic->total)
            mosaic->now_end = mosaic->total;
        mosaic->permutation = permutation_start(
            random_hash(mosaic->sequence.seed, mosaic->now_begin, mosaic->now_end),
            mosaic->now_end - mosaic->now_begin);
        if (mosaic->fixes_shards) {
            const uint64_t record = sequence_at(&mosaic->sequence, mosaic->now_begin);
            const uint32_t number = catalog_extent(catalog, record)->shard;
            const struct shard *shard = &catalog->shards[number];
            mosaic->shard_first = shard->first_record;
            mosaic->fixed = permutation_start(
                random_hash(sequence_seed(&mosaic->sequence.scope, SEQUENCE_FIXED, 0, true), number,
                            2),
                shard->record_count);
        }
    }
    position =
        mosaic->now_begin + permutation_at(&mosaic->permutation, position - mosaic->now_begin);
    const uint64_t record = sequence_at(&mosaic->sequence, position);
    if (!mosaic->fixes_shards)
        return record;
    return mosaic->shard_first + permutation_at(&mosaic->fixed, record - mosaic->shard_first);
}

static uint64_t mosaic_record(void *state, uint64_t place)
{
    struct mosaic_state *mosaic = state;
    const uint64_t position = sequence_position(&mosaic->sequence, place) % mosaic->total;
    const uint64_t woven = weave(position, mosaic->total, mosaic->sequence.rules.nodes);

    return mosaic->blocks ? block_record(mosaic, woven) : shard_record(mosaic, woven);
}

/* ---- py1e: shards in random order, shuffled inside; then each record is
 * displaced by a uniform random distance, and all are sorted by where they fell.
 *
 * Streamed: a record falls at most `reach` before its own position, so once records up to p are
 * thrown, those that fell before p - reach are final. A heap holds the others. Distances are
 * multiples of 2^-20 of a record: the same bits on every machine.
 *
 * Under the elastic partition there are `nodes` such streams (see above for the reason),
 * and every rank throws all records and keeps its own: a sorted order cannot be entered in the
 * middle. */

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
    assert(stream->count > 0);
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

static uint64_t stream_next(struct mosaic_state *mosaic, struct stream *stream)
{
    const uint64_t low = mosaic->block_records * 3 / 4;
    const uint64_t high = mosaic->block_records * 5 / 4;
    const int64_t reach = (int64_t)mosaic->block_records * 5 << (FRACTION_BITS - 3);

    while (stream->thrown < stream->end) {
        const int64_t here = (int64_t)((stream->thrown - stream->begin) << FRACTION_BITS);
        if (stream->count && stream->heap[0].where < here - reach)
            break;
        if (stream->thrown >= stream->part_end) {
            /* A part of n records may fall up to (U(0.75, 1.25) x block - n) / 2 to either side,
             * within the stream; a part larger than its block stays in place. */
            sequence_bounds(&mosaic->sequence, stream->thrown, &stream->part_begin,
                            &stream->part_end);
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
                random_hash(mosaic->sequence.seed, stream->part_begin, stream->part_end), records);
        }
        struct fallen fallen = {.where = here + stream->low};
        if (stream->width)
            fallen.where += (int64_t)random_below(&stream->random, stream->width);
        fallen.position = stream->part_begin +
                          permutation_at(&stream->permutation, stream->thrown - stream->part_begin);
        assert(stream->count < mosaic->heap_capacity);
        heap_push(stream, fallen);
        stream->thrown++;
    }
    return heap_pop(stream);
}

static void start_streams(struct mosaic_state *mosaic)
{
    for (uint32_t node = 0; node < mosaic->sequence.rules.nodes; node++) {
        const uint64_t begin = node_start(mosaic->total, node, mosaic->sequence.rules.nodes);
        mosaic->streams[node] = (struct stream){
            .begin = begin,
            .end = node_start(mosaic->total, node + 1, mosaic->sequence.rules.nodes),
            .thrown = begin,
            .part_begin = begin,
            .part_end = begin,
            .heap = mosaic->heaps + node * mosaic->heap_capacity,
            .random = random_start(random_hash(mosaic->sequence.seed, node, 0)),
        };
    }
    mosaic->walked = 0;
}

static uint64_t displaced_record(void *state, uint64_t place)
{
    struct mosaic_state *mosaic = state;
    const uint64_t wanted = sequence_position(&mosaic->sequence, place);

    while (mosaic->walked <= wanted) {
        const uint64_t draw = mosaic->walked++ % mosaic->total;
        if (draw == 0 && mosaic->walked > 1) { /* padding starts the order over */
            const uint64_t walked = mosaic->walked;
            start_streams(mosaic);
            mosaic->walked = walked;
        }
        /* Only the longer parts take part in the last round; the woven position gives the part. */
        const uint64_t turn =
            mosaic->total / mosaic->sequence.rules.nodes * mosaic->sequence.rules.nodes;
        uint64_t node = draw % mosaic->sequence.rules.nodes;
        if (draw >= turn) {
            const uint64_t woven = weave(draw, mosaic->total, mosaic->sequence.rules.nodes);
            for (node = 0; mosaic->streams[node].end <= woven; node++)
                ;
        }
        mosaic->last = stream_next(mosaic, &mosaic->streams[node]);
    }
    return sequence_at(&mosaic->sequence, mosaic->last);
}

/* ---- the strategies ---- */

static int mosaic_open(const struct shuffle_ops *ops, void *state, const void *settings,
                       const struct plan_scope *scope, struct plan_traits *traits)
{
    struct mosaic_state *mosaic = state;
    const struct mosaic_settings *chosen = settings;
    const uint64_t records = scope->catalog->record_count;
    const bool elastic = scope->partition == PLAN_ELASTIC;
    const struct sequence_rules rules = {.unit = SEQUENCE_SHARDS,
                                         .permute = true,
                                         .stride = true,
                                         .nodes = elastic ? (uint32_t)chosen->nodes : 1};

    if (rules.nodes > records)
        return fail(EINVAL, "%u canonical nodes exceed the %llu records", rules.nodes,
                    (unsigned long long)records);
    int code = sequence_open(&mosaic->sequence, scope, &rules, traits);
    if (code)
        return code;
    traits->front_to_back = false; /* the records of a shard are shuffled */
    mosaic->sequence.record = ops == &shuffle_py1e ? displaced_record : mosaic_record;
    mosaic->fixes_shards = ops == &shuffle_py2s;
    mosaic->block_records = chosen->block;
    const uint64_t length = sequence_length_max(&mosaic->sequence);
    if (ops == &shuffle_py1br) {
        /* All blocks of a part except the first and the last have at least 3/4 of the block size.
         */
        mosaic->block_capacity = length / (chosen->block * 3 / 4) + (uint64_t)3 * rules.nodes;
        mosaic->blocks = sequence_table(&mosaic->sequence, traits, mosaic->block_capacity,
                                        sizeof *mosaic->blocks, "its table of blocks");
        return mosaic->blocks ? 0 : -ENOMEM;
    }
    if (ops != &shuffle_py1e)
        return 0;
    /* The heap holds records thrown from less than twice the reach before, and at most one stream's
     * records. */
    const uint64_t most = (length > records ? length : records) / rules.nodes + 1;
    mosaic->heap_capacity = chosen->block * 5 / 4 + 2;
    if (mosaic->heap_capacity > most)
        mosaic->heap_capacity = most;
    mosaic->streams = sequence_table(&mosaic->sequence, traits, rules.nodes, sizeof(struct stream),
                                     "its canonical nodes");
    if (!mosaic->streams)
        return -ENOMEM;
    mosaic->heaps = sequence_table(&mosaic->sequence, traits, rules.nodes * mosaic->heap_capacity,
                                   sizeof(struct fallen), "displaced records");
    return mosaic->heaps ? 0 : -ENOMEM;
}

static int mosaic_begin(void *state, uint64_t epoch)
{
    struct mosaic_state *mosaic = state;
    const struct plan_scope *scope = &mosaic->sequence.scope;
    const uint64_t low = mosaic->block_records * 3 / 4, high = mosaic->block_records * 5 / 4;

    sequence_begin(state, epoch);
    mosaic->total =
        scope->partition == PLAN_ELASTIC ? mosaic->sequence.own : mosaic->sequence.length;
    mosaic->now_begin = mosaic->now_end = 0;
    mosaic->block_count = 0;
    if (mosaic->streams)
        start_streams(mosaic);
    if (!mosaic->blocks)
        return 0;
    /* Blocks of U(0.75, 1.25) x block, moved back by a random stagger. As in the original, the
     * second block begins one stagger before the first one ends, so some records are shuffled
     * twice; if the last block ends before the part does, the remaining records keep their order.
     */
    struct random random = random_start(mosaic->sequence.seed);
    for (uint32_t node = 0; node < mosaic->sequence.rules.nodes; node++) {
        const uint64_t begin = node_start(mosaic->total, node, mosaic->sequence.rules.nodes);
        const uint64_t end = node_start(mosaic->total, node + 1, mosaic->sequence.rules.nodes);
        const uint64_t stagger = random_below(&random, low);
        for (uint64_t ends = begin; ends < end;) {
            assert(mosaic->block_count < mosaic->block_capacity);
            struct mosaic_block *block = &mosaic->blocks[mosaic->block_count++];
            const uint64_t size = low + random_below(&random, high - low);
            block->begin = ends > begin + stagger ? ends - stagger : begin;
            block->end = ends + size - stagger < end ? ends + size - stagger : end;
            ends += block->end - block->begin;
        }
    }
    return 0;
}

#define BLOCK_ROW(SUMMARY)                                                                        \
    {                                                                                             \
        .name = "block", .type = OPTION_COUNT, .offset = offsetof(struct mosaic_settings, block), \
        .fallback = "256k", .minimum = 4, .maximum = 4e9, .summary = SUMMARY                      \
    }
#define NODES_ROW                                                                                 \
    {                                                                                             \
        .name = "nodes", .type = OPTION_COUNT, .offset = offsetof(struct mosaic_settings, nodes), \
        .fallback = "1", .minimum = 1, .maximum = 1e6,                                            \
        .summary = "canonical nodes, for partition elastic"                                       \
    }
#define MOSAIC(NAME, OPTIONS, SUMMARY)                                         \
    {                                                                          \
        .plugin = {.name = NAME,                                               \
                   .summary = SUMMARY,                                         \
                   .options = OPTIONS,                                         \
                   .settings_size = sizeof(struct mosaic_settings),            \
                   .state_size = sizeof(struct mosaic_state)},                 \
        .open = mosaic_open, .close = sequence_close, .begin = mosaic_begin,   \
        .next = sequence_next, .draws = sequence_draws, .seek = sequence_seek, \
    }

static const struct option_spec shard_options[] = {NODES_ROW, {0}};

static const struct option_spec block_options[] = {
    BLOCK_ROW("records of a block, give or take a quarter"), NODES_ROW, {0}};

const struct shuffle_ops shuffle_py1s =
    MOSAIC("py1s", shard_options, "MosaicML py1s: random shards, shuffled inside");
const struct shuffle_ops shuffle_py2s =
    MOSAIC("py2s", shard_options,
           "MosaicML py2s: as py1s, but shards are shuffled once, before they are cut");
const struct shuffle_ops shuffle_py1br = MOSAIC(
    "py1br", block_options, "MosaicML py1br: random shards, shuffled in blocks of random length");

static const struct option_spec displaced_options[] = {
    BLOCK_ROW("records over which a shard is spread, give or take a quarter"), NODES_ROW, {0}};

/* To seek: the records before are thrown when the next one is requested. */
const struct shuffle_ops shuffle_py1e = MOSAIC(
    "py1e", displaced_options, "MosaicML py1e: random shards, each record displaced at random");
