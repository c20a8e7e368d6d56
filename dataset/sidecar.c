/* SPDX-License-Identifier: Apache-2.0
 *
 * The file, all numbers little-endian:
 *   0  "IOBCATLG"        8  u32 version         12 u32 shards
 *  16  u64 records      24  u64 key             32 u64 hash of the names below the root
 *  40  u64 table bytes  48  u32 CRC of table    52 u32 CRC of extents
 *  56  u32 left out       60  u32 CRC of bytes 0..59
 *  64  table: u32 length, format name; then per shard u64 bytes, i64 mtime_ns, u64 stream bytes,
 *      u64 records, u32 flags, i32 label, u32 path length, u64 layout, path (relative to root);
 *      then per kind of remark u64 count, u32 length, text of the first (after root)
 *  ..  zeros up to a multiple of 4096, then the extents, 16 bytes each, to the end of the file
 */
#include "dataset/sidecar.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "dataset/catalog.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct extent) == 16 && offsetof(struct extent, bytes) == 8 &&
                   offsetof(struct extent, shard) == 12,
               "extents have one layout in file and memory");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");

enum {
    HEADER_BYTES = 64,
    /* Version 5 had no remarks and numbered folders without images, 4 left GIF and BMP images out,
       3 had no layouts, 2 neither samples left out nor truncated ends. */
    SIDECAR_VERSION = 6,
    SHARD_BYTES = 52,  /* without the path */
    REMARK_BYTES = 12, /* without the text */
    RECORDS_ALIGNMENT = 4096,
    CHUNK_BYTES = 1 << 20, /* read, checked and hashed while it is in the CPU cache */
    FILES_A_THREAD = 256,
    THREADS_MOST = 8,
};

/* ---- path ---- */

static char *kept_path(const char *root, enum sidecar_place place, const char *kind)
{
    size_t length = strlen(root);

    if (place == SIDECAR_CACHE) {
        char real[PATH_MAX], name[32];
        uint64_t hash = 0;
        if (!store_is_local(root)) {
            snprintf(real, sizeof real, "%s", root);
        } else if (!realpath(root, real)) {
            fail(errno, "%s: %s", root, fail_errno_text(errno));
            return NULL;
        }
        for (const char *byte = real; *byte; byte++)
            hash = random_hash(hash, (uint8_t)*byte, 0);
        snprintf(name, sizeof name, "%016llx.%s", (unsigned long long)hash, kind);
        return file_cache_path(name);
    }
    if (store_is_folder(root))
        return file_format_path("%s%s.iobench-%s", root, root[length - 1] == '/' ? "" : "/", kind);
    while (length > 1 && root[length - 1] == '/')
        length--;
    return file_format_path("%.*s.iobench-%s", (int)length, root, kind);
}

char *sidecar_path(const char *root, enum sidecar_place place)
{
    return kept_path(root, place, "index");
}

/* ---- saving ---- */

/* Name only files that a walk below the root can reach. Only a scan finds other shards. */
static bool may_name(const char *below)
{
    return below && (*below == '\0' || names_below_has(below));
}

static size_t root_bytes(const char *root)
{
    size_t length = strlen(root);

    while (length > 0 && root[length - 1] == '/')
        length--;
    return length;
}

static int make_table(const struct catalog *catalog, struct text_stream *table)
{
    const size_t root_length = root_bytes(catalog->root);
    uint8_t row[SHARD_BYTES];
    int code = text_stream_open(table);

    if (code)
        return code;
    bytes_put_le32(row, (uint32_t)strlen(catalog->format));
    fwrite(row, 4, 1, table->stream);
    fputs(catalog->format, table->stream);
    for (uint32_t i = 0; i < catalog->shard_count; i++) {
        const struct shard *shard = &catalog->shards[i];
        const char *below = names_below_path(catalog->root, shard->path);
        if (!may_name(below))
            return fail(EINVAL, "%s: not below %s: no index is saved", shard->path, catalog->root);
        bytes_put_le64(row, shard->bytes);
        bytes_put_le64(row + 8, (uint64_t)shard->mtime_ns);
        bytes_put_le64(row + 16, shard->stream_bytes);
        bytes_put_le64(row + 24, shard->record_count);
        bytes_put_le32(row + 32, shard->flags);
        bytes_put_le32(row + 36, (uint32_t)shard->label);
        bytes_put_le32(row + 40, (uint32_t)strlen(below));
        bytes_put_le64(row + 44, shard->layout);
        fwrite(row, SHARD_BYTES, 1, table->stream);
        fputs(below, table->stream);
    }
    for (int i = 0; i < REMARK_KINDS; i++) {
        const char *first = catalog->remarks[i].first; /* begins with a path, whose root may move */
        if (first && strncmp(first, catalog->root, root_length) != 0)
            return fail(EINVAL, "%s: not below %s: no index is saved", first, catalog->root);
        const char *text = first ? first + root_length : "";
        bytes_put_le64(row, catalog->remarks[i].count);
        bytes_put_le32(row + 8, (uint32_t)strlen(text));
        fwrite(row, REMARK_BYTES, 1, table->stream);
        fputs(text, table->stream);
    }
    return text_stream_flush(table);
}

