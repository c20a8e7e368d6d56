/* SPDX-License-Identifier: Apache-2.0
 * The sidecar of a catalog. With an odd first byte its CRCs are corrected, and its first shard gets
 * the size and time of an existing file, so that the code after these checks is reached. */
#include "tests/fuzz/fuzz.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "dataset/sidecar.h"

#include <sys/stat.h>

static void mend(uint8_t *bytes, size_t count, const char *root)
{
    struct stat status;

    if (count < 68)
        return;
    uint64_t table_bytes = bytes_le64(bytes + 40), row = 68 + (uint64_t)bytes_le32(bytes + 64);
    if (row + 16 <= count && stat(root, &status) == 0) {
        bytes_put_le64(bytes + row, (uint64_t)status.st_size);
        bytes_put_le64(bytes + row + 8, (uint64_t)(status.st_mtim.tv_sec * INT64_C(1000000000) +
                                                   status.st_mtim.tv_nsec));
    }
    if (table_bytes <= count - 64) {
        uint64_t records = bytes_align_up(64 + table_bytes, 4096);
        bytes_put_le32(bytes + 48, crc32c(0, bytes + 64, (size_t)table_bytes));
        if (records <= count)
            bytes_put_le32(bytes + 52, crc32c(0, bytes + records, count - (size_t)records));
    }
    bytes_put_le32(bytes + 60, crc32c(0, bytes, 60));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static bool made;
    const char *root = fuzz_path("root");
    struct catalog *catalog;

    if (count < 1)
        return 0;
    if (!made)
        fuzz_write("root", "0123456789012345678901234567890123456789", 40);
    made = true;
    uint8_t *copy = fuzz_exact(bytes + 1, count - 1);
    if (bytes[0] & 1)
        mend(copy, count - 1, root);
    const char *path = fuzz_write("index", copy, count - 1);
    if (sidecar_load(path, root, "recordio", 0, &catalog) == 0) {
        for (uint64_t i = 0; i < catalog->record_count; i++) {
            const struct extent *extent = catalog_extent(catalog, i);
            FUZZ_CHECK(extent->shard < catalog->shard_count);
            const struct shard *shard = &catalog->shards[extent->shard];
            FUZZ_CHECK(i >= shard->first_record && i - shard->first_record < shard->record_count);
            FUZZ_CHECK(extent->offset <= shard->stream_bytes &&
                       extent->bytes <= shard->stream_bytes - extent->offset);
        }
        catalog_destroy(catalog);
    } else {
        FUZZ_CHECK(!catalog && *fail_reason());
    }
    free(copy);
    return 0;
}
