/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward pass of a plan: the steps of each node in reverse order. When a node's turn comes,
 * each of its consumers has left a gradient of the node's output; their sum is what goes on.
 */
#include "trainer/cpu.h"

#include "base/fail.h"

#include <assert.h>
#include <errno.h>

static const struct graph_node *node_of(const struct cpu_plan *plan, uint32_t number)
{
    return &plan->model->graph->nodes[number];
}

static bool wants_gradient(const struct cpu_plan *plan, uint32_t number)
{
    return plan->nodes[node_of(plan, number)->inputs[0]].needs_gradient;
}

/* Leave a gradient with the node whose output it is of. */
static void give(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *gradient)
{
    struct cpu_node *node = &plan->nodes[number];

    assert(plan->code || node->gradient_count < node->consumers + 1);
    node->gradients[node->gradient_count++] = *gradient;
}

static struct cpu_tensor add_up(struct cpu_plan *plan, uint32_t number)
{
    struct cpu_node *node = &plan->nodes[number];
    const struct cpu_layout *layout = node->output.layout;
    struct cpu_tensor terms[CPU_ARGUMENTS - 2];
    struct cpu_argument arguments[CPU_ARGUMENTS - 1];
    int count = (int)node->gradient_count;
    dnnl_primitive_desc_t desc = NULL;

    if (count == 1 || plan->code)
        return node->gradients[0];
    for (int i = 0; i < count; i++) {
        terms[i] = cpu_convert(plan, &node->gradients[i], layout, number);
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + i, &terms[i]};
    }
    cpu_keep(plan,
             cpu_dnnl_describe_sum(&plan->model->dnnl, layout, count, plan->attributes, &desc),
             number);
    struct cpu_tensor sum = cpu_add_tensor(plan, layout);
    arguments[count] = (struct cpu_argument){DNNL_ARG_DST, &sum};
    cpu_add_primitive(plan, desc, number, arguments, count + 1);
    dnnl_primitive_desc_destroy(desc);
    return sum;
}

/* By the output, which is kept, not by the input, which is not. */
static struct cpu_tensor through_relu(struct cpu_plan *plan, uint32_t number,
                                      const struct cpu_tensor *given)
{
    const struct cpu_tensor *output = &plan->nodes[number].output;
    const struct cpu_tensor gradient = cpu_convert(plan, given, output->layout, number);
    struct cpu_tensor result = cpu_add_tensor(plan, output->layout);
    struct cpu_operation operation = {.kind = CPU_ELTWISE,
                                      .pass = dnnl_forward_training,
                                      .algorithm = dnnl_eltwise_relu_use_dst_for_bwd,
                                      .source = output->layout};

    dnnl_primitive_desc_t forward = cpu_describe(plan, &operation, NULL, 0, number);
    operation.pass = dnnl_backward_data;
    dnnl_primitive_desc_t desc = cpu_describe(plan, &operation, forward, 0, number);
    cpu_add_primitive(plan, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_DST, output},
                                                    {DNNL_ARG_DIFF_DST, &gradient},
                                                    {DNNL_ARG_DIFF_SRC, &result}},
                      3);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_desc_destroy(forward);
    return result;
}

/* Two gradients, added up and through the ReLU behind the node in one step. */
static struct cpu_tensor sum_through_relu(struct cpu_plan *plan, uint32_t number)
{
    const struct cpu_node *own = &plan->nodes[number];
    const struct cpu_tensor terms[] = {
        cpu_convert(plan, &own->gradients[0], own->output.layout, number),
        cpu_convert(plan, &own->gradients[1], own->output.layout, number)};
    struct cpu_tensor sum = cpu_add_tensor(plan, own->output.layout);

    cpu_add_sum_relu(plan, number, terms, &own->output, &sum);
    return sum;
}

/* ---- convolution and fully connected ---- */

/* A backward pass of it, in what layouts oneDNN likes; but weights that lie in the canonical layout
 * stay in it. */