int sidecar_save(const struct catalog *catalog, const char *path, uint64_t key)
{
    struct store_file *file;
    struct text_stream table = {0};
    const struct names_below names = names_below(catalog->root);
    int code = names.leave
                   ? fail(EXDEV, "%s: a link leads out of it: no index is saved", catalog->root)
                   : make_table(catalog, &table);

    if (code == 0)
        code = store_make_parent(path);
    if (code == 0)
        code = store_draft(path, &file);
    if (code) {
        text_stream_close(&table);
        return code;
    }
    const size_t records_bytes = (size_t)catalog->record_count * sizeof(struct extent);
    uint8_t raw[HEADER_BYTES] = {0};
    memcpy(raw, "IOBCATLG", 8);
    bytes_put_le32(raw + 8, SIDECAR_VERSION);
    bytes_put_le32(raw + 12, catalog->shard_count);
    bytes_put_le64(raw + 16, catalog->record_count);
    bytes_put_le64(raw + 24, key);
    bytes_put_le64(raw + 32, names.hash);
    bytes_put_le64(raw + 40, table.bytes);
    bytes_put_le32(raw + 48, crc32c(0, table.text, table.bytes));
    bytes_put_le32(raw + 52, crc32c(0, catalog->records, records_bytes));
    bytes_put_le32(raw + 56, catalog->left_out);
    bytes_put_le32(raw + 60, crc32c(0, raw, 60));
    code = store_write_at(file, raw, sizeof raw, 0);
    if (code == 0)
        code = store_write_at(file, table.text, table.bytes, HEADER_BYTES);
    if (code == 0)
        code = store_write_at(file, catalog->records, records_bytes,
                              bytes_align_up(HEADER_BYTES + table.bytes, RECORDS_ALIGNMENT));
    code = store_settle(file, code);
    text_stream_close(&table);
    return code;
}

/* ---- loading ---- */

static int damaged(const char *path, const char *what)
{
    return fail(EINVAL, "%s: damaged index: %s; remove it to have it rebuilt", path, what);
}

struct table_cursor {
    const uint8_t *at, *end;
};

/* Read a length-prefixed string. NULL if the table ends before it. */
static char *take_text(struct table_cursor *cursor, size_t bytes)
{
    if ((size_t)(cursor->end - cursor->at) < bytes || memchr(cursor->at, '\0', bytes))
        return NULL;
    char *text = strndup((const char *)cursor->at, bytes);
    cursor->at += bytes;
    return text;
}

