/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/image.h"

#include "base/fail.h"
#include "decode/orientation.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int image_check_size(const struct image_request *request, uint64_t width, uint64_t height)
{
    if (width == 0 || height == 0)
        return fail(EBADMSG, "the image has no pixels");
    if (!image_limits_size(request->limits, width, height))
        return fail(EBADMSG, "the image claims %llu x %llu pixels, more than max-pixels=%llu",
                    (unsigned long long)width, (unsigned long long)height,
                    (unsigned long long)request->limits->pixels);
    return 0;
}

int image_judge(const struct image_request *request, bool truncated, const char *why)
{
    request->figures->truncated += truncated;
    request->figures->corrupt += !truncated;
    int code = fail(EBADMSG, "%s", why);
    return request->accepts_damaged ? DECODE_DAMAGED : code;
}

struct view_box image_box(const struct image_request *request, uint32_t width, uint32_t height)
{
    const bool swaps = orientation_swaps(request->orientation);
    struct view_shown *shown = request->shown;

    shown->width = swaps ? height : width;
    shown->height = swaps ? width : height;
    shown->box = view_box(request->view, request->rules, shown->width, shown->height);
    return request->orientation == ORIENTATION_UPRIGHT
               ? shown->box
               : orientation_stored_box(request->orientation, &shown->box, width, height);
}

int image_plan(const struct image_request *request, struct resize *resize, uint32_t width,
               uint32_t height, uint32_t numerator)
{
    assert(width > 0 && height > 0 && numerator >= 1 && numerator <= 8);
    const struct view_box view = image_box(request, width, height);
    const double scale = numerator / 8.0;

    const struct resize_box box = {
        .x = view.x * scale,
        .y = view.y * scale,
        .width = view.width * scale,
        .height = view.height * scale,
        .image_width = (width * numerator + 7) / 8,
        .image_height = (height * numerator + 7) / 8,
        .mirror = view.mirror,
        .filter = request->filter,
    };

    return resize_plan(resize, &box, request->width, request->height, request->bump);
}

int image_resize_rows(const struct image_request *request, struct resize *resize,
                      image_copy_row *copy, const void *pixels)
{
    const uint32_t low = resize->x.low, high = resize->x.high;
    uint8_t *rows[RESIZE_ROWS_MAX];
    int code = resize_begin(resize, low, high - low, request->row);

    if (code)
        return code;
    for (uint32_t count; (count = resize_want(resize, rows));) {
        for (uint32_t i = 0; i < count; i++)
            copy(pixels, resize->row + i, low, high, rows[i]);
        resize_give(resize, count);
    }
    return 0;
}
