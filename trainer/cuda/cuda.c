/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda backend's contract, the memory that programs run in, and batches in flight. It is a
 * module; trainer/backend_cuda.c is its front end in the program.
 *
 * Rows are uploaded to one of slot_count slots of the device on an upload stream, and compute waits
 * for them there; the host waits only for the copy, after which the rows belong to the caller
 * again. Usually a batch is put on the compute stream right after its upload; if the host exchanges
 * gradients between steps, it is put there when the slots are full.
 *
 * Invariants: passes [reported, started) are computed, [started, given) are or will be uploaded;
 * together they are at most slot_count. Pass n has slot n % slot_count, which pass n - slot_count
 * left when it was reported. Its flight is n % (slot_count + 1), so that the moments of the pass
 * before the oldest are still known when the oldest is reported.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "trainer/cuda/program.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Place of a batch on the device until its first step has read it. */
struct cuda_slot {
    struct cuda_header *header;
    uint8_t *rows;
};

struct cuda_state {
    struct cuda_model model;
    struct cuda_program *programs;
    void *arena;
    uint64_t arena_bytes;
    /* Batches in flight. */
    uint32_t slot_count;
    struct cuda_slot *slots;
    struct cuda_flight *flights;       /* slot_count + 1 */
    uint64_t given, started, reported; /* passes */
    uint64_t waited_ns;                /* time waited for batches since the last start */
    uint64_t rows_bytes, slot_bytes;   /* of a batch's rows; of all slots */
    bool is_stuck;                     /* the device does not answer: nothing may wait for it */
};

enum { LAYOUT = 0x4b525343 }; /* "KRSC" */

extern const struct backend_ops iobench_backend_cuda;
/* ---- memory ---- */

static int grow_memory(void **memory, uint64_t *bytes, uint64_t wanted, void *stream, bool *moved)
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
    int code = grow_memory(&cuda->arena, &cuda->arena_bytes, program->arena_bytes, stream, &moved);
    if (code == 0)
        code = grow_memory(&cuda->model.workspace, &cuda->model.workspace_bytes,
                           program->workspace_bytes, stream, &moved);
    for (struct cuda_program *other = cuda->programs; moved && other; other = other->next) {
        cuda_program_forget(other);
        other->bound = NULL;
    }
    if (code == 0)
        cuda_program_bind(program, cuda->arena);
    return code;
}

/* ---- batches in flight ---- */

static struct cuda_flight *flight_of(const struct cuda_state *cuda, uint64_t pass)
{
    return &cuda->flights[pass % (cuda->slot_count + 1)];
}

static int open_flights(struct cuda_state *cuda)
{
    struct cuda_model *model = &cuda->model;
    const struct graph_shape *shape = &model->graph->nodes[0].shape;
    const uint64_t batch = model->config.batch_size;
    int code = 0;

    cuda->rows_bytes = batch * shape->height * shape->width * 3;
    cuda->slot_count = model->config.late ? (uint32_t)model->settings->ahead + 1 : 1;
    cuda->slots = memory_array(cuda->slot_count, sizeof *cuda->slots);
    cuda->flights = memory_array(cuda->slot_count + 1, sizeof *cuda->flights);
    if (!cuda->slots || !cuda->flights)
        return -ENOMEM;
    for (uint32_t i = 0; i < cuda->slot_count; i++)
        cuda->slots[i] = (struct cuda_slot){cuda_allocate(model, model->header_bytes),
                                            cuda_allocate(model, cuda->rows_bytes)};
    for (uint32_t i = 0; i <= cuda->slot_count && code == 0; i++) {
        struct cuda_flight *flight = &cuda->flights[i];
        flight->staged = cuda_pin(model, model->header_bytes);
        flight->report = cuda_pin(model, sizeof *flight->report);
        for (int k = 0; k < CUDA_MOMENTS && code == 0; k++)
            code = runtime_event_create(&flight->moments[k]);
    }
    cuda->slot_bytes = cuda->slot_count * (cuda->rows_bytes + model->header_bytes);
    return code ? code : model->code;
}

static int mark_moment(const struct cuda_model *model, struct cuda_flight *flight,
                       enum cuda_moment moment)
{
    return runtime_event_record(flight->moments[moment], moment <= CUDA_UPLOADED
                                                             ? model->runtime.upload
                                                             : model->runtime.stream);
}

