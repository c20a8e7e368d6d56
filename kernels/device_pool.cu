/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward passes gather: each input pixel reads the windows that cover it, so that the order of
 * sums is fixed. Windows of the usual sizes are compiled in, so that all loads of a thread are under
 * way at once; a side of 0 is one that only the window tells.
 */
#include "kernels/launch.cuh"

namespace {

/* ---- geometry ---- */

/* The outputs whose windows cover an input position: [first, end) in one direction. */
KERNEL_CODE void covering(uint32_t place, uint32_t pad, uint32_t length, const divide &stride,
                          uint32_t outputs, uint32_t *first, uint32_t *end)
{
    const uint32_t low = place + pad + 1 > length ? place + pad + 1 - length : 0;
    const uint32_t last = stride.quotient(place + pad);

    *first = stride.quotient(low + stride.by - 1);
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

grid inputs_of(const struct kernel_window *window, uint32_t vectors)
{
    return grid::make(window->in_height, window->in_width, vectors);
}

grid outputs_of(const struct kernel_window *window, uint32_t vectors)
{
    return grid::make(window->out_height, window->out_width, vectors);
}

uint64_t vectors_of(const struct kernel_window *window, const grid &grid)
{
    return (uint64_t)window->images * grid.height.by * grid.width.by * grid.vectors.by;
}

/* ---- max-pool ---- */

KERNEL_CODE __half2 &pair_at(__half *at)
{
    return *reinterpret_cast<__half2 *>(at);
}
KERNEL_CODE __nv_bfloat162 &pair_at(__nv_bfloat16 *at)
{
    return *reinterpret_cast<__nv_bfloat162 *>(at);
}
template <class V> KERNEL_CODE uint32_t &word_at(V *at)
{
    return *reinterpret_cast<uint32_t *>(at);
}

#ifdef __CUDA_ARCH__
static constexpr bool on_device = true;
#else
static constexpr bool on_device = false;
#endif

/* Should a device compute with two 16-bit numbers at once? One by one, arithmetic would bound a
 * max-pool. */
template <class T, int W> KERNEL_CODE constexpr bool paired()
{
    return on_device && sizeof(T) == 2 && W % 2 == 0;
}

/* The largest number of each lane so far, and its place; of equal ones, the first. */
template <class T, int W> struct winners {
    lanes<T, W> best;
    lanes<uint16_t, W> place;

    KERNEL_CODE void start(const lanes<T, W> &seen, uint32_t at)
    {
        best = seen;
        for (int i = 0; i < W; i++)
            place.at[i] = (uint16_t)at;
    }
    KERNEL_CODE void offer(lanes<T, W> seen, uint32_t at)
    {
        if constexpr (paired<T, W>())
            for (int i = 0; i < W; i += 2) {
                const uint32_t wins = __hgt2_mask(pair_at(seen.at + i), pair_at(best.at + i));
                word_at(best.at + i) = (word_at(seen.at + i) & wins) | (word_at(best.at + i) & ~wins);
                word_at(place.at + i) = (at * 0x10001 & wins) | (word_at(place.at + i) & ~wins);
            }
        else
            for (int i = 0; i < W; i++)
                if (seen.get(i) > best.get(i)) {
                    best.at[i] = seen.at[i];
                    place.at[i] = (uint16_t)at;
                }
    }
    KERNEL_CODE lanes<uint8_t, W> places() const
    {
        lanes<uint8_t, W> narrow;

        for (int i = 0; i < W; i++)
            narrow.at[i] = (uint8_t)place.at[i];
        return narrow;
    }
};

/* What is pooled: a tensor as it is, or the output of BN and ReLU. These keep the order of a
 * channel's numbers, except that a negative scale reverses it; so keys are compared. */
template <class T, int W> struct plain_value {
    struct channels_t {};

    KERNEL_CODE channels_t of(uint32_t) const
    {
        return {};
    }
    KERNEL_CODE lanes<T, W> key(const channels_t &, const lanes<T, W> &x) const
    {
        return x;
    }
    KERNEL_CODE lanes<T, W> value(const channels_t &, const lanes<T, W> &key, uint32_t) const
    {
        return key;
    }
};

template <class T, int W> struct norm_value {
    struct channels_t {
        lanes<T, W> sign; /* of the scale: 1, -1 or 0 */
    };
    const float *scale, *bias;

    KERNEL_CODE channels_t of(uint32_t vector) const
    {
        const floats<W> by = floats<W>::read(scale, vector);
        channels_t channels;

        for (int i = 0; i < W; i++)
            channels.sign.set(i, by.at[i] == 0 ? 0 : copysignf(1, by.at[i]));
        return channels;
    }
    KERNEL_CODE lanes<T, W> key(channels_t channels, lanes<T, W> x) const
    {
        if constexpr (paired<T, W>())
            for (int i = 0; i < W; i += 2)
                pair_at(x.at + i) = __hmul2(pair_at(x.at + i), pair_at(channels.sign.at + i));
        else
            for (int i = 0; i < W; i++)
                x.set(i, x.get(i) * channels.sign.get(i));
        return x;
    }
    KERNEL_CODE lanes<T, W> value(const channels_t &channels, const lanes<T, W> &best,
                                  uint32_t vector) const
    {
        const floats<W> by = floats<W>::read(scale, vector), plus = floats<W>::read(bias, vector);
        lanes<T, W> x = key(channels, best);

        for (int i = 0; i < W; i++) {
            const float value = x.get(i) * by.at[i] + plus.at[i];
            x.set(i, value < 0 ? 0 : value);
        }
        return x;
    }
};

KERNEL_CODE uint32_t within(int32_t value, uint32_t side)
{
    return value < 0 ? 0 : (uint32_t)value < side ? (uint32_t)value : side - 1;
}

template <class T, int W, int SIDE, class Value> struct max_pool {
    kernel_window window;
    grid outputs;
    Value values;
    const T *input;
    T *output;
    uint8_t *which;

    struct pixel {
        uint64_t index; /* of the vector */
        uint32_t place;
    };

    /* Row r and column c of a window. In place of padding, a pixel at the border is read once more,
     * as the one it is. */
    KERNEL_CODE pixel under(const spot &at, uint32_t r, uint32_t c) const
    {
        const int32_t top = (int32_t)(at.y * window.stride) - (int32_t)window.pad_top;
        const int32_t left = (int32_t)(at.x * window.stride) - (int32_t)window.pad_left;
        const uint32_t y = within(top + (int32_t)r, window.in_height);
        const uint32_t x = within(left + (int32_t)c, window.in_width);
        const uint64_t line = (uint64_t)at.image * window.in_height + y;
        const uint32_t columns = SIDE ? SIDE : window.width;

        return {line * window.in_width * outputs.vectors.by + (x * outputs.vectors.by + at.vector),
                (uint32_t)((int32_t)y - top) * columns + (uint32_t)((int32_t)x - left)};
    }
    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = outputs.at(index);
        const typename Value::channels_t channels = values.of(at.vector);
        winners<T, W> so_far;

        if constexpr (SIDE > 0) {
            lanes<T, W> seen[SIDE * SIDE];
KERNEL_UNROLL
            for (uint32_t i = 0; i < SIDE * SIDE; i++)
                seen[i] = lanes<T, W>::read(input, under(at, i / SIDE, i % SIDE).index);
            so_far.start(values.key(channels, seen[0]), under(at, 0, 0).place);
KERNEL_UNROLL
            for (uint32_t i = 1; i < SIDE * SIDE; i++)
                so_far.offer(values.key(channels, seen[i]), under(at, i / SIDE, i % SIDE).place);
        } else {
            const pixel first = under(at, 0, 0);
            so_far.start(values.key(channels, lanes<T, W>::read(input, first.index)), first.place);
            for (uint32_t r = 0; r < window.height; r++)
                for (uint32_t c = 0; c < window.width; c++) {
                    const pixel next = under(at, r, c);
                    so_far.offer(values.key(channels, lanes<T, W>::read(input, next.index)),
                                 next.place);
                }
        }
        values.value(channels, so_far.best, at.vector).write(output, index);
        so_far.places().write(which, index);
    }
};

/* ---- max-pool backward ---- */

/* Extract byte i; on a device out of the word that holds it. */
template <int W> KERNEL_CODE uint32_t byte_of(lanes<uint8_t, W> bytes, int i)
{
    if constexpr (on_device && W % 4 == 0)
        return word_at(bytes.at + i / 4 * 4) >> i % 4 * 8 & UINT8_MAX;
    else
        return bytes.at[i];
}

/* Gradients of a group of input pixels from the windows whose maximum they are. A group is the
 * STRIDE x STRIDE pixels that a window's step passes over: in padded coordinates, group v has rows
 * STRIDE * v + [0, STRIDE), and row r of those is row STRIDE * j + r of window v - j. */
template <class T, int W, int SIDE, int STRIDE, bool TWO> struct winnings {
    enum { step = STRIDE, reach = (SIDE + STRIDE - 1) / STRIDE, nowhere = UINT8_MAX + 1 };
    struct group_t {
        lanes<uint8_t, W> winner[reach][reach]; /* by j */
        lanes<T, W> d[reach][reach], other[reach][reach];
        uint32_t place[reach][reach]; /* of the group's first pixel */
    };
    kernel_window window;
    divide stride;
    const uint8_t *which;
    const T *d_output, *d_other;

    KERNEL_CODE group_t read(const spot &at) const
    {
        const uint32_t vectors = window.in_channels / W;
        group_t group;

KERNEL_UNROLL
        for (uint32_t j = 0; j < reach; j++)
KERNEL_UNROLL
            for (uint32_t i = 0; i < reach; i++) {
                const int32_t row = (int32_t)(at.y + window.pad_top / STRIDE - j);
                const int32_t column = (int32_t)(at.x + window.pad_left / STRIDE - i);
                const uint32_t y = within(row, window.out_height);
                const uint32_t x = within(column, window.out_width);
                const uint32_t line = at.image * window.out_height + y;
                const uint32_t from = (line * window.out_width + x) * vectors + at.vector;
                group.winner[j][i] = lanes<uint8_t, W>::read(which, from);
                group.d[j][i] = lanes<T, W>::read(d_output, from);
                if (TWO)
                    group.other[j][i] = lanes<T, W>::read(d_other, from);
                group.place[j][i] = y == (uint32_t)row && x == (uint32_t)column
                                        ? STRIDE * (j * SIDE + i)
                                        : (uint32_t)nowhere;
            }
        return group;
    }
    KERNEL_CODE float sum(const group_t &group, uint32_t r, uint32_t c, int lane) const
    {
        float sum = 0;

KERNEL_UNROLL
        for (uint32_t j = reach; j-- > 0;)
KERNEL_UNROLL
            for (uint32_t i = reach; i-- > 0;) {
                if (STRIDE * j + r >= SIDE || STRIDE * i + c >= SIDE)
                    continue;
                float d = group.d[j][i].get(lane);
                if (TWO)
                    d += group.other[j][i].get(lane);
                if (byte_of(group.winner[j][i], lane) == group.place[j][i] + r * SIDE + c)
                    sum += d;
            }
        return sum;
    }
};

/* Any window: a group is one pixel. */
template <class T, int W, bool TWO> struct winnings<T, W, 0, 1, TWO> {
    enum { step = 1 };
    struct group_t {
        float sum[W];
    };
    kernel_window window;
    divide stride;
    const uint8_t *which;
    const T *d_output, *d_other;

    KERNEL_CODE group_t read(const spot &at) const
    {
        const uint32_t vectors = window.in_channels / W;
        uint32_t top, bottom, left, right;
        group_t group = {};

        covering(at.y, window.pad_top, window.height, stride, window.out_height, &top, &bottom);
        covering(at.x, window.pad_left, window.width, stride, window.out_width, &left, &right);
        for (uint32_t y = top; y < bottom; y++)
            for (uint32_t x = left; x < right; x++) {
                const uint64_t from =
                    (((uint64_t)at.image * window.out_height + y) * window.out_width + x) * vectors +
                    at.vector;
                const uint32_t place = (at.y + window.pad_top - y * window.stride) * window.width +
                                       (at.x + window.pad_left - x * window.stride);
                const lanes<uint8_t, W> winner = lanes<uint8_t, W>::read(which, from);
                const lanes<T, W> d = lanes<T, W>::read(d_output, from);
                const lanes<T, W> other = lanes<T, W>::read(TWO ? d_other : d_output, from);
                for (int i = 0; i < W; i++)
                    if (winner.at[i] == place)
                        group.sum[i] += d.get(i) + (TWO ? other.get(i) : 0);
            }
        return group;
    }
    KERNEL_CODE float sum(const group_t &group, uint32_t, uint32_t, int lane) const
    {
        return group.sum[lane];
    }
};

/* A group's pixel (r, c): the index of its vector. Outside the input, it is in the padding. */
template <int STEP> struct member {
    uint32_t index;
    bool outside;

    KERNEL_CODE member(const kernel_window &window, uint32_t vectors, const spot &at, uint32_t r,
                       uint32_t c)
    {
        const int32_t row = (int32_t)(at.y * STEP + r) - (int32_t)(window.pad_top % STEP);
        const int32_t column = (int32_t)(at.x * STEP + c) - (int32_t)(window.pad_left % STEP);
        const uint32_t y = within(row, window.in_height), x = within(column, window.in_width);
        const uint32_t line = at.image * window.in_height + y;

        index = (line * window.in_width + x) * vectors + at.vector;
        outside = y != (uint32_t)row || x != (uint32_t)column;
    }
};

/* A group's results, written where they belong. */
template <class T, int W, int STEP> struct results {
    lanes<T, W> at[STEP][STEP];

    KERNEL_CODE void write(T *to, const kernel_window &window, uint32_t vectors,
                           const spot &spot) const
    {
KERNEL_UNROLL
        for (uint32_t r = 0; r < STEP; r++)
KERNEL_UNROLL
            for (uint32_t c = 0; c < STEP; c++) {
                const member<STEP> pixel(window, vectors, spot, r, c);
                if (!pixel.outside)
                    at[r][c].write(to, pixel.index);
            }
    }
};

/* Lane by lane, here and below: all sums at once do not fit into registers. */
template <class T, int W, class Winnings> struct max_pool_backward {
    enum { step = Winnings::step };
    Winnings from;
    grid groups;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = groups.at(index);
        const typename Winnings::group_t group = from.read(at);
        results<T, W, step> out;

KERNEL_UNROLL
        for (int lane = 0; lane < W; lane++)
KERNEL_UNROLL
            for (uint32_t r = 0; r < step; r++)
KERNEL_UNROLL
                for (uint32_t c = 0; c < step; c++)
                    out.at[r][c].set(lane, from.sum(group, r, c, lane));
        out.write(d_input, from.window, groups.vectors.by, at);
    }
};

