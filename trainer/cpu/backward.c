/* SPDX-License-Identifier: Apache-2.0
 * The backward pass of a program: the steps of each node in reverse order. When a node's turn
 * comes, each of its consumers has added a gradient of its output; their sum is propagated. */
#include "trainer/cpu/cpu.h"

#include "base/fail.h"

#include <assert.h>
#include <errno.h>

static const struct graph_node *node_of(const struct cpu_program *program, uint32_t number)
{
    return &program->model->graph->nodes[number];
}

static bool wants_gradient(const struct cpu_program *program, uint32_t number)
{
    return node_of(program, node_of(program, number)->inputs[0])->needs_gradient;
}

/* Add a gradient of the node's output. */
static void give(struct cpu_program *program, uint32_t number, const struct cpu_tensor *gradient)
{
    struct cpu_node *node = &program->nodes[number];

    assert(program->code || node->gradient_count < node_of(program, number)->consumers + 1);
    node->gradients[node->gradient_count++] = *gradient;
}

static struct cpu_tensor add_up(struct cpu_program *program, uint32_t number)
{
    struct cpu_node *node = &program->nodes[number];
    const struct cpu_layout *layout = node->output.layout;
    struct cpu_tensor terms[CPU_INPUTS_MAX];
    struct cpu_argument arguments[CPU_ARGUMENTS] = {0};
    int count = (int)node->gradient_count;
    const struct cpu_layout *inputs[CPU_INPUTS_MAX];

    if (count == 1 || program->code)
        return node->gradients[0];
    for (int i = 0; i < count; i++) {
        terms[i] = cpu_convert(program, &node->gradients[i], layout, number);
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + i, &terms[i]};
        inputs[i] = layout;
    }
    dnnl_primitive_desc_t desc =
        cpu_describe(program,
                     &(struct cpu_operation){
                         .kind = CPU_SUM, .target = layout, .inputs = inputs, .input_count = count},
                     NULL, number);
    struct cpu_tensor sum = cpu_add_tensor(program, layout);
    arguments[count] = (struct cpu_argument){DNNL_ARG_DST, &sum};
    cpu_add_primitive(program, desc, number, arguments);
    dnnl_primitive_desc_destroy(desc);
    return sum;
}

/* Use the output, which is kept; the input is not. */
static struct cpu_tensor through_relu(struct cpu_program *program, uint32_t number,
                                      const struct cpu_tensor *given)
{
    const struct cpu_tensor *output = &program->nodes[number].output;
    const struct cpu_tensor gradient = cpu_convert(program, given, output->layout, number);
    struct cpu_tensor result = cpu_add_tensor(program, output->layout);
    struct cpu_operation operation = {.kind = CPU_ELTWISE,
                                      .pass = dnnl_forward_training,
                                      .algorithm = dnnl_eltwise_relu_use_dst_for_bwd,
                                      .source = output->layout};

    dnnl_primitive_desc_t forward = cpu_describe(program, &operation, NULL, number);
    operation.pass = dnnl_backward_data;
    dnnl_primitive_desc_t desc = cpu_describe(program, &operation, forward, number);
    cpu_add_primitive(program, desc, number,
                      CPU_ARGUMENTS_OF({DNNL_ARG_DST, output}, {DNNL_ARG_DIFF_DST, &gradient},
                                       {DNNL_ARG_DIFF_SRC, &result}));
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_desc_destroy(forward);
    return result;
}

/* ---- convolution and fully connected ---- */

/* In layouts that oneDNN prefers, but FP32 weights stored in the canonical layout keep it. */
static dnnl_primitive_desc_t describe_weighted(struct cpu_program *program, uint32_t number,
                                               dnnl_prop_kind_t pass,
                                               const struct cpu_layout *gradient)
{
    struct cpu_model *model = program->model;
    const struct graph_node *node = node_of(program, number);
    const struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *plain = model->canonical[node->weight];
    const bool keeps = model->type == dnnl_f32 && node->kind != GRAPH_CONVOLUTION &&
                       model->home[node->weight] == plain;
    struct cpu_operation operation = cpu_operation_of(node);

    operation.pass = pass;
    operation.source = cpu_any(&model->dnnl, own->source.layout, model->type);
    operation.weight = keeps ? plain
                             : cpu_any(&model->dnnl, plain,
                                       pass == dnnl_backward_weights ? dnnl_f32 : model->type);
    operation.bias = node->bias == UINT32_MAX ? NULL : model->canonical[node->bias];
    operation.target = cpu_any(&model->dnnl, gradient, model->type);
    return cpu_describe(program, &operation, own->forward, number);
}

