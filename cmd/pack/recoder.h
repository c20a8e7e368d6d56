/* SPDX-License-Identifier: Apache-2.0
 *
 * recoder: makes images cheaper to decode, for `pack --side` and `--raw`: smaller, and JPEGs or
 * bare pixels (PPM). One thread. Private to pack.
 */
#ifndef IOBENCH_CMD_PACK_RECODER_H
#define IOBENCH_CMD_PACK_RECODER_H

#include "base/sample.h"
#include "decode/decoder.h"

struct recode {
    uint32_t side; /* shrink larger images to this shorter side; 0: leave their size */
    bool raw;      /* all images become pixels; else only smaller ones are encoded again */
    int quality;   /* of JPEGs, 1 to 100 */
};

struct recoder {
    struct plugin_choice choice;
    struct decoder decoder;
    uint8_t *pixels;
    size_t capacity;
    struct recode recode;
};

/* Close in either case. Returns 0 or a negative errno with a reason. */
int recoder_open(struct recoder *recoder, const struct recode *recode);
void recoder_close(struct recoder *recoder);

/* If the sample's image is to be changed, make the new one in *image, a malloc()ed buffer of
 * *capacity bytes that is replaced if too small, and the sample's image. Returns 1; 0 if it stays
 * as it is; or a negative errno: -EBADMSG for a damaged image. */
int recoder_apply(struct recoder *recoder, struct sample *sample, void **image, size_t *capacity);

/* Compute how many bytes of pixels the image will have. Returns 0 or a negative errno. */
int recode_pixel_bytes(const struct recode *recode, const struct sample *sample, uint64_t *bytes);

/* Encode a raw sample into *jpeg, a malloc()ed buffer of *capacity bytes that is replaced if too
 * small. quality: 1 to 100. Stateless; any thread. Returns 0 or a negative errno. */
int image_to_jpeg(const struct sample *raw, int quality, void **jpeg, size_t *capacity,
                  size_t *count);

#endif
