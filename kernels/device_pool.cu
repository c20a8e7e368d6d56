/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward passes gather: each input pixel reads the windows that cover it, so that the order of
 * sums is fixed.
 */
#include "kernels/norm.cuh"

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

/* The outputs whose windows cover an input position: [first, end) in one direction. */
KERNEL_CODE void covering(uint32_t place, uint32_t pad, uint32_t length, uint32_t stride,
                          uint32_t outputs, uint32_t *first, uint32_t *end)
{
    const uint32_t low = place + pad + 1 > length ? place + pad + 1 - length : 0;
    const uint32_t last = (place + pad) / stride;

    *first = (low + stride - 1) / stride;
    *end = last + 1 < outputs ? last + 1 : outputs;
}

struct spot {
    uint32_t image, y, x, vector;
};

/* Visit a tensor's vectors in order. */
struct grid {
    divide height, width, vectors;

    static inline grid make(uint32_t height, uint32_t width, uint32_t vectors)
    {
        return grid{divide::make(height), divide::make(width), divide::make(vectors)};
    }
    KERNEL_CODE spot at(uint32_t index) const
    {
        const uint32_t pixel = vectors.quotient(index), line = width.quotient(pixel);
        return spot{height.quotient(line), height.rest(line), width.rest(pixel),
                    vectors.rest(index)};
    }
};

/* Value: get(image, y, x, vector, out[W]) returns the pool's input. */
template <class T, int W, class Value> struct max_pool {
    kernel_window window;
    grid outputs;
    Value value;
    T *output;
    uint8_t *which;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = outputs.at(index);
        const box box = box_at(window, at.y, at.x);
        const uint32_t top = at.y * window.stride, left = at.x * window.stride;
        float best[W] = {};
        lanes<uint8_t, W> winner = {};
        lanes<T, W> out;

        for (uint32_t y = box.top; y < box.bottom; y++)
            for (uint32_t x = box.left; x < box.right; x++) {
                const uint32_t place = (y + window.pad_top - top) * window.width +
                                       (x + window.pad_left - left);
                float seen[W];
                value.get(at.image, y, x, at.vector, seen);
                for (int i = 0; i < W; i++)
                    if ((y == box.top && x == box.left) || seen[i] > best[i]) {
                        best[i] = seen[i];
                        winner.at[i] = (uint8_t)place;
                    }
            }
        for (int i = 0; i < W; i++)
            out.set(i, best[i]);
        out.write(output, index);
        winner.write(which, index);
    }
};

template <class T, int W> struct plain_value {
    const T *input;
    uint32_t height, width, vectors;

    KERNEL_CODE void get(uint32_t image, uint32_t y, uint32_t x, uint32_t vector, float *out) const
    {
        const lanes<T, W> in =
            lanes<T, W>::read(input, (((uint64_t)image * height + y) * width + x) * vectors + vector);
        for (int i = 0; i < W; i++)
            out[i] = in.get(i);
    }
};

/* The output of BN and ReLU. */
template <class T, int W> struct norm_value {
    plain_value<T, W> plain;
    const float *scale, *bias;

    KERNEL_CODE void get(uint32_t image, uint32_t y, uint32_t x, uint32_t vector, float *out) const
    {
        const floats<W> by = floats<W>::read(scale, vector), plus = floats<W>::read(bias, vector);

        plain.get(image, y, x, vector, out);
        for (int i = 0; i < W; i++) {
            const float value = out[i] * by.at[i] + plus.at[i];
            out[i] = value < 0 ? 0 : value;
        }
    }
};

/* Gradient of one input pixel from the windows whose maximum it is. */
template <class T, int W> struct winnings {
    kernel_window window;
    const uint8_t *which;
    const T *d_output, *d_other;

    KERNEL_CODE void gather(const spot &at, float *sum) const
    {
        const uint32_t vectors = window.in_channels / W;
        uint32_t top, bottom, left, right;

        covering(at.y, window.pad_top, window.height, window.stride, window.out_height, &top,
                 &bottom);
        covering(at.x, window.pad_left, window.width, window.stride, window.out_width, &left,
                 &right);
        for (int i = 0; i < W; i++)
            sum[i] = 0;
        for (uint32_t y = top; y < bottom; y++)
            for (uint32_t x = left; x < right; x++) {
                const uint64_t from =
                    (((uint64_t)at.image * window.out_height + y) * window.out_width + x) * vectors +
                    at.vector;
                const uint32_t place = (at.y + window.pad_top - y * window.stride) * window.width +
                                       (at.x + window.pad_left - x * window.stride);
                const lanes<uint8_t, W> winner = lanes<uint8_t, W>::read(which, from);
                const lanes<T, W> d = lanes<T, W>::read(d_output, from);
                lanes<T, W> other = d;
                if (d_other)
                    other = lanes<T, W>::read(d_other, from);
                for (int i = 0; i < W; i++)
                    if (winner.at[i] == place)
                        sum[i] += d.get(i) + (d_other ? other.get(i) : 0);
            }
    }
};