static const struct cpu_layout *channels_last(const struct cpu_program *program,
                                              const struct cpu_layout *layout)
{
    return cpu_tagged(&program->model->dnnl, layout->ndims, layout->dims, layout->type, dnnl_nhwc);
}

/* Is the gradient of the node's weights, whose forward primitive is there, a product of matrices?
 * Where a convolution has single pixels and its tensors are rows of channels (NHWC), its gradient
 * is that of a fully connected layer with a row per pixel. With AMX oneDNN computes that in a
 * fraction of the instructions: its convolutions rearrange the input for each block of output
 * channels (docs/training.md, "BF16 on CPUs"). */
static bool is_product(const struct cpu_program *program, uint32_t number)
{
    const struct cpu_model *model = program->model;
    const struct cpu_layout *source = program->nodes[number].source.layout;
    const struct cpu_layout *target = program->nodes[number].output.layout;
    const struct graph_node *node = node_of(program, number);
    const struct graph_window *window = &node->window;

    if (program->code || node->kind != GRAPH_CONVOLUTION || node->groups > 1 ||
        window->height != 1 || window->width != 1 || window->stride != 1 || window->pad_top ||
        window->pad_left || window->pad_bottom || window->pad_right)
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

/* given: the gradient of the node's output. */
static void build_product(struct cpu_program *program, uint32_t number,
                          const struct cpu_tensor *given)
{
    struct cpu_model *model = program->model;
    const struct graph_node *node = node_of(program, number);
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

void cpu_choose_home(struct cpu_program *program, uint32_t number)
{
    struct cpu_model *model = program->model;
    const uint32_t weight = node_of(program, number)->weight;
    if (is_product(program, number)) /* home remains the canonical layout */
        return;
    dnnl_primitive_desc_t desc = describe_weighted(program, number, dnnl_backward_weights,
                                                   program->nodes[number].output.layout);
    const struct cpu_layout *gradient = cpu_query(program, desc, dnnl_query_diff_weights_md);

    if (!program->code && gradient->bytes == model->canonical[weight]->bytes)
        model->home[weight] = gradient;
    dnnl_primitive_desc_destroy(desc);
}

static void build_weighted(struct cpu_program *program, uint32_t number,
                           const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(program, number);
    const bool rows = node->kind == GRAPH_FULLY_CONNECTED;
    const struct cpu_tensor whole = rows ? cpu_reshape(program, given, true, number) : *given;
    dnnl_primitive_desc_t desc;

    if (is_product(program, number)) {
        build_product(program, number, &whole);
    } else {
        desc = describe_weighted(program, number, dnnl_backward_weights, whole.layout);
        if (program->code)
            return;
        const struct cpu_tensor input =
            cpu_convert(program, &program->nodes[number].source,
                        cpu_query(program, desc, dnnl_query_src_md), number);
        const struct cpu_tensor gradient =
            cpu_convert(program, &whole, cpu_query(program, desc, dnnl_query_diff_dst_md), number);
        const struct cpu_tensor weight = cpu_gradient(
            program, node->weight, cpu_query(program, desc, dnnl_query_diff_weights_md));
        struct cpu_tensor bias = {0};
        if (node->bias != UINT32_MAX)
            bias = cpu_gradient(program, node->bias, program->model->canonical[node->bias]);
        cpu_add_primitive(program, desc, number,
                          CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &input}, {DNNL_ARG_DIFF_DST, &gradient},
                                           {DNNL_ARG_DIFF_WEIGHTS, &weight},
                                           {DNNL_ARG_DIFF_BIAS, &bias}));
        cpu_gradient_done(program, node->weight, &weight, number);
        dnnl_primitive_desc_destroy(desc);
    }
    if (!wants_gradient(program, number) || program->code)
        return;
    desc = describe_weighted(program, number, dnnl_backward_data, whole.layout);
    if (program->code)
        return;
    const struct cpu_tensor weight = cpu_parameter(
        program, node->weight, cpu_query(program, desc, dnnl_query_weights_md), number);
    const struct cpu_tensor gradient =
        cpu_convert(program, &whole, cpu_query(program, desc, dnnl_query_diff_dst_md), number);
    struct cpu_tensor d_input =
        cpu_add_tensor(program, cpu_query(program, desc, dnnl_query_diff_src_md));
    cpu_add_primitive(program, desc, number,
                      CPU_ARGUMENTS_OF({DNNL_ARG_WEIGHTS, &weight}, {DNNL_ARG_DIFF_DST, &gradient},
                                       {DNNL_ARG_DIFF_SRC, &d_input}));
    dnnl_primitive_desc_destroy(desc);
    if (rows)
        d_input = cpu_reshape(program, &d_input, false, node->inputs[0]);
    give(program, node->inputs[0], &d_input);
}