/* Read the table of shards and remarks, whose records add up to record_count. */
static int load_table(struct catalog *catalog, const uint8_t *table, size_t table_bytes,
                      uint32_t shard_count, uint64_t record_count, const char *path)
{
    struct table_cursor cursor = {.at = table + 4, .end = table + table_bytes};
    char *format = take_text(&cursor, bytes_le32(table));

    if (!format)
        return damaged(path, "unreadable format name");
    const int code = strcmp(format, catalog->format) == 0
                         ? 0
                         : fail(ESTALE, "%s: made for format %s", path, format);
    free(format);
    if (code)
        return code;
    catalog->shards = memory_array(shard_count, sizeof *catalog->shards);
    if (!catalog->shards)
        return -ENOMEM;
    for (uint32_t i = 0; i < shard_count; i++) {
        struct shard *shard = &catalog->shards[i];
        const uint8_t *row = cursor.at;
        if (cursor.end - row < SHARD_BYTES)
            return damaged(path, "truncated table");
        cursor.at += SHARD_BYTES;
        char *name = take_text(&cursor, bytes_le32(row + 40));
        if (!name || !may_name(name)) {
            free(name);
            return damaged(path, "a path in its table is not below the data set");
        }
        *shard = (struct shard){
            .path = *name ? file_join(catalog->root, name) : strdup(catalog->root),
            .bytes = bytes_le64(row),
            .mtime_ns = (int64_t)bytes_le64(row + 8),
            .stream_bytes = bytes_le64(row + 16),
            .first_record = catalog->record_count,
            .record_count = bytes_le64(row + 24),
            .flags = bytes_le32(row + 32),
            .label = (int32_t)bytes_le32(row + 36),
            .layout = bytes_le64(row + 44),
        };
        free(name);
        if (!shard->path)
            return fail(ENOMEM, "out of memory for a path");
        catalog->shard_count++; /* from here on catalog_destroy() frees its path */
        if (shard->flags & SHARD_COMPRESSED)
            catalog->compressed = true;
        else if (shard->stream_bytes != shard->bytes)
            return damaged(path, "wrong length of a shard");
        if (shard->record_count > record_count - catalog->record_count)
            return damaged(path, "its shards have more records than its header says");
        catalog->record_count += shard->record_count;
    }
    for (int i = 0; i < REMARK_KINDS; i++) {
        struct remark *remark = &catalog->remarks[i];
        const uint8_t *row = cursor.at;
        if (cursor.end - row < REMARK_BYTES)
            return damaged(path, "truncated table");
        cursor.at += REMARK_BYTES;
        char *text = take_text(&cursor, bytes_le32(row + 8));
        if (!text)
            return damaged(path, "unreadable remark");
        remark->count = bytes_le64(row);
        if (remark->count)
            remark->first =
                file_format_path("%.*s%s", (int)root_bytes(catalog->root), catalog->root, text);
        free(text);
        if (remark->count && !remark->first)
            return -ENOMEM;
    }
    return cursor.at == cursor.end && catalog->record_count == record_count
               ? 0
               : damaged(path, "shards and records do not add up");
}

/* Check that the shards are the indexed ones. Several threads ask, each for every n-th file: a
 * server takes as long for one answer as for several. */
struct shard_check {
    const struct catalog *catalog;
    struct shard *dated; /* those of the catalog, whose ctime to set; NULL: none */
    uint32_t thread_count;
    struct flag stop;
};

static int check_shards_of(void *context, struct workers *workers, uint64_t number)
{
    struct shard_check *check = context;
    const struct catalog *catalog = check->catalog;
    struct store_status status;

    (void)workers;
    for (uint64_t i = number; i < catalog->shard_count && !flag_get(&check->stop);
         i += check->thread_count) {
        const struct shard *shard = &catalog->shards[i];
        if (store_stat(shard->path, &status) || status.kind != STORE_FILE ||
            status.bytes != shard->bytes || status.mtime_ns != shard->mtime_ns)
            return fail(ESTALE, "%s: changed since it was indexed", shard->path);
        if (check->dated)
            check->dated[i].ctime_ns = status.ctime_ns;
    }
    return 0;
}

static void stop_check(void *context)
{
    flag_set(&((struct shard_check *)context)->stop);
}

int sidecar_check_shards(const struct catalog *catalog, struct shard *dated)
{
    struct shard_check check = {.catalog = catalog,
                                .dated = dated,
                                .thread_count = catalog->shard_count / FILES_A_THREAD + 1};
    const struct workers_job job = {"sidecar", check_shards_of, stop_check, NULL, &check};

    if (check.thread_count > THREADS_MOST)
        check.thread_count = THREADS_MOST;
    return workers_run(&job, check.thread_count);
}

