/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu backend: oneDNN, FP32 or BF16. This file owns its memory, runs programs and implements
 * the backend contract; cpu.h describes how a batch is computed.
 *
 * oneDNN runs on OpenMP threads. Their number is a property of the calling thread, and primitives
 * are created for it; so every call sets it.
 */
#include "trainer/cpu/cpu.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"
#include "kernels/kernels.h"
#include "trainer/settings.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/vector.h"

enum { LINE_FLOATS = 16 };

/* From the OpenMP runtime that oneDNN brings; omp.h belongs to the compiler, and not every compiler
 * has one. */
void omp_set_num_threads(int count);

static const dnnl_data_type_t types[] = {[CPU_FP32] = dnnl_f32, [CPU_BF16] = dnnl_bf16};

struct cpu_state {
    struct cpu_model model;
    struct cpu_program *programs;
    void *arena;
    uint64_t arena_bytes;
    float *blocks[3]; /* hold the parameters, gradients and momenta */
};

/* ---- opening ---- */

/* A part of fresh memory, by the thread that may use it: all threads clear pages at once. */
enum { ZERO_UNIT = 2 << 20, CLEARED_BYTES = 256 << 20 };
static void zero(const void *memory, uint64_t first, uint64_t end)
{
    memset((char *)memory + first, 0, end - first);
}

static int clear(const struct backend_config *config, void *memory, uint64_t bytes)
{
    int code = 0;

    for (uint64_t first = 0; first < bytes && code == 0; first += CLEARED_BYTES) {
        const uint64_t left = bytes - first;
        cpu_share(left < CLEARED_BYTES ? left : CLEARED_BYTES, ZERO_UNIT, zero,
                  (char *)memory + first);
        code = tick_ask(config->tick);
    }
    return code;
}

/* Zeroed, with a spare line at the end: some of oneDNN's vector code reads whole cache lines. Layer
 * sizes are multiples of a line except for a few biases, which shift everything after them; with
 * this offset most weights are line-aligned. */
static int make_parameters(struct cpu_state *cpu, float **block, float **parameters)
{
    const struct graph *graph = cpu->model.config.graph;
    const uint64_t floats = graph->parameter_floats + 3 * LINE_FLOATS;
    uint64_t at[LINE_FLOATS] = {0}; /* floats of the parameters that begin there in a line */
    uint32_t best = 0;

    for (uint32_t i = 0; i < graph->parameter_count; i++)
        at[graph->parameters[i].offset % LINE_FLOATS] += graph->parameters[i].count;
    for (uint32_t i = 1; i < LINE_FLOATS; i++)
        if (at[i] > at[best])
            best = i;
    *block = memory_pages(floats * sizeof(float));
    if (!*block)
        return -ENOMEM;
    *parameters = *block + (LINE_FLOATS - best) % LINE_FLOATS;
    return clear(&cpu->model.config, *block, floats * sizeof(float));
}

/* A fully connected layer has one row of weights per output. */
static const struct cpu_layout *canonical_layout(struct cpu_dnnl *dnnl, const struct graph *graph,
                                                 uint32_t number)
{
    const struct graph_parameter *parameter = &graph->parameters[number];
    const struct graph_node *node = &graph->nodes[parameter->node];
    const struct graph_shape *in = &graph->nodes[node->inputs[0]].shape, *out = &node->shape;
    const dnnl_dim_t count = (dnnl_dim_t)parameter->count, height = node->window.height;
    const dnnl_dim_t width = node->window.width, groups = node->window.groups;

    if (parameter->kind != GRAPH_WEIGHT)
        return cpu_plain(dnnl, 1, &count);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        return cpu_plain(dnnl, 2, (const dnnl_dims_t){out->channels, count / out->channels});
    if (groups == 1)
        return cpu_plain(dnnl, 4, (const dnnl_dims_t){out->channels, in->channels, height, width});
    return cpu_plain(
        dnnl, 5,
        (const dnnl_dims_t){groups, out->channels / groups, in->channels / groups, height, width});
}

