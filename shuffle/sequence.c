/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants: runs[i].start increases, and runs[run_count].start is the length of the walk; every
 * record of the walk is in exactly one run. least and most are the same on every rank, so all ranks
 * agree on padding and dropping without communicating. */
#include "shuffle/sequence.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

uint64_t sequence_seed(const struct plan_scope *scope, enum sequence_stream stream, uint64_t epoch,
                       bool shared)
{
    uint64_t seed = random_hash(scope->seed, (uint64_t)stream, epoch);

    return shared ? seed : random_hash(seed, scope->rank, 1);
}

void *sequence_table(struct sequence *sequence, struct plan_traits *traits, uint64_t count,
                     uint64_t size, const char *what)
{
    const uint64_t limit = sequence->scope.memory_bytes;
    char need[32], most[32];

    traits->state_bytes += count > UINT64_MAX / size ? UINT64_MAX : count * size;
    if (limit && traits->state_bytes > limit) {
        fail(ENOMEM, "the shuffle needs %s for %s, the limit is %s; use fewer or larger units",
             bytes_text(traits->state_bytes, need, sizeof need), what,
             bytes_text(limit, most, sizeof most));
        return NULL;
    }
    assert(sequence->table_count < SEQUENCE_TABLES);
    return sequence->tables[sequence->table_count++] = memory_array(count, size);
}

/* ---- units ---- */

/* A chunk is a piece of a large shard, cut at multiples of chunk_bytes, or several adjacent small
 * shards, whole; when shards are dealt to ranks, a chunk stays within one shard. Bytes are summed,
 * not computed from offsets, which need not increase in LMDB. */
static void find_chunks(struct sequence *sequence, uint64_t capacity)
{
    const struct catalog *catalog = sequence->scope.catalog;
    const bool join = sequence->scope.partition != PLAN_SHARDS;
    const uint64_t chunk_bytes = sequence->rules.chunk_bytes;
    uint64_t count = 0, joined_bytes = 0;

    for (uint32_t s = 0; s < catalog->shard_count; s++) {
        const struct shard *shard = &catalog->shards[s];
        const uint64_t end = shard->first_record + shard->record_count;
        uint64_t bytes = 0, next_cut = 0;
        if (join && joined_bytes && shard->stream_bytes <= chunk_bytes - joined_bytes) {
            joined_bytes += shard->stream_bytes;
            continue;
        }
        joined_bytes = shard->stream_bytes <= chunk_bytes ? shard->stream_bytes : 0;
        for (uint64_t record = shard->first_record; record < end; record++) {
            if (bytes >= next_cut && count < capacity) {
                sequence->unit_first[count++] = record;
                next_cut = (bytes / chunk_bytes + 1) * chunk_bytes;
            }
            bytes += catalog_extent(catalog, record)->bytes;
        }
    }
    sequence->unit_first[count] = catalog->record_count;
    sequence->unit_count = count;
}

static void unit_bounds(const struct sequence *sequence, uint64_t unit, uint64_t *first,
                        uint64_t *end)
{
    const struct catalog *catalog = sequence->scope.catalog;

    assert(unit < sequence->unit_count);
    if (sequence->rules.unit == SEQUENCE_SHARDS) {
        *first = catalog->shards[unit].first_record;
        *end = *first + catalog->shards[unit].record_count;
    } else if (sequence->rules.unit == SEQUENCE_CHUNKS) {
        *first = sequence->unit_first[unit];
        *end = sequence->unit_first[unit + 1];
    } else {
        *first = 0;
        *end = catalog->record_count;
    }
}

/* ---- partition ---- */

static uint64_t share(uint64_t total, uint32_t part, uint32_t parts)
{
    assert(part <= parts && parts > 0);
    return (uint64_t)((unsigned __int128)total * part / parts);
}

/* Return the record at which part number `part` of the walk begins. */
static uint64_t cut(const struct sequence *sequence, uint32_t part)
{
    const struct catalog *catalog = sequence->scope.catalog;
    const uint32_t parts = sequence->scope.ranks;

    if (sequence->cuts)
        return sequence->cuts[part];
    if (sequence->rules.cut == SEQUENCE_CUT_CEILING) {
        const uint64_t step = (catalog->record_count + parts - 1) / parts;
        return step * part < catalog->record_count ? step * part : catalog->record_count;
    }
    return share(catalog->record_count, part, parts);
}

