/* SPDX-License-Identifier: Apache-2.0
 *
 * apart: keeps results out of data sets. Any thread.
 */
#ifndef IOBENCH_FORMATS_APART_H
#define IOBENCH_FORMATS_APART_H

/* Return 0, or a negative errno with a reason if a new file of this path would become part of a
 * data set: of `set`, a path or NULL, or of one that was packed or indexed where it lies. */
int format_check_apart(const char *path, const char *set);

#endif
