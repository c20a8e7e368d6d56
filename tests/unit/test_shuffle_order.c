/* SPDX-License-Identifier: Apache-2.0
 * What every shuffle strategy promises: each record exactly once over all ranks, slots that are
 * never drawn empty nor fetched into while held, the exact number of draws, the same order for
 * the same seed and another one for another epoch or seed. */
#include "tests/unit/allocations.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "shuffle/quality.h"
#include "shuffle/plan.h"
#include "shuffle/preset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each strategy, with sizes that fit 499 records of 1000 bytes in 13 shards. */
enum {
    ELASTIC = 1, /* supports this partition */
    FIXED = 2,   /* one sample order for all seeds */
};

static const struct {
    const char *text;
    unsigned kind;
    uint64_t digest; /* of its sample orders, for orders_never_change() */
} strategies[] = {
    {"none", ELASTIC | FIXED, 0xe42684b78f488d79},
    {"none:stride=yes", ELASTIC | FIXED, 0x9d67fa6e123f3229},
    {"epoch", ELASTIC, 0xccc0bb467dc1dcd0},
    {"buffer:1", FIXED, 0xb520de09f05f7547},
    {"buffer:16", 0, 0x799d392885fea636},
    {"buffer:5000", 0, 0xde53d461d1dab052},
    {"block:4096", ELASTIC, 0xd7545b5f89edd2de},
    {"block:8192,inside=no", ELASTIC, 0x9ec0999794a2103c},
    {"mxnet", ELASTIC, 0x5d8a7efb05d124f9},
    {"mxnet-chunk:4096", ELASTIC, 0x08b0eabe6e0f06b2},
    {"mxnet-chunk:8192,permute=yes", ELASTIC, 0x44dc56cdf1217ae2},
    {"tfdata:16,interleave=3", 0, 0x55eaac54b8e3cd10},
    {"tfdata:50,interleave=3,length=4,files=no", 0, 0x38138ecd04beef7c},
    {"dali:16", 0, 0x799d392885fea636},
    {"webdataset:40,initial=10", 0, 0x34d3293f5b653211},
    {"ffcv:pages=4,page=4096", 0, 0x361b1e00586d184a},
    {"ffcv", 0, 0xaaecce461395e029},
    {"corgipile:0.3,block=4096", ELASTIC, 0x0e115bf6f279fa8d},
    {"corgipile:1", ELASTIC, 0x111ac4e58628f339},
    {"py1s", ELASTIC, 0xf98ca72bde1a406d},
    {"py1s:nodes=5", ELASTIC, 0xbfc2311649c5a241},
    {"py2s", ELASTIC, 0xf70a3e51dd5c895b},
    {"py2s:nodes=4", ELASTIC, 0xec6e875fcea1dc50},
    {"py1br:64", ELASTIC, 0x95a84836d4367a29},
    {"py1br:20,nodes=3", ELASTIC, 0x25e1026ab3d28c10},
    {"py1br", ELASTIC, 0x0e482a790b6be34c},
    {"py1e:64", ELASTIC, 0xfbac2bbab73108a7},
    {"py1e:90,nodes=4", ELASTIC, 0xba83805358e28ce7},
    {"py1e", ELASTIC, 0xb4d632363954f6ae},
    {"naive", ELASTIC, 0xccc0bb467dc1dcd0},
};
enum { COUNT = sizeof strategies / sizeof *strategies };
static const uint32_t rank_counts[] = {1, 2, 3, 5, 7, 8};

enum { RECORDS = 499, SHARDS = 13, EPOCHS = 3 };

struct order {
    uint64_t count;
    uint64_t *records;
};

static void open_plan(struct plan *plan, struct plugin_choice *choice, const char *strategy,
                      const struct plan_scope *scope)
{
    assert_int_equal(plugin_choose("shuffle", shuffle_registry, strategy, choice), 0);
    int code = plan_open(plan, choice, scope);
    if (code)
        print_error("%s: %s\n", strategy, fail_reason());
    assert_int_equal(code, 0);
}

