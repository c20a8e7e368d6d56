/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch.cuh"

namespace {

KERNEL_CODE float relu_of(float value)
{
    return value < 0 ? 0 : value; /* NaN stays NaN */
}

template <class T, int W> struct sum {
    const T *a, *b;
    bool relu;
    T *out;

    KERNEL_CODE void each(uint32_t index) const
    {
        lanes<T, W> x = lanes<T, W>::read(a, index);
        if (b) {
            const lanes<T, W> y = lanes<T, W>::read(b, index);
            for (int i = 0; i < W; i++)
                x.set(i, relu ? relu_of(x.get(i) + y.get(i)) : x.get(i) + y.get(i));
        } else if (relu)
            for (int i = 0; i < W; i++)
                x.set(i, relu_of(x.get(i)));
        x.write(out, index);
    }
};

template <class T, int W> struct relu_backward {
    const T *output, *d_output;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const lanes<T, W> y = lanes<T, W>::read(output, index);
        lanes<T, W> d = lanes<T, W>::read(d_output, index);
        for (int i = 0; i < W; i++)
            d.set(i, y.get(i) <= 0 ? 0 : d.get(i));
        d.write(d_input, index);
    }
};

template <class T, int W> struct copy_part {
    device_part part;
    divide vectors;
    const T *from;
    T *to;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint64_t pixel = vectors.quotient(index), lane = vectors.rest(index);
        const uint64_t in = (pixel * part.from_channels + part.from_offset) / W + lane;
        const uint64_t out = (pixel * part.to_channels + part.to_offset) / W + lane;
        lanes<T, W>::read(from, in).write(to, out);
    }
};

/* Like kernel_dropout_keeps(), with the rate given as the least hash that is kept. */
template <class T, int W> struct dropout {
    divide vectors, plane;
    const uint64_t *key;
    uint32_t least;
    float scale;
    const T *input;
    T *output;

    /* dropout_bits() of kernels.c; product: index * golden */
    static KERNEL_CODE uint32_t bits(uint64_t key, uint32_t product)
    {
        uint32_t bits = (product + (uint32_t)key) ^ (uint32_t)(key >> 32);

        bits = (bits ^ bits >> 16) * 0x85ebca6bu;
        bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
        return bits ^ bits >> 16;
    }

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t golden = 0x9e3779b1u;
        const uint32_t pixel = vectors.quotient(index), channel = vectors.rest(index) * W;
        const uint32_t image = plane.quotient(pixel), place = plane.rest(pixel);
        const uint32_t canonical = (image * vectors.by * W + channel) * plane.by + place;
        const uint64_t own = *key;
        lanes<T, W> numbers = lanes<T, W>::read(input, index);

        for (uint32_t i = 0; i < W; i++)
            numbers.set((int)i, bits(own, (canonical + i * plane.by) * golden) >= least
                                    ? numbers.get((int)i) * scale
                                    : 0.0f);
        numbers.write(output, index);
    }
};

struct lrn_shape {
    uint32_t channels, half;
    float share, beta, k; /* share: alpha / size */

    /* k + share * sum of squares around channel c. */
    template <class T> KERNEL_CODE float base(const T *pixel, uint32_t c) const
    {
        float squares = 0;
        for (uint32_t j = c > half ? c - half : 0; j <= c + half && j < channels; j++)
            squares += as_float(pixel[j]) * as_float(pixel[j]);
        return k + share * squares;
    }
};

template <class T> struct lrn_forward {
    lrn_shape shape;
    const T *input;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t c = (uint32_t)(index % shape.channels);
        const float base = shape.base(input + (index - c), c);
        output[index] = number<T>::from(as_float(input[index]) * powf(base, -shape.beta));
    }
};

