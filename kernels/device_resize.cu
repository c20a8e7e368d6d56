/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic is that of kernels/resize.c, in the same order, so the bytes are the same. A block
 * makes ROWS rows of a tile of columns, whose source columns fit into its shared memory after the
 * vertical pass. Source bytes are read 16 at once, for ROWS rows in turn, which mostly need the same
 * source rows.
 *
 * Bound, per image of 500 x 375 to 224 x 224: 0.7 MB of traffic, 0.2 us of an H100's memory; 2.1
 * million multiply-adds of bytes, some 0.6 us of all its SMs.
 */
#include "kernels/launch.cuh"

namespace {

enum : uint32_t { LINE = 4096, COLUMNS = 512, ROWS = 2, BYTES = 16, ROUND_MAX = 127 };

typedef lanes<uint8_t, BYTES> bytes;
typedef lanes<uint16_t, BYTES / 2> values;

/* Without this the compiler reads through a pointer from memory as if it might point to shared
 * memory. */
template <class T> KERNEL_CODE T *in_global(T *pointer)
{
#ifdef __CUDA_ARCH__
    __builtin_assume(__isGlobal(pointer));
#endif
    return pointer;
}

KERNEL_CODE uint32_t rounding(uint32_t taps)
{
    return taps / 2 < ROUND_MAX ? taps / 2 : ROUND_MAX;
}

/* What a block computes. */
struct tile {
    uint32_t row, rows, column, columns;
    uint32_t origin; /* source byte at which its line begins, a multiple of BYTES */
    uint32_t vectors;
};

struct resize {
    const device_resized *images;
    uint32_t width, height, tiles;

    static const int phases = 3;
    struct shared_t {
        alignas(BYTES) uint16_t line[ROWS][LINE];
        alignas(BYTES) uint8_t output[ROWS][COLUMNS * 3];
    };
    struct local_t {
    };

    KERNEL_CODE const device_resized &image_of(const place &at) const
    {
        return images[at.block / (tiles * ((height + ROWS - 1) / ROWS))];
    }

    KERNEL_CODE tile tile_of(const device_resized &image, const place &at) const
    {
        tile tile;

        tile.row = at.block / tiles % ((height + ROWS - 1) / ROWS) * ROWS;
        tile.rows = height - tile.row < ROWS ? height - tile.row : ROWS;
        tile.column = at.block % tiles * image.tile;
        tile.columns = 0; /* other images need more tiles */
        tile.origin = tile.vectors = 0;
        if (tile.column >= width)
            return tile;
        tile.columns = width - tile.column < image.tile ? width - tile.column : image.tile;
        const uint32_t *first = in_global(image.x.first) + tile.column;
        uint32_t end = first[tile.columns - 1] + image.x.widest;
        if (end > image.x.high)
            end = image.x.high;
        tile.origin = first[0] * 3 & ~(BYTES - 1);
        tile.vectors = (end * 3 - tile.origin + BYTES - 1) / BYTES;
        return tile;
    }

    KERNEL_CODE void vertical(const device_resized &image, const tile &tile, uint32_t row,
                              uint32_t vector, uint16_t *line) const
    {
        const uint16_t *weights = in_global(image.y.weights) + (uint64_t)row * image.y.taps;
        const uint8_t *from = in_global(image.image) +
                              (uint64_t)in_global(image.y.first)[row] * image.pitch + tile.origin;
        uint32_t taps = image.y.taps, sums[BYTES];

        while (taps > 1 && weights[taps - 1] == 0)
            taps--;
        KERNEL_UNROLL
        for (uint32_t i = 0; i < BYTES; i++)
            sums[i] = rounding(taps);
        for (uint32_t k = 0; k < taps; k++, from += image.pitch) {
            const bytes source = bytes::read(from, vector);
            const uint32_t weight = weights[k];
            KERNEL_UNROLL
            for (uint32_t i = 0; i < BYTES; i++)
                sums[i] += source.at[i] * weight >> 8;
        }
        KERNEL_UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            values some;
            KERNEL_UNROLL
            for (uint32_t i = 0; i < BYTES / 2; i++)
                some.at[i] = (uint16_t)sums[half * BYTES / 2 + i];
            some.write(line, vector * 2 + half);
        }
    }

    KERNEL_CODE void horizontal(const device_resized &image, const tile &tile, uint32_t column,
                                const uint16_t *line, uint8_t *output) const
    {
        const uint32_t at = tile.column + column;
        const uint16_t *weights = in_global(image.x.weights) + (uint64_t)at * image.x.taps;
        const uint16_t *from = line + (in_global(image.x.first)[at] * 3 - tile.origin);
        const uint32_t start = 128 + rounding(image.x.widest);
        uint32_t sums[3] = {start, start, start};

        for (uint32_t k = 0; k < image.x.widest; k++, from += 3) {
            const uint32_t weight = weights[k];
            KERNEL_UNROLL
            for (int c = 0; c < 3; c++)
                sums[c] += from[c] * weight >> 16;
        }
        uint8_t *to = output + 3 * (image.mirror ? tile.columns - 1 - column : column);
        KERNEL_UNROLL
        for (int c = 0; c < 3; c++)
            to[c] = (uint8_t)(sums[c] < 65536 ? sums[c] >> 8 : 255);
    }

