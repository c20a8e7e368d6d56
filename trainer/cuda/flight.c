/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches under way. Rows go to one of slot_count slots of the device on a stream of their own, and
 * compute waits for them there; the host waits for neither but for the copy, since the rows are
 * their giver's again when the call returns.
 *
 * Invariants: passes [told, started) are under way, at most slot_count of them. Pass n has slot
 * n % slot_count, which pass n - slot_count has left: it was told. Its flight is n % (slot_count +
 * 1), so that the moments of the pass before the oldest one are still known when that one is told.
 */
#include "trainer/cuda/cuda.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_flight *flight_of(const struct cuda_model *model, uint64_t pass)
{
    return &model->flights[pass % (model->slot_count + 1)];
}

/* ---- opening ---- */

int cuda_flights_open(struct cuda_model *model)
{
    const struct graph_shape *shape = &model->graph->nodes[0].shape;
    const uint64_t batch = model->site.batch_size;
    int code = 0;

    model->rows_bytes = batch * shape->height * shape->width * 3;
    model->header_bytes = sizeof *model->header + model->graph->node_count * sizeof(uint64_t) +
                          batch * sizeof(int32_t);
    model->slot_count = model->site.late ? (uint32_t)model->settings->ahead + 1 : 1;
    model->slots = memory_array(model->slot_count, sizeof *model->slots);
    model->flights = memory_array(model->slot_count + 1, sizeof *model->flights);
    if (!model->slots || !model->flights)
        return -ENOMEM;
    for (uint32_t i = 0; i < model->slot_count && code == 0; i++) {
        model->slots[i].rows = cuda_allocate(model, model->rows_bytes);
        model->slots[i].header = cuda_allocate(model, model->header_bytes);
        code = model->slots[i].rows && model->slots[i].header ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; i <= model->slot_count && code == 0; i++) {
        struct cuda_flight *flight = &model->flights[i];
        flight->staged = cuda_pin(model, model->header_bytes);
        flight->report = cuda_pin(model, sizeof *flight->report);
        code = flight->staged && flight->report ? 0 : -ENOMEM;
        for (int k = 0; k < CUDA_MOMENTS && code == 0; k++)
            code = runtime_event_create(&flight->moments[k]);
    }
    model->slot_bytes = model->slot_count * (model->rows_bytes + model->header_bytes);
    return code;
}

void cuda_flights_close(struct cuda_model *model)
{
    for (uint32_t i = 0; model->slots && i < model->slot_count; i++) {
        runtime_release(model->slots[i].rows);
        runtime_release(model->slots[i].header);
    }
    for (uint32_t i = 0; model->flights && i <= model->slot_count; i++) {
        runtime_unpin(model->flights[i].staged);
        runtime_unpin(model->flights[i].report);
        for (int k = 0; k < CUDA_MOMENTS; k++)
            runtime_event_destroy(model->flights[i].moments[k]);
    }
    free(model->slots);
    free(model->flights);
}

/* ---- the way in ---- */

static void fill_header(const struct cuda_model *model, const struct backend_batch *batch,
                        struct cuda_header *header)
{
    uint64_t *keys = (uint64_t *)(void *)(header + 1);
    int32_t *labels = cuda_labels(model, header);
    uint32_t counted = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        labels[i] = batch->labels ? batch->labels[i] : -1;
        counted += labels[i] >= 0;
    }
    for (uint32_t i = 0; i < model->graph->node_count; i++)
        keys[i] = kernel_dropout_key(model->site.seed, batch->step, i);
    const float mean = counted ? 1.0f / (float)counted : 0;
    const bool sums = model->type == DEVICE_FP16;
    header->gradient_scale = sums ? 1 : mean;
    header->unscale = sums ? mean : 1;
}

static int mark(const struct cuda_model *model, struct cuda_flight *flight, enum cuda_moment moment)
{
    return runtime_event_record(flight->moments[moment], moment <= CUDA_UPLOADED
                                                             ? model->runtime.upload
                                                             : model->runtime.stream);
}

static int upload(const struct cuda_model *model, const struct backend_batch *batch,
                  const struct cuda_slot *slot, struct cuda_flight *flight)
{
    void *stream = model->runtime.upload;
    int code = mark(model, flight, CUDA_UPLOAD);

    fill_header(model, batch, flight->staged);
    if (code == 0)
        code = runtime_copy(slot->header, flight->staged, model->header_bytes, stream);
    if (code == 0)
        code = runtime_copy(slot->rows, batch->rows,
                            model->rows_bytes / model->site.batch_size * batch->count, stream);
    return code ? code : mark(model, flight, CUDA_UPLOADED);
}

/* What the plan computes, with what it needs and gives, on the compute stream. */
static int compute(struct cuda_plan *plan, struct cuda_pass *pass, const struct cuda_slot *slot,
                   struct cuda_flight *flight)
{
    struct cuda_model *model = plan->model;
    void *stream = model->runtime.stream;
    int code = runtime_event_await(flight->moments[CUDA_UPLOADED], stream);