/* ---- one primitive in the input's layout, or of a window ---- */

enum { MORE_MAX = 7 };

/* Add a node's backward primitive with up to MORE_MAX arguments besides both gradients and the
 * workspace. */
static void build_simple(struct cpu_program *program, uint32_t number,
                         struct cpu_operation operation, const struct cpu_tensor *given,
                         const struct cpu_argument *more)
{
    const struct cpu_node *own = &program->nodes[number];

    operation.source = own->source.layout;
    operation.target = own->output.layout;
    dnnl_primitive_desc_t desc = cpu_describe(program, &operation, own->forward, number);
    if (program->code)
        return;
    const struct cpu_tensor gradient = cpu_convert(program, given, own->output.layout, number);
    const struct cpu_tensor d_input = cpu_add_tensor(program, own->source.layout);
    struct cpu_argument arguments[MORE_MAX + 4] = {{DNNL_ARG_DIFF_DST, &gradient},
                                                   {DNNL_ARG_DIFF_SRC, &d_input},
                                                   {DNNL_ARG_WORKSPACE, &own->workspace}};
    for (int i = 0; more && more[i].tensor; i++)
        arguments[3 + i] = more[i];
    cpu_add_primitive(program, desc, number, arguments);
    dnnl_primitive_desc_destroy(desc);
    if (wants_gradient(program, number))
        give(program, node_of(program, number)->inputs[0], &d_input);
}

static void build_norm(struct cpu_program *program, uint32_t number, const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(program, number);
    const struct cpu_node *own = &program->nodes[number];
    const struct cpu_layout *vector = own->mean.layout;
    const struct cpu_tensor gamma = cpu_parameter(program, node->gamma, vector, number);
    const struct cpu_tensor beta = CPU_NORM_BACKWARD_TAKES_SHIFT
                                       ? cpu_parameter(program, node->beta, vector, number)
                                       : (struct cpu_tensor){0};
    const struct cpu_tensor d_gamma = cpu_gradient(program, node->gamma, vector);
    const struct cpu_tensor d_beta = cpu_gradient(program, node->beta, vector);
    struct cpu_operation operation = cpu_operation_of(node);

    operation.pass = dnnl_backward;
    operation.flags |= own->relu ? dnnl_fuse_norm_relu : 0u;
    build_simple(program, number, operation, given,
                 CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &own->source}, {DNNL_ARG_MEAN, &own->mean},
                                  {DNNL_ARG_VARIANCE, &own->variance}, {DNNL_ARG_SCALE, &gamma},
                                  {DNNL_ARG_SHIFT, &beta}, {DNNL_ARG_DIFF_SCALE, &d_gamma},
                                  {DNNL_ARG_DIFF_SHIFT, &d_beta}));
}

/* A pool or LRN, which also reads its input. */
static void build_windowed(struct cpu_program *program, uint32_t number,
                           const struct cpu_tensor *given)
{
    struct cpu_operation operation = cpu_operation_of(node_of(program, number));

    operation.pass = dnnl_backward_data;
    build_simple(program, number, operation, given,
                 operation.kind == CPU_LRN
                     ? CPU_ARGUMENTS_OF({DNNL_ARG_SRC, &program->nodes[number].source})
                     : NULL);
}

/* ---- other nodes ---- */

static void build_relu(struct cpu_program *program, uint32_t number, const struct cpu_tensor *given)
{
    const struct cpu_tensor gradient = through_relu(program, number, given);

    give(program, node_of(program, number)->inputs[0], &gradient);
}

static void build_add(struct cpu_program *program, uint32_t number, const struct cpu_tensor *given)
{
    give(program, node_of(program, number)->inputs[0], given);
    give(program, node_of(program, number)->inputs[1], given);
}

