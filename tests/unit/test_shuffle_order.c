/* SPDX-License-Identifier: Apache-2.0
 * What every shuffle strategy promises: each record exactly once over all ranks, slots that are
 * never drawn empty nor fetched into while held, the exact number of draws, the same order for
 * the same seed and another one for another epoch or seed. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "shuffle/plan.h"
#include "tests/unit/made_catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each strategy, with sizes that fit 499 records of 100 bytes in 13 shards. */
static const struct {
    const char *text;
    bool elastic;
} strategies[] = {
    {"none", true},
    {"epoch", true},
    {"buffer:1", false},
    {"buffer:16", false},
    {"buffer:5000", false},
    {"block:4096", true},
    {"block:8192,inside=no", true},
    {"mxnet", true},
    {"mxnet-chunk:4096", true},
    {"mxnet-chunk:8192,permute=yes", true},
    {"tfdata:16,interleave=3", false},
    {"tfdata:50,interleave=20,length=4,files=no", false},
    {"dali:16", false},
    {"webdataset:40,initial=10", false},
    {"ffcv:pages=4,page=4096", false},
    {"ffcv", false},
    {"corgipile:0.3,block=4096", true},
    {"corgipile:1", true},
    {"py1s", true},
    {"py1s:nodes=5", true},
    {"py2s", true},
    {"py2s:nodes=4", true},
    {"py1br:64", true},
    {"py1br:20,nodes=3", true},
    {"py1br", true},
    {"py1e:64", true},
    {"py1e:90,nodes=4", true},
    {"py1e", true},
    {"naive", true},
};
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

/* Run an epoch with odd portions, checking slots; the drawn records are appended to order. */
static void run_epoch(struct plan *plan, uint64_t epoch, struct order *order)
{
    static const uint32_t portions[] = {1, 7, 64, 3};
    uint64_t *held = calloc(plan->traits.slots, sizeof *held); /* record + 1 */
    uint64_t draws = 0;
    struct plan_op ops[64];
    int count;

    assert_non_null(held);
    assert_int_equal(plan_begin(plan, epoch), 0);
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

static uint64_t fewest, largest; /* draws of a rank in the last all_ranks() */

/* One epoch of all ranks, one rank after the other. */
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

/* MXNet's cuts are its own: ceil(N / P) or bytes. */
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
    struct catalog *catalog = made_catalog(RECORDS, SHARDS, 100);

    (void)unused;
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++)
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
                        if (scope.partition == PLAN_ELASTIC && !strategies[s].elastic)
                            continue;
                        struct order order = all_ranks(strategies[s].text, scope, epoch);
                        check_coverage(&scope, &order,
                                       strncmp(strategies[s].text, "mxnet", 5) != 0);
                        free(order.records);
                    }
    made_catalog_free(catalog);
}

static void elastic_batches_do_not_depend_on_the_ranks(void **unused)
{
    struct catalog *catalog = made_catalog(RECORDS, SHARDS, 100);
    enum { GLOBAL = 24 };

    (void)unused;
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++)
        for (int remainder = 0; strategies[s].elastic && remainder < 3; remainder++) {
            uint64_t first[RECORDS / GLOBAL + 1][RECORDS]; /* times of a record in a batch */
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
    made_catalog_free(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_exactly_once),
        cmocka_unit_test(elastic_batches_do_not_depend_on_the_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