    KERNEL_CODE void store(const device_resized &image, const tile &tile, uint32_t row,
                           const uint8_t *output, uint32_t thread) const
    {
        const uint32_t count = tile.columns * 3;
        const uint32_t column = image.mirror ? width - tile.column - tile.columns : tile.column;
        uint8_t *to = in_global(image.output) + 3 * ((uint64_t)row * width + column);

        if (((reinterpret_cast<uintptr_t>(to) | count) & (BYTES - 1)) == 0) {
            for (uint32_t i = thread; i < count / BYTES; i += KERNEL_THREADS)
                bytes::read(output, i).write(to, i);
            return;
        }
        for (uint32_t i = thread; i < count; i += KERNEL_THREADS)
            to[i] = output[i];
    }

    KERNEL_CODE void run(int phase, shared_t &shared, local_t &, const place &at) const
    {
        const device_resized &image = image_of(at);
        const tile tile = tile_of(image, at);
        uint32_t i;

        if (phase == 0)
            for (i = at.thread; i < tile.rows * tile.vectors; i += KERNEL_THREADS)
                vertical(image, tile, tile.row + i / tile.vectors, i % tile.vectors,
                         shared.line[i / tile.vectors]);
        else if (phase == 1)
            for (i = at.thread; i < tile.rows * tile.columns; i += KERNEL_THREADS)
                horizontal(image, tile, i % tile.columns, shared.line[i / tile.columns],
                           shared.output[i / tile.columns]);
        else
            for (i = 0; i < tile.rows; i++)
                store(image, tile, tile.row + i, shared.output[i], at.thread);
    }
};

/* Where an image's last pixels are. */
KERNEL_CODE uint8_t *last_bytes(const device_resized &image)
{
    return image.image + (uint64_t)(image.height - 1) * image.pitch + (uint64_t)image.width * 3 -
           DEVICE_MARK_BYTES;
}

/* A pattern that no image is expected to end in. */
KERNEL_CODE uint8_t mark_at(uint32_t i)
{
    return (uint8_t)(0x9d ^ i * 0x5b);
}

struct mark {
    const device_resized *images;

    KERNEL_CODE void each(uint32_t index) const
    {
        last_bytes(images[index / DEVICE_MARK_BYTES])[index % DEVICE_MARK_BYTES] =
            mark_at(index % DEVICE_MARK_BYTES);
    }
};

struct find_marks {
    const device_resized *images;
    uint8_t *marked;

    KERNEL_CODE void each(uint32_t image) const
    {
        const uint8_t *last = last_bytes(images[image]);
        uint8_t same = 1;

        for (uint32_t i = 0; i < DEVICE_MARK_BYTES; i++)
            same = same && last[i] == mark_at(i);
        marked[image] = same;
    }
};

} // namespace

uint32_t device_resize_tile(const uint32_t *first, uint32_t widest, uint32_t width)
{
    uint32_t tile = width < COLUMNS ? (width + BYTES - 1) & ~(BYTES - 1) : COLUMNS;

    for (; tile > 0; tile -= BYTES) {
        bool fits = true;
        for (uint32_t column = 0; column < width && fits; column += tile) {
            const uint32_t last = (width - column < tile ? width : column + tile) - 1;
            fits = ((uint64_t)first[last] + widest - first[column]) * 3 + 2 * BYTES <= LINE;
        }
        if (fits)
            break;
    }
    return tile;
}

int device_resize(const struct device_resized *images, uint32_t count, uint32_t width,
                  uint32_t height, uint32_t tiles, void *stream)
{
    const uint64_t blocks = (uint64_t)count * tiles * ((height + ROWS - 1) / ROWS);

    if (blocks > INT32_MAX)
        return fail(EINVAL, "the device kernel resize cannot run %llu blocks",
                    (unsigned long long)blocks);
    return launch_phases("resize", resize{images, width, height, tiles}, (uint32_t)blocks, stream);
}

int device_mark(const struct device_resized *images, uint32_t count, void *stream)
{
    return launch_each("mark", mark{images}, (uint64_t)count * DEVICE_MARK_BYTES, stream);
}

int device_find_marks(const struct device_resized *images, uint32_t count, uint8_t *marked,
                      void *stream)
{
    return launch_each("find_marks", find_marks{images, marked}, count, stream);
}
