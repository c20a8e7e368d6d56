/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/norm.cuh"

namespace {

/* ---- statistics ---- */

/* Around the first pixel, so that a large mean costs no precision. */
template <class T, int W> struct moment_source {
    using row_t = lanes<T, W>;
    using channels_t = lanes<T, W>;
    const T *x;
    uint32_t vectors;

    KERNEL_CODE channels_t of(uint32_t vector) const
    {
        return row_t::read(x, vector);
    }
    KERNEL_CODE row_t read(uint64_t pixel, uint32_t vector) const
    {
        return row_t::read(x, pixel * vectors + vector);
    }
    KERNEL_CODE void use(const channels_t &first, const row_t &row, uint64_t, uint32_t, float *a,
                         float *b) const
    {
        for (int i = 0; i < W; i++) {
            const float off = row.get(i) - first.get(i);
            a[i] += off;
            b[i] += off * off;
        }
    }
};

/* Derive all batch statistics from mean and variance. */
template <class T>
KERNEL_CODE void keep_moments(const device_norm &norm, uint32_t c, double mean, double spread,
                              double count)
{
    const double variance = spread > 0 ? spread : 0;
    const double inverse = 1 / sqrt(variance + norm.epsilon);
    const double unbiased = count > 1 ? count / (count - 1) : 1;
    const float scale = (float)(norm.gamma[c] * inverse);
    const float bias = (float)(norm.beta[c] - norm.gamma[c] * inverse * mean);

    norm.mean[c] = (float)mean;
    norm.inverse[c] = (float)inverse;
    norm.scale[c] = scale;
    norm.bias[c] = bias;
    if (norm.typed_scale) {
        ((T *)norm.typed_scale)[c] = number<T>::from(scale);
        ((T *)norm.typed_bias)[c] = number<T>::from(bias);
        norm.gamma_copy[c] = norm.gamma[c];
        norm.beta_copy[c] = norm.beta[c];
    }
    norm.running_mean[c] =
        (float)((1 - norm.momentum) * norm.running_mean[c] + norm.momentum * mean);
    norm.running_variance[c] = (float)((1 - norm.momentum) * norm.running_variance[c] +
                                       norm.momentum * unbiased * variance);
}

template <class T> struct moment_finish {
    device_norm norm;
    const T *x;
    double count;

    KERNEL_CODE void take(uint32_t c, double sum, double squares) const
    {
        const double off = sum / count;
        keep_moments<T>(norm, c, as_float(x[c]) + off, squares / count - off * off, count);
    }
};

template <class T> struct sums_finish {
    device_norm norm;
    const float *sums, *squares;
    double count;

    KERNEL_CODE void each(uint32_t c) const
    {
        const double mean = sums[c] / count;
        keep_moments<T>(norm, c, mean, squares[c] / count - mean * mean, count);
    }
};

struct infer_coefficients {
    device_norm norm;

    KERNEL_CODE void each(uint32_t c) const
    {
        const double scale = norm.gamma[c] / sqrt(norm.running_variance[c] + norm.epsilon);
        norm.scale[c] = (float)scale;
        norm.bias[c] = (float)(norm.beta[c] - scale * norm.running_mean[c]);
    }
};

/* ---- applying ---- */

/* A bit for each number of a ReLU's output: 0 where no gradient passes. */
template <class T, int W> KERNEL_CODE uint8_t open_of(const lanes<T, W> &y)
{
    unsigned open = 0;

    for (int i = 0; i < W; i++)
        open |= (unsigned)!(y.get(i) <= 0) << i;
    return (uint8_t)open;
}

template <class T, int W> struct affine {
    struct device_affine with;
    divide vectors;
    const T *x;
    T *y;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t vector = vectors.rest(index);
        lanes<T, W> in = lanes<T, W>::read(x, index);
        float out[W];

        for (int i = 0; i < W; i++)
            out[i] = in.get(i);
        if (with.scale) {
            const floats<W> scale = floats<W>::read(with.scale, vector);
            for (int i = 0; i < W; i++)
                out[i] *= scale.at[i];
        }
        if (with.bias) {
            const floats<W> bias = floats<W>::read(with.bias, vector);
            for (int i = 0; i < W; i++)
                out[i] += bias.at[i];
        }
        if (with.other) {
            const lanes<T, W> other = lanes<T, W>::read((const T *)with.other, index);
            if (with.other_scale) {
                const floats<W> scale = floats<W>::read(with.other_scale, vector);
                const floats<W> bias = floats<W>::read(with.other_bias, vector);
                for (int i = 0; i < W; i++)
                    out[i] += other.get(i) * scale.at[i] + bias.at[i];
            } else
                for (int i = 0; i < W; i++)
                    out[i] += other.get(i);
        }
        for (int i = 0; i < W; i++)
            in.set(i, with.relu && out[i] < 0 ? 0.0f : out[i]);
        in.write(y, index);
        if (with.open)
            with.open[index] = open_of(in);
    }
};

