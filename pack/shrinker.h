/* SPDX-License-Identifier: Apache-2.0
 *
 * shrinker: makes images smaller and encodes them again as JPEGs, for `pack --side`. One thread.
 * Private to pack.
 */
#ifndef IOBENCH_PACK_SHRINKER_H
#define IOBENCH_PACK_SHRINKER_H

#include "dataset/sample.h"
#include "decode/decoder.h"

struct shrinker {
    struct plugin_choice choice;
    struct decoder decoder;
    uint8_t *pixels;
    size_t capacity;
    uint32_t side; /* 0: closed, or nothing to do */
    int quality;
};

/* side: of the shorter side of the result, in pixels. Close in either case. Returns 0 or a negative
 * errno with a reason. */
int shrinker_open(struct shrinker *shrinker, uint32_t side, int quality);
void shrinker_close(struct shrinker *shrinker);

/* Encode the sample's image into *jpeg, as image_to_jpeg() does, if its shorter side is longer than
 * `side`, and make it the sample's image. Returns 1; 0 if the image is small enough; or a negative
 * errno: -EBADMSG for a damaged image. */
int shrinker_apply(struct shrinker *shrinker, struct sample *sample, void **jpeg, size_t *capacity);

#endif
