/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include "base/random.h"
#include "base/vector.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- matrices ----
 *
 * Tiles of TILE_ROWS x TILE_COLUMNS sums stay in registers along the depth; the depth is split so
 * that the part of b under a tile stays in cache for all rows. */

/* Compiler vectors: supported on every target, in as many registers as needed. */
typedef real lanes __attribute__((vector_size(64), aligned(sizeof(real)), may_alias));

enum { TILE_ROWS = 6, TILE_COLUMNS = sizeof(lanes) / sizeof(real), DEPTH = 256 };

/* A matrix in memory: element (i, j) is at values[i * row + j * column]. */
struct operand {
    const real *values;
    size_t row, column;
};

struct tile {
    size_t depth;
    struct operand a;
    const real *b;
    size_t b_row;
    real *sum;
    size_t sum_row;
};

VECTOR_CLONES
static void add_whole_tile(const struct tile *tile)
{
    const struct operand a = tile->a;
    const real *b = tile->b;
    lanes sum[TILE_ROWS] = {{0}};

    for (size_t k = 0; k < tile->depth; k++, b += tile->b_row) {
        const lanes row = *(const lanes *)b;
        for (size_t i = 0; i < TILE_ROWS; i++)
            sum[i] += a.values[i * a.row + k * a.column] * row;
    }
    for (size_t i = 0; i < TILE_ROWS; i++)
        *(lanes *)(tile->sum + i * tile->sum_row) += sum[i];
}

