/* SPDX-License-Identifier: Apache-2.0
 *
 * image_names: classify files by extension: an image that this program reads, one that only other
 * loaders read, or something else; and which files of a WebDataset sample are its image or its
 * label. Pure, any thread; a label in JSON allocates. */
#ifndef IOBENCH_FORMATS_IMAGE_NAMES_H
#define IOBENCH_FORMATS_IMAGE_NAMES_H

#include "base/sample.h"

#include <stdbool.h>
#include <stddef.h>

enum image_name { IMAGE_NAME_NONE, IMAGE_NAME_READ, IMAGE_NAME_UNREAD };

/* By the part after the last dot of name, in any case. */
enum image_name image_name_of_file(const char *name);
bool image_name_is_read(const char *name);
/* Does a longer name end so, in any case? end: with its dot. */
bool image_name_ends(const char *name, const char *end);

/* ---- members of a WebDataset sample, by their names in an archive ----
 *
 * The key of a sample is the path up to the first dot of its last component; the rest is the
 * extension. Files without an extension or named like __this__ belong to no sample (webdataset,
 * tariterators.py). */

/* Which members; NULL: the usual ones. */
struct tar_members {
    const char *image; /* extension */
    const char *label; /* key in .json files */
};

/* Return the extension, and the length of the key before its dot. NULL if the file belongs to no
 * sample. */
const char *tar_members_split(const char *name, size_t *key_bytes);

/* The highest one of a sample is its image, the first of several. */
enum tar_member_rank {
    TAR_NO_IMAGE,
    TAR_IMAGE_OF_PARTS, /* .left.jpg */
    TAR_PLAIN_IMAGE,    /* .jpg, or the extension chosen */
};
enum tar_member_rank tar_members_rank(const struct tar_members *members, const char *extension);

/* Return whether a file of this extension makes its key a sample, which must have an image: it
 * names an image of any kind, or a class. */
bool tar_members_tell(const char *extension);

/* Return whether a file of this extension may hold the label. */
bool tar_members_may_label(const char *extension);

/* Take the label of such a file. A .cls file counts more than a .json file. Returns 0, or -EBADMSG
 * with a reason: damaged JSON. */
int tar_members_label(const struct tar_members *members, const char *extension, const char *text,
                      size_t bytes, struct sample *sample);

#endif
