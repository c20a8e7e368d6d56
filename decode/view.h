/* SPDX-License-Identifier: Apache-2.0
 *
 * view: the part of an image that a training step uses: random-resized crop and mirror for
 * training, centre crop for evaluation; as which loader would draw it, the options of all decoders
 * of pixels, and how a camera says that its image is to be turned (EXIF, which is hostile). Pure:
 * the same (seed, epoch, record) yields the same view.
 */
#ifndef IOBENCH_DECODE_VIEW_H
#define IOBENCH_DECODE_VIEW_H

#include "base/image_header.h"
#include "base/option.h"
#include "kernels/resize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum view_kind { VIEW_TRAIN, VIEW_EVALUATE, VIEW_WHOLE };

/* Made per record, before the size of its image is known. */
struct view {
    enum view_kind kind;
    uint64_t seed; /* random_hash(seed, epoch, record) */
    /* Size of the row, which is then made from the image as stored, neither turned upright nor
     * shrunk in the DCT. 0: a square, as the decoder was opened. */
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

/* ---- as other loaders draw, and the options ---- */

/* What other loaders do by default between the file and the row: which boxes they draw, with which
 * filter they resize, and whether they turn images upright. docs/decode.md has the table and the
 * measured differences. */
struct convention {
    const struct view_rules *rules;
    enum resize_filter filter;
    bool scales;  /* reduces large boxes in the inverse DCT, which changes pixels slightly */
    bool upright; /* turns images as their EXIF orientation says */
};

enum { CONVENTION_COUNT = 6 };
extern const char *const convention_names[CONVENTION_COUNT + 1]; /* for jpeg:as=NAME */
extern const struct convention conventions[CONVENTION_COUNT];    /* in the same order */

struct look_settings {
    uint64_t size;
    struct image_limits limits;
    double min_area, crop;
    int as, view, damaged;
};

enum { LOOK_REFUSES, LOOK_DECODES }; /* damaged images */

extern const char *const look_view_names[];
extern const char *const look_damaged_names[];

/* Option rows for settings that begin with a struct look_settings. */
#define LOOK_ROW(NAME, TYPE, FIELD, DEFAULT, SUMMARY, ...)                           \
    {                                                                                \
        .name = NAME, .type = TYPE, .offset = offsetof(struct look_settings, FIELD), \
        .fallback = DEFAULT, .summary = SUMMARY, __VA_ARGS__                         \
    }
#define LOOK_ROWS                                                                                  \
    LOOK_ROW("size", OPTION_COUNT, size, "224", "side of the output square in pixels",             \
             .minimum = 1, .maximum = 4096),                                                       \
        LOOK_ROW("view", OPTION_CHOICE, view, "asked",                                             \
                 "random crop (train), centre crop (evaluate), all of the image without its "      \
                 "aspect ratio (whole), or as the job requests (asked)",                           \
                 .choices = look_view_names),                                                      \
        LOOK_ROW("as", OPTION_CHOICE, as, "iobench",                                               \
                 "use the random crops, filter and EXIF treatment of this loader: docs/decode.md " \
                 "has the table",                                                                  \
                 .choices = convention_names),                                                     \
        LOOK_ROW("min-area", OPTION_REAL, min_area, "auto",                                        \
                 "minimum area of a random crop, as a share of the image; auto: 0.05, or as "      \
                 "the named loader does",                                                          \
                 .zero = "auto", .minimum = 0.001, .maximum = 1),                                  \
        LOOK_ROW("crop", OPTION_REAL, crop, "0.875",                                               \
                 "side of the centre crop, as a share of the image's short side",                  \
                 .minimum = 0.001, .maximum = 1),                                                  \
        LOOK_ROW("damaged", OPTION_CHOICE, damaged, "refuse",                                      \
                 "truncated or corrupt images: refuse them, as PyTorch and TensorFlow do, or "     \
                 "decode what is there and mark the run degraded",                                 \
                 .choices = look_damaged_names),                                                   \
        IMAGE_LIMITS_ROWS(offsetof(struct look_settings, limits))

/* Return how boxes are drawn. */
struct view_rules look_rules(const struct look_settings *look);
/* Return what is shown of an image that the job wants to see as `asked`. */
struct view look_view(const struct look_settings *look, const struct view *asked);

/* ---- the orientation of a camera: tag 0x0112 of EXIF ---- */

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
