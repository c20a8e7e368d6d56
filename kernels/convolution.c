/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution is a matrix product: weight (channels x taps) times the inputs under the window
 * (taps x output pixels). Output pixels are numbered across all images and unfolded into the
 * workspace CHUNK at a time, so that it stays small and even tiny planes fill a matrix.
 */
#include "kernels/kernels.h"

#include <assert.h>
#include <string.h>

enum { CHUNK = 256 };

/* A chunk of output pixels in one group. */
struct chunk {
    const struct kernel_window *window;
    uint32_t group;
    size_t first, count;
    size_t taps;     /* per group: input channels x height x width */
    size_t channels; /* output channels per group */
};

/* Matrix rows are an odd number of cache lines apart, so that columns do not map to the same few
 * cache sets. */
static size_t stride_of(size_t count)
{
    const size_t line = 64 / sizeof(real);

    return ((count + line - 1) / line | 1) * line;
}

static size_t taps_of(const struct kernel_window *window)
{
    assert(window->groups > 0 && window->in_channels % window->groups == 0);
    return (size_t)window->in_channels / window->groups * window->height * window->width;
}

size_t kernel_convolution_workspace(const struct kernel_window *window)
{
    size_t taps = taps_of(window), channels = window->out_channels / window->groups;
    size_t tall = taps * stride_of(CHUNK), wide = CHUNK * stride_of(taps);

    return (tall > wide ? tall : wide) + channels * stride_of(CHUNK);
}

/* Position of an output pixel: its image, and the input pixel under its first tap. */
struct tap {
    size_t image;
    int64_t y, x;
};

static struct tap tap_at(const struct kernel_window *window, size_t pixel)
{
    const size_t plane = (size_t)window->out_height * window->out_width;
    const size_t y = pixel % plane / window->out_width, x = pixel % window->out_width;

    return (struct tap){
        .image = pixel / plane,
        .y = (int64_t)(y * window->stride) - window->pad_top,
        .x = (int64_t)(x * window->stride) - window->pad_left,
    };
}

/* Row tap_y of the window in one channel of the group: the input index of its first tap (possibly
 * outside), and the range of taps [low, high) inside. */
struct span {
    int64_t at;
    uint32_t low, high;
};

static struct span span_of(const struct chunk *chunk, const struct tap *place, uint32_t channel,
                           uint32_t tap_y)
{
    const struct kernel_window *window = chunk->window;
    const int64_t row = place->y + tap_y, left = window->in_width - place->x;
    const size_t channels = window->in_channels / window->groups;
    const size_t plane = place->image * window->in_channels + chunk->group * channels + channel;
    struct span span = {0};

    if (row < 0 || row >= window->in_height || left <= 0)
        return span;
    span.at = ((int64_t)plane * window->in_height + row) * window->in_width + place->x;
    span.high = left < window->width ? (uint32_t)left : window->width;
    span.low = place->x < 0 ? (uint32_t)-place->x : 0;
    return span;
}

/* The unfolded matrix has one element per tap and pixel; the caller chooses its orientation. */
struct unfolded {
    real *values;
    size_t tap_step, pixel_step;
};

static void unfold(const struct chunk *chunk, const real *input, struct unfolded to)
{
    const struct kernel_window *window = chunk->window;

    for (size_t i = 0; i < chunk->count; i++) {
        const struct tap place = tap_at(window, chunk->first + i);
        real *value = to.values + i * to.pixel_step;
        for (uint32_t c = 0; c < window->in_channels / window->groups; c++)
            for (uint32_t y = 0; y < window->height; y++) {
                const struct span span = span_of(chunk, &place, c, y);
                for (uint32_t x = 0; x < window->width; x++, value += to.tap_step)
                    *value = x >= span.low && x < span.high ? input[span.at + x] : 0;
            }
    }
}

static void fold(const struct chunk *chunk, struct unfolded from, real *input)
{
    const struct kernel_window *window = chunk->window;

    for (size_t i = 0; i < chunk->count; i++) {
        const struct tap place = tap_at(window, chunk->first + i);
        const real *value = from.values + i * from.pixel_step;
        for (uint32_t c = 0; c < window->in_channels / window->groups; c++)
            for (uint32_t y = 0; y < window->height; y++, value += window->width * from.tap_step) {
                const struct span span = span_of(chunk, &place, c, y);
                for (uint32_t x = span.low; x < span.high; x++)
                    input[span.at + x] += value[x * from.tap_step];
            }
    }
}

/* Copy between the output tensor and a chunk's matrix of channels x pixels: pixels of one image are
 * contiguous in both. */
