/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda backend's contract, and the memory that programs run in. It is a module;
 * trainer/backend_cuda.c is its front end in the program.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "trainer/cuda/build.h"
#include "trainer/cuda/flight.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct cuda_state {
    struct cuda_model model;
    struct cuda_flights flights;
    struct cuda_program *programs;
    void *arena;
    uint64_t arena_bytes;
};

enum { LAYOUT = 0x4b525343 }; /* "KRSC" */

const char *iobench_module_release(void);
extern const struct backend_ops iobench_backend_cuda;
const char *iobench_module_release(void)
{
    return PACKAGE_VERSION;
}

/* ---- memory ---- */

static int grow(void **memory, uint64_t *bytes, uint64_t wanted, void *stream, bool *moved)
{
    if (wanted <= *bytes)
        return 0;
    if (*memory)
        runtime_wait(stream); /* a running step may still use it */
    runtime_release(*memory);
    *bytes = 0;
    *memory = runtime_allocate(wanted);
    if (!*memory)
        return -ENOMEM; /* the reason names the requested size */
    *bytes = wanted;
    *moved = true;
    return 0;
}

/* Returns the program for this many images; compiles it on first use. */
static int find_program(struct cuda_state *cuda, uint32_t count, bool training,
                        struct cuda_program **found)
{
    struct cuda_program *program = cuda->programs;

    while (program && (program->count != count || program->training != training))
        program = program->next;
    if (!program) {
        program = cuda_compile(&cuda->model, count, training);
        if (!program)
            return -EIO;
        program->next = cuda->programs;
        cuda->programs = program;
        if (cuda->model.dnn && dnn_keep(cuda->model.dnn) && !cuda->model.notice[0])
            snprintf(cuda->model.notice, sizeof cuda->model.notice,
                     "chosen engines are not kept, and will be timed again: %s", fail_reason());
    }
    *found = program;
    bool moved = false;
    void *stream = cuda->model.runtime.stream;
    int code = grow(&cuda->arena, &cuda->arena_bytes, program->arena_bytes, stream, &moved);
    if (code == 0)
        code = grow(&cuda->model.workspace, &cuda->model.workspace_bytes, program->workspace_bytes,
                    stream, &moved);
    for (struct cuda_program *other = cuda->programs; moved && other; other = other->next) {
        cuda_program_forget(other);
        other->bound = NULL;
    }
    if (code == 0)
        cuda_program_bind(program, cuda->arena);
    return code;
}

/* ---- opening ---- */

/* A path in the user's cache folder; "" if there is none or none is wanted. */
static void plans_path(const struct cuda_settings *settings, char *path, size_t bytes)
{
    char *cached = NULL;

    path[0] = '\0';
    if (settings->plans) {
        if (strcmp(settings->plans, "none") != 0)
            snprintf(path, bytes, "%s", settings->plans);
        return;
    }
    cached = file_cache_path("cudnn-plans.json");
    if (!cached)
        return;
    snprintf(path, bytes, "%s", cached);
    free(cached);
    folder_make_parent(path); /* an error is reported when the file is written */
}

static int load(struct cuda_state *cuda, const float *parameters, const float *momenta,
                const float *statistics)
{
    int code = cuda_model_load(&cuda->model, parameters, momenta, statistics);

    return code ? code : cuda_int8_load(&cuda->model);
}

static int cuda_open(void *state, const void *settings_given, const struct backend_config *config)
{
    const struct cuda_settings *settings = settings_given;
    struct cuda_state *cuda = state;
    char path[1100];

    int code = runtime_open(&cuda->model.runtime, (uint32_t)settings->device, config->local_rank);
    plans_path(settings, path, sizeof path);
    if (code == 0)
        code = dnn_open(&cuda->model.dnn,
                        &(struct dnn_config){
                            .runtime = &cuda->model.runtime,
                            .deterministic = settings->deterministic,
                            /* calibration runs too few batches to pay for timing engines */
                            .tournament = config->calibration ? 1 : (uint32_t)settings->tournament,
                            .plans = path[0] ? path : NULL});
    if (code == 0)
        code = cuda_model_open(&cuda->model, settings, config);
    if (code == 0)
        code = cuda_int8_open(&cuda->model);
    if (code == 0 && config->calibration) {
        cuda->model.magnitudes =
            cuda_zeros(&cuda->model, config->graph->node_count * sizeof *cuda->model.magnitudes);
        cuda->model.scratch = cuda_zeros(&cuda->model, sizeof *cuda->model.scratch);
        code = cuda->model.code;
    }
    if (code == 0)
        code = cuda_flights_open(&cuda->flights, &cuda->model);
    if (code)
        return code;
    float *statistics = memory_array(config->graph->statistic_floats + 1, sizeof *statistics);
    if (!statistics)
        return -ENOMEM;
    graph_initialise_statistics(config->graph, statistics);
    code = load(cuda, NULL, NULL, statistics);
    free(statistics);
    struct cuda_program *program;
    return code ? code : find_program(cuda, config->batch_size, config->training, &program);
}

