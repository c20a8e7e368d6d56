/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/view.h"

#include "base/bytes.h"
#include "base/random.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static struct view_box centre(double box_width, double box_height, uint32_t width, uint32_t height)
{
    return (struct view_box){
        .x = (width - box_width) / 2,
        .y = (height - box_height) / 2,
        .width = box_width,
        .height = box_height,
    };
}

static double uniform(struct random *random, double low, double high)
{
    return low + (high - low) * random_unit(random);
}

/* "Going deeper with convolutions" (Szegedy et al. 2014), section 6, with the aspect ratio drawn
 * uniformly, mostly on a log scale, and whole-pixel boxes, as other loaders do. */
static struct view_box draw_area(struct random *random, const struct view_rules *rules, double area)
{
    const bool is_log = rules->draws == VIEW_DRAWS_LOG_RATIO;
    const double box_area = area * uniform(random, rules->min_area, rules->max_area);
    const double aspect = is_log
                              ? exp(uniform(random, log(rules->min_aspect), log(rules->max_aspect)))
                              : uniform(random, rules->min_aspect, rules->max_aspect);

    return (struct view_box){.width = nearbyint(sqrt(box_area * aspect)),
                             .height = nearbyint(sqrt(box_area / aspect))};
}

/* Draw as TensorFlow does: small boxes are rarer than with draw_area(). */
static struct view_box draw_height(struct random *random, const struct view_rules *rules,
                                   uint32_t width, uint32_t height)
{
    const double area = (double)width * height;
    const double aspect = uniform(random, rules->min_aspect, rules->max_aspect);
    double least = nearbyint(sqrt(area * rules->min_area / aspect));
    double most = nearbyint(sqrt(area * rules->max_area / aspect));

    while (most > 1 && nearbyint(most * aspect) > width)
        most = fmin(most - 1, ceil((width + 0.5) / aspect));
    most = fmin(most, height);
    if (least < most)
        least += (double)random_below(random, (uint64_t)(most - least) + 1);
    else
        least = most;
    return (struct view_box){.width = nearbyint(least * aspect), .height = least};
}

static struct view_box random_crop(struct random *random, const struct view_rules *rules,
                                   uint32_t width, uint32_t height)
{
    const double area = (double)width * height;

    for (unsigned i = 0; i < rules->tries; i++) {
        struct view_box box = rules->draws == VIEW_DRAWS_HEIGHT
                                  ? draw_height(random, rules, width, height)
                                  : draw_area(random, rules, area);
        if (box.width < 1 || box.height < 1 || box.width > width || box.height > height ||
            box.width * box.height < rules->min_covered * area)
            continue;
        uint64_t free_x = width - (uint64_t)box.width, free_y = height - (uint64_t)box.height;
        box.x = (double)random_below(random, free_x + 1);
        box.y = (double)random_below(random, free_y + 1);
        return box;
    }
    /* The largest centred box with an allowed aspect ratio, in whole pixels. */
    double box_width = width, box_height = height;
    if (rules->whole_else)
        return centre(width, height, width, height);
    if (width < rules->min_aspect * height)
        box_height = fmax(1, nearbyint(width / rules->min_aspect));
    else if (width > rules->max_aspect * height)
        box_width = fmax(1, nearbyint(height * rules->max_aspect));
    struct view_box box = centre(box_width, box_height, width, height);
    box.x = floor(box.x);
    box.y = floor(box.y);
    return box;
}

struct view view_of_record(uint64_t seed, uint64_t epoch, uint64_t record)
{
    return (struct view){.kind = VIEW_TRAIN, .seed = random_hash(seed, epoch, record)};
}

