/* SPDX-License-Identifier: Apache-2.0
 *
 * A histogram of magnitudes in three kernels: find the tensor's maximum, extend the histogram to
 * it, count. Blocks only add integers, so order does not matter, and the result equals that of
 * kernels/kernels.c number by number.
 */
#include "kernels/launch.cuh"

namespace {

enum { BINS_A_THREAD = MAGNITUDES_BINS / KERNEL_THREADS, MOST_BLOCKS = 1024, VECTORS_A_THREAD = 16 };
enum : uint32_t { NOT_FINITE = 0x7f800000, NO_SIGN = 0x7fffffff };

/* On block or device memory. The host has no concurrent threads. */
#ifdef __CUDA_ARCH__
KERNEL_CODE void add_to(uint32_t *sum, uint32_t value)
{
    atomicAdd(sum, value);
}
KERNEL_CODE void add_to(uint64_t *sum, uint64_t value)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(sum), (unsigned long long)value);
}
KERNEL_CODE void raise_to(uint32_t *most, uint32_t value)
{
    atomicMax(most, value);
}
#else
template <class N> KERNEL_CODE void add_to(N *sum, N value)
{
    *sum += value;
}
KERNEL_CODE void raise_to(uint32_t *most, uint32_t value)
{
    *most = value > *most ? value : *most;
}
#endif

/* Magnitudes compare as their bits; NaN is above infinity. */
KERNEL_CODE uint32_t bits_of(float value)
{
    union {
        float value;
        uint32_t bits;
    } both = {value};

    return both.bits & NO_SIGN;
}

KERNEL_CODE float value_of(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } both = {bits};

    return both.value;
}

/* ---- the largest ---- */

template <class T, int W> struct find_largest {
    enum { phases = 2 };
    struct shared_t {
        uint32_t bits[KERNEL_THREADS];
    };
    struct local_t {};
    const T *values;
    uint64_t vectors;
    uint32_t *largest;

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        uint32_t most = 0;

        if (phase == 0) {
            for (uint64_t i = (uint64_t)at.block * KERNEL_THREADS + at.thread; i < vectors;
                 i += (uint64_t)at.blocks * KERNEL_THREADS) {
                const lanes<T, W> x = lanes<T, W>::read(values, i);
KERNEL_UNROLL
                for (int k = 0; k < W; k++) {
                    const uint32_t bits = bits_of(x.get(k));
                    most = bits > most ? bits : most;
                }
            }
            shared.bits[at.thread] = most;
        } else if (at.thread == 0) {
            for (uint32_t i = 0; i < KERNEL_THREADS; i++)
                most = shared.bits[i] > most ? shared.bits[i] : most;
            raise_to(largest, most);
        }
    }
};

/* ---- its bin ---- */

/* One block. All threads compute how often the range doubles, and the merged bins, before any
 * thread writes. */
struct widen {
    enum { phases = 2 };
    struct shared_t {};
    struct local_t {
        double range, largest;
        bool is_wider;
        uint64_t counts[BINS_A_THREAD];
    };
    struct magnitudes *all;
    uint32_t *largest;

    /* 2^pairs bins are merged into one. */
    KERNEL_CODE uint64_t sum_of(uint32_t bin, uint32_t pairs) const
    {
        const uint64_t bins = pairs < 32 ? (uint64_t)1 << pairs : (uint64_t)MAGNITUDES_BINS;
        uint64_t sum = 0;

        for (uint64_t i = bin * bins; i < (bin + 1) * bins && i < MAGNITUDES_BINS; i++)
            sum += all->counts[i];
        return sum;
    }

    KERNEL_CODE void look(local_t &local, uint32_t thread) const
    {
        const bool is_finite = *largest < NOT_FINITE && all->largest <= FLT_MAX;
        const double value = is_finite ? (double)value_of(*largest) : 0;
        uint32_t pairs = 0;

        local.largest = is_finite ? value : (double)INFINITY;
        for (local.range = all->range > 0 ? all->range : value; value > local.range;
             local.range *= 2)
            pairs++;
        local.is_wider = pairs > 0;
        for (uint32_t i = 0; local.is_wider && i < BINS_A_THREAD; i++)
            local.counts[i] = sum_of(thread + i * KERNEL_THREADS, pairs);
    }

    KERNEL_CODE void run(int phase, shared_t &, local_t &local, const place &at) const
    {
        if (phase == 0)
            return look(local, at.thread);
        for (uint32_t i = 0; local.is_wider && i < BINS_A_THREAD; i++)
            all->counts[at.thread + i * KERNEL_THREADS] = local.counts[i];
        if (at.thread != 0)
            return;
        all->range = local.range;
        all->largest = local.largest > all->largest ? local.largest : all->largest;
        *largest = 0;
    }
};

/* ---- the counts ---- */

template <class T, int W> struct count_bins {
    enum { phases = 3 };
    struct shared_t {
        uint32_t counts[MAGNITUDES_BINS], zeros;
    };
    struct local_t {};
    const T *values;
    uint64_t vectors;
    struct magnitudes *all;

    KERNEL_CODE void count(shared_t &shared, const place &at) const
    {
        const double bins_a_unit = all->range > 0 ? MAGNITUDES_BINS / all->range : 0;
        uint32_t zeros = 0;

        for (uint64_t i = (uint64_t)at.block * KERNEL_THREADS + at.thread; i < vectors;
             i += (uint64_t)at.blocks * KERNEL_THREADS) {
            const lanes<T, W> x = lanes<T, W>::read(values, i);
KERNEL_UNROLL
            for (int k = 0; k < W; k++) {
                const uint32_t bits = bits_of(x.get(k));
                const double at_bin = (double)value_of(bits) * bins_a_unit;
                if (bits == 0)
                    zeros++;
                else
                    add_to(&shared.counts[at_bin < MAGNITUDES_BINS ? (uint32_t)at_bin
                                                                   : MAGNITUDES_BINS - 1],
                           (uint32_t)1);
            }
        }
        add_to(&shared.zeros, zeros);
    }

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        if (all->largest > FLT_MAX) /* the histogram is meaningless now */
            return;
        if (phase == 1)
            return count(shared, at);
        for (uint32_t i = at.thread; i < MAGNITUDES_BINS; i += KERNEL_THREADS)
            if (phase == 0)
                shared.counts[i] = 0;
            else if (shared.counts[i])
                add_to(&all->counts[i], (uint64_t)shared.counts[i]);
        if (at.thread == 0 && phase == 0)
            shared.zeros = 0;
        else if (at.thread == 0)
            add_to(&all->zeros, (uint64_t)shared.zeros);
    }
};

}

int device_magnitudes(enum device_type type, uint64_t count, const void *values,
                      struct magnitudes *magnitudes, uint32_t *scratch, void *stream)
{
    return with_width(type, count, [&]<class T, int W>(T *, width_t<W>) {
        const T *from = (const T *)values;
        const uint64_t vectors = count / W, a_block = (uint64_t)KERNEL_THREADS * VECTORS_A_THREAD;
        const uint64_t wanted = (vectors + a_block - 1) / a_block;
        const uint32_t blocks = wanted < MOST_BLOCKS ? (uint32_t)wanted : (uint32_t)MOST_BLOCKS;
        int code = launch_phases("find_largest", find_largest<T, W>{from, vectors, scratch}, blocks,
                                 stream);
        if (code == 0)
            code = launch_phases("widen", widen{magnitudes, scratch}, 1, stream);
        return code ? code
                    : launch_phases("count_bins", count_bins<T, W>{from, vectors, magnitudes},
                                    blocks, stream);
    });
}