template <class T> struct lrn_backward {
    lrn_shape shape;
    const T *input, *d_output;
    T *d_input;

    /* Gather channel c's share of its neighbours' gradients; see kernels/kernels.c. */
    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t c = (uint32_t)(index % shape.channels);
        const T *x = input + (index - c), *d = d_output + (index - c);
        float own = 0, shared = 0;
        for (uint32_t j = c > shape.half ? c - shape.half : 0;
             j <= c + shape.half && j < shape.channels; j++) {
            const float base = shape.base(x, j);
            const float passed = as_float(d[j]) * powf(base, -shape.beta);
            shared += passed * as_float(x[j]) / base;
            if (j == c)
                own = passed;
        }
        d_input[index] =
            number<T>::from(own - 2 * shape.share * shape.beta * as_float(x[c]) * shared);
    }
};

/* ---- LRN of the usual size, in vectors ---- */

/* Numbers of a pixel: a vector's and MARGIN on either side; outside the pixel, zeros. */
template <class T, int W, int MARGIN> struct stretch {
    float at[MARGIN + W + MARGIN];

    static KERNEL_CODE stretch read(const T *from, uint32_t index, uint32_t vector, uint32_t vectors)
    {
        const bool first = vector == 0, last = vector + 1 == vectors;
        const lanes<T, W> own = lanes<T, W>::read(from, index);
        const lanes<T, W> before = lanes<T, W>::read(from, first ? index : index - 1);
        const lanes<T, W> after = lanes<T, W>::read(from, last ? index : index + 1);
        stretch all;

        for (int i = 0; i < MARGIN; i++) {
            all.at[i] = first ? 0 : before.get(W - MARGIN + i);
            all.at[MARGIN + W + i] = last ? 0 : after.get(i);
        }
        for (int i = 0; i < W; i++)
            all.at[MARGIN + i] = own.get(i);
        return all;
    }
    /* The sum of 2 * HALF + 1 terms. */
    template <int HALF> KERNEL_CODE float sum(int first) const
    {
        float sum = at[first];

        for (int i = 1; i <= 2 * HALF; i++)
            sum += at[first + i];
        return sum;
    }
    KERNEL_CODE stretch squares() const
    {
        stretch all;

        for (int i = 0; i < MARGIN + W + MARGIN; i++)
            all.at[i] = at[i] * at[i];
        return all;
    }
};

/* Logarithm and power of 2, within 2^-21 for the bases of LRN, which are not far below 1. */
KERNEL_CODE float log2_of(float value)
{
#ifdef __CUDA_ARCH__
    float log;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log) : "f"(value));
    return log;
#else
    return log2f(value);
#endif
}
KERNEL_CODE float exp2_of(float value)
{
#ifdef __CUDA_ARCH__
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
    return power;
#else
    return exp2f(value);
#endif
}

template <class T, int W, int HALF> struct lrn_vectors {
    divide vectors;
    lrn_shape shape;
    const T *input;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const auto x = stretch<T, W, HALF>::read(input, index, vectors.rest(index), vectors.by);
        const auto squares = x.squares();
        lanes<T, W> out;

        for (int i = 0; i < W; i++) {
            const float base = shape.k + shape.share * squares.template sum<HALF>(i);
            out.set(i, x.at[HALF + i] * exp2_of(-shape.beta * log2_of(base)));
        }
        out.write(output, index);
    }
};

/* The neighbours' bases are computed once more: they need numbers twice as far away. */
template <class T, int W, int HALF> struct lrn_vectors_backward {
    divide vectors;
    lrn_shape shape;
    const T *input, *d_output;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t vector = vectors.rest(index);
        const auto x = stretch<T, W, 2 * HALF>::read(input, index, vector, vectors.by);
        const auto d = stretch<T, W, HALF>::read(d_output, index, vector, vectors.by);
        const auto squares = x.squares();
        stretch<T, W, HALF> own, shared;
        lanes<T, W> out;

        for (int j = 0; j < W + 2 * HALF; j++) {
            const float log = log2_of(shape.k + shape.share * squares.template sum<HALF>(j));
            own.at[j] = d.at[j] * exp2_of(-shape.beta * log);
            shared.at[j] = own.at[j] * x.at[HALF + j] * exp2_of(-log);
        }
        for (int i = 0; i < W; i++)
            out.set(i, own.at[HALF + i] - 2 * shape.share * shape.beta * x.at[2 * HALF + i] *
                                              shared.template sum<HALF>(i));
        out.write(d_input, index);
    }
};

