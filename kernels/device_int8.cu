/* SPDX-License-Identifier: Apache-2.0
 * INT8 tensors have channels in multiples of 16, so all accesses are vectors. The convolution is
 * simple, one thread per output element, for shapes that cuDNN does not support. */
#include "kernels/window.cuh"

namespace {

KERNEL_CODE int8_t rounded(float value)
{
    const float q = rintf(value);

    return (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
}

template <class T> struct quantise {
    enum { W = wide<T>::width };
    const T *from;
    float per_step;
    int8_t *to;

    KERNEL_CODE void each(uint32_t index) const
    {
        const lanes<T, W> x = lanes<T, W>::read(from, index);
        lanes<int8_t, W> q;
        for (int i = 0; i < W; i++)
            q.at[i] = rounded(x.get(i) * per_step);
        q.write(to, index);
    }
};

template <class T> struct dequantise {
    enum { W = wide<T>::width };
    const int8_t *from;
    float step;
    T *to;

    KERNEL_CODE void each(uint32_t index) const
    {
        const lanes<int8_t, W> q = lanes<int8_t, W>::read(from, index);
        lanes<T, W> x;
        for (int i = 0; i < W; i++)
            x.set(i, (float)q.at[i] * step);
        x.write(to, index);
    }
};

template <class T> struct convolution {
    geometry g;
    device_int8 with;
    const int8_t *input, *weight;
    T *floats;
    int8_t *wholes;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t k = index % g.window.out_channels;
        float value =
            (float)window_sum(g, input, weight, index) * with.scale[k] + with.bias[k];

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
    return with_type(type, [&]<class T>(T *) {
        return launch_each("quantise", quantise<T>{(const T *)from, 1 / step, to},
                           count / wide<T>::width, stream);
    });
}

int device_dequantise(enum device_type type, uint64_t count, const int8_t *from, float step, void *to,
                      void *stream)
{
    return with_type(type, [&]<class T>(T *) {
        return launch_each("dequantise", dequantise<T>{from, step, (T *)to}, count / wide<T>::width,
                           stream);
    });
}

int device_convolution_int8(const struct kernel_window *window, const struct device_int8 *with,
                            const int8_t *input, const int8_t *weight, void *output, void *stream)
{
    const uint64_t count =
        (uint64_t)window->images * window->out_height * window->out_width * window->out_channels;

    return with_type(with->type, [&]<class T>(T *) {
        return launch_each("convolution_int8",
                           convolution<T>{geometry_of(window), *with, input, weight,
                                          with->to_int8 ? nullptr : (T *)output,
                                          with->to_int8 ? (int8_t *)output : nullptr},
                           count, stream);
    });
}
