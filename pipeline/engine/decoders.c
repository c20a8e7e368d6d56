/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/decoders.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/engine/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Target work per group: small enough to balance the decode threads, large enough to make the cost
 * of a lock per group negligible. */
static const uint64_t group_ns = 50000;

struct decode_thread {
    struct worker worker;
    struct decoders *decoders;
    struct thread thread;
    uint32_t group; /* records taken at once */
};

struct decoders {
    const struct engine_config *config;
    struct loader *loader;
    struct batches *batches;
    uint32_t count;
    bool by_threads; /* records go through the decode threads */
    struct decode_thread *threads;
    struct worker loaders; /* for the loader's thread, else */
};

/* Rows of one batch that are written but not yet reported. */
struct written {
    uint64_t batch;
    uint32_t rows;
    struct batch_account account;
};

static void announce(const struct worker *worker, const struct written *written)
{
    struct meter *meter = worker->config->meter;

    meter_add(meter, METER_RECORD_BYTES, written->account.record_bytes);
    meter_add(meter, METER_RECORD_COUNT, written->account.samples);
    batches_done(worker->batches, written->batch, written->rows, &written->account);
}

/* *waited_ns: for batches to open, as the trainer is behind. Rows are finished before that wait:
 * the batches that must be taken first may need them. */
static int work_on_group(struct worker *worker, struct fetch *const *fetches, uint32_t count,
                         uint64_t *waited_ns, struct written *written)
{
    const uint64_t batch_size = worker->config->job->batch_size;

    uint64_t batch = fetches[0]->address / batch_size, first = batch * batch_size;
    int code = batches_wait_open(worker->batches, batch, waited_ns);

    *written = (struct written){.batch = batch};
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        if (fetches[i]->address - first >= batch_size) {
            if ((code = worker_finish(worker, &written->account)))
                break;
            announce(worker, written);
            batch = fetches[i]->address / batch_size;
            first = batch * batch_size;
            *written = (struct written){.batch = batch};
            code = batches_wait_open(worker->batches, batch, waited_ns);
        }
        if (code == 0)
            code = worker_begin(worker, fetches[i], &written->account);
        written->rows++;
    }
    return worker_end(worker, code, &written->account);
}

static int thread_body(void *argument)
{
    struct decode_thread *thread = argument;
    const struct decoders *decoders = thread->decoders;
    struct worker *worker = &thread->worker;
    struct fetch *fetches[WORKER_GROUP_MAX];
    int taken;

    while ((taken = loader_acquire(decoders->loader, fetches, thread->group)) > 0) {
        struct written written;
        const uint64_t start_ns = clock_now_ns();
        uint64_t waited_ns = 0;
        worker->hints_ns = 0;
        int code = work_on_group(worker, fetches, (uint32_t)taken, &waited_ns, &written);
        if (code == 0)
            loader_release(decoders->loader, fetches, (uint32_t)taken);
        const uint64_t busy_ns = clock_now_ns() - start_ns - waited_ns - worker->hints_ns;
        meter_add(decoders->config->meter, METER_DECODE_BUSY_NS, busy_ns);
        if (code) {
            loader_cancel(decoders->loader);
            batches_cancel(decoders->batches);
            return code;
        }
        announce(worker, &written);
        if (worker->decoder.traits.pending)
            continue; /* as many as it decodes at a time */
        const uint64_t fitting = group_ns * (uint32_t)taken / (busy_ns + 1);
        thread->group = fitting < 1                  ? 1
                        : fitting > WORKER_GROUP_MAX ? WORKER_GROUP_MAX
                                                     : (uint32_t)fitting;
    }
    return taken;
}

/* ---- the loader's sink ---- */

/* Records that are not parsed are only counted. Returns how many of one batch, or -errno. */
static int count_records(struct worker *worker, struct fetch *const *fetches, uint32_t count)
{
    const uint64_t batch_size = worker->config->job->batch_size;
    struct written written = {.batch = fetches[0]->address / batch_size};
    const uint64_t end = (written.batch + 1) * batch_size;
    int32_t *labels = batches_label(worker->batches, fetches[0]->address);
    const struct sample unknown = {.label = -1};

    if (!batches_is_open(worker->batches, written.batch))
        return 0;
    for (; written.rows < count && fetches[written.rows]->address < end; written.rows++) {
        const struct fetch *fetch = fetches[written.rows];
        if (fetch->code) {
            int code = worker_settle(worker, fetch, &unknown, fetch->code, &written.account);
            if (code)
                return code;
            continue;
        }
        labels[written.rows] = -1;
        written.account.samples++;
        written.account.record_bytes += fetch->length;
    }
    for (uint32_t i = 0; worker->trace && i < written.rows; i++)
        worker_trace(worker, fetches[i], clock_now_ns());
    announce(worker, &written);
    return (int)written.rows;
}