/* Each input's gradient is its channels of the output's gradient. */
static void build_concat(struct cpu_program *program, uint32_t number,
                         const struct cpu_tensor *given)
{
    struct cpu_dnnl *dnnl = &program->model->dnnl;
    const struct graph_node *node = node_of(program, number);
    struct cpu_tensor whole =
        cpu_convert(program, given, program->nodes[number].output.layout, number);
    dnnl_dims_t offset = {0};

    for (uint32_t i = 0; i < node->input_count && !program->code; i++) {
        const struct cpu_layout *input = program->nodes[node->inputs[i]].output.layout;
        struct cpu_tensor part = {.layout = cpu_cut(dnnl, whole.layout, input->dims, offset)};
        if (!part.layout) {
            /* A blocked layout cannot be split within a block; the canonical layout can. */
            whole = cpu_convert(program, &whole,
                                cpu_dense(dnnl, 4, whole.layout->dims, whole.layout->type), number);
            part.layout = cpu_cut(dnnl, whole.layout, input->dims, offset);
            if (!part.layout) {
                program->code = fail(ENOSYS,
                                     "backend cpu: %s: its layout cannot be cut into that of its "
                                     "inputs; use the reference backend",
                                     node->name);
                return;
            }
        }
        part.buffer = whole.buffer;
        const struct cpu_tensor own = cpu_convert(program, &part, input, number);
        give(program, node->inputs[i], &own);
        offset[1] += input->dims[1];
    }
}

static void build_dropout(struct cpu_program *program, uint32_t number,
                          const struct cpu_tensor *given)
{
    const struct cpu_node *own = &program->nodes[number];
    const struct cpu_tensor gradient = cpu_convert(program, given, own->source.layout, number);
    const struct cpu_tensor d_input = cpu_add_tensor(program, own->source.layout);

    cpu_add_step(program, CPU_DROPOUT_BACKWARD, number, gradient.buffer, d_input.buffer);
    give(program, node_of(program, number)->inputs[0], &d_input);
}

/* ---- the whole pass ---- */

void cpu_build_backward(struct cpu_program *program)
{
    static void (*const build[])(struct cpu_program * program, uint32_t number,
                                 const struct cpu_tensor *given) = {
        [GRAPH_CONVOLUTION] = build_weighted, [GRAPH_FULLY_CONNECTED] = build_weighted,
        [GRAPH_BATCH_NORM] = build_norm,      [GRAPH_RELU] = build_relu,
        [GRAPH_MAX_POOL] = build_windowed,    [GRAPH_AVERAGE_POOL] = build_windowed,
        [GRAPH_LRN] = build_windowed,         [GRAPH_ADD] = build_add,
        [GRAPH_CONCAT] = build_concat,        [GRAPH_DROPOUT] = build_dropout,
    };

    for (uint32_t i = program->model->graph->node_count; i-- > 1 && !program->code;) {
        const struct graph_node *node = node_of(program, i);
        const struct cpu_node *own = &program->nodes[i];
        const uint32_t before = node->inputs[0];
        const bool relu = own->relu && node->kind != GRAPH_BATCH_NORM;
        struct cpu_tensor gradient;
        if (!node->needs_gradient)
            continue;
        if (own->absorbed && own->gradient_count == 2 &&
            node_of(program, before)->kind != GRAPH_BATCH_NORM) {
            /* the node before the ReLU computes its backward pass, and sums */
            give(program, before, &own->gradients[0]);
            give(program, before, &own->gradients[1]);
        } else if (own->absorbed) {
            gradient = add_up(program, i);
            give(program, before, &gradient);
        } else if (relu && own->gradient_count == 2) { /* both in one step */
            const struct cpu_tensor terms[] = {
                cpu_convert(program, &own->gradients[0], own->output.layout, i),
                cpu_convert(program, &own->gradients[1], own->output.layout, i)};
            gradient = cpu_add_tensor(program, own->output.layout);
            cpu_add_sum_relu(program, i, terms, &own->output, &gradient);
        } else {
            gradient = add_up(program, i);
            if (relu)
                gradient = through_relu(program, i, &gradient);
        }
        if (!own->absorbed)
            build[node->kind](program, i, &gradient);
        const uint64_t floats = graph_final_floats(program->model->graph, i);
        if (floats > 0) /* all gradients up to this node's are final */
            cpu_add_step(program, CPU_READY, i, UINT32_MAX, UINT32_MAX)->ready_floats = floats;
    }
}
