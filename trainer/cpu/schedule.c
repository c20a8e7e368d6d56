/* SPDX-License-Identifier: Apache-2.0
 * Lists a program's steps, and measures peak rates to compare them with. Queries the finished
 * primitives, so that building and running store nothing for it. */
#include "trainer/cpu/cpu.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vector.h"

/* ---- primitives ---- */

static const dnnl_memory_t *find_argument(const struct cpu_step *step, int name)
{
    for (int i = 0; i < step->argument_count; i++)
        if (step->arguments[i].arg == name)
            return &step->arguments[i].memory;
    return NULL;
}

static bool is_backward(const struct cpu_step *step)
{
    return find_argument(step, DNNL_ARG_DIFF_DST) != NULL;
}

/* A forward pass writes its output and what it keeps, a backward pass gradients. */
static bool is_written(const struct cpu_step *step, int name)
{
    const bool forward = !is_backward(step); /* a ReLU's backward pass reads the output */

    switch (name) {
    case DNNL_ARG_DST:
    case DNNL_ARG_WORKSPACE:
        return forward;
    case DNNL_ARG_MEAN:
    case DNNL_ARG_VARIANCE:
        return forward && find_argument(step, DNNL_ARG_WORKSPACE);
    default:
        return name == DNNL_ARG_DIFF_SRC || name == DNNL_ARG_DIFF_WEIGHTS ||
               name == DNNL_ARG_DIFF_BIAS || name == DNNL_ARG_DIFF_SCALE ||
               name == DNNL_ARG_DIFF_SHIFT;
    }
}

static void add_name(struct schedule_step *row, const char *name)
{
    const size_t used = strlen(row->fused);

    snprintf(row->fused + used, sizeof row->fused - used, "%s%s", used ? ", " : "", name);
}

static void list_primitive(const struct cpu_program *program, const struct cpu_step *step,
                           struct schedule_step *row)
{
    static const char *const names[][2] = {
        [GRAPH_CONVOLUTION] = {"convolution", "data gradient"},
        [GRAPH_BATCH_NORM] = {"batch norm", "batch norm backward"},
        [GRAPH_RELU] = {"relu", "relu backward"},
        [GRAPH_MAX_POOL] = {"max pool", "max pool backward"},
        [GRAPH_AVERAGE_POOL] = {"average pool", "average pool backward"},
        [GRAPH_ADD] = {"add", NULL},
        [GRAPH_CONCAT] = {"concat", NULL},
        [GRAPH_FULLY_CONNECTED] = {"fully connected", "data gradient"},
        [GRAPH_LRN] = {"lrn", "lrn backward"},
    };
    const struct graph *graph = program->model->graph;
    const struct graph_node *node = &graph->nodes[step->node];
    const_dnnl_primitive_desc_t desc = NULL;
    const_dnnl_primitive_attr_t attributes = NULL;
    const_dnnl_post_ops_t behind = NULL;
    dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
    const char *engine = "";
    bool sums = false; /* it adds to its target */

