/* SPDX-License-Identifier: Apache-2.0
 * Planted index sidecars: correct checksums, wrong contents. Built by hand from the layout in
 * dataset/sidecar.c.
 */
#include "tests/hostile/hostile.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARD "train-00000-of-00001"
#define INDEX ".iobench-index"

enum { RECORDS = 4, HEADER = 64, ALIGNMENT = 4096, INSIDE = 17, NOBODY = 65534 };

/* Contents of a planted index. */
struct claim {
    const char *path;
    uint64_t shard_records, records;
    uint32_t shard_count, bytes;
    uint64_t offset;
    uint32_t shard;
    bool wrong_crc;
};

static void save_shard(void)
{
    struct blob blob = {0};

    for (uint64_t i = 0; i < RECORDS; i++)
        add_example(&blob, i, i + 1);
    blob_save(&blob, SHARD);
}

static void add_table(struct blob *table, const struct claim *claim)
{
    struct stat status;

    if (stat(claim->path, &status))
        give_up("%s", claim->path);
    blob_le32(table, 6);
    blob_text(table, "shards");
    blob_le64(table, (uint64_t)status.st_size);
    blob_le64(table,
              (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec);
    blob_le64(table, (uint64_t)status.st_size);
    blob_le64(table, claim->shard_records);
    blob_le32(table, 0);
    blob_le32(table, 0);
    blob_le32(table, (uint32_t)strlen(claim->path));
    blob_text(table, claim->path);
}

/* Start from an index written by the program: its key and its sum of names are correct. */
static void plant(const struct claim *claim)
{
    struct blob made = {0}, table = {0}, extents = {0}, whole = {0};
    uint8_t header[HEADER] = {0};

    load_file(INDEX, &made);
    if (made.count < HEADER)
        give_up("the program made no index");
    memcpy(header, made.bytes, HEADER);
    free(made.bytes);
    add_table(&table, claim);
    for (uint64_t i = 0; i < claim->records; i++) {
        blob_le64(&extents, claim->offset);
        blob_le32(&extents, claim->bytes);
        blob_le32(&extents, claim->shard);
    }
    bytes_put_le32(header + 12, claim->shard_count);
    bytes_put_le64(header + 16, claim->records);
    bytes_put_le64(header + 40, table.count);
    bytes_put_le32(header + 48, crc32c(0, table.bytes, table.count));
    bytes_put_le32(header + 52, crc32c(0, extents.bytes, extents.count));
    bytes_put_le32(header + 60, crc32c(0, header, 60) ^ (claim->wrong_crc ? 1 : 0));
    blob_add(&whole, header, HEADER);
    blob_add(&whole, table.bytes, table.count);
    blob_fill(&whole, 0, (ALIGNMENT - whole.count % ALIGNMENT) % ALIGNMENT);
    blob_add(&whole, extents.bytes, extents.count);
    free(table.bytes);
    free(extents.bytes);
    blob_save(&whole, INDEX);
}

/* A set whose index the program wrote. */
static void indexed(void)
{
    save_shard();
    run_program("run -n 1 --no-calibrate -m 8m -q 4 -t 1 -B 4 -e 1 -d .");
    if (access(INDEX, F_OK))
        give_up("the program made no index");
}

static void planted(const struct hostile_act *act)
{
    indexed();
    plant(act->with);
}

/* The path of its shard, how many records it claims for it and lists, how many shards, and how long
 * each record is; and more members by name. */
#define PLANTED(...)                             \
    CALL(planted), .with = &(const struct claim) \
    {                                            \
        __VA_ARGS__                              \
    }
#define HONEST SHARD, RECORDS, RECORDS, 1, 1000

static void sidecar_absolute(void)
{
    char path[4096];

    indexed();
    if (!realpath("../sentinel/secret", path))
        give_up("realpath");
    plant(&(struct claim){path, RECORDS, RECORDS, 1, 4, .offset = 0});
}

static void give_away(const struct hostile_act *act)
{
    (void)act;
    if (chown(INDEX, NOBODY, NOBODY))
        give_up("chown");
}

const struct hostile_set hostile_sidecars[] = {
    SET("sidecar-absolute", "an index names a secret by its path", sidecar_absolute, EITHER, FRESH),
    SET("sidecar-outside", "an index names a secret by ../", NULL, EITHER, FRESH,
        .acts = {{PLANTED("../sentinel/secret", RECORDS, RECORDS, 1, 4, .offset = 0)}}),
    SET("sidecar-past-end", "an index points past the end", NULL, EITHER, FRESH,
        .acts = {{PLANTED(HONEST, .offset = UINT64_C(1) << 40)}}),
    SET("sidecar-overflow", "an index whose sums overflow", NULL, EITHER, FRESH,
        .acts = {{PLANTED(SHARD, RECORDS, RECORDS, 1, UINT32_MAX, .offset = UINT64_MAX - 10)}}),
    SET("sidecar-empty-extents", "an index of records of 0 bytes", NULL, EITHER, FRESH,
        .acts = {{PLANTED(SHARD, RECORDS, RECORDS, 1, 0, .offset = 0)}}),
    SET("sidecar-inside", "an index points into records", NULL, EITHER, FRESH,
        .acts = {{PLANTED(HONEST, .offset = INSIDE)}}),
    SET("sidecar-shard-number", "an index names shard 77 of 1", NULL, EITHER, FRESH,
        .acts = {{PLANTED(HONEST, .shard = 77)}}),
    SET("sidecar-counts", "an index of 2^62 records", NULL, EITHER, FRESH,
        .acts = {{PLANTED(SHARD, UINT64_C(1) << 62, RECORDS, 1, 1000, .offset = 0)}}),
    SET("sidecar-shards", "an index of 2^32 - 1 shards", NULL, EITHER, FRESH,
        .acts = {{PLANTED(SHARD, RECORDS, RECORDS, UINT32_MAX, 1000, .offset = 0)}}),
    SET("sidecar-crc", "an index with a wrong CRC", NULL, FINE, FRESH,
        .acts = {{PLANTED(HONEST, .wrong_crc = true)}}),
    SET("sidecar-none", "an index of no records", NULL, EITHER, FRESH,
        .acts = {{PLANTED(SHARD, 0, 0, 1, 1000, .offset = 0)}}),
    SET("sidecar-cut", "an index that is cut", indexed, FINE, FRESH, .acts = {{CUT(INDEX, 70)}}),
    SET("sidecar-garbage", "an index that is none", save_shard, FINE, FRESH,
        .acts = {{TEXT(INDEX, "IOBCATLG\1\0\0\0 and nothing that fits")}}),
    SET("sidecar-sparse", "an index of 1 TiB", save_shard, FINE, FRESH,
        .acts = {{SPARSE(INDEX, UINT64_C(1) << 40)}}),
    SET("sidecar-fifo", "the index is a FIFO", save_shard, FINE, FRESH, .acts = {{FIFO(INDEX)}}),
    SET("sidecar-folder", "the index is a folder", save_shard, FINE, FRESH,
        .acts = {{FOLDER(INDEX)}}),
    SET("sidecar-link", "the index is a link to a file of the user", save_shard, FINE, FRESH,
        .acts = {{LINK("../sentinel/thesis", INDEX)}}),
    SET("sidecar-draft-link", "a draft's name is a link to a file of the user", save_shard, FINE,
        FRESH, .acts = {{LINK("../sentinel/thesis", INDEX ".partial")}}),
    SET("sidecar-draft", "a draft's name is a file of the user", save_shard, FINE, FRESH,
        .acts = {{TEXT(INDEX ".partial", "a file of the user\n")}}),
    SET("sidecar-foreign", "a wrong index of another user", NULL, FINE, .flags = FRESH | NEEDS_ROOT,
        .acts = {{PLANTED(HONEST, .offset = INSIDE)}, {CALL(give_away)}}),
    SET("sidecar-writable", "a wrong index that all may write", NULL, FINE, FRESH,
        .acts = {{PLANTED(HONEST, .offset = INSIDE)},
                 {CALL_WITH(hostile_mode, 0666), .path = INDEX}}),
    {0},
};
