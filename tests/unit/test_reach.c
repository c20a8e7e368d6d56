/* SPDX-License-Identifier: Apache-2.0
 * Which parts of its files a rank reads, by hand: pages of 4 KiB. */
#include "tests/unit/unit.h"

#include "pipeline/evidence/witness.h"

#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* File "a": two records side by side, and one far behind. "b" is compressed as a whole. "c":
 * records that are not numbered as they are stored, two of them in one page. */
static char a[] = "a", b[] = "b", c[] = "c";
static struct shard shards[] = {
    {.path = a, .bytes = 100000, .stream_bytes = 100000, .record_count = 3},
    {.path = b,
     .bytes = 7000,
     .stream_bytes = 90000,
     .first_record = 3,
     .record_count = 2,
     .flags = SHARD_GZIP},
    {.path = c, .bytes = 30000, .stream_bytes = 30000, .first_record = 5, .record_count = 3}};
static const struct extent extents[] = {{0, 5000, 0},  {5000, 5000, 0},   {90000, 100, 0},
                                        {0, 45000, 1}, {45000, 45000, 1}, {20000, 6000, 2},
                                        {100, 200, 2}, {400, 100, 2}};
static const struct catalog catalog = {.shard_count = 3,
                                       .shards = shards,
                                       .record_count = 8,
                                       .records = extents,
                                       .record_bytes_max = 45000};

static void reach_of(struct reach *reach, uint32_t ranks, uint64_t first, uint64_t draws)
{
    const struct plan_scope scope = {.catalog = &catalog, .ranks = ranks, .batch_size = 1};
    const struct resume_point from = {.sample = first};
    struct plugin_choice shuffle = {0};
    struct plan plan;

    assert_int_equal(shuffle_choose("none", false, &shuffle), 0);
    assert_int_equal(plan_open(&plan, &shuffle, &scope), 0);
    assert_int_equal(reach_make(reach, &plan, &from, draws, 1000), 0);
    plan_close(&plan);
    plugin_release(&shuffle);
}

static void has(const struct reach *reach, size_t file, const char *path, size_t count,
                const struct range *parts)
{
    const struct ranges *ranges = &reach->ranges;

    assert_true(file < ranges->count);
    assert_string_equal(ranges->paths[file], path);
    assert_int_equal(ranges->first[file + 1] - ranges->first[file], count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ranges->list[ranges->first[file] + i].offset, parts[i].offset);
        assert_int_equal(ranges->list[ranges->first[file] + i].bytes, parts[i].bytes);
    }
}

static void all_of_it(void **unused)
{
    struct reach reach;

    reach_of(&reach, 1, 0, 0);
    assert_int_equal(reach.ranges.count, 3);
    has(&reach, 0, "a", 2, (const struct range[]){{0, 3 * PAGE}, {21 * PAGE, PAGE}});
    has(&reach, 1, "b", 1, (const struct range[]){{0, 7000}});
    has(&reach, 2, "c", 2, (const struct range[]){{0, PAGE}, {4 * PAGE, 3 * PAGE}});
    /* With 1,000 bytes on both sides of each part, at most the file. */
    assert_int_equal(reach.explained_bytes, 12288 + 4096 + 4000 + 7000 + 4096 + 12288 + 4000);
    reach_clear(&reach);
}

/* Where the run begins, how far it goes, and which rank it is. */
static void a_part_of_it(void **unused)
{
    struct reach reach;

    reach_of(&reach, 1, 0, 1);
    assert_int_equal(reach.ranges.count, 1);
    has(&reach, 0, "a", 1, (const struct range[]){{0, 2 * PAGE}});
    reach_clear(&reach);
    reach_of(&reach, 1, 2, 2);
    assert_int_equal(reach.ranges.count, 2);
    has(&reach, 0, "a", 1, (const struct range[]){{21 * PAGE, PAGE}});
    has(&reach, 1, "b", 1, (const struct range[]){{0, 7000}});
    reach_clear(&reach);
    reach_of(&reach, 4, 0, 0);
    has(&reach, 0, "a", 1, (const struct range[]){{0, 3 * PAGE}});
    assert_int_equal(reach.ranges.count, 1);
    reach_clear(&reach);
}

/* The last page of a file ends with it. */
static void the_end_of_a_file(void **unused)
{
    struct reach reach;

    shards[2].bytes = shards[2].stream_bytes = 27000;
    reach_of(&reach, 1, 5, 1);
    has(&reach, 0, "c", 1, (const struct range[]){{4 * PAGE, 27000 - 4 * PAGE}});
    assert_int_equal(reach.explained_bytes, 2000 + 27000 - 4 * PAGE);
    reach_clear(&reach);
    shards[2].bytes = shards[2].stream_bytes = 30000;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it),
        cmocka_unit_test(a_part_of_it),
        cmocka_unit_test(the_end_of_a_file),
    };

    if (sysconf(_SC_PAGESIZE) != PAGE)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
