/* SPDX-License-Identifier: Apache-2.0
 * MosaicML streaming's py1s, py2s and py1br: shards in random order, records shuffled inside shards
 * or inside blocks, fetched when they are drawn.
 *
 * Canonical nodes: under the elastic partition the walk is cut into `nodes` parts, each with shards
 * of its own for the whole run, and draw number g takes the next record of part g mod nodes. Any
 * number of ranks then sees the same global batches, and if the number of ranks divides `nodes`,
 * each shard is read on one rank only. Under other partitions the rank's walk is one part. */
#include "base/fail.h"
#include "base/option.h"
#include "shuffle/mosaic.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

#include <errno.h>
#include <stdlib.h>

uint64_t mosaic_node_start(uint64_t total, uint64_t node, uint32_t nodes)
{
    return (uint64_t)((unsigned __int128)total * node / nodes);
}

uint64_t mosaic_weave(uint64_t draw, uint64_t total, uint32_t nodes)
{
    const uint64_t rounds = total / nodes, longer = total % nodes;

    if (nodes == 1)
        return draw;
    if (draw < rounds * nodes)
        return mosaic_node_start(total, draw % nodes, nodes) + draw / nodes;
    /* Only the parts that are one record longer take part in the last round: part n is longer if
     * its end times the remainder passes an integer. */
    const uint64_t turn = draw - rounds * nodes;
    const uint64_t node = ((turn + 1) * nodes + longer - 1) / longer - 1;
    return mosaic_node_start(total, node, nodes) + rounds;
}

/* ---- random blocks of py1br ---- */

struct mosaic_block {
    uint64_t begin, end;
};

struct mosaic_settings {
    uint64_t block;
    uint64_t nodes;
};

enum mosaic_kind { MOSAIC_PY1S, MOSAIC_PY2S, MOSAIC_PY1BR };

struct mosaic_state {
    struct sequence sequence;
    struct sequence_cursor cursor;
    enum mosaic_kind kind;
    uint32_t nodes;
    uint64_t total; /* positions before they wrap around */
    uint64_t seed;
    /* py1br only */
    uint64_t block_records, block_capacity, block_count;
    struct mosaic_block *blocks;
    /* the block or shard of the last draw */
    uint64_t now_begin, now_end;
    struct permutation permutation;
    /* py2s: the shard of that run, and its own permutation, which never changes */
    uint64_t shard_first;
    struct permutation fixed;
};

/* Blocks of U(0.75, 1.25) x block, moved back by a random stagger. As in the original, the second
 * block begins one stagger before the first one ends, so some records are shuffled twice; if the
 * last block ends before the part does, the remaining records keep their order. */
static void make_blocks(struct mosaic_state *mosaic, struct random *random, uint64_t begin,
                        uint64_t end)
{
    const uint64_t low = mosaic->block_records * 3 / 4, high = mosaic->block_records * 5 / 4;
    const uint64_t stagger = random_below(random, low);
    uint64_t ends = begin;

    while (ends < end) {
        struct mosaic_block *block = &mosaic->blocks[mosaic->block_count++];
        const uint64_t size = low + random_below(random, high - low);
        block->begin = ends > begin + stagger ? ends - stagger : begin;
        block->end = ends + size - stagger < end ? ends + size - stagger : end;
        ends += block->end - block->begin;
    }
}

static int open_kind(struct mosaic_state *mosaic, enum mosaic_kind kind,
                     const struct mosaic_settings *chosen, const struct plan_scope *scope,
                     struct plan_traits *traits)
{
    const bool elastic = scope->partition == PLAN_ELASTIC;
    const struct sequence_rules rules = {.unit = SEQUENCE_SHARDS,
                                         .permute = true,
                                         .stride = true,
                                         .nodes = elastic ? (uint32_t)chosen->nodes : 1};

    mosaic->kind = kind;
    mosaic->nodes = rules.nodes;
    if (rules.nodes > scope->catalog->record_count)
        return fail(EINVAL, "%u canonical nodes exceed the %llu records", rules.nodes,
                    (unsigned long long)scope->catalog->record_count);
    int code = sequence_open(&mosaic->sequence, scope, &rules, traits);
    if (code || kind != MOSAIC_PY1BR)
        return code;
    mosaic->block_records = chosen->block;
    /* All blocks of a part except the first and the last have at least 3/4 of the block size. */
    mosaic->block_capacity = sequence_length_max(&mosaic->sequence) / (chosen->block * 3 / 4) +
                             (uint64_t)3 * mosaic->nodes;
    mosaic->blocks = sequence_table(scope, traits, mosaic->block_capacity, sizeof *mosaic->blocks,
                                    "its table of blocks");
    return mosaic->blocks ? 0 : -ENOMEM;
}

static void mosaic_close(void *state)
{
    struct mosaic_state *mosaic = state;

    sequence_close(&mosaic->sequence);
    free(mosaic->blocks);
    mosaic->blocks = NULL;
}

static int mosaic_begin(void *state, uint64_t epoch)
{
    struct mosaic_state *mosaic = state;
    const struct plan_scope *scope = &mosaic->sequence.scope;
    int code = sequence_begin(&mosaic->sequence, epoch);

    if (code)
        return code;
    mosaic->cursor = (struct sequence_cursor){0};
    mosaic->seed = sequence_seed(scope, SEQUENCE_INSIDE, epoch, sequence_is_shared(scope));
    mosaic->total =
        scope->partition == PLAN_ELASTIC ? mosaic->sequence.own : mosaic->sequence.length;
    mosaic->now_begin = mosaic->now_end = 0;
    mosaic->block_count = 0;
    if (mosaic->kind == MOSAIC_PY1BR) {
        struct random random = random_start(mosaic->seed);
        for (uint32_t node = 0; node < mosaic->nodes; node++)
            make_blocks(mosaic, &random, mosaic_node_start(mosaic->total, node, mosaic->nodes),
                        mosaic_node_start(mosaic->total, node + 1, mosaic->nodes));
    }
    return 0;
}

