/* SPDX-License-Identifier: Apache-2.0
 *
 * LMDB: trees with loops, wrong page numbers and counts, broken meta pages, truncated files.
 * Derived from the small databases in tests/golden.
 */
#include "tests/hostile/hostile.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,
    MAP_SIZE_AT = 16 + 16, /* in a meta page */
    PAGE_SIZE_AT = 16 + 24,
    MAIN_AT = 16 + 24 + 48, /* the record of the main tree */
    DEPTH_AT = MAIN_AT + 6,
    ENTRIES_AT = MAIN_AT + 32,
    ROOT_AT = MAIN_AT + 40,
    LAST_PAGE_AT = MAIN_AT + 48,
    BRANCH = 1,
    LEAF = 2,
    BIG = 1,
};

static void small(void)
{
    copy_source("tests/golden/lmdb/datum/data.mdb", "data.mdb");
}

static void deep(void)
{
    copy_source("tests/golden/lmdb/deep/data.mdb", "data.mdb");
}

static void both_metas(int offset, uint64_t value, size_t bytes)
{
    uint8_t raw[8];

    bytes_put_le64(raw, value);
    patch_file("data.mdb", offset, raw, bytes);
    patch_file("data.mdb", PAGE + offset, raw, bytes);
}

static void lmdb_empty(void)
{
    put_text("data.mdb", "");
}

static void lmdb_one_page(void)
{
    small();
    cut_file("data.mdb", PAGE);
}

static void lmdb_cut(void)
{
    deep();
    cut_file("data.mdb", 5 * PAGE + 100);
}

static void lmdb_metas(void)
{
    small();
    both_metas(16, 0, 4);
}

static void lmdb_root_far(void)
{
    small();
    both_metas(ROOT_AT, UINT64_C(1) << 63, 8);
}

static void lmdb_root_meta(void)
{
    small();
    both_metas(ROOT_AT, 1, 8);
}

static void lmdb_root_none(void)
{
    small();
    both_metas(ROOT_AT, UINT64_MAX, 8);
}

static void lmdb_last_page(void)
{
    small();
    both_metas(LAST_PAGE_AT, UINT64_MAX - 1, 8);
}

static void lmdb_page_size(void)
{
    small();
    both_metas(PAGE_SIZE_AT, 1 << 30, 4);
}

static void lmdb_page_size_zero(void)
{
    small();
    both_metas(PAGE_SIZE_AT, 0, 4);
}

static void lmdb_map_size(void)
{
    small();
    both_metas(MAP_SIZE_AT, UINT64_MAX, 8);
}

static void lmdb_entries(void)
{
    small();
    both_metas(ENTRIES_AT, UINT64_C(1) << 63, 8);
}

static void lmdb_depth(void)
{
    deep();
    both_metas(DEPTH_AT, 65535, 2);
}

/* ---- pages ---- */

/* Call patch on each page of a kind; page is its first byte in the file. */
static void each_page(unsigned flag, void (*patch)(uint8_t *page, const uint8_t *whole))
{
    struct blob blob = {0};

    load_file("data.mdb", &blob);
    for (size_t at = 2 * PAGE; at + PAGE <= blob.count; at += PAGE)
        if (bytes_le16(blob.bytes + at + 10) == flag)
            patch(blob.bytes + at, blob.bytes);
    blob_save(&blob, "data.mdb");
}

static unsigned node_count(const uint8_t *page)
{
    return ((unsigned)bytes_le16(page + 12) - 16) / 2;
}

static uint8_t *node(uint8_t *page, unsigned index)
{
    return page + bytes_le16(page + 16 + 2 * index) % (PAGE - 16);
}

static void loop_children(uint8_t *page, const uint8_t *whole)
{
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le32(node(page, i), (uint32_t)((page - whole) / PAGE));
}

static void lmdb_loop(void)
{
    deep();
    each_page(BRANCH, loop_children);
}

static void same_child(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    for (unsigned i = 1; i < node_count(page); i++)
        memcpy(node(page, i), node(page, 0), 4);
}

static void lmdb_same_child(void)
{
    deep();
    each_page(BRANCH, same_child);
}

static void other_number(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    bytes_put_le64(page, 77777);
}

static void lmdb_page_number(void)
{
    small();
    each_page(LEAF, other_number);
}

static void empty_values(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le32(node(page, i), 0);
}

static void lmdb_empty_values(void)
{
    small();
    each_page(LEAF, empty_values);
}

static void huge_values(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le32(node(page, i), UINT32_MAX);
}

static void lmdb_huge_values(void)
{
    small();
    each_page(LEAF, huge_values);
}