enum { LRN_HALF = 2 };

lrn_shape shape_of(const struct kernel_lrn *lrn)
{
    return lrn_shape{lrn->channels, lrn->size / 2, (float)(lrn->alpha / lrn->size),
                     (float)lrn->beta, (float)lrn->k};
}

uint64_t lrn_count(const struct kernel_lrn *lrn)
{
    return (uint64_t)lrn->images * lrn->channels * lrn->plane;
}

} // namespace

int device_sum(enum device_type type, uint64_t count, const void *a, const void *b, bool relu,
               void *sum_of, void *stream)
{
    return with_width(type, count, [&]<class T, int W>(T *, width_t<W>) {
        const sum<T, W> kernel = {(const T *)a, (const T *)b, relu, (T *)sum_of};
        return launch_each("sum", kernel, count / W, stream);
    });
}

int device_relu_backward(enum device_type type, uint64_t count, const void *output,
                         const void *d_output, void *d_input, void *stream)
{
    return with_width(type, count, [&]<class T, int W>(T *, width_t<W>) {
        const relu_backward<T, W> kernel = {(const T *)output, (const T *)d_output, (T *)d_input};
        return launch_each("relu_backward", kernel, count / W, stream);
    });
}

int device_copy_part(const struct device_part *part, const void *from, void *to, void *stream)
{
    /* Vectorised if every length and offset is a multiple of the vector width. */
    const uint32_t all = part->channels | part->from_channels | part->from_offset |
                         part->to_channels | part->to_offset;

    return with_width(part->type, all, [&]<class T, int W>(T *, width_t<W>) {
        const copy_part<T, W> kernel = {*part, divide::make(part->channels / W), (const T *)from, (T *)to};
        return launch_each("copy_part", kernel, part->pixels * (part->channels / W), stream);
    });
}

int device_dropout(const struct device_pixels *pixels, uint32_t plane, const uint64_t *key,
                   double rate, const void *input, void *output, void *stream)
{
    return with_width(pixels->type, pixels->channels, [&]<class T, int W>(T *, width_t<W>) {
        const dropout<T, W> kernel = {divide::make(pixels->channels / W), divide::make(plane), key,
                                      kernel_dropout_least(rate), (float)(1 / (1 - rate)), (const T *)input, (T *)output};
        return launch_each("dropout", kernel, pixels->count * (pixels->channels / W), stream);
    });
}

int device_lrn(const struct kernel_lrn *lrn, enum device_type type, const void *input, void *output,
               void *stream)
{
    const lrn_shape shape = shape_of(lrn);

    return with_width(type, lrn->channels, [&]<class T, int W>(T *, width_t<W>) {
        if constexpr (W > 1)
            if (shape.half == LRN_HALF) {
                const lrn_vectors<T, W, LRN_HALF> kernel = {divide::make(lrn->channels / W), shape,
                                                            (const T *)input, (T *)output};
                return launch_each("lrn", kernel, lrn_count(lrn) / W, stream);
            }
        const lrn_forward<T> kernel = {shape, (const T *)input, (T *)output};
        return launch_each("lrn", kernel, lrn_count(lrn), stream);
    });
}

int device_lrn_backward(const struct kernel_lrn *lrn, enum device_type type, const void *input,
                        const void *d_output, void *d_input, void *stream)
{
    const lrn_shape shape = shape_of(lrn);

    return with_width(type, lrn->channels, [&]<class T, int W>(T *, width_t<W>) {
        if constexpr (W > 1)
            if (shape.half == LRN_HALF) {
                const lrn_vectors_backward<T, W, LRN_HALF> kernel = {
                    divide::make(lrn->channels / W), shape, (const T *)input, (const T *)d_output,
                    (T *)d_input};
                return launch_each<3>("lrn_backward", kernel, lrn_count(lrn) / W, stream);
            }
        const lrn_backward<T> kernel = {shape, (const T *)input, (const T *)d_output,
                                        (T *)d_input};
        return launch_each("lrn_backward", kernel, lrn_count(lrn), stream);
    });
}
