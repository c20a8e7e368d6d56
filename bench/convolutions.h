/* SPDX-License-Identifier: Apache-2.0
 *
 * convolutions: what a network's convolutions and fully connected layers take alone: each is
 * oneDNN's best for its shape, in the layouts that it likes, one after the other on memory of its
 * own, as oneDNN's benchdnn measures. The bound of a backend that does nothing else.
 */
#ifndef IOBENCH_BENCH_CONVOLUTIONS_H
#define IOBENCH_BENCH_CONVOLUTIONS_H

#include "trainer/graph.h"

#include <stdbool.h>

struct convolutions;

/* NULL with a reason. training: both gradients, too, but for that of the image. The number of
 * threads is OpenMP's at this time. */
struct convolutions *convolutions_create(const struct graph *graph, uint32_t batch_size,
                                         bool training);
void convolutions_destroy(struct convolutions *convolutions);

/* Milliseconds of all together: of each the mean of `repeats` after one more that warms up. A
 * negative number after an error. now_ns: of base/clock.h. */
double convolutions_time(struct convolutions *convolutions, int repeats, uint64_t (*now_ns)(void));

#endif