static int load_records(struct catalog *catalog, struct store_file *file, uint64_t offset,
                        uint32_t expected_crc)
{
    const char *path = file->path;
    size_t bytes = (size_t)catalog->record_count * sizeof(struct extent);
    uint32_t crc = 0, shard = 0;
    uint8_t *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (to == MAP_FAILED)
        return fail(ENOMEM, "%s: out of memory for %zu bytes of index", path, bytes);
    catalog->mapping = to;
    catalog->mapping_bytes = bytes;
    catalog->records = (const struct extent *)(const void *)to;
    madvise(to, bytes, MADV_HUGEPAGE); /* best effort: without huge pages the load is slower */
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        ssize_t got = store_read_at(file, to + done, part, offset + done);
        if (got < 0)
            return (int)got;
        if ((size_t)got < part)
            return damaged(path, "truncated");
        crc = crc32c(crc, to + done, part);
        uint64_t first = done / sizeof(struct extent);
        uint64_t count = part / sizeof(struct extent);
        uint64_t total = 0;
        uint32_t most = 0;
        while (count > 0) {
            const struct shard *of = &catalog->shards[shard];
            assert(shard < catalog->shard_count);
            uint64_t left = of->first_record + of->record_count - first;
            if (left == 0) {
                ++shard; /* the counts add up to the total, so there is a next shard */
                continue;
            }
            uint64_t run = left < count ? left : count, stream_bytes = of->stream_bytes;
            const struct extent *extent = &catalog->records[first];
            bool right = true;
            for (uint64_t i = 0; i < run; i++) {
                right &= extent[i].shard == shard && extent[i].offset <= stream_bytes &&
                         extent[i].bytes > 0 && extent[i].bytes <= CATALOG_RECORD_BYTES_MAX &&
                         extent[i].bytes <= stream_bytes - extent[i].offset;
                total += extent[i].bytes;
                most = extent[i].bytes > most ? extent[i].bytes : most;
            }
            if (!right)
                return damaged(path, "a record is outside its shard");
            first += run;
            count -= run;
        }
        catalog->record_bytes_total += total;
        if (most > catalog->record_bytes_max)
            catalog->record_bytes_max = most;
        done += part;
    }
    if (crc != expected_crc)
        return damaged(path, "wrong CRC of the records");
    return 0;
}

static int load_index(struct catalog *catalog, struct store_file *file, uint64_t key)
{
    const char *path = file->path;
    const uint64_t bytes = file->status.bytes;
    uint8_t raw[HEADER_BYTES];
    ssize_t got = store_read_at(file, raw, sizeof raw, 0);

    if (got < 0)
        return (int)got;
    if (got < HEADER_BYTES || memcmp(raw, "IOBCATLG", 8) != 0)
        return damaged(path, "wrong magic number, or truncated");
    if (bytes_le32(raw + 8) != SIDECAR_VERSION)
        return fail(ESTALE, "%s: index version %u, expected %u", path, bytes_le32(raw + 8),
                    SIDECAR_VERSION);
    if (bytes_le32(raw + 60) != crc32c(0, raw, 60))
        return damaged(path, "wrong header CRC");
    if (bytes_le64(raw + 24) != key)
        return fail(ESTALE, "%s: made with other settings", path);
    /* Check the header against the file size before anything is allocated. */
    const uint32_t shard_count = bytes_le32(raw + 12);
    const uint64_t record_count = bytes_le64(raw + 16), table_bytes = bytes_le64(raw + 40);
    if (table_bytes < 4 || table_bytes > bytes || shard_count > table_bytes / SHARD_BYTES)
        return damaged(path, "wrong table size");
    const uint64_t records_offset = bytes_align_up(HEADER_BYTES + table_bytes, RECORDS_ALIGNMENT);
    if (record_count == 0 || record_count > bytes / sizeof(struct extent) ||
        bytes != records_offset + record_count * sizeof(struct extent))
        return damaged(path, "file size does not match its header");
    uint8_t *table = memory_zeroed((size_t)table_bytes);
    if (!table)
        return -ENOMEM;
    got = store_read_at(file, table, (size_t)table_bytes, HEADER_BYTES);
    int code =
        got < 0 ? (int)got
        : (uint64_t)got < table_bytes || crc32c(0, table, (size_t)got) != bytes_le32(raw + 48)
            ? damaged(path, "wrong table CRC")
            : load_table(catalog, table, (size_t)table_bytes, shard_count, record_count, path);
    free(table);
    if (code == 0)
        code = sidecar_check_shards(catalog, catalog->shards);
    if (code)
        return code;
    catalog->left_out = bytes_le32(raw + 56);
    const struct names_below names = names_below(catalog->root);
    if (names.leave)
        return fail(ESTALE, "%s: a link leads out of %s: its files are listed every time", path,
                    catalog->root);
    if (names.hash != bytes_le64(raw + 32))
        return fail(ESTALE, "%s: files were added or removed since it was made", path);
    return load_records(catalog, file, records_offset, bytes_le32(raw + 52));
}

