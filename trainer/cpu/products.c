/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of weights as products of matrices. Where a convolution has single pixels and its
 * tensors are rows of channels (NHWC), its gradient is that of a fully connected layer with a row
 * per pixel. With AMX oneDNN computes that in a fraction of the instructions: its convolutions
 * rearrange the input for each block of output channels (docs/training.md, "BF16 on CPUs").
 */
#include "trainer/cpu/cpu.h"

static const struct cpu_layout *channels_last(const struct cpu_program *program,
                                              const struct cpu_layout *layout)
{
    return cpu_tagged(&program->model->dnnl, layout->ndims, layout->dims, layout->type, dnnl_nhwc);
}

static bool has_single_pixels(const struct graph_node *node)
{
    const struct graph_window *window = &node->window;

    return node->kind == GRAPH_CONVOLUTION && node->groups == 1 && window->height == 1 &&
           window->width == 1 && window->stride == 1 && window->pad_top == 0 &&
           window->pad_left == 0 && window->pad_bottom == 0 && window->pad_right == 0;
}

bool cpu_is_product(const struct cpu_program *program, uint32_t number)
{
    const struct cpu_model *model = program->model;
    const struct cpu_layout *source = program->nodes[number].source.layout;
    const struct cpu_layout *target = program->nodes[number].output.layout;

    if (program->code || !has_single_pixels(&model->graph->nodes[number]))
        return false;
    if (model->weight_gradients != CPU_GRADIENTS_AUTO)
        return model->weight_gradients == CPU_GRADIENTS_PRODUCTS;
    return model->type == dnnl_bf16 && source == channels_last(program, source) &&
           target == channels_last(program, target);
}

/* Pixels by channels: the bytes of images with channels last. */
static struct cpu_tensor pixels_of(struct cpu_program *program, const struct cpu_tensor *images,
                                   uint32_t number)
{
    const dnnl_dim_t *dims = images->layout->dims;
    struct cpu_tensor rows =
        cpu_convert(program, images, channels_last(program, images->layout), number);

    rows.layout =
        cpu_dense(&program->model->dnnl, 2,
                  (const dnnl_dims_t){dims[0] * dims[2] * dims[3], dims[1]}, images->layout->type);
    return rows;
}

void cpu_build_product(struct cpu_program *program, uint32_t number, const struct cpu_tensor *given)
{
    struct cpu_model *model = program->model;
    const struct graph_node *node = &model->graph->nodes[number];

    if (program->code)
        return;
    const struct cpu_tensor input = pixels_of(program, &program->nodes[number].source, number);
    const struct cpu_tensor gradient = pixels_of(program, given, number);
    const dnnl_dims_t sides = {gradient.layout->dims[1], input.layout->dims[1]};
    struct cpu_operation operation = {.kind = CPU_INNER_PRODUCT,
                                      .pass = dnnl_forward_training,
                                      .source = input.layout,
                                      .weight = cpu_dense(&model->dnnl, 2, sides, model->type),
                                      .target = gradient.layout};
    if (node->bias != UINT32_MAX)
        operation.bias = model->canonical[node->bias];

    dnnl_primitive_desc_t forward = cpu_describe(program, &operation, NULL, number);
    operation.pass = dnnl_backward_weights;
    operation.weight = cpu_plain(&model->dnnl, 2, sides);
    dnnl_primitive_desc_t desc = cpu_describe(program, &operation, forward, number);
    /* Its layout is the canonical one of 1 x 1 weights. */
    struct cpu_tensor weight = cpu_gradient(program, node->weight, model->canonical[node->weight]);
    struct cpu_tensor product = weight, bias = {0};
    product.layout = operation.weight;
    if (node->bias != UINT32_MAX)
        bias = cpu_gradient(program, node->bias, model->canonical[node->bias]);
    cpu_add_primitive(program, desc, number,
                      CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &input}, {DNNL_ARG_DIFF_DST, &gradient},
                                       {DNNL_ARG_DIFF_WEIGHTS, &product},
                                       {DNNL_ARG_DIFF_BIAS, &bias}));
    cpu_gradient_done(program, node->weight, &weight, number);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_desc_destroy(forward);
}
