/* SPDX-License-Identifier: Apache-2.0
 *
 * look: the options that all decoders of pixels have: which part of an image a row shows, as which
 * loader would draw it, and which images are refused. Pure.
 */
#ifndef IOBENCH_DECODE_LOOK_H
#define IOBENCH_DECODE_LOOK_H

#include "base/image_header.h"
#include "base/option.h"
#include "decode/view.h"
#include "kernels/resize.h"

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

/* Option rows for settings that hold a struct look_settings at offset `at`. */
#define LOOK_ROWS(at)                                                                             \
    {.name = "size",                                                                              \
     .type = OPTION_COUNT,                                                                        \
     .offset = (at) + offsetof(struct look_settings, size),                                       \
     .fallback = "224",                                                                           \
     .summary = "side of the output square in pixels",                                            \
     .minimum = 1,                                                                                \
     .maximum = 4096},                                                                            \
        {.name = "view",                                                                          \
         .type = OPTION_CHOICE,                                                                   \
         .offset = (at) + offsetof(struct look_settings, view),                                   \
         .fallback = "asked",                                                                     \
         .choices = look_view_names,                                                              \
         .summary = "random crop (train), centre crop (evaluate), all of the image without its "  \
                    "aspect ratio (whole), or as the job requests (asked)"},                      \
        {.name = "as",                                                                            \
         .type = OPTION_CHOICE,                                                                   \
         .offset = (at) + offsetof(struct look_settings, as),                                     \
         .fallback = "iobench",                                                                   \
         .choices = convention_names,                                                             \
         .summary = "whose random crops, filter and treatment of EXIF: docs/decode.md has the "   \
                    "table"},                                                                     \
        {.name = "min-area",                                                                      \
         .type = OPTION_REAL,                                                                     \
         .offset = (at) + offsetof(struct look_settings, min_area),                               \
         .fallback = "auto",                                                                      \
         .zero = "auto",                                                                          \
         .summary = "minimum area of a random crop, as a share of the image; auto: 0.05, or as "  \
                    "the named loader does",                                                      \
         .minimum = 0.001,                                                                        \
         .maximum = 1},                                                                           \
        {.name = "crop",                                                                          \
         .type = OPTION_REAL,                                                                     \
         .offset = (at) + offsetof(struct look_settings, crop),                                   \
         .fallback = "0.875",                                                                     \
         .summary = "side of the centre crop, as a share of the image's short side",              \
         .minimum = 0.001,                                                                        \
         .maximum = 1},                                                                           \
        {.name = "damaged",                                                                       \
         .type = OPTION_CHOICE,                                                                   \
         .offset = (at) + offsetof(struct look_settings, damaged),                                \
         .fallback = "refuse",                                                                    \
         .choices = look_damaged_names,                                                           \
         .summary = "truncated or corrupt images: refuse them, as PyTorch and TensorFlow do, or " \
                    "decode what is there and mark the run degraded"},                            \
        IMAGE_LIMITS_ROWS((at) + offsetof(struct look_settings, limits))

/* Return how boxes are drawn. */
struct view_rules look_rules(const struct look_settings *look);
/* Return what is shown of an image that the job wants to see as `asked`. */
struct view look_view(const struct look_settings *look, const struct view *asked);

#endif
