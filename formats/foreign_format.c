/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/foreign_format.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "dataset/store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 64, LOOKED_AT = 64, FOLDER_DEPTH = 2, BETON_FIELDS_MAX = 64 };

struct kind {
    const char *start;
    size_t bytes;
    const char *title, *advice;
};

static const struct kind kinds[] = {
    {"PAR1", 4, "Parquet", "export its images to files or TFRecord"},
    {"ARROW1", 6, "Arrow", "export its images to files or TFRecord"},
    {"\x89HDF\r\n\x1a\n", 8, "HDF5", "export its images to files"},
    {"PK\x03\x04", 4, "a zip archive or npz", "unpack it; arrays to image files"},
    {"\x93NUMPY", 6, "an npy array", "write its images to files"},
    {"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", 8, "ArrayRecord or Riegeli",
     "write the records as TFRecord, which holds the same Examples"},
};

static const struct kind beton = {"", 0, "a .beton file of FFCV",
                                  "pack the images that it was written from"};

/* FFCV's header has no magic: version 2, fields, page size, samples, allocation table. */
static bool is_beton(const uint8_t *head, size_t bytes)
{
    if (bytes < 24)
        return false;
    const uint32_t first = bytes_le32(head), version = first & 0xffff, fields = first >> 16;
    const uint32_t page = bytes_le32(head + 4);

    return version == 2 && fields > 0 && fields <= BETON_FIELDS_MAX && page >= 4096 &&
           (page & (page - 1)) == 0 && bytes_le64(head + 16) % page == 0;
}

static const struct kind *kind_of(const char *path)
{
    uint8_t head[HEAD_BYTES];
    const size_t bytes = store_peek(path, head, sizeof head);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (bytes >= kinds[i].bytes && memcmp(head, kinds[i].start, kinds[i].bytes) == 0)
            return &kinds[i];
    return is_beton(head, bytes) ? &beton : NULL;
}

static int check_file(const char *path)
{
    const struct kind *kind = kind_of(path);

    return kind
               ? fail(ENOTSUP,
                      "%s: %s, which iobench does not read; %s ('iobench pack' makes a data set of "
                      "image files)",
                      path, kind->title, kind->advice)
               : 0;
}

struct looking {
    const char *folder;
    int depth, left; /* files to look at */
};

static int check_folder(const char *path, int depth);

static int check_entry(void *context, const struct store_entry *entry)
{
    struct looking *looking = context;
    int code = 0;

    if (entry->name[0] == '.' || looking->left-- <= 0)
        return 0;
    char *path = file_join(looking->folder, entry->name);
    if (path && entry->kind == STORE_FILE)
        code = check_file(path);
    else if (path && entry->kind == STORE_FOLDER && looking->depth < FOLDER_DEPTH)
        code = check_folder(path, looking->depth + 1);
    free(path);
    return code;
}

static int check_folder(const char *path, int depth)
{
    struct looking looking = {.folder = path, .depth = depth, .left = LOOKED_AT};

    return store_list(path, check_entry, &looking) == -ENOTSUP ? -ENOTSUP : 0;
}

int foreign_format_check(const char *path)
{
    return store_is_folder(path) ? check_folder(path, 1) : check_file(path);
}
