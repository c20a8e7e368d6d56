/* SPDX-License-Identifier: Apache-2.0 */
#include "shuffle/quality.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { OPS = 256, PAGE_BYTES = 4096 };

/* Distinct values in the current batch. */
struct distinct {
    uint64_t *seen; /* the last batch that contained a value, counted from 1 */
    uint64_t sum;   /* over full batches */
    uint64_t now;
};

/* Position of a record with all shards laid end to end. */
struct record_place {
    uint64_t start, record;
};

struct measuring {
    const struct quality_terms *terms;
    struct quality *quality;
    uint64_t *shard_start;       /* of all shards laid end to end */
    uint32_t *had;               /* the last turn (rank and epoch) that drew a record, from 1 */
    uint8_t *times;              /* draws of a record per epoch; saturates at 255 */
    uint64_t *slots;             /* record held */
    uint64_t *frequency;         /* of each label */
    struct record_place *window; /* fetches not yet read */
    uint32_t window_count;
    uint64_t window_bytes;
    struct distinct labels, shards;
    uint64_t batch, row; /* number of the current batch over all turns, from 1 */
    uint64_t batches;
    uint32_t turn;
    uint32_t last_label;
    uint64_t neighbours, same, retainable, retained;
    uint64_t reads, read_bytes, page_bytes, drawn_bytes, gaps, seeks;
    double distance;
    uint64_t read_end; /* UINT64_MAX before the first read */
    uint64_t held_bytes;
};

uint32_t quality_label(const struct quality_terms *terms, uint64_t record)
{
    assert(record < terms->scope.catalog->record_count);
    if (terms->labels)
        return (uint32_t)terms->labels[record];
    return (uint32_t)((unsigned __int128)record * terms->classes /
                      terms->scope.catalog->record_count);
}

static void see(struct distinct *distinct, uint32_t value, uint64_t batch)
{
    distinct->now += distinct->seen[value] != batch;
    distinct->seen[value] = batch;
}

static void measure_draw(struct measuring *m, uint64_t record, uint64_t epoch)
{
    const struct catalog *catalog = m->terms->scope.catalog;
    const struct extent *extent = catalog_extent(catalog, record);
    const uint32_t label = quality_label(m->terms, record);
    uint8_t *times = &m->times[epoch * catalog->record_count + record];

    if (m->last_label != UINT32_MAX) {
        m->neighbours++;
        m->same += label == m->last_label;
    }
    m->last_label = label;
    see(&m->labels, label, m->batch);
    see(&m->shards, extent->shard, m->batch);
    if (++m->row == m->terms->scope.batch_size) {
        m->labels.sum += m->labels.now;
        m->shards.sum += m->shards.now;
        m->labels.now = m->shards.now = m->row = 0;
        m->batches++;
        m->batch++;
    }
    if (epoch > 0) {
        m->retainable++;
        m->retained += m->had[record] == m->turn - 1;
    }
    m->had[record] = m->turn;
    *times = (uint8_t)(*times + (*times < UINT8_MAX));
    m->drawn_bytes += extent->bytes;
}

