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

enum { RECORDS = 4, HEADER = 64, ALIGNMENT = 4096, NOBODY = 65534 };

/* Contents of a planted index. */
struct claim {
    const char *path;
    uint64_t shard_records, records, offset;
    uint32_t shard_count, bytes, shard;
    int32_t label;
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
    blob_le32(table, (uint32_t)claim->label);
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

static const struct claim honest = {
    .path = SHARD, .shard_records = RECORDS, .records = RECORDS, .shard_count = 1, .bytes = 1000};

static void planted(struct claim claim)
{
    indexed();
    plant(&claim);
}

static void sidecar_absolute(void)
{
    struct claim claim = honest;
    char path[4096];

    indexed();
    if (!realpath("../sentinel/secret", path))
        give_up("realpath");
    claim.path = path;
    claim.bytes = 4;
    plant(&claim);
}

static void sidecar_outside(void)
{
    struct claim claim = honest;

    claim.path = "../sentinel/secret";
    claim.bytes = 4;
    planted(claim);
}

static void sidecar_past_end(void)
{
    struct claim claim = honest;

    claim.offset = UINT64_C(1) << 40;
    planted(claim);
}

static void sidecar_overflow(void)
{
    struct claim claim = honest;

    claim.offset = UINT64_MAX - 10;
    claim.bytes = UINT32_MAX;
    planted(claim);
}

static void sidecar_empty_extents(void)
{
    struct claim claim = honest;

    claim.bytes = 0;
    planted(claim);
}

static void sidecar_inside(void)
{
    struct claim claim = honest;

    claim.offset = 17; /* within the file, but no record starts there */
    planted(claim);
}

static void sidecar_shard_number(void)
{
    struct claim claim = honest;

    claim.shard = 77;
    planted(claim);
}

static void sidecar_counts(void)
{
    struct claim claim = honest;

    claim.shard_records = UINT64_C(1) << 62;
    planted(claim);
}

static void sidecar_shards(void)
{
    struct claim claim = honest;

    claim.shard_count = UINT32_MAX;
    planted(claim);
}

static void sidecar_crc(void)
{
    struct claim claim = honest;

    claim.wrong_crc = true;
    planted(claim);
}

static void sidecar_none(void)
{
    struct claim claim = honest;

    claim.records = claim.shard_records = 0;
    planted(claim);
}

static void sidecar_cut(void)
{
    indexed();
    cut_file(INDEX, 70);
}

static void sidecar_garbage(void)
{
    save_shard();
    put_text(INDEX, "IOBCATLG\1\0\0\0 and nothing that fits");
}

static void sidecar_sparse(void)
{
    save_shard();
    put_sparse(INDEX, UINT64_C(1) << 40);
}

static void sidecar_fifo(void)
{
    save_shard();
    put_fifo(INDEX);
}

static void sidecar_folder(void)
{
    save_shard();
    put_folder(INDEX);
}

static void sidecar_link(void)
{
    save_shard();
    put_link("../sentinel/thesis", INDEX);
}

static void sidecar_draft_link(void)
{
    save_shard();
    put_link("../sentinel/thesis", INDEX ".partial");
}

static void sidecar_draft(void)
{
    save_shard();
    put_text(INDEX ".partial", "a file of the user\n");
}

static void sidecar_foreign(void)
{
    struct claim claim = honest;

    claim.offset = 17;
    planted(claim);
    if (chown(INDEX, NOBODY, NOBODY))
        give_up("chown");
}

static void sidecar_writable(void)
{
    struct claim claim = honest;

    claim.offset = 17;
    planted(claim);
    if (chmod(INDEX, 0666))
        give_up("chmod");
}

const struct hostile_set hostile_sidecars[] = {
    SET("sidecar-absolute", "an index names a secret by its path", sidecar_absolute, EITHER, FRESH),
    SET("sidecar-outside", "an index names a secret by ../", sidecar_outside, EITHER, FRESH),
    SET("sidecar-past-end", "an index points past the end", sidecar_past_end, EITHER, FRESH),
    SET("sidecar-overflow", "an index whose sums overflow", sidecar_overflow, EITHER, FRESH),
    SET("sidecar-empty-extents", "an index of records of 0 bytes", sidecar_empty_extents, EITHER,
        FRESH),
    SET("sidecar-inside", "an index points into records", sidecar_inside, EITHER, FRESH),
    SET("sidecar-shard-number", "an index names shard 77 of 1", sidecar_shard_number, EITHER,
        FRESH),
    SET("sidecar-counts", "an index of 2^62 records", sidecar_counts, EITHER, FRESH),
    SET("sidecar-shards", "an index of 2^32 - 1 shards", sidecar_shards, EITHER, FRESH),
    SET("sidecar-crc", "an index with a wrong CRC", sidecar_crc, FINE, FRESH),
    SET("sidecar-none", "an index of no records", sidecar_none, EITHER, FRESH),
    SET("sidecar-cut", "an index that is cut", sidecar_cut, FINE, FRESH),
    SET("sidecar-garbage", "an index that is none", sidecar_garbage, FINE, FRESH),
    SET("sidecar-sparse", "an index of 1 TiB", sidecar_sparse, FINE, FRESH),
    SET("sidecar-fifo", "the index is a FIFO", sidecar_fifo, FINE, FRESH),
    SET("sidecar-folder", "the index is a folder", sidecar_folder, FINE, FRESH),
    SET("sidecar-link", "the index is a link to a file of the user", sidecar_link, FINE, FRESH),
    SET("sidecar-draft-link", "a draft's name is a link to a file of the user", sidecar_draft_link,
        FINE, FRESH),
    SET("sidecar-draft", "a draft's name is a file of the user", sidecar_draft, FINE, FRESH),
    SET("sidecar-foreign", "a wrong index of another user", sidecar_foreign, FINE,
        .flags = FRESH | NEEDS_ROOT),
    SET("sidecar-writable", "a wrong index that all may write", sidecar_writable, FINE, FRESH),
    {0},
};
