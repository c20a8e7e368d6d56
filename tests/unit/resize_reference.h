/* SPDX-License-Identifier: Apache-2.0
 * What a resize should give, by its definition in FP64, with the windows of kernels/resize.c, which
 * a test then has in this file in place of the library's. */
#ifndef IOBENCH_TESTS_RESIZE_REFERENCE_H
#define IOBENCH_TESTS_RESIZE_REFERENCE_H

#include "kernels/resize.c"

static double weights_sum(const struct resize_window *window)
{
    double sum = 0;

    for (uint32_t k = 0; k < window->count; k++)
        sum += weight_at(window, k);
    return sum;
}

static void resize_reference(const uint8_t *image, const struct resize_box *box, uint32_t side,
                             double *output)
{
    const double scale_x = box->width / side, scale_y = box->height / side;
    uint32_t low_x, high_x, low_y, high_y;

    bounds(box->x, box->width, box->image_width, &low_x, &high_x);
    bounds(box->y, box->height, box->image_height, &low_y, &high_y);
    for (uint32_t i = 0; i < side * side; i++) {
        uint32_t column = box->mirror ? side - 1 - i % side : i % side;
        struct resize_window y =
            window_at(filter_of(box, side, side), box->y, scale_y, low_y, high_y, i / side);
        struct resize_window x =
            window_at(filter_of(box, side, side), box->x, scale_x, low_x, high_x, column);
        double total = weights_sum(&x) * weights_sum(&y), sum[3] = {0};
        for (uint32_t j = 0; j < y.count; j++) {
            const uint8_t *row = image + (size_t)(y.first + j) * box->image_width * LANES;
            for (uint32_t k = 0; k < x.count; k++)
                for (int lane = 0; lane < 3; lane++)
                    sum[lane] += row[(x.first + k) * LANES + (uint32_t)lane] * weight_at(&x, k) *
                                 weight_at(&y, j);
        }
        for (int lane = 0; lane < 3; lane++)
            output[i * 3 + (uint32_t)lane] = sum[lane] / total;
    }
}

#endif