static dnnl_primitive_desc_t describe_weighted(struct cpu_plan *plan, uint32_t number,
                                               dnnl_prop_kind_t pass,
                                               const struct cpu_layout *gradient)
{
    struct cpu_model *model = plan->model;
    const struct graph_node *node = node_of(plan, number);
    const struct cpu_node *own = &plan->nodes[number];
    const struct cpu_layout *plain = model->canonical[node->weight];
    const bool convolves = node->kind == GRAPH_CONVOLUTION;
    const struct cpu_operation operation = {
        .kind = convolves ? CPU_CONVOLUTION : CPU_INNER_PRODUCT,
        .pass = pass,
        .source = cpu_any(&model->dnnl, own->source.layout),
        .weight =
            !convolves && model->home[node->weight] == plain ? plain : cpu_any(&model->dnnl, plain),
        .bias = node->bias == UINT32_MAX ? NULL : model->canonical[node->bias],
        .target = cpu_any(&model->dnnl, gradient),
        .window = cpu_window(node)};

    return cpu_describe(plan, &operation, own->forward, 0, number);
}

static void build_weights(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(plan, number);
    dnnl_primitive_desc_t desc =
        describe_weighted(plan, number, dnnl_backward_weights, given->layout);

    if (plan->code)
        return;
    const struct cpu_layout *source = cpu_query(plan, desc, dnnl_query_src_md);
    const struct cpu_layout *target = cpu_query(plan, desc, dnnl_query_diff_dst_md);
    const struct cpu_layout *result = cpu_query(plan, desc, dnnl_query_diff_weights_md);
    const struct cpu_tensor input = cpu_convert(plan, &plan->nodes[number].source, source, number);
    const struct cpu_tensor gradient = cpu_convert(plan, given, target, number);
    const struct cpu_tensor weight = cpu_gradient(plan, node->weight, result);
    struct cpu_tensor bias = {0};
    if (node->bias != UINT32_MAX)
        bias = cpu_gradient(plan, node->bias, plan->model->canonical[node->bias]);
    const struct cpu_argument arguments[] = {{DNNL_ARG_SRC, &input},
                                             {DNNL_ARG_DIFF_DST, &gradient},
                                             {DNNL_ARG_DIFF_WEIGHTS, &weight},
                                             {DNNL_ARG_DIFF_BIAS, &bias}};
    cpu_add_primitive(plan, desc, number, arguments, node->bias == UINT32_MAX ? 3 : 4);
    cpu_gradient_done(plan, node->weight, &weight, number);
    dnnl_primitive_desc_destroy(desc);
}

static void build_input(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(plan, number);
    dnnl_primitive_desc_t desc = describe_weighted(plan, number, dnnl_backward_data, given->layout);

    if (plan->code)
        return;
    const struct cpu_layout *wanted = cpu_query(plan, desc, dnnl_query_weights_md);
    const struct cpu_layout *target = cpu_query(plan, desc, dnnl_query_diff_dst_md);
    const struct cpu_tensor weight = cpu_parameter(plan, node->weight, wanted, number);
    const struct cpu_tensor gradient = cpu_convert(plan, given, target, number);
    struct cpu_tensor d_input = cpu_add_tensor(plan, cpu_query(plan, desc, dnnl_query_diff_src_md));
    cpu_add_primitive(plan, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_WEIGHTS, &weight},
                                                    {DNNL_ARG_DIFF_DST, &gradient},
                                                    {DNNL_ARG_DIFF_SRC, &d_input}},
                      3);
    dnnl_primitive_desc_destroy(desc);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        d_input = cpu_rows_as_images(plan, &d_input, node->inputs[0]);
    give(plan, node->inputs[0], &d_input);
}

static void build_weighted(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    const struct cpu_tensor gradient = node_of(plan, number)->kind == GRAPH_FULLY_CONNECTED
                                           ? cpu_images_as_rows(plan, given, number)
                                           : *given;

    build_weights(plan, number, &gradient);
    if (wants_gradient(plan, number) && !plan->code)
        build_input(plan, number, &gradient);
}

/* ---- batch norm ---- */

