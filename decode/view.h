/* SPDX-License-Identifier: Apache-2.0
 *
 * view: the part of an image that a training step uses: random-resized crop and mirror for
 * training, centre crop for evaluation. Pure: the same (seed, epoch, record) yields the same view.
 */
#ifndef IOBENCH_DECODE_VIEW_H
#define IOBENCH_DECODE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

enum view_kind { VIEW_TRAIN, VIEW_EVALUATE, VIEW_WHOLE };

/* Made per record, before the size of its image is known. */
struct view {
    enum view_kind kind;
    uint64_t seed; /* random_hash(seed, epoch, record) */
    /* Of the row, which then is made from the image as stored, neither turned upright nor shrunk in
     * the DCT. 0: a square, as the decoder was opened. */
    uint32_t width, height;
};

/* Return the view of a record in an epoch (from 0) of training. */
struct view view_of_record(uint64_t seed, uint64_t epoch, uint64_t record);

/* The part of a width x height image that is resized to the output, in source pixels. */
struct view_box {
    double x, y, width, height;
    bool mirror;
};

/* What a row shows: a box of an image of this size. */
struct view_shown {
    struct view_box box;
    uint32_t width, height;
};

enum view_draws {
    VIEW_DRAWS_LOG_RATIO, /* area, and aspect ratio on a log scale */
    VIEW_DRAWS_RATIO,     /* area, and aspect ratio */
    VIEW_DRAWS_HEIGHT,    /* aspect ratio, then the height among those that give an allowed area */
};

/* Training: area 0.05..1 (min_area) and aspect 3/4..4/3, ten tries, else the centre (Inception).
 * Evaluation: the short side resized to resize_side, then the centre crop_side square. Whole: all
 * of the image, whatever its aspect ratio. */
struct view_rules {
    double min_area, max_area, min_aspect, max_aspect;
    double min_covered; /* smaller boxes are drawn again, as a share of the image */
    enum view_draws draws;
    unsigned tries;
    bool whole_else;   /* after these tries: the whole image, not the largest box at its centre */
    double crop_share; /* evaluation: crop side over resize side, 224/256 */
};

extern const struct view_rules view_rules_imagenet;

struct view_box view_box(const struct view *view, const struct view_rules *rules, uint32_t width,
                         uint32_t height);

#endif