static int take(void *taker, struct fetch *const *fetches, uint32_t count)
{
    struct decoders *decoders = taker;
    uint32_t taken = 0;
    int code = 1;

    while (!decoders->by_threads && taken < count && code > 0) {
        code = count_records(&decoders->loaders, fetches + taken, count - taken);
        taken += code > 0 ? (uint32_t)code : 0;
    }
    return code < 0 ? code : (int)taken;
}

struct loader_sink decoders_sink(struct decoders *decoders)
{
    struct loader_sink sink = batches_sink(decoders->batches);

    sink.take = take;
    sink.taker = decoders;
    return sink;
}

/* ---- life ---- */

struct decoders *decoders_create(const struct engine_config *config, uint32_t workers,
                                 struct batches *batches)
{
    struct decoders *decoders = memory_zeroed(sizeof *decoders);

    if (!decoders)
        return NULL;
    *decoders = (struct decoders){.config = config, .batches = batches, .count = workers};
    decoders->threads = memory_array(workers, sizeof *decoders->threads);
    int code = decoders->threads ? 0 : -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < workers; i++) {
        decoders->threads[i].decoders = decoders;
        code = worker_open(&decoders->threads[i].worker, config, batches);
    }
    if (code == 0)
        return decoders;
    decoders_destroy(decoders);
    return NULL;
}

void decoders_destroy(struct decoders *decoders)
{
    if (!decoders)
        return;
    for (uint32_t i = 0; decoders->threads && i < decoders->count; i++)
        worker_close(&decoders->threads[i].worker);
    free(decoders->threads);
    free(decoders);
}

int decoders_traits(const struct plugin_choice *choice, struct decoder_traits *traits)
{
    struct decoder decoder;

    int code = decoder_open(&decoder, choice);
    *traits = decoder.traits;
    traits->engine = NULL;
    decoder_close(&decoder);
    return code;
}

const char *decoders_engine(const struct decoders *decoders)
{
    const char *engine = decoders->threads[0].worker.decoder.traits.engine;

    return engine ? engine : "";
}

const char *decoders_notice(const struct decoders *decoders)
{
    for (uint32_t i = 0; i < decoders->count; i++) {
        const char *notice = decoders->threads[i].worker.decoder.traits.notice;
        if (notice && notice[0])
            return notice;
    }
    return "";
}

/* Records taken at once, at first. */
static uint32_t first_group(const struct worker *worker)
{
    const uint32_t pending = worker->decoder.traits.pending;

    if (!worker->parses)
        return WORKER_GROUP_MAX;
    return !pending ? 1 : pending < WORKER_GROUP_MAX ? pending : WORKER_GROUP_MAX;
}

bool decoders_look(const struct job *job, const struct job_plugins *plugins)
{
    const struct plugin *format = plugins->format.plugin; /* NULL: no bytes */

    return job->decode.digest || !plugins->decoder.plugin->idle ||
           (job->decode.check_crc && format && !format_of(format)->records_are_images);
}

int decoders_start(struct decoders *decoders, struct loader *loader, bool no_bytes,
                   struct trace *trace)
{
    const struct engine_config *config = decoders->config;
    const bool looks = decoders_look(config->job, config->plugins);
    const struct decoder_traits *traits = &decoders->threads[0].worker.decoder.traits;

    decoders->loader = loader;
    decoders->loaders = (struct worker){.config = config,
                                        .batches = decoders->batches,
                                        .decoder.traits = *traits,
                                        .trace = trace_ring(trace, LOADER_RING, "loader")};
    decoders->by_threads = config->by_threads || looks;
    for (uint32_t i = 0; i < decoders->count; i++) {
        struct decode_thread *thread = &decoders->threads[i];
        struct worker *worker = &thread->worker;
        char name[16];
        snprintf(name, sizeof name, "decode%u", i % 10000u);
        worker->parses = looks && !no_bytes;
        worker->trace = trace_ring(trace, DECODERS_RING + i, name);
        worker->findings = (struct findings){0};
        worker->decoder.figures = (struct decode_figures){0};
        thread->group = first_group(worker);
        int code = thread_start(&thread->thread, name, thread_body, thread);
        if (code)
            return code;
    }
    return 0;
}

int decoders_join(struct decoders *decoders)
{
    int code = 0;

    for (uint32_t i = 0; i < decoders->count; i++)
        code = thread_join_next(&decoders->threads[i].thread, code);
    return code;
}

void decoders_figures(struct decoders *decoders, struct decode_figures *decode,
                      struct findings *findings)
{
    *decode = (struct decode_figures){0};
    *findings = (struct findings){0};
    for (uint32_t i = 0; i < decoders->count; i++) {
        const struct worker *worker = &decoders->threads[i].worker;
        findings_add(findings, &worker->findings);
        decode_figures_add(decode, &worker->decoder.figures);
    }
    findings_add(findings, &decoders->loaders.findings);
}