/* oneDNN computes BF16 on any CPU with AVX-512; without instructions for it, slower than FP32. */
static int check_settings(const void *settings)
{
    const struct cpu_settings *wanted = settings;
    const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();

    if (types[wanted->precision] == dnnl_f32 ||
        (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16)
        return 0;
    return fail(ENOTSUP, "backend cpu: bf16 needs a CPU with AVX512-BF16 or AMX, and this one has "
                         "neither; use fp32");
}

static int open_model(struct cpu_state *cpu, const struct cpu_settings *settings)
{
    const struct graph *graph = cpu->model.config.graph;
    struct cpu_model *model = &cpu->model;

    model->type = types[settings->precision];
    model->weight_gradients = (enum cpu_gradients)settings->gradients;
    if (model->type != dnnl_f32 && (cpu->model.config.ranges || cpu->model.config.calibration))
        return fail(EINVAL, "backend cpu: in INT8 inference the other layers are computed in fp32; "
                            "leave out precision=bf16");
    model->graph = graph;
    model->parameter_version = 1;
    int code = make_parameters(cpu, &cpu->blocks[0], &model->parameters);
    if (cpu->model.config.training && code == 0)
        code = make_parameters(cpu, &cpu->blocks[1], &model->gradients);
    if (cpu->model.config.training && code == 0)
        code = make_parameters(cpu, &cpu->blocks[2], &model->momenta);
    if (code)
        return code;
    model->statistics = memory_array(graph->statistic_floats + LINE_FLOATS, sizeof(float));
    model->canonical = memory_array(graph->parameter_count, sizeof *model->canonical);
    model->home = memory_array(graph->parameter_count, sizeof *model->home);
    if (!model->statistics || !model->canonical || !model->home)
        return -ENOMEM;
    code = cpu_dnnl_open(&model->dnnl);
    if (code)
        return code;
    for (uint32_t i = 0; i < graph->parameter_count; i++)
        model->home[i] = model->canonical[i] = canonical_layout(&model->dnnl, graph, i);
    graph_initialise_statistics(graph, model->statistics);
    return 0;
}

/* ---- programs ---- */

static void destroy_program(struct cpu_program *program)
{
    for (uint32_t i = 0; i < program->step_count; i++)
        dnnl_primitive_destroy(program->steps[i].primitive);
    for (uint32_t i = 0; i < program->memory_count; i++)
        dnnl_memory_destroy(program->memories[i].memory);
    while (program->constants) {
        struct cpu_constant *next = program->constants->next;
        free(program->constants);
        program->constants = next;
    }
    free(program->memories);
    free(program->buffers);
    free(program->steps);
    free(program->kept);
    free(program->took_ns);
    free(program);
}

/* Bind the program's tensors to the arena, of at least program->arena_bytes. */
static int bind_program(struct cpu_program *program, void *arena)
{
    int code = 0;

    if (program->bound == arena)
        return 0;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        struct cpu_buffer *buffer = &program->buffers[i];
        if (buffer->place != CPU_FOREIGN)
            buffer->address =
                (char *)(buffer->place == CPU_KEPT ? program->kept : arena) + buffer->life.offset;
    }
    for (uint32_t i = 0; i < program->memory_count && code == 0; i++)
        code = cpu_check(
            dnnl_memory_set_data_handle(program->memories[i].memory,
                                        program->buffers[program->memories[i].buffer].address),
            "memory");
    if (code == 0)
        program->bound = arena;
    return code;
}

/* Find the program for `count` images, or create it; do not bind it to the arena. */
static int make_program(struct cpu_state *cpu, uint32_t count, bool training,
                        struct cpu_program **found)
{
    struct cpu_program *program = cpu->programs;

    omp_set_num_threads((int)cpu->model.config.threads);
    while (program && (program->count != count || program->training != training))
        program = program->next;
    if (!program) {
        program = memory_zeroed(sizeof *program);
        if (!program)
            return -ENOMEM;
        *program = (struct cpu_program){.model = &cpu->model, .count = count, .training = training};
        int code = cpu_program_build(program);
        if (code) {
            destroy_program(program);
            return code;
        }
        program->next = cpu->programs;
        cpu->programs = program;
    }
    *found = program;
    return 0;
}

static int find_program(struct cpu_state *cpu, uint32_t count, bool training,
                        struct cpu_program **found)
{
    int code = make_program(cpu, count, training, found);

    if (code)
        return code;
    const uint64_t bytes = (*found)->arena_bytes;
    if (bytes > cpu->arena_bytes) {
        free(cpu->arena);
        cpu->arena_bytes = 0;
        cpu->arena = memory_pages(bytes);
        if (!cpu->arena)
            return fail(ENOMEM, "out of memory: %llu bytes for batches of %u; use a smaller one",
                        (unsigned long long)bytes, cpu->model.config.batch_size);
        cpu->arena_bytes = bytes;
        for (struct cpu_program *program = cpu->programs; program; program = program->next)
            program->bound = NULL;
        code = clear(&cpu->model.config, cpu->arena, bytes); /* fault the memory in off the clock */
        if (code)
            return code;
    }
    return bind_program(*found, cpu->arena);
}