static void build_norm(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(plan, number);
    const struct cpu_node *own = &plan->nodes[number];
    const struct cpu_layout *vector = own->mean.layout;
    const struct cpu_operation operation = {.kind = CPU_NORM,
                                            .pass = dnnl_backward,
                                            .source = own->source.layout,
                                            .epsilon = (float)node->epsilon,
                                            .flags = CPU_NORM_FLAGS |
                                                     (own->relu ? dnnl_fuse_norm_relu : 0u)};

    dnnl_primitive_desc_t desc = cpu_describe(plan, &operation, own->forward, 0, number);
    if (plan->code)
        return;
    const struct cpu_tensor gradient = cpu_convert(plan, given, own->source.layout, number);
    const struct cpu_tensor d_input = cpu_add_tensor(plan, own->source.layout);
    const struct cpu_tensor gamma = cpu_parameter(plan, node->gamma, vector, number);
    const struct cpu_tensor beta = cpu_parameter(plan, node->beta, vector, number);
    const struct cpu_tensor d_gamma = cpu_gradient(plan, node->gamma, vector);
    const struct cpu_tensor d_beta = cpu_gradient(plan, node->beta, vector);
    struct cpu_argument arguments[CPU_ARGUMENTS - 1] = {{DNNL_ARG_SRC, &own->source},
                                                        {DNNL_ARG_MEAN, &own->mean},
                                                        {DNNL_ARG_VARIANCE, &own->variance},
                                                        {DNNL_ARG_DIFF_DST, &gradient},
                                                        {DNNL_ARG_SCALE, &gamma},
                                                        {DNNL_ARG_DIFF_SRC, &d_input},
                                                        {DNNL_ARG_DIFF_SCALE, &d_gamma},
                                                        {DNNL_ARG_DIFF_SHIFT, &d_beta}};
    int count = 8;
    if (CPU_NORM_BACKWARD_TAKES_SHIFT)
        arguments[count++] = (struct cpu_argument){DNNL_ARG_SHIFT, &beta};
    if (own->relu)
        arguments[count++] = (struct cpu_argument){DNNL_ARG_WORKSPACE, &own->workspace};
    cpu_add_primitive(plan, desc, number, arguments, count);
    dnnl_primitive_desc_destroy(desc);
    if (wants_gradient(plan, number))
        give(plan, node->inputs[0], &d_input);
}

/* ---- what has no parameters ---- */

static void build_pool(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(plan, number);
    const struct cpu_node *own = &plan->nodes[number];
    const struct cpu_operation operation = {.kind = CPU_POOL,
                                            .pass = dnnl_backward_data,
                                            .algorithm = cpu_pool_kind(node),
                                            .source = own->source.layout,
                                            .target = own->output.layout,
                                            .window = cpu_window(node)};

    dnnl_primitive_desc_t desc = cpu_describe(plan, &operation, own->forward, 0, number);
    const struct cpu_tensor gradient = cpu_convert(plan, given, own->output.layout, number);
    const struct cpu_tensor d_input = cpu_add_tensor(plan, own->source.layout);
    cpu_add_primitive(plan, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_DIFF_DST, &gradient},
                                                    {DNNL_ARG_DIFF_SRC, &d_input},
                                                    {DNNL_ARG_WORKSPACE, &own->workspace}},
                      own->workspace.layout ? 3 : 2);
    dnnl_primitive_desc_destroy(desc);
    give(plan, node->inputs[0], &d_input);
}

static void build_lrn(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    const struct graph_node *node = node_of(plan, number);
    const struct cpu_node *own = &plan->nodes[number];
    const struct cpu_operation operation = cpu_lrn(node, dnnl_backward_data, own->source.layout);

    dnnl_primitive_desc_t desc = cpu_describe(plan, &operation, own->forward, 0, number);
    const struct cpu_tensor gradient = cpu_convert(plan, given, own->source.layout, number);
    const struct cpu_tensor d_input = cpu_add_tensor(plan, own->source.layout);
    cpu_add_primitive(plan, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source},
                                                    {DNNL_ARG_DIFF_DST, &gradient},
                                                    {DNNL_ARG_DIFF_SRC, &d_input},
                                                    {DNNL_ARG_WORKSPACE, &own->workspace}},
                      own->workspace.layout ? 4 : 3);
    dnnl_primitive_desc_destroy(desc);
    give(plan, node->inputs[0], &d_input);
}