/* The stem: through the ReLU as well, with the sums of BN's backward pass. Padding adds nothing to
 * them, since it is never the maximum. */
template <class T, int W, class Winnings> struct stem_source {
    enum { step = Winnings::step };
    struct row_t {
        typename Winnings::group_t group;
        lanes<T, W> x[step][step];
    };
    struct channels_t {};
    Winnings from;
    const T *x;
    const float *scale, *bias, *mean;
    T *dz;
    grid groups;

    KERNEL_CODE channels_t of(uint32_t) const
    {
        return {};
    }
    KERNEL_CODE spot spot_of(uint64_t group, uint32_t vector) const
    {
        return groups.at((uint32_t)group * groups.vectors.by + vector);
    }
    KERNEL_CODE row_t read(uint64_t group, uint32_t vector) const
    {
        const spot at = spot_of(group, vector);
        row_t row;

KERNEL_UNROLL
        for (uint32_t r = 0; r < step; r++)
KERNEL_UNROLL
            for (uint32_t c = 0; c < step; c++)
                row.x[r][c] = lanes<T, W>::read(
                    x, member<step>(from.window, groups.vectors.by, at, r, c).index);
        row.group = from.read(at);
        return row;
    }
    KERNEL_CODE void use(const channels_t &, const row_t &row, uint64_t group, uint32_t vector,
                         float *a, float *b) const
    {
        const int part = W < 4 ? W : 4;
        results<T, W, step> out;

        /* Load these for a part of the vector at a time: more would take too many registers. */
KERNEL_UNROLL
        for (int first = 0; first < W; first += part) {
            const uint32_t at = vector * (W / part) + (uint32_t)(first / part);
            const auto by = lanes<float, part>::read(scale, at);
            const auto plus = lanes<float, part>::read(bias, at);
            const auto middle = lanes<float, part>::read(mean, at);
KERNEL_UNROLL
            for (int lane = first; lane < first + part; lane++)
KERNEL_UNROLL
                for (uint32_t r = 0; r < step; r++)
KERNEL_UNROLL
                    for (uint32_t c = 0; c < step; c++) {
                        const float in = row.x[r][c].get(lane);
                        const float y = in * by.at[lane - first] + plus.at[lane - first];
                        const float sum = from.sum(row.group, r, c, lane);
                        lanes<T, W> &d = out.at[r][c];
                        d.set(lane, y <= 0 ? 0 : sum);
                        a[lane] += d.get(lane);
                        b[lane] += d.get(lane) * (in - middle.at[lane - first]);
                    }
        }
        out.write(dz, from.window, groups.vectors.by, spot_of(group, vector));
    }
};

