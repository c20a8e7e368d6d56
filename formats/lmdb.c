/* SPDX-License-Identifier: Apache-2.0
 *
 * LMDB as Caffe, Caffe2 and LSUN use it: one database whose values are samples. A record is a
 * value, wherever it is in the file, so any reader can read it. Keys are not read again, so a
 * sample has no name.
 *
 * Indexing visits the values in key order by reading branch and leaf pages. It does not use
 * liblmdb, which trusts its file: here every page number, offset, length and depth is checked and
 * no page is visited twice, so a damaged file ends in a fault and never in a loop. Overflow pages,
 * which hold large values, are not read. Source: the structures of lmdb/libraries/liblmdb/mdb.c
 * (LMDB 0.9, data version 1), on a 64-bit little-endian machine.
 *
 * A page starts with u64 page number, u16 pad, u16 flags, u16 lower, u16 upper; then one u16 per
 * node, its offset from the start of the page. A node is u16 low, u16 high, u16 flags, u16 key
 * bytes, key, and in a leaf the value: low | high << 16 bytes of it, or with NODE_BIG the u64
 * number of the first overflow page, whose one header is followed by the whole value. In a branch
 * low | high << 16 | flags << 32 is the page number of the child.
 *
 * Invariants that make a damaged file harmless:
 * 1. A page is used once: branch, leaf and overflow pages are marked when visited, and visiting a
 *    marked page is a fault. So the walk ends, and no byte belongs to two values.
 * 2. All leaves are at the depth that the meta page gives, at most DEPTH_MAX. All pages above are
 *    branches.
 * 3. The nodes of a page exactly fill it from its upper bound to its end, as liblmdb keeps them, so
 *    a page cannot yield more records than it has room for.
 * 4. Keys ascend through the whole tree, and their number is the one in the meta page. */
#include "formats/caffe.h"
#include "formats/plugins.h"
#include "formats/scan.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "dataset/catalog.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const flavours[] = {"auto", "datum", "tensors", "image", "tensors-int64", NULL};

#define FIELD(field) offsetof(struct lmdb_format_settings, field)
static const struct option_spec lmdb_options[] = {
    {"keys", 0, OPTION_TEXT, FIELD(keys), .metavar = "PATTERN",
     .summary = "only values whose keys match this shell pattern, as image-*"},
    {"flavour", 0, OPTION_CHOICE, FIELD(flavour), "auto", .choices = flavours,
     .summary =
         "type of the values: Caffe's Datum, Caffe2's TensorProtos (with INT32 or INT64 labels), "
         "bare images; auto detects each, and writes Datum"},
    {0},
};

/* Return the data file of a database, which is a folder or a single file. free() it. */
static char *database_path(const char *root)
{
    if (store_is_folder(root))
        return file_join(root, "data.mdb");
    char *path = strdup(root);
    if (!path)
        fail(ENOMEM, "out of memory for a path");
    return path;
}

/* ---- the walk ---- */

enum {
    META_MAGIC_OFFSET = 16,
    META_BYTES = 152, /* page header and meta structure */
    PAGE_HEADER_BYTES = 16,
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 32768,
    NODE_BYTES = 8,
    DEPTH_MAX = 32,
    PROGRESS_PAGES = 4096,
};

#define LMDB_MAGIC 0xbeefc0deu

enum page_flags {
    PAGE_BRANCH = 0x01,
    PAGE_LEAF = 0x02,
    PAGE_OVERFLOW = 0x04,
    PAGE_META = 0x08,
    PAGE_LEAF2 = 0x20,
    PAGE_SUB = 0x40,
    PAGE_KIND = PAGE_BRANCH | PAGE_LEAF | PAGE_OVERFLOW | PAGE_META | PAGE_LEAF2 | PAGE_SUB,
};

enum node_flags { NODE_BIG = 0x01, NODE_DATABASE = 0x02, NODE_DUPLICATES = 0x04 };

enum database_flags {
    DATABASE_REVERSE_KEY = 0x02,
    DATABASE_DUPSORT = 0x04,
    DATABASE_INTEGER_KEY = 0x08
};

struct meta {
    uint32_t page_bytes;
    uint16_t flags, depth;
    uint64_t entries, root, last_page, transaction;
};