static uint64_t records_of_part(const struct sequence *sequence, uint32_t part)
{
    const struct catalog *catalog = sequence->scope.catalog;
    uint64_t count = 0;

    if (sequence->scope.partition == PLAN_REPLICATED)
        return catalog->record_count;
    if (sequence->scope.partition != PLAN_SHARDS)
        return cut(sequence, part + 1) - cut(sequence, part);
    for (uint64_t s = part; s < catalog->shard_count; s += sequence->scope.ranks)
        count += catalog->shards[s].record_count;
    return count;
}

/* elastic: full global batches, then the remainder. A dropped remainder is a whole global batch, so
 * any number of ranks leaves out the same records; a padded one wraps around to the first records,
 * so any number of ranks repeats the same ones. */
static uint64_t global_batch(const struct plan_scope *scope)
{
    return (uint64_t)scope->batch_size * scope->ranks;
}

static uint64_t elastic_length(const struct plan_scope *scope)
{
    const uint64_t records = scope->catalog->record_count, global = global_batch(scope);

    if (scope->remainder == PLAN_UNEVEN)
        return records;
    return (records + (scope->remainder == PLAN_PAD ? global - 1 : 0)) / global * global;
}

/* Return this rank's rows in a global batch of `of` rows, and the first of these rows. */
static uint64_t rows(const struct sequence *sequence, uint64_t of, uint64_t *first)
{
    const uint32_t rank = sequence->scope.rank, ranks = sequence->scope.ranks;

    if (sequence->rules.stride) {
        *first = rank;
        return (of + ranks - 1 - rank) / ranks;
    }
    *first = share(of, rank, ranks);
    return share(of, rank + 1, ranks) - *first;
}

static uint64_t elastic_draws(const struct sequence *sequence)
{
    const uint64_t length = elastic_length(&sequence->scope),
                   global = global_batch(&sequence->scope);
    uint64_t first;

    return length / global * sequence->scope.batch_size + rows(sequence, length % global, &first);
}

uint64_t sequence_position(const struct sequence *sequence, uint64_t place)
{
    const struct plan_scope *scope = &sequence->scope;
    uint64_t first;

    if (scope->partition != PLAN_ELASTIC)
        return place;
    const uint64_t global = global_batch(scope);
    const uint64_t batch = place / scope->batch_size, row = place % scope->batch_size;
    const uint64_t left = sequence->length - batch * global;
    rows(sequence, left < global ? left : global, &first);
    return batch * global + first + (sequence->rules.stride ? row * scope->ranks : row);
}

bool sequence_place(const struct sequence *sequence, uint64_t position, uint64_t *place)
{
    const struct plan_scope *scope = &sequence->scope;
    uint64_t first;

    *place = position;
    if (scope->partition != PLAN_ELASTIC)
        return true;
    const uint64_t global = global_batch(scope);
    const uint64_t batch = position / global, left = sequence->length - batch * global;
    const uint64_t count = rows(sequence, left < global ? left : global, &first);
    const uint64_t row = position - batch * global;
    if (row < first)
        return false;
    const uint64_t mine = sequence->rules.stride ? (row - first) / scope->ranks : row - first;
    *place = batch * scope->batch_size + mine;
    return mine < count && (!sequence->rules.stride || (row - first) % scope->ranks == 0);
}

