/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows are uploaded to one of slot_count slots of the device on an upload stream, and compute waits
 * for them there; the host waits only for the copy, after which the rows belong to the caller
 * again. Usually a batch is put on the compute stream right after its upload; if the host exchanges
 * gradients between steps, it is put there when the slots are full (cuda.c).
 *
 * Invariants: passes [reported, started) are computed, [started, given) are or will be uploaded;
 * together they are at most slot_count. Pass n has slot n % slot_count, which pass n - slot_count
 * left when it was reported. Its flight is n % (slot_count + 1), so that the moments of the pass
 * before the oldest are still known when the oldest is reported.
 */
#include "trainer/cuda/flight.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_flight *flight_of(const struct cuda_flights *flights, uint64_t pass)
{
    return &flights->flights[pass % (flights->slot_count + 1)];
}

/* ---- opening ---- */

int cuda_flights_open(struct cuda_flights *flights, struct cuda_model *model)
{
    const struct graph_shape *shape = &model->graph->nodes[0].shape;
    const uint64_t batch = model->config.batch_size;
    int code = 0;

    flights->model = model;
    flights->rows_bytes = batch * shape->height * shape->width * 3;
    flights->slot_count = model->config.late ? (uint32_t)model->settings->ahead + 1 : 1;
    flights->slots = memory_array(flights->slot_count, sizeof *flights->slots);
    flights->flights = memory_array(flights->slot_count + 1, sizeof *flights->flights);
    if (!flights->slots || !flights->flights)
        return -ENOMEM;
    for (uint32_t i = 0; i < flights->slot_count; i++)
        flights->slots[i] = (struct cuda_slot){cuda_allocate(model, model->header_bytes),
                                               cuda_allocate(model, flights->rows_bytes)};
    for (uint32_t i = 0; i <= flights->slot_count && code == 0; i++) {
        struct cuda_flight *flight = &flights->flights[i];
        flight->staged = cuda_pin(model, model->header_bytes);
        flight->report = cuda_pin(model, sizeof *flight->report);
        for (int k = 0; k < CUDA_MOMENTS && code == 0; k++)
            code = runtime_event_create(&flight->moments[k]);
    }
    flights->slot_bytes = flights->slot_count * (flights->rows_bytes + model->header_bytes);
    return code ? code : model->code;
}

void cuda_flights_close(struct cuda_flights *flights)
{
    for (uint32_t i = 0; flights->flights && i <= flights->slot_count; i++)
        for (int k = 0; k < CUDA_MOMENTS; k++)
            runtime_event_destroy(flights->flights[i].moments[k]);
    free(flights->slots);
    free(flights->flights);
}

/* ---- upload and start ---- */

static int mark(const struct cuda_model *model, struct cuda_flight *flight, enum cuda_moment moment)
{
    return runtime_event_record(flight->moments[moment], moment <= CUDA_UPLOADED
                                                             ? model->runtime.upload
                                                             : model->runtime.stream);
}

/* Each batch's gradients are those of its mean loss. */
static void fill_header(const struct cuda_model *model, const struct trainer_batch *batch,
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
        keys[i] = kernel_dropout_key(model->config.seed, batch->step, i);
    const float mean = counted ? 1.0f / (float)counted : 0;
    const bool sums = model->type == DEVICE_FP16;
    const float loss_scale = (float)model->settings->loss_scale;
    header->gradient_scale = sums ? loss_scale : mean;
    header->unscale = sums ? mean / loss_scale : 1;
    const float share = batch->continues ? 1 : batch->labelled ? 1.0f / (float)batch->labelled : 0;
    header->sum[0] = batch->adds ? share : 0;
    header->sum[1] = batch->adds || batch->continues ? share * (float)counted : 1;
}

int cuda_flight_give(struct cuda_flights *flights, const struct trainer_batch *batch)
{
    const struct cuda_model *model = flights->model;
    const struct cuda_slot *slot = &flights->slots[flights->given % flights->slot_count];
    struct cuda_flight *flight = flight_of(flights, flights->given);
    void *stream = model->runtime.upload;

    assert(flights->given - flights->reported < flights->slot_count);
    flight->rows = slot->rows;
    flight->count = batch->count;
    flight->learns = batch->learns;
    flight->labelled = batch->labels != NULL;
    flight->continues = batch->continues;
    flight->label_smoothing = batch->label_smoothing;
    flight->updated = flight->update_reported = false;
    flights->waited_ns += batch->waited_ns;
    int code = mark(model, flight, CUDA_UPLOAD);
    fill_header(model, batch, flight->staged);
    if (code == 0)
        code = runtime_copy(slot->header, flight->staged, model->header_bytes, stream);
    if (code == 0)
        code = runtime_copy(slot->rows, batch->rows,
                            flights->rows_bytes / model->config.batch_size * batch->count, stream);
    if (code == 0)
        code = mark(model, flight, CUDA_UPLOADED);
    flights->given += code == 0;
    return code;
}

int cuda_flight_given(struct cuda_flights *flights)
{
    return runtime_event_synchronise(
        flight_of(flights, flights->given - 1)->moments[CUDA_UPLOADED]);
}

