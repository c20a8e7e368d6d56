/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/look.h"

#include <assert.h>

/* The rules of torchvision (RandomResizedCrop), TensorFlow (sample_distorted_bounding_box as its
 * ImageNet models call it), DALI (RandomResizedCrop), MXNet (random_resized_crop of its image
 * iterator) and FFCV (get_random_crop). Boxes are compared with independent draws by these rules,
 * not with the loaders themselves (docs/decode.md). */
enum { TRIES = 10, TRIES_TENSORFLOW = 100 };

static const struct view_rules rules_torchvision = {
    .min_area = 0.08,
    .max_area = 1,
    .min_aspect = 3.0 / 4,
    .max_aspect = 4.0 / 3,
    .tries = TRIES,
    .crop_share = 224.0 / 256,
};

/* min_object_covered=0.1 of a box that is the whole image refuses areas below 0.1. */
static const struct view_rules rules_tensorflow = {
    .min_area = 0.05,
    .max_area = 1,
    .min_aspect = 0.75,
    .max_aspect = 1.33,
    .min_covered = 0.1,
    .draws = VIEW_DRAWS_HEIGHT,
    .tries = TRIES_TENSORFLOW,
    .whole_else = true,
    .crop_share = 0.875,
};

static const struct view_rules rules_mxnet = {
    .min_area = 0.08,
    .max_area = 1,
    .min_aspect = 3.0 / 4,
    .max_aspect = 4.0 / 3,
    .draws = VIEW_DRAWS_RATIO,
    .tries = TRIES,
    .crop_share = 224.0 / 256,
};

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

enum { ASKED, TRAIN, EVALUATE, WHOLE };

const char *const look_view_names[] = {
    [ASKED] = "asked", [TRAIN] = "train", [EVALUATE] = "evaluate", [WHOLE] = "whole", NULL};
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
    static const enum view_kind kinds[] = {
        [TRAIN] = VIEW_TRAIN, [EVALUATE] = VIEW_EVALUATE, [WHOLE] = VIEW_WHOLE};
    struct view view = *asked;

    if (look->view != ASKED)
        view.kind = kinds[look->view];
    return view;
}