/* Run an epoch in odd portions and check slots; append the drawn records to order. */
static void run_epoch(struct plan *plan, uint64_t epoch, struct order *order)
{
    static const uint32_t portions[] = {1, 7, 64, 3};
    uint64_t *held = calloc(plan->traits.slots, sizeof *held); /* record + 1 */
    uint64_t draws = 0, start_ns = clock_now_ns();
    struct plan_op ops[64];
    int count;

    assert_non_null(held);
    assert_int_equal(plan_begin(plan, epoch), 0);
    assert_true(plan->begin_ns <= clock_now_ns() - start_ns);
    for (int turn = 0; (count = plan_next(plan, ops, portions[turn % 4])) > 0; turn++) {
        for (int i = 0; i < count; i++) {
            assert_true(ops[i].slot < plan->traits.slots);
            if (ops[i].kind == PLAN_FETCH) {
                assert_true(held[ops[i].slot] == 0);
                held[ops[i].slot] = ops[i].record + 1;
            } else {
                assert_true(held[ops[i].slot] != 0);
                order->records[order->count++] = held[ops[i].slot] - 1;
                held[ops[i].slot] = 0;
                draws++;
            }
        }
    }
    assert_int_equal(count, 0);
    assert_int_equal(plan_next(plan, ops, 1), 0);
    for (uint64_t i = 0; i < plan->traits.slots; i++)
        assert_true(held[i] == 0);
    assert_true(draws == plan_draws(plan));
    free(held);
}

static uint64_t fewest, largest; /* draws per rank in the last all_ranks() */

/* Run one epoch of all ranks, one rank after the other. */
static struct order all_ranks(const char *strategy, struct plan_scope scope, uint64_t epoch)
{
    struct order order = {0};

    order.records = calloc((size_t)(RECORDS + 64) * scope.ranks, sizeof *order.records);
    assert_non_null(order.records);
    fewest = UINT64_MAX;
    largest = 0;
    for (scope.rank = 0; scope.rank < scope.ranks; scope.rank++) {
        struct plugin_choice choice;
        struct plan plan;
        uint64_t before = order.count;
        open_plan(&plan, &choice, strategy, &scope);
        run_epoch(&plan, epoch, &order);
        uint64_t draws = order.count - before;
        fewest = draws < fewest ? draws : fewest;
        largest = draws > largest ? draws : largest;
        plan_close(&plan);
        plugin_release(&choice);
    }
    return order;
}

static void count_records(const struct order *order, uint8_t *times)
{
    memset(times, 0, RECORDS);
    for (uint64_t i = 0; i < order->count; i++)
        times[order->records[i]]++;
}

/* MXNet has its own partition: ceil(N / P) or bytes. */
static void check_coverage(const struct plan_scope *scope, const struct order *order, bool even)
{
    uint8_t times[RECORDS];
    uint32_t want = scope->partition == PLAN_REPLICATED ? scope->ranks : 1;
    uint64_t other = 0;

    count_records(order, times);
    for (uint64_t i = 0; i < RECORDS; i++) {
        other += times[i] != want;
        if (scope->remainder == PLAN_UNEVEN)
            assert_int_equal(times[i], want);
        else if (scope->remainder == PLAN_PAD)
            assert_true(times[i] >= want);
        else
            assert_true(times[i] <= want);
    }
    if (scope->remainder != PLAN_UNEVEN)
        assert_true(fewest == largest);
    if (scope->remainder == PLAN_UNEVEN && scope->partition != PLAN_SHARDS && even)
        assert_true(largest - fewest <= 1);
    if (scope->remainder == PLAN_DROP && scope->partition == PLAN_DISJOINT && even)
        assert_true(other < scope->ranks);
}

