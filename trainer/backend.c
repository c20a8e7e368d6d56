/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/backend.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "kernels/kernels.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The usual ImageNet values, (0.485, 0.456, 0.406) and (0.229, 0.224, 0.225), times 255. */
const float backend_mean[3] = {123.675f, 116.28f, 103.53f};
const float backend_deviation[3] = {58.395f, 57.12f, 57.375f};

const struct backend_ops *backend_ops_of(const struct plugin *plugin)
{
    return (const struct backend_ops *)(const void *)plugin; /* plugin is the first member */
}

/* NULL with a reason. */
static const struct backend_ops *ops_of(const struct plugin_choice *choice)
{
    return backend_ops_of(module_plugin(choice->plugin));
}

int backend_check(const struct plugin_choice *choice)
{
    const struct backend_ops *ops = ops_of(choice);

    if (!ops)
        return -ENODEV;
    return ops->check ? ops->check(choice->settings) : 0;
}

int backend_open(struct backend *backend, const struct plugin_choice *choice,
                 const struct backend_config *config)
{
    assert(config->graph->parameter_floats > 0 && config->batch_size > 0);
    assert(!config->gradients_on_host || config->exchanged_by_host);
    assert(!config->exchanged_by_host || !config->enqueue);
    assert(!config->training || (!config->calibration && !config->ranges));
    *backend = (struct backend){.config = *config};
    int code = plugin_usable(choice->plugin);
    if (code == 0)
        code = backend_check(choice);
    if (code)
        return code;
    backend->ops = ops_of(choice);
    backend->state = memory_zeroed(backend->ops->plugin.state_size);
    if (!backend->state)
        return -ENOMEM;
    if (config->accumulates && !backend->ops->accumulates) {
        backend->sums = memory_array(config->graph->parameter_floats, sizeof(float));
        if (!backend->sums)
            return -ENOMEM;
    }
    return backend->ops->open(backend->state, choice->settings, &backend->config);
}

void backend_close(struct backend *backend)
{
    if (backend->state)
        backend->ops->close(backend->state);
    free(backend->state);
    free(backend->sums);
    backend->state = NULL;
    backend->sums = NULL;
}

int backend_load(struct backend *backend, const float *parameters, const float *momenta,
                 const float *statistics)
{
    assert(backend->loaded || parameters);
    int code = backend->ops->load(backend->state, parameters, momenta, statistics);
    backend->loaded = backend->loaded || code == 0;
    return code;
}

int backend_save(struct backend *backend, float *parameters, float *momenta, float *statistics,
                 float *gradients)
{
    assert(backend->loaded);
    return backend->ops->save(backend->state, parameters, momenta, statistics, gradients);
}

static int run_batch(struct backend *backend, const struct trainer_batch *batch,
                     struct backend_loss *loss)
{
    const uint32_t classes = backend->config.graph->classes;

    assert(backend->loaded && batch->count <= backend->config.batch_size);
    assert((batch->rows != NULL) == (batch->count > 0));
    *loss = (struct backend_loss){0};
    for (uint32_t i = 0; batch->labels && i < batch->count; i++) /* from a data set */
        if (batch->labels[i] < -1 || batch->labels[i] >= (int64_t)classes)
            return fail(EINVAL,
                        "row %u of step %llu has label %d, the network has classes 0 to %u; "
                        "use --classes (of a trainer: classes=N) with the data set's number",
                        i, (unsigned long long)batch->step, batch->labels[i], classes - 1);
    int code = backend->ops->run(backend->state, batch, loss);
    if (code)
        return code;
    assert(loss->correct <= loss->correct_top5 && loss->correct_top5 <= loss->counted);
    assert(loss->counted <= loss->count && loss->count <= backend->config.batch_size);
    return 0;
}

/* Stands between a backend and the consumer of its gradients. */
struct ready_check {
    const struct backend *backend;
    const struct trainer_batch *batch;
    backend_gradients_ready ready;
    void *context;
    uint64_t labelled; /* rows of the batch */
    uint64_t done;
};

