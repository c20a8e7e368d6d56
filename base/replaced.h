/* SPDX-License-Identifier: Apache-2.0
 *
 * replaced: which files an output may replace: an empty one, or an older output of its kind, so
 * that a mistyped path destroys nothing. A kind is known by how a file begins; pictures, which are
 * other people's too, carry a mark at their end. Any thread.
 */
#ifndef IOBENCH_BASE_REPLACED_H
#define IOBENCH_BASE_REPLACED_H

#include <stddef.h>

/* Check that an output that begins with `text` may replace the file at path. Alike are JSON of
 * schemas of this program or with the same two first keys; PNG, PDF and SVG with a mark; other
 * files with the same first line, up to its second comma. Returns 0, also if there is no file,
 * -EEXIST with a reason, or another negative errno. */
int replaced_check(const char *path, const char *text, size_t bytes);

struct picture_mark {
    const char *bytes;
    size_t length;
    size_t tail; /* bytes of the picture that follow the mark */
};

/* Return the mark that a picture needs; that of other texts is empty. */
struct picture_mark replaced_mark(const char *picture, size_t bytes);

#endif