/* ---- backward ---- */

template <class T, int W> struct gradient_source {
    struct row_t {
        lanes<T, W> x, d, other, mask;
        unsigned open;
    };
    struct channels_t {
        floats<W> mean, scale, bias;
    };
    device_norm_gradient from;
    device_norm norm;
    const T *x;
    uint32_t vectors;

    KERNEL_CODE channels_t of(uint32_t vector) const
    {
        channels_t channels = {};

        channels.mean = floats<W>::read(norm.mean, vector);
        if (from.rectified) {
            channels.scale = floats<W>::read(norm.scale, vector);
            channels.bias = floats<W>::read(norm.bias, vector);
        }
        return channels;
    }
    KERNEL_CODE row_t read(uint64_t pixel, uint32_t vector) const
    {
        const uint64_t at = pixel * vectors + vector;
        row_t row;

        row.x = lanes<T, W>::read(x, at);
        row.d = lanes<T, W>::read((const T *)from.d_output, at);
        if (from.d_other)
            row.other = lanes<T, W>::read((const T *)from.d_other, at);
        if (from.mask)
            row.mask = lanes<T, W>::read((const T *)from.mask, at);
        if (from.open)
            row.open = from.open[at];
        return row;
    }
    KERNEL_CODE void use(const channels_t &channels, row_t &row, uint64_t pixel, uint32_t vector,
                         float *a, float *b) const
    {
        for (int i = 0; i < W; i++) {
            float d = row.d.get(i);
            if (from.d_other)
                d += row.other.get(i);
            if (from.mask && row.mask.get(i) <= 0)
                d = 0;
            if (from.open && !(row.open >> i & 1))
                d = 0;
            if (from.rectified && row.x.get(i) * channels.scale.at[i] + channels.bias.at[i] <= 0)
                d = 0;
            row.d.set(i, d);
            d = row.d.get(i); /* rounded as it will be read back */
            a[i] += d;
            b[i] += d * (row.x.get(i) - channels.mean.at[i]);
        }
        if (from.dz)
            row.d.write((T *)from.dz, pixel * vectors + vector);
    }
};

template <class T, int W> struct backward_apply {
    divide vectors;
    uint32_t channels;
    const float *abc;
    const T *dz, *x;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t vector = vectors.rest(index);
        lanes<T, W> d = lanes<T, W>::read(dz, index);
        const lanes<T, W> in = lanes<T, W>::read(x, index);
        const floats<W> a = floats<W>::read(abc, vector);
        const floats<W> b = floats<W>::read(abc + channels, vector);
        const floats<W> c = floats<W>::read(abc + 2 * channels, vector);

        for (int i = 0; i < W; i++)
            d.set(i, a.at[i] * d.get(i) + b.at[i] * in.get(i) + c.at[i]);
        d.write(d_input, index);
    }
};

/* ---- the gradient of a bias ---- */

template <class T, int W> struct bias_source {
    using row_t = lanes<T, W>;
    struct channels_t {};
    const T *d_output;
    uint32_t vectors;

    KERNEL_CODE channels_t of(uint32_t) const
    {
        return {};
    }
    KERNEL_CODE row_t read(uint64_t pixel, uint32_t vector) const
    {
        return row_t::read(d_output, pixel * vectors + vector);
    }
    KERNEL_CODE void use(const channels_t &, const row_t &row, uint64_t, uint32_t, float *a,
                         float *) const
    {
        for (int i = 0; i < W; i++)
            a[i] += row.get(i);
    }
};

