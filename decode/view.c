/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/view.h"

#include "base/random.h"

#include <assert.h>
#include <math.h>

const struct view_rules view_rules_imagenet = {
    .min_area = 0.05,
    .max_area = 1,
    .min_aspect = 3.0 / 4,
    .max_aspect = 4.0 / 3,
    .tries = 10,
    .crop_share = 224.0 / 256,
};

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