template <class T, int W> struct max_pool_backward {
    winnings<T, W> from;
    grid inputs;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        float sum[W];
        lanes<T, W> out;

        from.gather(inputs.at(index), sum);
        for (int i = 0; i < W; i++)
            out.set(i, sum[i]);
        out.write(d_input, index);
    }
};

KERNEL_CODE float divisor(const kernel_window &window, uint32_t y, uint32_t x)
{
    const box box = box_at(window, y, x);

    return (float)(window.count_padding
                       ? window.height * window.width
                       : (box.bottom - box.top) * (box.right - box.left));
}

template <class T, int W> struct average_pool {
    kernel_window window;
    grid outputs;
    plain_value<T, W> value;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = outputs.at(index);
        const box box = box_at(window, at.y, at.x);
        float sum[W] = {}, seen[W];
        lanes<T, W> out;

        for (uint32_t y = box.top; y < box.bottom; y++)
            for (uint32_t x = box.left; x < box.right; x++) {
                value.get(at.image, y, x, at.vector, seen);
                for (int i = 0; i < W; i++)
                    sum[i] += seen[i];
            }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i] / divisor(window, at.y, at.x));
        out.write(output, index);
    }
};

template <class T, int W> struct average_pool_backward {
    kernel_window window;
    grid inputs;
    plain_value<T, W> gradient; /* of the output */
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = inputs.at(index);
        uint32_t top, bottom, left, right;
        float sum[W] = {}, seen[W];
        lanes<T, W> out;

        covering(at.y, window.pad_top, window.height, window.stride, window.out_height, &top,
                 &bottom);
        covering(at.x, window.pad_left, window.width, window.stride, window.out_width, &left,
                 &right);
        for (uint32_t y = top; y < bottom; y++)
            for (uint32_t x = left; x < right; x++) {
                gradient.get(at.image, y, x, at.vector, seen);
                for (int i = 0; i < W; i++)
                    sum[i] += seen[i] / divisor(window, y, x);
            }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i]);
        out.write(d_input, index);
    }
};

/* ---- the stem's backward pass ---- */

template <class T, int W> struct stem_source {
    struct row_t {
        lanes<T, W> x;
    };
    struct channels_t {
        floats<W> scale, bias, mean;
    };
    winnings<T, W> from;
    const T *x;
    const float *scale, *bias, *mean;
    T *dz;
    uint32_t vectors;
    grid inputs;

    KERNEL_CODE channels_t of(uint32_t vector) const
    {
        return {floats<W>::read(scale, vector), floats<W>::read(bias, vector),
                floats<W>::read(mean, vector)};
    }
    KERNEL_CODE row_t read(uint64_t pixel, uint32_t vector) const
    {
        return row_t{lanes<T, W>::read(x, pixel * vectors + vector)};
    }
    KERNEL_CODE void use(const channels_t &channels, const row_t &row, uint64_t pixel,
                         uint32_t vector, float *a, float *b) const
    {
        const uint64_t index = pixel * vectors + vector;
        float sum[W];
        lanes<T, W> d;

        from.gather(inputs.at((uint32_t)index), sum);
        for (int i = 0; i < W; i++) {
            d.set(i, row.x.get(i) * channels.scale.at[i] + channels.bias.at[i] <= 0 ? 0 : sum[i]);
            a[i] += d.get(i);
            b[i] += d.get(i) * (row.x.get(i) - channels.mean.at[i]);
        }
        d.write(dz, index);
    }
};

grid inputs_of(const struct kernel_window *window, uint32_t vectors)
{
    return grid::make(window->in_height, window->in_width, vectors);
}