int sequence_open(struct sequence *sequence, const struct plan_scope *scope,
                  const struct sequence_rules *rules, struct plan_traits *traits)
{
    const struct catalog *catalog = scope->catalog;
    const unsigned long long records = catalog->record_count;

    *sequence = (struct sequence){.scope = *scope, .rules = *rules, .unit_count = 1};
    assert(scope->ranks > 0 && scope->rank < scope->ranks);
    if (rules->is_buffered && scope->partition == PLAN_ELASTIC)
        return fail(EINVAL,
                    "partition elastic needs an order that all ranks share; a shuffle buffer "
                    "belongs to one rank (use epoch, block, corgipile or py1br)");
    if (rules->unit == SEQUENCE_SHARDS)
        sequence->unit_count = catalog->shard_count;
    if (rules->unit == SEQUENCE_CHUNKS) {
        const uint64_t bound =
            catalog->record_bytes_total / rules->chunk_bytes + catalog->shard_count;
        const uint64_t capacity = bound < records ? bound : records;
        sequence->unit_first =
            sequence_table(sequence, traits, capacity + 1, sizeof(uint64_t), "its table of chunks");
        if (!sequence->unit_first)
            return -ENOMEM;
        find_chunks(sequence, capacity);
    }
    if (rules->cut == SEQUENCE_CUT_BYTES && scope->partition == PLAN_STICKY) {
        uint64_t bytes = 0, target = 0;
        uint32_t part = 0;
        sequence->cuts = sequence_table(sequence, traits, (uint64_t)scope->ranks + 1,
                                        sizeof(uint64_t), "the ranges of its ranks");
        if (!sequence->cuts)
            return -ENOMEM;
        for (uint64_t record = 0; record < records; record++) {
            while (part < scope->ranks && bytes >= target) {
                sequence->cuts[part++] = record;
                target = share(catalog->record_bytes_total, part, scope->ranks);
            }
            bytes += catalog_extent(catalog, record)->bytes;
        }
        while (part <= scope->ranks)
            sequence->cuts[part++] = records;
    }
    if (scope->partition == PLAN_ELASTIC) {
        if (scope->batch_size == 0)
            return fail(EINVAL, "partition elastic deals batches: the batch size cannot be 0");
        if (elastic_length(scope) == 0)
            return fail(EINVAL,
                        "%llu records are fewer than one batch of %u x %u ranks, and the "
                        "rest is dropped; use a smaller batch or remainder pad",
                        records, scope->batch_size, scope->ranks);
        if (elastic_length(scope) < scope->ranks)
            return fail(EINVAL, "%u ranks exceed the %llu records", scope->ranks, records);
        sequence->most = elastic_draws(sequence);
    }
    sequence->least = UINT64_MAX;
    for (uint32_t rank = 0; scope->partition != PLAN_ELASTIC && rank < scope->ranks; rank++) {
        const uint64_t count = records_of_part(sequence, rank);
        if (count == 0)
            return fail(EINVAL,
                        "rank %u of %u would have no records of the %llu in %u shards; "
                        "use fewer ranks or another partition",
                        rank, scope->ranks, records, catalog->shard_count);
        sequence->least = count < sequence->least ? count : sequence->least;
        sequence->most = count > sequence->most ? count : sequence->most;
    }
    for (uint64_t unit = 0, first, end; unit < sequence->unit_count; unit++) {
        unit_bounds(sequence, unit, &first, &end);
        sequence->unit_most = end - first > sequence->unit_most ? end - first : sequence->unit_most;
    }
    /* In elastic, other ranks' records are between. */
    traits->front_to_back = (scope->partition != PLAN_ELASTIC || scope->ranks == 1) &&
                            (rules->unit == SEQUENCE_WHOLE || rules->unit == SEQUENCE_SHARDS ||
                             (rules->unit == SEQUENCE_CHUNKS && !rules->permute));
    /* A range clips units but does not add any; nodes add one cut each; dealing shards cuts larger
     * units. */
    sequence->run_capacity = sequence->unit_count + rules->nodes;
    if (scope->partition == PLAN_SHARDS && sequence->run_capacity < catalog->shard_count)
        sequence->run_capacity = catalog->shard_count;
    sequence->runs = sequence_table(sequence, traits, sequence->run_capacity + 1,
                                    sizeof(struct sequence_run), "its table of runs");
    return sequence->runs ? 0 : -ENOMEM;
}

void sequence_close(void *state)
{
    struct sequence *sequence = state;

    while (sequence->table_count > 0)
        free(sequence->tables[--sequence->table_count]);
}

uint64_t sequence_draws_max(const struct sequence *sequence)
{
    return sequence->scope.remainder == PLAN_DROP && sequence->scope.partition != PLAN_ELASTIC
               ? sequence->least
               : sequence->most;
}

uint64_t sequence_length_max(const struct sequence *sequence)
{
    return sequence->scope.partition == PLAN_ELASTIC ? elastic_length(&sequence->scope)
                                                     : sequence_draws_max(sequence);
}

/* ---- the walk of an epoch ---- */

static void add_run(struct sequence *sequence, uint64_t first, uint64_t end)
{
    struct sequence_run *run = &sequence->runs[sequence->run_count];

    assert(sequence->run_count < sequence->run_capacity);
    if (end <= first)
        return;
    run->first = first;
    run[1].start = run->start + (end - first);
    sequence->run_count++;
}

