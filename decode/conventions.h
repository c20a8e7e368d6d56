/* SPDX-License-Identifier: Apache-2.0
 *
 * conventions: what other loaders do by default between the file and the row: which boxes they
 * draw, with which filter they resize, and whether they turn images upright. docs/decode.md has the
 * table and the measured differences. Pure.
 */
#ifndef IOBENCH_DECODE_CONVENTIONS_H
#define IOBENCH_DECODE_CONVENTIONS_H

#include "decode/view.h"
#include "kernels/resize.h"

struct convention {
    const struct view_rules *rules;
    enum resize_filter filter;
    bool scales;  /* reduces large boxes in the inverse DCT, which changes pixels slightly */
    bool upright; /* turns images as their EXIF orientation says */
};

enum { CONVENTION_COUNT = 6 };
extern const char *const convention_names[CONVENTION_COUNT + 1]; /* for jpeg:as=NAME */
extern const struct convention conventions[CONVENTION_COUNT];    /* in the same order */

#endif
