/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/tar_write.h"

#include "base/fail.h"
#include "base/file.h"
#include "dataset/catalog.h"
#include "base/image_header.h"
#include "formats/tar_walk.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 100,
    PREFIX_OFFSET = 345,
    PREFIX_BYTES = 155,
    NAME_LIMIT = TAR_WRITE_KEY_BYTES + 8, /* including an extension */
};

int tar_write_open(void *state, const void *settings, const char *path)
{
    struct tar_write *write = state;

    (void)settings;
    return sink_open(&write->sink, path);
}

/* ---- headers ---- */

/* Write name into the header's two fields. Returns false if it does not fit. */
static bool put_name(char *block, const char *name)
{
    size_t length = strlen(name);

    if (length <= NAME_BYTES) {
        memcpy(block, name, length);
        return true;
    }
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t before = (size_t)(slash - name), after = length - before - 1;
        if (before > 0 && before <= PREFIX_BYTES && after > 0 && after <= NAME_BYTES) {
            memcpy(block + PREFIX_OFFSET, name, before);
            memcpy(block, slash + 1, after);
            return true;
        }
    }
    return false;
}

static int write_header(struct tar_write *write, const char *name, char type, uint64_t bytes)
{
    char block[TAR_BLOCK_BYTES] = {0};
    unsigned sum = 0;

    if (!put_name(block, name))
        memcpy(block, name, NAME_BYTES); /* the pax header before it has the full name */
    memcpy(block + 100, "0000644", 8);
    memcpy(block + 108, "0000000", 8);
    memcpy(block + 116, "0000000", 8);
    snprintf(block + 124, 12, "%011llo", (unsigned long long)bytes);
    memcpy(block + 136, "00000000000", 12);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, "ustar\00000", 8); /* NUL, then version "00" */
    for (size_t i = 0; i < sizeof block; i++)
        sum += (uint8_t)block[i];
    snprintf(block + 148, 8, "%06o", sum); /* then NUL and a space */
    return sink_write(&write->sink, block, sizeof block);
}

static int write_padded(struct tar_write *write, const void *bytes, size_t count)
{
    static const uint8_t zeros[TAR_BLOCK_BYTES];
    int code = sink_write(&write->sink, bytes, count);

    return code ? code
                : sink_write(&write->sink, zeros,
                             (TAR_BLOCK_BYTES - count % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES);
}

/* The length of a pax line includes its own digits. */
static int write_pax(struct tar_write *write, const char *name)
{
    char line[NAME_LIMIT + 32];
    int rest = (int)(strlen(name) + strlen(" path=\n")), length = rest + 2;

    for (int digits; (digits = snprintf(NULL, 0, "%d", length)) + rest != length;)
        length = rest + digits;
    snprintf(line, sizeof line, "%d path=%s\n", length, name);
    int code = write_header(write, "PaxHeaders/path", 'x', (uint64_t)length);
    return code ? code : write_padded(write, line, (size_t)length);
}

static int write_file(struct tar_write *write, const char *extension, const void *bytes,
                      size_t count)
{
    char name[NAME_LIMIT], block[TAR_BLOCK_BYTES];
    int code = 0;

    snprintf(name, sizeof name, "%s.%s", write->key, extension);
    if (!put_name(block, name))
        code = write_pax(write, name);
    if (code == 0)
        code = write_header(write, name, '0', count);
    return code ? code : write_padded(write, bytes, count);
}

/* ---- samples ---- */

/* Does the name climb out of the folder in which an archive is extracted? */
static bool has_parent(const char *key)
{
    for (const char *at = key;; at++) {
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
        at = strchr(at, '/');
        if (!at)
            return false;
    }
}

/* Set the key to the name up to the first dot of its last component, without leading slashes.
 * Returns false if a reader would not accept the key. */
static bool take_key(char *key, const struct sample *sample)
{
    const char *name = sample->name;
    size_t bytes = sample->name_bytes;

    while (bytes > 0 && (*name == '/' || *name == '.')) {
        name++;
        bytes--;
    }
    const char *slash = bytes ? memrchr(name, '/', bytes) : NULL;
    const char *base = slash ? slash + 1 : name;
    const char *dot = bytes ? memchr(base, '.', bytes - (size_t)(base - name)) : NULL;
    if (dot)
        bytes = (size_t)(dot - name);
    if (bytes == 0 || name + bytes == base || bytes > TAR_WRITE_KEY_BYTES - 24 ||
        memchr(name, '\0', bytes) || (bytes >= 2 && memcmp(name, "__", 2) == 0))
        return false;
    memcpy(key, name, bytes);
    key[bytes] = '\0';
    return !has_parent(key);
}

static int make_key(struct tar_write *write, const struct sample *sample)
{
    unsigned long long number = write->records++;

    if (!take_key(write->key, sample))
        snprintf(write->key, sizeof write->key, "%08llu", number);
    const size_t length = strlen(write->key);
    int added = key_set_add(&write->keys, write->key);
    for (; added == 0; added = key_set_add(&write->keys, write->key))
        snprintf(write->key + length, sizeof write->key - length, "_%llu", number++);
    return added < 0 ? added : 0;
}

/* Write in the order of WebDataset's own writer: class, then image. */
int tar_write_append(void *state, const struct sample *sample)
{
    struct tar_write *write = state;
    char text[16];

    if (sample->encoding != SAMPLE_ENCODED || sample->image_bytes == 0)
        return fail(EINVAL, "%s: tar shards hold encoded images, not bare pixels",
                    write->sink.draft.path);
    if (sample->image_bytes > CATALOG_RECORD_BYTES_MAX)
        return fail(EFBIG, "%s: an image of %zu bytes is too large", write->sink.draft.path,
                    sample->image_bytes);
    int code = make_key(write, sample);
    if (code == 0 && sample->label >= 0) {
        int length = snprintf(text, sizeof text, "%d", sample->label);
        code = write_file(write, "cls", text, (size_t)length);
    }
    return code ? code
                : write_file(write, image_extension(sample->image, sample->image_bytes),
                             sample->image, sample->image_bytes);
}

int tar_write_close(void *state, bool commit)
{
    static const uint8_t end[2 * TAR_BLOCK_BYTES];
    struct tar_write *write = state;
    int code = commit ? sink_write(&write->sink, end, sizeof end) : 0;
    int closed = sink_close(&write->sink, commit && code == 0);

    key_set_release(&write->keys);
    return code ? code : closed;
}

int tar_write_path(const char *folder, uint32_t shard, uint32_t shards, char **path)
{
    if (shards == 0)
        return 0;
    *path = file_format_path("%s/train-%06u.tar", folder, shard);
    return *path ? 0 : -ENOMEM;
}
