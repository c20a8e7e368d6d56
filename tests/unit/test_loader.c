/* SPDX-License-Identifier: Apache-2.0
 * The loader with storage that completes late, out of order and with errors, and with barely enough
 * memory: each record must arrive once, in draw order, with its own bytes.
 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/heap.h"
#include "base/random.h"
#include "pipeline/engine/batches.h"
#include "pipeline/loader/loader.h"
#include "pipeline/result/result.h"
#include "tests/unit/memory_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a plan with many slots: random fetches, random draws ---- */

static struct {
    uint64_t slots;
    bool in_order;
    uint64_t fails_at; /* this epoch's order cannot be created; 0: all can */
    uint64_t records;  /* of an epoch; 0: all */
} strategy;

struct test_plan {
    struct random random;
    const struct plan_scope *scope;
    uint32_t *order;
    uint64_t fetched, drawn, records;
    uint32_t held[512], held_count, free_slots[512], free_count;
};

static int plan_test_open(const struct shuffle_ops *ops, void *state, const void *settings,
                          const struct plan_scope *scope, struct plan_traits *traits)
{
    struct test_plan *plan = state;

    plan->scope = scope;
    plan->records = strategy.records ? strategy.records : scope->catalog->record_count;
    plan->order = memory_array(plan->records, sizeof *plan->order);
    traits->slots = strategy.slots;
    return 0;
}

static void plan_test_close(void *state)
{
    free(((struct test_plan *)state)->order);
}

static int plan_test_begin(void *state, uint64_t epoch)
{
    struct test_plan *plan = state;

    if (epoch && epoch == strategy.fails_at)
        return fail(ENOMEM, "no order for this epoch");
    plan->random = random_start(random_hash(plan->scope->seed, epoch, 0));
    for (uint32_t i = 0; i < plan->records; i++)
        plan->order[i] = i;
    if (!strategy.in_order)
        random_shuffle_u32(&plan->random, plan->order, plan->records);
    plan->fetched = plan->drawn = plan->held_count = plan->free_count = 0;
    for (uint32_t i = 0; i < strategy.slots; i++)
        plan->free_slots[plan->free_count++] = i;
    return 0;
}

static int plan_test_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct test_plan *plan = state;
    uint32_t count = 0;

    while (count < max && plan->drawn < plan->records) {
        bool fetch = plan->fetched < plan->records && plan->free_count > 0 &&
                     (plan->held_count == 0 || random_next(&plan->random) % 4);
        if (fetch) {
            uint32_t slot = plan->free_slots[--plan->free_count];
            plan->held[plan->held_count++] = slot;
            ops[count++] = (struct plan_op){
                .kind = PLAN_FETCH, .slot = slot, .record = plan->order[plan->fetched++]};
        } else {
            uint64_t pick = random_below(&plan->random, plan->held_count);
            uint32_t slot = plan->held[pick];
            plan->held[pick] = plan->held[--plan->held_count];
            plan->free_slots[plan->free_count++] = slot;
            ops[count++] = (struct plan_op){.kind = PLAN_DRAW, .slot = slot};
            plan->drawn++;
        }
    }
    return (int)count;
}

static uint64_t plan_test_draws(void *state)
{
    return ((struct test_plan *)state)->records;
}

static const struct shuffle_ops test_shuffle = {
    .plugin = {.name = "test", .state_size = sizeof(struct test_plan)},
    .open = plan_test_open,
    .close = plan_test_close,
    .begin = plan_test_begin,
    .next = plan_test_next,
    .draws = plan_test_draws,
};

/* ---- the bench: catalog, loader; this thread is decode thread and trainer ---- */

enum { SHARDS = 5, RECORDS = 1000, BATCH = 64, SLOTS = 3 };

static struct catalog *make_catalog(uint32_t bytes_max)
{
    struct catalog *catalog = catalog_create("test", "test");
    struct random random = random_start(5);
    char path[] = "/tmp/iobench-test-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes_max * RECORDS), 0);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        uint64_t offset = 0;
        assert_int_equal(catalog_begin_shard(catalog, path, NULL, 0), 0);
        for (uint32_t i = 0; i < RECORDS / SHARDS; i++) {
            uint64_t bytes = 1 + random_below(&random, bytes_max);
            assert_int_equal(catalog_add(catalog, offset, bytes), 0);
            offset += bytes + (random_next(&random) % 4 ? 0 : random_below(&random, 9000));
        }
    }
    close(fd);
    unlink(path);
    assert_int_equal(catalog_seal(catalog), 0);
    return catalog;
}