/* Groups of winnings, along a side of the input. */
uint32_t groups_along(uint32_t side, uint32_t pad, uint32_t step)
{
    return (side - 1 + pad) / step - pad / step + 1;
}

grid groups_of(const struct kernel_window *window, uint32_t step, uint32_t vectors)
{
    return grid::make(groups_along(window->in_height, window->pad_top, step),
                      groups_along(window->in_width, window->pad_left, step), vectors);
}

/* Call f with side and stride of a window that is compiled in, or else with 0 and 1. Few channels
 * are not worth it; stems have one window. */
template <int W, bool STEM, class F> int with_side(const struct kernel_window *window, const F &f)
{
    const uint32_t side = window->height == window->width ? window->height : 0;

    if constexpr (W > 1)
        if (side == 3 && window->stride == 2)
            return f(width_t<3>(), width_t<2>());
    if constexpr (W > 1 && !STEM) {
        if (side == 2 && window->stride == 2)
            return f(width_t<2>(), width_t<2>());
        if (side == 3 && window->stride == 1)
            return f(width_t<3>(), width_t<1>());
    }
    return f(width_t<0>(), width_t<1>());
}

int check_window(const struct kernel_window *window)
{
    return window->height * window->width > 255
               ? fail(EINVAL, "a max-pool of %u x %u pixels is too large for a device",
                      window->height, window->width)
               : 0;
}

