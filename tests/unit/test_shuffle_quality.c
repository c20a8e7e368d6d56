/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "shuffle/quality.h"

#include <math.h>
#include <stdlib.h>

static struct quality_terms usual(const struct catalog *catalog, uint32_t ranks,
                                  enum plan_partition partition)
{
    return (struct quality_terms){
        .scope = {.catalog = catalog,
                  .seed = 1,
                  .ranks = ranks,
                  .partition = partition,
                  .batch_size = 256},
        .epochs = 2,
        .classes = 1000,
        .reads = {.window = 512,
                  .window_bytes = UINT64_MAX,
                  .read_bytes = 1 << 20,
                  .alignment = 4096},
    };
}

static struct quality measure(struct quality_terms terms, const char *shuffle)
{
    struct plugin_choice choice;
    struct quality quality;

    assert_int_equal(plugin_choose("shuffle", shuffle_registry, shuffle, &choice), 0);
    terms.shuffle = &choice;
    int code = quality_measure(&terms, &quality);
    if (code)
        print_error("%s: %s\n", shuffle, fail_reason());
    assert_int_equal(code, 0);
    plugin_release(&choice);
    return quality;
}

static bool near(double value, double want, double tolerance)
{
    if (fabs(value - want) <= tolerance)
        return true;
    print_error("%g is not %g +- %g\n", value, want, tolerance);
    return false;
}

/* 12 records of 4096 bytes in 3 shards, 4 classes: expected values computed by hand. */
static void measures_are_those_of_a_known_order(void **unused)
{
    struct catalog *catalog = outline_create(12, 3, 4096, 0);
    struct quality_terms terms = usual(catalog, 1, PLAN_DISJOINT);

    terms.classes = 4; /* 000111222333 in shards 000011112222 */
    terms.scope.batch_size = 4;
    struct quality q = measure(terms, "none");
    assert_true(near(q.labels_per_batch, 2, 0)); /* 0001 1122 2333 */
    assert_true(near(q.shards_per_batch, 1, 0));
    assert_true(near(q.labels_at_random, 4 * (1 - pow(0.75, 4)), 1e-12));
    assert_true(near(q.shards_at_random, 3 * (1 - pow(2.0 / 3, 4)), 1e-12));
    assert_true(near(q.same_label, 8.0 / 11, 1e-12));
    assert_true(near(q.same_label_at_random, 0.25, 1e-12));
    assert_true(near(q.retention, 1, 0));
    assert_true(near(q.amplification, 1, 0));
    assert_true(near(q.bytes_per_read, 4 * 4096, 0)); /* one shard each */
    assert_true(near(q.distance_bytes, 0, 0));
    assert_true(near(q.reads, 3, 0) && near(q.seeks, 3, 0)); /* per epoch, not of both */
    terms.reads.read_bytes = 2 * 4096;
    q = measure(terms, "none");
    assert_true(near(q.reads, 6, 0) && near(q.seeks, 3, 0)); /* every other read is adjacent */
    assert_true(q.missing == 0 && q.repeated == 0 && q.draws == 12);
    assert_true(q.buffer_bytes == 4096 && q.slots == 1);

    const int32_t labels[12] = {0, 1, 0, 1, 0, 1, 0, 1, 2, 2, 2, 2};
    terms.labels = labels;
    terms.classes = 3;
    q = measure(terms, "none");
    assert_true(near(q.labels_per_batch, 5.0 / 3, 1e-12));
    assert_true(near(q.same_label_at_random, 1.0 / 3, 1e-12));
    terms.classes = 2;
    struct plugin_choice choice;
    assert_int_equal(plugin_choose("shuffle", shuffle_registry, "none", &choice), 0);
    terms.shuffle = &choice;
    assert_true(quality_measure(&terms, &q) < 0); /* label 2 of 2 classes */
    plugin_release(&choice);
    catalog_destroy(catalog);
}

/* ---- an order that was written down: two ranks, two epochs, 6 records of 1,000 bytes ---- */

struct script {
    const char *draws; /* the next record that is drawn */
    uint32_t rank;
    bool ahead; /* all are fetched before the first is drawn */
};

static int script_open(const struct shuffle_ops *ops, void *state, const void *settings,
                       const struct plan_scope *scope, struct plan_traits *traits)
{
    ((struct script *)state)->rank = scope->rank;
    traits->slots = 2;
    traits->state_bytes = 77;
    return 0;
}

static void script_close(void *state) {}

