/* SPDX-License-Identifier: Apache-2.0
 * Node shapes as oneDNN layouts and windows, for all passes. */
#include "trainer/cpu/cpu.h"

const struct cpu_layout *cpu_plain_images(const struct cpu_program *program, uint32_t number,
                                          dnnl_data_type_t type)
{
    const struct graph_shape *shape = &program->model->graph->nodes[number].shape;

    return cpu_dense(
        &program->model->dnnl, 4,
        (const dnnl_dims_t){program->count, shape->channels, shape->height, shape->width}, type);
}

const struct cpu_layout *cpu_plain_rows(const struct cpu_program *program, uint32_t number,
                                        dnnl_data_type_t type)
{
    const struct graph_shape *shape = &program->model->graph->nodes[number].shape;

    return cpu_dense(&program->model->dnnl, 2,
                     (const dnnl_dims_t){program->count, (dnnl_dim_t)shape->channels *
                                                             shape->height * shape->width},
                     type);
}

struct cpu_tensor cpu_reshape(struct cpu_program *program, const struct cpu_tensor *tensor,
                              bool to_rows, uint32_t number)
{
    const dnnl_data_type_t type = tensor->layout->type;
    const struct cpu_layout *images = cpu_plain_images(program, number, type);
    const struct cpu_layout *rows = cpu_plain_rows(program, number, type);
    struct cpu_tensor plain = cpu_convert(program, tensor, to_rows ? images : rows, number);

    plain.layout = to_rows ? rows : images;
    return plain;
}

static dnnl_alg_kind_t algorithm_of(const struct graph_node *node)
{
    if (node->kind == GRAPH_RELU)
        return dnnl_eltwise_relu;
    if (node->kind == GRAPH_MAX_POOL)
        return dnnl_pooling_max;
    return node->window.count_padding ? dnnl_pooling_avg_include_padding
                                      : dnnl_pooling_avg_exclude_padding;
}

struct cpu_operation cpu_operation_of(const struct graph_node *node)
{
    static const enum cpu_operation_kind kinds[] = {[GRAPH_CONVOLUTION] = CPU_CONVOLUTION,
                                                    [GRAPH_FULLY_CONNECTED] = CPU_INNER_PRODUCT,
                                                    [GRAPH_BATCH_NORM] = CPU_NORM,
                                                    [GRAPH_RELU] = CPU_ELTWISE,
                                                    [GRAPH_MAX_POOL] = CPU_POOL,
                                                    [GRAPH_AVERAGE_POOL] = CPU_POOL,
                                                    [GRAPH_LRN] = CPU_LRN,
                                                    [GRAPH_ADD] = CPU_ADD};
    const struct graph_window *window = &node->window;

    return (struct cpu_operation){.kind = kinds[node->kind],
                                  .algorithm = algorithm_of(node),
                                  .window = {.strides = {window->stride, window->stride},
                                             .sides = {window->height, window->width},
                                             .before = {window->pad_top, window->pad_left},
                                             .behind = {window->pad_bottom, window->pad_right}},
                                  .epsilon = (float)node->epsilon,
                                  .flags = dnnl_use_scale | dnnl_use_shift,
                                  .size = window->height,
                                  .alpha = (float)node->lrn_alpha,
                                  .beta = (float)node->lrn_beta,
                                  .k = (float)node->lrn_k};
}