static void every_record_exactly_once(void **unused)
{
    struct catalog *catalog = outline_create(RECORDS, SHARDS, 1000, 300);

    for (size_t s = 0; s < COUNT; s++)
        for (int partition = 0; partition < 5; partition++)
            for (int r = 0; r < 6; r++)
                for (int remainder = 0; remainder < 3; remainder++)
                    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
                        struct plan_scope scope = {.catalog = catalog,
                                                   .seed = 5,
                                                   .ranks = rank_counts[r],
                                                   .partition = (enum plan_partition)partition,
                                                   .remainder = (enum plan_remainder)remainder,
                                                   .batch_size = 8};
                        if (scope.partition == PLAN_ELASTIC && !(strategies[s].kind & ELASTIC))
                            continue;
                        struct order order = all_ranks(strategies[s].text, scope, epoch);
                        check_coverage(&scope, &order,
                                       strncmp(strategies[s].text, "mxnet", 5) != 0);
                        free(order.records);
                    }
    catalog_destroy(catalog);
}

static void elastic_batches_do_not_depend_on_the_ranks(void **unused)
{
    struct catalog *catalog = outline_create(RECORDS, SHARDS, 1000, 300);
    enum { GLOBAL = 24 };

    for (size_t s = 0; s < COUNT; s++)
        for (int remainder = 0; (strategies[s].kind & ELASTIC) && remainder < 3; remainder++) {
            uint64_t first[RECORDS / GLOBAL + 1][RECORDS]; /* occurrences of a record in a batch */
            memset(first, 0, sizeof first);
            for (uint32_t ranks = 1; ranks <= GLOBAL; ranks++) {
                uint64_t here[RECORDS / GLOBAL + 1][RECORDS];
                if (GLOBAL % ranks)
                    continue;
                memset(here, 0, sizeof here);
                struct plan_scope scope = {.catalog = catalog,
                                           .seed = 1,
                                           .ranks = ranks,
                                           .partition = PLAN_ELASTIC,
                                           .remainder = (enum plan_remainder)remainder,
                                           .batch_size = GLOBAL / ranks};
                for (scope.rank = 0; scope.rank < ranks; scope.rank++) {
                    struct plugin_choice choice;
                    struct plan plan;
                    struct order order = {.records = calloc(RECORDS + 64, sizeof(uint64_t))};
                    open_plan(&plan, &choice, strategies[s].text, &scope);
                    run_epoch(&plan, 2, &order);
                    for (uint64_t i = 0; i < order.count; i++)
                        here[i / scope.batch_size][order.records[i]]++;
                    free(order.records);
                    plan_close(&plan);
                    plugin_release(&choice);
                }
                if (ranks == 1)
                    memcpy(first, here, sizeof first);
                assert_memory_equal(first, here, sizeof first);
            }
        }
    catalog_destroy(catalog);
}

static struct order one_rank(const char *strategy, const struct plan_scope *scope, uint64_t epoch)
{
    struct order order = {.records = calloc(RECORDS + 64, sizeof(uint64_t))};
    struct plugin_choice choice;
    struct plan plan;

    assert_non_null(order.records);
    open_plan(&plan, &choice, strategy, scope);
    run_epoch(&plan, epoch, &order);
    plan_close(&plan);
    plugin_release(&choice);
    return order;
}

static bool same_order(struct order a, struct order b)
{
    bool same = a.count == b.count && memcmp(a.records, b.records, a.count * sizeof(uint64_t)) == 0;

    free(a.records);
    free(b.records);
    return same;
}

/* Epochs may begin in any order; the same epoch gives the same sample order, others differ. */
static void orders_follow_from_seed_epoch_and_rank(void **unused)
{
    struct catalog *catalog = outline_create(RECORDS, SHARDS, 1000, 300);

    for (size_t s = 0; s < COUNT; s++)
        for (int partition = 0; partition < 5; partition++) {
            const char *text = strategies[s].text;
            struct plan_scope scope = {.catalog = catalog,
                                       .seed = 7,
                                       .ranks = 2,
                                       .partition = (enum plan_partition)partition,
                                       .batch_size = 8};
            if (scope.partition == PLAN_ELASTIC && !(strategies[s].kind & ELASTIC))
                continue;
            assert_true(same_order(one_rank(text, &scope, 1), one_rank(text, &scope, 1)));

            struct plugin_choice choice;
            struct plan plan;
            struct order order = {.records = calloc(2 * RECORDS + 64, sizeof(uint64_t))};
            open_plan(&plan, &choice, text, &scope);
            run_epoch(&plan, 4, &order);
            order.count = 0;
            struct plan_op left[64]; /* an epoch that is left in its middle */
            assert_int_equal(plan_begin(&plan, 2), 0);
            assert_int_equal(plan_next(&plan, left, 64), 64);
            run_epoch(&plan, 1, &order);
            plan_close(&plan);
            plugin_release(&choice);
            assert_true(same_order(order, one_rank(text, &scope, 1)));

            if (strategies[s].kind & FIXED)
                continue;
            struct plan_scope other = scope;
            assert_false(same_order(one_rank(text, &scope, 0), one_rank(text, &scope, 1)));
            other.seed = 8;
            assert_false(same_order(one_rank(text, &scope, 0), one_rank(text, &other, 0)));
            other.seed = 7;
            other.rank = 1;
            assert_false(same_order(one_rank(text, &scope, 0), one_rank(text, &other, 0)));
        }
    catalog_destroy(catalog);
}