struct view_box view_box(const struct view *view, const struct view_rules *rules, uint32_t width,
                         uint32_t height)
{
    assert(width > 0 && height > 0);
    if (view->kind == VIEW_WHOLE)
        return centre(width, height, width, height);
    if (view->kind == VIEW_EVALUATE) {
        double side = (width < height ? width : height) * rules->crop_share;
        return centre(side, side, width, height);
    }
    struct random random = random_start(view->seed);
    bool mirror = random_next(&random) >> 63;
    struct view_box box = random_crop(&random, rules, width, height);
    box.mirror = mirror;
    return box;
}

/* ---- as other loaders draw ---- */

/* The rules of torchvision (RandomResizedCrop), TensorFlow (sample_distorted_bounding_box as its
 * ImageNet models call it), DALI (RandomResizedCrop), MXNet (random_resized_crop of its image
 * iterator) and FFCV (get_random_crop). Boxes are compared with independent draws by these rules,
 * not with the loaders themselves (docs/decode.md). */

/* min_object_covered=0.1 of a box that is the whole image refuses areas below 0.1. */
static const struct view_rules rules_tensorflow = {
    .min_area = 0.05,
    .max_area = 1,
    .min_aspect = 0.75,
    .max_aspect = 1.33,
    .min_covered = 0.1,
    .draws = VIEW_DRAWS_HEIGHT,
    .tries = 100,
    .whole_else = true,
    .crop_share = 0.875,
};

/* What most of them have; the smallest area, and how boxes are drawn, differ. */
#define RULES(LEAST, DRAWS)                                                             \
    {                                                                                   \
        .min_area = LEAST, .max_area = 1, .min_aspect = 3.0 / 4, .max_aspect = 4.0 / 3, \
        .draws = DRAWS, .tries = 10, .crop_share = 224.0 / 256                          \
    }

const struct view_rules view_rules_imagenet = RULES(0.05, VIEW_DRAWS_LOG_RATIO);
static const struct view_rules rules_torchvision = RULES(0.08, VIEW_DRAWS_LOG_RATIO);
static const struct view_rules rules_mxnet = RULES(0.08, VIEW_DRAWS_RATIO);

const char *const convention_names[CONVENTION_COUNT + 1] = {
    "iobench", "torchvision", "tensorflow", "dali", "mxnet", "ffcv", NULL};

const struct convention conventions[CONVENTION_COUNT] = {
    {.rules = &view_rules_imagenet, .filter = RESIZE_TRIANGLE, .scales = true},
    {.rules = &rules_torchvision, .filter = RESIZE_TRIANGLE},
    {.rules = &rules_tensorflow, .filter = RESIZE_BILINEAR},
    {.rules = &rules_torchvision, .filter = RESIZE_TRIANGLE, .upright = true},
    {.rules = &rules_mxnet, .filter = RESIZE_BILINEAR},
    {.rules = &rules_torchvision, .filter = RESIZE_AREA},
};

enum { ASKED }; /* then those of enum view_kind */

const char *const look_view_names[] = {"asked", "train", "evaluate", "whole", NULL};
const char *const look_damaged_names[] = {
    [LOOK_REFUSES] = "refuse", [LOOK_DECODES] = "decode", NULL};

struct view_rules look_rules(const struct look_settings *look)
{
    struct view_rules rules = *conventions[look->as].rules;

    assert(look->as < CONVENTION_COUNT);
    if (look->min_area > 0)
        rules.min_area = look->min_area;
    rules.crop_share = look->crop;
    return rules;
}

struct view look_view(const struct look_settings *look, const struct view *asked)
{
    struct view view = *asked;

    if (look->view != ASKED)
        view.kind = (enum view_kind)(look->view - 1);
    return view;
}

/* ---- orientation ----
 *
 * EXIF 2.3, 4.6.4; TIFF 6.0, section 2. The upright pixel x, y is the stored pixel (y, x if they
 * swap), counted from the right or from below where flipped. */

enum { MARKER_APP1 = 0xe1, MARKER_SCAN = 0xda, EXIF_BYTES = 6, ENTRY_BYTES = 12, TAG = 0x0112 };

