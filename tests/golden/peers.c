/* SPDX-License-Identifier: Apache-2.0
 *
 * Write a few samples in each format, for the reference tools to read back (peers.sh).
 * usage: peers FOLDER; to stdout, a line a record: format, path, number, label, CRC-32 and length
 * of the image, name or "-".
 */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/random.h"
#include "formats/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SAMPLES = 50, LARGEST = 3000 };

/* Noise that contains RecordIO's magic number at every alignment, some occurrences adjacent. */
static size_t make_image(uint8_t *image, uint32_t number)
{
    struct random random = random_start(number);
    size_t bytes = number == 0 ? 0 : 1 + random_below(&random, LARGEST);

    for (size_t i = 0; i < bytes; i++)
        image[i] = (uint8_t)random_next(&random);
    for (size_t at = number % 5; at + 4 <= bytes; at += 4 + random_below(&random, 300))
        bytes_put_le32(image + at, 0xced7230a);
    return bytes;
}

struct set {
    const char *format, *path;
    bool names;     /* the tool reads names back unchanged */
    uint32_t first; /* first number: 0 has an empty image, which some formats refuse */
};

static const struct set sets[] = {
    {"recordio", "train.rec", false, 0},
    {"shards:idx=yes", "train-00000-of-00001", true, 0},
    {"shards:compression=gzip", "gzip.tfrecord", true, 0},
    {"shards:compression=zlib", "zlib.tfrecord", true, 0},
    {"tar", "train-000000.tar", false, 1},
    {"lmdb:datum", "datum/data.mdb", true, 1},
    {"lmdb:tensors", "tensors/data.mdb", true, 1},
};

static int append_all(struct format_writer *writer, const char *format, const struct set *set)
{
    uint8_t image[LARGEST];
    char text[32];
    int code = 0;

    for (uint32_t i = set->first; code == 0 && i < SAMPLES; i++) {
        snprintf(text, sizeof text, "picture-%u.JPEG", i);
        struct sample sample = {.image = image,
                                .image_bytes = make_image(image, i),
                                .label = (int32_t)(i * 20),
                                .id = i == 7 ? 0xced7230a : i,
                                .name = text,
                                .name_bytes = strlen(text)};
        code = format_writer_append(writer, &sample);
        printf("%s %s %u %d %08lx %zu %s\n", format, set->path, i - set->first, sample.label,
               crc32(0, image, (unsigned)sample.image_bytes), sample.image_bytes,
               set->names ? text : "-");
    }
    return code;
}

static int write_set(const char *folder, const struct set *set)
{
    struct plugin_choice format;
    struct format_writer writer;
    char *path = file_join(folder, set->path);
    int code = path ? plugin_choose("format", format_registry, set->format, &format) : -1;

    if (code) {
        free(path);
        return code;
    }
    char *slash = strrchr(path, '/');
    *slash = '\0';
    code = folder_make_path(path);
    *slash = '/';
    if (code == 0)
        code = format_writer_open(&writer, &format, path);
    else
        writer = (struct format_writer){0};
    bool absent = code == -ENOTSUP; /* the library is not in this build */
    if (code == 0)
        code = append_all(&writer, format.plugin->name, set);
    int closed = format_writer_close(&writer, code == 0);
    plugin_release(&format);
    free(path);
    return absent ? 0 : code ? code : closed;
}

int main(int argc, char **argv)
{
    int code = argc == 2 ? 0 : fail(2, "usage: peers FOLDER");

    for (size_t i = 0; code == 0 && i < sizeof sets / sizeof sets[0]; i++)
        code = write_set(argv[1], &sets[i]);
    if (code)
        fprintf(stderr, "%s\n", fail_reason());
    return code ? 1 : 0;
}
