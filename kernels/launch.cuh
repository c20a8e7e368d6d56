/* SPDX-License-Identifier: Apache-2.0
 *
 * launch: how device kernels are written and started. For device kernels only.
 *
 * A kernel is a struct. Either each() computes one index of a count below 2^31, independent of all
 * others; or block-wide work is split into phases with a barrier between them: shared is the
 * block's memory, local the state a thread keeps between phases.
 *
 * The same source also compiles for the host, with KERNELS_EMULATED: each phase then runs for one
 * thread of a block after another. All logic of the kernels and of their callers is tested this way
 * on machines without a device; a device is needed only to show races, rates and rounding.
 */
#ifndef IOBENCH_KERNELS_LAUNCH_CUH
#define IOBENCH_KERNELS_LAUNCH_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" {
#include "base/fail.h"
#include "kernels/device.h"
}

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <initializer_list>

#ifdef KERNELS_EMULATED
#define KERNEL_CODE inline
#define KERNEL_UNROLL
#define KERNEL_ROLLED
#else
#define KERNEL_CODE __host__ __device__ __forceinline__
#ifdef __CUDA_ARCH__
#define KERNEL_UNROLL _Pragma("unroll")
#define KERNEL_ROLLED _Pragma("unroll 1")
#else
#define KERNEL_UNROLL
#define KERNEL_ROLLED
#endif
#endif

enum { KERNEL_THREADS = 256 };

struct place {
    uint32_t thread, block, blocks;
};

/* ---- numbers: storage types, and 16-byte vectors of them ---- */

KERNEL_CODE float as_float(float value)
{
    return value;
}
#ifdef KERNELS_EMULATED
/* On the host, the conversion of CUDA's headers takes a quarter of the time of emulated tests. */
inline float as_float(__half value)
{
    uint16_t bits;
    uint32_t word;
    float wide;

    memcpy(&bits, &value, sizeof bits);
    word = (uint32_t)(bits & 0x7fff) << 13; /* its exponent is biased by 15, not 127 */
    memcpy(&wide, &word, sizeof wide);
    wide *= 0x1p112f;
    memcpy(&word, &wide, sizeof word);
    if ((bits & 0x7c00) == 0x7c00) /* infinite or NaN */
        word |= 0x7f800000;
    word |= (uint32_t)(bits & 0x8000) << 16;
    memcpy(&wide, &word, sizeof wide);
    return wide;
}
inline float as_float(__nv_bfloat16 value)
{
    uint16_t bits;
    uint32_t word;
    float wide;

    memcpy(&bits, &value, sizeof bits);
    word = (uint32_t)bits << 16;
    memcpy(&wide, &word, sizeof wide);
    return wide;
}
#else
KERNEL_CODE float as_float(__half value)
{
    return __half2float(value);
}
KERNEL_CODE float as_float(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}
#endif

template <class T> struct number;
template <> struct number<float> {
    static KERNEL_CODE float from(float value)
    {
        return value;
    }
};
template <> struct number<__half> {
    static KERNEL_CODE __half from(float value)
    {
        return __float2half_rn(value);
    }
};
template <> struct number<__nv_bfloat16> {
    static KERNEL_CODE __nv_bfloat16 from(float value)
    {
        return __float2bfloat16_rn(value);
    }
};

/* The vector at that index. A misaligned access is fatal on a device. */
template <class Vector, class T> KERNEL_CODE Vector &vector_at(T *from, uint64_t index)
{
#ifdef KERNELS_EMULATED
    if (reinterpret_cast<uintptr_t>(from) % alignof(Vector))
        abort();
#endif
    return reinterpret_cast<Vector *>(from)[index];
}

/* WIDTH numbers, read and written at once. */
template <class T, int WIDTH> struct alignas(sizeof(T) * WIDTH) lanes {
    T at[WIDTH];

    static KERNEL_CODE lanes read(const T *from, uint64_t index)
    {
        return vector_at<const lanes>(from, index);
    }
    KERNEL_CODE void write(T *to, uint64_t index) const
    {
        vector_at<lanes>(to, index) = *this;
    }
    KERNEL_CODE float get(int i) const
    {
        return as_float(at[i]);
    }
    KERNEL_CODE void set(int i, float value)
    {
        at[i] = number<T>::from(value);
    }
};