/* Start the upload of a batch into a free slot. Its gradients are those of its mean loss. */
static int upload_batch(struct cuda_state *cuda, const struct trainer_batch *batch)
{
    const struct cuda_model *model = &cuda->model;
    const struct cuda_slot *slot = &cuda->slots[cuda->given % cuda->slot_count];
    struct cuda_flight *flight = flight_of(cuda, cuda->given);
    void *stream = model->runtime.upload;
    struct cuda_header *header = flight->staged;
    uint64_t *keys = (uint64_t *)(void *)(header + 1);
    int32_t *labels = cuda_labels(model, header);
    const bool sums = model->type == DEVICE_FP16;
    const float loss_scale = (float)model->settings->loss_scale;
    uint32_t counted = 0;

    assert(cuda->given - cuda->reported < cuda->slot_count);
    flight->rows = slot->rows;
    flight->batch = *batch;
    flight->updated = flight->update_reported = false;
    cuda->waited_ns += batch->waited_ns;
    int code = mark_moment(model, flight, CUDA_UPLOAD);
    for (uint32_t i = 0; i < batch->count; i++) {
        labels[i] = batch->labels ? batch->labels[i] : -1;
        counted += labels[i] >= 0;
    }
    for (uint32_t i = 0; i < model->graph->node_count; i++)
        keys[i] = kernel_dropout_key(model->config.seed, batch->step, i);
    const float mean = counted ? 1.0f / (float)counted : 0;
    header->gradient_scale = sums ? loss_scale : mean;
    header->unscale = sums ? mean / loss_scale : 1;
    const float share = batch->continues ? 1 : batch->labelled ? 1.0f / (float)batch->labelled : 0;
    header->sum[0] = batch->adds ? share : 0;
    header->sum[1] = batch->adds || batch->continues ? share * (float)counted : 1;
    if (code == 0)
        code = runtime_copy(slot->header, header, model->header_bytes, stream);
    if (code == 0)
        code = runtime_copy(slot->rows, batch->rows,
                            cuda->rows_bytes / model->config.batch_size * batch->count, stream);
    if (code == 0)
        code = mark_moment(model, flight, CUDA_UPLOADED);
    cuda->given += code == 0;
    return code;
}

/* Put the oldest batch not yet started on the compute stream. The program is for the same number of
 * images and the same pass. */
static int start_flight(struct cuda_state *cuda, struct cuda_program *program)
{
    const struct cuda_model *model = &cuda->model;
    const struct cuda_slot *slot = &cuda->slots[cuda->started % cuda->slot_count];
    struct cuda_flight *flight = flight_of(cuda, cuda->started);
    void *stream = model->runtime.stream;

    flight->waited_ns = cuda->waited_ns;
    cuda->waited_ns = 0;
    int code = runtime_event_await(flight->moments[CUDA_UPLOADED], stream);
    if (code == 0)
        code = mark_moment(model, flight, CUDA_COMPUTE);
    if (code == 0) /* the address that captured graphs read */
        code = runtime_copy(model->header, slot->header, model->header_bytes, stream);
    if (code == 0)
        code = cuda_program_start(program, flight);
    if (code == 0)
        code = mark_moment(model, flight, CUDA_STEP_END);
    if (code == 0)
        code = runtime_copy(flight->report, model->report, sizeof *flight->report, stream);
    if (code == 0 && flight->batch.learns && !flight->batch.continues && model->host_gradients)
        code = runtime_copy(model->host_gradients, model->gradients,
                            model->graph->parameter_floats * sizeof(float), stream);
    if (code == 0)
        code = mark_moment(model, flight, CUDA_DONE);
    cuda->started += code == 0;
    return code;
}

/* The update after the batch started last begins, or is done. */
static int mark_update(struct cuda_state *cuda, bool done)
{
    struct cuda_flight *flight = flight_of(cuda, cuda->started - 1);

    flight->updated = done;
    return mark_moment(&cuda->model, flight, done ? CUDA_UPDATED : CUDA_UPDATE);
}

static int time_between(void *const first, void *const last, uint64_t *ns)
{
    double milliseconds = 0;
    int code = runtime_event_elapsed(first, last, &milliseconds);

    *ns = milliseconds > 0 ? (uint64_t)(milliseconds * 1e6) : 0;
    return code;
}