struct tree_level {
    uint8_t *page;
    uint64_t number;
    uint32_t node_count, next;
};

struct lmdb_walk {
    struct store_file *file;
    const struct format_scan *scan;
    struct catalog *catalog;
    const char *keys;  /* pattern of those wanted; NULL: all */
    uint64_t left_out; /* values before the first record, for the lmdb reader */
    struct meta meta;
    uint64_t page_count; /* pages that are in the file and that the meta page covers */
    uint8_t *used;       /* one bit per page */
    struct tree_level levels[DEPTH_MAX];
    uint8_t *pages; /* one per level */
    uint8_t last_key[PAGE_BYTES_MAX];
    size_t last_key_bytes;
    uint64_t entries, pages_read;
    bool incomplete; /* a fault was skipped: the count cannot match */
};

static int fault(struct lmdb_walk *walk, uint64_t offset, const char *what)
{
    walk->incomplete = true;
    return scan_fault(walk->scan, EBADMSG, walk->file->path, offset, what);
}

/* ---- meta pages ---- */

/* Return whether this start of a file looks like LMDB's first page. */
static bool lmdb_looks_like(const uint8_t *start, size_t bytes)
{
    return bytes >= META_BYTES && (bytes_le16(start + 10) & PAGE_META) &&
           bytes_le32(start + META_MAGIC_OFFSET) == LMDB_MAGIC;
}

static int read_meta(struct lmdb_walk *walk, uint64_t offset, struct meta *meta)
{
    uint8_t page[META_BYTES];
    ssize_t got = store_read_at(walk->file, page, sizeof page, offset);

    if (got < 0)
        return (int)got;
    if ((size_t)got < sizeof page)
        return fault(walk, walk->file->status.bytes, "the file ends within its meta page");
    if (!lmdb_looks_like(page, sizeof page))
        return fault(walk, offset, "not an LMDB meta page");
    const uint8_t *at = page + META_MAGIC_OFFSET;
    if (bytes_le32(at + 4) != 1)
        return fail(
            ENOTSUP,
            "%s: data version %u, expected 1 (LMDB 0.9): encrypted and checksummed files of later "
            "versions are not supported; copy it with the tools of LMDB 0.9",
            walk->file->path, bytes_le32(at + 4));
    const uint8_t *free_database = at + 24, *main_database = at + 72;
    *meta = (struct meta){
        .page_bytes = bytes_le32(free_database),
        .flags = bytes_le16(main_database + 4),
        .depth = bytes_le16(main_database + 6),
        .entries = bytes_le64(main_database + 32),
        .root = bytes_le64(main_database + 40),
        .last_page = bytes_le64(at + 120),
        .transaction = bytes_le64(at + 128),
    };
    if (meta->page_bytes < PAGE_BYTES_MIN || meta->page_bytes > PAGE_BYTES_MAX ||
        (meta->page_bytes & (meta->page_bytes - 1)))
        return fault(walk, offset, "wrong page size in its meta page");
    return 0;
}

/* Choose the current meta page. Returns 1 if a fault was skipped: then there is nothing to walk.
 *
 * liblmdb writes the two meta pages in turn, so the one of the larger transaction is current.
 * liblmdb refuses a file if either is not a meta page, and so does this code: the older one alone
 * may describe reused pages. */
static int choose_meta(struct lmdb_walk *walk)
{
    struct meta first = {0}, second = {0}, *meta = &walk->meta;
    int code = read_meta(walk, 0, &first);

    if (code == 0 && first.page_bytes)
        code = read_meta(walk, first.page_bytes, &second);
    if (code == 0 && second.page_bytes && second.page_bytes != first.page_bytes) {
        code = fault(walk, first.page_bytes, "its meta pages differ in page size");
        second.page_bytes = 0;
    }
    if (code || !second.page_bytes)
        return code ? code : 1;
    *meta = first.transaction < second.transaction ? second : first;
    if (meta->flags & DATABASE_DUPSORT)
        return fail(ENOTSUP,
                    "%s: a database with several values per key (DUPSORT) is not supported",
                    walk->file->path);
    const uint64_t file_pages = walk->file->status.bytes / meta->page_bytes;
    if (meta->last_page >= file_pages &&
        (code = fault(walk, walk->file->status.bytes,
                      "the file is shorter than its meta page says: truncated")))
        return code;
    walk->page_count = meta->last_page < file_pages ? meta->last_page + 1 : file_pages;
    if (meta->root == UINT64_MAX || (meta->depth > 0 && meta->depth <= DEPTH_MAX))
        return 0;
    code = fault(walk, 0, "wrong tree depth");
    return code ? code : 1;
}

