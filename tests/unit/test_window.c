/* SPDX-License-Identifier: Apache-2.0
 *
 * The reads that a loader makes are those that shuffle/quality.c counts, in the order that the
 * window allows; a reader that writes down what it is asked for is the witness.
 */
#include "tests/unit/unit.h"

#include "pipeline/engine/batches.h"
#include "pipeline/loader/loader.h"
#include "shuffle/quality.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the witness ---- */

enum { RECORDS = 40000, DEPTH = 8 };

static struct extent asked[RECORDS];
static uint32_t asked_count;
static bool said_in_order;

struct witness {
    struct read_request *held[DEPTH];
    uint32_t count;
};

static int witness_open(void *state, const void *settings, const struct reader_config *site,
                        struct reader_traits *traits)
{
    assert_true(site->depth <= DEPTH);
    said_in_order = site->in_order;
    traits->no_bytes = true;
    return 0;
}

static void witness_close(void *state) {}

static int witness_submit(void *state, struct read_request *request)
{
    struct witness *witness = state;

    if (witness->count == DEPTH)
        return -EAGAIN;
    assert_true(asked_count < RECORDS);
    asked[asked_count++] = (struct extent){
        .offset = request->offset, .bytes = request->bytes, .shard = request->shard};
    witness->held[witness->count++] = request;
    return 0;
}

static int witness_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct witness *witness = state;
    const uint32_t count = witness->count < max ? witness->count : max;

    for (uint32_t i = 0; i < count; i++) {
        done[i] = witness->held[--witness->count];
        done[i]->result = (int)done[i]->bytes;
    }
    return (int)count;
}

static const struct reader_ops witness = {
    .plugin = {.name = "witness", .state_size = sizeof(struct witness)},
    .open = witness_open,
    .close = witness_close,
    .submit = witness_submit,
    .reap = witness_reap,
};

/* ---- an epoch of the loader, and of the model ---- */

struct terms {
    const char *shuffle;
    uint32_t window;
    uint64_t read_bytes, memory_bytes;
    uint32_t kept; /* records held at once by a slow decode thread */
};

static uint64_t drawn[RECORDS], modelled[RECORDS], windows_cut;

static void take_all(struct loader *loader, uint32_t most_kept)
{
    static struct fetch *kept[RECORDS];
    uint32_t taken = 0, returned = 0;

    while (taken < RECORDS) {
        int count = loader_acquire(loader, kept + taken, RECORDS - taken < 7 ? RECORDS - taken : 7);
        assert_true(count > 0);
        for (int i = 0; i < count; i++, taken++)
            drawn[taken] = kept[taken]->record;
        for (; returned + most_kept < taken; returned++)
            loader_release(loader, &kept[returned], 1);
    }
    for (; returned < RECORDS; returned++)
        loader_release(loader, &kept[returned], 1);
    loader_finish(loader);
    assert_int_equal(loader_acquire(loader, kept, 1), 0);
}

static void run_epoch(const struct catalog *catalog, const struct plan_scope *scope,
                      const struct plugin_choice *shuffle, const struct terms *terms)
{
    const struct plugin_choice reader = {.plugin = &witness.plugin};
    struct loader_figures figures;
    struct plan plan;

    assert_int_equal(plan_open(&plan, shuffle, scope), 0);
    struct batches *batches =
        batches_create(&(struct batches_config){.batch_size = 64, .buffers = 3});
    struct loader *loader = loader_create(&(struct loader_config){
        .catalog = catalog,
        .reader = &reader,
        .plan = &plan,
        .sink = batches_sink(batches),
        .read = &(struct read_settings){.iodepth = DEPTH, .block_bytes = terms->read_bytes},
        .order = &(struct order_settings){.window = terms->window},
        .memory_bytes = terms->memory_bytes,
        .alignment = 4096,
    });
    asked_count = 0;
    assert_int_equal(loader_start(loader, NULL), 0);
    loader_begin(loader, 0, 0);
    take_all(loader, terms->kept);
    assert_true(loader_epoch_figures(loader, &figures));
    assert_int_equal(loader_join(loader), 0);
    assert_int_equal(figures.requests, asked_count);
    windows_cut = loader_totals(loader).windows_cut;
    loader_destroy(loader);
    batches_destroy(batches);
    plan_close(&plan);
}

static void note_draw(void *context, uint32_t rank, uint64_t epoch, uint64_t draw, uint64_t record)
{
    modelled[draw] = record;
}

/* Three shards of small records; one in fifty is large. */
static struct catalog *make_catalog(void)
{
    struct catalog *catalog = catalog_create("test", "test");
    char path[] = "/tmp/iobench-test-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 100 * RECORDS), 0);
    for (uint32_t i = 0, shard = 0; shard < 3; shard++) {
        uint64_t offset = 0;
        assert_int_equal(catalog_begin_shard(catalog, path, NULL, 0), 0);
        for (; i < (shard + 1) * (RECORDS / 3) + shard / 2; i++) {
            uint64_t bytes = i % 50 ? 10 + i % 7 : 2000;
            assert_int_equal(catalog_add(catalog, offset, bytes), 0);
            offset += bytes;
        }
    }
    close(fd);
    unlink(path);
    assert_int_equal(catalog_seal(catalog), 0);
    assert_int_equal(catalog->record_count, RECORDS);
    return catalog;
}