/* Add the units that overlap [first, end), in this epoch's order. */
static void add_units(struct sequence *sequence, uint64_t seed, uint64_t first, uint64_t end)
{
    uint64_t low = 0, count = sequence->unit_count, unit_first, unit_end;

    for (; count > 1; count--) { /* a sticky rank's range: skip the units before and after it */
        unit_bounds(sequence, low, &unit_first, &unit_end);
        if (unit_end > first)
            break;
        low++;
    }
    for (; count > 1; count--) {
        unit_bounds(sequence, low + count - 1, &unit_first, &unit_end);
        if (unit_first < end)
            break;
    }
    struct permutation order = permutation_start(seed, count);
    for (uint64_t i = 0; i < count; i++) {
        unit_bounds(sequence, low + (sequence->rules.permute ? permutation_at(&order, i) : i),
                    &unit_first, &unit_end);
        add_run(sequence, unit_first > first ? unit_first : first, unit_end < end ? unit_end : end);
    }
}

/* Permute the runs [low, high) of the walk. */
static void shuffle_runs(struct sequence *sequence, uint64_t seed, uint64_t low, uint64_t high)
{
    struct sequence_run *runs = sequence->runs;
    struct random random = random_start(seed);
    uint64_t start = runs[low].start;

    for (uint64_t i = low; i < high; i++) /* start temporarily holds the length */
        runs[i].start = runs[i + 1].start - runs[i].start;
    for (uint64_t i = high; i > low + 1; i--) {
        uint64_t j = low + random_below(&random, i - low);
        struct sequence_run run = runs[i - 1];
        runs[i - 1] = runs[j];
        runs[j] = run;
    }
    for (uint64_t i = low; i < high; i++) {
        uint64_t length = runs[i].start;
        runs[i].start = start;
        start += length;
    }
}

int sequence_begin(void *state, uint64_t epoch)
{
    struct sequence *sequence = state;
    const struct plan_scope *scope = &sequence->scope;
    const struct sequence_rules *rules = &sequence->rules;
    const struct catalog *catalog = scope->catalog;
    const bool permuted = rules->permute || rules->unit == SEQUENCE_RECORDS;
    const bool elastic = scope->partition == PLAN_ELASTIC;
    const bool is_shared = elastic || scope->partition == PLAN_DISJOINT;
    const uint64_t seed = sequence_seed(scope, SEQUENCE_ORDER, epoch, is_shared);
    uint64_t unit = 0;
    uint32_t part = scope->rank;

    sequence->run_count = sequence->run_now = sequence->place = 0;
    sequence->is_fetched = false;
    sequence->seed = sequence_seed(scope, SEQUENCE_INSIDE, epoch, is_shared);
    sequence->runs[0].start = 0;
    sequence->offset = 0;
    if (scope->partition == PLAN_DISJOINT && !permuted)
        part = (uint32_t)((scope->rank + epoch) % scope->ranks);
    if (scope->partition == PLAN_SHARDS) {
        /* The units of every ranks-th shard. Chunks then stay within a shard and are in shard
         * order. */
        for (uint32_t s = 0; s < catalog->shard_count; s++) {
            const struct shard *shard = &catalog->shards[s];
            const uint64_t end = shard->first_record + shard->record_count;
            const bool chunks = rules->unit == SEQUENCE_CHUNKS;
            const bool mine = s % scope->ranks == scope->rank;
            if (mine && !chunks)
                add_run(sequence, shard->first_record, end);
            for (; chunks && unit < sequence->unit_count && sequence->unit_first[unit] < end;
                 unit++)
                if (mine)
                    add_run(sequence, sequence->unit_first[unit], sequence->unit_first[unit + 1]);
        }
        if (rules->permute)
            shuffle_runs(sequence, seed, 0, sequence->run_count);
    } else if (scope->partition == PLAN_STICKY) {
        add_units(sequence, seed, cut(sequence, part), cut(sequence, part + 1));
    } else if (elastic && rules->nodes > 1) {
        /* Cut a fixed order of shards into parts, and permute the shards of each part every epoch.
         */
        const struct permutation order =
            permutation_start(sequence_seed(scope, SEQUENCE_FIXED, 0, true), sequence->unit_count);
        uint64_t first = 0, end = 0;
        for (uint32_t node = 0; node < rules->nodes; node++) {
            const uint64_t begin_run = sequence->run_count;
            const uint64_t stop = share(catalog->record_count, node + 1, rules->nodes);
            while (sequence->runs[sequence->run_count].start < stop) {
                const uint64_t left = stop - sequence->runs[sequence->run_count].start;
                if (first == end)
                    unit_bounds(sequence, permutation_at(&order, unit++), &first, &end);
                const uint64_t stops = end - first < left ? end : first + left;
                add_run(sequence, first, stops);
                first = stops;
            }
            shuffle_runs(sequence, random_hash(seed, node, 0), begin_run, sequence->run_count);
        }
    } else {
        add_units(sequence, seed, 0, catalog->record_count);
    }
    if (scope->partition == PLAN_DISJOINT)
        sequence->offset = cut(sequence, part);
    if (rules->unit == SEQUENCE_RECORDS)
        sequence->permutation = permutation_start(seed, sequence->runs[sequence->run_count].start);
    sequence->own = elastic ? catalog->record_count : records_of_part(sequence, part);
    sequence->draws = elastic                         ? elastic_draws(sequence)
                      : scope->remainder == PLAN_PAD  ? sequence->most
                      : scope->remainder == PLAN_DROP ? sequence->least
                                                      : sequence->own;
    sequence->length = elastic ? elastic_length(scope) : sequence->draws;
    assert(sequence->own > 0 && sequence->run_count <= sequence->run_capacity);
    return 0;
}