/* ---- pages ---- */

/* Mark pages as used. Returns false if one was marked already or does not exist. */
static bool mark_pages(struct lmdb_walk *walk, uint64_t first, uint64_t count)
{
    if (first < 2 || first >= walk->page_count || count > walk->page_count - first)
        return false;
    for (uint64_t i = first; i < first + count;) {
        uint8_t *byte = &walk->used[i / 8];
        if (i % 8 == 0 && count - (i - first) >= 8) {
            if (*byte)
                return false;
            *byte = 0xff;
            i += 8;
            continue;
        }
        if (*byte & 1u << i % 8)
            return false;
        *byte |= (uint8_t)(1u << i % 8);
        i++;
    }
    return true;
}

static const uint8_t *node_at(const struct tree_level *level, uint32_t index)
{
    assert(index < level->node_count);
    return level->page + bytes_le16(level->page + PAGE_HEADER_BYTES + 2 * index);
}

/* Returns NULL if the page is valid, else what is wrong. Afterwards every node may be read. */
static const char *check_page(const struct lmdb_walk *walk, struct tree_level *level, bool leaf)
{
    const uint8_t *page = level->page;
    const size_t page_bytes = walk->meta.page_bytes;
    const size_t lower = bytes_le16(page + 12), upper = bytes_le16(page + 14);
    size_t total = 0;

    if (bytes_le64(page) != level->number)
        return "wrong page number";
    if ((bytes_le16(page + 10) & PAGE_KIND) != (leaf ? PAGE_LEAF : PAGE_BRANCH))
        return leaf ? "not a leaf page" : "not a branch page";
    if (lower < PAGE_HEADER_BYTES || lower > upper || upper > page_bytes || lower % 2)
        return "wrong bounds of a page";
    level->node_count = (uint32_t)(lower - PAGE_HEADER_BYTES) / 2;
    level->next = 0;
    if (level->node_count == 0)
        return "a page without nodes";
    for (uint32_t i = 0; i < level->node_count; i++) {
        size_t offset = bytes_le16(page + PAGE_HEADER_BYTES + 2 * i);
        if (offset < upper || offset > page_bytes - NODE_BYTES)
            return "a node is outside its page";
        const uint8_t *node = page + offset;
        size_t bytes = NODE_BYTES + (size_t)bytes_le16(node + 6);
        if (leaf && (bytes_le16(node + 4) & NODE_BIG))
            bytes += 8;
        else if (leaf)
            bytes += bytes_le16(node) | (size_t)bytes_le16(node + 2) << 16;
        if (bytes > page_bytes - offset)
            return "a node goes past the end of its page";
        total += bytes + bytes % 2;
    }
    return total != page_bytes - upper ? "the nodes of a page do not fill it" : NULL;
}

static uint64_t child_page(const uint8_t *node)
{
    return (uint64_t)bytes_le16(node) | (uint64_t)bytes_le16(node + 2) << 16 |
           (uint64_t)bytes_le16(node + 4) << 32;
}

/* Read page number into the level at depth (1 is the root). Returns 1 if it was read, 0 if a fault
 * in it was skipped. */
