/* SPDX-License-Identifier: Apache-2.0
 * One thread per output element. Written for clarity; cuDNN computes what must be fast. */
#include "kernels/window.cuh"

namespace {

template <class T> struct forward {
    geometry g;
    const T *input, *weight;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        output[index] = number<T>::from(window_sum(g, input, weight, index));
    }
};

template <class T> struct of_data {
    geometry g;
    const T *d_output, *weight;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const kernel_window &w = g.window;
        const uint32_t channel = index % w.in_channels;
        const uint32_t pixel = index / w.in_channels;
        const uint32_t x = pixel % w.in_width;
        const uint32_t y = pixel / w.in_width % w.in_height;
        const uint32_t image = pixel / w.in_width / w.in_height;
        const uint32_t group = channel / g.ins, c = channel % g.ins;
        float sum = 0;

KERNEL_ROLLED
        for (uint32_t r = 0; r < w.height; r++)
KERNEL_ROLLED
            for (uint32_t s = 0; s < w.width; s++) {
                const uint32_t from_y = y + w.pad_top - r, from_x = x + w.pad_left - s;
                if (y + w.pad_top < r || x + w.pad_left < s || from_y % w.stride ||
                    from_x % w.stride || from_y / w.stride >= w.out_height ||
                    from_x / w.stride >= w.out_width)
                    continue;
                const T *from = d_output + g.output_at(image, from_y / w.stride, from_x / w.stride);
KERNEL_ROLLED
                for (uint32_t k = group * g.outs; k < (group + 1) * g.outs; k++)
                    sum += as_float(from[k]) * as_float(weight[g.weight_at(k, r, s) + c]);
            }
        d_input[index] = number<T>::from(sum);
    }
};

template <class T> struct of_weight {
    geometry g;
    const T *input, *d_output;
    T *d_weight;

    KERNEL_CODE void each(uint32_t index) const
    {
        const kernel_window &w = g.window;
        const uint32_t c = index % g.ins;
        const uint32_t s = index / g.ins % w.width;
        const uint32_t r = index / g.ins / w.width % w.height;
        const uint32_t k = index / g.ins / w.width / w.height;
        const uint32_t channel = k / g.outs * g.ins + c;
        float sum = 0;

KERNEL_ROLLED
        for (uint32_t image = 0; image < w.images; image++)
KERNEL_ROLLED
            for (uint32_t y = 0; y < w.out_height; y++)
KERNEL_ROLLED
                for (uint32_t x = 0; x < w.out_width; x++) {
                    const uint32_t in_y = y * w.stride + r - w.pad_top;
                    const uint32_t in_x = x * w.stride + s - w.pad_left;
                    if (in_y < w.in_height && in_x < w.in_width)
                        sum += as_float(input[g.input_at(image, in_y, in_x) + channel]) *
                               as_float(d_output[g.output_at(image, y, x) + k]);
                }
        d_weight[index] = number<T>::from(sum);
    }
};

} // namespace

int device_convolution(const struct kernel_window *window, enum device_type type, const void *input,
                       const void *weight, void *output, void *stream)
{
    return with_type(type, [&]<class T>(T *) {
        const forward<T> kernel = {geometry_of(window), (const T *)input, (const T *)weight,
                                   (T *)output};
        return launch_each("convolution", kernel,
                           (uint64_t)window->images * window->out_height * window->out_width *
                               window->out_channels,
                           stream);
    });
}

int device_convolution_data(const struct kernel_window *window, enum device_type type,
                            const void *d_output, const void *weight, void *d_input, void *stream)
{
    return with_type(type, [&]<class T>(T *) {
        const of_data<T> kernel = {geometry_of(window), (const T *)d_output, (const T *)weight,
                                   (T *)d_input};
        return launch_each("convolution_data", kernel,
                           (uint64_t)window->images * window->in_height * window->in_width *
                               window->in_channels,
                           stream);
    });
}

int device_convolution_weight(const struct kernel_window *window, enum device_type type,
                              const void *input, const void *d_output, void *d_weight,
                              void *stream)
{
    return with_type(type, [&]<class T>(T *) {
        const geometry g = geometry_of(window);
        const of_weight<T> kernel = {g, (const T *)input, (const T *)d_output, (T *)d_weight};
        return launch_each("convolution_weight", kernel,
                           (uint64_t)window->out_channels * window->height * window->width * g.ins,
                           stream);
    });
}
