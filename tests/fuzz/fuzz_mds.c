/* SPDX-License-Identifier: Apache-2.0
 * MDS. The first byte chooses: parse with the layout of the next 8 bytes, index or verify a shard,
 * index with this index.json. */
#include "tests/fuzz/fuzz_format.h"

#include "base/bytes.h"

static const char listing[] = "{\"shards\": [{\"column_encodings\": [], \"format\": \"mds\", "
                              "\"raw_data\": {\"basename\": \"a.mds\"}, \"samples\": %u, "
                              "\"version\": 2}], \"version\": 2}";

static void index_shard(const struct plugin_choice *format, bool verify, const uint8_t *bytes,
                        size_t count)
{
    char text[256];
    uint32_t samples = count >= 4 ? bytes_le32(bytes) : 0;

    snprintf(text, sizeof text, listing, samples);
    fuzz_write("index.json", text, strlen(text));
    char *root = strdup(fuzz_write("a.mds", bytes, count));
    FUZZ_CHECK(root);
    *strrchr(root, '/') = '\0';
    fuzz_index(format, root, verify, bytes, count);
    free(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct plugin_choice *format = fuzz_format("mds");

    if (count < 9)
        return 0;
    const unsigned what = bytes[0] % 4;
    const struct shard shard = {.label = -1, .layout = bytes_le64(bytes + 1)};
    if (what == 0) {
        fuzz_parse(format, &shard, bytes + 9, count - 9, 0);
    } else if (what == 3) {
        struct catalog *catalog = NULL;
        char *root = strdup(fuzz_write("index.json", bytes + 1, count - 1));
        FUZZ_CHECK(root);
        *strrchr(root, '/') = '\0';
        fail_clear();
        int code = format_catalog(format, root, false, NULL, &catalog);
        FUZZ_CHECK(code == 0 || *fail_reason());
        catalog_destroy(catalog);
        free(root);
    } else {
        index_shard(format, what == 2, bytes + 1, count - 1);
    }
    return 0;
}