/* before: the pass before, or NULL. */
static int take_times(const struct cuda_model *model, const struct cuda_flight *flight,
                      const struct cuda_flight *before, struct trainer_times *times)
{
    void *const *moments = flight->moments;
    const uint64_t took_ns = flight->report->exchanged_ns - flight->report->gradients_ns;
    int code = time_between(moments[CUDA_UPLOAD], moments[CUDA_UPLOADED], &times->copy_ns);

    times->upload_ns = times->copy_ns;
    times->wait_ns = flight->waited_ns;
    /* Split the gap between the pass before and this one's first kernel. While the batch was being
     * uploaded, the device waited for the upload; before that for the host, which had no batch, or
     * was late for another reason, which is not counted. */
    if (code == 0 && before) {
        void *end = before->moments[before->updated ? CUDA_UPDATED : CUDA_DONE];
        uint64_t gap_ns = 0, uploaded_ns = 0;
        code = time_between(end, moments[CUDA_UPLOADED], &uploaded_ns);
        if (code == 0)
            code = time_between(end, moments[CUDA_COMPUTE], &gap_ns);
        if (times->upload_ns > uploaded_ns)
            times->upload_ns = uploaded_ns;
        gap_ns -= times->upload_ns < gap_ns ? times->upload_ns : gap_ns;
        if (times->wait_ns > gap_ns)
            times->wait_ns = gap_ns;
    }
    if (code == 0)
        code = time_between(moments[CUDA_COMPUTE], moments[CUDA_STEP_END], &times->compute_ns);
    /* What summing gradients, or copying them to the host, took beyond the rest of the step. */
    if (code == 0 && flight->batch.learns && !flight->batch.continues) {
        if (model->config.enqueue) {
            times->exchange_ns = took_ns < times->compute_ns ? took_ns : times->compute_ns;
            times->compute_ns -= times->exchange_ns;
        }
        if (model->host_gradients)
            code = time_between(moments[CUDA_STEP_END], moments[CUDA_DONE], &times->exchange_ns);
    }
    if (code == 0 && before && before->updated && !before->update_reported)
        code = time_between(before->moments[CUDA_UPDATE], before->moments[CUDA_UPDATED],
                            &times->update_ns);
    return code;
}

static int wait_for(struct cuda_state *cuda, const struct cuda_flight *flight,
                    enum cuda_moment moment)
{
    int code = runtime_event_wait_for(flight->moments[moment], cuda->model.config.rank_timeout_ns);

    cuda->is_stuck = code == -ETIMEDOUT;
    return code;
}

/* Wait for the oldest started batch. */
static int land_flight(struct cuda_state *cuda, struct backend_loss *loss)
{
    const struct cuda_flight *flight = flight_of(cuda, cuda->reported);
    const struct cuda_flight *before = cuda->reported ? flight_of(cuda, cuda->reported - 1) : NULL;
    const struct device_loss *found = &flight->report->loss;
    int code = wait_for(cuda, flight, CUDA_DONE);

    if (code)
        return code;
    assert(cuda->reported < cuda->started);
    cuda->reported++;
    *loss = (struct backend_loss){.count = flight->batch.count};
    if (flight->batch.labels) {
        loss->loss = found->counted ? found->loss / found->counted : 0;
        loss->correct = found->correct;
        loss->correct_top5 = found->correct_top5;
        loss->counted = found->counted;
    }
    return take_times(&cuda->model, flight, before, &loss->times);
}

/* ---- opening ---- */

static bool nothing_flies(const struct cuda_state *cuda)
{
    return cuda->given == cuda->reported;
}

static int cuda_load(void *state, const float *parameters, const float *momenta,
                     const float *statistics)
{
    struct cuda_state *cuda = state;

    assert(nothing_flies(cuda));
    return cuda_model_load(&cuda->model, parameters, momenta, statistics);
}

