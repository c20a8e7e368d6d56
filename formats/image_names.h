/* SPDX-License-Identifier: Apache-2.0
 *
 * image_names: classify files by extension: an image that this program reads, one that only other
 * loaders read, or something else. Pure. */
#ifndef IOBENCH_FORMATS_IMAGE_NAMES_H
#define IOBENCH_FORMATS_IMAGE_NAMES_H

#include <stdbool.h>

enum image_name { IMAGE_NAME_NONE, IMAGE_NAME_READ, IMAGE_NAME_UNREAD };

/* extension: without the dot, in any case. */
enum image_name image_name_of(const char *extension);
/* Like image_name_of(), for the part after the last dot of name. */
enum image_name image_name_of_file(const char *name);
bool image_name_is_read(const char *name);
/* Does a longer name end so, in any case? end: with its dot. */
bool image_name_ends(const char *name, const char *end);

#endif
