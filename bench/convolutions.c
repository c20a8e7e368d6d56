/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/convolutions.h"

#include "base/fail.h"
#include "base/memory.h"
#include "trainer/cpu/dnnl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROLES = 4, SCRATCH = 3, PASSES = 3, PAGE_ALIGNMENT = 2 << 20 };

/* A primitive: three tensors and its scratchpad. */
struct work {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ROLES];
    const struct cpu_layout *layouts[ROLES];
};

struct convolutions {
    struct cpu_dnnl dnnl;
    struct work *works;
    uint32_t count;
    void *slabs[ROLES]; /* tensors of all works, which run one at a time */
    size_t bytes[ROLES];
};

static const struct cpu_layout *any(struct convolutions *all, int ndims, const dnnl_dims_t dims)
{
    return cpu_any(&all->dnnl, cpu_plain(&all->dnnl, ndims, dims), dnnl_f32);
}

static struct cpu_operation describe(struct convolutions *all, const struct graph *graph,
                                     uint32_t number, uint32_t images)
{
    const struct graph_node *node = &graph->nodes[number];
    const struct kernel_window *window = &node->window;
    const struct graph_shape *in = &graph->nodes[node->inputs[0]].shape, *out = &node->shape;
    const dnnl_dim_t groups = node->window.groups, height = window->height, width = window->width;
    const dnnl_dim_t inputs = (dnnl_dim_t)in->channels * in->height * in->width;

    if (node->kind != GRAPH_CONVOLUTION)
        return (struct cpu_operation){
            .kind = CPU_INNER_PRODUCT,
            .source = any(all, 2, (const dnnl_dims_t){images, inputs}),
            .weight = any(all, 2, (const dnnl_dims_t){out->channels, inputs}),
            .target = any(all, 2, (const dnnl_dims_t){images, out->channels})};
    return (struct cpu_operation){
        .kind = CPU_CONVOLUTION,
        .source = any(all, 4, (const dnnl_dims_t){images, in->channels, in->height, in->width}),
        .weight = groups > 1 ? any(all, 5,
                                   (const dnnl_dims_t){groups, out->channels / groups,
                                                       in->channels / groups, height, width})
                             : any(all, 4,
                                   (const dnnl_dims_t){out->channels, in->channels, height, width}),
        .target = any(all, 4, (const dnnl_dims_t){images, out->channels, out->height, out->width}),
        .window = {.strides = {window->stride, window->stride},
                   .before = {window->pad_top, window->pad_left},
                   .behind = {window->pad_bottom, window->pad_right}}};
}

static dnnl_status_t choose(const struct convolutions *all, const struct cpu_operation *operation,
                            dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *desc)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attributes);

    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = cpu_dnnl_describe(&all->dnnl, operation, attributes, hint, desc);
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t add_work(struct convolutions *all, dnnl_primitive_desc_t desc, int pass)
{
    static const dnnl_query_t queries[PASSES][ROLES] = {
        {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md, dnnl_query_scratchpad_md},
        {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md,
         dnnl_query_scratchpad_md},
        {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md,
         dnnl_query_scratchpad_md}};
    static const int names[PASSES][ROLES] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD}};
    struct work *work = &all->works[all->count++];
    dnnl_status_t status = dnnl_primitive_create(&work->primitive, desc);

    for (int i = 0; i < ROLES; i++) {
        work->layouts[i] = cpu_layout_of(&all->dnnl, desc, queries[pass][i]);
        work->arguments[i].arg = names[pass][i];
        size_t bytes = work->layouts[i]->bytes;
        all->bytes[i] = bytes > all->bytes[i] ? bytes : all->bytes[i];
    }
    return status;
}

/* Forward, weight gradient, input gradient. */
static dnnl_status_t add_layer(struct convolutions *all, struct cpu_operation operation,
                               bool training, bool first)
{
    const dnnl_prop_kind_t kinds[PASSES] = {training ? dnnl_forward_training
                                                     : dnnl_forward_inference,
                                            dnnl_backward_weights, dnnl_backward_data};
    const int passes = !training ? 1 : first ? 2 : PASSES;
    dnnl_primitive_desc_t forward = NULL;
    dnnl_status_t status = dnnl_success;

    for (int pass = 0; pass < passes && status == dnnl_success; pass++) {
        dnnl_primitive_desc_t desc = NULL;
        operation.pass = kinds[pass];
        status = choose(all, &operation, forward, &desc);
        if (status == dnnl_success)
            status = add_work(all, desc, pass);
        if (pass == 0)
            forward = desc;
        else
            dnnl_primitive_desc_destroy(desc);
    }
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static dnnl_status_t give_memory(struct convolutions *all)
{
    dnnl_status_t status = dnnl_success;

    for (int i = 0; i < ROLES; i++) {
        if (posix_memalign(&all->slabs[i], PAGE_ALIGNMENT, all->bytes[i] + 1)) {
            all->slabs[i] = NULL;
            return dnnl_out_of_memory;
        }
        madvise(all->slabs[i], all->bytes[i], MADV_HUGEPAGE);
        memset(all->slabs[i], 0, all->bytes[i]);
    }
    for (uint32_t i = 0; i < all->count; i++)
        for (int j = 0; j < ROLES && status == dnnl_success; j++)
            status =
                dnnl_memory_create(&all->works[i].arguments[j].memory,
                                   all->works[i].layouts[j]->raw, all->dnnl.engine, all->slabs[j]);
    return status;
}

struct convolutions *convolutions_create(const struct graph *graph, uint32_t batch_size,
                                         bool training)
{
    struct convolutions *all = memory_zeroed(sizeof *all);

    if (!all)
        return NULL;
    all->works = memory_array((size_t)graph->node_count * PASSES, sizeof *all->works);
    dnnl_status_t status =
        all->works && cpu_dnnl_open(&all->dnnl) == 0 ? dnnl_success : dnnl_out_of_memory;
    for (uint32_t i = 1; i < graph->node_count && status == dnnl_success; i++)
        if (graph->nodes[i].weight != UINT32_MAX)
            status = add_layer(all, describe(all, graph, i, batch_size), training,
                               graph->nodes[i].inputs[0] == 0);
    if (status == dnnl_success)
        status = give_memory(all);
    if (status == dnnl_success)
        return all;
    fail(EIO, "convolutions: oneDNN failed with status %d", (int)status);
    convolutions_destroy(all);
    return NULL;
}

void convolutions_destroy(struct convolutions *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        for (int j = 0; j < ROLES; j++)
            dnnl_memory_destroy(all->works[i].arguments[j].memory);
        dnnl_primitive_destroy(all->works[i].primitive);
    }
    for (int i = 0; i < ROLES; i++)
        free(all->slabs[i]);
    cpu_dnnl_close(&all->dnnl);
    free(all->works);
    free(all);
}

double convolutions_time(struct convolutions *all, int repeats, uint64_t (*now_ns)(void))
{
    uint64_t total_ns = 0;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct work *work = &all->works[i];
        uint64_t start_ns = 0;
        for (int j = 0; j <= repeats; j++) {
            if (j == 1)
                start_ns = now_ns();
            if (dnnl_primitive_execute(work->primitive, all->dnnl.stream, ROLES, work->arguments))
                return -1;
        }
        total_ns += now_ns() - start_ns;
    }
    return (double)total_ns * 1e-6 / repeats;
}
