/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/foreign_format.h"

#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { BETON_FIELDS_MAX = 64, ARROW_SCHEMA_MAX = 1 << 24 };

struct kind {
    size_t at;
    const char *start;
    size_t bytes;
    const char *title, *advice;
};

static const struct kind kinds[] = {
    {0, "PAR1", 4, "Parquet", "export its images to files or TFRecord"},
    {0, "ARROW1", 6, "Arrow", "export its images to files or TFRecord"},
    {0, "\x89HDF\r\n\x1a\n", 8, "HDF5", "export its images to files"},
    {512, "\x89HDF\r\n\x1a\n", 8, "HDF5", "export its images to files"}, /* as MATLAB begins it */
    {0, "\x93NUMPY", 6, "an npy array", "write its images to files"},
    {0, "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", 8, "ArrayRecord or Riegeli",
     "write the records as TFRecord, which holds the same Examples"},
};

/* What pack may read, by libarchive. */
static const struct kind zip = {0, "PK\x03\x04", 4, "a zip archive or npz",
                                "unpack it, write arrays to image files"};
static const char to_unpack[] = "unpack a tar, name the --format of a shard";
static const struct kind archives[] = {
    {0, "\x1f\x8b", 2, "compressed by gzip", to_unpack},
    {0, "\xfd\x37zXZ\0", 6, "compressed by xz", to_unpack},
    {0, "BZh", 3, "compressed by bzip2", to_unpack},
    {0, "\x28\xb5\x2f\xfd", 4, "compressed by zstd", to_unpack},
    {0, "7z\xbc\xaf\x27\x1c", 6, "a 7z archive", "unpack it"},
};

static const struct kind beton = {.title = "a .beton file of FFCV",
                                  .advice = "pack the images that it was written from"};
static const struct kind arrow_stream = {.title = "an Arrow stream (Hugging Face datasets)",
                                         .advice = "export its images to files or TFRecord"};
static const struct kind pickle = {.title = "a pickled Python object",
                                   .advice = "let Python write its images to files"};

static bool is_kind(const struct kind *kind, const uint8_t *head, size_t bytes)
{
    return bytes >= kind->at + kind->bytes &&
           memcmp(head + kind->at, kind->start, kind->bytes) == 0;
}

static const struct kind *kind_of(const uint8_t *head, size_t bytes)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (is_kind(&kinds[i], head, bytes))
            return &kinds[i];
    if (bytes >= 24) {
        /* FFCV's header has no magic: version 2, fields, page size, samples, allocation table. */
        const uint32_t first = bytes_le32(head), version = first & 0xffff, fields = first >> 16;
        const uint32_t page = bytes_le32(head + 4);
        if (version == 2 && fields > 0 && fields <= BETON_FIELDS_MAX && page >= 4096 &&
            (page & (page - 1)) == 0 && bytes_le64(head + 16) % page == 0)
            return &beton;
    }
    /* A continuation marker, then the length of the schema. */
    if (bytes >= 16 && bytes_le32(head) == UINT32_MAX && bytes_le32(head + 4) % 8 == 0 &&
        bytes_le32(head + 4) > 0 && bytes_le32(head + 4) < ARROW_SCHEMA_MAX)
        return &arrow_stream;
    /* Protocols 2 to 5, then an opcode: a frame, a container, or a string. */
    if (bytes > 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 && head[2] &&
        strchr("\x95}](cXUBC\x8c\x8e", head[2]))
        return &pickle;
    return NULL;
}

static int refuse_archive(const char *path, const struct kind *kind)
{
    return fail(ENOTSUP,
                "%s%s%s: images in an archive are read by 'iobench pack' alone, if built with "
                "libarchive (libarchive-dev); else %s",
                path, *path ? ": " : "", kind->title, kind->advice);
}

int foreign_format_refuse(const char *path, const uint8_t *head, size_t bytes)
{
    const struct kind *kind = kind_of(head, bytes);

    if (is_kind(&zip, head, bytes))
        return refuse_archive(path, &zip);
    return kind
               ? fail(ENOTSUP,
                      "%s%s%s, which iobench does not read; %s ('iobench pack' makes a data set of "
                      "image files)",
                      path, *path ? ": " : "", kind->title, kind->advice)
               : 0;
}

int foreign_format_refuse_archive(const char *path, const uint8_t *head, size_t bytes)
{
    for (size_t i = 0; i < sizeof archives / sizeof archives[0]; i++)
        if (is_kind(&archives[i], head, bytes))
            return refuse_archive(path, &archives[i]);
    return 0;
}
