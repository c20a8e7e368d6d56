/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/cuda.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WINNERS_MAX = 255 };

/* ---- what is computed together ---- */

static enum graph_kind kind_of(const struct cuda_plan *plan, uint32_t node)
{
    return plan->model->graph->nodes[node].kind;
}

/* The one consumer of a node, if it is of that kind; else CUDA_NONE. */
static uint32_t only_consumer(const struct cuda_plan *plan, uint32_t node, enum graph_kind kind)
{
    const struct cuda_node *own = &plan->nodes[node];

    return own->consumers == 1 && kind_of(plan, own->consumer) == kind ? own->consumer : CUDA_NONE;
}

static void absorb_relu(struct cuda_plan *plan, uint32_t node)
{
    plan->nodes[node].relu = only_consumer(plan, node, GRAPH_RELU);
    if (plan->nodes[node].relu != CUDA_NONE)
        plan->nodes[plan->nodes[node].relu].absorbed = true;
}

/* A BN, ReLU and max-pool that nobody else looks at. */
static void absorb_pool(struct cuda_plan *plan, uint32_t norm)
{
    struct cuda_node *own = &plan->nodes[norm];

    if (own->relu == CUDA_NONE)
        return;
    own->pool = only_consumer(plan, own->relu, GRAPH_MAX_POOL);
    if (own->pool == CUDA_NONE)
        return;
    const struct graph_window *window = &plan->model->graph->nodes[own->pool].window;
    if (window->height * window->width > WINNERS_MAX)
        own->pool = CUDA_NONE;
    else
        plan->nodes[own->pool].absorbed = true;
}

/* A sum applies BNs that only it looks at. */
static void absorb_norms(struct cuda_plan *plan, uint32_t sum)
{
    const uint32_t *inputs = plan->model->graph->nodes[sum].inputs;
    struct cuda_node *own = &plan->nodes[sum];

    for (uint32_t i = 0; i < 2; i++) {
        if (kind_of(plan, inputs[i]) != GRAPH_BATCH_NORM || plan->nodes[inputs[i]].consumers != 1)
            continue;
        *(own->norm == CUDA_NONE ? &own->norm : &own->norm_other) = inputs[i];
        plan->nodes[inputs[i]].absorbed = true;
    }
}

static void look_at_node(struct cuda_plan *plan, uint32_t node)
{
    if (plan->model->site.calibration) /* what each node puts out is to be seen */
        return;
    switch (kind_of(plan, node)) {
    case GRAPH_CONVOLUTION:
    case GRAPH_FULLY_CONNECTED:
        return absorb_relu(plan, node);
    case GRAPH_BATCH_NORM:
        absorb_relu(plan, node);
        return absorb_pool(plan, node);
    case GRAPH_ADD:
        absorb_norms(plan, node);
        return absorb_relu(plan, node);
    case GRAPH_INPUT:
    case GRAPH_RELU:
    case GRAPH_MAX_POOL:
    case GRAPH_AVERAGE_POOL:
    case GRAPH_CONCAT:
    case GRAPH_LRN:
    case GRAPH_DROPOUT:
        return;
    }
}

static void look_at_graph(struct cuda_plan *plan)
{
    const struct graph *graph = plan->model->graph;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        struct cuda_node *own = &plan->nodes[i];
        own->relu = own->pool = own->norm = own->norm_other = CUDA_NONE;
        own->value = own->value8 = own->which = own->dz = CUDA_NONE;
        own->norm_before = own->end_before = CUDA_NONE;
        own->needs_gradient = node->weight != CUDA_NONE || node->gamma != CUDA_NONE;
        for (uint32_t j = 0; j < node->input_count; j++) {
            struct cuda_node *input = &plan->nodes[node->inputs[j]];
            own->needs_gradient |= input->needs_gradient;
            input->consumers++;
            input->consumer = i;
            const bool layer =
                node->kind == GRAPH_CONVOLUTION || node->kind == GRAPH_FULLY_CONNECTED;
            if (node->inputs[j] == 0 && (!layer || node->groups > 1))
                cuda_keep_code(plan, fail(ENOTSUP,
                                          "backend cuda: %s looks at the image itself; "
                                          "only convolutions without groups can",
                                          node->name));
        }
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        look_at_node(plan, i);
        if (plan->nodes[i].consumers > GRAPH_INPUTS_MAX)
            cuda_keep_code(plan, fail(ENOTSUP, "backend cuda: %s has too many consumers",
                                      graph->nodes[i].name));
    }
}

/* ---- building ---- */