/* Return the run of a walk position, usually the last run found or the next one. */
static const struct sequence_run *run_at(struct sequence *sequence, uint64_t walked)
{
    const struct sequence_run *run = &sequence->runs[sequence->run_now];

    if (walked >= run[1].start && sequence->run_now + 1 < sequence->run_count) {
        sequence->run_now++;
        run++;
    }
    if (walked < run->start || walked >= run[1].start) {
        uint64_t low = 0, high = sequence->run_count;
        while (high - low > 1) {
            uint64_t middle = low + (high - low) / 2;
            if (sequence->runs[middle].start <= walked)
                low = middle;
            else
                high = middle;
        }
        sequence->run_now = low;
        run = &sequence->runs[low];
    }
    return run;
}

uint64_t sequence_at(struct sequence *sequence, uint64_t position)
{
    uint64_t walked =
        sequence->offset + (position < sequence->own ? position : position % sequence->own);

    assert(position < (sequence->own > sequence->length ? sequence->own : sequence->length));
    if (sequence->rules.unit == SEQUENCE_RECORDS)
        walked = permutation_at(&sequence->permutation, walked);
    const struct sequence_run *run = run_at(sequence, walked);
    return run->first + (walked - run->start);
}

void sequence_bounds(struct sequence *sequence, uint64_t position, uint64_t *begin, uint64_t *end)
{
    /* How far position wrapped around. */
    const uint64_t around = position - position % sequence->own;
    const struct sequence_run *run = run_at(sequence, sequence->offset + position - around);
    const uint64_t low = run->start > sequence->offset ? run->start - sequence->offset : 0;
    const uint64_t high = run[1].start - sequence->offset;

    *begin = around + low;
    *end = around + (high < sequence->own ? high : sequence->own);
    if (sequence->scope.partition != PLAN_ELASTIC && *end > sequence->length)
        *end = sequence->length;
}

int sequence_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct sequence *sequence = state;
    uint32_t count = 0;

    while (count < max && sequence->place < sequence->draws) {
        if (!sequence->is_fetched) {
            ops[count++] = (struct plan_op){.kind = PLAN_FETCH,
                                            .record = sequence->record(state, sequence->place)};
        } else {
            ops[count++] = (struct plan_op){.kind = PLAN_DRAW};
            sequence->place++;
        }
        sequence->is_fetched = !sequence->is_fetched;
    }
    return (int)count;
}

uint64_t sequence_draws(void *state)
{
    return ((struct sequence *)state)->draws;
}

void sequence_seek(void *state, uint64_t draw)
{
    struct sequence *sequence = state;

    sequence->place = draw;
    assert(draw <= sequence->draws);
    sequence->is_fetched = false;
}
