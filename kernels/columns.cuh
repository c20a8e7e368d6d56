/* SPDX-License-Identifier: Apache-2.0
 *
 * columns: two sums per channel over all pixels of a tensor, in two steps of fixed order. For
 * device kernels only.
 *
 * A block takes a slab of up to 32 vectors of channels and every splits-th group of pixels; its
 * threads are `groups` rows of `lanes` columns. It writes [split][2][channels] partial sums, which
 * a second kernel adds up and passes on.
 */
#ifndef IOBENCH_KERNELS_COLUMNS_CUH
#define IOBENCH_KERNELS_COLUMNS_CUH

#include "kernels/launch.cuh"

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