struct run {
    size_t pixel; /* offset in the chunk */
    size_t count;
    size_t tensor; /* where the run begins in the group's first channel */
};

static bool run_next(const struct chunk *chunk, struct run *run)
{
    const struct kernel_window *window = chunk->window;
    const size_t plane = (size_t)window->out_height * window->out_width;
    const size_t pixel = run->pixel + run->count, image = (chunk->first + pixel) / plane;
    const size_t place = (chunk->first + pixel) % plane, left = chunk->count - pixel;
    const size_t channel = image * window->out_channels + chunk->group * chunk->channels;

    *run = (struct run){.pixel = pixel,
                        .count = plane - place < left ? plane - place : left,
                        .tensor = channel * plane + place};
    return left > 0;
}

static struct chunk chunk_start(const struct kernel_window *window, uint32_t group)
{
    return (struct chunk){.window = window,
                          .group = group,
                          .taps = taps_of(window),
                          .channels = window->out_channels / window->groups};
}

static bool chunk_next(struct chunk *chunk)
{
    const struct kernel_window *window = chunk->window;
    const size_t pixels = (size_t)window->images * window->out_height * window->out_width;

    chunk->first += chunk->count;
    chunk->count = pixels - chunk->first < CHUNK ? pixels - chunk->first : CHUNK;
    return chunk->count > 0;
}

void kernel_convolution(const struct kernel_window *window, const real *input, const real *weight,
                        const real *bias, real *output, real *workspace)
{
    const size_t pitch = stride_of(CHUNK), plane = (size_t)window->out_height * window->out_width;

    for (uint32_t group = 0; group < window->groups; group++) {
        struct chunk chunk = chunk_start(window, group);
        const size_t channel = group * chunk.channels;
        real *result = workspace, *taps = workspace + chunk.channels * pitch;
        while (chunk_next(&chunk)) {
            for (size_t c = 0; c < chunk.channels; c++)
                for (size_t i = 0; i < chunk.count; i++)
                    result[c * pitch + i] = bias ? bias[channel + c] : 0;
            unfold(&chunk, input, (struct unfolded){taps, .tap_step = pitch, .pixel_step = 1});
            kernel_matrix_add(chunk.channels, chunk.count, chunk.taps,
                              (struct kernel_matrix){weight + channel * chunk.taps, chunk.taps, 1},
                              taps, pitch, result, pitch);
            for (struct run run = {0}; run_next(&chunk, &run);)
                for (size_t c = 0; c < chunk.channels; c++)
                    memcpy(output + run.tensor + c * plane, result + c * pitch + run.pixel,
                           run.count * sizeof *output);
        }
    }
}

void kernel_convolution_backward(const struct kernel_window *window, const real *input,
                                 const real *weight, const real *d_output, real *d_input,
                                 real *d_weight, real *d_bias, real *workspace)
{
    const size_t pitch = stride_of(CHUNK), row = stride_of(taps_of(window));
    const size_t plane = (size_t)window->out_height * window->out_width;

    for (uint32_t group = 0; group < window->groups; group++) {
        struct chunk chunk = chunk_start(window, group);
        const size_t channel = group * chunk.channels, first = channel * chunk.taps;
        real *d_result = workspace, *taps = workspace + chunk.channels * pitch;
        while (chunk_next(&chunk)) {
            for (struct run run = {0}; run_next(&chunk, &run);)
                for (size_t c = 0; c < chunk.channels; c++)
                    memcpy(d_result + c * pitch + run.pixel, d_output + run.tensor + c * plane,
                           run.count * sizeof *d_result);
            unfold(&chunk, input, (struct unfolded){taps, .tap_step = 1, .pixel_step = row});
            kernel_matrix_add(chunk.channels, chunk.taps, chunk.count,
                              (struct kernel_matrix){d_result, pitch, 1}, taps, row,
                              d_weight + first, chunk.taps);
            if (d_input) {
                memset(taps, 0, chunk.taps * pitch * sizeof *taps);
                kernel_matrix_add(chunk.taps, chunk.count, chunk.channels,
                                  (struct kernel_matrix){weight + first, 1, chunk.taps}, d_result,
                                  pitch, taps, pitch);
                fold(&chunk, (struct unfolded){taps, .tap_step = pitch, .pixel_step = 1}, d_input);
            }
            for (size_t c = 0; d_bias && c < chunk.channels; c++) {
                double sum = 0;
                for (size_t i = 0; i < chunk.count; i++)
                    sum += d_result[c * pitch + i];
                d_bias[channel + c] += (real)sum;
            }
        }
    }
}
