/* SPDX-License-Identifier: Apache-2.0
 *
 * IDX files of MNIST and Fashion-MNIST ("train-images-idx3-ubyte.gz" with its labels in
 * "train-labels-idx1-ubyte.gz"), as JPEGs. Format: u32 big-endian 0x00000803 (bytes, three
 * dimensions), count, rows, columns, then the pixels; labels: 0x00000801, count, the labels. The
 * whole set is kept in memory, since gzip files cannot be read in another order.
 */
#include "cmd/pack/plugins.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/random.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { IDX_IMAGES = 0x803, IDX_LABELS = 0x801, IDX_PAIRS = 16, IDX_SIDE_LIMIT = 16384 };
enum { IDX_READ_BYTES = 1 << 24, NAME_BYTES = 64 };
#define IDX_BYTES_LIMIT (UINT64_C(8) << 30)

/* One file of images with its labels. */
struct idx_pair {
    uint8_t *pixels, *labels;
    uint64_t first, count;
    uint32_t rows, columns;
    char name[32]; /* "train" */
};

struct idx {
    struct idx_pair pairs[IDX_PAIRS];
    uint32_t pair_count;
    uint64_t count;
    int quality;
};

static bool is_images(const char *name)
{
    return strstr(name, "-images-idx3-ubyte") != NULL;
}

/* NULL with a reason. */
static gzFile open_gz(const char *path)
{
    int fd = file_open(path, O_RDONLY, NULL);
    gzFile file = fd < 0 ? NULL : gzdopen(fd, "rb");

    if (fd >= 0 && !file) {
        close(fd);
        fail(ENOMEM, "%s: out of memory", path);
    }
    return file;
}

static int idx_detect(const char *path)
{
    uint8_t head[4] = {0};

    if (!store_is_local(path))
        return 0;
    if (file_is_folder(path)) {
        struct folder_names names;
        bool sure = false;
        folder_names_of(&names, path);
        for (size_t i = 0; i < names.count; i++)
            sure |= is_images(names.list[i]);
        folder_names_release(&names);
        return sure ? 90 : 0;
    }
    gzFile file = open_gz(path);
    int got = file ? gzread(file, head, sizeof head) : 0;
    if (file)
        gzclose(file);
    return got == sizeof head && bytes_be32(head) == IDX_IMAGES ? 90 : 0;
}

static int gz_failed(gzFile file, const char *path)
{
    int code;
    const char *text = gzerror(file, &code);

    if (code == Z_ERRNO)
        return fail(errno, "%s: cannot read: %s", path, fail_errno_text(errno));
    return fail(EBADMSG, "%s: %s", path, code == Z_OK || !*text ? "the file ends early" : text);
}

/* head: magic, then dimensions. */
static int read_file(const char *path, uint32_t magic, uint32_t *sizes, uint32_t dimensions,
                     uint8_t **bytes)
{
    uint8_t head[16];
    uint64_t product = 1;
    int code = 0, head_bytes = (int)(4 + 4 * dimensions);
    gzFile file = open_gz(path);

    if (!file)
        return -EINVAL;
    if (gzread(file, head, (unsigned)head_bytes) != head_bytes)
        code = gz_failed(file, path);
    else if (bytes_be32(head) != magic)
        code = fail(EBADMSG, "%s: offset 0: magic number 0x%08x, but IDX files of %s have 0x%08x",
                    path, bytes_be32(head), magic == IDX_IMAGES ? "images" : "labels", magic);
    for (uint32_t i = 0; code == 0 && i < dimensions; i++) {
        sizes[i] = bytes_be32(head + 4 + 4 * i);
        product *= sizes[i];
        if (sizes[i] == 0 || (i > 0 && sizes[i] > IDX_SIDE_LIMIT) || product > IDX_BYTES_LIMIT)
            code =
                fail(EBADMSG, "%s: offset %u: impossible dimension %u", path, 4 + 4 * i, sizes[i]);
    }
    /* Memory grows with the data actually read: a header alone cannot demand gigabytes. */
    for (uint64_t used = 0, step; code == 0 && used < product; used += step) {
        step = product - used < IDX_READ_BYTES ? product - used : IDX_READ_BYTES;
        uint8_t *larger = realloc(*bytes, used + step);
        if (!larger)
            code = fail(ENOMEM, "%s: out of memory", path);
        else {
            *bytes = larger;
            if (gzread(file, larger + used, (unsigned)step) != (int)step)
                code = gz_failed(file, path);
        }
    }
    gzclose(file);
    return code;
}