/* Vectors of the input are counted with 32 bits. */
int check_input(const struct kernel_window *window, uint32_t vectors)
{
    const uint64_t count = vectors_of(window, inputs_of(window, vectors));

    return count > UINT32_MAX
               ? fail(EINVAL, "a max-pool of %llu numbers is too large for a device: use a smaller "
                              "batch",
                      (unsigned long long)count)
               : 0;
}

/* ---- average-pool ---- */

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

KERNEL_CODE float share_of(const kernel_window &window, const box &box)
{
    return 1 / (float)(window.count_padding
                           ? window.height * window.width
                           : (box.bottom - box.top) * (box.right - box.left));
}

template <class T, int W> struct average_pool {
    kernel_window window;
    grid outputs;
    const T *input;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = outputs.at(index);
        const box box = box_at(window, at.y, at.x);
        const float share = share_of(window, box);
        float sum[W] = {};
        lanes<T, W> out;

        for (uint32_t y = box.top; y < box.bottom; y++)
            for (uint32_t x = box.left; x < box.right; x++) {
                const uint64_t line = (uint64_t)at.image * window.in_height + y;
                const lanes<T, W> in = lanes<T, W>::read(
                    input, (line * window.in_width + x) * outputs.vectors.by + at.vector);
                for (int i = 0; i < W; i++)
                    sum[i] += in.get(i);
            }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i] * share);
        out.write(output, index);
    }
};

