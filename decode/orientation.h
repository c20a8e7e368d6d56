/* SPDX-License-Identifier: Apache-2.0
 *
 * orientation: how a camera says that its image is to be turned: tag 0x0112 of EXIF. Treats input
 * as hostile; pure.
 */
#ifndef IOBENCH_DECODE_ORIENTATION_H
#define IOBENCH_DECODE_ORIENTATION_H

#include "decode/view.h"

#include <stddef.h>
#include <stdint.h>

enum { ORIENTATION_UPRIGHT = 1 };

/* Return the orientation of a JPEG, 1 to 8; 1 if it has none or a wrong one. */
unsigned orientation_of_jpeg(const void *jpeg, size_t bytes);

/* Do width and height change places? */
bool orientation_swaps(unsigned orientation);

/* Return the box of the stored width x height image that shows `box` of the upright one. */
struct view_box orientation_stored_box(unsigned orientation, const struct view_box *box,
                                       uint32_t width, uint32_t height);

/* Turn side x side RGB pixels of the stored image upright, then mirror them. */
void orientation_turn(unsigned orientation, bool mirror, uint32_t side, const uint8_t *stored,
                      uint8_t *upright);

#endif