/* From any draw on, the sample order is that of the whole epoch, and of the earlier records only
 * those that a buffer holds are fetched. */
static void seeking_costs_what_is_held(void **unused)
{
    static const uint64_t places[] = {0, 1, 17, 100, 165, 166};
    struct catalog *catalog = outline_create(RECORDS, SHARDS, 1000, 300);

    for (size_t s = 0; s < COUNT; s++)
        for (int partition = 0; partition < 5; partition += 4) {
            struct plan_scope scope = {.catalog = catalog,
                                       .ranks = 3,
                                       .rank = 1,
                                       .partition = (enum plan_partition)partition,
                                       .batch_size = 8};
            if (scope.partition == PLAN_ELASTIC && !(strategies[s].kind & ELASTIC))
                continue;
            struct order whole = one_rank(strategies[s].text, &scope, 2);
            struct plugin_choice choice;
            struct plan plan;
            open_plan(&plan, &choice, strategies[s].text, &scope);
            uint64_t *held = calloc(plan.traits.slots, sizeof *held);
            for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
                struct plan_op ops[5];
                uint64_t draw = places[p], fetches = 0;
                int count;
                if (draw >= whole.count)
                    continue;
                assert_int_equal(plan_begin(&plan, 2), 0);
                assert_int_equal(plan_seek(&plan, draw), 0);
                while ((count = plan_next(&plan, ops, 5)) > 0)
                    for (int i = 0; i < count; i++)
                        if (ops[i].kind == PLAN_FETCH) {
                            held[ops[i].slot] = ops[i].record;
                            fetches++;
                        } else {
                            assert_true(held[ops[i].slot] == whole.records[draw]);
                            draw++;
                        }
                assert_true(draw == whole.count);
                assert_true(fetches == whole.count - places[p]);
            }
            assert_int_equal(plan_begin(&plan, 2), 0);
            assert_int_equal(plan_seek(&plan, whole.count), -EINVAL);
            for (uint64_t i = 1; i <= 2 && !plan.ops->seek && allocations_counted; i++) {
                allocation_refused = counter_get(&allocations) + i;
                assert_int_equal(plan_seek(&plan, 1), -ENOMEM);
            }
            free(held);
            free(whole.records);
            plan_close(&plan);
            plugin_release(&choice);
        }
    catalog_destroy(catalog);
}

/* Fixed forever: a seed gives the same sample order in every version and on every machine. */
static void orders_never_change(void **unused)
{
    struct catalog *catalog = outline_create(RECORDS, SHARDS, 1000, 300);

    for (size_t s = 0; s < COUNT; s++) {
        uint64_t digest = 0;
        for (int partition = 0; partition < 5; partition++) {
            struct plan_scope scope = {.catalog = catalog,
                                       .seed = 1,
                                       .ranks = 3,
                                       .rank = 1,
                                       .partition = (enum plan_partition)partition,
                                       .batch_size = 8};
            if (scope.partition == PLAN_ELASTIC && !(strategies[s].kind & ELASTIC))
                continue;
            struct order order = one_rank(strategies[s].text, &scope, 1);
            for (uint64_t i = 0; i < order.count; i++)
                digest = random_mix(digest ^ order.records[i]) + i;
            free(order.records);
        }
        if (digest != strategies[s].digest)
            print_error("%s: 0x%016llx\n", strategies[s].text, (unsigned long long)digest);
        assert_true(digest == strategies[s].digest);
    }
    catalog_destroy(catalog);
}

