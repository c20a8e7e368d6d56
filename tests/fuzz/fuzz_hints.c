/* SPDX-License-Identifier: Apache-2.0
 * Hints. With an even first byte: the file of them, its CRCs corrected, for a data set of 2
 * records; those that are loaded lie within it. With an odd one: the second byte tells how many
 * bytes are the hint of the image that follows. A hint that is not of the image changes neither
 * pixels nor verdict; one that is forged (bit 1: sealed for the image) may change them, within the
 * memory of both. */
#include "tests/fuzz/fuzz.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "dataset/sidecar.h"
#include "decode/decoder.h"

#include <errno.h>
#include <string.h>

enum { SIDE = 16, POINT = 10, GROUP = 4, CRC = 4, RECORDS = 2, RECORD = 10 };

/* ---- the file ---- */

static struct catalog *make_catalog(void)
{
    const char *root = fuzz_write("root", "01234567890123456789", RECORDS * RECORD);
    struct catalog *catalog = catalog_create(root, "recordio");

    FUZZ_CHECK(catalog && catalog_begin_shard(catalog, root, NULL, 0) == 0);
    for (uint64_t i = 0; i < RECORDS; i++)
        FUZZ_CHECK(catalog_add(catalog, i * RECORD, RECORD) == 0);
    FUZZ_CHECK(catalog_seal(catalog) == 0);
    return catalog;
}

static void mend_file(uint8_t *raw, size_t count)
{
    enum { HEADER = 48, LENGTHS = HEADER + 2 * RECORDS };

    if (count < LENGTHS)
        return;
    memcpy(raw, "IOBHINTS", 8);
    bytes_put_le32(raw + 8, 2);
    bytes_put_le32(raw + 12, crc32c(0, raw + HEADER, LENGTHS - HEADER));
    bytes_put_le64(raw + 16, RECORDS);
    bytes_put_le64(raw + 24, RECORDS * RECORD);
    bytes_put_le64(raw + 32, count - LENGTHS);
    bytes_put_le32(raw + 40, crc32c(0, raw + LENGTHS, count - LENGTHS));
    bytes_put_le32(raw + 44, crc32c(0, raw, 44));
}

static void try_file(const uint8_t *bytes, size_t count, bool mends)
{
    static struct catalog *catalog;
    struct hints *hints;
    uint64_t all = 0;
    uint8_t *raw = fuzz_exact(bytes, count);

    if (!catalog)
        catalog = make_catalog();
    if (mends)
        mend_file(raw, count);
    char *path = sidecar_path(catalog->root, SIDECAR_BESIDE);
    memcpy(strrchr(path, '-'), "-hints", 6); /* in place of "-index" */
    FILE *file = path ? fopen(path, "wb") : NULL;
    FUZZ_CHECK(file && fwrite(raw, 1, count, file) == count && fclose(file) == 0);
    fail_clear();
    if (hints_file_load(catalog, &hints)) {
        FUZZ_CHECK(!hints && *fail_reason());
    } else {
        FUZZ_CHECK(hints && hints->count == RECORDS);
        for (uint64_t i = 0; i < RECORDS; i++)
            all += hints->rows[i].count;
        FUZZ_CHECK(all + 48 + 2 * RECORDS == count);
        hints_destroy(hints);
    }
    free(path);
    free(raw);
}

/* ---- an image with a hint ---- */

static void seal_points(uint8_t *hint, size_t count, const uint8_t *image, size_t bytes)
{
    uint32_t crc = 0;
    size_t done = 0;

    for (size_t i = 0;; i++) {
        uint8_t *group = hint + i / GROUP * (CRC + GROUP * POINT);
        uint8_t *point = group + CRC + i % GROUP * POINT;
        if (point + POINT > hint + count)
            return;
        const size_t end = (size_t)(bytes_le32(point) / 8) + 1;
        if (end > bytes || end < done)
            return;
        crc = crc32c(crc32c(crc, image + done, end - done), point, POINT);
        done = end;
        bytes_put_le32(group, crc);
    }
}

static void try_image(const uint8_t *bytes, size_t count, size_t hint_bytes, bool forges)
{
    static struct decoder decoder;
    static struct plugin_choice choice;
    static uint8_t row[SIDE * SIDE * 3], plain[SIDE * SIDE * 3];
    struct view view = {.kind = VIEW_TRAIN};

    if (!decoder.state) {
        FUZZ_CHECK(plugin_choose("decoder", decoder_registry,
                                 "jpeg:size=16,max-pixels=1m,engine=own,min-area=0.02",
                                 &choice) == 0);
        FUZZ_CHECK(decoder_open(&decoder, &choice) == 0);
    }
    uint8_t *hint = fuzz_exact(bytes, hint_bytes),
            *image = fuzz_exact(bytes + hint_bytes, count - hint_bytes);
    struct decode_source source = {
        .bytes = image, .length = count - hint_bytes, .layout = SAMPLE_ENCODED};
    if (count >= sizeof view.seed)
        memcpy(&view.seed, bytes + count - sizeof view.seed, sizeof view.seed);
    memset(plain, 0, sizeof plain);
    memset(row, 0, sizeof row);
    const int verdict = decoder_decode(&decoder, &source, &view, plain);
    if (forges)
        seal_points(hint, hint_bytes, image, source.length);
    source.hint = hint;
    source.hint_bytes = hint_bytes;
    const int code = decoder_decode(&decoder, &source, &view, row);
    FUZZ_CHECK(code == 0 || code == DECODE_DAMAGED || code == -EBADMSG || code == -ENOMEM);
    FUZZ_CHECK(forges || (code == verdict && (code || memcmp(row, plain, sizeof row) == 0)));
    free(hint);
    free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count < 2)
        return 0;
    const size_t rest = count - 2, hint_bytes = bytes[1] < rest ? bytes[1] : rest;
    if (bytes[0] & 1)
        try_image(bytes + 2, rest, hint_bytes, bytes[0] & 2);
    else
        try_file(bytes + 2, rest, bytes[0] & 2);
    return 0;
}