template <class T, int W> struct average_pool_backward {
    kernel_window window;
    divide stride;
    grid inputs;
    const T *d_output;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const spot at = inputs.at(index);
        uint32_t top, bottom, left, right;
        float sum[W] = {};
        lanes<T, W> out;

        covering(at.y, window.pad_top, window.height, stride, window.out_height, &top, &bottom);
        covering(at.x, window.pad_left, window.width, stride, window.out_width, &left, &right);
        for (uint32_t y = top; y < bottom; y++)
            for (uint32_t x = left; x < right; x++) {
                const uint32_t line = at.image * window.out_height + y;
                const lanes<T, W> d = lanes<T, W>::read(
                    d_output, ((uint64_t)line * window.out_width + x) * inputs.vectors.by + at.vector);
                const float share = share_of(window, box_at(window, y, x));
                for (int i = 0; i < W; i++)
                    sum[i] += d.get(i) * share;
            }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i]);
        out.write(d_input, index);
    }
};

/* The same of a whole plane, as most networks have it, with many loads or stores under way: there
 * are few threads, or little to do. */
template <class T, int W> struct plane_average {
    enum { at_once = 25 };
    divide vectors;
    uint32_t plane;
    float share;
    const T *input;
    T *output;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint64_t first = (uint64_t)vectors.quotient(index) * plane * vectors.by;
        const uint32_t vector = vectors.rest(index);
        float sum[W] = {};
        lanes<T, W> out;

        for (uint32_t pixel = 0; pixel < plane; pixel += at_once) {
            lanes<T, W> seen[at_once];
KERNEL_UNROLL
            for (uint32_t i = 0; i < at_once; i++)
                if (pixel + i < plane)
                    seen[i] = lanes<T, W>::read(input, first + (pixel + i) * vectors.by + vector);
KERNEL_UNROLL
            for (uint32_t i = 0; i < at_once; i++)
                if (pixel + i < plane)
                    for (int lane = 0; lane < W; lane++)
                        sum[lane] += seen[i].get(lane);
        }
        for (int i = 0; i < W; i++)
            out.set(i, sum[i] * share);
        out.write(output, index);
    }
};

