/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/look.h"

enum { ASKED, TRAIN, EVALUATE, WHOLE };

const char *const look_view_names[] = {
    [ASKED] = "asked", [TRAIN] = "train", [EVALUATE] = "evaluate", [WHOLE] = "whole", NULL};
const char *const look_damaged_names[] = {
    [LOOK_REFUSES] = "refuse", [LOOK_DECODES] = "decode", NULL};

struct view_rules look_rules(const struct look_settings *look)
{
    struct view_rules rules = *conventions[look->as].rules;

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