static const struct {
    bool swap, flip_x, flip_y;
} turns[9] = {
    [2] = {.flip_x = true},
    [3] = {.flip_x = true, .flip_y = true},
    [4] = {.flip_y = true},
    [5] = {.swap = true},
    [6] = {.swap = true, .flip_y = true},
    [7] = {.swap = true, .flip_x = true, .flip_y = true},
    [8] = {.swap = true, .flip_x = true},
};

static uint32_t number(const uint8_t *at, size_t bytes, bool is_little)
{
    uint32_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[is_little ? bytes - 1 - i : i];
    return value;
}

/* The first directory of a TIFF file. */
static unsigned read_tiff(const uint8_t *tiff, size_t bytes)
{
    if (bytes < 8 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return ORIENTATION_UPRIGHT;
    const bool is_little = tiff[0] == 'I';
    size_t at = number(tiff + 4, 4, is_little);
    if (at > bytes || bytes - at < 2)
        return ORIENTATION_UPRIGHT;
    uint32_t entries = number(tiff + at, 2, is_little);
    for (at += 2; entries > 0 && bytes - at >= ENTRY_BYTES; entries--, at += ENTRY_BYTES) {
        if (number(tiff + at, 2, is_little) != TAG)
            continue;
        const uint32_t value = number(tiff + at + 8, 2, is_little);
        return value >= 1 && value <= 8 ? value : ORIENTATION_UPRIGHT;
    }
    return ORIENTATION_UPRIGHT;
}

unsigned orientation_of_jpeg(const void *jpeg, size_t bytes)
{
    const uint8_t *image = jpeg;

    for (size_t at = 2; at + 4 <= bytes && image[at] == 0xff;) {
        if (image[at + 1] == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        const size_t length = bytes_be16(image + at + 2);
        if (image[at + 1] == MARKER_SCAN || length < 2 || length > bytes - at - 2)
            break;
        const uint8_t *data = image + at + 4;
        if (image[at + 1] == MARKER_APP1 && length >= 2 + EXIF_BYTES &&
            memcmp(data, "Exif\0\0", EXIF_BYTES) == 0)
            return read_tiff(data + EXIF_BYTES, length - 2 - EXIF_BYTES);
        at += 2 + length;
    }
    return ORIENTATION_UPRIGHT;
}

bool orientation_swaps(unsigned orientation)
{
    assert(orientation < sizeof turns / sizeof *turns);
    return turns[orientation].swap;
}

struct view_box orientation_stored_box(unsigned orientation, const struct view_box *box,
                                       uint32_t width, uint32_t height)
{
    const bool swap = turns[orientation].swap;
    assert(orientation < sizeof turns / sizeof *turns);
    struct view_box stored = {.x = swap ? box->y : box->x,
                              .y = swap ? box->x : box->y,
                              .width = swap ? box->height : box->width,
                              .height = swap ? box->width : box->height};

    if (turns[orientation].flip_x)
        stored.x = width - stored.x - stored.width;
    if (turns[orientation].flip_y)
        stored.y = height - stored.y - stored.height;
    return stored;
}

void orientation_turn(unsigned orientation, bool mirror, uint32_t side, const uint8_t *stored,
                      uint8_t *upright)
{
    assert(orientation < sizeof turns / sizeof *turns);
    for (uint32_t y = 0; y < side; y++) {
        for (uint32_t x = 0; x < side; x++) {
            const uint32_t seen = mirror ? side - 1 - x : x;
            uint32_t column = turns[orientation].swap ? y : seen;
            uint32_t row = turns[orientation].swap ? seen : y;
            column = turns[orientation].flip_x ? side - 1 - column : column;
            row = turns[orientation].flip_y ? side - 1 - row : row;
            memcpy(upright + ((size_t)y * side + x) * 3, stored + ((size_t)row * side + column) * 3,
                   3);
        }
    }
}