template <class T, int W> struct plane_average_backward {
    enum { at_once = 7 };
    divide vectors, strips; /* of `at_once` pixels */
    uint32_t plane;
    float share;
    const T *d_output;
    T *d_input;

    KERNEL_CODE void each(uint32_t index) const
    {
        const uint32_t vector = vectors.rest(index), strip = vectors.quotient(index);
        const uint32_t image = strips.quotient(strip), pixel = strips.rest(strip) * at_once;
        const uint64_t first = ((uint64_t)image * plane + pixel) * vectors.by + vector;
        lanes<T, W> d = lanes<T, W>::read(d_output, image * vectors.by + vector);

        for (int i = 0; i < W; i++)
            d.set(i, d.get(i) * share);
KERNEL_UNROLL
        for (uint32_t i = 0; i < at_once; i++)
            if (pixel + i < plane)
                d.write(d_input, first + i * vectors.by);
    }
};

/* Whether one window is the whole plane: how many pixels it has, or 0. */
uint32_t plane_of(const struct kernel_window *window)
{
    return window->pad_top == 0 && window->pad_left == 0 && window->height == window->in_height &&
                   window->width == window->in_width
               ? window->height * window->width
               : 0;
}

} // namespace

int device_max_pool(const struct kernel_window *window, enum device_type type, const void *input,
                    void *output, uint8_t *which, void *stream)
{
    int code = check_window(window);

    return code ? code : with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        return with_side<W, false>(window, [&](auto side, auto) {
            const max_pool<T, W, decltype(side)::value, plain_value<T, W>> kernel = {
                *window, outputs_of(window, window->in_channels / W), {}, (const T *)input,
                (T *)output, which};
            return launch_each<3>("max_pool", kernel, vectors_of(window, kernel.outputs), stream);
        });
    });
}

int device_max_pool_backward(const struct kernel_window *window, enum device_type type,
                             const uint8_t *which, const void *d_output, void *d_input,
                             void *stream)
{
    return with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        const uint32_t vectors = window->in_channels / W;
        const int code = check_input(window, vectors);
        return code ? code : with_side<W, false>(window, [&](auto side, auto step) {
            using Winnings = winnings<T, W, decltype(side)::value, decltype(step)::value, false>;
            const max_pool_backward<T, W, Winnings> kernel = {
                {*window, divide::make(window->stride), which, (const T *)d_output, nullptr},
                groups_of(window, Winnings::step, vectors), (T *)d_input};
            return launch_each<3>("max_pool_backward", kernel, vectors_of(window, kernel.groups),
                               stream);
        });
    });
}

