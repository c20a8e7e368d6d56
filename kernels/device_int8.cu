/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of INT8 have channels in sixteens, so all is read and written in vectors. The convolution
 * is plain, one thread a number of the result, for what cuDNN does not take.
 */
#include "kernels/launch.cuh"

namespace {

KERNEL_CODE int8_t rounded(float value)
{
    const float q = rintf(value);

    return (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
}

template <int WIDTH> struct alignas(WIDTH) bytes {
    int8_t at[WIDTH];
};

template <class T> struct quantise {
    enum { W = wide<T>::width };
    const T *from;
    float per_step;
    int8_t *to;

    KERNEL_CODE void each(uint32_t index) const
    {
        const lanes<T, W> x = lanes<T, W>::read(from, index);
        bytes<W> q;
        for (int i = 0; i < W; i++)
            q.at[i] = rounded(x.get(i) * per_step);
        reinterpret_cast<bytes<W> *>(to)[index] = q;
    }
};

template <class T> struct dequantise {
    enum { W = wide<T>::width };
    const int8_t *from;
    float step;
    T *to;

    KERNEL_CODE void each(uint32_t index) const
    {
        const bytes<W> q = reinterpret_cast<const bytes<W> *>(from)[index];
        lanes<T, W> x;
        for (int i = 0; i < W; i++)
            x.set(i, (float)q.at[i] * step);
        x.write(to, index);
    }
};

template <class T> struct convolution {
    kernel_window w;
    device_int8 with;
    const int8_t *input, *weight;
    T *floats;
    int8_t *wholes;

    KERNEL_CODE int32_t sum_of(uint32_t index) const
    {
        const uint32_t k = index % w.out_channels, pixel = index / w.out_channels;
        const uint32_t x = pixel % w.out_width, y = pixel / w.out_width % w.out_height;
        const uint64_t image = pixel / w.out_width / w.out_height;
        const uint32_t ins = w.in_channels / w.groups;
        const uint32_t first = k / (w.out_channels / w.groups) * ins;
        int32_t sum = 0;

KERNEL_ROLLED
        for (uint32_t r = 0; r < w.height; r++)
KERNEL_ROLLED
            for (uint32_t s = 0; s < w.width; s++) {
                const uint32_t in_y = y * w.stride + r - w.pad_top; /* wraps where it is padding */
                const uint32_t in_x = x * w.stride + s - w.pad_left;
                if (in_y >= w.in_height || in_x >= w.in_width)
                    continue;
                const int8_t *from =
                    input + ((image * w.in_height + in_y) * w.in_width + in_x) * w.in_channels + first;
                const int8_t *by = weight + (((uint64_t)k * w.height + r) * w.width + s) * ins;
KERNEL_ROLLED
                for (uint32_t c = 0; c < ins; c++)
                    sum += (int32_t)from[c] * by[c];
            }
        return sum;
    }

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t k = index % w.out_channels;
        float value = (float)sum_of(index) * with.scale[k] + with.bias[k];

        if (with.other)
            value += (float)with.other[index];
        if (with.relu)
            value = value < 0 ? 0 : value;
        if (with.other)
            value *= with.last[k];
        if (wholes)
            wholes[index] = rounded(value);
        else
            floats[index] = number<T>::from(value);
    }
};

}

int device_quantise(enum device_type type, uint64_t count, const void *from, float step, int8_t *to,
                    void *stream)
{
    return with_type(type, [&](auto *null) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        return launch_each("quantise", quantise<T>{(const T *)from, 1 / step, to},
                           count / wide<T>::width, stream);
    });
}

int device_dequantise(enum device_type type, uint64_t count, const int8_t *from, float step, void *to,
                      void *stream)
{
    return with_type(type, [&](auto *null) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        return launch_each("dequantise", dequantise<T>{from, step, (T *)to}, count / wide<T>::width,
                           stream);
    });
}

int device_convolution_int8(const struct kernel_window *window, const struct device_int8 *with,
                            const int8_t *input, const int8_t *weight, void *output, void *stream)
{
    const uint64_t count =
        (uint64_t)window->images * window->out_height * window->out_width * window->out_channels;

    return with_type(with->type, [&](auto *null) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        return launch_each("convolution_int8",
                           convolution<T>{*window, *with, input, weight,
                                          with->to_int8 ? nullptr : (T *)output,
                                          with->to_int8 ? (int8_t *)output : nullptr},
                           count, stream);
    });
}