/* Return whether an epoch of one rank fetches the records of each shard in their order, none left
 * out between the first and the last. */
static bool fetches_front_to_back(struct plan *plan, uint64_t epoch)
{
    const struct catalog *catalog = plan->scope.catalog;
    uint64_t next[SHARDS] = {0}; /* record + 1; 0: none yet */
    bool so_far = true;
    struct plan_op op;

    assert_int_equal(plan_begin(plan, epoch), 0);
    while (plan_next(plan, &op, 1) > 0) {
        if (op.kind != PLAN_FETCH)
            continue;
        uint64_t *expected = &next[catalog_extent(catalog, op.record)->shard];
        so_far &= *expected == 0 || op.record == *expected;
        *expected = op.record + 1;
    }
    return so_far;
}

static void plans_say_whether_they_read_from_front_to_back(void **unused)
{
    struct catalog *catalog = outline_create(RECORDS, SHARDS, 1000, 300);
    static const char *const surely[] = {"none",  "buffer:1",   "buffer:16", "tfdata:16",
                                         "dali:", "webdataset", NULL};

    for (size_t s = 0; s < COUNT; s++)
        for (int partition = 0; partition < 5; partition++)
            for (uint32_t ranks = 1; ranks <= 3; ranks += 2) {
                struct plan_scope scope = {.catalog = catalog,
                                           .seed = 3,
                                           .ranks = ranks,
                                           .rank = ranks / 2,
                                           .partition = (enum plan_partition)partition,
                                           .batch_size = 8};
                struct plugin_choice choice;
                struct plan plan;
                bool is_sure = false;
                if (scope.partition == PLAN_ELASTIC && !(strategies[s].kind & ELASTIC))
                    continue;
                open_plan(&plan, &choice, strategies[s].text, &scope);
                for (int i = 0; surely[i]; i++)
                    is_sure |= strncmp(strategies[s].text, surely[i], strlen(surely[i])) == 0;
                if (is_sure && (scope.partition != PLAN_ELASTIC || ranks == 1))
                    assert_true(plan.traits.front_to_back);
                for (uint64_t epoch = 0; epoch < EPOCHS && plan.traits.front_to_back; epoch++) {
                    const bool is_so = fetches_front_to_back(&plan, epoch);
                    if (!is_so)
                        print_error("%s, partition %d, %u ranks\n", strategies[s].text, partition,
                                    ranks);
                    assert_true(is_so);
                }
                plan_close(&plan);
                plugin_release(&choice);
            }
    catalog_destroy(catalog);
}

/* Counts that divide evenly leave nothing to pad or to drop. */
static void counts_that_divide_have_no_remainder(void **unused)
{
    struct catalog *catalog = outline_create(480, 12, 1000, 300);

    for (size_t s = 0; s < COUNT; s++)
        for (int partition = 0; partition < 5; partition++)
            for (int remainder = 0; remainder < 3; remainder++) {
                struct plan_scope scope = {.catalog = catalog,
                                           .ranks = 4,
                                           .partition = (enum plan_partition)partition,
                                           .remainder = (enum plan_remainder)remainder,
                                           .batch_size = 10};
                if ((scope.partition == PLAN_ELASTIC && !(strategies[s].kind & ELASTIC)) ||
                    strncmp(strategies[s].text, "mxnet-chunk", 11) == 0)
                    continue;
                struct order order = one_rank(strategies[s].text, &scope, 0);
                assert_int_equal(order.count, scope.partition == PLAN_REPLICATED ? 480 : 120);
                free(order.records);
            }
    catalog_destroy(catalog);
}