int sidecar_load(const char *path, const char *root, const char *format, uint64_t key,
                 struct catalog **catalog)
{
    struct store_file *file;
    int code = store_open(path, STORE_READ, &file);

    *catalog = NULL;
    if (code)
        return code == -ENOENT || code == -ENOTDIR ? -ENOENT : -EINVAL;
    struct catalog *made = NULL;
    code = store_trusted(file, root);
    if (code == 0) {
        made = catalog_create(root, format);
        code = made ? load_index(made, file, key) : -ENOMEM;
    }
    store_close(file, false);
    if (code) {
        catalog_destroy(made);
        return code;
    }
    *catalog = made;
    return 0;
}

/* ---- hints ---- */

/* The file, all numbers little-endian:
 *   0  "IOBHINTS"         8  u32 version         12 u32 CRC-32C of the lengths
 *  16  u64 records       24  u64 bytes of all records
 *  32  u64 bytes of all hints                    40 u32 CRC-32C of the hints
 *  44  u32 CRC-32C of bytes 0..43
 *  48  u16 length per record, at most HINT_BYTES_MAX, then the hints, to the end of the file */
enum { HINTS_HEADER_BYTES = 48, HINTS_VERSION = 2 };

static const enum sidecar_place places[] = {SIDECAR_BESIDE, SIDECAR_CACHE};
enum { PLACES = sizeof places / sizeof *places };

int hints_file_save(const struct catalog *catalog, const struct hints *hints, char **path)
{
    const size_t lengths_bytes = (size_t)hints->count * HINT_LENGTH_BYTES;
    size_t bytes;
    uint8_t *raw = hints_pack(hints, HINTS_HEADER_BYTES, 0, &bytes);
    struct store_file *file;
    int code = -EIO;

    *path = NULL;
    if (!raw)
        return -ENOMEM;
    const uint8_t *lengths = raw + HINTS_HEADER_BYTES;
    const uint64_t hints_bytes = bytes - HINTS_HEADER_BYTES - lengths_bytes;
    memcpy(raw, "IOBHINTS", 8);
    bytes_put_le32(raw + 8, HINTS_VERSION);
    bytes_put_le32(raw + 12, crc32c(0, lengths, lengths_bytes));
    bytes_put_le64(raw + 16, catalog->record_count);
    bytes_put_le64(raw + 24, catalog->record_bytes_total);
    bytes_put_le64(raw + 32, hints_bytes);
    bytes_put_le32(raw + 40, crc32c(0, lengths + lengths_bytes, hints_bytes));
    bytes_put_le32(raw + 44, crc32c(0, raw, 44));
    for (int i = 0; i < PLACES && code; i++) {
        free(*path);
        *path = kept_path(catalog->root, places[i], "hints");
        code = *path ? store_make_parent(*path) : -EINVAL;
        if (code == 0)
            code = store_draft(*path, &file);
        if (code == 0)
            code = store_settle(file, store_write_at(file, raw, bytes, 0));
    }
    free(raw);
    return code;
}

static int damaged_hints(const char *path, const char *what)
{
    return fail(EINVAL, "%s: damaged hints: %s", path, what);
}

static int read_part(struct store_file *file, uint8_t *to, uint64_t bytes, uint64_t offset,
                     uint32_t crc)
{
    const ssize_t got = store_read_at(file, to, (size_t)bytes, offset);

    if (got < 0)
        return (int)got;
    if ((uint64_t)got < bytes || crc32c(0, to, (size_t)bytes) != crc)
        return damaged_hints(file->path, "wrong CRC");
    return 0;
}