static int add_pair(struct idx *idx, const char *images, struct source_traits *traits)
{
    uint32_t sizes[3], label_count;
    struct store_status status;

    if (idx->pair_count == IDX_PAIRS)
        return fail(E2BIG, "%s: more than %d files of images", images, IDX_PAIRS);
    struct idx_pair *pair = &idx->pairs[idx->pair_count++];
    /* ".../train-images-idx3-ubyte.gz" -> ".../train-labels-idx1-ubyte.gz" */
    const char *part = strstr(images, "-images-idx3-");
    char *labels = NULL;
    /* the last one: a folder may have that name, too */
    for (const char *next = part; next; next = strstr(next + 1, "-images-idx3-"))
        part = next;
    if (!part)
        fail(EINVAL, "%s: no '-images-idx3-' in its name, so its labels cannot be found", images);
    else
        labels = file_format_path("%.*s-labels-idx1-%s", (int)(part - images), images, part + 13);
    if (!labels)
        return -EINVAL;
    int code = read_file(images, IDX_IMAGES, sizes, 3, &pair->pixels);
    if (code == 0)
        code = read_file(labels, IDX_LABELS, &label_count, 1, &pair->labels);
    if (code == 0 && label_count != sizes[0])
        code = fail(EBADMSG, "%s: has %u labels, %s has %u images", labels, label_count, images,
                    sizes[0]);
    free(labels);
    if (code)
        return code;
    const char *base = strrchr(images, '/');
    base = base ? base + 1 : images;
    snprintf(pair->name, sizeof pair->name, "%.*s", (int)strcspn(base, "-"), base);
    pair->rows = sizes[1];
    pair->columns = sizes[2];
    pair->first = idx->count;
    pair->count = sizes[0];
    idx->count += pair->count;
    /* Estimate for small grey JPEGs: 600 bytes of tables plus a third of the pixels. */
    traits->image_bytes += pair->count * (600 + (uint64_t)pair->rows * pair->columns / 3);
    if (store_stat(images, &status) == 0)
        traits->fingerprint =
            random_hash(traits->fingerprint, status.bytes, (uint64_t)status.mtime_ns);
    return 0;
}

static int idx_open(void *state, const void *settings, const char *path,
                    const struct source_config *config, struct source_traits *traits)
{
    struct idx *idx = state;
    struct folder_names names;
    int code = 0;

    (void)settings;
    idx->quality = (int)config->quality;
    if (!store_is_local(path))
        return fail(ENOTSUP, "%s: zlib reads local files only: copy it here first", path);
    if (!file_is_folder(path)) {
        code = add_pair(idx, path, traits);
    } else {
        code = folder_names_of(&names, path);
        for (size_t i = 0; code == 0 && i < names.count; i++) {
            if (!is_images(names.list[i]))
                continue;
            char *images = file_join(path, names.list[i]);
            code = images ? add_pair(idx, images, traits) : -ENOMEM;
            free(images);
        }
        folder_names_release(&names);
    }
    traits->count = idx->count;
    traits->encodes = true;
    snprintf(traits->what, sizeof traits->what, "idx, %u file%s of images", idx->pair_count,
             idx->pair_count == 1 ? "" : "s");
    return code;
}

static void idx_close(void *state)
{
    struct idx *idx = state;

    for (uint32_t i = 0; i < idx->pair_count; i++) {
        free(idx->pairs[i].pixels);
        free(idx->pairs[i].labels);
    }
}

static int idx_read(void *state, void *cursor, uint64_t number, struct source_buffer *slot,
                    struct sample *sample)
{
    struct idx *idx = state;
    const struct idx_pair *pair = idx->pairs;

    (void)cursor;
    assert(number < idx->count);
    while (number >= pair->first + pair->count)
        pair++;
    uint64_t at = number - pair->first, pixels = (uint64_t)pair->rows * pair->columns;
    const struct sample raw = {.image = pair->pixels + at * pixels,
                               .image_bytes = pixels,
                               .encoding = SAMPLE_RAW_HWC,
                               .width = pair->columns,
                               .height = pair->rows,
                               .channels = 1};
    int code = source_reserve(&slot->scratch, &slot->scratch_capacity, NAME_BYTES);
    if (code == 0)
        code = image_to_jpeg(&raw, idx->quality, &slot->record, &slot->record_capacity,
                             &sample->image_bytes);
    if (code)
        return code;
    sample->image = slot->record;
    sample->encoding = SAMPLE_ENCODED;
    sample->label = pair->labels[at];
    sample->id = number;
    sample->name = slot->scratch;
    sample->name_bytes = (size_t)snprintf(slot->scratch, NAME_BYTES, "%s-%06llu.jpg", pair->name,
                                          (unsigned long long)at);
    return 0;
}

const struct source_ops source_mnist = {
    .plugin = {.name = "idx",
               .summary = "IDX files of MNIST or Fashion-MNIST, as JPEGs",
               .state_size = sizeof(struct idx)},
    .detect = idx_detect,
    .open = idx_open,
    .close = idx_close,
    .read = idx_read,
};
