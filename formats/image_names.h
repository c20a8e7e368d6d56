/* SPDX-License-Identifier: Apache-2.0
 *
 * image_names: what an extension says about a file: an image of a kind that is read, of one that
 * other loaders read and this program does not, or something else. Pure.
 */
#ifndef IOBENCH_FORMATS_IMAGE_NAMES_H
#define IOBENCH_FORMATS_IMAGE_NAMES_H

enum image_name { IMAGE_NAME_NONE, IMAGE_NAME_READ, IMAGE_NAME_UNREAD };

/* extension: without its dot, of any case. */
enum image_name image_name_of(const char *extension);
/* By what follows the last dot of name. */
enum image_name image_name_of_file(const char *name);

#endif