static int plan_int8(struct cpu_model *model, const float *ranges)
{
    model->quantised = memory_array(model->graph->node_count, sizeof *model->quantised);
    if (!model->quantised)
        return -ENOMEM;
    quantise_plan(model->graph, ranges, model->quantised);
    model->homes_known = true;
    return 0;
}

static int cpu_open(void *state, const void *settings, const struct backend_config *config)
{
    struct cpu_state *cpu = state;
    struct cpu_program *program;

    cpu->model.config = *config;
    if (cpu->model.config.threads == 0)
        cpu->model.config.threads = thread_cpu_count();
    omp_set_num_threads((int)cpu->model.config.threads);
    int code = open_model(cpu, settings);
    if (code == 0 && config->ranges)
        return plan_int8(&cpu->model,
                         config->ranges); /* programs contain weights, so not before load() */
    return code ? code : find_program(cpu, config->batch_size, config->training, &program);
}

static void forget_programs(struct cpu_state *cpu)
{
    while (cpu->programs) {
        struct cpu_program *next = cpu->programs->next;
        destroy_program(cpu->programs);
        cpu->programs = next;
    }
}

static void cpu_close(void *state)
{
    struct cpu_state *cpu = state;
    struct cpu_model *model = &cpu->model;

    forget_programs(cpu);
    free(model->quantised);
    cpu_dnnl_close(&model->dnnl);
    free(model->home);
    free(model->canonical);
    free(model->statistics);
    for (int i = 0; i < 3; i++)
        free(cpu->blocks[i]);
    free(cpu->arena);
}

/* ---- the canonical layout ---- */

/* Convert one arena from or to the canonical layout; either side may be NULL. */
static int translate(const struct cpu_model *model, const float *from, float *to, bool home_first)
{
    int code = 0;

    for (uint32_t i = 0; from && to && i < model->graph->parameter_count && code == 0; i++) {
        const uint64_t offset = model->graph->parameters[i].offset;
        const struct cpu_layout *home = model->home[i], *plain = model->canonical[i];
        code = cpu_reorder(&model->dnnl, home_first ? home : plain, from + offset,
                           home_first ? plain : home, to + offset);
        if (code == 0 && !home_first)
            code = tick_ask(model->config.tick);
    }
    return code;
}

static int cpu_load(void *state, const float *parameters, const float *momenta,
                    const float *statistics)
{
    struct cpu_state *cpu = state;
    struct cpu_model *model = &cpu->model;

    omp_set_num_threads((int)cpu->model.config.threads);
    int code = translate(model, parameters, model->parameters, false);
    if (code == 0)
        code = translate(model, momenta, model->momenta, false);
    if (statistics)
        memcpy(model->statistics, statistics, model->graph->statistic_floats * sizeof *statistics);
    model->parameter_version++;
    if (model->quantised)
        forget_programs(cpu);
    return code;
}

static int cpu_save(void *state, float *parameters, float *momenta, float *statistics,
                    float *gradients)
{
    struct cpu_state *cpu = state;
    const struct cpu_model *model = &cpu->model;

    omp_set_num_threads((int)cpu->model.config.threads);
    int code = translate(model, model->parameters, parameters, true);
    if (code == 0)
        code = translate(model, model->momenta, momenta, true);
    if (code == 0)
        code = translate(model, model->gradients, gradients, true);
    if (statistics)
        memcpy(statistics, model->statistics, model->graph->statistic_floats * sizeof *statistics);
    return code;
}

/* ---- computing ---- */

static float *address_of(const struct cpu_program *program, uint32_t buffer)
{
    return buffer < program->buffer_count ? program->buffers[buffer].address : NULL;
}

struct images {
    const uint8_t *rows;
    float *values;
    size_t plane;
};

static void normalise_images(const void *context, uint64_t first, uint64_t end)
{
    const struct images *images = context;
    const size_t offset = first * 3 * images->plane;

    kernel_normalise((uint32_t)(end - first), images->plane, images->rows + offset, backend_mean,
                     backend_deviation, images->values + offset);
}

/* Sum the gradients from a ReLU's two consumers and apply the ReLU's backward pass: one pass over
 * memory, where oneDNN's sum and eltwise take two. */
struct sum_relu {
    const void *a, *b, *output;
    void *sum;
};

VECTOR_CLONES
static void sum_relu_part(const void *context, uint64_t first, uint64_t end)
{
    const struct sum_relu *with = context;
    const float *a = with->a, *b = with->b, *output = with->output;
    float *sum = with->sum;

    for (uint64_t i = first; i < end; i++)
        sum[i] = output[i] <= 0 ? 0 : a[i] + b[i];
}