/* Check that the final prefix only grows, and add up where the backend does not. Gradients are
 * those of the batch's mean loss: weight them by its labelled rows. The update's last batch leaves
 * the mean over all rows in the arena. */
static int ready_checked(void *context, uint64_t done)
{
    struct ready_check *check = context;
    const struct trainer_batch *batch = check->batch;
    float *sums = check->backend->sums;
    const bool continues = sums && batch->continues;

    assert(done > check->done && done <= check->backend->config.graph->parameter_floats);
    if (continues || (sums && batch->adds)) {
        const float rows = (float)check->labelled;
        const float share = batch->labelled ? 1 / (float)batch->labelled : 0;
        struct backend_memory memory = {0};
        check->backend->ops->memory(check->backend->state, &memory);
        for (uint64_t i = check->done; i < done; i++) {
            const float sum = (batch->adds ? sums[i] : 0) + rows * memory.gradients[i];
            if (continues)
                sums[i] = sum;
            else
                memory.gradients[i] = share * sum;
        }
    }
    check->done = done;
    return check->ready && !continues ? check->ready(check->context, done) : 0;
}

int backend_step(struct backend *backend, const struct trainer_batch *batch, double label_smoothing,
                 backend_gradients_ready ready, void *context, struct backend_loss *loss)
{
    struct trainer_batch given = batch ? *batch : (struct trainer_batch){0};
    struct ready_check check = {
        .backend = backend, .batch = &given, .ready = ready, .context = context};

    assert(!batch || (backend->config.training && batch->labels));
    assert(label_smoothing >= 0 && label_smoothing < 1);
    assert(!given.continues || backend->config.accumulates);
    for (uint32_t i = 0; i < given.count; i++)
        check.labelled += given.labels[i] >= 0;
    given.learns = backend->config.training;
    given.label_smoothing = label_smoothing;
    given.ready = ready_checked;
    given.context = &check;
    given.adds = batch && backend->adds;
    given.labelled = backend->rows + check.labelled;
    int code = run_batch(backend, &given, loss);
    assert(code || check.done == 0 || check.done == backend->config.graph->parameter_floats);
    loss->update_due = check.done > 0 && !(backend->sums && given.continues);
    if (batch) {
        backend->adds = given.continues;
        backend->rows = given.continues ? given.labelled : 0;
    }
    return code;
}

void backend_forget(struct backend *backend)
{
    if (backend->state && backend->ops->forget)
        backend->ops->forget(backend->state);
}

int backend_update(struct backend *backend, const struct kernel_update *update)
{
    assert(backend->loaded && backend->config.training);
    assert(update->rate >= 0 && update->momentum >= 0 && update->gradient_scale > 0);
    assert(update->clip_norm >= 0);
    return backend->ops->update(backend->state, update);
}

int backend_prepare(struct backend *backend, uint32_t count, bool learns)
{
    assert(backend->loaded && count > 0 && count <= backend->config.batch_size);
    return backend->ops->prepare ? backend->ops->prepare(backend->state, count, learns) : 0;
}

int backend_infer(struct backend *backend, const struct trainer_batch *batch, float *logits,
                  struct backend_loss *loss)
{
    struct trainer_batch given = *batch;
    struct backend_loss unused;

    given.labels = loss ? batch->labels : NULL;
    given.logits = logits;
    given.learns = false;
    return run_batch(backend, &given, loss ? loss : &unused);
}

void *backend_allocate(struct backend *backend, size_t bytes)
{
    if (backend->ops->allocate)
        return backend->ops->allocate(backend->state, bytes);
    return memory_pages(bytes);
}

void backend_release(struct backend *backend, void *memory)
{
    if (backend->ops->release)
        backend->ops->release(backend->state, memory);
    else
        free(memory);
}

void backend_memory(struct backend *backend, struct backend_memory *memory)
{
    *memory = (struct backend_memory){0};
    backend->ops->memory(backend->state, memory);
}

const char *backend_notice(const struct backend *backend)
{
    return backend->ops->notice ? backend->ops->notice(backend->state) : "";
}

/* ---- what backends in host memory share ---- */