static int script_begin(void *state, uint64_t epoch)
{
    static const char *const draws[2][2] = {{"051", "034"}, {"24", "45"}};
    struct script *script = state;

    script->draws = draws[script->rank][epoch];
    script->ahead = script->rank == 1 && epoch == 1;
    return 0;
}

static int script_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct script *script = state;
    int count = 0;

    if (script->ahead && *script->draws) {
        for (uint32_t i = 0; i < 4; i++)
            ops[count++] = (struct plan_op){(uint64_t)(script->draws[i % 2] - '0'), i % 2,
                                            i < 2 ? PLAN_FETCH : PLAN_DRAW};
        script->draws += 2;
    }
    for (; *script->draws; script->draws++) {
        ops[count++] = (struct plan_op){(uint64_t)(*script->draws - '0'), 0, PLAN_FETCH};
        ops[count++] = (struct plan_op){.kind = PLAN_DRAW};
    }
    return count;
}

/* Rank 0 draws 0 5 1 and then 0 3 4, rank 1 2 4 and then 4 5; labels 001122, shards 000111. */
static void measures_are_those_of_a_written_order(void **unused)
{
    static const struct shuffle_ops ops = {
        .plugin = {.name = "script", .state_size = sizeof(struct script)},
        .open = script_open,
        .close = script_close,
        .begin = script_begin,
        .next = script_next};
    const struct plugin_choice choice = {.plugin = &ops.plugin};
    struct catalog *catalog = outline_create(6, 2, 1000, 0);
    struct quality_terms terms = usual(catalog, 2, PLAN_DISJOINT);
    struct quality q;

    terms.shuffle = &choice;
    terms.scope.batch_size = 2;
    terms.classes = 3;
    terms.reads.window = 2;
    terms.reads.alignment = 1;
    assert_int_equal(quality_measure(&terms, &q), 0);
    assert_equal(q.labels_per_batch,
                 7 / 4.0); /* of 05 03 24 45: 02 01 12 22; 1 and 4 are no batch */
    assert_equal(q.shards_per_batch, 7 / 4.0); /* 01 01 01 11 */
    assert_equal(q.labels_at_random, 5 / 3.0); /* 3 (1 - (2/3)^2) */
    assert_equal(q.shards_at_random, 1.5);     /* 2 (1 - (1/2)^2) */
    assert_equal(q.same_label, 1 / 6.0);       /* 05 51 03 34 24 45 */
    assert_equal(q.same_label_at_random, 1 / 3.0);
    assert_equal(q.retention, 2 / 5.0); /* 0, and rank 1's 4, of 0 3 4 and 4 5 */
    assert_int_equal(q.missing, 2);     /* 1 and 2 in the second epoch; in the first only 3 */
    assert_int_equal(q.repeated, 1);    /* 4 there */
    assert_int_equal(q.draws, 5);
    assert_int_equal(q.draws_least, 2);
    assert_int_equal(q.draws_most, 3);
    /* Two at a time: 0|5 1, 0|3 4, 2|4, 45: nine reads of ten records in two epochs. */
    assert_equal(q.reads, 4.5);
    assert_equal(q.bytes_per_read, 10000 / 9.0);
    assert_equal(q.seeks, 4); /* all but the 4 that follows 3: three, two, two and one */
    assert_equal(q.amplification, 9 * 4096 / 10000.0); /* a page each */
    /* 1,000 to 5,000, 6,000 to 1,000; 1,000 to 3,000, 4,000 to 4,000; 3,000 to 4,000. */
    assert_equal(q.distance_bytes, (4000 + 5000 + 2000 + 0 + 1000) / 5.0);
    assert_int_equal(q.buffer_bytes, 2000);
    assert_int_equal(q.slots, 2);
    assert_int_equal(q.state_bytes, 77);
    catalog_destroy(catalog);
}

static void reads_are_counted_as_the_loader_makes_them(void **unused)
{
    struct catalog *catalog = outline_create(1000, 10, 1000, 0);
    struct quality_terms terms = usual(catalog, 1, PLAN_DISJOINT);

    terms.reads.window = 1; /* one read per record, in pages of 4 KiB */
    struct quality q = measure(terms, "epoch");
    assert_true(near(q.bytes_per_read, 4096 * 1.2, 4096 * 0.1));
    assert_true(near(q.amplification, 4.9, 0.4));
    assert_true(q.distance_bytes > 250000 && q.distance_bytes < 400000); /* a third of the set */
    assert_true(q.buffer_bytes == 1000);
    terms.reads.window = 100;
    terms.reads.alignment = 1;
    q = measure(terms, "none");
    assert_true(near(q.bytes_per_read, 100000, 0));
    terms.reads.read_bytes = 10000;
    q = measure(terms, "none");
    assert_true(near(q.bytes_per_read, 10000, 0));
    q = measure(terms, "buffer:100");
    assert_true(q.buffer_bytes == 100 * 1000 && q.slots == 100);
    catalog_destroy(catalog);
}