/* WIDTH numbers of one per channel: four at once, as with_width() has made sure. */
template <int WIDTH> struct floats {
    float at[WIDTH];

    static KERNEL_CODE floats read(const float *from, uint32_t vector)
    {
        const int at_once = WIDTH < 4 ? WIDTH : 4;
        floats all;

        for (int i = 0; i < WIDTH / at_once; i++) {
            const lanes<float, at_once> some =
                lanes<float, at_once>::read(from, vector * (WIDTH / at_once) + (uint32_t)i);
            for (int j = 0; j < at_once; j++)
                all.at[i * at_once + j] = some.at[j];
        }
        return all;
    }
    KERNEL_CODE void write(float *to, uint32_t vector) const
    {
        const int at_once = WIDTH < 4 ? WIDTH : 4;
        lanes<float, at_once> some;

        for (int i = 0; i < WIDTH / at_once; i++) {
            for (int j = 0; j < at_once; j++)
                some.at[j] = at[i * at_once + j];
            some.write(to, vector * (WIDTH / at_once) + (uint32_t)i);
        }
    }
    template <class T> static KERNEL_CODE floats of(const lanes<T, WIDTH> &some)
    {
        floats all;

        for (int i = 0; i < WIDTH; i++)
            all.at[i] = some.get(i);
        return all;
    }
};

/* Division by a number fixed before launch, as a multiplication (Granlund and Montgomery 1994,
 * figure 4.1): for numbers below 2^31, as are all counts of launch_each(). */
struct divide {
    uint32_t by, factor, shift;

    static inline divide make(uint32_t by)
    {
        uint32_t shift = 0;
        while (((uint64_t)1 << shift) < by)
            shift++;
        return divide{by, (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - by)) / by + 1),
                      shift};
    }
    KERNEL_CODE uint32_t quotient(uint32_t value) const
    {
        return ((uint32_t)(((uint64_t)value * factor) >> 32) + value) >> shift;
    }
    KERNEL_CODE uint32_t rest(uint32_t value) const
    {
        return value - quotient(value) * by;
    }
};

template <class T> struct wide {
    static const int width = 16 / (int)sizeof(T);
};

/* ---- starting ---- */

#ifdef KERNELS_EMULATED

/* tests/cuda/emulated.h */
extern "C" int emulated_start(void (*run)(const void *work, uint64_t count), const void *work,
                              size_t bytes, uint64_t count, void *stream);

template <class Kernel> void emulate_each(const void *kernel, uint64_t count)
{
    for (uint32_t i = 0; i < count; i++)
        static_cast<const Kernel *>(kernel)->each(i);
}

template <int RESIDENT = 0, class Kernel>
int launch_each(const char *, const Kernel &kernel, uint64_t count, void *stream)
{
    return emulated_start(emulate_each<Kernel>, &kernel, sizeof kernel, count, stream);
}

template <class Kernel> void emulate_phases(const void *kernel, uint64_t blocks)
{
    static thread_local typename Kernel::shared_t shared_memory;
    static thread_local typename Kernel::local_t states[KERNEL_THREADS];
    typename Kernel::shared_t &shared = shared_memory; /* found once: under sanitizers it takes as long as a phase */
    typename Kernel::local_t *locals = states;

    for (uint32_t block = 0; block < blocks; block++)
        for (int phase = 0; phase < Kernel::phases; phase++)
            for (uint32_t thread = 0; thread < KERNEL_THREADS; thread++)
                static_cast<const Kernel *>(kernel)->run(phase, shared, locals[thread],
                                                         place{thread, block, (uint32_t)blocks});
}

template <int RESIDENT = 0, class Kernel>
int launch_phases(const char *, const Kernel &kernel, uint32_t blocks, void *stream)
{
    return emulated_start(emulate_phases<Kernel>, &kernel, sizeof kernel, blocks, stream);
}

#else

static inline int launched(const char *name)
{
    cudaError_t status = cudaGetLastError();

    return status == cudaSuccess
               ? 0
               : fail(EIO, "the device kernel %s did not start: %s", name, cudaGetErrorString(status));
}

template <int RESIDENT, class Kernel>
__global__ void __launch_bounds__(KERNEL_THREADS, RESIDENT) run_each(const Kernel kernel, uint32_t count)
{
    const uint32_t i = blockIdx.x * KERNEL_THREADS + threadIdx.x;

    if (i < count)
        kernel.each(i);
}

/* RESIDENT, here and below: how many blocks a multiprocessor is to hold at once, 0: any. That limits
 * a thread's registers; but the compiler then also spends them, on starting all loads before it uses
 * one. */
template <int RESIDENT = 0, class Kernel>
int launch_each(const char *name, const Kernel &kernel, uint64_t count, void *stream)
{
    const uint64_t blocks = (count + KERNEL_THREADS - 1) / KERNEL_THREADS;

    if (blocks == 0)
        return 0;
    if (count > INT32_MAX)
        return fail(EINVAL, "the device kernel %s cannot process a tensor of %llu numbers: use a "
                            "smaller batch",
                    name, (unsigned long long)count);
    run_each<RESIDENT><<<(unsigned)blocks, KERNEL_THREADS, 0, (cudaStream_t)stream>>>(kernel, (uint32_t)count);
    return launched(name);
}