struct backend_loss backend_loss_of(uint32_t count, const struct kernel_loss *loss)
{
    return (struct backend_loss){.count = count,
                                 .loss = loss->loss,
                                 .correct = loss->correct,
                                 .correct_top5 = loss->correct_top5,
                                 .counted = loss->counted};
}

uint64_t backend_least_bytes(const struct graph *graph, bool learns, uint32_t batch_size,
                             uint32_t value_bytes)
{
    const struct graph_cost cost = graph_cost(graph);
    const uint64_t parameter_bytes = cost.parameters * sizeof(float);

    if (!learns)
        return parameter_bytes + batch_size * graph_node_floats(&graph->nodes[0]);
    return 3 * parameter_bytes + batch_size * (cost.kept_bytes / sizeof(float) * value_bytes);
}

struct kernel_update backend_clip(const struct kernel_update *update, double squares)
{
    const double norm = update->gradient_scale * sqrt(squares);
    struct kernel_update clipped = *update;

    if (norm > update->clip_norm)
        clipped.gradient_scale *= update->clip_norm / norm;
    return clipped;
}

void backend_update_host(const struct graph *graph, const struct backend_memory *arenas,
                         const struct kernel_update *update, uint64_t first, uint64_t end)
{
    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        uint64_t from = parameter->offset, to = from + parameter->count;
        const bool decays = parameter->decay == KERNEL_DECAY_WEIGHT ||
                            (parameter->decay == KERNEL_DECAY_FC_BIAS && update->decays_fc_bias);
        const double decay = decays ? update->decay : 0;
        if (!update->adapts) {
            from = from > first ? from : first;
            to = to < end ? to : end;
            if (from < to)
                kernel_sgd(to - from, update->rate, update->momentum, decay, update->gradient_scale,
                           arenas->gradients + from, arenas->parameters + from,
                           arenas->momenta + from);
        } else if (from >= first && from < end) {
            kernel_lars(to - from, update->rate, update->rate_before, update->momentum, decay,
                        parameter->decay == KERNEL_DECAY_WEIGHT ? update->eta : 0,
                        update->gradient_scale, arenas->gradients + from, arenas->parameters + from,
                        arenas->momenta + from);
        }
    }
}

/* ---- memory ---- */

enum { ALIGNMENT = 64 };

static int by_size(const void *left, const void *right)
{
    const struct lifetime *a = *(struct lifetime *const *)left;
    const struct lifetime *b = *(struct lifetime *const *)right;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a < b ? -1 : a > b; /* for the same result on every machine */
}

int lifetimes_plan(struct lifetime *lifetimes, size_t apart, uint32_t count, uint64_t *total)
{
    struct lifetime **order = memory_array(count, sizeof *order);

    if (!order)
        return -ENOMEM;
    /* Before i: placed ones, by offset. From i on: those still to place, by size. */
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct lifetime *)(void *)((char *)lifetimes + i * apart);
    qsort(order, count, sizeof(*order), by_size);
    *total = 0;
    for (uint32_t i = 0; i < count && order[i]->bytes > 0; i++) {
        struct lifetime *next = order[i];
        uint64_t gap = 0; /* the lowest among those placed whose lifetimes overlap */
        for (uint32_t j = 0; j < i; j++) {
            const struct lifetime *other = order[j];
            if (other->first > next->last || next->first > other->last)
                continue;
            if (other->offset >= gap + next->bytes)
                break;
            uint64_t behind = bytes_align_up(other->offset + other->bytes, ALIGNMENT);
            gap = behind > gap ? behind : gap;
        }
        assert(gap % ALIGNMENT == 0);
        next->offset = gap;
        *total = gap + next->bytes > *total ? gap + next->bytes : *total;
        uint32_t place = i;
        for (; place > 0 && order[place - 1]->offset > next->offset; place--)
            order[place] = order[place - 1];
        order[place] = next;
    }
    free(order);
    return 0;
}

/* ---- schedules ---- */

const char *const schedule_phases[SCHEDULE_PHASES] = {
    [SCHEDULE_ONCE] = "once",         [SCHEDULE_FORWARD] = "forward", [SCHEDULE_LOSS] = "loss",
    [SCHEDULE_BACKWARD] = "backward", [SCHEDULE_UPDATE] = "update",
};