static int load_hints(struct store_file *file, const struct catalog *catalog, struct hints **hints)
{
    const uint64_t lengths_bytes = catalog->record_count * HINT_LENGTH_BYTES;
    uint8_t raw[HINTS_HEADER_BYTES];
    ssize_t got = store_read_at(file, raw, sizeof raw, 0);
    const char *path = file->path;
    int code = 0;

    if (got < 0)
        return (int)got;
    /* Check the header against the data set and the file size before anything is allocated. */
    if (got < HINTS_HEADER_BYTES || memcmp(raw, "IOBHINTS", 8) != 0)
        return damaged_hints(path, "wrong magic number, or truncated");
    if (bytes_le32(raw + 8) != HINTS_VERSION)
        return fail(ESTALE, "%s: hints of version %u, expected %u", path, bytes_le32(raw + 8),
                    HINTS_VERSION);
    if (bytes_le32(raw + 44) != crc32c(0, raw, 44))
        return damaged_hints(path, "wrong header CRC");
    if (bytes_le64(raw + 16) != catalog->record_count ||
        bytes_le64(raw + 24) != catalog->record_bytes_total)
        return fail(ESTALE, "%s: hints of other data", path);
    const uint64_t rest = file->status.bytes - HINTS_HEADER_BYTES, bytes = bytes_le64(raw + 32);
    if (file->status.bytes < HINTS_HEADER_BYTES || rest < lengths_bytes ||
        rest - lengths_bytes != bytes || bytes > catalog->record_count * HINT_BYTES_MAX)
        return damaged_hints(path, "file size does not match its header");
    uint8_t *lengths = memory_zeroed((size_t)lengths_bytes);
    *hints = hints_create(catalog->record_count);
    if (*hints)
        (*hints)->in_common = memory_zeroed((size_t)bytes + 1); /* never NULL */
    if (!lengths || !*hints || !(*hints)->in_common)
        code = -ENOMEM;
    if (code == 0)
        code = read_part(file, lengths, lengths_bytes, HINTS_HEADER_BYTES, bytes_le32(raw + 12));
    if (code == 0)
        code = read_part(file, (*hints)->in_common, bytes, HINTS_HEADER_BYTES + lengths_bytes,
                         bytes_le32(raw + 40));
    uint64_t used = 0;
    for (uint64_t i = 0; code == 0 && i < catalog->record_count; i++) {
        const uint16_t count = bytes_le16(lengths + i * HINT_LENGTH_BYTES);
        if (count > HINT_BYTES_MAX || count > bytes - used)
            code = damaged_hints(path, "wrong length of a hint");
        (*hints)->rows[i] = (struct hint){(*hints)->in_common + used, count};
        used += count;
    }
    if (code == 0 && used != bytes)
        code = damaged_hints(path, "lengths do not add up");
    free(lengths);
    return code;
}

static int load_from(const struct catalog *catalog, enum sidecar_place place, struct hints **hints)
{
    struct store_file *file = NULL;
    char *path = kept_path(catalog->root, place, "hints");
    int code = path ? store_open(path, STORE_READ, &file) : -ENOENT; /* no cache folder */

    free(path);
    if (code)
        return code;
    code = store_trusted(file, catalog->root);
    if (code == 0)
        code = load_hints(file, catalog, hints);
    store_close(file, false);
    if (code) {
        hints_destroy(*hints);
        *hints = NULL;
    }
    return code;
}

/* When the file of a place was written; INT64_MIN without one. */
static int64_t written_ns(const struct catalog *catalog, enum sidecar_place place)
{
    struct store_status status;
    char *path = kept_path(catalog->root, place, "hints");
    const int code = path ? store_stat(path, &status) : -ENOENT;

    free(path);
    return code == 0 ? status.mtime_ns : INT64_MIN;
}

/* Try the newest file first: a user who cannot write beside the data has saved to the cache, even
 * if there is an older file beside the data. If the newest is bad, use the other one. */
int hints_file_load(const struct catalog *catalog, struct hints **hints)
{
    const bool in_cache = written_ns(catalog, SIDECAR_CACHE) > written_ns(catalog, SIDECAR_BESIDE);
    const enum sidecar_place newest = in_cache ? SIDECAR_CACHE : SIDECAR_BESIDE;
    const enum sidecar_place other = in_cache ? SIDECAR_BESIDE : SIDECAR_CACHE;

    *hints = NULL;
    const int code = load_from(catalog, newest, hints);
    if (code == 0)
        return 0;
    const int second = load_from(catalog, other, hints);
    if (second == 0 || code == -ENOENT)
        return second == -ENOENT ? 0 : second;
    return load_from(catalog, newest, hints); /* for its reason */
}
