/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/image.h"

#include "base/fail.h"

#include <errno.h>

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

int image_plan(const struct image_request *request, struct resize *resize, uint32_t width,
               uint32_t height, uint32_t numerator)
{
    struct view_box view = view_box(request->view, request->rules, width, height);
    const double scale = numerator / 8.0;

    *request->shown = (struct view_shown){.box = view, .width = width, .height = height};
    const struct resize_box box = {
        .x = view.x * scale,
        .y = view.y * scale,
        .width = view.width * scale,
        .height = view.height * scale,
        .image_width = (width * numerator + 7) / 8,
        .image_height = (height * numerator + 7) / 8,
        .mirror = view.mirror,
    };

    return resize_plan(resize, &box, request->side, request->bump);
}
