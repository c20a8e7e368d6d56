/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak rates of this machine as programs reach them: oneDNN's matrix product, and a sum of two
 * arrays that no cache holds (STREAM's add). Best of a few rounds: other work only slows them down.
 */
#include "trainer/cpu.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vector.h"

enum { SIDE = 1024, FLOATS = 16 << 20, ROUNDS = 5, LINE_FLOATS = 16 };

static const double product_flops = 2.0 * SIDE * SIDE * SIDE, sum_bytes = 3.0 * FLOATS * 4;

struct arrays {
    float *a, *b, *sum;
};

static int multiply(const struct arrays *arrays)
{
    return cpu_check(dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1, arrays->a, SIDE, arrays->b, SIDE, 0,
                                arrays->sum, SIDE),
                     "matrix product");
}

VECTOR_CLONES
static void add_part(const void *context, uint64_t first, uint64_t end)
{
    const struct arrays *arrays = context;
    const float *a = arrays->a, *b = arrays->b;
    float *sum = arrays->sum;

    for (uint64_t i = first; i < end; i++)
        sum[i] = a[i] + b[i];
}

static int add(const struct arrays *arrays)
{
    cpu_share(FLOATS, LINE_FLOATS, add_part, arrays);
    return 0;
}

/* Work per second, after one round that warms up. */
static int measure(int (*run)(const struct arrays *arrays), const struct arrays *arrays,
                   double work, double *per_s)
{
    int code = run(arrays);

    for (int i = 0; i < ROUNDS && code == 0; i++) {
        uint64_t since_ns = clock_now_ns(), took_ns = 0;
        code = run(arrays);
        schedule_lap(&took_ns, &since_ns);
        if (took_ns && work * 1e9 / (double)took_ns > *per_s)
            *per_s = work * 1e9 / (double)took_ns;
    }
    return code;
}

int cpu_peaks(struct schedule *schedule)
{
    struct arrays arrays = {.a = memory_array(FLOATS, sizeof(float)),
                            .b = memory_array(FLOATS, sizeof(float)),
                            .sum = memory_array(FLOATS, sizeof(float))};
    int code = arrays.a && arrays.b && arrays.sum ? 0 : -ENOMEM;

    for (uint64_t i = 0; i < FLOATS && code == 0; i++)
        arrays.a[i] = arrays.b[i] = 1;
    if (code == 0)
        code = measure(multiply, &arrays, product_flops, &schedule->flops_per_s);
    if (code == 0)
        code = measure(add, &arrays, sum_bytes, &schedule->bytes_per_s);
    free(arrays.a);
    free(arrays.b);
    free(arrays.sum);
    return code;
}