int device_stem(const struct kernel_window *window, enum device_type type, const float *scale,
                const float *bias, const void *x, void *output, uint8_t *which, void *stream)
{
    int code = check_window(window);

    return code ? code : with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        return with_side<W, true>(window, [&](auto side, auto) {
            const max_pool<T, W, decltype(side)::value, norm_value<T, W>> kernel = {
                *window, outputs_of(window, window->in_channels / W), {scale, bias}, (const T *)x,
                (T *)output, which};
            return launch_each<3>("stem", kernel, vectors_of(window, kernel.outputs), stream);
        });
    }, {scale, bias});
}

int device_stem_backward(const struct kernel_window *window, enum device_type type,
                         const struct device_norm *norm, const uint8_t *which, const void *x,
                         const void *d_output, const void *d_other, void *dz, float *d_gamma,
                         float *d_beta, float *abc, float *partial, void *stream)
{
    const double pixels = (double)window->images * window->in_height * window->in_width;
    const norm_backward_finish finish = {*norm,  pixels, d_gamma, d_beta, abc, window->in_channels};

    return with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        const uint32_t vectors = window->in_channels / W;
        const int code = check_input(window, vectors);
        const auto start = [&](auto source) {
            const struct device_pixels groups = {type, window->in_channels,
                                                 vectors_of(window, source.groups) / vectors};
            return launch_columns<W, 1>("stem_backward", &groups, source, finish, partial, stream);
        };
        return code ? code : with_side<W, true>(window, [&](auto side, auto step) {
            const int SIDE = decltype(side)::value, STEP = decltype(step)::value;
            const grid groups = groups_of(window, STEP, vectors);
            const auto source = [&](auto from) {
                return stem_source<T, W, decltype(from)>{from, (const T *)x, norm->scale,
                                                         norm->bias, norm->mean, (T *)dz, groups};
            };
            const divide stride = divide::make(window->stride);
            const winnings<T, W, SIDE, STEP, false> one = {*window, stride, which,
                                                           (const T *)d_output, nullptr};
            const winnings<T, W, SIDE, STEP, true> two = {
                *window, stride, which, (const T *)d_output, (const T *)d_other};
            return d_other ? start(source(two)) : start(source(one));
        });
    }, {norm->scale, norm->bias, norm->mean});
}

int device_average_pool(const struct kernel_window *window, enum device_type type,
                        const void *input, void *output, void *stream)
{
    return with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        const uint32_t vectors = window->in_channels / W, plane = plane_of(window);
        const grid outputs = outputs_of(window, vectors);
        const uint64_t count = vectors_of(window, outputs);
        if (plane) {
            const plane_average<T, W> kernel = {divide::make(vectors), plane, 1 / (float)plane,
                                                (const T *)input, (T *)output};
            return launch_each<2>("average_pool", kernel, count, stream);
        }
        const average_pool<T, W> kernel = {*window, outputs, (const T *)input, (T *)output};
        return launch_each("average_pool", kernel, count, stream);
    });
}

int device_average_pool_backward(const struct kernel_window *window, enum device_type type,
                                 const void *d_output, void *d_input, void *stream)
{
    return with_width(type, window->in_channels, [&]<class T, int W>(T *, width_t<W>) {
        const uint32_t vectors = window->in_channels / W, plane = plane_of(window);
        const grid inputs = inputs_of(window, vectors);
        if (plane) {
            using whole_t = plane_average_backward<T, W>;
            const uint32_t strips = (plane + whole_t::at_once - 1) / whole_t::at_once;
            const whole_t kernel = {divide::make(vectors), divide::make(strips), plane,
                                    1 / (float)plane, (const T *)d_output, (T *)d_input};
            return launch_each("average_pool_backward", kernel,
                               (uint64_t)window->images * strips * vectors, stream);
        }
        const average_pool_backward<T, W> kernel = {*window, divide::make(window->stride), inputs,
                                                    (const T *)d_output, (T *)d_input};
        return launch_each("average_pool_backward", kernel, vectors_of(window, inputs), stream);
    });
}