/* Run the loader and the model with the same terms and compare their reads. */
static struct catalog *compare(const struct terms *terms)
{
    struct catalog *catalog = make_catalog();
    const struct plan_scope scope = {.catalog = catalog, .seed = 3, .ranks = 1, .batch_size = 64};
    struct plugin_choice shuffle;
    struct quality quality;
    const struct read_settings read = {.block_bytes = terms->read_bytes};

    assert_int_equal(plugin_choose("shuffle", shuffle_registry, terms->shuffle, &shuffle), 0);
    run_epoch(catalog, &scope, &shuffle, terms);
    assert_int_equal(
        quality_measure(&(struct quality_terms){.shuffle = &shuffle,
                                                .scope = scope,
                                                .epochs = 1,
                                                .classes = 1,
                                                .draw = note_draw,
                                                .reads = loader_reads(catalog, terms->memory_bytes,
                                                                      &read, terms->window)},
                        &quality),
        0);
    assert_int_equal(asked_count, (uint64_t)quality.reads);
    assert_memory_equal(drawn, modelled, sizeof drawn);
    plugin_release(&shuffle);
    return catalog;
}

/* ---- invariants ---- */

static void a_window_of_one_reads_as_drawn(void **unused)
{
    const struct terms terms = {
        .shuffle = "epoch", .window = 1, .read_bytes = 65536, .memory_bytes = 64 << 20, .kept = 9};
    struct catalog *catalog = compare(&terms);

    assert_int_equal(asked_count, RECORDS);
    for (uint32_t i = 0; i < RECORDS; i++)
        assert_memory_equal(&asked[i], catalog_extent(catalog, drawn[i]), sizeof *asked);
    catalog_destroy(catalog);
}

static void a_window_is_sorted_and_no_more(void **unused)
{
    const struct terms terms = {
        .shuffle = "epoch", .window = 512, .read_bytes = 1, .memory_bytes = 64 << 20, .kept = 9};
    struct catalog *catalog = compare(&terms);

    assert_int_equal(asked_count, RECORDS); /* one read per record, because of its size */
    for (uint32_t i = 1; i < RECORDS; i++)
        assert_true(i % terms.window == 0 || coalesce_before(&asked[i - 1], &asked[i]));
    catalog_destroy(catalog);
}

static void every_window_makes_the_reads_of_the_model(void **unused)
{
    static const char *const shuffles[] = {"none", "epoch", "tfdata:1000,interleave=3", "py1e:900"};
    static const uint32_t windows[] = {0, 1, 100, 512, 16384};

    for (size_t i = 0; i < sizeof shuffles / sizeof *shuffles; i++)
        for (size_t k = 0; k < sizeof windows / sizeof *windows; k++)
            catalog_destroy(compare(&(struct terms){.shuffle = shuffles[i],
                                                    .window = windows[k],
                                                    .read_bytes = 65536,
                                                    .memory_bytes = 64 << 20,
                                                    .kept = 500}));
}

/* A reader may count on it: the plan does so, and so are the records numbered. */
static void readers_learn_that_a_plan_reads_in_order(void **unused)
{
    struct terms terms = {.shuffle = "buffer:100", .read_bytes = 65536, .memory_bytes = 64 << 20};
    struct catalog *catalog = make_catalog();
    const struct plan_scope scope = {.catalog = catalog, .seed = 3, .ranks = 1, .batch_size = 64};
    struct extent *last = (struct extent *)(uintptr_t)catalog_extent(catalog, RECORDS - 1);
    struct plugin_choice shuffle;

    assert_int_equal(plugin_choose("shuffle", shuffle_registry, "buffer:100", &shuffle), 0);
    run_epoch(catalog, &scope, &shuffle, &terms);
    assert_true(said_in_order);
    last->offset = 0;
    run_epoch(catalog, &scope, &shuffle, &terms);
    assert_false(said_in_order);
    plugin_release(&shuffle);
    catalog_destroy(catalog);
    terms.shuffle = "epoch";
    catalog_destroy(compare(&terms));
    assert_false(said_in_order);
}

/* Only the plan decides where windows end: decode threads that hold too many records, or memory
 * that ends a window early, do not change the reads from the model's. */
static void shortage_makes_no_other_reads(void **unused)
{
    catalog_destroy(compare(&(struct terms){.shuffle = "epoch",
                                            .window = 6000, /* 24,000 fetches */
                                            .read_bytes = 65536,
                                            .memory_bytes = 64 << 20,
                                            .kept = 17000}));
    assert_int_equal(windows_cut, 0);
    catalog_destroy(compare(&(struct terms){.shuffle = "epoch",
                                            .window = 6000,
                                            .read_bytes = 65536,
                                            .memory_bytes = 8 << 10,
                                            .kept = 100}));
    assert_true(windows_cut > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_of_one_reads_as_drawn),
        cmocka_unit_test(a_window_is_sorted_and_no_more),
        cmocka_unit_test(every_window_makes_the_reads_of_the_model),
        cmocka_unit_test(readers_learn_that_a_plan_reads_in_order),
        cmocka_unit_test(shortage_makes_no_other_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