static int cuda_open(void *state, const void *settings_given, const struct backend_config *config)
{
    const struct cuda_settings *settings = settings_given;
    struct cuda_state *cuda = state;
    char *cached = settings->plans ? NULL : file_cache_path("cudnn-plans.json");
    const char *plans = settings->plans ? settings->plans : cached;

    if (plans && (!plans[0] || strcmp(plans, "none") == 0))
        plans = NULL;
    if (cached)
        folder_make_parent(cached); /* an error is reported when the file is written */
    int code = runtime_open(&cuda->model.runtime, (uint32_t)settings->device, config->local_rank);
    if (code == 0)
        code = dnn_open(&cuda->model.dnn,
                        &(struct dnn_config){
                            .runtime = &cuda->model.runtime,
                            .deterministic = settings->deterministic,
                            /* calibration runs too few batches to pay for timing engines */
                            .tournament = config->calibration ? 1 : (uint32_t)settings->tournament,
                            .plans = plans});
    free(cached);
    if (code == 0)
        code = cuda_model_open(&cuda->model, settings, config);
    if (code == 0 && config->calibration) {
        cuda->model.magnitudes =
            cuda_zeros(&cuda->model, config->graph->node_count * sizeof *cuda->model.magnitudes);
        cuda->model.scratch = cuda_zeros(&cuda->model, sizeof *cuda->model.scratch);
        code = cuda->model.code;
    }
    if (code == 0)
        code = open_flights(cuda);
    if (code)
        return code;
    float *statistics = memory_array(config->graph->statistic_floats + 1, sizeof *statistics);
    if (!statistics)
        return -ENOMEM;
    graph_initialise_statistics(config->graph, statistics);
    code = cuda_load(cuda, NULL, NULL, statistics);
    free(statistics);
    struct cuda_program *program;
    return code ? code : find_program(cuda, config->batch_size, config->training, &program);
}

static void cuda_close(void *state)
{
    struct cuda_state *cuda = state;

    if (cuda->is_stuck) /* freeing memory would wait for it; exiting does not */
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
    for (uint32_t i = 0; cuda->flights && i <= cuda->slot_count; i++)
        for (int k = 0; k < CUDA_MOMENTS; k++)
            runtime_event_destroy(cuda->flights[i].moments[k]);
    free(cuda->slots);
    free(cuda->flights);
    cuda_model_close(&cuda->model);
    runtime_release(cuda->arena);
    runtime_close(&cuda->model.runtime);
}

/* ---- the contract ---- */

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
    const bool late = model->config.late && !batch->logits;
    const bool holds = late && batch->learns && model->config.exchanged_by_host;
    const uint64_t held_most = holds && batch->rows ? cuda->slot_count - 1 : 0;
    const struct cuda_flight *flight = NULL; /* the one started, if any */
    struct cuda_program *program = NULL;
    int code = 0;

    assert(nothing_flies(cuda) || late);
    assert(cuda->reported <= cuda->started && cuda->started <= cuda->given);
    if (batch->rows && cuda->given - cuda->reported == cuda->slot_count)
        code = land_flight(cuda, loss);
    if (code == 0 && batch->rows)
        code = upload_batch(cuda, batch);
    if (code == 0 && cuda->given - cuda->started > held_most) {
        flight = flight_of(cuda, cuda->started); /* the oldest */
        code = find_program(cuda, flight->batch.count, flight->batch.learns, &program);
        if (code == 0)
            code = start_flight(cuda, program);
    }
    if (batch->rows) {
        /* until it is uploaded, and belongs to the caller again */
        int given = code ? runtime_wait(model->runtime.upload)
                         : runtime_event_synchronise(
                               flight_of(cuda, cuda->given - 1)->moments[CUDA_UPLOADED]);
        code = code ? code : given;
    }
    const bool lands = batch->rows ? !late || (holds && flight) : !nothing_flies(cuda);
    struct cuda_flight *last = cuda->reported ? flight_of(cuda, cuda->reported - 1) : NULL;
    if (code == 0 && !batch->rows && !lands && last && last->updated && !last->update_reported) {
        code = wait_for(cuda, last, CUDA_UPDATED); /* nothing else is left to report */
        if (code == 0)
            code = time_between(last->moments[CUDA_UPDATE], last->moments[CUDA_UPDATED],
                                &loss->times.update_ns);
        last->update_reported = code == 0;
    }
    if (code == 0 && lands)
        code = land_flight(cuda, loss);
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
    if (code || !flight || flight->batch.continues || !batch->ready)
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

static int cuda_update(void *state, const struct kernel_update *update)
{
    struct cuda_state *cuda = state;
    struct cuda_model *model = &cuda->model;
    int code = mark_update(cuda, false);

    if (code == 0 && model->host_gradients)
        code = runtime_copy(model->gradients, model->host_gradients,
                            model->graph->parameter_floats * sizeof(float), model->runtime.stream);
    if (code == 0)
        code = device_optimise(&model->table, update, model->runtime.stream);
    return code ? code : mark_update(cuda, true);
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
    if (!((struct cuda_state *)state)->is_stuck) /* unpinning would wait for the device */
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
        .batch_bytes = cuda->slot_bytes,
        .pinned_bytes = model->pinned_bytes};
}