static int enter_page(struct lmdb_walk *walk, uint64_t number, uint32_t depth,
                      uint64_t parent_offset)
{
    struct tree_level *level = &walk->levels[depth - 1];
    const uint32_t page_bytes = walk->meta.page_bytes;
    const bool leaf = depth == walk->meta.depth;

    assert(depth >= 1 && depth <= walk->meta.depth);
    if (!mark_pages(walk, number, 1))
        return fault(walk, parent_offset,
                     "a child page is used twice or missing: a loop, or damage");
    const uint64_t offset = number * page_bytes;
    ssize_t got = store_read_at(walk->file, level->page, page_bytes, offset);
    if (got < 0)
        return (int)got;
    if ((size_t)got < page_bytes)
        return fault(walk, offset, "the file ends within a page");
    level->number = number;
    const char *wrong = check_page(walk, level, leaf);
    if (wrong)
        return fault(walk, offset, wrong);
    if (!leaf) {
        /* Request all pages below a branch at once: leaves are scattered between the large values,
         * and waiting for the device once per leaf would make indexing a large database slow. */
        uint64_t start = 0, end = 0;
        for (uint32_t i = 0; i < level->node_count; i++) {
            uint64_t child = child_page(node_at(level, i));
            if (child >= walk->page_count)
                continue;
            if (child != end && end > start)
                store_advise(walk->file, start * page_bytes, (end - start) * page_bytes);
            if (child != end)
                start = child;
            end = child + 1;
        }
        if (end > start)
            store_advise(walk->file, start * page_bytes, (end - start) * page_bytes);
    }
    if (++walk->pages_read % PROGRESS_PAGES == 0 && walk->scan->progress && walk->meta.entries) {
        double share = (double)walk->entries / (double)walk->meta.entries;
        walk->scan->progress(walk->scan->progress_context,
                             (uint64_t)(share * (double)walk->file->status.bytes),
                             walk->file->status.bytes);
    }
    return 1;
}

/* ---- values ---- */

static int visit_node(struct lmdb_walk *walk, const struct tree_level *level, const uint8_t *node)
{
    const uint32_t page_bytes = walk->meta.page_bytes;
    const uint64_t place = level->number * page_bytes + (uint64_t)(node - level->page);
    const uint16_t flags = bytes_le16(node + 4);
    const uint8_t *key = node + NODE_BYTES;
    const size_t key_bytes = bytes_le16(node + 6);
    const uint64_t bytes = bytes_le16(node) | (uint64_t)bytes_le16(node + 2) << 16;
    uint64_t offset = place + NODE_BYTES + key_bytes; /* of the value */
    char text[512];

    /* Compare keys as liblmdb does without flags; with flags their order is not checked. */
    bool rises = true;
    if (walk->entries > 0 && !(walk->meta.flags & (DATABASE_REVERSE_KEY | DATABASE_INTEGER_KEY))) {
        size_t common = key_bytes < walk->last_key_bytes ? key_bytes : walk->last_key_bytes;
        int order = memcmp(walk->last_key, key, common);
        rises = order < 0 || (order == 0 && walk->last_key_bytes < key_bytes);
    }
    memcpy(walk->last_key, key, key_bytes);
    walk->last_key_bytes = key_bytes;
    if (!rises)
        return fault(walk, place, "keys out of order");
    if (++walk->entries > walk->meta.entries)
        return fail(EBADMSG, "%s: offset %llu: more keys than its meta page says", walk->file->path,
                    (unsigned long long)place);
    if (flags & (NODE_DATABASE | NODE_DUPLICATES))
        return fail(ENOTSUP,
                    "%s: offset %llu: a named database, or several values of a key, which are not "
                    "supported",
                    walk->file->path, (unsigned long long)place);
    if (flags & NODE_BIG) {
        uint64_t first = bytes_le64(key + key_bytes);
        uint64_t count = (PAGE_HEADER_BYTES + bytes + page_bytes - 1) / page_bytes;
        if (!mark_pages(walk, first, count))
            return fault(walk, place, "a large value's pages are used twice or missing");
        offset = first * page_bytes + PAGE_HEADER_BYTES;
    }
    if (!catalog_is_sample_key(key, key_bytes))
        return 0;
    if (walk->keys) {
        snprintf(text, sizeof text, "%.*s", (int)key_bytes, (const char *)key);
        if (fnmatch(walk->keys, text, 0) != 0) {
            walk->left_out += walk->catalog->record_count == 0;
            return 0;
        }
    }
    return catalog_add(walk->catalog, offset, bytes);
}

