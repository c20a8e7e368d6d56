/* SPDX-License-Identifier: Apache-2.0
 *
 * convolutions: time of a network's convolutions and fully connected layers alone: oneDNN's best
 * primitive for each shape, in its preferred layouts, one after another on separate memory, as
 * oneDNN's benchdnn measures. No backend can take less time.
 */
#ifndef IOBENCH_BENCH_CONVOLUTIONS_H
#define IOBENCH_BENCH_CONVOLUTIONS_H

#include "trainer/graph.h"

#include <stdbool.h>

struct convolutions;

/* NULL with a reason. training: both gradients, too, except the image's. Uses OpenMP's current
 * number of threads. */
struct convolutions *convolutions_create(const struct graph *graph, uint32_t batch_size,
                                         bool training);
void convolutions_destroy(struct convolutions *convolutions);

/* Total milliseconds: for each, the mean of `repeats` after one warm-up. Negative after an error.
 * now_ns: from base/clock.h. */
double convolutions_time(struct convolutions *convolutions, int repeats, uint64_t (*now_ns)(void));

#endif
