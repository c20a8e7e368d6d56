/* SPDX-License-Identifier: Apache-2.0
 *
 * The file, all numbers little-endian:
 *   0  "IOBHINTS"         8  u32 version         12 u32 CRC-32C of the lengths
 *  16  u64 records       24  u64 bytes of all records
 *  32  u64 bytes of all hints                    40 u32 CRC-32C of the hints
 *  44  u32 CRC-32C of bytes 0..43
 *  48  u16 length per record, at most HINT_BYTES_MAX, then the hints, to the end of the file
 */
#include "dataset/hints_file.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/sidecar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 48, HINTS_VERSION = 2 };

static const enum sidecar_place places[] = {SIDECAR_BESIDE, SIDECAR_CACHE};
enum { PLACES = sizeof places / sizeof *places };

/* ---- saving ---- */

int hints_file_save(const struct catalog *catalog, const struct hints *hints, char **path)
{
    const size_t lengths_bytes = (size_t)hints->count * HINT_LENGTH_BYTES;
    size_t bytes;
    uint8_t *raw = hints_pack(hints, HEADER_BYTES, 0, &bytes);
    struct store_file *file;
    int code = -EIO;

    *path = NULL;
    if (!raw)
        return -ENOMEM;
    const uint8_t *lengths = raw + HEADER_BYTES;
    const uint64_t hints_bytes = bytes - HEADER_BYTES - lengths_bytes;
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
        *path = sidecar_hints_path(catalog->root, places[i]);
        code = *path ? store_make_parent(*path) : -EINVAL;
        if (code == 0)
            code = store_draft(*path, &file);
        if (code == 0)
            code = store_settle(file, store_write_at(file, raw, bytes, 0));
    }
    free(raw);
    return code;
}

/* ---- loading ---- */

static int damaged(const char *path, const char *what)
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
        return damaged(file->path, "wrong CRC");
    return 0;
}

static int load_hints(struct store_file *file, const struct catalog *catalog, struct hints **hints)
{
    const uint64_t lengths_bytes = catalog->record_count * HINT_LENGTH_BYTES;
    uint8_t raw[HEADER_BYTES];
    ssize_t got = store_read_at(file, raw, sizeof raw, 0);
    const char *path = file->path;
    int code = 0;

    if (got < 0)
        return (int)got;
    /* Check the header against the data set and the file size before anything is allocated. */
    if (got < HEADER_BYTES || memcmp(raw, "IOBHINTS", 8) != 0)
        return damaged(path, "wrong magic number, or truncated");
    if (bytes_le32(raw + 8) != HINTS_VERSION)
        return fail(ESTALE, "%s: hints of version %u, expected %u", path, bytes_le32(raw + 8),
                    HINTS_VERSION);
    if (bytes_le32(raw + 44) != crc32c(0, raw, 44))
        return damaged(path, "wrong header CRC");
    if (bytes_le64(raw + 16) != catalog->record_count ||
        bytes_le64(raw + 24) != catalog->record_bytes_total)
        return fail(ESTALE, "%s: hints of other data", path);
    const uint64_t rest = file->status.bytes - HEADER_BYTES, bytes = bytes_le64(raw + 32);
    if (file->status.bytes < HEADER_BYTES || rest < lengths_bytes ||
        rest - lengths_bytes != bytes || bytes > catalog->record_count * HINT_BYTES_MAX)
        return damaged(path, "file size does not match its header");
    uint8_t *lengths = memory_zeroed((size_t)lengths_bytes);
    *hints = hints_create(catalog->record_count);
    if (*hints)
        (*hints)->in_common = memory_zeroed((size_t)bytes + 1); /* never NULL */
    if (!lengths || !*hints || !(*hints)->in_common)
        code = -ENOMEM;
    if (code == 0)
        code = read_part(file, lengths, lengths_bytes, HEADER_BYTES, bytes_le32(raw + 12));
    if (code == 0)
        code = read_part(file, (*hints)->in_common, bytes, HEADER_BYTES + lengths_bytes,
                         bytes_le32(raw + 40));
    uint64_t used = 0;
    for (uint64_t i = 0; code == 0 && i < catalog->record_count; i++) {
        const uint16_t count = bytes_le16(lengths + i * HINT_LENGTH_BYTES);
        if (count > HINT_BYTES_MAX || count > bytes - used)
            code = damaged(path, "wrong length of a hint");
        (*hints)->rows[i] = (struct hint){(*hints)->in_common + used, count};
        used += count;
    }
    if (code == 0 && used != bytes)
        code = damaged(path, "lengths do not add up");
    free(lengths);
    return code;
}

static int load_from(const struct catalog *catalog, enum sidecar_place place, struct hints **hints)
{
    struct store_file *file = NULL;
    char *path = sidecar_hints_path(catalog->root, place);
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
    char *path = sidecar_hints_path(catalog->root, place);
    const int code = path ? store_stat(path, &status) : -ENOENT;

    free(path);
    return code == 0 ? status.mtime_ns : INT64_MIN;
}

/* The newest first: who cannot write beside the data has saved to the cache, whatever lies beside
 * it. Where that one is bad, the other is used. */
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
