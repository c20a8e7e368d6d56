/* SPDX-License-Identifier: Apache-2.0
 *
 * synthesis: synthetic labelled JPEGs that storage and decoders cannot distinguish from
 * photographs.
 *
 * Sizes in pixels and bytes are distributed as in ImageNet (500x375 typical; bytes log-normal);
 * the picture is a dead-leaves model (occluding shapes of all sizes, Lee, Mumford and Huang 2001)
 * with light, texture of equal contrast in every octave (an amplitude spectrum near 1/f) and a
 * pattern and hue that encode the class, so that a network can learn it. Baseline, 4:2:0.
 *
 * Image index of seed is always the same bytes: integer arithmetic only, and libjpeg-turbo's exact
 * forward DCT. No two are alike and only the headers repeat, so compressing or deduplicating
 * storage gains nothing. One state per thread; no allocation after open.
 */
#ifndef IOBENCH_DATASET_SYNTHESIS_H
#define IOBENCH_DATASET_SYNTHESIS_H

#include "base/sample.h"

struct synthesis_settings {
    uint64_t seed;
    uint32_t classes;    /* at least 1; labels are uniform */
    uint32_t mean_bytes; /* of a JPEG: 4000 to 4000000; pixels grow with it */
};

extern const struct synthesis_settings synthesis_imagenet; /* seed 1, 1000 classes, 110 kB */

struct synthesis;

/* NULL with a reason. */
struct synthesis *synthesis_open(const struct synthesis_settings *settings);
void synthesis_close(struct synthesis *synthesis); /* NULL is fine */

/* Return the label of image index without generating it. */
int32_t synthesis_label(const struct synthesis_settings *settings, uint64_t index);

/* Generate image index. sample is valid until the next call. Returns 0, or -EIO with a reason. */
int synthesis_make(struct synthesis *synthesis, uint64_t index, struct sample *sample);

#endif