struct bench {
    struct catalog *catalog;
    struct plan plan, next_plan;
    struct batches *batches;
    struct loader *loader;
    struct plugin_choice reader, shuffle;
    struct read_settings read;
    struct order_settings order;
};

static uint32_t loaders = 1;
static bool overlap;
static uint64_t limit_samples;
static uint32_t drawn[4][RECORDS]; /* the records of each epoch, in draw order */

static void bench_open(struct bench *bench, uint32_t depth, uint64_t block_bytes,
                       uint64_t memory_bytes, bool skip_errors)
{
    bench->catalog = make_catalog(20000);
    bench->reader = (struct plugin_choice){.plugin = &test_reader.plugin};
    bench->shuffle = (struct plugin_choice){.plugin = &test_shuffle.plugin};
    struct plan_scope scope = {.catalog = bench->catalog, .seed = 3, .ranks = 1};
    assert_int_equal(plan_open(&bench->plan, &bench->shuffle, &scope), 0);
    assert_int_equal(plan_open(&bench->next_plan, &bench->shuffle, &scope), 0);
    bench->batches =
        batches_create(&(struct batches_config){.batch_size = BATCH, .buffers = SLOTS});
    bench->read = (struct read_settings){.io_threads = loaders,
                                         .iodepth = depth,
                                         .block_bytes = block_bytes,
                                         .on_error = skip_errors ? JOB_ERROR_SKIP : JOB_ERROR_STOP};
    bench->order = (struct order_settings){.limit_samples_per_rank = limit_samples};
    if (memory_bytes == 0)
        memory_bytes =
            loader_memory_needed(bench->catalog, &bench->plan.traits, &bench->read, 0).least_bytes;
    bench->loader = loader_create(&(struct loader_config){
        .catalog = bench->catalog,
        .reader = &bench->reader,
        .plan = &bench->plan,
        .next_plan = overlap ? &bench->next_plan : NULL,
        .sink = batches_sink(bench->batches),
        .read = &bench->read,
        .order = &bench->order,
        .memory_bytes = memory_bytes,
        .alignment = 4096,
    });
    assert_non_null(bench->loader);
}

static void bench_close(struct bench *bench)
{
    loader_destroy(bench->loader);
    batches_destroy(bench->batches);
    plan_close(&bench->plan);
    plan_close(&bench->next_plan);
    catalog_destroy(bench->catalog);
}

static uint32_t slow; /* records where a copy from the file is slow, see pipeline/loader/blocks.c */

static void check_bytes(const struct catalog *catalog, const struct fetch *fetch)
{
    const struct extent *place = catalog_extent(catalog, fetch->record);
    const uint8_t *bytes = fetch->bytes;
    const uint64_t behind = ((uintptr_t)bytes - place->offset) % 4096;

    slow += behind > 0 && behind < 32;

    assert_int_equal(fetch->length, place->bytes);
    for (uint32_t i = 0; i < place->bytes; i += i + 1 < place->bytes && i > 64 ? 61 : 1)
        assert_int_equal(bytes[i], byte_at(place->shard, place->offset + i));
    assert_int_equal(bytes[place->bytes - 1],
                     byte_at(place->shard, place->offset + place->bytes - 1));
}

