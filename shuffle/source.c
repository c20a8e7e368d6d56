/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants: runs[i].start grows and runs[run_count].start is the length of the walk; every
 * record of the walk lies in exactly one run. least and most are the same on every rank, so all
 * ranks agree on padding and dropping without a word between them. */
#include "shuffle/source.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

bool source_is_shared(const struct plan_scope *scope)
{
    return scope->partition == PLAN_DISJOINT || scope->partition == PLAN_ELASTIC;
}

uint64_t source_seed(const struct plan_scope *scope, enum source_stream stream, uint64_t epoch,
                     bool shared)
{
    uint64_t seed = random_hash(scope->seed, (uint64_t)stream, epoch);

    return shared ? seed : random_hash(seed, scope->rank, 1);
}

void *source_table(const struct plan_scope *scope, struct plan_traits *traits, uint64_t count,
                   uint64_t size, const char *what)
{
    char need[32], limit[32];
    uint64_t bytes = count > UINT64_MAX / size ? UINT64_MAX : count * size;

    traits->state_bytes += bytes;
    if (scope->memory_bytes && traits->state_bytes > scope->memory_bytes) {
        fail(ENOMEM, "the shuffle needs %s for %s, the limit is %s; take fewer or larger units",
             bytes_text(traits->state_bytes, need, sizeof need), what,
             bytes_text(scope->memory_bytes, limit, sizeof limit));
        return NULL;
    }
    return memory_array(count, size);
}

/* ---- units ---- */

/* At least as many as there are chunks. */
static uint64_t bound_chunks(const struct source *source)
{
    const struct catalog *catalog = source->scope.catalog;
    const uint64_t count =
        catalog->record_bytes_total / source->rules.chunk_bytes + catalog->shard_count;

    return count < catalog->record_count ? count : catalog->record_count;
}

/* A chunk is a piece of a large shard, cut at multiples of chunk_bytes, or several small
 * neighbouring shards whole; when shards are dealt to ranks a chunk stays within one. Bytes are
 * summed up and not taken from offsets, which for LMDB need not rise. */
static void find_chunks(struct source *source, uint64_t capacity)
{
    const struct catalog *catalog = source->scope.catalog;
    const bool join = source->scope.partition != PLAN_SHARDS;
    const uint64_t chunk_bytes = source->rules.chunk_bytes;
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
                source->unit_first[count++] = record;
                next_cut = (bytes / chunk_bytes + 1) * chunk_bytes;
            }
            bytes += catalog_extent(catalog, record)->bytes;
        }
    }
    source->unit_first[count] = catalog->record_count;
    source->unit_count = count;
}

static int make_units(struct source *source, struct plan_traits *traits)
{
    uint64_t capacity;

    switch (source->rules.unit) {
    case SOURCE_WHOLE:
    case SOURCE_RECORDS:
        source->unit_count = 1;
        return 0;
    case SOURCE_SHARDS:
        source->unit_count = source->scope.catalog->shard_count;
        return 0;
    case SOURCE_CHUNKS:
        capacity = bound_chunks(source);
        source->unit_first = source_table(&source->scope, traits, capacity + 1, sizeof(uint64_t),
                                          "its table of chunks");
        if (!source->unit_first)
            return -ENOMEM;
        find_chunks(source, capacity);
        return 0;
    }
    return 0;
}

static void unit_bounds(const struct source *source, uint64_t unit, uint64_t *first, uint64_t *end)
{
    const struct catalog *catalog = source->scope.catalog;

    if (source->rules.unit == SOURCE_SHARDS) {
        *first = catalog->shards[unit].first_record;
        *end = *first + catalog->shards[unit].record_count;
    } else if (source->rules.unit == SOURCE_CHUNKS) {
        *first = source->unit_first[unit];
        *end = source->unit_first[unit + 1];
    } else {
        *first = 0;
        *end = catalog->record_count;
    }
}

/* ---- partition ---- */

static uint64_t share(uint64_t total, uint32_t part, uint32_t parts)
{
    return (uint64_t)((unsigned __int128)total * part / parts);
}

/* Cut the records into parts of equal bytes. */
static int find_cuts(struct source *source, struct plan_traits *traits)
{
    const struct catalog *catalog = source->scope.catalog;
    const uint32_t parts = source->scope.ranks;
    uint64_t bytes = 0, target = 0;
    uint32_t part = 0;

    source->cuts = source_table(&source->scope, traits, (uint64_t)parts + 1, sizeof(uint64_t),
                                "the ranges of its ranks");
    if (!source->cuts)
        return -ENOMEM;
    for (uint64_t record = 0; record < catalog->record_count; record++) {
        while (part < parts && bytes >= target) {
            source->cuts[part++] = record;
            target = share(catalog->record_bytes_total, part, parts);
        }
        bytes += catalog_extent(catalog, record)->bytes;
    }
    while (part <= parts)
        source->cuts[part++] = catalog->record_count;
    return 0;
}