/* Multiply at the right and bottom edges. */
static void add_part_tile(const struct tile *tile, size_t rows, size_t columns)
{
    const struct operand a = tile->a;
    real sum[TILE_ROWS][TILE_COLUMNS] = {{0}};

    for (size_t k = 0; k < tile->depth; k++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++)
                sum[i][j] += a.values[i * a.row + k * a.column] * tile->b[k * tile->b_row + j];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            tile->sum[i * tile->sum_row + j] += sum[i][j];
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* sum[rows x columns] += a[rows x depth] * b[depth x columns]. In b and sum, adjacent columns are
 * adjacent in memory (column step 1). */
static void add_product(size_t rows, size_t columns, size_t depth, struct operand a, const real *b,
                        size_t b_row, real *sum, size_t sum_row)
{
    for (size_t k = 0; k < depth; k += DEPTH)
        for (size_t j = 0; j < columns; j += TILE_COLUMNS)
            for (size_t i = 0; i < rows; i += TILE_ROWS) {
                size_t tile_rows = least(TILE_ROWS, rows - i);
                size_t tile_columns = least(TILE_COLUMNS, columns - j);
                struct tile tile = {
                    .depth = least(DEPTH, depth - k),
                    .a = {a.values + i * a.row + k * a.column, a.row, a.column},
                    .b = b + k * b_row + j,
                    .b_row = b_row,
                    .sum = sum + i * sum_row + j,
                    .sum_row = sum_row,
                };
                if (tile_rows == TILE_ROWS && tile_columns == TILE_COLUMNS)
                    add_whole_tile(&tile);
                else
                    add_part_tile(&tile, tile_rows, tile_columns);
            }
}

/* ---- convolutions ----
 *
 * A convolution is a matrix product: weight (channels x taps) times the inputs under the window
 * (taps x output pixels). Output pixels are numbered across all images and unfolded into the
 * workspace CHUNK at a time, so that it stays small and even tiny planes fill a matrix. */

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
            add_product(chunk.channels, chunk.count, chunk.taps,
                        (struct operand){weight + channel * chunk.taps, chunk.taps, 1}, taps, pitch,
                        result, pitch);
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
            add_product(chunk.channels, chunk.taps, chunk.count,
                        (struct operand){d_result, pitch, 1}, taps, row, d_weight + first,
                        chunk.taps);
            if (d_input) {
                memset(taps, 0, chunk.taps * pitch * sizeof *taps);
                add_product(chunk.taps, chunk.count, chunk.channels,
                            (struct operand){weight + first, 1, chunk.taps}, d_result, pitch, taps,
                            pitch);
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

/* ---- fully connected layers ---- */

void kernel_fully_connected(uint32_t images, size_t inputs, size_t outputs, const real *input,
                            const real *weight, const real *bias, real *output, real *workspace)
{
    enum { SIDE = 32 };

    for (uint32_t n = 0; n < images; n++)
        for (size_t j = 0; j < outputs; j++)
            output[n * outputs + j] = bias[j];
    /* Transpose the weights, in tiles that fit into cache. */
    for (size_t row = 0; row < outputs; row += SIDE)
        for (size_t column = 0; column < inputs; column += SIDE)
            for (size_t i = row; i < least(row + SIDE, outputs); i++)
                for (size_t j = column; j < least(column + SIDE, inputs); j++)
                    workspace[j * outputs + i] = weight[i * inputs + j];
    add_product(images, outputs, inputs, (struct operand){input, inputs, 1}, workspace, outputs,
                output, outputs);
}

void kernel_fully_connected_backward(uint32_t images, size_t inputs, size_t outputs,
                                     const real *input, const real *weight, const real *d_output,
                                     real *d_input, real *d_weight, real *d_bias)
{
    for (size_t j = 0; j < outputs; j++) {
        double sum = 0;
        for (uint32_t n = 0; n < images; n++)
            sum += d_output[n * outputs + j];
        d_bias[j] += (real)sum;
    }
    add_product(outputs, inputs, images, (struct operand){d_output, 1, outputs}, input, inputs,
                d_weight, inputs);
    if (d_input)
        add_product(images, inputs, outputs, (struct operand){d_output, outputs, 1}, weight, inputs,
                    d_input, inputs);
}

/* ---- pools ---- */

/* The input pixels under one output pixel: rows [top, bottom), columns [left, right). */
struct box {
    uint32_t top, bottom, left, right;
};

static void clip(uint32_t place, uint32_t stride, uint32_t pad, uint32_t length, uint32_t side,
                 uint32_t *low, uint32_t *high)
{
    const int64_t start = (int64_t)place * stride - pad, end = start + length;

    *low = start > 0 ? (uint32_t)start : 0;
    *high = end < side ? (uint32_t)end : side;
    assert(start < side && end > 0);
}

static struct box box_at(const struct kernel_window *window, uint32_t y, uint32_t x)
{
    struct box box;

    clip(y, window->stride, window->pad_top, window->height, window->in_height, &box.top,
         &box.bottom);
    clip(x, window->stride, window->pad_left, window->width, window->in_width, &box.left,
         &box.right);
    return box;
}

static size_t in_plane(const struct kernel_window *window)
{
    return (size_t)window->in_height * window->in_width;
}

static size_t planes(const struct kernel_window *window)
{
    return (size_t)window->images * window->in_channels;
}

static size_t place_of_maximum(const struct kernel_window *window, const real *plane,
                               struct box box)
{
    size_t best = (size_t)box.top * window->in_width + box.left;

    for (uint32_t y = box.top; y < box.bottom; y++)
        for (uint32_t x = box.left; x < box.right; x++) {
            size_t at = (size_t)y * window->in_width + x;
            if (plane[at] > plane[best])
                best = at;
        }
    return best;
}

void kernel_max_pool(const struct kernel_window *window, const real *input, real *output)
{
    for (size_t i = 0; i < planes(window); i++, input += in_plane(window))
        for (uint32_t y = 0; y < window->out_height; y++)
            for (uint32_t x = 0; x < window->out_width; x++)
                *output++ = input[place_of_maximum(window, input, box_at(window, y, x))];
}

void kernel_max_pool_backward(const struct kernel_window *window, const real *input,
                              const real *d_output, real *d_input)
{
    for (size_t i = 0; i < planes(window); i++) {
        for (uint32_t y = 0; y < window->out_height; y++)
            for (uint32_t x = 0; x < window->out_width; x++)
                d_input[place_of_maximum(window, input, box_at(window, y, x))] += *d_output++;
        input += in_plane(window);
        d_input += in_plane(window);
    }
}

static real divisor(const struct kernel_window *window, struct box box)
{
    return (real)(window->count_padding ? window->height * window->width
                                        : (box.bottom - box.top) * (box.right - box.left));
}

void kernel_average_pool(const struct kernel_window *window, const real *input, real *output)
{
    for (size_t i = 0; i < planes(window); i++, input += in_plane(window))
        for (uint32_t out_y = 0; out_y < window->out_height; out_y++)
            for (uint32_t out_x = 0; out_x < window->out_width; out_x++) {
                const struct box box = box_at(window, out_y, out_x);
                real sum = 0;
                for (uint32_t y = box.top; y < box.bottom; y++)
                    for (uint32_t x = box.left; x < box.right; x++)
                        sum += input[(size_t)y * window->in_width + x];
                *output++ = sum / divisor(window, box);
            }
}

void kernel_average_pool_backward(const struct kernel_window *window, const real *d_output,
                                  real *d_input)
{
    for (size_t i = 0; i < planes(window); i++, d_input += in_plane(window))
        for (uint32_t out_y = 0; out_y < window->out_height; out_y++)
            for (uint32_t out_x = 0; out_x < window->out_width; out_x++) {
                const struct box box = box_at(window, out_y, out_x);
                const real share = *d_output++ / divisor(window, box);
                for (uint32_t y = box.top; y < box.bottom; y++)
                    for (uint32_t x = box.left; x < box.right; x++)
                        d_input[(size_t)y * window->in_width + x] += share;
            }
}

/* ---- batch norm ---- */

/* Sums over one channel of all images, image by image. */
static double channel_sum(uint32_t images, size_t step, size_t plane, const real *values)
{
    double sum = 0;

    for (uint32_t n = 0; n < images; n++, values += step)
        for (size_t i = 0; i < plane; i++)
            sum += values[i];
    return sum;
}

void kernel_batch_norm(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                       const real *input, const real *gamma, const real *beta, real *output,
                       real *mean, real *variance)
{
    const double count = (double)images * (double)plane;

    for (uint32_t c = 0; c < channels; c++) {
        const real *values = input + c * plane;
        const double average = channel_sum(images, channels * plane, plane, values) / count;
        double squares = 0; /* around the mean, so that a large mean costs no precision */
        for (uint32_t n = 0; n < images; n++, values += channels * plane)
            for (size_t i = 0; i < plane; i++)
                squares += (values[i] - average) * (values[i] - average);
        mean[c] = (real)average;
        variance[c] = (real)(squares / count);
    }
    kernel_batch_norm_infer(images, channels, plane, epsilon, input, gamma, beta, mean, variance,
                            output);
}

void kernel_batch_norm_infer(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                             const real *input, const real *gamma, const real *beta,
                             const real *mean, const real *variance, real *output)
{
    for (uint32_t n = 0; n < images; n++)
        for (uint32_t c = 0; c < channels; c++, input += plane, output += plane) {
            const real scale = (real)(gamma[c] / sqrt(variance[c] + epsilon));
            for (size_t i = 0; i < plane; i++)
                output[i] = (input[i] - mean[c]) * scale + beta[c];
        }
}

/* With x' the normalised input and count values per channel (Ioffe and Szegedy, section 3,
 * combined): d_input = gamma / deviation * (d - sum(d) / count - x' * sum(d * x') / count). */
void kernel_batch_norm_backward(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                                const real *input, const real *gamma, const real *mean,
                                const real *variance, const real *d_output, real *d_input,
                                real *d_gamma, real *d_beta)
{
    const double count = (double)images * (double)plane;
    const size_t step = channels * plane;

    for (uint32_t c = 0; c < channels; c++) {
        const double inverse = 1 / sqrt(variance[c] + epsilon), center = mean[c];
        const real *x = input + c * plane, *d = d_output + c * plane;
        double sum = channel_sum(images, step, plane, d), dot = 0;
        for (uint32_t n = 0; n < images; n++)
            for (size_t i = 0; i < plane; i++)
                dot += d[n * step + i] * (x[n * step + i] - center) * inverse;
        d_gamma[c] += (real)dot;
        d_beta[c] += (real)sum;
        const real scale = (real)(gamma[c] * inverse), shift = (real)(sum / count);
        const real slope = (real)(dot / count * inverse);
        for (uint32_t n = 0; n < images; n++)
            for (size_t i = 0; i < plane; i++) {
                size_t at = n * step + i;
                d_input[c * plane + at] += scale * (d[at] - shift - (x[at] - mean[c]) * slope);
            }
    }
}

void kernel_batch_norm_statistics(uint32_t channels, size_t count, double momentum,
                                  const real *mean, const real *variance, real *running_mean,
                                  real *running_variance)
{
    const double unbiased = count > 1 ? (double)count / (double)(count - 1) : 1;

    for (uint32_t c = 0; c < channels; c++) {
        running_mean[c] = (real)((1 - momentum) * running_mean[c] + momentum * mean[c]);
        running_variance[c] =
            (real)((1 - momentum) * running_variance[c] + momentum * unbiased * variance[c]);
    }
}

/* ---- pointwise ---- */

void kernel_normalise(uint32_t images, size_t plane, const uint8_t *rows, const float mean[3],
                      const float deviation[3], real *output)
{
    for (uint32_t n = 0; n < images; n++, rows += 3 * plane)
        for (int c = 0; c < 3; c++, output += plane)
            for (size_t i = 0; i < plane; i++)
                output[i] = ((real)rows[3 * i + (size_t)c] - mean[c]) / deviation[c];
}

void kernel_relu(size_t count, const real *input, real *output)
{
    for (size_t i = 0; i < count; i++)
        output[i] = input[i] < 0 ? 0 : input[i];
}

void kernel_relu_backward(size_t count, const real *output, const real *d_output, real *d_input)
{
    for (size_t i = 0; i < count; i++)
        d_input[i] += output[i] <= 0 ? 0 : d_output[i];
}

void kernel_add(size_t count, const real *a, const real *b, real *sum)
{
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

void kernel_accumulate(size_t count, const real *term, real *sum)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

void kernel_concat(uint32_t images, size_t part, size_t offset, size_t whole, const real *input,
                   real *output)
{
    for (uint32_t n = 0; n < images; n++)
        memcpy(output + n * whole + offset, input + n * part, part * sizeof *input);
}

void kernel_concat_backward(uint32_t images, size_t part, size_t offset, size_t whole,
                            const real *d_output, real *d_input)
{
    for (uint32_t n = 0; n < images; n++)
        kernel_accumulate(part, d_output + n * whole + offset, d_input + n * part);
}

uint64_t kernel_dropout_key(uint64_t seed, uint64_t step, uint32_t node)
{
    return random_hash(seed, step, node);
}

/* The finaliser of MurmurHash3 on an index and both halves of the key: multiplications of 32 bits,
 * since those of 64 bound a GPU by arithmetic. */
static uint32_t dropout_bits(uint64_t key, uint32_t index)
{
    uint32_t bits = (index * 0x9e3779b1u + (uint32_t)key) ^ (uint32_t)(key >> 32);

    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return bits ^ bits >> 16;
}

bool kernel_dropout_keeps(uint64_t key, uint64_t index, double rate)
{
    return dropout_bits(key, (uint32_t)index) >= kernel_dropout_least(rate);
}

void kernel_dropout(size_t count, uint64_t key, double rate, const real *input, real *output)
{
    const real scale = (real)(1 / (1 - rate));
    const uint32_t least = kernel_dropout_least(rate);

    assert(rate >= 0 && rate < 1);
    for (size_t i = 0; i < count; i++)
        output[i] = dropout_bits(key, (uint32_t)i) >= least ? input[i] * scale : 0;
}

void kernel_dropout_backward(size_t count, uint64_t key, double rate, const real *d_output,
                             real *d_input)
{
    const real scale = (real)(1 / (1 - rate));
    const uint32_t least = kernel_dropout_least(rate);

    for (size_t i = 0; i < count; i++)
        d_input[i] += dropout_bits(key, (uint32_t)i) >= least ? d_output[i] * scale : 0;
}

/* ---- LRN ---- */

/* The base raised to -beta, for one channel of one pixel; input points at channel 0. */
static double base_of(const struct kernel_lrn *lrn, const real *input, uint32_t channel)
{
    const uint32_t half = lrn->size / 2;
    const uint32_t low = channel > half ? channel - half : 0;
    const uint32_t last = channel + half < lrn->channels ? channel + half : lrn->channels - 1;
    double squares = 0;

    for (uint32_t c = low; c <= last; c++) {
        double value = input[c * lrn->plane];
        squares += value * value;
    }
    return lrn->k + lrn->alpha / lrn->size * squares;
}

void kernel_lrn(const struct kernel_lrn *lrn, const real *input, real *output)
{
    const size_t image = lrn->channels * lrn->plane;

    for (size_t n = 0; n < lrn->images * image; n += image)
        for (uint32_t c = 0; c < lrn->channels; c++)
            for (size_t i = 0; i < lrn->plane; i++) {
                size_t at = n + c * lrn->plane + i;
                output[at] = (real)(input[at] * pow(base_of(lrn, input + n + i, c), -lrn->beta));
            }
}

/* Output c depends on every input within half a window: with s the base, and x and d the input and
 * gradient of channel c, it adds d * s^-beta to its own input and -2 * alpha / size * beta * d * x
 * * s^(-beta - 1) * x' to each input x' in its window. */
void kernel_lrn_backward(const struct kernel_lrn *lrn, const real *input, const real *d_output,
                         real *d_input)
{
    const size_t image = lrn->channels * lrn->plane;
    const uint32_t half = lrn->size / 2;
    const double factor = -2 * lrn->alpha / lrn->size * lrn->beta;

    for (size_t n = 0; n < lrn->images * image; n += image)
        for (uint32_t c = 0; c < lrn->channels; c++)
            for (size_t i = 0; i < lrn->plane; i++) {
                const size_t pixel = n + i, at = pixel + c * lrn->plane;
                const double base = base_of(lrn, input + pixel, c);
                const double own = d_output[at] * pow(base, -lrn->beta);
                const double shared = factor * own * input[at] / base;
                d_input[at] += (real)own;
                for (uint32_t j = c > half ? c - half : 0; j <= c + half && j < lrn->channels; j++)
                    d_input[pixel + j * lrn->plane] +=
                        (real)(shared * input[pixel + j * lrn->plane]);
            }
}

/* ---- loss ---- */

struct kernel_loss kernel_cross_entropy(uint32_t images, uint32_t classes, const real *logits,
                                        const int32_t *labels, double smoothing, real *d_logits)
{
    struct kernel_loss result = {0};

    for (uint32_t n = 0; n < images; n++)
        result.counted += labels[n] >= 0;
    const double weight = result.counted ? 1.0 / result.counted : 0;
    for (uint32_t n = 0; n < images; n++, logits += classes) {
        real *d_row = d_logits ? d_logits + (size_t)n * classes : NULL;
        if (labels[n] < 0) {
            for (uint32_t k = 0; d_row && k < classes; k++)
                d_row[k] = 0;
            continue;
        }
        const uint32_t label = (uint32_t)labels[n];
        double largest = logits[0], sum = 0, loss = 0;
        uint32_t rank = 0; /* classes before the label when sorted by logit */
        for (uint32_t k = 0; k < classes; k++) {
            rank += !(logits[k] < logits[label] || (logits[k] == logits[label] && k >= label));
            largest = logits[k] > largest ? logits[k] : largest;
        }
        for (uint32_t k = 0; k < classes; k++) /* shifted by the maximum to avoid overflow */
            sum += exp(logits[k] - largest);
        const double total = largest + log(sum), even = smoothing / classes;
        for (uint32_t k = 0; k < classes; k++) {
            const double target = even + (k == label ? 1 - smoothing : 0);
            /* An infinite logit with weight 0 must not make 0 * infinity. */
            if (target > 0)
                loss += target * (total - logits[k]);
            if (d_row)
                d_row[k] = (real)((exp(logits[k] - total) - target) * weight);
        }
        result.loss += weight * loss;
        result.correct += rank < 1;
        result.correct_top5 += rank < 5;
    }
    return result;
}

/* ---- updates ---- */

VECTOR_CLONES
void kernel_sgd(size_t count, double rate, double momentum, double decay, double scale,
                const real *gradient, real *weight, real *momenta)
{
    const real r = (real)rate, m = (real)momentum, d = (real)decay, s = (real)scale;

    for (size_t i = 0; i < count; i++) {
        momenta[i] = m * momenta[i] + s * gradient[i] + d * weight[i];
        weight[i] -= r * momenta[i];
    }
}

/* Several sums, since one addition waits for another. */
VECTOR_CLONES
double kernel_squares(size_t count, const real *values)
{
    enum { SUMS = 16 };
    double sums[SUMS] = {0}, squares = 0;
    size_t i = 0;

    for (; i + SUMS <= count; i += SUMS)
        for (size_t j = 0; j < SUMS; j++)
            sums[j] += (double)values[i + j] * values[i + j];
    for (; i < count; i++)
        squares += (double)values[i] * values[i];
    for (size_t j = 0; j < SUMS; j++)
        squares += sums[j];
    return squares;
}

void kernel_lars(size_t count, double rate, double rate_before, double momentum, double decay,
                 double eta, double scale, const real *gradient, real *weight, real *momenta)
{
    const double weights = sqrt(kernel_squares(count, weight));
    const double gradients = scale * sqrt(kernel_squares(count, gradient));
    const bool adapts = eta > 0 && weights > 0 && gradients > 0;
    const double local = adapts ? eta * weights / (gradients + decay * weights) : 1;
    const real m = (real)(rate_before > 0 ? momentum * rate / rate_before : momentum);
    const real r = (real)(rate * local), d = (real)decay, s = (real)scale;

    for (size_t i = 0; i < count; i++) {
        momenta[i] = m * momenta[i] + r * (s * gradient[i] + d * weight[i]);
        weight[i] -= momenta[i];
    }
}

/* ---- magnitudes ---- */

void magnitudes_observe(struct magnitudes *magnitudes, uint64_t count, const float *values)
{
    double largest = 0;

    for (uint64_t i = 0; i < count; i++) {
        const double magnitude = isfinite(values[i]) ? fabs((double)values[i]) : INFINITY;
        largest = magnitude > largest ? magnitude : largest;
    }
    magnitudes->largest = largest > magnitudes->largest ? largest : magnitudes->largest;
    if (isinf(magnitudes->largest))
        return;
    if (magnitudes->range == 0)
        magnitudes->range = largest;
    for (; largest > magnitudes->range; magnitudes->range *= 2) {
        uint64_t *counts = magnitudes->counts;
        for (uint32_t i = 0; i < MAGNITUDES_BINS / 2; i++)
            counts[i] = counts[2 * i] + counts[2 * i + 1];
        for (uint32_t i = MAGNITUDES_BINS / 2; i < MAGNITUDES_BINS; i++)
            counts[i] = 0;
    }
    const double bins_a_unit = magnitudes->range > 0 ? MAGNITUDES_BINS / magnitudes->range : 0;
    for (uint64_t i = 0; i < count; i++) {
        const double magnitude = fabs((double)values[i]);
        const uint32_t bin = (uint32_t)(magnitude * bins_a_unit);
        if (magnitude > 0)
            magnitudes->counts[bin < MAGNITUDES_BINS ? bin : MAGNITUDES_BINS - 1]++;
        else
            magnitudes->zeros++;
    }
}