static void windows_have_the_stated_limits(void **unused)
{
    struct catalog *catalog = outline_create(100000, 1, 999, 0); /* 1,000 with the rounding */
    const uint64_t read = 100000;

    assert_int_equal(coalesce_rules(catalog, 0, read, UINT64_MAX).window, 24 * 100);
    assert_int_equal(coalesce_rules(catalog, 0, 10 * read, UINT64_MAX).window, 16384);
    assert_int_equal(coalesce_rules(catalog, 20000, read, UINT64_MAX).window, 20000);
    assert_int_equal(coalesce_rules(catalog, 0, read, 4 * read).window_bytes, read);
    const uint64_t needed = coalesce_memory_bytes(catalog, 0, read);
    assert_int_equal(coalesce_rules(catalog, 0, read, needed).window, 24 * 100);
    assert_true(coalesce_rules(catalog, 0, read, needed * 9 / 10).window < 24 * 100);
    catalog_destroy(catalog);
}

static void partitions_show_in_retention_and_coverage(void **unused)
{
    struct catalog *catalog = outline_create(20001, 41, 1000, 0);
    struct quality q = measure(usual(catalog, 4, PLAN_STICKY), "epoch");

    assert_true(near(q.retention, 1, 0) && q.missing == 0 && q.repeated == 0);
    assert_true(q.draws_least == 5000 && q.draws_most == 5001);
    q = measure(usual(catalog, 4, PLAN_DISJOINT), "epoch");
    assert_true(near(q.retention, 0.25, 0.01) && q.missing == 0 && q.repeated == 0);
    q = measure(usual(catalog, 4, PLAN_DISJOINT), "dali");
    assert_true(near(q.retention, 0, 0.001)); /* ranges rotate */
    q = measure(usual(catalog, 4, PLAN_SHARDS), "webdataset");
    assert_true(near(q.retention, 1, 0) && q.missing == 0 && q.draws_least < q.draws_most);
    q = measure(usual(catalog, 4, PLAN_REPLICATED), "tfdata");
    assert_true(q.repeated == 3 * 20001 && q.draws == 4 * 20001 && q.missing == 0);
    struct quality_terms terms = usual(catalog, 4, PLAN_SHARDS);
    terms.scope.remainder = PLAN_DROP;
    q = measure(terms, "webdataset");
    assert_true(q.missing > 0 && q.repeated == 0 && q.draws_least == q.draws_most);
    terms.scope.remainder = PLAN_PAD;
    q = measure(terms, "webdataset");
    assert_true(q.missing == 0 && q.repeated > 0 && q.draws_least == q.draws_most);
    catalog_destroy(catalog);
}

/* The fast half of bench/shuffle-quality: figures from simulating the original programs. */
static void orders_are_as_random_as_the_originals(void **unused)
{
    struct catalog *catalog = outline_create(1281167, 1282, 110000, 0);
    struct quality_terms terms = usual(catalog, 1, PLAN_DISJOINT);

    terms.epochs = 1;
    struct quality q = measure(terms, "dali:1024");
    assert_true(near(q.labels_per_batch, 5.7, 0.1) && near(q.same_label, 0.430, 0.01));
    q = measure(terms, "webdataset:1000");
    assert_true(near(q.labels_per_batch, 10, 0.2) && near(q.same_label, 0.288, 0.01));
    q = measure(terms, "corgipile:0.01,block=10MB");
    assert_true(near(q.labels_per_batch, 115.8, 2.3) && near(q.same_label, 0.0077, 0.0005));
    q = measure(terms, "epoch");
    assert_true(near(q.labels_per_batch, 226, 0.5) && near(q.same_label, 0.001, 0.0002));
    catalog_destroy(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_are_those_of_a_known_order),
        cmocka_unit_test(measures_are_those_of_a_written_order),
        cmocka_unit_test(reads_are_counted_as_the_loader_makes_them),
        cmocka_unit_test(windows_have_the_stated_limits),
        cmocka_unit_test(partitions_show_in_retention_and_coverage),
        cmocka_unit_test(orders_are_as_random_as_the_originals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