static void cuda_close(void *state)
{
    struct cuda_state *cuda = state;

    if (cuda->flights.is_stuck) /* freeing memory would wait for it; exiting does not */
        return;
    if (cuda->model.runtime.upload) {
        runtime_wait(cuda->model.runtime.upload);
        runtime_wait(cuda->model.runtime.stream);
    }
    while (cuda->programs) {
        struct cuda_program *next = cuda->programs->next;
        cuda_program_destroy(cuda->programs);
        cuda->programs = next;
    }
    dnn_close(cuda->model.dnn);
    cuda_flights_close(&cuda->flights);
    cuda_int8_close(&cuda->model);
    cuda_model_close(&cuda->model);
    runtime_release(cuda->arena);
    runtime_close(&cuda->model.runtime);
}

/* ---- the contract ---- */

static bool nothing_flies(const struct cuda_state *cuda)
{
    return cuda->flights.given == cuda->flights.reported;
}

static int cuda_load(void *state, const float *parameters, const float *momenta,
                     const float *statistics)
{
    struct cuda_state *cuda = state;

    assert(nothing_flies(cuda));
    return load(cuda, parameters, momenta, statistics);
}

static int cuda_save(void *state, float *parameters, float *momenta, float *statistics,
                     float *gradients)
{
    struct cuda_state *cuda = state;

    assert(nothing_flies(cuda));
    return cuda_model_save(&cuda->model, parameters, momenta, statistics, gradients);
}

/* If the host exchanges gradients, a step ends before the next one starts, so batches wait after
 * their upload. Otherwise they are queued on the compute stream, and only their results are
 * late. */
static int cuda_run(void *state, const struct trainer_batch *batch, struct backend_loss *loss)
{
    struct cuda_state *cuda = state;
    struct cuda_model *model = &cuda->model;
    struct cuda_flights *flights = &cuda->flights;
    const bool late = model->config.late && !batch->logits;
    const bool holds = late && batch->learns && model->config.exchanged_by_host;
    const uint64_t held_most = holds && batch->rows ? flights->slot_count - 1 : 0;
    const struct cuda_flight *flight = NULL; /* the one started, if any */
    struct cuda_program *program = NULL;
    int code = 0;

    assert(nothing_flies(cuda) || late);
    if (batch->rows && flights->given - flights->reported == flights->slot_count)
        code = cuda_flight_land(flights, loss);
    if (code == 0 && batch->rows)
        code = cuda_flight_give(flights, batch);
    if (code == 0 && flights->given - flights->started > held_most) {
        flight = cuda_flight_next(flights);
        code = find_program(cuda, flight->count, flight->learns, &program);
        if (code == 0)
            code = cuda_flight_start(flights, program);
    }
    if (batch->rows) {
        int given = code ? runtime_wait(model->runtime.upload) : cuda_flight_given(flights);
        code = code ? code : given;
    }
    const bool lands = batch->rows ? !late || (holds && flight) : !nothing_flies(cuda);
    if (code == 0 && !batch->rows && !lands)
        code = cuda_flights_settle(flights, &loss->times);
    if (code == 0 && lands)
        code = cuda_flight_land(flights, loss);
    if (code == 0 && lands && flight)
        code = cuda_program_add_times(program);
    if (code == 0 && batch->logits)
        memcpy(batch->logits, model->logits_result,
               (size_t)batch->count * model->graph->classes * sizeof *batch->logits);
    if (code == 0 && model->config.calibration && nothing_flies(cuda)) {
        struct calibration *calibration = model->config.calibration;
        code = runtime_copy(calibration->histograms, model->magnitudes,
                            model->graph->node_count * sizeof *model->magnitudes,
                            model->runtime.stream);
        if (code == 0)
            code = runtime_wait(model->runtime.stream);
        if (code == 0)
            code = calibration_check(calibration);
    }
    if (code || !flight || flight->continues || !batch->ready)
        return code;
    for (uint32_t i = 0; i < program->step_count && code == 0; i++) /* all gradients are final */
        if (program->steps[i].kernel == &cuda_kernel_ready)
            code = batch->ready(batch->context, program->steps[i].ready.floats);
    return code;
}

static int cuda_prepare(void *state, uint32_t count, bool learns)
{
    struct cuda_program *program;

    assert(nothing_flies(state));
    return find_program(state, count, learns, &program);
}

/* NCCL waits forever for graphs that contain its sums. */
static void cuda_forget(void *state)
{
    const struct cuda_state *cuda = state;

    for (struct cuda_program *program = cuda->programs; program; program = program->next)
        cuda_program_forget(program);
}