/* Where part number `part` of the walk begins. */
static uint64_t cut(const struct source *source, uint32_t part)
{
    const struct catalog *catalog = source->scope.catalog;
    const uint32_t parts = source->scope.ranks;

    if (source->cuts)
        return source->cuts[part];
    if (source->rules.cut == SOURCE_CUT_CEILING) {
        const uint64_t step = (catalog->record_count + parts - 1) / parts;
        return step * part < catalog->record_count ? step * part : catalog->record_count;
    }
    return share(catalog->record_count, part, parts);
}

static uint64_t records_of_part(const struct source *source, uint32_t part)
{
    const struct catalog *catalog = source->scope.catalog;
    uint64_t count = 0;

    if (source->scope.partition == PLAN_REPLICATED)
        return catalog->record_count;
    if (source->scope.partition != PLAN_SHARDS)
        return cut(source, part + 1) - cut(source, part);
    for (uint64_t s = part; s < catalog->shard_count; s += source->scope.ranks)
        count += catalog->shards[s].record_count;
    return count;
}

/* elastic: whole global batches, then the rest. A dropped rest is a whole global batch, so that
 * all numbers of ranks leave out the same records; a padded one goes round to the first records,
 * so that all of them repeat the same. */
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

/* Rows of a rank in a global batch of so many rows, and the first of them. */
static uint64_t rows(const struct source *source, uint64_t of, uint64_t *first)
{
    const uint32_t rank = source->scope.rank, ranks = source->scope.ranks;

    if (source->rules.stride) {
        *first = rank;
        return (of + ranks - 1 - rank) / ranks;
    }
    *first = share(of, rank, ranks);
    return share(of, rank + 1, ranks) - *first;
}

static uint64_t elastic_draws(const struct source *source)
{
    const uint64_t length = elastic_length(&source->scope), global = global_batch(&source->scope);
    uint64_t first;

    return length / global * source->scope.batch_size + rows(source, length % global, &first);
}

uint64_t source_position(const struct source *source, uint64_t place)
{
    const struct plan_scope *scope = &source->scope;
    uint64_t first;

    if (scope->partition != PLAN_ELASTIC)
        return place;
    const uint64_t global = global_batch(scope);
    const uint64_t batch = place / scope->batch_size, row = place % scope->batch_size;
    const uint64_t left = source->length - batch * global;
    rows(source, left < global ? left : global, &first);
    return batch * global + first + (source->rules.stride ? row * scope->ranks : row);
}

bool source_place(const struct source *source, uint64_t position, uint64_t *place)
{
    const struct plan_scope *scope = &source->scope;
    uint64_t first;

    *place = position;
    if (scope->partition != PLAN_ELASTIC)
        return true;
    const uint64_t global = global_batch(scope);
    const uint64_t batch = position / global, left = source->length - batch * global;
    const uint64_t count = rows(source, left < global ? left : global, &first);
    const uint64_t row = position - batch * global;
    if (row < first)
        return false;
    const uint64_t mine = source->rules.stride ? (row - first) / scope->ranks : row - first;
    *place = batch * scope->batch_size + mine;
    return mine < count && (!source->rules.stride || (row - first) % scope->ranks == 0);
}

static int count_shares(struct source *source)
{
    const struct plan_scope *scope = &source->scope;

    source->least = UINT64_MAX;
    if (scope->partition == PLAN_ELASTIC) {
        if (scope->batch_size == 0)
            return fail(EINVAL, "partition elastic deals batches: the batch size cannot be 0");
        if (elastic_length(scope) == 0)
            return fail(EINVAL,
                        "%llu records are less than one batch of %u x %u ranks, and the "
                        "rest is dropped; use a smaller batch or remainder pad",
                        (unsigned long long)scope->catalog->record_count, scope->batch_size,
                        scope->ranks);
        if (elastic_length(scope) < scope->ranks)
            return fail(EINVAL, "%u ranks are more than the %llu records", scope->ranks,
                        (unsigned long long)scope->catalog->record_count);
        source->most = elastic_draws(source);
        return 0;
    }
    for (uint32_t rank = 0; rank < scope->ranks; rank++) {
        uint64_t count = records_of_part(source, rank);
        if (count == 0)
            return fail(EINVAL,
                        "rank %u of %u would have no records of the %llu in %u shards; "
                        "use fewer ranks or another partition",
                        rank, scope->ranks, (unsigned long long)scope->catalog->record_count,
                        scope->catalog->shard_count);
        source->least = count < source->least ? count : source->least;
        source->most = count > source->most ? count : source->most;
    }
    return 0;
}