    if (dnnl_primitive_get_primitive_desc(step->primitive, &desc))
        return;
    dnnl_primitive_desc_query(desc, dnnl_query_primitive_kind, 0, &kind);
    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&engine);
    snprintf(row->engine, sizeof row->engine, "%s", engine);
    if (kind == dnnl_reorder)
        row->operation = "reorder";
    else if (kind == dnnl_sum)
        row->operation = "gradient sum";
    else if (find_argument(step, DNNL_ARG_DIFF_WEIGHTS))
        row->operation = "weight gradient";
    else
        row->operation = names[kind == dnnl_eltwise ? GRAPH_RELU : node->kind][is_backward(step)];
    if (kind == dnnl_convolution || kind == dnnl_inner_product)
        row->flops = 2.0 * (double)graph_node_macs(graph, step->node) * program->count;

    /* Name what is fused into it. */
    if (node->kind == GRAPH_CONVOLUTION && node->bias == UINT32_MAX && row->flops > 0 &&
        find_argument(step, DNNL_ARG_BIAS))
        add_name(row, "batch norm");
    if (node->kind == GRAPH_BATCH_NORM && find_argument(step, DNNL_ARG_WORKSPACE))
        add_name(row, "relu");
    if (!dnnl_primitive_desc_get_attr(desc, &attributes) &&
        !dnnl_primitive_attr_get_post_ops(attributes, &behind))
        for (int i = 0; i < dnnl_post_ops_len(behind); i++) {
            const bool sum = dnnl_post_ops_get_kind(behind, i) == dnnl_sum;
            add_name(row, sum ? "add" : "relu");
            sums |= sum;
        }

    for (int i = 0; i < step->argument_count; i++) {
        const int name = step->arguments[i].arg;
        cpu_raw_layout layout = NULL;
        dnnl_dims_t dims;
        uint64_t bytes = 0; /* without padding; oneDNN reports size 0 for part of a tensor */
        if (!dnnl_memory_get_memory_desc(step->arguments[i].memory, &layout)) {
            bytes = dnnl_data_type_size(cpu_raw_type(layout));
            for (int k = cpu_raw_dims(layout, dims); k-- > 0;)
                bytes *= (uint64_t)dims[k];
        }
        if (name == DNNL_ARG_SCRATCHPAD) {
            row->workspace_bytes = bytes;
            continue;
        }
        const bool written = is_written(step, name);
        row->write_bytes += written ? bytes : 0;
        row->read_bytes += !written || (sums && name == DNNL_ARG_DST) ? bytes : 0;
    }
}

/* ---- our own steps ---- */

static void list_own(const struct cpu_program *program, const struct cpu_step *step,
                     struct schedule_step *row)
{
    static const struct {
        const char *operation, *engine;
        uint64_t reads, writes; /* tensors the size of the node's output */
    } rows[] = {
        [CPU_DROPOUT] = {"dropout", "kernel_dropout", 1, 1},
        [CPU_DROPOUT_BACKWARD] = {"dropout backward", "kernel_dropout_backward", 1, 1},
        [CPU_SUM_RELU_BACKWARD] = {"gradient sum, relu backward", "sum_relu", 3, 1},
        [CPU_OBSERVE] = {"observe", "calibration_observe", 1, 0},
        [CPU_LOSS] = {"softmax, cross-entropy", "kernel_cross_entropy", 1, 1},
        [CPU_NORMALISE] = {"normalise", "kernel_normalise", 0, 1},
        [CPU_STATISTICS] = {"running statistics", "kernel_batch_norm_statistics", 0, 0},
        [CPU_FOLD] = {"fold batch norm", "graph_fold_norm", 0, 0},
    };
    const struct graph *graph = program->model->graph;
    const struct graph_node *node = &graph->nodes[step->node];
    const bool halves = step->kind == CPU_SUM_RELU_BACKWARD && program->model->type == dnnl_bf16;
    const uint64_t bytes =
        program->count * graph_node_floats(node) * (halves ? sizeof(uint16_t) : sizeof(float));
    const uint64_t vector = node->shape.channels * sizeof(float);

    row->operation = rows[step->kind].operation;
    snprintf(row->engine, sizeof row->engine, "%s", rows[step->kind].engine);
    row->read_bytes = rows[step->kind].reads * bytes;
    row->write_bytes = rows[step->kind].writes * bytes;
    if (step->kind == CPU_NORMALISE) {
        row->read_bytes = bytes / sizeof(float);
    } else if (step->kind == CPU_LOSS && !program->training) {
        row->write_bytes = 0;
    } else if (step->kind == CPU_STATISTICS) { /* mean and variance, of the batch and running */
        row->read_bytes = 4 * vector;
        row->write_bytes = 2 * vector;
    } else if (step->kind == CPU_FOLD) {
        const uint64_t weights = graph->parameters[node->weight].count * sizeof(float);
        row->read_bytes = weights + 4 * vector;
        row->write_bytes = weights + vector;
    }
}