/* Decode and train in turn. Returns the number of records delivered with an error. */
static uint32_t drain_epoch(struct bench *bench, uint64_t epoch)
{
    uint32_t *seen = memory_array(RECORDS, sizeof *seen), errors = 0;
    uint64_t first = 0, count = 0, waited_ns = 0;
    struct fetch *fetches[7];

    const uint32_t draws = limit_samples ? (uint32_t)limit_samples : RECORDS;

    if (!overlap)
        loader_begin(bench->loader, epoch, epoch);
    while (count < draws) {
        int taken =
            loader_acquire(bench->loader, fetches, draws - count < 7 ? draws - (uint32_t)count : 7);
        if (taken <= 0) {
            const int code = loader_join(bench->loader);
            fail_msg("loader_acquire: %d; the loader ended with %d: %s", taken, code,
                     fail_reason());
        }
        for (int i = 0; i < taken; i++, count++) {
            struct fetch *fetch = fetches[i];
            if (count == 0)
                first = fetch->address;
            assert_int_equal(fetch->address, first + count); /* draw order */
            assert_int_equal(fetch->epoch, epoch);
            seen[fetch->record]++;
            drawn[epoch][count] = (uint32_t)fetch->record;
            if (fetch->code)
                errors++;
            else
                check_bytes(bench->catalog, fetch);
            assert_int_equal(batches_wait_open(bench->batches, fetch->address / BATCH, &waited_ns),
                             0);
            *batches_label(bench->batches, fetch->address) = (int32_t)fetch->record;
            uint64_t address = fetch->address;
            loader_release(bench->loader, &fetch, 1);
            batches_done(bench->batches, address / BATCH, 1, &(struct batch_account){.samples = 1});
            if (address % BATCH == BATCH - 1 || count + 1 == draws) {
                struct batch batch;
                assert_int_equal(batches_take(bench->batches, &batch), 1);
                assert_int_equal(batch.count, address % BATCH + 1);
                batches_give(bench->batches);
            }
        }
    }
    for (uint32_t i = 0; i < RECORDS; i++)
        assert_true(seen[i] == 1 || (limit_samples && seen[i] == 0));
    free(seen);
    return errors;
}

static uint32_t run_epochs(struct bench *bench, uint64_t epochs)
{
    uint32_t errors = 0;
    uint64_t first_requests = 0, requests = 0;

    batches_reset(bench->batches);
    assert_int_equal(loader_start(bench->loader, NULL), 0);
    if (overlap)
        loader_begin(bench->loader, 0, epochs - 1);
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        struct loader_figures figures;
        errors += drain_epoch(bench, epoch);
        assert_true(loader_epoch_figures(bench->loader, &figures));
        assert_true(figures.requests > 0);
        first_requests = epoch ? first_requests : figures.requests;
        requests += figures.requests;
    }
    loader_finish(bench->loader);
    struct fetch *none;
    assert_int_equal(loader_acquire(bench->loader, &none, 1), 0);
    assert_int_equal(loader_join(bench->loader), 0);
    const struct loader_totals totals = loader_totals(bench->loader);
    if (totals.reader->errors == 0) { /* the latency of each read is counted with its epoch's */
        assert_int_equal(totals.latency_ns[RESULT_EPOCH_FIRST].count, first_requests);
        assert_int_equal(totals.latency_ns[RESULT_EPOCH_LATER].count, requests - first_requests);
    }
    return errors;
}

static void every_record_comes_once_in_draw_order(void **unused)
{
    static const uint64_t slots[] = {1, 2, 37, 512};
    static const uint32_t alignments[] = {1, 512, 4096};
    static const uint32_t depths[] = {1, 3, 32};
    uint32_t variant = 0;

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++, variant++) {
            struct bench bench;
            storage.late = variant % 2;
            storage.alignment = alignments[j];
            storage.zero_copy = variant % 5 == 4;
            storage.scatters = variant % 2 == 0;
            storage.bad_shard = UINT32_MAX;
            strategy.slots = slots[i];
            strategy.in_order = variant % 3 == 0;
            bench_open(&bench, depths[(i + j) % 3], variant % 4 ? 65536 : 4096, 0, false);
            assert_int_equal(run_epochs(&bench, 2), 0);
            assert_int_equal(run_epochs(&bench, 1), 0); /* a second run of the same job */
            bench_close(&bench);
        }
}

/* Overlapping epochs are drawn in the same order, whatever the plan holds and the storage does. */
static void overlapping_epochs_keep_the_order(void **unused)
{
    static const uint64_t slots[] = {1, 37, 512};
    static uint32_t apart[4][RECORDS];
    struct bench bench;

    storage.bad_shard = UINT32_MAX;
    for (uint32_t variant = 0; variant < 6; variant++) {
        storage.late = variant % 2;
        storage.zero_copy = variant == 4;
        storage.alignment = 512;
        strategy.slots = slots[variant / 2];
        strategy.in_order = false;
        limit_samples = variant == 3 ? 1000 : 0; /* a truncated plan */
        overlap = false;
        bench_open(&bench, 8, 65536, 0, false);
        assert_int_equal(run_epochs(&bench, 4), 0);
        bench_close(&bench);
        memcpy(apart, drawn, sizeof apart);
        memset(drawn, 0xff, sizeof drawn);
        overlap = true;
        bench_open(&bench, 8, 65536, 0, false);
        for (int run = 0; run < 2; run++) {
            assert_int_equal(run_epochs(&bench, 4), 0);
            for (int epoch = 0; epoch < 4; epoch++)
                assert_memory_equal(drawn[epoch], apart[epoch],
                                    (limit_samples ? limit_samples : RECORDS) * sizeof **drawn);
        }
        bench_close(&bench);
    }
    overlap = false;
    limit_samples = 0;
}

