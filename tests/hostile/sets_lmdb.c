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
    OVERFLOW = 4,
    BIG = 1,
};

#define MOST "\xff\xff\xff\xff\xff\xff\xff\xff"
#define METAS(OFFSET, STRING) CALL_WITH(both_metas, OFFSET), BYTES(STRING)
#define PAGES(KIND, FUNCTION) CALL_WITH(each_page, KIND), .change = (FUNCTION)

static void small(void)
{
    copy_source("tests/golden/lmdb/datum/data.mdb", "data.mdb");
}

static void deep(void)
{
    copy_source("tests/golden/lmdb/deep/data.mdb", "data.mdb");
}

static void both_metas(const struct hostile_act *act)
{
    patch_file("data.mdb", (int64_t)act->number, act->bytes, act->count);
    patch_file("data.mdb", PAGE + (int64_t)act->number, act->bytes, act->count);
}

/* ---- pages ---- */

/* Change each page of a kind. */
static void each_page(const struct hostile_act *act)
{
    struct blob blob = {0};

    load_file("data.mdb", &blob);
    for (size_t at = 2 * PAGE; at + PAGE <= blob.count; at += PAGE)
        if (bytes_le16(blob.bytes + at + 10) == act->number)
            act->change(blob.bytes + at);
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

static void loop_children(uint8_t *page)
{
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le32(node(page, i), (uint32_t)bytes_le64(page)); /* its own number */
}

static void same_child(uint8_t *page)
{
    for (unsigned i = 1; i < node_count(page); i++)
        memcpy(node(page, i), node(page, 0), 4);
}

static void other_number(uint8_t *page)
{
    bytes_put_le64(page, 77777);
}

static void empty_values(uint8_t *page)
{
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le32(node(page, i), 0);
}

static void huge_values(uint8_t *page)
{
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le32(node(page, i), UINT32_MAX);
}

static void far_overflow(uint8_t *page)
{
    for (unsigned i = 0; i < node_count(page); i++) {
        uint8_t *at = node(page, i);
        const unsigned key = bytes_le16(at + 6) % 256;
        bytes_put_le16(at + 4, BIG);
        if (at - page + 8 + key + 8 <= PAGE)
            bytes_put_le64(at + 8 + key, UINT64_MAX / PAGE - i);
    }
}

static void overflow_count(uint8_t *page)
{
    bytes_put_le32(page + 12, UINT32_MAX);
}

static void wild_nodes(uint8_t *page)
{
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le16(page + 16 + 2 * i, (uint16_t)(65535 - i));
}

static void many_nodes(uint8_t *page)
{
    bytes_put_le16(page + 12, 65534);
}

static void long_keys(uint8_t *page)
{
    for (unsigned i = 0; i < node_count(page); i++)
        bytes_put_le16(node(page, i) + 6, 65535);
}

const struct hostile_set hostile_lmdb[] = {
    SET("lmdb-empty", "0 bytes", NULL, REFUSED, .acts = {{TEXT("data.mdb", "")}}),
    SET("lmdb-one-page", "cut after its first page", small, REFUSED,
        .acts = {{CUT("data.mdb", PAGE)}}),
    SET("lmdb-cut", "cut in the middle", deep, REFUSED,
        .acts = {{CUT("data.mdb", 5 * PAGE + 100)}}),
    SET("lmdb-metas", "both meta pages broken", small, REFUSED, .acts = {{METAS(16, "\0\0\0\0")}}),
    SET("lmdb-root-far", "root page 2^63", small, REFUSED,
        .acts = {{METAS(ROOT_AT, "\0\0\0\0\0\0\0\x80")}}),
    SET("lmdb-root-meta", "the root is a meta page", small, REFUSED,
        .acts = {{METAS(ROOT_AT, "\1\0\0\0\0\0\0\0")}}),
    SET("lmdb-root-none", "no root, but entries", small, REFUSED, .acts = {{METAS(ROOT_AT, MOST)}}),
    SET("lmdb-last-page", "last page 2^64 - 2", small, EITHER,
        .acts = {{METAS(LAST_PAGE_AT, "\xfe\xff\xff\xff\xff\xff\xff\xff")}}),
    SET("lmdb-page-size", "pages of 1 GiB", small, REFUSED,
        .acts = {{METAS(PAGE_SIZE_AT, "\0\0\0\x40")}}),
    SET("lmdb-page-size-zero", "pages of 0 bytes", small, REFUSED,
        .acts = {{METAS(PAGE_SIZE_AT, "\0\0\0\0")}}),
    SET("lmdb-map-size", "a map of 2^64 - 1 bytes", small, EITHER,
        .acts = {{METAS(MAP_SIZE_AT, MOST)}}),
    SET("lmdb-entries", "2^63 entries", small, REFUSED,
        .acts = {{METAS(ENTRIES_AT, "\0\0\0\0\0\0\0\x80")}}),
    SET("lmdb-depth", "a depth of 65,535", deep, REFUSED, .acts = {{METAS(DEPTH_AT, "\xff\xff")}}),
    SET("lmdb-loop", "branches that point at themselves", deep, REFUSED,
        .acts = {{PAGES(BRANCH, loop_children)}}),
    SET("lmdb-same-child", "branches that point at one page", deep, REFUSED,
        .acts = {{PAGES(BRANCH, same_child)}}),
    SET("lmdb-page-number", "pages with the number of another", small, REFUSED,
        .acts = {{PAGES(LEAF, other_number)}}),
    SET("lmdb-empty-values", "values of 0 bytes in a page that has room for more", small, REFUSED,
        .acts = {{PAGES(LEAF, empty_values)}}),
    SET("lmdb-huge-values", "values of 2^32 - 1 bytes", small, REFUSED,
        .acts = {{PAGES(LEAF, huge_values)}}),
    SET("lmdb-overflow-far", "overflow pages past the end", small, REFUSED,
        .acts = {{PAGES(LEAF, far_overflow)}}),
    SET("lmdb-overflow-count", "2^32 - 1 overflow pages", deep, EITHER,
        .acts = {{PAGES(OVERFLOW, overflow_count)}}),
    SET("lmdb-wild-nodes", "nodes outside their page", small, REFUSED,
        .acts = {{PAGES(LEAF, wild_nodes)}}),
    SET("lmdb-many-nodes", "more nodes than a page holds", small, REFUSED,
        .acts = {{PAGES(LEAF, many_nodes)}}),
    SET("lmdb-long-keys", "keys longer than their page", small, REFUSED,
        .acts = {{PAGES(LEAF, long_keys)}}),
    SET("lmdb-zeros", "nothing but zeros", NULL, REFUSED,
        .acts = {{SPARSE("data.mdb", 64 * PAGE)}}),
    SET("lmdb-fifo", "data.mdb is a FIFO", NULL, REFUSED, .acts = {{FIFO("data.mdb")}}),
    SET("lmdb-lock-fifo", "lock.mdb is a FIFO", small, EITHER, .acts = {{FIFO("lock.mdb")}}),
    SET("lmdb-lock-link", "lock.mdb is a link to a file of the user", small, EITHER,
        .acts = {{LINK("../sentinel/thesis", "lock.mdb")}}),
    {0},
};
