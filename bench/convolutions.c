/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/convolutions.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <oneapi/dnnl/dnnl.h>

enum { ROLES = 4, SCRATCH = 3, PASSES = 3, PAGE_ALIGNMENT = 2 << 20 };

/* A primitive: three tensors and what it scribbles in. */
struct work {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ROLES];
    dnnl_memory_desc_t descs[ROLES];
};

struct convolutions {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct work *works;
    uint32_t count;
    void *slabs[ROLES]; /* the tensors of all works, one work at a time */
    size_t bytes[ROLES];
};

struct layer {
    dnnl_memory_desc_t source, weight, target;
    dnnl_dims_t strides, before, behind;
    bool convolves;
};

static dnnl_memory_desc_t any(int ndims, const dnnl_dims_t dims)
{
    dnnl_memory_desc_t desc;

    dnnl_memory_desc_init_by_tag(&desc, ndims, dims, dnnl_f32, dnnl_format_tag_any);
    return desc;
}

static struct layer describe(const struct graph *graph, uint32_t number, uint32_t images)
{
    const struct graph_node *node = &graph->nodes[number];
    const struct graph_window *window = &node->window;
    const struct graph_shape *in = &graph->nodes[node->inputs[0]].shape, *out = &node->shape;
    const dnnl_dims_t source = {images, in->channels, in->height, in->width};
    struct layer layer = {.source = any(4, source),
                          .strides = {window->stride, window->stride},
                          .before = {window->pad_top, window->pad_left},
                          .behind = {window->pad_bottom, window->pad_right},
                          .convolves = node->kind == GRAPH_CONVOLUTION};

    if (!layer.convolves) {
        layer.weight =
            any(4, (const dnnl_dims_t){out->channels, in->channels, in->height, in->width});
        layer.target = any(2, (const dnnl_dims_t){images, out->channels});
        return layer;
    }
    const uint32_t groups = node->groups;
    layer.target = any(4, (const dnnl_dims_t){images, out->channels, out->height, out->width});
    layer.weight =
        groups > 1
            ? any(5, (const dnnl_dims_t){groups, out->channels / groups, in->channels / groups,
                                         window->height, window->width})
            : any(4,
                  (const dnnl_dims_t){out->channels, in->channels, window->height, window->width});
    return layer;
}

/* The operation of a pass: 0 forward, 1 the weights' gradient, 2 the input's. */
static dnnl_status_t choose(const struct convolutions *all, const struct layer *layer, int pass,
                            bool training, dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *desc)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const dnnl_prop_kind_t forward = training ? dnnl_forward_training : dnnl_forward_inference;
    const dnnl_memory_desc_t *source = &layer->source, *weight = &layer->weight;
    const dnnl_memory_desc_t *target = &layer->target;
    union {
        dnnl_convolution_desc_t convolution;
        dnnl_inner_product_desc_t product;
    } operation;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status;

    if (layer->convolves && pass == 0)
        status = dnnl_convolution_forward_desc_init(&operation.convolution, forward, direct, source,
                                                    weight, NULL, target, layer->strides,
                                                    layer->before, layer->behind);
    else if (layer->convolves && pass == 1)
        status = dnnl_convolution_backward_weights_desc_init(&operation.convolution, direct, source,
                                                             weight, NULL, target, layer->strides,
                                                             layer->before, layer->behind);
    else if (layer->convolves)
        status = dnnl_convolution_backward_data_desc_init(&operation.convolution, direct, source,
                                                          weight, target, layer->strides,
                                                          layer->before, layer->behind);
    else if (pass == 0)
        status = dnnl_inner_product_forward_desc_init(&operation.product, forward, source, weight,
                                                      NULL, target);
    else if (pass == 1)
        status = dnnl_inner_product_backward_weights_desc_init(&operation.product, source, weight,
                                                               NULL, target);
    else
        status =
            dnnl_inner_product_backward_data_desc_init(&operation.product, source, weight, target);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(desc, &operation, attributes, all->engine, hint);
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
        work->descs[i] = *dnnl_primitive_desc_query_md(desc, queries[pass][i], 0);
        work->arguments[i].arg = names[pass][i];
        size_t bytes = dnnl_memory_desc_get_size(&work->descs[i]);
        all->bytes[i] = bytes > all->bytes[i] ? bytes : all->bytes[i];
    }
    return status;
}

static dnnl_status_t add_layer(struct convolutions *all, const struct layer *layer, bool training,
                               bool first)
{
    dnnl_primitive_desc_t forward = NULL;
    const int passes = !training ? 1 : first ? 2 : PASSES;
    dnnl_status_t status = dnnl_success;

    for (int pass = 0; pass < passes && status == dnnl_success; pass++) {
        dnnl_primitive_desc_t desc = NULL;
        status = choose(all, layer, pass, training, forward, &desc);
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
            status = dnnl_memory_create(&all->works[i].arguments[j].memory, &all->works[i].descs[j],
                                        all->engine, all->slabs[j]);
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
        all->works ? dnnl_engine_create(&all->engine, dnnl_cpu, 0) : dnnl_out_of_memory;
    if (status == dnnl_success)
        status = dnnl_stream_create(&all->stream, all->engine, dnnl_stream_default_flags);
    for (uint32_t i = 1; i < graph->node_count && status == dnnl_success; i++) {
        const struct layer layer = describe(graph, i, batch_size);
        if (graph->nodes[i].weight != UINT32_MAX)
            status = add_layer(all, &layer, training, graph->nodes[i].inputs[0] == 0);
    }
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
    dnnl_stream_destroy(all->stream);
    dnnl_engine_destroy(all->engine);
    free(all->works);
    free(all);
}

double convolutions_time(struct convolutions *all, int repeats)
{
    uint64_t total_ns = 0;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct work *work = &all->works[i];
        uint64_t start_ns = 0;
        for (int j = 0; j <= repeats; j++) {
            if (j == 1)
                start_ns = clock_now_ns();
            if (dnnl_primitive_execute(work->primitive, all->stream, ROLES, work->arguments))
                return -1;
        }
        total_ns += clock_now_ns() - start_ns;
    }
    return (double)total_ns * 1e-6 / repeats;
}