double schedule_predict_ns(const struct schedule_step *step, double flops_per_s, double bytes_per_s)
{
    const double bytes = (double)(step->read_bytes + step->write_bytes);

    return 1e9 * fmax(step->flops / flops_per_s, bytes / bytes_per_s);
}

void schedule_lap(uint64_t *took_ns, uint64_t *since_ns)
{
    if (!took_ns)
        return;
    const uint64_t now_ns = clock_now_ns();
    *took_ns += now_ns - *since_ns;
    *since_ns = now_ns;
}

int schedule_add(struct schedule *schedule, const struct schedule_step *step)
{
    int code = memory_room(&schedule->steps, schedule->count, sizeof *schedule->steps,
                           "steps of a schedule");

    if (code == 0)
        schedule->steps[schedule->count++] = *step;
    return code;
}

int schedule_add_update(struct schedule *schedule, const struct graph *graph, const char *engine,
                        double measured_ns)
{
    const uint64_t bytes = graph->parameter_floats * sizeof(float);
    struct schedule_step step = {.phase = SCHEDULE_UPDATE,
                                 .node = UINT32_MAX,
                                 .operation = "SGD",
                                 .read_bytes = 3 * bytes, /* parameters, gradients, momenta */
                                 .write_bytes = 2 * bytes,
                                 .measured_ns = measured_ns};

    snprintf(step.engine, sizeof step.engine, "%s", engine);
    return schedule_add(schedule, &step);
}

void schedule_free(struct schedule *schedule)
{
    free(schedule->steps);
    *schedule = (struct schedule){0};
}

static int ignore_gradients(void *context, uint64_t done)
{
    (void)context;
    (void)done;
    return 0;
}

int backend_rehearse(const struct backend_ops *ops, void *state,
                     const struct schedule_request *request, int (*warmed_up)(void *state),
                     double *update_ns)
{
    const struct graph *graph = request->graph;
    const uint64_t bytes = request->batch_size * graph_node_floats(&graph->nodes[0]);
    float *parameters = memory_array(graph->parameter_floats, sizeof *parameters);
    uint8_t *rows = memory_array(bytes, 1);
    int32_t *labels = memory_array(request->batch_size, sizeof *labels);
    const struct trainer_batch batch = {.rows = rows,
                                        .labels = labels,
                                        .count = request->batch_size,
                                        .learns = request->training,
                                        .ready = ignore_gradients};
    const struct trainer_batch drain = {.learns = request->training, .ready = ignore_gradients};
    const struct kernel_update update = {.momentum = 0.9, .gradient_scale = 1};
    int code = parameters && rows && labels ? 0 : -ENOMEM;

    *update_ns = 0;
    if (code == 0) {
        graph_initialise(graph, 1, parameters);
        code = ops->load(state, parameters, NULL, NULL);
    }
    for (uint64_t i = 0; i < bytes && code == 0; i++)
        rows[i] = (uint8_t)random_mix(i);
    for (uint32_t i = 0; request->passes && i <= request->passes && code == 0; i++) {
        struct backend_loss loss = {0};
        uint64_t took_ns = 0;
        code = ops->run(state, &batch, &loss);
        if (code == 0 && request->training) {
            uint64_t since_ns = clock_now_ns();
            code = ops->update(state, &update);
            schedule_lap(&took_ns, &since_ns);
            loss = (struct backend_loss){0};
            if (code == 0) /* a device has only enqueued it, and reports its own time */
                code = ops->run(state, &drain, &loss);
            *update_ns += (double)(loss.times.update_ns ? loss.times.update_ns : took_ns);
        }
        if (i == 0) { /* to warm up */
            *update_ns = 0;
            code = code ? code : warmed_up(state);
        }
    }
    if (request->passes)
        *update_ns /= request->passes;
    free(labels);
    free(rows);
    free(parameters);
    return code;
}