static const char *cuda_notice(const void *state)
{
    return ((const struct cuda_state *)state)->model.notice;
}

/* ---- the schedule ---- */

static void name_fusions(uint32_t fusion, char *text, size_t bytes)
{
    static const struct {
        uint32_t fusion;
        const char *name;
    } names[] = {{DNN_PROLOGUE | DNN_SUMMED | DNN_DUAL, "two BNs, add, ReLU before"},
                 {DNN_PROLOGUE | DNN_SUMMED, "BN, add, ReLU before"},
                 {DNN_PROLOGUE, "BN, ReLU before"},
                 {DNN_NORM | DNN_SUMMED | DNN_DUAL, "ReLU, add, two BNs backward"},
                 {DNN_NORM | DNN_SUMMED, "ReLU, add, BN backward"},
                 {DNN_NORM, "ReLU, BN backward"},
                 {DNN_SCALED, "BN"},
                 {DNN_BIASED, "bias"},
                 {DNN_ADDED, "add"},
                 {DNN_RECTIFIED, "ReLU"},
                 {DNN_STATISTICS, "BN statistics"}};
    size_t used = 0;

    if (fusion & DNN_SCALED) /* its bias is BN's */
        fusion &= ~(uint32_t)DNN_BIASED;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names && used < bytes; i++) {
        if ((fusion & names[i].fusion) != names[i].fusion)
            continue;
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", names[i].name);
        fusion &= ~names[i].fusion;
    }
}

/* Tensors are operands; BN kernels also read and write vectors of one float per channel. */
static void describe_kernel(const struct cuda_program *program, const struct cuda_step *step,
                            struct schedule_step *row)
{
    static const struct {
        const struct cuda_kernel *kernel;
        uint32_t reads, writes;
    } vectors[] = {{&cuda_kernel_statistics, 4, 6},    {&cuda_kernel_norm_finish, 6, 10},
                   {&cuda_kernel_norm_infer, 4, 2},    {&cuda_kernel_affine, 2, 0},
                   {&cuda_kernel_bias, 1, 0},          {&cuda_kernel_stem, 2, 0},
                   {&cuda_kernel_norm_backward, 5, 5}, {&cuda_kernel_norm_apply, 3, 0},
                   {&cuda_kernel_stem_backward, 5, 5}, {&cuda_kernel_bias_gradient, 0, 1}};
    const struct graph_node *node = &program->model->graph->nodes[step->node];

    for (uint32_t i = 0; i < step->operand_count; i++)
        *(step->operands[i].written ? &row->write_bytes : &row->read_bytes) +=
            program->buffers[step->operands[i].buffer].bytes;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (vectors[i].kernel == step->kernel) {
            row->read_bytes += (uint64_t)vectors[i].reads * node->shape.channels * sizeof(float);
            row->write_bytes += (uint64_t)vectors[i].writes * node->shape.channels * sizeof(float);
        }
    if (step->kernel == &cuda_kernel_input)
        row->read_bytes += (uint64_t)program->count * node->shape.height * node->shape.width * 3;
    if ((step->kernel == &cuda_kernel_affine && step->affine.with.relu) ||
        (step->kernel == &cuda_kernel_bias && step->affine.with.relu) ||
        (step->kernel == &cuda_kernel_sum && step->sum.relu))
        snprintf(row->fused, sizeof row->fused, "%sReLU",
                 step->kernel != &cuda_kernel_affine || step->operand_count < 3 ? ""
                 : step->affine.with.other_scale                                ? "BN, add, "
                                                                                : "add, ");
}

/* List the steps, as trainer/backend.h describes them, with their mean times over `passes` runs;
 * 0: not timed. */
static int list_steps(const struct cuda_program *program, uint32_t passes, double update_ns,
                      struct schedule *schedule)
{
    enum schedule_phase phase = SCHEDULE_FORWARD;
    int code = 0;

