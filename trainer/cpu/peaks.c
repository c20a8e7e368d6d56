/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak rates of this machine as programs reach them: oneDNN's matrix product in a type, and a sum
 * of two arrays that no cache holds (STREAM's add). Best of a few rounds: other work only slows
 * them down.
 */
#include "trainer/cpu/cpu.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vector.h"

enum { SIDE = 1024, FLOATS = 16 << 20, ROUNDS = 5, LINE_FLOATS = 16 };

static const double product_flops = 2.0 * SIDE * SIDE * SIDE, sum_bytes = 3.0 * FLOATS * 4;

struct arrays {
    float *a, *b, *sum;
    const struct cpu_dnnl *dnnl;
    dnnl_primitive_t product;
    dnnl_exec_arg_t arguments[3];
};

static int multiply(const struct arrays *arrays)
{
    return cpu_check(
        dnnl_primitive_execute(arrays->product, arrays->dnnl->stream, 3, arrays->arguments),
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

static int add_arrays(const struct arrays *arrays)
{
    cpu_share(FLOATS, LINE_FLOATS, add_part, arrays);
    return 0;
}

/* Work per second, after one round that warms up. */
static int measure_rate(int (*run)(const struct arrays *arrays), const struct arrays *arrays,
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

int cpu_peaks(struct cpu_dnnl *dnnl, dnnl_data_type_t type, struct schedule *schedule)
{
    struct arrays arrays = {.a = memory_array(FLOATS, sizeof(float)),
                            .b = memory_array(FLOATS, sizeof(float)),
                            .sum = memory_array(FLOATS, sizeof(float))};

    schedule->peaks = type == dnnl_bf16 ? "measured here: BF16 matrix product, sum of two arrays"
                                        : "measured here: FP32 matrix product, sum of two arrays";
    int code = arrays.a && arrays.b && arrays.sum ? 0 : -ENOMEM;

    for (uint64_t i = 0; i < FLOATS && code == 0; i++)
        arrays.a[i] = arrays.b[i] = 1;
    if (code == 0) {
        /* The matrices are views of the arrays, in the layouts that oneDNN prefers. */
        static const struct {
            int name;
            dnnl_query_t layout;
        } matrices[] = {{DNNL_ARG_SRC, dnnl_query_src_md},
                        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                        {DNNL_ARG_DST, dnnl_query_dst_md}};
        float *const memory[] = {arrays.a, arrays.b, arrays.sum};
        const struct cpu_layout *any =
            cpu_any(dnnl, cpu_plain(dnnl, 2, (const dnnl_dims_t){SIDE, SIDE}), type);
        const struct cpu_operation operation = {.kind = CPU_INNER_PRODUCT,
                                                .pass = dnnl_forward_inference,
                                                .source = any,
                                                .weight = any,
                                                .target = any};
        dnnl_primitive_desc_t desc = NULL;
        arrays.dnnl = dnnl;
        dnnl_status_t status = cpu_dnnl_describe(dnnl, &operation, NULL, NULL, &desc);
        if (status == dnnl_success)
            status = dnnl_primitive_create(&arrays.product, desc);
        for (int i = 0; i < 3 && status == dnnl_success; i++) {
            arrays.arguments[i].arg = matrices[i].name;
            status = dnnl_memory_create(&arrays.arguments[i].memory,
                                        cpu_layout_of(dnnl, desc, matrices[i].layout)->raw,
                                        dnnl->engine, memory[i]);
        }
        dnnl_primitive_desc_destroy(desc);
        code = cpu_check(status, "matrix product");
    }
    if (code == 0)
        code = measure_rate(multiply, &arrays, product_flops, &schedule->flops_per_s);
    if (code == 0)
        code = measure_rate(add_arrays, &arrays, sum_bytes, &schedule->bytes_per_s);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(arrays.arguments[i].memory);
    dnnl_primitive_destroy(arrays.product);
    free(arrays.a);
    free(arrays.b);
    free(arrays.sum);
    return code;
}
