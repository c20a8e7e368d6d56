/* SPDX-License-Identifier: Apache-2.0
 * The manifests of pack. Listed files are below the folder and are found; rewriting gives the same
 * list. */
#include "tests/fuzz/fuzz_text.h"

#include "base/fail.h"
#include "dataset/manifest.h"

static void write_block(FILE *stream, const struct manifest *manifest, uint32_t shard)
{
    struct text_stream block;

    FUZZ_CHECK(manifest_block_begin(&block, shard) == 0);
    for (size_t i = 0; i < manifest->file_count; i++) {
        if (manifest->files[i].shard == shard)
            FUZZ_CHECK(manifest_block_add(&block, &manifest->files[i]) == 0);
    }
    char *text = manifest_block_end(&block, shard);
    FUZZ_CHECK(text);
    fputs(text, stream);
    free(text);
}

static void check_same(const struct manifest *a, const struct manifest *b)
{
    FUZZ_CHECK(a->plan == b->plan && a->shards == b->shards && a->finished == b->finished &&
               a->file_count == b->file_count && strcmp(a->suffix, b->suffix) == 0);
    for (size_t i = 0; i < a->file_count; i++) {
        const struct manifest_file *x = &a->files[i], *y = &b->files[i];
        FUZZ_CHECK(strcmp(x->path, y->path) == 0);
    }
}

static void write_again(const struct manifest *manifest)
{
    char *text = NULL, *head = manifest_head(manifest->plan, manifest->suffix, manifest->shards);
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    struct manifest again;

    FUZZ_CHECK(head && stream);
    fputs(head, stream);
    for (uint32_t i = 0; i < manifest->shards; i++)
        if (manifest->done[i])
            write_block(stream, manifest, i);
    FUZZ_CHECK(fclose(stream) == 0);
    FUZZ_CHECK(manifest_parse(&again, text, bytes, "x") == 0);
    check_same(manifest, &again);
    manifest_release(&again);
    free(head);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = fuzz_text(bytes, count);
    const char *digits = strstr(text, "shards ");
    struct manifest manifest;

    /* A long table of shards takes as long as a hundred short ones and covers nothing new. */
    if (digits && strspn(digits + 7, "0123456789") > 4 && count > 128) {
        free(text);
        return 0;
    }
    fail_clear();
    int code = manifest_parse(&manifest, text, count, "x");
    FUZZ_CHECK(code == 0 || *fail_reason() || !memchr(text, '\n', count));
    for (size_t i = 0; code == 0 && i < manifest.file_count; i++) {
        const char *path = manifest.files[i].path;
        FUZZ_CHECK(*path && *path != '/' && strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
    }
    if (code == 0 && manifest.shards <= 64)
        write_again(&manifest);
    manifest_release(&manifest);
    free(text);
    return 0;
}