int source_open(struct source *source, const struct plan_scope *scope,
                const struct source_rules *rules, struct plan_traits *traits)
{
    *source = (struct source){.scope = *scope, .rules = *rules};
    int code = make_units(source, traits);
    if (code == 0 && rules->cut == SOURCE_CUT_BYTES && scope->partition == PLAN_STICKY)
        code = find_cuts(source, traits);
    if (code == 0)
        code = count_shares(source);
    if (code)
        return code;
    for (uint64_t unit = 0, first, end; unit < source->unit_count; unit++) {
        unit_bounds(source, unit, &first, &end);
        source->unit_most = end - first > source->unit_most ? end - first : source->unit_most;
    }
    /* A range clips units and makes no more of them; nodes cut one each, and dealing shards cuts
     * units that are larger. */
    source->run_capacity = source->unit_count + rules->nodes;
    if (scope->partition == PLAN_SHARDS && source->run_capacity < scope->catalog->shard_count)
        source->run_capacity = scope->catalog->shard_count;
    source->runs = source_table(scope, traits, source->run_capacity + 1, sizeof(struct source_run),
                                "its table of runs");
    return source->runs ? 0 : -ENOMEM;
}

void source_close(struct source *source)
{
    free(source->unit_first);
    free(source->cuts);
    free(source->runs);
    source->unit_first = source->cuts = NULL;
    source->runs = NULL;
}

uint64_t source_draws_max(const struct source *source)
{
    return source->scope.remainder == PLAN_DROP && source->scope.partition != PLAN_ELASTIC
               ? source->least
               : source->most;
}

uint64_t source_length_max(const struct source *source)
{
    return source->scope.partition == PLAN_ELASTIC ? elastic_length(&source->scope)
                                                   : source_draws_max(source);
}

/* ---- the walk of an epoch ---- */

static void add_run(struct source *source, uint64_t first, uint64_t end)
{
    struct source_run *run = &source->runs[source->run_count];

    assert(source->run_count < source->run_capacity);
    if (end <= first)
        return;
    run->first = first;
    run[1].start = run->start + (end - first);
    source->run_count++;
}

/* Units that lie in [first, end), in this epoch's order. */
static void add_units(struct source *source, uint64_t seed, uint64_t first, uint64_t end)
{
    uint64_t low = 0, count = source->unit_count, unit_first, unit_end;

    for (; count > 1; count--) { /* a range of a sticky rank: skip what lies before and after */
        unit_bounds(source, low, &unit_first, &unit_end);
        if (unit_end > first)
            break;
        low++;
    }
    for (; count > 1; count--) {
        unit_bounds(source, low + count - 1, &unit_first, &unit_end);
        if (unit_first < end)
            break;
    }
    struct permutation order = permutation_start(seed, count);
    for (uint64_t i = 0; i < count; i++) {
        unit_bounds(source, low + (source->rules.permute ? permutation_at(&order, i) : i),
                    &unit_first, &unit_end);
        add_run(source, unit_first > first ? unit_first : first, unit_end < end ? unit_end : end);
    }
}

/* Permute the runs [low, high) of the walk. */
static void shuffle_runs(struct source *source, uint64_t seed, uint64_t low, uint64_t high)
{
    struct source_run *runs = source->runs;
    struct random random = random_start(seed);
    uint64_t start = runs[low].start;

    for (uint64_t i = low; i < high; i++) /* start holds the length for a while */
        runs[i].start = runs[i + 1].start - runs[i].start;
    for (uint64_t i = high; i > low + 1; i--) {
        uint64_t j = low + random_below(&random, i - low);
        struct source_run run = runs[i - 1];
        runs[i - 1] = runs[j];
        runs[j] = run;
    }
    for (uint64_t i = low; i < high; i++) {
        uint64_t length = runs[i].start;
        runs[i].start = start;
        start += length;
    }
}

/* The units of every ranks-th shard. Chunks do not cross shards then and lie in shard order. */
static void add_shards(struct source *source, uint64_t seed)
{
    const struct catalog *catalog = source->scope.catalog;
    const bool chunks = source->rules.unit == SOURCE_CHUNKS;
    uint64_t unit = 0;

    for (uint32_t s = 0; s < catalog->shard_count; s++) {
        const struct shard *shard = &catalog->shards[s];
        const uint64_t end = shard->first_record + shard->record_count;
        const bool mine = s % source->scope.ranks == source->scope.rank;
        if (mine && !chunks)
            add_run(source, shard->first_record, end);
        for (; chunks && unit < source->unit_count && source->unit_first[unit] < end; unit++)
            if (mine)
                add_run(source, source->unit_first[unit], source->unit_first[unit + 1]);
    }
    if (source->rules.permute)
        shuffle_runs(source, seed, 0, source->run_count);
}