/* Each input takes its own channels out of the gradient. */
static void build_concat(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    struct cpu_dnnl *dnnl = &plan->model->dnnl;
    const struct graph_node *node = node_of(plan, number);
    struct cpu_tensor whole = cpu_convert(plan, given, plan->nodes[number].output.layout, number);
    dnnl_dims_t offset = {0};

    for (uint32_t i = 0; i < node->input_count && !plan->code; i++) {
        const struct cpu_layout *input = plan->nodes[node->inputs[i]].output.layout;
        struct cpu_tensor part = {.layout = cpu_cut(dnnl, whole.layout, input->dims, offset)};
        if (!part.layout) {
            /* A block of channels cannot be cut; the canonical layout can. */
            whole = cpu_convert(plan, &whole, cpu_plain(dnnl, 4, whole.layout->dims), number);
            part.layout = cpu_cut(dnnl, whole.layout, input->dims, offset);
            if (!part.layout) {
                plan->code = fail(ENOSYS,
                                  "backend cpu: %s: its layout cannot be cut into that of its "
                                  "inputs; use the reference backend",
                                  node->name);
                return;
            }
        }
        part.buffer = whole.buffer;
        const struct cpu_tensor own = cpu_convert(plan, &part, input, number);
        give(plan, node->inputs[i], &own);
        offset[1] += input->dims[1];
    }
}

static void build_dropout(struct cpu_plan *plan, uint32_t number, const struct cpu_tensor *given)
{
    const struct cpu_node *own = &plan->nodes[number];
    const struct cpu_tensor gradient = cpu_convert(plan, given, own->output.layout, number);
    const struct cpu_tensor d_input = cpu_add_tensor(plan, own->output.layout);

    cpu_add_step(plan, CPU_DROPOUT_BACKWARD, number, gradient.buffer, d_input.buffer);
    give(plan, node_of(plan, number)->inputs[0], &d_input);
}

/* ---- the whole ---- */

/* All gradients up to this node's are final. Its first parameter lies behind its second. */
static void build_ready(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = node_of(plan, number);
    uint32_t first = node->weight != UINT32_MAX ? node->weight : node->gamma;

    if (first == UINT32_MAX)
        return;
    const struct graph_parameter *parameter = &plan->model->graph->parameters[first];
    cpu_add_step(plan, CPU_READY, number, UINT32_MAX, UINT32_MAX)->ready_floats =
        parameter->offset + parameter->count;
}

/* The node before an absorbed ReLU computes its backward pass, and adds up two gradients in it. */
static void pass_on(struct cpu_plan *plan, uint32_t number)
{
    const struct cpu_node *own = &plan->nodes[number];
    const uint32_t before = node_of(plan, number)->inputs[0];

    if (own->gradient_count == 2 && node_of(plan, before)->kind != GRAPH_BATCH_NORM) {
        give(plan, before, &own->gradients[0]);
        give(plan, before, &own->gradients[1]);
        return;
    }
    const struct cpu_tensor gradient = add_up(plan, number);
    give(plan, before, &gradient);
}

static void build_node(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = node_of(plan, number);
    const struct cpu_node *own = &plan->nodes[number];
    const bool relu = own->relu && node->kind != GRAPH_BATCH_NORM;

    if (own->absorbed) {
        pass_on(plan, number);
        return;
    }
    struct cpu_tensor gradient;
    if (relu && own->gradient_count == 2) {
        gradient = sum_through_relu(plan, number);
    } else {
        gradient = add_up(plan, number);
        if (relu)
            gradient = through_relu(plan, number, &gradient);
    }
    switch (node->kind) {
    case GRAPH_CONVOLUTION:
    case GRAPH_FULLY_CONNECTED:
        build_weighted(plan, number, &gradient);
        break;
    case GRAPH_BATCH_NORM:
        build_norm(plan, number, &gradient);
        break;
    case GRAPH_RELU:
        gradient = through_relu(plan, number, &gradient);
        give(plan, node->inputs[0], &gradient);
        break;
    case GRAPH_MAX_POOL:
    case GRAPH_AVERAGE_POOL:
        build_pool(plan, number, &gradient);
        break;
    case GRAPH_ADD:
        give(plan, node->inputs[0], &gradient);
        give(plan, node->inputs[1], &gradient);
        break;
    case GRAPH_CONCAT:
        build_concat(plan, number, &gradient);
        break;
    case GRAPH_LRN:
        build_lrn(plan, number, &gradient);
        break;
    case GRAPH_DROPOUT:
        build_dropout(plan, number, &gradient);
        break;
    case GRAPH_INPUT:
        break;
    }
}

void cpu_build_backward(struct cpu_plan *plan)
{
    for (uint32_t i = plan->model->graph->node_count; i-- > 1 && !plan->code;) {
        if (!plan->nodes[i].needs_gradient)
            continue;
        build_node(plan, i);
        build_ready(plan, i);
    }
}