static int compare_places(const void *a, const void *b)
{
    const struct record_place *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static void measure_window(struct measuring *m)
{
    const struct catalog *catalog = m->terms->scope.catalog;
    const struct coalesce *rules = &m->terms->reads;

    for (uint32_t i = 1; i < m->window_count; i++)
        if (m->window[i].start < m->window[i - 1].start) {
            qsort(m->window, m->window_count, sizeof *m->window, compare_places);
            break;
        }
    for (uint32_t i = 0; i < m->window_count;) {
        struct coalesce_run run =
            coalesce_start(rules, catalog_extent(catalog, m->window[i].record));
        while (++i < m->window_count &&
               coalesce_extend(rules, &run, catalog_extent(catalog, m->window[i].record)))
            ;
        const uint64_t place = m->shard_start[run.shard] + run.start;
        m->reads++;
        m->read_bytes += run.end - run.start;
        m->page_bytes +=
            bytes_align_up(run.end, PAGE_BYTES) - bytes_align_down(run.start, PAGE_BYTES);
        m->seeks += place != m->read_end || run.start == 0; /* or in another shard */
        if (m->read_end != UINT64_MAX) {
            m->gaps++;
            m->distance += fabs((double)place - (double)m->read_end);
        }
        m->read_end = m->shard_start[run.shard] + run.end;
    }
    m->window_count = 0;
    m->window_bytes = 0;
}

static int run_epoch(struct measuring *m, struct plan *plan, uint32_t rank, uint64_t epoch)
{
    const struct quality_terms *terms = m->terms;
    struct quality *quality = m->quality;
    struct plan_op ops[OPS];
    uint64_t draws = 0;
    int count = plan_begin(plan, epoch);

    if (count < 0)
        return count;
    quality->begin_ns = plan->begin_ns > quality->begin_ns ? plan->begin_ns : quality->begin_ns;
    m->turn++;
    m->last_label = UINT32_MAX;
    m->read_end = UINT64_MAX;
    m->row = m->labels.now = m->shards.now = 0;
    m->batch++;
    while ((count = plan_next(plan, ops, OPS)) > 0) {
        for (int i = 0; i < count; i++) {
            uint64_t *slot = &m->slots[ops[i].slot];
            if (ops[i].kind == PLAN_FETCH) {
                *slot = ops[i].record;
                const struct extent *extent = catalog_extent(terms->scope.catalog, *slot);
                m->held_bytes += extent->bytes;
                if (m->held_bytes > quality->buffer_bytes)
                    quality->buffer_bytes = m->held_bytes;
                if (coalesce_is_full(&terms->reads, m->window_count, m->window_bytes))
                    measure_window(m);
                m->window[m->window_count++] = (struct record_place){
                    .start = m->shard_start[extent->shard] + extent->offset, .record = *slot};
                m->window_bytes += extent->bytes;
                continue;
            }
            assert(m->held_bytes >= catalog_extent(terms->scope.catalog, *slot)->bytes);
            m->held_bytes -= catalog_extent(terms->scope.catalog, *slot)->bytes;
            measure_draw(m, *slot, epoch);
            if (terms->draw)
                terms->draw(terms->context, rank, epoch, draws, *slot);
            draws++;
        }
    }
    measure_window(m);
    quality->draws_least = draws < quality->draws_least ? draws : quality->draws_least;
    quality->draws_most = draws > quality->draws_most ? draws : quality->draws_most;
    if (epoch + 1 == terms->epochs)
        quality->draws += draws;
    return count;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static int measure_ranks(struct measuring *m)
{
    const struct quality_terms *terms = m->terms;
    const struct catalog *catalog = terms->scope.catalog;
    const double records = (double)catalog->record_count, batch = terms->scope.batch_size;
    const double epochs = (double)terms->epochs;
    struct quality *quality = m->quality;
    uint64_t start = 0;
    int code = 0;

    if (terms->classes == 0 || terms->scope.batch_size == 0 || terms->epochs == 0 ||
        terms->reads.window == 0 || terms->reads.alignment == 0)
        return fail(EINVAL, "classes, batch size, epochs, window and alignment must be at least 1");
    m->shard_start = memory_array(catalog->shard_count, sizeof *m->shard_start);
    m->had = memory_array(catalog->record_count, sizeof *m->had);
    m->times = memory_array(catalog->record_count, terms->epochs);
    m->window = memory_array(terms->reads.window, sizeof *m->window);
    m->labels.seen = memory_array(terms->classes, sizeof *m->labels.seen);
    m->shards.seen = memory_array(catalog->shard_count, sizeof *m->shards.seen);
    uint64_t *frequency = m->frequency = memory_array(terms->classes, sizeof *frequency);
    if (!m->shard_start || !m->had || !m->times || !m->window || !m->labels.seen ||
        !m->shards.seen || !frequency)
        return -ENOMEM;
    for (uint64_t i = 0; terms->labels && i < catalog->record_count; i++)
        if (terms->labels[i] < 0 || (uint32_t)terms->labels[i] >= terms->classes)
            return fail(EINVAL, "record %llu has label %d of %u classes", (unsigned long long)i,
                        terms->labels[i], terms->classes);
    /* What uniformly random draws would give, for values of any frequency. */
    for (uint64_t i = 0; i < catalog->record_count; i++)
        frequency[quality_label(terms, i)]++;
    for (uint32_t label = 0; label < terms->classes; label++) {
        const double share = (double)frequency[label] / records;
        quality->labels_at_random += -expm1(batch * log1p(-share));
        quality->same_label_at_random += share * share;
    }
    for (uint32_t s = 0; s < catalog->shard_count; s++) {
        const struct shard *shard = &catalog->shards[s];
        quality->shards_at_random += -expm1(batch * log1p(-(double)shard->record_count / records));
        m->shard_start[s] = start;
        start += shard->stream_bytes;
    }
    for (uint32_t rank = 0; code == 0 && rank < terms->scope.ranks; rank++) {
        struct plan_scope scope = terms->scope;
        struct plan plan;
        scope.rank = rank;
        code = plan_open(&plan, terms->shuffle, &scope);
        if (code == 0) {
            if (rank == 0) {
                quality->slots = plan.traits.slots;
                quality->state_bytes = plan.traits.state_bytes;
            }
            free(m->slots);
            m->slots = memory_array(plan.traits.slots, sizeof *m->slots);
            code = m->slots ? 0 : -ENOMEM;
        }
        for (uint64_t epoch = 0; code == 0 && epoch < terms->epochs; epoch++)
            code = run_epoch(m, &plan, rank, epoch);
        plan_close(&plan);
    }
    if (code)
        return code;
    quality->labels_per_batch = ratio((double)m->labels.sum, (double)m->batches);
    quality->shards_per_batch = ratio((double)m->shards.sum, (double)m->batches);
    quality->same_label = ratio((double)m->same, (double)m->neighbours);
    quality->retention = ratio((double)m->retained, (double)m->retainable);
    quality->reads = (double)m->reads / epochs;
    quality->seeks = (double)m->seeks / epochs;
    quality->amplification = ratio((double)m->page_bytes, (double)m->drawn_bytes);
    quality->bytes_per_read = ratio((double)m->read_bytes, (double)m->reads);
    quality->distance_bytes = ratio(m->distance, (double)m->gaps);
    for (uint64_t epoch = 0; epoch < terms->epochs; epoch++) {
        const uint8_t *times = m->times + epoch * catalog->record_count;
        uint64_t missing = 0, repeated = 0;
        for (uint64_t i = 0; i < catalog->record_count; i++) {
            missing += times[i] == 0;
            repeated += times[i] > 1 ? times[i] - 1u : 0;
        }
        quality->missing = missing > quality->missing ? missing : quality->missing;
        quality->repeated = repeated > quality->repeated ? repeated : quality->repeated;
    }
    return 0;
}

int quality_measure(const struct quality_terms *terms, struct quality *quality)
{
    struct measuring m = {.terms = terms, .quality = quality};
    const uint64_t start_ns = clock_now_ns();

    *quality = (struct quality){.draws_least = UINT64_MAX};
    int code = measure_ranks(&m);
    quality->run_ns = clock_now_ns() - start_ns;
    free(m.shard_start);
    free(m.had);
    free(m.times);
    free(m.slots);
    free(m.window);
    free(m.labels.seen);
    free(m.shards.seen);
    free(m.frequency);
    return code;
}

struct catalog *outline_create(uint64_t records, uint32_t shards, uint32_t record_bytes,
                               uint32_t spread_bytes)
{
    if (records == 0 || shards == 0 || record_bytes <= spread_bytes) {
        fail(EINVAL, "a data set needs at least one shard and records of at least 1 byte");
        return NULL;
    }
    struct catalog *catalog = catalog_create("outline", "none");
    if (!catalog)
        return NULL;
    catalog->shards = memory_array(shards, sizeof *catalog->shards);
    struct extent *extents = memory_array(records, sizeof *extents);
    catalog->shard_count = catalog->shards ? shards : 0;
    catalog->records = extents;
    if (!catalog->shards || !extents) {
        catalog_destroy(catalog);
        return NULL;
    }
    catalog->record_count = records;
    for (uint64_t record = 0, s = 0; s < shards; s++) {
        struct shard *shard = &catalog->shards[s];
        const uint64_t end = (uint64_t)((unsigned __int128)records * (s + 1) / shards);
        shard->label = -1;
        shard->first_record = record;
        shard->record_count = end - record;
        for (; record < end; record++) {
            uint64_t step = (random_mix(record) >> 32) * (2 * (uint64_t)spread_bytes + 1) >> 32;
            uint32_t bytes = record_bytes - spread_bytes + (uint32_t)step;
            extents[record] =
                (struct extent){.offset = shard->bytes, .bytes = bytes, .shard = (uint32_t)s};
            shard->bytes += bytes;
            if (bytes > catalog->record_bytes_max)
                catalog->record_bytes_max = bytes;
        }
        shard->stream_bytes = shard->bytes;
        catalog->record_bytes_total += shard->bytes;
    }
    return catalog;
}