grid outputs_of(const struct kernel_window *window, uint32_t vectors)
{
    return grid::make(window->out_height, window->out_width, vectors);
}

uint64_t in_pixels(const struct kernel_window *window)
{
    return (uint64_t)window->images * window->in_height * window->in_width;
}

uint64_t out_pixels(const struct kernel_window *window)
{
    return (uint64_t)window->images * window->out_height * window->out_width;
}

int check_window(const struct kernel_window *window)
{
    return window->height * window->width > 255
               ? fail(EINVAL, "a max-pool of %u x %u pixels is too large for a device",
                      window->height, window->width)
               : 0;
}

} // namespace

int device_max_pool(const struct kernel_window *window, enum device_type type, const void *input,
                    void *output, uint8_t *which, void *stream)
{
    int code = check_window(window);

    return code ? code : with_width(type, window->in_channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const uint32_t vectors = window->in_channels / W;
        const plain_value<T, W> value = {(const T *)input, window->in_height, window->in_width,
                                         vectors};
        const max_pool<T, W, plain_value<T, W>> kernel = {*window, outputs_of(window, vectors), value,
                                                            (T *)output, which};
        return launch_each("max_pool", kernel, out_pixels(window) * vectors, stream);
    });
}

int device_max_pool_backward(const struct kernel_window *window, enum device_type type,
                             const uint8_t *which, const void *d_output, void *d_input,
                             void *stream)
{
    return with_width(type, window->in_channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const max_pool_backward<T, W> kernel = {{*window, which, (const T *)d_output, nullptr},
                                                inputs_of(window, window->in_channels / W),
                                                (T *)d_input};
        return launch_each("max_pool_backward", kernel,
                           in_pixels(window) * (window->in_channels / W), stream);
    });
}

int device_average_pool(const struct kernel_window *window, enum device_type type,
                        const void *input, void *output, void *stream)
{
    return with_width(type, window->in_channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const uint32_t vectors = window->in_channels / W;
        const average_pool<T, W> kernel = {
            *window, outputs_of(window, vectors),
            {(const T *)input, window->in_height, window->in_width, vectors},
            (T *)output};
        return launch_each("average_pool", kernel, out_pixels(window) * vectors, stream);
    });
}

int device_average_pool_backward(const struct kernel_window *window, enum device_type type,
                                 const void *d_output, void *d_input, void *stream)
{
    return with_width(type, window->in_channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const uint32_t vectors = window->in_channels / W;
        const average_pool_backward<T, W> kernel = {
            *window, inputs_of(window, vectors),
            {(const T *)d_output, window->out_height, window->out_width, vectors},
            (T *)d_input};
        return launch_each("average_pool_backward", kernel, in_pixels(window) * vectors, stream);
    });
}

int device_stem(const struct kernel_window *window, enum device_type type, const float *scale,
                const float *bias, const void *x, void *output, uint8_t *which, void *stream)
{
    int code = check_window(window);

    return code ? code : with_width(type, window->in_channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const uint32_t vectors = window->in_channels / W;
        const norm_value<T, W> value = {
            {(const T *)x, window->in_height, window->in_width, vectors}, scale, bias};
        const max_pool<T, W, norm_value<T, W>> kernel = {*window, outputs_of(window, vectors), value,
                                                            (T *)output, which};
        return launch_each("stem", kernel, out_pixels(window) * vectors, stream);
    }, {scale, bias});
}

int device_stem_backward(const struct kernel_window *window, enum device_type type,
                         const struct device_norm *norm, const uint8_t *which, const void *x,
                         const void *d_output, const void *d_other, void *dz, float *d_gamma,
                         float *d_beta, float *abc, float *partial, void *stream)
{
    const struct device_pixels pixels = {type, window->in_channels, in_pixels(window)};
    const norm_backward_finish finish = {*norm,  (double)pixels.count, d_gamma, d_beta, abc,
                                         pixels.channels};

    return with_width(type, window->in_channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const stem_source<T, W> source = {
            {*window, which, (const T *)d_output, (const T *)d_other},
            (const T *)x, norm->scale, norm->bias, norm->mean, (T *)dz, pixels.channels / W,
            inputs_of(window, pixels.channels / W)};
        return launch_columns<W>("stem_backward", &pixels, source, finish, partial, stream);
    }, {norm->scale, norm->bias, norm->mean});
}