/* The next epoch's first read is issued while the last one of this epoch is in flight: storage that
 * waits for it can continue. */
static void reads_go_on_over_the_border(void **unused)
{
    struct bench bench;

    storage.late = storage.zero_copy = false;
    storage.alignment = 1;
    strategy.slots = 37;
    strategy.in_order = false;
    for (int i = 0; i < 2; i++) {
        overlap = i == 1;
        storage.patience = RECORDS; /* one read per record */
        storage.gave_up = false;
        storage.naps_most = overlap ? PATIENCE_NS / 1000000 : 500;
        bench_open(&bench, 8, 1, 64 << 20, false);
        assert_int_equal(run_epochs(&bench, 2), 0);
        bench_close(&bench);
        assert_int_equal(storage.gave_up, !overlap);
    }
    storage.patience = 0;
    overlap = false;
}

/* More epochs than the loader may run ahead are in flight before the first read returns: it then
 * delivers, and does not wait for a trainer that waits for its records. */
static void epochs_of_one_record_do_not_block(void **unused)
{
    enum { EPOCHS = 40 };
    struct bench bench;
    struct fetch *fetch;
    struct loader_figures figures;

    overlap = true;
    strategy.records = 1;
    strategy.slots = 1;
    storage.late = storage.zero_copy = storage.gave_up = false;
    storage.alignment = 1;
    storage.held_until = EPOCHS;
    storage.naps_most = 200;
    bench_open(&bench, 64, 1, 64 << 20, false);
    batches_reset(bench.batches);
    assert_int_equal(loader_start(bench.loader, NULL), 0);
    loader_begin(bench.loader, 0, EPOCHS - 1);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        assert_int_equal(loader_acquire(bench.loader, &fetch, 1), 1);
        assert_int_equal(fetch->epoch, epoch);
        loader_release(bench.loader, &fetch, 1);
        assert_true(loader_epoch_figures(bench.loader, &figures));
    }
    loader_finish(bench.loader);
    assert_int_equal(loader_acquire(bench.loader, &fetch, 1), 0);
    assert_int_equal(loader_join(bench.loader), 0);
    bench_close(&bench);
    storage.held_until = strategy.records = 0;
    overlap = false;
}

static void an_order_that_cannot_be_made_ends_the_run(void **unused)
{
    struct bench bench;
    struct fetch *fetches[16];
    int count;

    for (int i = 0; i < 2; i++) {
        overlap = i == 1;
        strategy.fails_at = 2;
        bench_open(&bench, 8, 65536, 0, false);
        batches_reset(bench.batches);
        assert_int_equal(loader_start(bench.loader, NULL), 0);
        loader_begin(bench.loader, 0, 3);
        while ((count = loader_acquire(bench.loader, fetches, 16)) > 0)
            loader_release(bench.loader, fetches, (uint32_t)count);
        assert_int_equal(count, -ECANCELED);
        assert_int_equal(loader_join(bench.loader), -ENOMEM);
        assert_string_equal(fail_reason(), "no order for this epoch");
        bench_close(&bench);
    }
    strategy.fails_at = 0;
    overlap = false;
}

static void neighbours_are_read_together(void **unused)
{
    struct bench bench;

    storage.late = storage.zero_copy = false;
    storage.alignment = 1;
    strategy.slots = 1;
    strategy.in_order = true;
    bench_open(&bench, 8, 1 << 20, 64 << 20, false);
    batches_reset(bench.batches);
    assert_int_equal(loader_start(bench.loader, NULL), 0);
    drain_epoch(&bench, 0);
    struct loader_figures figures;
    assert_true(loader_epoch_figures(bench.loader, &figures));
    /* 30 MB in reads of up to 1 MiB; gaps of up to 4 KiB are read over, larger ones are not. */
    assert_true(figures.requests < RECORDS / 4);
    assert_true(figures.request_bytes < bench.catalog->record_bytes_total * 112 / 100);
    loader_finish(bench.loader);
    assert_int_equal(loader_join(bench.loader), 0);
    bench_close(&bench);
}