const struct cuda_flight *cuda_flight_next(const struct cuda_flights *flights)
{
    return flights->started < flights->given ? flight_of(flights, flights->started) : NULL;
}

int cuda_flight_start(struct cuda_flights *flights, struct cuda_program *program)
{
    const struct cuda_model *model = flights->model;
    const struct cuda_slot *slot = &flights->slots[flights->started % flights->slot_count];
    struct cuda_flight *flight = flight_of(flights, flights->started);
    void *stream = model->runtime.stream;

    flight->waited_ns = flights->waited_ns;
    flights->waited_ns = 0;
    int code = runtime_event_await(flight->moments[CUDA_UPLOADED], stream);
    if (code == 0)
        code = mark(model, flight, CUDA_COMPUTE);
    if (code == 0) /* the address that captured graphs read */
        code = runtime_copy(model->header, slot->header, model->header_bytes, stream);
    if (code == 0)
        code = cuda_program_start(program, flight);
    if (code == 0)
        code = mark(model, flight, CUDA_STEP_END);
    if (code == 0)
        code = runtime_copy(flight->report, model->report, sizeof *flight->report, stream);
    if (code == 0 && flight->learns && !flight->continues && model->host_gradients)
        code = runtime_copy(model->host_gradients, model->gradients,
                            model->graph->parameter_floats * sizeof(float), stream);
    if (code == 0)
        code = mark(model, flight, CUDA_DONE);
    flights->started += code == 0;
    return code;
}

int cuda_flight_updated(struct cuda_flights *flights, bool done)
{
    struct cuda_flight *flight = flight_of(flights, flights->started - 1);

    flight->updated = done;
    return mark(flights->model, flight, done ? CUDA_UPDATED : CUDA_UPDATE);
}

/* ---- report ---- */

static int between(void *const first, void *const last, uint64_t *ns)
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
    int code = between(moments[CUDA_UPLOAD], moments[CUDA_UPLOADED], &times->copy_ns);

    times->upload_ns = times->copy_ns;
    times->wait_ns = flight->waited_ns;
    /* Split the gap between the pass before and this one's first kernel. While the batch was being
     * uploaded, the device waited for the upload; before that for the host, which had no batch, or
     * was late for another reason, which is not counted. */
    if (code == 0 && before) {
        void *end = before->moments[before->updated ? CUDA_UPDATED : CUDA_DONE];
        uint64_t gap_ns = 0, uploaded_ns = 0;
        code = between(end, moments[CUDA_UPLOADED], &uploaded_ns);
        if (code == 0)
            code = between(end, moments[CUDA_COMPUTE], &gap_ns);
        if (times->upload_ns > uploaded_ns)
            times->upload_ns = uploaded_ns;
        gap_ns -= times->upload_ns < gap_ns ? times->upload_ns : gap_ns;
        if (times->wait_ns > gap_ns)
            times->wait_ns = gap_ns;
    }
    if (code == 0)
        code = between(moments[CUDA_COMPUTE], moments[CUDA_STEP_END], &times->compute_ns);
    /* What summing gradients, or copying them to the host, took beyond the rest of the step. */
    if (code == 0 && flight->learns && !flight->continues) {
        if (model->config.enqueue) {
            times->exchange_ns = took_ns < times->compute_ns ? took_ns : times->compute_ns;
            times->compute_ns -= times->exchange_ns;
        }
        if (model->host_gradients)
            code = between(moments[CUDA_STEP_END], moments[CUDA_DONE], &times->exchange_ns);
    }
    if (code == 0 && before && before->updated && !before->update_reported)
        code =
            between(before->moments[CUDA_UPDATE], before->moments[CUDA_UPDATED], &times->update_ns);
    return code;
}

static int wait_for(struct cuda_flights *flights, const struct cuda_flight *flight,
                    enum cuda_moment moment)
{
    int code = runtime_event_wait_for(flight->moments[moment], flights->model->config.silence_ns);

    flights->is_stuck = code == -ETIMEDOUT;
    return code;
}

int cuda_flight_land(struct cuda_flights *flights, struct backend_loss *loss)
{
    const struct cuda_flight *flight = flight_of(flights, flights->reported);
    const struct cuda_flight *before =
        flights->reported ? flight_of(flights, flights->reported - 1) : NULL;
    const struct device_loss *found = &flight->report->loss;
    int code = wait_for(flights, flight, CUDA_DONE);

    if (code)
        return code;
    flights->reported++;
    *loss = (struct backend_loss){.count = flight->count};
    if (flight->labelled) {
        loss->loss = found->counted ? found->loss / found->counted : 0;
        loss->correct = found->correct;
        loss->correct_top5 = found->correct_top5;
        loss->counted = found->counted;
    }
    return take_times(flights->model, flight, before, &loss->times);
}

int cuda_flights_settle(struct cuda_flights *flights, struct trainer_times *times)
{
    struct cuda_flight *last = flights->reported ? flight_of(flights, flights->reported - 1) : NULL;

    if (!last || !last->updated || last->update_reported)
        return 0;
    int code = wait_for(flights, last, CUDA_UPDATED);
    if (code == 0)
        code = between(last->moments[CUDA_UPDATE], last->moments[CUDA_UPDATED], &times->update_ns);
    last->update_reported = code == 0;
    return code;
}