struct bias_finish {
    float *d_bias;

    KERNEL_CODE void take(uint32_t c, double sum, double) const
    {
        d_bias[c] = (float)sum;
    }
};

} // namespace

/* The bits of a ReLU need vectors. */
static int check_open(const uint8_t *open, const struct device_pixels *pixels, int width)
{
    const int whole = (int)(16 / device_type_bytes(pixels->type));

    return open && width != whole
               ? fail(EINVAL, "no bits tell where a ReLU of %u channels was open", pixels->channels)
               : 0;
}

size_t device_partial_floats(const struct device_pixels *pixels)
{
    const column_shape narrow = columns_of(pixels, 1);
    uint32_t splits = narrow.splits;

    for (uint32_t width = 2; width <= 8; width *= 2)
        if (pixels->channels % width == 0) {
            const column_shape shape = columns_of(pixels, width);
            splits = shape.splits > splits ? shape.splits : splits;
        }
    return (size_t)splits * 2 * pixels->channels;
}

int device_norm_statistics(const struct device_pixels *pixels, const struct device_norm *norm,
                           const void *x, float *partial, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const moment_source<T, W> source = {(const T *)x, pixels->channels / W};
        const moment_finish<T> finish = {*norm, (const T *)x, (double)pixels->count};
        return launch_columns<W>("norm_statistics", pixels, source, finish, partial, stream);
    });
}

int device_norm_finish(const struct device_pixels *pixels, const struct device_norm *norm,
                       const float *sums, const float *squares, void *stream)
{
    return with_type(pixels->type, [&](auto *null) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const sums_finish<T> finish = {*norm, sums, squares, (double)pixels->count};
        return launch_each("norm_finish", finish, pixels->channels, stream);
    });
}

int device_norm_infer(uint32_t channels, const struct device_norm *norm, void *stream)
{
    return launch_each("norm_infer", infer_coefficients{*norm}, channels, stream);
}

int device_affine(const struct device_pixels *pixels, const struct device_affine *with,
                  const void *x, void *y, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const affine<T, W> kernel = {*with, divide::make(pixels->channels / W), (const T *)x, (T *)y};
        const int code = check_open(with->open, pixels, W);
        return code ? code
                    : launch_each("affine", kernel, pixels->count * (pixels->channels / W), stream);
    }, {with->scale, with->bias, with->other_scale, with->other_bias});
}

int device_norm_backward(const struct device_pixels *pixels, const struct device_norm *norm,
                         const struct device_norm_gradient *gradient, const void *x,
                         float *d_gamma, float *d_beta, float *abc, float *partial, void *stream)
{
    const norm_backward_finish finish = {*norm,  (double)pixels->count, d_gamma, d_beta, abc,
                                         pixels->channels};

    return with_width(pixels->type, pixels->channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const gradient_source<T, W> source = {*gradient, *norm, (const T *)x,
                                              pixels->channels / W};
        const int code = check_open(gradient->open, pixels, W);
        return code ? code
                    : launch_columns<W>("norm_backward", pixels, source, finish, partial, stream);
    }, {norm->mean, norm->scale, norm->bias});
}

int device_norm_backward_apply(const struct device_pixels *pixels, const float *abc, const void *dz,
                               const void *x, void *d_input, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const backward_apply<T, W> kernel = {divide::make(pixels->channels / W), pixels->channels, abc,
                                             (const T *)dz, (const T *)x, (T *)d_input};
        return launch_each("norm_backward_apply", kernel,
                           pixels->count * (pixels->channels / W), stream);
    }, {abc});
}

int device_bias_gradient(const struct device_pixels *pixels, const void *d_output,
                         float *d_bias, float *partial, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&](auto *null, auto width) {
        using T = typename std::remove_pointer<decltype(null)>::type;
        const int W = decltype(width)::value;
        const bias_source<T, W> source = {(const T *)d_output, pixels->channels / W};
        return launch_columns<W>("bias_gradient", pixels, source, bias_finish{d_bias},
                                 partial, stream);
    });
}