/* Records that stay in slots of the plan are read where they stay, if the reader can; those that
 * are drawn at once are not. */
static void records_that_stay_are_scattered(void **unused)
{
    struct bench bench;

    storage.late = storage.zero_copy = false;
    storage.alignment = 1;
    strategy.in_order = true;
    for (int i = 0; i < 3; i++) {
        storage.scatters = i > 0;
        storage.scattered = (struct counter){0};
        strategy.slots = i < 2 ? 512 : 1;
        slow = 0;
        bench_open(&bench, 8, 65536, 64 << 20, false);
        assert_int_equal(run_epochs(&bench, 1), 0);
        const uint64_t requests = loader_totals(bench.loader).reader->requests;
        const uint64_t scattered = counter_get(&storage.scattered);
        assert_true(i == 1 ? scattered > requests / 2 : scattered <= requests / 10);
        assert_true(i == 0 || slow == 0); /* i == 0: copied out of blocks */
        bench_close(&bench);
    }
    storage.scatters = false;
}

static void only_the_bad_record_is_skipped(void **unused)
{
    struct bench bench;

    storage.late = true;
    storage.zero_copy = false;
    storage.alignment = 1;
    strategy.slots = 37;
    strategy.in_order = true;
    storage.bad_shard = 2;
    for (uint64_t i = 0; i < 4; i++) {
        storage.scatters = i >= 2;
        bench_open(&bench, 8, 1 << 20, 0, true);
        const struct extent *victim = catalog_extent(bench.catalog, RECORDS / 2 + i);
        storage.bad_shard = victim->shard;
        storage.bad_offset = victim->offset;
        assert_int_equal(run_epochs(&bench, 2), 2);
        bench_close(&bench);
    }
    storage.bad_shard = UINT32_MAX;
}

/* Draws behind the failed read have taken the memory by the time that it is known to be bad. */
static void a_read_that_fails_last_is_repeated(void **unused)
{
    static const uint64_t slots[] = {1, 2, 37, 512};
    struct bench bench;

    storage.late = storage.bad_comes_last = true;
    storage.zero_copy = false;
    storage.alignment = 1;
    for (uint64_t i = 0; i < 24; i++) {
        storage.scatters = i / 4 % 2;
        strategy.slots = slots[i % 4];
        strategy.in_order = i % 3;
        bench_open(&bench, 8, 1 << 20, 0, true);
        const struct extent *victim = catalog_extent(bench.catalog, (23 + i * 61) % RECORDS);
        storage.bad_shard = victim->shard;
        storage.bad_offset = victim->offset;
        assert_int_equal(run_epochs(&bench, 2), 2);
        bench_close(&bench);
    }
    storage.bad_shard = UINT32_MAX;
    storage.bad_comes_last = false;
}

static void a_read_error_stops_with_file_and_offset(void **unused)
{
    struct bench bench;
    struct fetch *fetches[16];
    int count;

    storage.late = true;
    storage.zero_copy = false;
    storage.alignment = 1;
    strategy.slots = 1;
    strategy.in_order = false;
    bench_open(&bench, 8, 4096, 0, false);
    storage.bad_shard = 1;
    storage.bad_offset = catalog_extent(bench.catalog, RECORDS / SHARDS + 7)->offset;
    batches_reset(bench.batches);
    assert_int_equal(loader_start(bench.loader, NULL), 0);
    loader_begin(bench.loader, 0, 0);
    while ((count = loader_acquire(bench.loader, fetches, 16)) > 0)
        loader_release(bench.loader, fetches, (uint32_t)count);
    assert_int_equal(count, -ECANCELED);
    assert_refused(loader_join(bench.loader), -EIO, "offset");
    assert_reason("/tmp/iobench-test-");
    bench_close(&bench);
    storage.bad_shard = UINT32_MAX;
}