/* In LMDB, records adjacent by key need not be adjacent in the file. */
static void offsets_need_not_rise(void **unused)
{
    static const char *const chunked[] = {"block:4096", "mxnet-chunk:4096",
                                          "ffcv:pages=3,page=4096", "corgipile:0.2,block=4096"};
    struct catalog *catalog = outline_create(RECORDS, 1, 1000, 300);
    struct extent *extents = (struct extent *)(uintptr_t)catalog->records;

    for (uint64_t i = 0; i < RECORDS; i++)
        extents[i].offset = random_mix(i) % (catalog->shards[0].bytes - 2000);
    assert_false(catalog_is_in_order(catalog));
    for (size_t s = 0; s < sizeof chunked / sizeof *chunked; s++)
        for (int partition = 0; partition < 2; partition++) {
            struct plan_scope scope = {.catalog = catalog,
                                       .ranks = 5,
                                       .partition = (enum plan_partition)partition,
                                       .batch_size = 8};
            struct order order = all_ranks(chunked[s], scope, 0);
            check_coverage(&scope, &order, false);
            free(order.records);
        }
    catalog_destroy(catalog);
}

static void refusals_say_why(void **unused)
{
    struct catalog *catalog = outline_create(RECORDS, 3, 1000, 300);
    static const struct {
        const char *strategy;
        struct plan_scope scope;
        const char *why;
    } cases[] = {
        {"tfdata", {.ranks = 2, .partition = PLAN_ELASTIC, .batch_size = 4}, "elastic"},
        {"none", {.ranks = 2, .partition = PLAN_ELASTIC}, "batch size"},
        {"epoch",
         {.ranks = 2, .partition = PLAN_ELASTIC, .batch_size = 400, .remainder = PLAN_DROP},
         "fewer than one batch"},
        {"webdataset", {.ranks = 4, .partition = PLAN_SHARDS, .batch_size = 4}, "rank 3 of 4"},
        {"none", {.ranks = RECORDS + 1, .batch_size = 4}, "no records"},
        {"none", {.ranks = 2, .rank = 2, .batch_size = 4}, "--rank 2"},
        {"py1s:nodes=500", {.ranks = 1, .partition = PLAN_ELASTIC, .batch_size = 4}, "nodes"},
        {"buffer:400", {.ranks = 1, .batch_size = 4, .memory_bytes = 1000}, "limit"},
        {"py1e:64", {.ranks = 1, .batch_size = 4, .memory_bytes = 1000}, "displaced"},
        {"block:4096", {.ranks = 1, .batch_size = 4, .memory_bytes = 16}, "chunks"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_scope scope = cases[i].scope;
        struct plugin_choice choice;
        struct plan plan;
        scope.catalog = catalog;
        assert_int_equal(plugin_choose("shuffle", shuffle_registry, cases[i].strategy, &choice), 0);
        fail_clear();
        assert_true(plan_open(&plan, &choice, &scope) < 0);
        if (!strstr(fail_reason(), cases[i].why))
            print_error("%s: %s\n", cases[i].strategy, fail_reason());
        assert_reason(cases[i].why);
        plan_close(&plan);
        plugin_release(&choice);
    }
    catalog_destroy(catalog);
}

static void presets_name_orders_that_exist(void **unused)
{
    for (const struct preset *preset = preset_table; preset->name; preset++) {
        bool found = false;
        for (int i = 0; preset->settings[i].option; i++) {
            struct plugin_choice choice;
            if (strcmp(preset->settings[i].option, "shuffle") != 0)
                continue;
            assert_int_equal(
                plugin_choose("shuffle", shuffle_registry, preset->settings[i].value, &choice), 0);
            plugin_release(&choice);
            found = true;
        }
        assert_true(found && preset_find(preset->name) == preset);
    }
    assert_null(preset_find("nobody"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_exactly_once),
        cmocka_unit_test(elastic_batches_do_not_depend_on_the_ranks),
        cmocka_unit_test(orders_follow_from_seed_epoch_and_rank),
        cmocka_unit_test(seeking_costs_what_is_held),
        cmocka_unit_test(orders_never_change),
        cmocka_unit_test(plans_say_whether_they_read_from_front_to_back),
        cmocka_unit_test(counts_that_divide_have_no_remainder),
        cmocka_unit_test(offsets_need_not_rise),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(presets_name_orders_that_exist),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