VECTOR_CLONES
static void sum_relu_part_bf16(const void *context, uint64_t first, uint64_t end)
{
    const struct sum_relu *with = context;
    const uint16_t *a = with->a, *b = with->b, *output = with->output;
    uint16_t *sum = with->sum;

    for (uint64_t i = first; i < end; i++)
        sum[i] = bf16_to_float(output[i]) <= 0
                     ? 0
                     : bf16_of_float(bf16_to_float(a[i]) + bf16_to_float(b[i]));
}

static int run_step(const struct cpu_program *program, const struct cpu_step *step,
                    const struct trainer_batch *batch, struct backend_loss *loss)
{
    const struct cpu_model *model = program->model;
    const struct graph_node *node = &model->graph->nodes[step->node];
    const size_t plane = (size_t)node->shape.height * node->shape.width;
    const size_t count = program->count * graph_node_floats(node);
    const uint32_t channels = node->shape.channels, classes = model->graph->classes;
    float *source = address_of(program, step->source), *target = address_of(program, step->target);
    float *other = address_of(program, step->other), *running;
    struct kernel_loss found = {0};

    switch (step->kind) {
    case CPU_PRIMITIVE:
        return dnnl_primitive_execute(step->primitive, model->dnnl.stream, step->argument_count,
                                      step->arguments)
                   ? fail(EIO, "backend cpu: oneDNN failed to compute %s", node->name)
                   : 0;
    case CPU_NORMALISE:
        cpu_share(program->count, 1, normalise_images,
                  &(struct images){batch->rows, target, plane});
        return 0;
    case CPU_STATISTICS:
        running = model->statistics + node->statistics;
        kernel_batch_norm_statistics(channels, program->count * plane, node->momentum, source,
                                     target, running, running + channels);
        return 0;
    case CPU_FOLD:
        graph_fold_norm(model->graph, step->node, step->norm, model->parameters, model->statistics,
                        source, target, other);
        return 0;
    case CPU_SUM_RELU_BACKWARD:
        cpu_share(step->floats, 2 * LINE_FLOATS,
                  model->type == dnnl_bf16 ? sum_relu_part_bf16 : sum_relu_part,
                  &(struct sum_relu){source, other, program->buffers[step->mask].address, target});
        return 0;
    case CPU_DROPOUT:
        kernel_dropout(count, kernel_dropout_key(model->config.seed, batch->step, step->node),
                       node->dropout_rate, source, target);
        return 0;
    case CPU_DROPOUT_BACKWARD:
        memset(target, 0, count * sizeof *target); /* the kernel accumulates */
        kernel_dropout_backward(count,
                                kernel_dropout_key(model->config.seed, batch->step, step->node),
                                node->dropout_rate, source, target);
        return 0;
    case CPU_OBSERVE:
        return calibration_observe(model->config.calibration, step->node, source, step->floats);
    case CPU_LOSS:
        if (batch->logits)
            memcpy(batch->logits, source, (size_t)program->count * classes * sizeof *source);
        if (batch->labels)
            found = kernel_cross_entropy(program->count, classes, source, batch->labels,
                                         batch->label_smoothing, program->training ? target : NULL);
        *loss = backend_loss_of(program->count, &found);
        return 0;
    case CPU_READY:
        break;
    }
    return batch->ready ? batch->ready(batch->context, step->ready_floats) : 0;
}

static int run_program(struct cpu_program *program, const struct trainer_batch *batch,
                       struct backend_loss *loss)
{
    const bool parameters_changed = program->parameter_version != program->model->parameter_version;
    uint64_t since_ns = program->took_ns ? clock_now_ns() : 0;
    int code = 0;

    assert(batch->count == program->count && batch->learns == program->training && program->bound);
    for (uint32_t i = 0; i < program->step_count && code == 0; i++) {
        code = tick_ask(batch->tick);
        if (code == 0 && (parameters_changed || !program->steps[i].of_parameters))
            code = run_step(program, &program->steps[i], batch, loss);
        schedule_lap(program->took_ns ? &program->took_ns[i] : NULL, &since_ns);
    }
    if (code == 0) /* else some that are computed once may be missing */
        program->parameter_version = program->model->parameter_version;
    return code;
}

static int cpu_run(void *state, const struct trainer_batch *batch, struct backend_loss *loss)
{
    struct cpu_program *program;

    if (!batch->rows)
        return 0; /* nothing is ever in flight */
    int code = find_program(state, batch->count, batch->learns, &program);
    if (code == 0)
        code = run_program(program, batch, loss);
    if (code == 0 && batch->learns)
        program->model->parameter_version++; /* BN's running statistics changed, and other programs
                                                read them */
    return code;
}