static int walk_tree(struct lmdb_walk *walk)
{
    const uint32_t leaf_depth = walk->meta.depth;
    uint32_t depth = 1; /* of the page being walked; 0: done */
    int code = enter_page(walk, walk->meta.root, depth, 0);

    if (code <= 0)
        return code;
    while (depth > 0) {
        struct tree_level *level = &walk->levels[depth - 1];
        if (depth == leaf_depth) {
            for (uint32_t i = 0; i < level->node_count; i++)
                if ((code = visit_node(walk, level, node_at(level, i))))
                    return code;
            depth--;
        } else if (level->next == level->node_count) {
            depth--;
        } else {
            uint64_t offset = level->number * walk->meta.page_bytes;
            code = enter_page(walk, child_page(node_at(level, level->next++)), depth + 1, offset);
            if (code < 0)
                return code;
            depth += (uint32_t)code;
        }
    }
    return 0;
}

static int walk_file(struct lmdb_walk *walk)
{
    int code = choose_meta(walk);

    if (code || walk->meta.root == UINT64_MAX)
        return code > 0 ? 0 : code;
    walk->used = memory_zeroed(walk->page_count / 8 + 1);
    walk->pages = memory_array(walk->meta.depth, walk->meta.page_bytes);
    if (!walk->used || !walk->pages)
        return -ENOMEM;
    for (uint32_t i = 0; i < walk->meta.depth; i++)
        walk->levels[i].page = walk->pages + (size_t)i * walk->meta.page_bytes;
    store_advise(walk->file, 0, 0);
    code = walk_tree(walk);
    if (code == 0 && !walk->incomplete && walk->entries != walk->meta.entries)
        code = fault(walk, 0, "fewer keys than its meta page says");
    return code;
}

/* ---- the format ---- */

static int lmdb_detect(const char *root)
{
    char *path = database_path(root);
    uint8_t start[256];
    int sure = 0;

    if (path && lmdb_looks_like(start, store_peek(path, start, sizeof start)))
        sure = 100;
    else if (path && strcmp(path, root) != 0 && store_exists(path))
        sure = 60; /* perhaps damaged: LMDB's message then helps most */
    free(path);
    return sure;
}

static int lmdb_index(const void *settings, const char *root, const struct format_scan *scan,
                      struct catalog *catalog)
{
    const struct lmdb_format_settings *lmdb = settings;
    struct lmdb_walk *walk = memory_zeroed(sizeof *walk);
    char *path = database_path(root);
    int code = walk && path ? store_open(path, STORE_READ, &walk->file) : -ENOMEM;

    if (code == 0)
        code = catalog_begin_shard(catalog, path, &walk->file->status, 0);
    if (code == 0) {
        walk->scan = scan;
        walk->catalog = catalog;
        walk->keys = lmdb->keys;
        code = walk_file(walk);
        catalog_last(catalog)->layout = walk->left_out;
    }
    if (walk) {
        store_close(walk->file, false);
        free(walk->used);
        free(walk->pages);
    }
    free(walk);
    free(path);
    return code;
}

static int lmdb_parse(const void *settings, const struct shard *shard, const void *record,
                      size_t bytes, unsigned flags, struct format_scratch *scratch,
                      struct sample *sample)
{
    const struct lmdb_format_settings *lmdb = settings;

    (void)shard, (void)scratch;
    int code = caffe_parse((enum caffe_flavour)lmdb->flavour, record, bytes, sample);
    if (code && flags & FORMAT_WHOLE) {
        *sample = (struct sample){.image = record, .image_bytes = bytes, .label = -1};
        return 0;
    }
    return code;
}

const struct format_ops format_lmdb = {
    .plugin = {.name = "lmdb",
               .summary = "LMDB of Caffe (Datum), Caffe2 (TensorProtos) or LSUN (images)",
               .options = lmdb_options,
               .settings_size = sizeof(struct lmdb_format_settings),
               .state_size = sizeof(struct lmdb_write)},
    .detect = lmdb_detect,
    .index = lmdb_index,
    .parse = lmdb_parse,
    .writable = lmdb_writable,
    .shard_open = lmdb_write_open,
    .shard_append = lmdb_write_append,
    .shard_close = lmdb_write_close,
    .naming = {.alone = "data.mdb", .most = 1}, /* LMDB tools know no shards */
};