/* Wherever the reader fails, the loader ends with its code; nothing hangs or leaks. */
static void a_broken_reader_ends_the_run(void **unused)
{
    struct bench bench;
    struct fetch *fetches[16];
    int count;

    storage.late = true;
    strategy.slots = 37;
    bench_open(&bench, 8, 65536, 0, false);
    for (uint64_t n = 1; n < 60; n += 7) {
        storage.reads_until_broken = n;
        batches_reset(bench.batches);
        assert_int_equal(loader_start(bench.loader, NULL), 0);
        loader_begin(bench.loader, 0, 0);
        while ((count = loader_acquire(bench.loader, fetches, 16)) > 0)
            loader_release(bench.loader, fetches, (uint32_t)count);
        assert_int_equal(loader_join(bench.loader), -EIO);
    }
    storage.reads_until_broken = 0;
    bench_close(&bench);
}

/* However deep the queue and long the reads. */
static void a_small_set_takes_little_memory(void **unused)
{
    struct bench bench;

    strategy.slots = 1;
    bench_open(&bench, 256, UINT64_C(4) << 20, 0, false);
    const uint64_t data_bytes = catalog_data_bytes(bench.catalog);
    const uint64_t wanted_bytes =
        loader_memory_needed(bench.catalog, &bench.plan.traits, &bench.read, 0).wanted_bytes;
    assert_in_range(wanted_bytes, 2 * data_bytes, 3 * data_bytes);
    /* 16 reads of each I/O thread, or at least 8 records, whatever the set. */
    for (uint64_t block_bytes = 1; block_bytes <= 1 << 20; block_bytes <<= 20) {
        const uint64_t largest = bench.catalog->record_bytes_max + 2 * HEAP_ALIGNMENT;
        const struct read_settings read = {
            .io_threads = 9, .iodepth = 2, .block_bytes = block_bytes};
        const struct loader_memory needed =
            loader_memory_needed(bench.catalog, &bench.plan.traits, &read, 1);
        assert_int_equal(needed.wanted_bytes,
                         9 * 16 * (block_bytes > largest ? block_bytes : largest));
        assert_int_equal(needed.least_bytes, 9 * 8 * largest);
    }
    bench_close(&bench);
}

static void a_plan_that_holds_too_much_is_an_error(void **unused)
{
    struct bench bench;
    struct fetch *fetches[16];
    int count;

    storage.late = storage.zero_copy = false;
    storage.alignment = 1;
    strategy.slots = 512;
    strategy.in_order = true;
    bench_open(&bench, 8, 65536, 2 << 20, false);
    batches_reset(bench.batches);
    assert_int_equal(loader_start(bench.loader, NULL), 0);
    loader_begin(bench.loader, 0, 0);
    while ((count = loader_acquire(bench.loader, fetches, 16)) > 0)
        loader_release(bench.loader, fetches, (uint32_t)count);
    assert_refused(loader_join(bench.loader), -ENOMEM, "--memory");
    bench_close(&bench);
}

static int with_three_loaders(void **unused)
{
    loaders = 3;
    return 0;
}

static int with_one_loader(void **unused)
{
    loaders = 1;
    return 0;
}

#define several_loaders(test)                                                \
    {                                                                        \
#test ", 3 loaders", test, with_three_loaders, with_one_loader, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_comes_once_in_draw_order),
        cmocka_unit_test(overlapping_epochs_keep_the_order),
        cmocka_unit_test(epochs_of_one_record_do_not_block),
        cmocka_unit_test(reads_go_on_over_the_border),
        cmocka_unit_test(an_order_that_cannot_be_made_ends_the_run),
        cmocka_unit_test(neighbours_are_read_together),
        cmocka_unit_test(records_that_stay_are_scattered),
        cmocka_unit_test(only_the_bad_record_is_skipped),
        cmocka_unit_test(a_read_that_fails_last_is_repeated),
        cmocka_unit_test(a_read_error_stops_with_file_and_offset),
        cmocka_unit_test(a_broken_reader_ends_the_run),
        cmocka_unit_test(a_small_set_takes_little_memory),
        cmocka_unit_test(a_plan_that_holds_too_much_is_an_error),
        several_loaders(every_record_comes_once_in_draw_order),
        several_loaders(only_the_bad_record_is_skipped),
        several_loaders(a_read_error_stops_with_file_and_offset),
        several_loaders(a_broken_reader_ends_the_run),
        several_loaders(a_plan_that_holds_too_much_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