static void far_overflow(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    for (unsigned i = 0; i < node_count(page); i++) {
        uint8_t *at = node(page, i);
        const unsigned key = bytes_le16(at + 6) % 256;
        bytes_put_le16(at + 4, BIG);
        if (at - page + 8 + key + 8 <= PAGE)
            bytes_put_le64(at + 8 + key, UINT64_MAX / PAGE - i);
    }
}

static void lmdb_overflow_far(void)
{
    small();
    each_page(LEAF, far_overflow);
}

static void overflow_count(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    bytes_put_le32(page + 12, UINT32_MAX);
}

static void lmdb_overflow_count(void)
{
    deep();
    each_page(4, overflow_count);
}

static void wild_nodes(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le16(page + 16 + 2 * i, (uint16_t)(65535 - i));
}

static void lmdb_wild_nodes(void)
{
    small();
    each_page(LEAF, wild_nodes);
}

static void many_nodes(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    bytes_put_le16(page + 12, 65534);
}

static void lmdb_many_nodes(void)
{
    small();
    each_page(LEAF, many_nodes);
}

static void long_keys(uint8_t *page, const uint8_t *whole)
{
    (void)whole;
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le16(node(page, i) + 6, 65535);
}

static void lmdb_long_keys(void)
{
    small();
    each_page(LEAF, long_keys);
}

static void lmdb_zeros(void)
{
    put_sparse("data.mdb", 64 * PAGE);
}

static void lmdb_fifo(void)
{
    put_fifo("data.mdb");
}

static void lmdb_lock(void)
{
    small();
    put_fifo("lock.mdb");
}

static void lmdb_lock_link(void)
{
    small();
    put_link("../sentinel/thesis", "lock.mdb");
}

const struct hostile_set hostile_lmdb[] = {
    SET("lmdb-empty", "0 bytes", lmdb_empty, REFUSED),
    SET("lmdb-one-page", "cut after its first page", lmdb_one_page, REFUSED),
    SET("lmdb-cut", "cut in the middle", lmdb_cut, REFUSED),
    SET("lmdb-metas", "both meta pages broken", lmdb_metas, REFUSED),
    SET("lmdb-root-far", "root page 2^63", lmdb_root_far, REFUSED),
    SET("lmdb-root-meta", "the root is a meta page", lmdb_root_meta, REFUSED),
    SET("lmdb-root-none", "no root, but entries", lmdb_root_none, REFUSED),
    SET("lmdb-last-page", "last page 2^64 - 2", lmdb_last_page, EITHER),
    SET("lmdb-page-size", "pages of 1 GiB", lmdb_page_size, REFUSED),
    SET("lmdb-page-size-zero", "pages of 0 bytes", lmdb_page_size_zero, REFUSED),
    SET("lmdb-map-size", "a map of 2^64 - 1 bytes", lmdb_map_size, EITHER),
    SET("lmdb-entries", "2^63 entries", lmdb_entries, REFUSED),
    SET("lmdb-depth", "a depth of 65,535", lmdb_depth, REFUSED),
    SET("lmdb-loop", "branches that point at themselves", lmdb_loop, REFUSED),
    SET("lmdb-same-child", "branches that point at one page", lmdb_same_child, REFUSED),
    SET("lmdb-page-number", "pages with the number of another", lmdb_page_number, REFUSED),
    SET("lmdb-empty-values", "values of 0 bytes in a page that has room for more",
        lmdb_empty_values, REFUSED),
    SET("lmdb-huge-values", "values of 2^32 - 1 bytes", lmdb_huge_values, REFUSED),
    SET("lmdb-overflow-far", "overflow pages past the end", lmdb_overflow_far, REFUSED),
    SET("lmdb-overflow-count", "2^32 - 1 overflow pages", lmdb_overflow_count, EITHER),
    SET("lmdb-wild-nodes", "nodes outside their page", lmdb_wild_nodes, REFUSED),
    SET("lmdb-many-nodes", "more nodes than a page holds", lmdb_many_nodes, REFUSED),
    SET("lmdb-long-keys", "keys longer than their page", lmdb_long_keys, REFUSED),
    SET("lmdb-zeros", "nothing but zeros", lmdb_zeros, REFUSED),
    SET("lmdb-fifo", "data.mdb is a FIFO", lmdb_fifo, REFUSED),
    SET("lmdb-lock-fifo", "lock.mdb is a FIFO", lmdb_lock, EITHER),
    SET("lmdb-lock-link", "lock.mdb is a link to a file of the user", lmdb_lock_link, EITHER),
    {0},
};
