/* SPDX-License-Identifier: Apache-2.0
 * pool: the geometry of pools. For device kernels only. */
#ifndef IOBENCH_KERNELS_POOL_CUH
#define IOBENCH_KERNELS_POOL_CUH

#include "kernels/launch.cuh"

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

static inline grid inputs_of(const struct kernel_window *window, uint32_t vectors)
{
    return grid::make(window->in_height, window->in_width, vectors);
}

static inline grid outputs_of(const struct kernel_window *window, uint32_t vectors)
{
    return grid::make(window->out_height, window->out_width, vectors);
}

static inline uint64_t vectors_of(const struct kernel_window *window, const grid &grid)
{
    return (uint64_t)window->images * grid.height.by * grid.width.by * grid.vectors.by;
}

#endif
