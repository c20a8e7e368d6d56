/* SPDX-License-Identifier: Apache-2.0
 *
 * within: whether a path leads into a folder, by any name of either: so that what is written does
 * not become part of what is read. Any thread.
 */
#ifndef IOBENCH_DATASET_WITHIN_H
#define IOBENCH_DATASET_WITHIN_H

#include <stdbool.h>

/* Return whether both exist and are the same file or folder. */
bool within_is_same(const char *a, const char *b);

/* Return whether path is the folder or inside it, or would be: it need not exist. */
bool within_folder(const char *path, const char *folder);

#endif
