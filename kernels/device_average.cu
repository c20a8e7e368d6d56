/* SPDX-License-Identifier: Apache-2.0
 * The backward pass gathers: each input pixel reads the windows that cover it, so that the order of
 * sums is fixed. */
#include "kernels/pool.cuh"

namespace {

/* The input pixels under one output pixel. */
struct box {
    uint32_t top, bottom, left, right;
};

KERNEL_CODE uint32_t clipped(int32_t value, uint32_t side)
{
    return value < 0 ? 0 : (uint32_t)value > side ? side : (uint32_t)value;
}

KERNEL_CODE box box_at(const kernel_window &window, uint32_t y, uint32_t x)
{
    const int32_t top = (int32_t)(y * window.stride) - (int32_t)window.pad_top;
    const int32_t left = (int32_t)(x * window.stride) - (int32_t)window.pad_left;

    return box{clipped(top, window.in_height), clipped(top + (int32_t)window.height, window.in_height),
               clipped(left, window.in_width), clipped(left + (int32_t)window.width, window.in_width)};
}

KERNEL_CODE float share_of(const kernel_window &window, const box &box)
{
    return 1 / (float)(window.count_padding
                           ? window.height * window.width
                           : (box.bottom - box.top) * (box.right - box.left));
}

template <class T, int W> struct average_pool {
    kernel_window window;
    grid outputs;
    const T *input;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = outputs.at(index);
        const box box = box_at(window, at.y, at.x);
        const float share = share_of(window, box);
        float sum[W] = {};
        lanes<T, W> out;

        for (uint32_t y = box.top; y < box.bottom; y++)
            for (uint32_t x = box.left; x < box.right; x++) {
                const uint64_t line = (uint64_t)at.image * window.in_height + y;
                const lanes<T, W> in = lanes<T, W>::read(
                    input, (line * window.in_width + x) * outputs.vectors.by + at.vector);
                for (int i = 0; i < W; i++)
                    sum[i] += in.get(i);
            }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i] * share);
        out.write(output, index);
    }
};

template <class T, int W> struct average_pool_backward {
    kernel_window window;
    divide stride;
    grid inputs;
    const T *d_output;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = inputs.at(index);
        uint32_t top, bottom, left, right;
        float sum[W] = {};
        lanes<T, W> out;

        covering(at.y, window.pad_top, window.height, stride, window.out_height, &top, &bottom);
        covering(at.x, window.pad_left, window.width, stride, window.out_width, &left, &right);
        for (uint32_t y = top; y < bottom; y++)
            for (uint32_t x = left; x < right; x++) {
                const uint32_t line = at.image * window.out_height + y;
                const lanes<T, W> d = lanes<T, W>::read(
                    d_output, ((uint64_t)line * window.out_width + x) * inputs.vectors.by + at.vector);
                const float share = share_of(window, box_at(window, y, x));
                for (int i = 0; i < W; i++)
                    sum[i] += d.get(i) * share;
            }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i]);
        out.write(d_input, index);
    }
};

/* The same of a whole plane, as most networks have it, with many loads or stores under way: there
 * are few threads, or little to do. */
template <class T, int W> struct plane_average {
    enum { at_once = 25 };
    divide vectors;
    uint32_t plane;
    float share;
    const T *input;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint64_t first = (uint64_t)vectors.quotient(index) * plane * vectors.by;
        const uint32_t vector = vectors.rest(index);
        float sum[W] = {};
        lanes<T, W> out;

        for (uint32_t pixel = 0; pixel < plane; pixel += at_once) {
            lanes<T, W> seen[at_once];
KERNEL_UNROLL
            for (uint32_t i = 0; i < at_once; i++)
                if (pixel + i < plane)
                    seen[i] = lanes<T, W>::read(input, first + (pixel + i) * vectors.by + vector);
KERNEL_UNROLL
            for (uint32_t i = 0; i < at_once; i++)
                if (pixel + i < plane)
                    for (int lane = 0; lane < W; lane++)
                        sum[lane] += seen[i].get(lane);
        }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i] * share);
        out.write(output, index);
    }
};

template <class T, int W> struct plane_average_backward {
    enum { at_once = 7 };
    divide vectors, strips; /* of `at_once` pixels */
    uint32_t plane;
    float share;
    const T *d_output;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t vector = vectors.rest(index), strip = vectors.quotient(index);
        const uint32_t image = strips.quotient(strip), pixel = strips.rest(strip) * at_once;
        const uint64_t first = ((uint64_t)image * plane + pixel) * vectors.by + vector;
        lanes<T, W> d = lanes<T, W>::read(d_output, image * vectors.by + vector);

        for (int i = 0; i < W; i++)
            d.set(i, d.get(i) * share);
KERNEL_UNROLL
        for (uint32_t i = 0; i < at_once; i++)
            if (pixel + i < plane)
                d.write(d_input, first + i * vectors.by);
    }
};

/* Whether one window is the whole plane: how many pixels it has, or 0. */
uint32_t plane_of(const struct kernel_window *window)
{
    return window->pad_top == 0 && window->pad_left == 0 && window->height == window->in_height &&
                   window->width == window->in_width
               ? window->height * window->width
               : 0;
}

} // namespace

int device_average_pool(const struct kernel_window *window, enum device_type type,
                        const void *input, void *output, void *stream)
{
    return with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        const uint32_t vectors = window->in_channels / W, plane = plane_of(window);
        const grid outputs = outputs_of(window, vectors);
        const uint64_t count = vectors_of(window, outputs);
        if (plane) {
            const plane_average<T, W> kernel = {divide::make(vectors), plane, 1 / (float)plane,
                                                (const T *)input, (T *)output};
            return launch_each<2>("average_pool", kernel, count, stream);
        }
        const average_pool<T, W> kernel = {*window, outputs, (const T *)input, (T *)output};
        return launch_each("average_pool", kernel, count, stream);
    });
}

int device_average_pool_backward(const struct kernel_window *window, enum device_type type,
                                 const void *d_output, void *d_input, void *stream)
{
    return with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        const uint32_t vectors = window->in_channels / W, plane = plane_of(window);
        const grid inputs = inputs_of(window, vectors);
        if (plane) {
            using whole_t = plane_average_backward<T, W>;
            const uint32_t strips = (plane + whole_t::at_once - 1) / whole_t::at_once;
            const whole_t kernel = {divide::make(vectors), divide::make(strips), plane,
                                    1 / (float)plane, (const T *)d_output, (T *)d_input};
            return launch_each("average_pool_backward", kernel,
                               (uint64_t)window->images * strips * vectors, stream);
        }
        const average_pool_backward<T, W> kernel = {*window, divide::make(window->stride), inputs,
                                                    (const T *)d_output, (T *)d_input};
        return launch_each("average_pool_backward", kernel, vectors_of(window, inputs), stream);
    });
}