static void place_buffers(struct cuda_plan *plan)
{
    struct lifetime *lives = memory_array(plan->buffer_count + 1, sizeof *lives);

    if (!lives) {
        plan->code = -ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        lives[i] = plan->buffers[i].life;
        if (plan->buffers[i].fixed || lives[i].first == UINT32_MAX)
            lives[i].bytes = 0;
    }
    plan->code = lifetimes_plan(lives, plan->buffer_count, &plan->arena_bytes);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        plan->buffers[i].life.offset = lives[i].offset;
    free(lives);
}

struct cuda_plan *cuda_plan_create(struct cuda_model *model, uint32_t count, bool training)
{
    struct cuda_plan *plan = memory_zeroed(sizeof *plan);

    if (!plan)
        return NULL;
    *plan = (struct cuda_plan){.model = model, .count = count, .training = training};
    plan->nodes = memory_array(model->graph->node_count, sizeof *plan->nodes);
    if (!plan->nodes)
        plan->code = -ENOMEM;
    if (!plan->code)
        look_at_graph(plan);
    if (!plan->code)
        cuda_int8_look(plan);
    if (!plan->code)
        cuda_fuse(plan);
    if (!plan->code)
        cuda_build_forward(plan);
    if (!plan->code)
        cuda_build_backward(plan);
    if (!plan->code)
        place_buffers(plan);
    free(plan->nodes);
    plan->nodes = NULL;
    if (plan->code) {
        cuda_plan_destroy(plan);
        return NULL;
    }
    return plan;
}

void cuda_plan_destroy(struct cuda_plan *plan)
{
    if (!plan)
        return;
    cuda_plan_forget(plan);
    free(plan->buffers);
    free(plan->steps);
    free(plan);
}

void cuda_plan_bind(struct cuda_plan *plan, void *arena)
{
    if (plan->bound == arena)
        return;
    cuda_plan_forget(plan);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (!plan->buffers[i].fixed)
            plan->buffers[i].address = (char *)arena + plan->buffers[i].life.offset;
    plan->bound = arena;
}

void cuda_plan_forget(struct cuda_plan *plan)
{
    runtime_graph_destroy(plan->graph);
    plan->graph = NULL;
}

/* ---- running ---- */

static int run_steps(struct cuda_plan *plan, uint32_t first, uint32_t end)
{
    int code = 0;

    for (uint32_t i = first; i < end && code == 0; i++) {
        runtime_range_push(plan->model->graph->nodes[plan->steps[i].node].name);
        code = plan->steps[i].run(plan, &plan->steps[i]);
        runtime_range_pop();
    }
    return code;
}

static int capture(struct cuda_plan *plan)
{
    void *stream = plan->model->runtime.stream;
    int code = runtime_capture_begin(stream);

    if (code)
        return code;
    code = run_steps(plan, 1, plan->step_count);
    int ended = runtime_capture_end(stream, &plan->graph);
    code = code ? code : ended;
    if (code)
        cuda_plan_forget(plan); /* half a step must never run */
    return code;
}

static int start_steps(struct cuda_plan *plan)
{
    const struct cuda_model *model = plan->model;
    const struct cuda_pass *pass = plan->pass;
    const bool again = plan->has_run && plan->labelled == pass->labelled &&
                       plan->label_smoothing == pass->label_smoothing;

    /* The first run is eager: kernels are loaded then, which a capture may forbid. */
    if (!again || !model->settings->graph || !model->runtime.captures) {
        cuda_plan_forget(plan);
        plan->has_run = true;
        plan->labelled = pass->labelled;
        plan->label_smoothing = pass->label_smoothing;
        return run_steps(plan, 1, plan->step_count);
    }
    int code = plan->graph ? 0 : capture(plan);
    return code ? code : runtime_graph_launch(plan->graph, model->runtime.stream);
}

/* The first step takes the images from where they are this time; all others always find theirs in
 * the same place, and so can be a graph. */
int cuda_plan_start(struct cuda_plan *plan, const struct cuda_pass *pass)
{
    assert(plan->steps[0].node == 0);
    plan->pass = pass;
    int code = run_steps(plan, 0, 1);
    if (code == 0)
        code = start_steps(plan);
    plan->pass = NULL;
    return code;
}

int cuda_plan_tell_ready(const struct cuda_plan *plan, const struct backend_pass *pass)
{
    int code = 0;

    for (uint32_t i = 0; pass->ready && i < plan->step_count && code == 0; i++)
        if (plan->steps[i].ready_floats)
            code = pass->ready(pass->context, plan->steps[i].ready_floats);
    return code;
}