static int cpu_prepare(void *state, uint32_t count, bool learns)
{
    struct cpu_program *program;

    return find_program(state, count, learns, &program);
}

static void cpu_memory(void *state, struct backend_memory *memory)
{
    const struct cpu_state *cpu = state;
    const struct cpu_model *model = &cpu->model;

    *memory = (struct backend_memory){.parameters = model->parameters,
                                      .gradients = model->gradients,
                                      .momenta = model->momenta,
                                      .statistics = model->statistics,
                                      .activation_bytes = cpu->arena_bytes};
    for (uint32_t i = 0; i < model->graph->parameter_count; i++)
        memory->layout = cpu_layout_hash(memory->layout, model->home[i]);
    for (const struct cpu_program *program = cpu->programs; program; program = program->next)
        memory->workspace_bytes += program->kept_bytes;
}

/* The sum of squares of all gradients is added up in the same order by any number of threads: ranks
 * that have the same gradients must make the same update. */
enum { SQUARES_PARTS = 256 };

struct update_work {
    const struct graph *graph;
    struct kernel_update update;
    struct backend_memory arenas;
    double *squares; /* of each part */
};

static void square_part(const void *context, uint64_t first, uint64_t end)
{
    const struct update_work *work = context;
    const uint64_t count = work->graph->parameter_floats;

    for (uint64_t part = first; part < end; part++) {
        const uint64_t from = count * part / SQUARES_PARTS;
        const uint64_t to = count * (part + 1) / SQUARES_PARTS;
        work->squares[part] = kernel_squares(to - from, work->arenas.gradients + from);
    }
}

static void update_part(const void *context, uint64_t first, uint64_t end)
{
    const struct update_work *work = context;

    backend_update_host(work->graph, &work->arenas, &work->update, first, end);
}

static int cpu_update(void *state, const struct kernel_update *update)
{
    struct cpu_state *cpu = state;
    double parts[SQUARES_PARTS];
    struct update_work work = {
        .graph = cpu->model.config.graph, .update = *update, .squares = parts};
    const uint64_t floats = work.graph->parameter_floats;

    cpu_memory(state, &work.arenas);
    omp_set_num_threads((int)cpu->model.config.threads);
    if (update->clip_norm > 0) {
        double squares = 0;
        cpu_share(SQUARES_PARTS, 1, square_part, &work);
        for (int i = 0; i < SQUARES_PARTS; i++)
            squares += parts[i];
        work.update = backend_clip(update, squares);
    }
    cpu_share(floats, LINE_FLOATS, update_part, &work);
    cpu->model.parameter_version++;
    return 0;
}

/* ---- the schedule ---- */

static int start_timing(void *state)
{
    const struct cpu_state *cpu = state;
    struct cpu_program *program = cpu->programs;

    program->took_ns = memory_array(program->step_count, sizeof *program->took_ns);
    return program->took_ns ? 0 : -ENOMEM;
}

static int cpu_schedule(const void *settings, const struct schedule_request *request,
                        struct schedule *schedule)
{
    struct cpu_state cpu = {
        .model.config = {.graph = request->graph,
                         .batch_size = request->batch_size,
                         .training = request->training,
                         .ranges = request->ranges,
                         .threads = request->threads ? request->threads : thread_cpu_count()}};
    struct cpu_program *program = NULL;
    double update_ns = 0;

    int code = open_model(&cpu, settings);
    if (code == 0 && request->ranges)
        code = plan_int8(&cpu.model, request->ranges);
    if (code == 0 && (request->passes || request->int8)) /* an INT8 program contains its weights */
        code = backend_rehearse(&iobench_backend_cpu, &cpu, request, start_timing, &update_ns);
    if (code == 0)
        code = make_program(&cpu, request->batch_size, request->training, &program);
    if (code == 0)
        code = cpu_program_list(program, request->passes, schedule);
    if (code == 0 && request->training)
        code = schedule_add_update(schedule, request->graph, "kernel_sgd", update_ns);
    if (code == 0 && request->passes)
        code = cpu_peaks(&cpu.model.dnnl, cpu.model.type, schedule);
    cpu_close(&cpu);
    return code;
}

const struct backend_ops iobench_backend_cpu = {
    .plugin = {.name = "cpu",
               .settings_size = sizeof(struct cpu_settings),
               .state_size = sizeof(struct cpu_state)},
    .check = check_settings,
    .open = cpu_open,
    .close = cpu_close,
    .load = cpu_load,
    .save = cpu_save,
    .run = cpu_run,
    .prepare = cpu_prepare,
    .update = cpu_update,
    .memory = cpu_memory,
    .schedule = cpu_schedule,
};
