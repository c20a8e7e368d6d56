/* SPDX-License-Identifier: Apache-2.0
 *
 * picture_mark: pictures that this program wrote say so at their end, in a way that their format
 * provides, so that it can tell them from other people's. Knows bytes only. Any thread.
 */
#ifndef IOBENCH_REPORT_PICTURE_MARK_H
#define IOBENCH_REPORT_PICTURE_MARK_H

#include <stdbool.h>
#include <stddef.h>

enum { PICTURE_MARK_REACH = 64 }; /* a mark is within the last bytes of its file */

struct picture_mark {
    const char *bytes;
    size_t length;
    size_t tail; /* bytes of the picture that follow the mark */
};

/* Return the mark of a PNG, a PDF or an SVG; of other texts an empty one. */
struct picture_mark picture_mark_for(const char *picture, size_t bytes);

/* Return whether the end of a file, at most PICTURE_MARK_REACH bytes, has a mark. */
bool picture_mark_is_in(const char *end, size_t bytes);

#endif
