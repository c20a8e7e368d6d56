/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/cuda.h"

#include "base/fail.h"
#include "base/memory.h"

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
        own->value = own->which = CUDA_NONE;
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

static int upload(const struct cuda_plan *plan, const struct cuda_pass *pass)
{
    const struct cuda_model *model = plan->model;
    const struct graph_shape *shape = &model->graph->nodes[0].shape;
    uint64_t *keys = (uint64_t *)(void *)(model->staged + 1);
    int32_t *labels = cuda_labels(model, model->staged);
    uint32_t counted = 0;

    for (uint32_t i = 0; i < plan->count; i++) {
        labels[i] = pass->batch->labels ? pass->batch->labels[i] : -1;
        counted += labels[i] >= 0;
    }
    for (uint32_t i = 0; i < model->graph->node_count; i++)
        keys[i] = kernel_dropout_key(model->site.seed, pass->batch->step, i);
    const float mean = counted ? 1.0f / (float)counted : 0;
    const bool sums = model->type == DEVICE_FP16;
    model->staged->gradient_scale = sums ? 1 : mean;
    model->staged->unscale = sums ? mean : 1;
    int code =
        runtime_copy(model->header, model->staged, model->header_bytes, model->runtime.stream);
    return code ? code
                : runtime_copy(model->rows, pass->batch->rows,
                               (uint64_t)plan->count * shape->height * shape->width * 3,
                               model->runtime.stream);
}

static int run_steps(struct cuda_plan *plan)
{
    int code = 0;

    for (uint32_t i = 0; i < plan->step_count && code == 0; i++) {
        runtime_range_push(plan->model->graph->nodes[plan->steps[i].node].name);
        code = plan->steps[i].run(plan, &plan->steps[i]);
        runtime_range_pop();
    }
    return code;
}

static int capture(struct cuda_plan *plan)
{
    const struct cuda_pass *pass = plan->pass;
    void *stream = plan->model->runtime.stream;
    int code = runtime_capture_begin(stream);

    if (code)
        return code;
    code = run_steps(plan);
    int ended = runtime_capture_end(stream, &plan->graph);
    plan->label_smoothing = pass->label_smoothing;
    plan->labelled = pass->loss != NULL;
    code = code ? code : ended;
    if (code)
        cuda_plan_forget(plan); /* half a step must never run */
    return code;
}

static int start_steps(struct cuda_plan *plan)
{
    const struct cuda_model *model = plan->model;
    const struct cuda_pass *pass = plan->pass;

    /* The first run is eager: libraries load what they need when they first run. */
    if (!plan->has_run || !model->settings->graph || !model->runtime.captures) {
        plan->has_run = true;
        return run_steps(plan);
    }
    if (plan->graph &&
        (plan->label_smoothing != pass->label_smoothing || plan->labelled != (pass->loss != NULL)))
        cuda_plan_forget(plan);
    int code = plan->graph ? 0 : capture(plan);
    return code ? code : runtime_graph_launch(plan->graph, model->runtime.stream);
}

/* ---- results ---- */

int cuda_mark(const struct cuda_model *model, enum cuda_mark mark)
{
    return runtime_event_mark(model->marks[mark], model->runtime.stream);
}

/* All of the step is done, and so are its gradients. */
static int tell_ready(const struct cuda_plan *plan, const struct cuda_pass *pass)
{
    int code = 0;

    for (uint32_t i = 0; pass->ready && i < plan->step_count && code == 0; i++)
        if (plan->steps[i].ready_floats)
            code = pass->ready(pass->context, plan->steps[i].ready_floats);
    return code;
}

static int between(const struct cuda_model *model, enum cuda_mark first, enum cuda_mark last,
                   uint64_t *ns)
{
    double milliseconds = 0;
    int code = runtime_event_elapsed(model->marks[first], model->marks[last], &milliseconds);

    *ns = (uint64_t)(milliseconds * 1e6);
    return code;
}

static int take_times(const struct cuda_plan *plan, struct backend_times *times)
{
    const struct cuda_model *model = plan->model;
    int code = between(model, CUDA_UPLOAD, CUDA_COMPUTE, &times->upload_ns);

    if (!plan->training)
        return code ? code : between(model, CUDA_COMPUTE, CUDA_STEP_END, &times->compute_ns);
    if (code == 0)
        code = between(model, CUDA_COMPUTE, CUDA_EXCHANGE, &times->compute_ns);
    if (code == 0)
        code = between(model, CUDA_EXCHANGE, CUDA_STEP_END, &times->exchange_ns);
    if (code == 0 && model->updated)
        code = between(model, CUDA_UPDATE, CUDA_UPDATE_END, &times->update_ns);
    return code;
}

static void take_results(const struct cuda_plan *plan, const struct cuda_pass *pass)
{
    const struct cuda_model *model = plan->model;
    const struct device_loss *result = model->result;

    if (pass->loss)
        *pass->loss =
            (struct backend_loss){.loss = result->counted ? result->loss / result->counted : 0,
                                  .correct = result->correct,
                                  .correct_top5 = result->correct_top5,
                                  .counted = result->counted};
    if (pass->logits)
        memcpy(pass->logits, model->logits_result,
               (size_t)plan->count * model->graph->classes * sizeof *pass->logits);
}

/* All of the pass on the stream. */
static int start(struct cuda_plan *plan, const struct cuda_pass *pass)
{
    const struct cuda_model *model = plan->model;
    int code = cuda_mark(model, CUDA_UPLOAD);

    if (code == 0)
        code = upload(plan, pass);
    if (code == 0)
        code = cuda_mark(model, CUDA_COMPUTE);
    plan->pass = pass;
    if (code == 0)
        code = start_steps(plan);
    plan->pass = NULL;
    if (code == 0)
        code = cuda_mark(model, CUDA_STEP_END);
    if (code == 0 && plan->training && model->host_gradients)
        code = runtime_copy(model->host_gradients, model->gradients,
                            model->graph->parameter_floats * sizeof(float), model->runtime.stream);
    return code;
}

int cuda_plan_run(struct cuda_plan *plan, const struct cuda_pass *pass)
{
    const struct cuda_model *model = plan->model;
    int code = start(plan, pass);
    /* Also after an error: nothing may use the batch any more. */
    int waited = runtime_wait_for(model->runtime.stream, model->site.silence_ns);

    plan->model->is_stuck = waited == -ETIMEDOUT;
    if (code == 0)
        code = waited;
    if (code == 0)
        code = tell_ready(plan, pass);
    if (code)
        return code;
    take_results(plan, pass);
    return pass->loss ? take_times(plan, &pass->loss->times) : 0;
}