static int cuda_update(void *state, const struct backend_update *update)
{
    struct cuda_state *cuda = state;
    struct cuda_model *model = &cuda->model;
    const struct device_update wanted = {.adapts = update->recipe == BACKEND_LARS,
                                         .decays_fc_bias = update->decays_fc_bias,
                                         .rate = update->rate,
                                         .rate_before = update->rate_before,
                                         .momentum = update->momentum,
                                         .decay = update->decay,
                                         .eta = update->eta,
                                         .gradient_scale = update->gradient_scale,
                                         .clip_norm = update->clip_norm};
    int code = cuda_flight_updated(&cuda->flights, false);

    if (code == 0 && model->host_gradients)
        code = runtime_copy(model->gradients, model->host_gradients,
                            model->graph->parameter_floats * sizeof(float), model->runtime.stream);
    if (code == 0)
        code = device_optimise(&model->table, &wanted, model->runtime.stream);
    return code ? code : cuda_flight_updated(&cuda->flights, true);
}

static void *cuda_batches(void *state, size_t bytes)
{
    struct cuda_model *model = &((struct cuda_state *)state)->model;
    void *pinned = runtime_pin(bytes);

    model->pinned_bytes += pinned ? bytes : 0;
    return pinned;
}

static void cuda_forget_batches(void *state, void *memory)
{
    if (!((struct cuda_state *)state)->flights.is_stuck) /* unpinning would wait for the device */
        runtime_unpin(memory);
}

static void cuda_memory(void *state, struct backend_memory *memory)
{
    const struct cuda_state *cuda = state;
    const struct cuda_model *model = &cuda->model;

    *memory = (struct backend_memory){
        .parameters = model->parameters,
        .gradients = model->host_gradients ? model->host_gradients : model->gradients,
        .momenta = model->momenta,
        .statistics = model->statistics,
        .on_device = !model->host_gradients,
        .device = model->runtime.device,
        .stream = model->runtime.stream,
        .layout = LAYOUT,
        .activation_bytes = cuda->arena_bytes,
        .workspace_bytes = model->workspace_bytes,
        .device_bytes = model->device_bytes + cuda->arena_bytes + model->workspace_bytes,
        .batch_bytes = cuda->flights.slot_bytes,
        .pinned_bytes = model->pinned_bytes};
}

static const char *cuda_notice(const void *state)
{
    return ((const struct cuda_state *)state)->model.notice;
}

/* ---- the schedule ---- */

static int start_timing(void *state)
{
    return cuda_program_time(((struct cuda_state *)state)->programs);
}

/* Times are those of this machine's GPU, so no other may be named. */
static int measure(const void *settings, const struct schedule_request *request,
                   struct schedule *schedule)
{
    const uint64_t device = ((const struct cuda_settings *)settings)->device;
    const struct backend_config config = {.graph = request->graph,
                                          .batch_size = request->batch_size,
                                          .training = request->training,
                                          .ranges = request->ranges};
    struct cuda_state cuda = {0};
    struct runtime runtime = {0};
    double update_ns = 0;

    if (runtime_usable())
        return fail(ENODEV, "--measure needs a GPU, and none is usable in this machine");
    int code = runtime_open(&runtime, (uint32_t)device, 0);
    if (code == 0 && request->device && request->device != runtime.capability)
        code = fail(EINVAL,
                    "--measure runs on this machine's GPU, %s of compute capability %u.%u: name "
                    "another --gpu, or none",
                    runtime.name, runtime.capability / 10, runtime.capability % 10);
    runtime_close(&runtime);
    if (code)
        return code;
    code = cuda_open(&cuda, settings, &config);
    if (code == 0)
        code = backend_rehearse(&iobench_backend_cuda, &cuda, request, start_timing, &update_ns);
    if (code == 0)
        code = cuda_list_steps(cuda.programs, request->passes, update_ns, schedule);
    cuda_close(&cuda);
    return code;
}

static int schedule_steps(const void *settings, const struct schedule_request *request,
                          struct schedule *schedule)
{
    return (request->passes ? measure : cuda_schedule)(settings, request, schedule);
}

const struct backend_ops iobench_backend_cuda = {
    .plugin = {.name = "cuda",
               .summary = "the module behind the cuda backend",
               .settings_size = sizeof(struct cuda_settings),
               .state_size = sizeof(struct cuda_state),
               .usable = runtime_usable},
    .accumulates = true,
    .open = cuda_open,
    .close = cuda_close,
    .load = cuda_load,
    .save = cuda_save,
    .run = cuda_run,
    .prepare = cuda_prepare,
    .forget = cuda_forget,
    .update = cuda_update,
    .allocate = cuda_batches,
    .release = cuda_forget_batches,
    .memory = cuda_memory,
    .notice = cuda_notice,
    .schedule = schedule_steps,
};
