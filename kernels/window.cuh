/* SPDX-License-Identifier: Apache-2.0
 * window: the inputs of a convolution, and the sum of one output element. */
#ifndef IOBENCH_KERNELS_WINDOW_CUH
#define IOBENCH_KERNELS_WINDOW_CUH

#include "kernels/launch.cuh"

/* Shapes of one group, and the position of its channels. */
struct geometry {
    kernel_window window;
    uint32_t ins, outs; /* channels per group */

    KERNEL_CODE uint64_t input_at(uint64_t image, uint32_t y, uint32_t x) const
    {
        return ((image * window.in_height + y) * window.in_width + x) * window.in_channels;
    }
    KERNEL_CODE uint64_t output_at(uint64_t image, uint32_t y, uint32_t x) const
    {
        return ((image * window.out_height + y) * window.out_width + x) * window.out_channels;
    }
    KERNEL_CODE uint64_t weight_at(uint32_t k, uint32_t r, uint32_t s) const
    {
        return (((uint64_t)k * window.height + r) * window.width + s) * ins;
    }
};

static inline geometry geometry_of(const struct kernel_window *window)
{
    return geometry{*window, window->in_channels / window->groups,
                    window->out_channels / window->groups};
}

/* Multiply and accumulate: INT8 in integers. */
template <class T> KERNEL_CODE float factor(T value)
{
    return as_float(value);
}
KERNEL_CODE int32_t factor(int8_t value)
{
    return value;
}

/* One output element. */
template <class T>
KERNEL_CODE auto window_sum(const geometry &g, const T *input, const T *weight, uint32_t index)
{
    const kernel_window &w = g.window;
    const uint32_t k = index % w.out_channels;
    const uint32_t pixel = index / w.out_channels;
    const uint32_t x = pixel % w.out_width;
    const uint32_t y = pixel / w.out_width % w.out_height;
    const uint32_t image = pixel / w.out_width / w.out_height;
    const uint32_t first = k / g.outs * g.ins;
    decltype(factor(*input)) sum = 0;

KERNEL_ROLLED
    for (uint32_t r = 0; r < w.height; r++)
KERNEL_ROLLED
        for (uint32_t s = 0; s < w.width; s++) {
            const uint32_t in_y = y * w.stride + r - w.pad_top; /* wraps around in the padding */
            const uint32_t in_x = x * w.stride + s - w.pad_left;
            if (in_y >= w.in_height || in_x >= w.in_width)
                continue;
            const T *from = input + g.input_at(image, in_y, in_x) + first;
            const T *by = weight + g.weight_at(k, r, s);
KERNEL_ROLLED
            for (uint32_t c = 0; c < g.ins; c++)
                sum += factor(from[c]) * factor(by[c]);
        }
    return sum;
}

#endif