template <int RESIDENT, class Kernel>
__global__ void __launch_bounds__(KERNEL_THREADS, RESIDENT) run_phases(const Kernel kernel)
{
    __shared__ typename Kernel::shared_t shared;
    typename Kernel::local_t local;
    const place at = {threadIdx.x, blockIdx.x, gridDim.x};

KERNEL_UNROLL
    for (int phase = 0; phase < Kernel::phases; phase++) {
        if (phase > 0)
            __syncthreads();
        kernel.run(phase, shared, local, at);
    }
}

template <int RESIDENT = 0, class Kernel>
int launch_phases(const char *name, const Kernel &kernel, uint32_t blocks, void *stream)
{
    if (blocks == 0)
        return 0;
    run_phases<RESIDENT><<<blocks, KERNEL_THREADS, 0, (cudaStream_t)stream>>>(kernel);
    return launched(name);
}

#endif

/* Call f with a null pointer of the storage type. */
template <class F> int with_type(enum device_type type, const F &f)
{
    switch (type) {
    case DEVICE_FP32:
        return f((float *)nullptr);
    case DEVICE_FP16:
        return f((__half *)nullptr);
    case DEVICE_BF16:
        return f((__nv_bfloat16 *)nullptr);
    case DEVICE_INT8:
        break;
    }
    return fail(EINVAL, "no such device type: %d", (int)type);
}

/* The same with the vector width that `channels` and the alignment of rows with a float per channel
 * allow: f(T *, width). */
template <int N> struct width_t {
    static const int value = N;
};
template <class F>
int with_width(enum device_type type, uint64_t channels, const F &f,
               std::initializer_list<const float *> rows = {})
{
    bool aligned = true;

    for (const float *row : rows)
        aligned = aligned && reinterpret_cast<uintptr_t>(row) % 16 == 0;
    return with_type(type, [&]<class T>(T *null) {
        if (aligned && channels % wide<T>::width == 0)
            return f(null, width_t<wide<T>::width>());
        return f(null, width_t<1>());
    });
}

/* ---- columns: two sums per channel over all pixels of a tensor, in two steps of fixed order ----
 *
 * A block takes a slab of up to 32 vectors of channels and every splits-th group of pixels; its
 * threads are `groups` rows of `lanes` columns. It writes [split][2][channels] partial sums, which
 * a second kernel adds up and passes on. */

/* 4 blocks for each of an H100's 132 multiprocessors: whole rounds, whether one holds 2 or 4. */
enum { COLUMN_LANES = 32, COLUMN_BLOCKS = 528, COLUMN_AT_ONCE = 4, COLUMN_PIXELS_MIN = 8 };

struct column_shape {
    uint64_t pixels;
    uint32_t channels, vectors, lanes, groups, slabs, splits;
};

/* width: channels per vector. */
static inline column_shape columns_of(const struct device_pixels *pixels, uint32_t width)
{
    column_shape shape = {};

    shape.pixels = pixels->count;
    shape.channels = pixels->channels;
    shape.vectors = pixels->channels / width;
    shape.lanes = shape.vectors < COLUMN_LANES ? shape.vectors : (uint32_t)COLUMN_LANES;
    shape.groups = KERNEL_THREADS / shape.lanes;
    shape.slabs = (shape.vectors + shape.lanes - 1) / shape.lanes;
    uint64_t most = pixels->count / ((uint64_t)shape.groups * COLUMN_PIXELS_MIN);
    uint32_t splits = (uint32_t)COLUMN_BLOCKS / shape.slabs;
    if (splits > most)
        splits = (uint32_t)most;
    shape.splits = splits > 0 ? splits : 1;
    return shape;
}

/* Source: channels_t of(vector) is read once, since a row's writes keep the compiler from it; row_t
 * read(pixel, vector); use(channels, row, pixel, vector, a, b) adds W terms to each sum. */