/* Return the last block that contains a position, or block_count if none does. */
static uint64_t find_block(const struct mosaic_state *mosaic, uint64_t position)
{
    uint64_t low = 0, high = mosaic->block_count;

    while (low < high) { /* find the first block that begins after position */
        uint64_t middle = low + (high - low) / 2;
        if (mosaic->blocks[middle].begin <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && position < mosaic->blocks[low - 1].end ? low - 1 : mosaic->block_count;
}

static uint64_t block_record(struct mosaic_state *mosaic, uint64_t position)
{
    uint64_t number = find_block(mosaic, position);

    if (number == mosaic->block_count)
        return sequence_at(&mosaic->sequence, position);
    for (;;) { /* back through the overlapping blocks shuffled before this one */
        const struct mosaic_block *block = &mosaic->blocks[number];
        if (mosaic->now_begin != block->begin || mosaic->now_end != block->end) {
            mosaic->permutation = permutation_start(
                random_hash(mosaic->seed, block->begin, block->end), block->end - block->begin);
            mosaic->now_begin = block->begin;
            mosaic->now_end = block->end;
        }
        position = block->begin + permutation_at(&mosaic->permutation, position - block->begin);
        if (number == 0 || position >= block[-1].end || position < block[-1].begin)
            return sequence_at(&mosaic->sequence, position);
        number--;
    }
}

static uint64_t shard_record(struct mosaic_state *mosaic, uint64_t position)
{
    const struct catalog *catalog = mosaic->sequence.scope.catalog;

    if (position < mosaic->now_begin || position >= mosaic->now_end) {
        sequence_bounds(&mosaic->sequence, position, &mosaic->now_begin, &mosaic->now_end);
        if (mosaic->now_end > mosaic->total)
            mosaic->now_end = mosaic->total;
        mosaic->permutation =
            permutation_start(random_hash(mosaic->seed, mosaic->now_begin, mosaic->now_end),
                              mosaic->now_end - mosaic->now_begin);
        if (mosaic->kind == MOSAIC_PY2S) {
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
    if (mosaic->kind != MOSAIC_PY2S)
        return record;
    return mosaic->shard_first + permutation_at(&mosaic->fixed, record - mosaic->shard_first);
}

static uint64_t mosaic_record(void *context, uint64_t place)
{
    struct mosaic_state *mosaic = context;
    uint64_t position = sequence_position(&mosaic->sequence, place);

    position = mosaic_weave(position % mosaic->total, mosaic->total, mosaic->nodes);
    return mosaic->kind == MOSAIC_PY1BR ? block_record(mosaic, position)
                                        : shard_record(mosaic, position);
}

static int mosaic_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct mosaic_state *mosaic = state;

    return sequence_next(&mosaic->cursor, mosaic->sequence.draws, mosaic_record, mosaic, ops, max);
}

static uint64_t mosaic_draws(void *state)
{
    return ((struct mosaic_state *)state)->sequence.draws;
}

static void mosaic_seek(void *state, uint64_t draw)
{
    ((struct mosaic_state *)state)->cursor = (struct sequence_cursor){.place = draw};
}

#define NODES_ROW                                                                                 \
    {                                                                                             \
        .name = "nodes", .type = OPTION_COUNT, .offset = offsetof(struct mosaic_settings, nodes), \
        .fallback = "1", .minimum = 1, .maximum = 1e6,                                            \
        .summary = "canonical nodes, for partition elastic"                                       \
    }
#define MOSAIC(NAME, OPEN, OPTIONS, SUMMARY)                                             \
    {                                                                                    \
        .plugin = {.name = NAME,                                                         \
                   .summary = SUMMARY,                                                   \
                   .options = OPTIONS,                                                   \
                   .settings_size = sizeof(struct mosaic_settings),                      \
                   .state_size = sizeof(struct mosaic_state)},                           \
        .open = OPEN, .close = mosaic_close, .begin = mosaic_begin, .next = mosaic_next, \
        .draws = mosaic_draws, .seek = mosaic_seek,                                      \
    }

static const struct option_spec shard_options[] = {NODES_ROW, {0}};

static const struct option_spec block_options[] = {
    {.name = "block",
     .type = OPTION_COUNT,
     .offset = offsetof(struct mosaic_settings, block),
     .fallback = "256k",
     .minimum = 4,
     .maximum = 4e9,
     .summary = "records of a block, give or take a quarter"},
    NODES_ROW,
    {0},
};

static int py1s_open(void *state, const void *settings, const struct plan_scope *scope,
                     struct plan_traits *traits)
{
    return open_kind(state, MOSAIC_PY1S, settings, scope, traits);
}

static int py2s_open(void *state, const void *settings, const struct plan_scope *scope,
                     struct plan_traits *traits)
{
    return open_kind(state, MOSAIC_PY2S, settings, scope, traits);
}

static int py1br_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    return open_kind(state, MOSAIC_PY1BR, settings, scope, traits);
}

const struct shuffle_ops shuffle_py1s =
    MOSAIC("py1s", py1s_open, shard_options, "MosaicML py1s: random shards, shuffled inside");
const struct shuffle_ops shuffle_py2s =
    MOSAIC("py2s", py2s_open, shard_options,
           "MosaicML py2s: as py1s, but shards are shuffled once, before they are cut");
const struct shuffle_ops shuffle_py1br =
    MOSAIC("py1br", py1br_open, block_options,
           "MosaicML py1br: random shards, shuffled in blocks of random length");