    if (code == 0)
        code = mark(model, flight, CUDA_COMPUTE);
    if (code == 0) /* where graphs look for it */
        code = runtime_copy(model->header, slot->header, model->header_bytes, stream);
    pass->rows = slot->rows;
    if (code == 0)
        code = cuda_plan_start(plan, pass);
    if (code == 0)
        code = mark(model, flight, CUDA_STEP_END);
    if (code == 0)
        code = runtime_copy(flight->report, model->report, sizeof *flight->report, stream);
    if (code == 0 && plan->training && model->host_gradients)
        code = runtime_copy(model->host_gradients, model->gradients,
                            model->graph->parameter_floats * sizeof(float), stream);
    return code ? code : mark(model, flight, CUDA_DONE);
}

int cuda_flight_start(struct cuda_plan *plan, struct cuda_pass *pass)
{
    struct cuda_model *model = plan->model;
    const struct cuda_slot *slot = &model->slots[model->started % model->slot_count];
    struct cuda_flight *flight = flight_of(model, model->started);

    flight->updated = false;
    flight->exchanges = plan->training && model->site.enqueue;
    flight->waited_ns = pass->batch->waited_ns;
    int code = upload(model, pass->batch, slot, flight);
    if (code == 0)
        code = compute(plan, pass, slot, flight);
    if (code == 0) {
        model->started++;
        return runtime_event_synchronise(flight->moments[CUDA_UPLOADED]);
    }
    runtime_wait(model->runtime.upload); /* nothing may use the batch any more */
    return code;
}

int cuda_flight_updated(struct cuda_model *model, bool done)
{
    struct cuda_flight *flight = flight_of(model, model->started - 1);

    flight->updated = done;
    return mark(model, flight, done ? CUDA_UPDATED : CUDA_UPDATE);
}

/* ---- the way out ---- */

static int between(void *const first, void *const last, uint64_t *ns)
{
    double milliseconds = 0;
    int code = runtime_event_elapsed(first, last, &milliseconds);

    *ns = milliseconds > 0 ? (uint64_t)(milliseconds * 1e6) : 0;
    return code;
}

/* From the end of the pass before to this one's first kernel the device had nothing to compute:
 * first it waited for the upload to begin, then for its end. The host may have been late for
 * another reason than that there was no batch, which is nobody's wait. */
static int take_gap(const struct cuda_flight *flight, const struct cuda_flight *before,
                    struct backend_times *times)
{
    void *const *moments = flight->moments;
    uint64_t gap_ns = 0, empty_ns = 0;

    if (!before) {
        times->wait_ns = flight->waited_ns;
        return between(moments[CUDA_UPLOAD], moments[CUDA_COMPUTE], &times->upload_ns);
    }
    void *end = before->moments[before->updated ? CUDA_UPDATED : CUDA_DONE];
    int code = between(end, moments[CUDA_COMPUTE], &gap_ns);
    if (code == 0)
        code = between(end, moments[CUDA_UPLOAD], &empty_ns);
    if (empty_ns > gap_ns)
        empty_ns = gap_ns;
    times->upload_ns = gap_ns - empty_ns;
    times->wait_ns = empty_ns < flight->waited_ns ? empty_ns : flight->waited_ns;
    return code;
}

static int take_times(const struct cuda_flight *flight, const struct cuda_flight *before,
                      struct backend_times *times)
{
    void *const *moments = flight->moments;
    int code = take_gap(flight, before, times);

    if (code == 0)
        code = between(moments[CUDA_UPLOAD], moments[CUDA_UPLOADED], &times->copy_ns);
    if (code == 0)
        code = between(moments[CUDA_COMPUTE], moments[CUDA_STEP_END], &times->compute_ns);
    if (flight->exchanges) {
        const struct cuda_report *report = flight->report;
        const uint64_t took_ns = report->exchanged_ns - report->gradients_ns;
        times->exchange_ns = took_ns < times->compute_ns ? took_ns : times->compute_ns;
        times->compute_ns -= times->exchange_ns;
    }
    if (code == 0 && before && before->updated)
        code =
            between(before->moments[CUDA_UPDATE], before->moments[CUDA_UPDATED], &times->update_ns);
    return code;
}

int cuda_flight_land(struct cuda_model *model, struct backend_loss *loss)
{
    const struct cuda_flight *flight = flight_of(model, model->told);
    const struct cuda_flight *before = model->told ? flight_of(model, model->told - 1) : NULL;
    const struct device_loss *found = &flight->report->loss;
    int code = runtime_event_wait_for(flight->moments[CUDA_DONE], model->site.silence_ns);

    model->is_stuck = code == -ETIMEDOUT;
    if (code)
        return code;
    model->told++;
    if (!loss)
        return 0;
    *loss = (struct backend_loss){.loss = found->counted ? found->loss / found->counted : 0,
                                  .correct = found->correct,
                                  .correct_top5 = found->correct_top5,
                                  .counted = found->counted};
    return take_times(flight, before, &loss->times);
}