template <class Source, int W, int AT_ONCE> struct column_sums {
    enum { phases = 2 };
    struct shared_t {
        float sums[2][KERNEL_THREADS * W];
    };
    struct local_t {};
    column_shape shape;
    Source source;
    float *partial;

    KERNEL_CODE void walk(shared_t &shared, const place &at) const
    {
        const uint32_t lane = at.thread % shape.lanes, group = at.thread / shape.lanes;
        const uint32_t vector = at.block % shape.slabs * shape.lanes + lane;
        const uint32_t split = at.block / shape.slabs;
        const uint64_t step = (uint64_t)shape.splits * shape.groups;
        float a[W] = {}, b[W] = {};

        if (group >= shape.groups)
            return;
        if (vector < shape.vectors) {
            const typename Source::channels_t channels = source.of(vector);
            for (uint64_t first = (uint64_t)split * shape.groups + group; first < shape.pixels;
                 first += AT_ONCE * step) {
                typename Source::row_t rows[AT_ONCE];
KERNEL_UNROLL
                for (int i = 0; i < AT_ONCE; i++)
                    if (i == 0 || first + (uint64_t)i * step < shape.pixels)
                        rows[i] = source.read(first + (uint64_t)i * step, vector);
KERNEL_UNROLL
                for (int i = 0; i < AT_ONCE; i++)
                    if (i == 0 || first + (uint64_t)i * step < shape.pixels)
                        source.use(channels, rows[i], first + (uint64_t)i * step, vector, a, b);
            }
        }
        for (int i = 0; i < W; i++) {
            shared.sums[0][(group * shape.lanes + lane) * W + (uint32_t)i] = a[i];
            shared.sums[1][(group * shape.lanes + lane) * W + (uint32_t)i] = b[i];
        }
    }

    KERNEL_CODE void leave(const shared_t &shared, const place &at) const
    {
        const uint32_t columns = shape.lanes * W, split = at.block / shape.slabs;

        for (uint32_t column = at.thread; column < columns; column += KERNEL_THREADS) {
            const uint32_t channel = at.block % shape.slabs * columns + column;
            if (channel >= shape.channels)
                continue;
            for (uint32_t which = 0; which < 2; which++) {
                float total = 0;
                for (uint32_t group = 0; group < shape.groups; group++)
                    total += shared.sums[which][group * columns + column];
                partial[((uint64_t)split * 2 + which) * shape.channels + channel] = total;
            }
        }
    }

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        if (phase == 0)
            walk(shared, at);
        else
            leave(shared, at);
    }
};

/* Add the partial sums in double; pass the totals to finish.take(channel, a, b). Few columns a block,
 * 32 bytes of each row, since the time is that of a thread's loads one after the other. */
template <class Finish> struct column_totals {
    enum { phases = 2, columns = 8, rows = KERNEL_THREADS / columns };
    struct shared_t {
        double sums[2][rows][columns];
    };
    struct local_t {};
    uint32_t channels, splits;
    const float *partial;
    Finish finish;

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        const uint32_t column = at.thread % columns, row = at.thread / columns;
        const uint32_t channel = at.block * columns + column;
        double a = 0, b = 0;

        if (channel >= channels || (phase == 1 && row > 0))
            return;
        if (phase == 0) {
            for (uint32_t split = row; split < splits; split += rows) {
                a += partial[(uint64_t)split * 2 * channels + channel];
                b += partial[((uint64_t)split * 2 + 1) * channels + channel];
            }
            shared.sums[0][row][column] = a;
            shared.sums[1][row][column] = b;
            return;
        }
        for (uint32_t i = 0; i < rows; i++) {
            a += shared.sums[0][i][column];
            b += shared.sums[1][i][column];
        }
        finish.take(channel, a, b);
    }
};

/* AT_ONCE: pixels that a thread reads before it uses them. */
template <int W, int AT_ONCE = COLUMN_AT_ONCE, class Source, class Finish>
int launch_columns(const char *name, const struct device_pixels *pixels, const Source &source,
                   const Finish &finish, float *partial, void *stream)
{
    const column_shape shape = columns_of(pixels, W);
    const column_sums<Source, W, AT_ONCE> sums = {shape, source, partial};
    int code = launch_phases(name, sums, shape.slabs * shape.splits, stream);

    if (code)
        return code;
    const column_totals<Finish> totals = {pixels->channels, shape.splits, partial, finish};
    const uint32_t blocks = (pixels->channels + totals.columns - 1) / totals.columns;
    return launch_phases(name, totals, blocks, stream);
}

/* From sum(dz) and sum(dz * (x - mean)): both parameters' gradients, and a, b, c of d_input = a *
 * dz + b * x + c (kernels/kernels.c, with the terms in x combined). */
struct norm_backward_finish {
    device_norm norm;
    double count;
    float *d_gamma, *d_beta, *abc;
    uint32_t channels;

    KERNEL_CODE void take(uint32_t c, double sum, double dot) const
    {
        const double inverse = norm.inverse[c];
        const double a = norm.gamma[c] * inverse;
        const double b = -a * inverse * inverse * dot / count;

        d_gamma[c] = (float)(dot * inverse);
        d_beta[c] = (float)sum;
        abc[c] = (float)a;
        abc[channels + c] = (float)b;
        abc[2 * channels + c] = (float)(-a * sum / count - b * norm.mean[c]);
    }
};

#endif
