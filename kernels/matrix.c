/* SPDX-License-Identifier: Apache-2.0
 * Tiles of TILE_ROWS x TILE_COLUMNS sums stay in registers along the depth; the depth is split so
 * that the part of b under a tile stays in cache for all rows. */
#include "kernels/kernels.h"

#include "base/vector.h"

/* Compiler vectors: supported on every target, in as many registers as needed. */
typedef real lanes __attribute__((vector_size(64), aligned(sizeof(real)), may_alias));

enum { TILE_ROWS = 6, TILE_COLUMNS = sizeof(lanes) / sizeof(real), DEPTH = 256 };

struct tile {
    size_t depth;
    struct kernel_matrix a;
    const real *b;
    size_t b_row;
    real *sum;
    size_t sum_row;
};

VECTOR_CLONES
static void add_whole_tile(const struct tile *tile)
{
    const struct kernel_matrix a = tile->a;
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

/* At the right and bottom edges. */
static void add_part_tile(const struct tile *tile, size_t rows, size_t columns)
{
    const struct kernel_matrix a = tile->a;
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

void kernel_matrix_add(size_t rows, size_t columns, size_t depth, struct kernel_matrix a,
                       const real *b, size_t b_row, real *sum, size_t sum_row)
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
