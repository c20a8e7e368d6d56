/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch.cuh"

namespace {

/* ---- statistics ---- */

/* Moments around the first pixel, so that a large mean costs no precision. */
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

/* 1 / count and count / (count - 1) of a batch's pixels. */
struct pixel_count {
    double share, unbiased;

    explicit pixel_count(uint64_t count)
        : share(1 / (double)count), unbiased(count > 1 ? (double)count / (double)(count - 1) : 1)
    {
    }
};

/* A channel's numbers before the batch. */
struct channel_before {
    float gamma, beta, mean, variance;

    static KERNEL_CODE channel_before of(const device_norm &norm, uint32_t c)
    {
        return {norm.gamma[c], norm.beta[c], norm.running_mean[c], norm.running_variance[c]};
    }
};

/* Derive all batch statistics from mean and variance. */
template <class T>
KERNEL_CODE void keep_moments(const device_norm &norm, uint32_t c, const channel_before &before,
                              double mean, double spread, const pixel_count &count)
{
    const double variance = spread > 0 ? spread : 0;
    const double inverse = 1 / sqrt(variance + norm.epsilon);
    const float scale = (float)(before.gamma * inverse);
    const float bias = (float)(before.beta - before.gamma * inverse * mean);

    norm.mean[c] = (float)mean;
    norm.inverse[c] = (float)inverse;
    norm.scale[c] = scale;
    norm.bias[c] = bias;
    if (norm.typed_scale) {
        ((T *)norm.typed_scale)[c] = number<T>::from(scale);
        ((T *)norm.typed_bias)[c] = number<T>::from(bias);
        norm.gamma_copy[c] = before.gamma;
        norm.beta_copy[c] = before.beta;
    }
    norm.running_mean[c] = (float)((1 - norm.momentum) * before.mean + norm.momentum * mean);
    norm.running_variance[c] = (float)((1 - norm.momentum) * before.variance +
                                       norm.momentum * count.unbiased * variance);
}

template <class T> struct moment_finish {
    device_norm norm;
    const T *x;
    pixel_count count;

    KERNEL_CODE void take(uint32_t c, double sum, double squares) const
    {
        const double off = sum * count.share;
        keep_moments<T>(norm, c, channel_before::of(norm, c), as_float(x[c]) + off,
                        squares * count.share - off * off, count);
    }
};

/* Read everything in a phase of its own: the compiler would spread it over three waits for memory,
 * which take most of the time. */
template <class T> struct sums_finish {
    enum { phases = 2 };
    struct shared_t {};
    struct local_t {
        float sum, squares;
        channel_before before;
    };
    uint32_t channels;
    device_norm norm;
    const float *sums, *squares;
    pixel_count count;

    KERNEL_CODE void run(int phase, shared_t &, local_t &local, const place &at) const
    {
        const uint32_t c = at.block * KERNEL_THREADS + at.thread;

        if (c >= channels)
            return;
        if (phase == 0)
            local = {sums[c], squares[c], channel_before::of(norm, c)};
        else {
            const double mean = local.sum * count.share;
            keep_moments<T>(norm, c, local.before, mean, local.squares * count.share - mean * mean,
                            count);
        }
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

/* RECTIFIED: from.rectified, as the coefficients take registers. */
template <class T, int W, bool RECTIFIED> struct gradient_source {
    struct row_t {
        lanes<T, W> x, d, other, mask;
        unsigned open;

        KERNEL_CODE void close(int i, bool closed)
        {
            d.set(i, closed ? 0 : d.get(i));
        }
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
        if (RECTIFIED) {
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
        if (from.d_other)
            for (int i = 0; i < W; i++)
                row.d.set(i, row.d.get(i) + row.other.get(i));
        if (from.mask)
            for (int i = 0; i < W; i++)
                row.close(i, row.mask.get(i) <= 0);
        if (from.open)
            for (int i = 0; i < W; i++)
                row.close(i, !(row.open >> i & 1));
        if (RECTIFIED)
            for (int i = 0; i < W; i++)
                row.close(i, row.x.get(i) * channels.scale.at[i] + channels.bias.at[i] <= 0);
        for (int i = 0; i < W; i++) {
            const float d = row.d.get(i); /* rounded as it will be read back */
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
               ? fail(EINVAL, "a ReLU of %u channels cannot be kept as bits", pixels->channels)
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
    return with_width(pixels->type, pixels->channels, [&]<class T, int W>(T *, width_t<W>) {
        const moment_source<T, W> source = {(const T *)x, pixels->channels / W};
        const moment_finish<T> finish = {*norm, (const T *)x, pixel_count(pixels->count)};
        return launch_columns<W>("norm_statistics", pixels, source, finish, partial, stream);
    });
}

int device_norm_finish(const struct device_pixels *pixels, const struct device_norm *norm,
                       const float *sums, const float *squares, void *stream)
{
    return with_type(pixels->type, [&]<class T>(T *) {
        const sums_finish<T> finish = {pixels->channels, *norm, sums, squares,
                                       pixel_count(pixels->count)};
        return launch_phases("norm_finish", finish,
                             (pixels->channels + KERNEL_THREADS - 1) / KERNEL_THREADS, stream);
    });
}

int device_norm_infer(uint32_t channels, const struct device_norm *norm, void *stream)
{
    return launch_each("norm_infer", infer_coefficients{*norm}, channels, stream);
}

int device_affine(const struct device_pixels *pixels, const struct device_affine *with,
                  const void *x, void *y, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&]<class T, int W>(T *, width_t<W>) {
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

    return with_width(pixels->type, pixels->channels, [&]<class T, int W>(T *, width_t<W>) {
        const int code = check_open(gradient->open, pixels, W);
        if (code)
            return code;
        if (gradient->rectified) {
            const gradient_source<T, W, true> source = {*gradient, *norm, (const T *)x,
                                                        pixels->channels / W};
            return launch_columns<W, 2>("norm_backward", pixels, source, finish, partial, stream);
        }
        /* Read one pixel at a time: with four blocks per multiprocessor memory is busier than with
         * fewer blocks that read several pixels. */
        const gradient_source<T, W, false> source = {*gradient, *norm, (const T *)x,
                                                     pixels->channels / W};
        return launch_columns<W, 1>("norm_backward", pixels, source, finish, partial, stream);
    }, {norm->mean, norm->scale, norm->bias});
}

int device_norm_backward_apply(const struct device_pixels *pixels, const float *abc, const void *dz,
                               const void *x, void *d_input, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&]<class T, int W>(T *, width_t<W>) {
        const backward_apply<T, W> kernel = {divide::make(pixels->channels / W), pixels->channels, abc,
                                             (const T *)dz, (const T *)x, (T *)d_input};
        return launch_each("norm_backward_apply", kernel,
                           pixels->count * (pixels->channels / W), stream);
    }, {abc});
}

int device_bias_gradient(const struct device_pixels *pixels, const void *d_output,
                         float *d_bias, float *partial, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&]<class T, int W>(T *, width_t<W>) {
        const bias_source<T, W> source = {(const T *)d_output, pixels->channels / W};
        return launch_columns<W>("bias_gradient", pixels, source, bias_finish{d_bias},
                                 partial, stream);
    });
}
