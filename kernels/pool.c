/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <assert.h>

/* The input pixels under one output pixel: rows [top, bottom), columns [left, right). */
struct box {
    uint32_t top, bottom, left, right;
};

static void clip(uint32_t place, uint32_t stride, uint32_t pad, uint32_t length, uint32_t side,
                 uint32_t *low, uint32_t *high)
{
    const int64_t start = (int64_t)place * stride - pad, end = start + length;

    *low = start > 0 ? (uint32_t)start : 0;
    *high = end < side ? (uint32_t)end : side;
    assert(start < side && end > 0);
}

static struct box box_at(const struct kernel_window *window, uint32_t y, uint32_t x)
{
    struct box box;

    clip(y, window->stride, window->pad_top, window->height, window->in_height, &box.top,
         &box.bottom);
    clip(x, window->stride, window->pad_left, window->width, window->in_width, &box.left,
         &box.right);
    return box;
}

static size_t in_plane(const struct kernel_window *window)
{
    return (size_t)window->in_height * window->in_width;
}

static size_t planes(const struct kernel_window *window)
{
    return (size_t)window->images * window->in_channels;
}

static size_t place_of_maximum(const struct kernel_window *window, const real *plane,
                               struct box box)
{
    size_t best = (size_t)box.top * window->in_width + box.left;

    for (uint32_t y = box.top; y < box.bottom; y++)
        for (uint32_t x = box.left; x < box.right; x++) {
            size_t at = (size_t)y * window->in_width + x;
            if (plane[at] > plane[best])
                best = at;
        }
    return best;
}

void kernel_max_pool(const struct kernel_window *window, const real *input, real *output)
{
    for (size_t i = 0; i < planes(window); i++, input += in_plane(window))
        for (uint32_t y = 0; y < window->out_height; y++)
            for (uint32_t x = 0; x < window->out_width; x++)
                *output++ = input[place_of_maximum(window, input, box_at(window, y, x))];
}

void kernel_max_pool_backward(const struct kernel_window *window, const real *input,
                              const real *d_output, real *d_input)
{
    for (size_t i = 0; i < planes(window); i++) {
        for (uint32_t y = 0; y < window->out_height; y++)
            for (uint32_t x = 0; x < window->out_width; x++)
                d_input[place_of_maximum(window, input, box_at(window, y, x))] += *d_output++;
        input += in_plane(window);
        d_input += in_plane(window);
    }
}

static real divisor(const struct kernel_window *window, struct box box)
{
    return (real)(window->count_padding ? window->height * window->width
                                        : (box.bottom - box.top) * (box.right - box.left));
}

void kernel_average_pool(const struct kernel_window *window, const real *input, real *output)
{
    for (size_t i = 0; i < planes(window); i++, input += in_plane(window))
        for (uint32_t out_y = 0; out_y < window->out_height; out_y++)
            for (uint32_t out_x = 0; out_x < window->out_width; out_x++) {
                const struct box box = box_at(window, out_y, out_x);
                real sum = 0;
                for (uint32_t y = box.top; y < box.bottom; y++)
                    for (uint32_t x = box.left; x < box.right; x++)
                        sum += input[(size_t)y * window->in_width + x];
                *output++ = sum / divisor(window, box);
            }
}

void kernel_average_pool_backward(const struct kernel_window *window, const real *d_output,
                                  real *d_input)
{
    for (size_t i = 0; i < planes(window); i++, d_input += in_plane(window))
        for (uint32_t out_y = 0; out_y < window->out_height; out_y++)
            for (uint32_t out_x = 0; out_x < window->out_width; out_x++) {
                const struct box box = box_at(window, out_y, out_x);
                const real share = *d_output++ / divisor(window, box);
                for (uint32_t y = box.top; y < box.bottom; y++)
                    for (uint32_t x = box.left; x < box.right; x++)
                        d_input[(size_t)y * window->in_width + x] += share;
            }
}