    dnn_name_library(schedule->library, sizeof schedule->library);
    for (uint32_t i = 0; i < program->step_count && code == 0; i++) {
        const struct cuda_step *step = &program->steps[i];
        struct schedule_step row = {.node = step->node, .operation = step->kernel->operation};
        if (step->kernel == &cuda_kernel_ready)
            continue;
        row.phase = step->kernel == &cuda_kernel_loss ? SCHEDULE_LOSS : phase;
        if (row.phase == SCHEDULE_LOSS)
            phase = SCHEDULE_BACKWARD;
        if (passes)
            row.measured_ns = program->took_ns[i] / passes;
        snprintf(row.engine, sizeof row.engine, "%s", step->kernel->name);
        if (cuda_step_convolves(step)) {
            const struct dnn_shape *shape = &step->convolution.shape;
            const struct dnn_plan *plan = step->convolution.plan;
            for (enum dnn_tensor k = 0; k < DNN_TENSORS; k++)
                if (dnn_takes(shape, k))
                    *(dnn_writes(shape, k) ? &row.write_bytes : &row.read_bytes) +=
                        dnn_tensor_bytes(shape, k);
            row.flops = 2.0 * (double)graph_node_macs(program->model->graph, step->node) *
                        (double)shape->window.images;
            row.workspace_bytes = plan ? plan->workspace_bytes : 0;
            if (plan)
                snprintf(row.engine, sizeof row.engine, "cuDNN engine %lld",
                         (long long)plan->engine);
            name_fusions(shape->fusion, row.fused, sizeof row.fused);
        } else {
            describe_kernel(program, step, &row);
        }
        code = schedule_add(schedule, &row);
    }
    if (code || !program->training)
        return code;
    /* The update reads gradients as layers left them, and also writes the layers' copies. */
    const struct cuda_model *model = program->model;
    code = schedule_add_update(schedule, model->graph, "device_optimise", update_ns);
    for (uint32_t i = 0; i < model->graph->parameter_count && code == 0; i++) {
        struct schedule_step *row = &schedule->steps[schedule->count - 1];
        const uint64_t count = model->graph->parameters[i].count;
        const uint64_t bytes = count * device_type_bytes(model->type);
        if (model->compute[i] == cuda_parameter(model, i))
            continue;
        row->read_bytes -= count * sizeof(float) - bytes;
        row->write_bytes += bytes;
    }
    return code;
}

static int start_timing(void *state)
{
    return cuda_program_time(((struct cuda_state *)state)->programs);
}

/* Schedule for this machine's GPU, or for a named one, which need not be present. Only this
 * machine's can be timed. */
static int schedule_steps(const void *settings, const struct schedule_request *request,
                          struct schedule *schedule)
{
    const uint64_t device = ((const struct cuda_settings *)settings)->device;
    const struct backend_config config = {.graph = request->graph,
                                          .batch_size = request->batch_size,
                                          .training = request->training,
                                          .ranges = request->ranges};
    struct dnn_config dnn = {.described = request->device, .deterministic = true, .tournament = 1};
    struct cuda_state cuda = {.model.outlined = request->passes == 0};
    struct cuda_program *program = NULL;
    double update_ns = 0;
    int code = 0;

    if (request->passes == 0 && request->device > 0 && request->device < 80)
        return fail(EINVAL,
                    "backend cuda needs compute capability 8.0: name an a100, h100 or h200");
    if (request->passes || request->device == 0) {
        struct runtime runtime = {0};
        if (runtime_usable())
            return fail(ENODEV, request->passes
                                    ? "--measure needs a GPU, and none is usable in this machine"
                                    : "no usable GPU in this machine: name one with --gpu");
        code = runtime_open(&runtime, (uint32_t)device, 0);
        if (code == 0 && request->device && request->device != runtime.capability)
            code =
                fail(EINVAL,
                     "--measure runs on this machine's GPU, %s of compute capability %u.%u: name "
                     "another --gpu, or none",
                     runtime.name, runtime.capability / 10, runtime.capability % 10);
        dnn.described = runtime.capability;
        runtime_close(&runtime);
    }
    if (code == 0 && request->passes) {
        code = cuda_open(&cuda, settings, &config);
        if (code == 0)
            code =
                backend_rehearse(&iobench_backend_cuda, &cuda, request, start_timing, &update_ns);
    } else if (code == 0) {
        code = dnn_open(&cuda.model.dnn, &dnn);
        if (code == 0)
            code = cuda_model_open(&cuda.model, settings, &config);
        if (code == 0) {
            program = cuda_compile(&cuda.model, request->batch_size, request->training);
            code = program ? 0 : -EIO;
        }
        cuda.programs = program;
    }
    if (code == 0)
        code = list_steps(cuda.programs, request->passes, update_ns, schedule);
    cuda_close(&cuda);
    return code;
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