int cpu_program_list(const struct cpu_program *program, uint32_t passes, struct schedule *schedule)
{
    enum schedule_phase phase = SCHEDULE_FORWARD;
    const dnnl_version_t *version = dnnl_version();
    int code = 0;

    snprintf(schedule->library, sizeof schedule->library, "oneDNN %d.%d.%d", version->major,
             version->minor, version->patch);
    for (uint32_t i = 0; i < program->step_count && code == 0; i++) {
        const struct cpu_step *step = &program->steps[i];
        if (step->kind == CPU_READY)
            continue;
        struct schedule_step row = {.phase = step->of_parameters      ? SCHEDULE_ONCE
                                             : step->kind == CPU_LOSS ? SCHEDULE_LOSS
                                                                      : phase,
                                    .node = step->node,
                                    .measured_ns = program->took_ns && !step->of_parameters
                                                       ? (double)program->took_ns[i] / passes
                                                       : 0};
        if (step->kind == CPU_PRIMITIVE)
            list_primitive(program, step, &row);
        else
            list_own(program, step, &row);
        if (step->kind == CPU_LOSS)
            phase = SCHEDULE_BACKWARD;
        code = schedule_add(schedule, &row);
    }
    return code;
}

/* ---- peaks ----
 *
 * Rates of this machine as programs reach them: oneDNN's matrix product in a type, and a sum of two
 * arrays that no cache holds (STREAM's add). Best of a few rounds: other work only slows them down.
 */

enum { SIDE = 1024, FLOATS = 16 << 20, ROUNDS = 5, LINE_FLOATS = 16 };

static const double product_flops = 2.0 * SIDE * SIDE * SIDE, sum_bytes = 3.0 * FLOATS * 4;

struct arrays {
    float *a, *b, *sum;
};

VECTOR_CLONES
static void add_part(const void *context, uint64_t first, uint64_t end)
{
    const struct arrays *arrays = context;
    const float *a = arrays->a, *b = arrays->b;
    float *sum = arrays->sum;

    for (uint64_t i = first; i < end; i++)
        sum[i] = a[i] + b[i];
}

int cpu_peaks(struct cpu_dnnl *dnnl, dnnl_data_type_t type, struct schedule *schedule)
{
    dnnl_primitive_t product = NULL;
    dnnl_exec_arg_t arguments[3] = {{0}};
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
        dnnl_status_t status = cpu_dnnl_describe(dnnl, &operation, NULL, NULL, &desc);
        if (status == dnnl_success)
            status = dnnl_primitive_create(&product, desc);
        for (int i = 0; i < 3 && status == dnnl_success; i++) {
            arguments[i].arg = matrices[i].name;
            status = dnnl_memory_create(&arguments[i].memory,
                                        cpu_layout_of(dnnl, desc, matrices[i].layout)->raw,
                                        dnnl->engine, memory[i]);
        }
        dnnl_primitive_desc_destroy(desc);
        code = cpu_check(status, "matrix product");
    }
    /* Work per second, after one round that warms up; products first, then sums. */
    for (int i = 0; i < 2 * (ROUNDS + 1) && code == 0; i++) {
        const bool sums = i > ROUNDS;
        double *per_s = sums ? &schedule->bytes_per_s : &schedule->flops_per_s;
        uint64_t since_ns = clock_now_ns(), took_ns = 0;
        if (sums)
            cpu_share(FLOATS, LINE_FLOATS, add_part, &arrays);
        else
            code = cpu_check(dnnl_primitive_execute(product, dnnl->stream, 3, arguments),
                             "matrix product");
        schedule_lap(&took_ns, &since_ns);
        if (i % (ROUNDS + 1) > 0 && took_ns > 0)
            *per_s = fmax(*per_s, (sums ? sum_bytes : product_flops) * 1e9 / (double)took_ns);
    }
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(arguments[i].memory);
    dnnl_primitive_destroy(product);
    free(arrays.a);
    free(arrays.b);
    free(arrays.sum);
    return code;
}