int backend_schedule(const struct plugin_choice *choice, const struct schedule_request *request,
                     struct schedule *schedule)
{
    const uint32_t nodes = request->graph->node_count;
    float *ranges = memory_array(nodes, sizeof *ranges);
    struct schedule_request wanted = *request;
    int code = ranges ? backend_check(choice) : -ENOMEM;

    *schedule = (struct schedule){0};
    for (uint32_t i = 0; code == 0 && i < nodes; i++)
        ranges[i] = 1; /* the steps do not depend on the weights */
    wanted.ranges = request->int8 ? ranges : NULL;
    if (code == 0)
        code = ops_of(choice)->schedule(choice->settings, &wanted, schedule);
    free(ranges);
    return code;
}

/* ---- recipes ---- */

/* LARS rate, weight decay and warm-up for a global batch size. */
struct lars_point {
    double batch_size, rate, weight_decay, warmup_epochs;
};

static const struct lars_point lars_points[] = {
    {408, 3.0, 5e-5, 2},  {816, 5.3, 5e-5, 2},   {1024, 6.0, 2.5e-5, 2}, {1632, 7.5, 5e-5, 2},
    {2048, 9.0, 5e-5, 3}, {3200, 11.0, 5e-5, 2}, {4096, 13.0, 2e-4, 3},
};

enum { LARS_POINTS = sizeof lars_points / sizeof *lars_points };

struct recipe recipe_choose(enum backend_recipe kind, const struct network *network,
                            uint64_t global_batch_size, uint64_t epochs, uint64_t steps_per_epoch)
{
    const double batch_size = (double)global_batch_size, most = 5;
    struct recipe recipe = {.kind = kind,
                            .steps = epochs * steps_per_epoch,
                            .label_smoothing = 0.1,
                            .zero_gammas = true};
    double warmup_epochs = fmin(most, (double)epochs / 10);

    if (kind == BACKEND_LARS) {
        /* The rate is interpolated linearly between the points, through 0 before the first and
         * extrapolated after the last; the rest comes from the nearest point below. */
        size_t i = 0;
        while (i + 2 < LARS_POINTS && batch_size >= lars_points[i + 1].batch_size)
            i++;
        const struct lars_point *low = &lars_points[i], *high = &lars_points[i + 1];
        struct lars_point point = batch_size >= high->batch_size ? *high : *low;
        point.rate = batch_size < low->batch_size
                         ? low->rate * (batch_size / low->batch_size)
                         : low->rate + (high->rate - low->rate) * (batch_size - low->batch_size) /
                                           (high->batch_size - low->batch_size);
        recipe.decay_shape = RECIPE_SQUARE;
        recipe.rate = point.rate;
        recipe.momentum = 0.9;
        recipe.weight_decay = point.weight_decay;
        recipe.eta = 0.001;
        recipe.decays_fc_bias = true;
        warmup_epochs = fmin(point.warmup_epochs, (double)epochs / 2);
    } else {
        recipe.decay_shape = RECIPE_COSINE;
        recipe.rate = network->plain_batch ? 0.01 * sqrt(fmin(1, batch_size / network->plain_batch))
                                           : 0.256 * batch_size / 256;
        if (network->rate_share > 0)
            recipe.rate *= network->rate_share;
        recipe.momentum = 0.875;
        recipe.weight_decay = 1.0 / 32768;
    }
    recipe.warmup_steps = (uint64_t)llround(warmup_epochs * (double)steps_per_epoch);
    return recipe;
}

double recipe_rate(const struct recipe *recipe, uint64_t step)
{
    if (step < recipe->warmup_steps)
        return recipe->rate * (double)(step + 1) / (double)recipe->warmup_steps;
    if (recipe->decay_shape == RECIPE_CONSTANT || recipe->steps <= recipe->warmup_steps)
        return recipe->rate;
    if (step >= recipe->steps)
        step = recipe->steps - 1;
    double done = (double)(step - recipe->warmup_steps) /
                  (double)(recipe->steps - recipe->warmup_steps); /* below 1 */
    return recipe->decay_shape == RECIPE_COSINE ? recipe->rate * (1 + cos(M_PI * done)) / 2
                                                : recipe->rate * (1 - done) * (1 - done);
}