/* An order of shards that never changes, cut into parts whose shards are permuted each epoch. */
static void add_nodes(struct source *source, uint64_t seed)
{
    const uint64_t records = source->scope.catalog->record_count;
    struct permutation order =
        permutation_start(source_seed(&source->scope, SOURCE_FIXED, 0, true), source->unit_count);
    uint64_t unit = 0, first = 0, end = 0;

    for (uint32_t node = 0; node < source->rules.nodes; node++) {
        const uint64_t begin_run = source->run_count;
        const uint64_t stop = share(records, node + 1, source->rules.nodes);
        while (source->runs[source->run_count].start < stop) {
            uint64_t left = stop - source->runs[source->run_count].start;
            if (first == end)
                unit_bounds(source, permutation_at(&order, unit++), &first, &end);
            uint64_t part = end - first < left ? end : first + left;
            add_run(source, first, part);
            first = part;
        }
        shuffle_runs(source, random_hash(seed, node, 0), begin_run, source->run_count);
    }
}

int source_begin(struct source *source, uint64_t epoch)
{
    const struct plan_scope *scope = &source->scope;
    const bool permuted = source->rules.permute || source->rules.unit == SOURCE_RECORDS;
    const uint64_t records = scope->catalog->record_count;
    const uint64_t seed = source_seed(scope, SOURCE_ORDER, epoch, source_is_shared(scope));
    uint32_t part = scope->rank;

    source->run_count = source->run_now = 0;
    source->runs[0].start = 0;
    source->offset = 0;
    if (scope->partition == PLAN_DISJOINT && !permuted)
        part = (uint32_t)((scope->rank + epoch) % scope->ranks);
    if (scope->partition == PLAN_SHARDS)
        add_shards(source, seed);
    else if (scope->partition == PLAN_STICKY)
        add_units(source, seed, cut(source, part), cut(source, part + 1));
    else if (scope->partition == PLAN_ELASTIC && source->rules.nodes > 1)
        add_nodes(source, seed);
    else
        add_units(source, seed, 0, records);
    if (scope->partition == PLAN_DISJOINT)
        source->offset = cut(source, part);
    if (source->rules.unit == SOURCE_RECORDS)
        source->permutation = permutation_start(seed, source->runs[source->run_count].start);
    if (scope->partition == PLAN_ELASTIC) {
        source->own = records;
        source->length = elastic_length(scope);
        source->draws = elastic_draws(source);
        return 0;
    }
    source->own = records_of_part(source, part);
    source->draws = scope->remainder == PLAN_PAD    ? source->most
                    : scope->remainder == PLAN_DROP ? source->least
                                                    : source->own;
    source->length = source->draws;
    return 0;
}

static void find_run(struct source *source, uint64_t position)
{
    uint64_t low = 0, high = source->run_count;

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (source->runs[middle].start <= position)
            low = middle;
        else
            high = middle;
    }
    source->run_now = low;
}

/* The run of a place in the walk, most often the last one or the one after it. */
static const struct source_run *run_at(struct source *source, uint64_t walked)
{
    const struct source_run *run = &source->runs[source->run_now];

    if (walked >= run[1].start && source->run_now + 1 < source->run_count) {
        source->run_now++;
        run++;
    }
    if (walked < run->start || walked >= run[1].start) {
        find_run(source, walked);
        run = &source->runs[source->run_now];
    }
    return run;
}

uint64_t source_at(struct source *source, uint64_t position)
{
    uint64_t walked = source->offset + (position < source->own ? position : position % source->own);

    assert(position < (source->own > source->length ? source->own : source->length));
    if (source->rules.unit == SOURCE_RECORDS)
        walked = permutation_at(&source->permutation, walked);
    const struct source_run *run = run_at(source, walked);
    return run->first + (walked - run->start);
}

void source_bounds(struct source *source, uint64_t position, uint64_t *begin, uint64_t *end)
{
    const uint64_t around = position - position % source->own; /* how far it went round */
    const struct source_run *run = run_at(source, source->offset + position - around);
    const uint64_t low = run->start > source->offset ? run->start - source->offset : 0;
    const uint64_t high = run[1].start - source->offset;

    *begin = around + low;
    *end = around + (high < source->own ? high : source->own);
    if (source->scope.partition != PLAN_ELASTIC && *end > source->length)
        *end = source->length;
}

int source_next(struct source_cursor *cursor, uint64_t draws,
                uint64_t (*record)(void *context, uint64_t place), void *context,
                struct plan_op *ops, uint32_t max)
{
    uint32_t count = 0;

    while (count < max && cursor->place < draws) {
        if (!cursor->fetched) {
            ops[count++] =
                (struct plan_op){.kind = PLAN_FETCH, .record = record(context, cursor->place)};
        } else {
            ops[count++] = (struct plan_op){.kind = PLAN_DRAW};
            cursor->place++;
        }
        cursor->fetched = !cursor->fetched;
    }
    return (int)count;
}
