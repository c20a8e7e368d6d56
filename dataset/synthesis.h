/* SPDX-License-Identifier: Apache-2.0
 *
 * synthesis: labelled JPEG images that storage and decoders cannot tell from photographs.
 *
 * Sizes in pixels and bytes are spread like those of ImageNet (500x375 typical; bytes log-normal);
 * the picture is a dead-leaves model (occluding shapes of all sizes, Lee, Mumford and Huang 2001)
 * with light, texture of equal contrast in every octave (an amplitude spectrum near 1/f) and a
 * pattern and hue that tell the class, so that a network can learn it. Baseline, 4:2:0.
 *
 * Image index of seed is always the same bytes: integer arithmetic only, and libjpeg-turbo's exact
 * forward DCT. No two are alike and nothing but the headers repeats, so storage that compresses or
 * deduplicates gains nothing. One state per thread; nothing is allocated after the opening.
 */
#ifndef IOBENCH_DATASET_SYNTHESIS_H
#define IOBENCH_DATASET_SYNTHESIS_H

#include "dataset/sample.h"

struct synthesis_settings {
    uint64_t seed;
    uint32_t classes;    /* 1 and more; labels are spread evenly */
    uint32_t mean_bytes; /* of a JPEG: 4000 to 4000000; pixels grow with it */
};

extern const struct synthesis_settings synthesis_imagenet; /* seed 1, 1000 classes, 110 kB */

struct synthesis;

/* NULL with a reason. */
struct synthesis *synthesis_open(const struct synthesis_settings *settings);
void synthesis_close(struct synthesis *synthesis); /* NULL is fine */

/* The label of image index, without making it. */
int32_t synthesis_label(const struct synthesis_settings *settings, uint64_t index);

/* Make image index. What sample borrows is valid until the next call. 0, or -EIO with a reason. */
int synthesis_make(struct synthesis *synthesis, uint64_t index, struct sample *sample);

#endif
