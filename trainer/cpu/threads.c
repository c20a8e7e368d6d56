/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of our own run on oneDNN's threads: those of libgomp, through the entry points that GCC
 * compiles `#pragma omp parallel` to. Not every compiler has omp.h, and a second runtime would
 * create a second set of threads.
 */
#include "trainer/cpu/cpu.h"

void GOMP_parallel(void (*body)(void *argument), void *argument, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

struct work {
    uint64_t count, unit;
    cpu_part body;
    const void *context;
};

static void do_share(void *argument)
{
    const struct work *work = argument;
    const uint64_t threads = (uint64_t)omp_get_num_threads(), me = (uint64_t)omp_get_thread_num();
    const uint64_t units = (work->count + work->unit - 1) / work->unit;
    const uint64_t first = units * me / threads * work->unit;
    const uint64_t end = units * (me + 1) / threads * work->unit;

    if (first < work->count)
        work->body(work->context, first, end < work->count ? end : work->count);
}

void cpu_share(uint64_t count, uint64_t unit, cpu_part body, const void *context)
{
    struct work work = {count, unit, body, context};

    GOMP_parallel(do_share, &work, 0, 0);
}
