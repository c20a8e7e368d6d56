/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of floating point and of INT8, one thread per output element. Written for clarity;
 * cuDNN computes what must be fast.
 *
 * Also the references for its results: noise, and single elements of a convolution's result. A
 * block computes one element in FP64, from the definition alone, so that it does not depend on how
 * an engine works.
 */
#include "kernels/launch.cuh"

namespace {

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

geometry geometry_of(const struct kernel_window *window)
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

/* ---- INT8: channels in multiples of 16, so all accesses are vectors ---- */

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

enum { HALVINGS_MAX = 12 };

/* ---- noise ---- */

/* The finaliser of SplitMix64, as in base/random.c. */
KERNEL_CODE uint64_t mixed(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* random_mix() of base/random.h */
KERNEL_CODE uint64_t random_mixed(uint64_t value)
{
    return mixed(value + 0x9e3779b97f4a7c15u);
}

template <class T> KERNEL_CODE void store(float value, T *to)
{
    *to = number<T>::from(value);
}
KERNEL_CODE void store(float value, int8_t *to)
{
    *to = value != value ? INT8_MIN : (int8_t)(value * 127);
}

template <class T> struct noise {
    enum { phases = 1 };
    struct shared_t {};
    struct local_t {};
    struct device_noise of;
    uint64_t count;
    T *to;

    /* Uniform in [0.5, 1), and halved as often as a coin shows heads. */
    KERNEL_CODE float value(uint64_t i) const
    {
        const uint64_t random = random_mixed(of.seed ^ random_mixed(i));
        float value = 0.5f + (float)(random >> 40 & 0x7fffff) * (0.5f / 0x800000);

        if (of.kind == DEVICE_NOISE_POISON)
            return NAN;
        if (of.kind == DEVICE_NOISE_POSITIVE)
            return value * of.scale;
        for (int halvings = 0; halvings < HALVINGS_MAX && random >> halvings & 1; halvings++)
            value *= 0.5f;
        if (random >> 63)
            value = of.kind == DEVICE_NOISE_SIGNED ? -value : 0;
        return value * of.scale;
    }
    KERNEL_CODE void run(int, shared_t &, local_t &, const place &at) const
    {
        for (uint64_t i = (uint64_t)at.block * KERNEL_THREADS + at.thread; i < count;
             i += (uint64_t)at.blocks * KERNEL_THREADS)
            store(value(i), to + i);
    }
};

/* ---- samples ---- */

template <class T> KERNEL_CODE float rounded_as(const T *, float value)
{
    return as_float(number<T>::from(value));
}
KERNEL_CODE float rounded_as(const int8_t *, float value)
{
    return value;
}

template <class T> struct sample {
    enum { phases = 2 };
    struct shared_t {
        double sums[KERNEL_THREADS], squares[KERNEL_THREADS];
    };
    struct local_t {};
    struct device_convolved of;
    geometry g;
    uint64_t terms;
    const uint64_t *positions;
    struct device_sample *samples;

    /* An element that the convolution reads, after BN, sum and ReLU if those are part of it. */
    KERNEL_CODE double input(uint64_t at) const
    {
        const uint32_t c = (uint32_t)(at % g.window.in_channels);
        const T *scale = (const T *)of.scale, *bias = (const T *)of.bias;
        const T *other_scale = (const T *)of.other_scale, *other_bias = (const T *)of.other_bias;
        float value = (float)factor(((const T *)of.input)[at]);

        if (!scale)
            return value;
        value = value * (float)factor(scale[c]) + (float)factor(bias[c]);
        if (of.other) {
            const float other = (float)factor(((const T *)of.other)[at]);
            value += other_scale
                         ? other * (float)factor(other_scale[c]) + (float)factor(other_bias[c])
                         : other;
        }
        return value > 0 ? rounded_as(scale, value) : 0;
    }
    KERNEL_CODE double weight(uint64_t at) const
    {
        return (double)factor(((const T *)of.weight)[at]);
    }
    KERNEL_CODE double output(uint64_t at) const
    {
        return (double)factor(((const T *)of.output)[at]);
    }

    /* Term t of output element `index`: row and column of the filter, and a channel. */
    KERNEL_CODE double of_output(uint64_t index, uint64_t t) const
    {
        const kernel_window &w = g.window;
        const uint32_t k = (uint32_t)(index % w.out_channels), c = (uint32_t)(t % g.ins);
        const uint64_t pixel = index / w.out_channels, tap = t / g.ins;
        const int64_t s = (int64_t)(tap % w.width), r = (int64_t)(tap / w.width);
        const int64_t x = (int64_t)(pixel % w.out_width) * w.stride + s - w.pad_left;
        const int64_t y =
            (int64_t)(pixel / w.out_width % w.out_height) * w.stride + r - w.pad_top;

        if (x < 0 || y < 0 || x >= w.in_width || y >= w.in_height)
            return 0;
        return input(g.input_at(pixel / w.out_width / w.out_height, (uint32_t)y, (uint32_t)x) +
                     k / g.outs * g.ins + c) *
               weight(g.weight_at(k, (uint32_t)r, (uint32_t)s) + c);
    }
    /* Term t of input element `index`: row and column of the filter, and an output channel. */
    KERNEL_CODE double of_input(uint64_t index, uint64_t t) const
    {
        const kernel_window &w = g.window;
        const uint32_t channel = (uint32_t)(index % w.in_channels), group = channel / g.ins;
        const uint32_t k = group * g.outs + (uint32_t)(t % g.outs);
        const uint64_t pixel = index / w.in_channels, tap = t / g.outs;
        const int64_t s = (int64_t)(tap % w.width), r = (int64_t)(tap / w.width);
        const int64_t x = (int64_t)(pixel % w.in_width) + w.pad_left - s;
        const int64_t y = (int64_t)(pixel / w.in_width % w.in_height) + w.pad_top - r;

        if (x < 0 || y < 0 || x % w.stride || y % w.stride || x / w.stride >= w.out_width ||
            y / w.stride >= w.out_height)
            return 0;
        return output(g.output_at(pixel / w.in_width / w.in_height, (uint32_t)(y / w.stride),
                                  (uint32_t)(x / w.stride)) +
                      k) *
               weight(g.weight_at(k, (uint32_t)r, (uint32_t)s) + channel % g.ins);
    }
    /* Term t of weight element `index`: an output pixel. */
    KERNEL_CODE double of_weight(uint64_t index, uint64_t t) const
    {
        const kernel_window &w = g.window;
        const uint32_t c = (uint32_t)(index % g.ins);
        const int64_t s = (int64_t)(index / g.ins % w.width);
        const int64_t r = (int64_t)(index / g.ins / w.width % w.height);
        const uint32_t k = (uint32_t)(index / g.ins / w.width / w.height);
        const int64_t x = (int64_t)(t % w.out_width) * w.stride + s - w.pad_left;
        const int64_t y = (int64_t)(t / w.out_width % w.out_height) * w.stride + r - w.pad_top;

        if (x < 0 || y < 0 || x >= w.in_width || y >= w.in_height)
            return 0;
        return input(g.input_at(t / w.out_width / w.out_height, (uint32_t)y, (uint32_t)x) +
                     k / g.outs * g.ins + c) *
               output(t * w.out_channels + k);
    }
    KERNEL_CODE double term(uint64_t index, uint64_t t) const
    {
        return of.way == DEVICE_TO_OUTPUT  ? of_output(index, t)
               : of.way == DEVICE_TO_INPUT ? of_input(index, t)
                                           : of_weight(index, t);
    }

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        double sum = 0, squares = 0;

        if (phase == 0) {
            for (uint64_t t = at.thread; t < terms; t += KERNEL_THREADS) {
                const double value = term(positions[at.block], t);
                sum += value;
                squares += value * value;
            }
            shared.sums[at.thread] = sum;
            shared.squares[at.thread] = squares;
        } else if (at.thread == 0) {
            for (uint32_t i = 0; i < KERNEL_THREADS; i++) {
                sum += shared.sums[i];
                squares += shared.squares[i];
            }
            samples[at.block] = {sum, squares};
        }
    }
};

/* with_type(), or INT8. */
template <class F> int with_number(enum device_type type, const F &f)
{
    return type == DEVICE_INT8 ? f((int8_t *)nullptr) : with_type(type, f);
}

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

int device_noise(const struct device_noise *of, uint64_t count, void *to, void *stream)
{
    const uint64_t blocks = (count + KERNEL_THREADS - 1) / KERNEL_THREADS, most = 2048;

    return with_number(of->type, [&]<class T>(T *) {
        const noise<T> kernel = {*of, count, (T *)to};
        return launch_phases("noise", kernel,
                             (uint32_t)(blocks < most ? blocks : most),
                             stream);
    });
}

int device_convolution_samples(const struct device_convolved *of, const uint64_t *positions,
                               uint32_t count, struct device_sample *samples, void *stream)
{
    return with_number(of->type, [&]<class T>(T *) {
        const sample<T> kernel = {*of, geometry_of(&of->window),
                                  device_convolution_terms(&of->window, of->way), positions,
                                  samples};
        return launch_phases("convolution_samples", kernel, count, stream);
    });
}
