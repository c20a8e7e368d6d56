/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/reader.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "base/thread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_NS = 100000000 };
static const uint64_t GRACE_NS = 1000000000;

/* State of a reader with unfinished reads, which may still use it. */
uint64_t reader_patience_ns(const struct reader *reader)
{
    return reader->config.timeout_ns ? 2 * reader->config.timeout_ns + GRACE_NS : UINT64_MAX;
}

bool reader_serves(const struct plugin *reader, const char *scheme)
{
    const struct reader_ops *ops = reader_of(reader);

    return reader->idle || ops->any_storage || strcmp(ops->scheme ? ops->scheme : "", scheme) == 0;
}

const struct plugin *reader_auto(const char *scheme, bool compressed)
{
    for (const struct plugin *const *row = reader_registry; *row; row++)
        if (!(*row)->idle && reader_of(*row)->inflates == compressed &&
            reader_serves(*row, scheme) &&
            (reader_of(*row)->falls_back || plugin_usable(*row) == 0))
            return *row;
    return NULL;
}

void reader_offers(const struct plugin *reader, reader_tell tell, void *context)
{
    if (reader_of(reader)->offers)
        reader_of(reader)->offers(tell, context);
}

int reader_open(struct reader *reader, const struct plugin_choice *choice,
                const struct reader_config *config)
{
    *reader = (struct reader){.ops = reader_of(choice->plugin), .config = *config};
    const bool may_differ = config->falls_back && reader->ops->falls_back;
    int code = may_differ ? 0 : plugin_usable(choice->plugin);
    if (code)
        return code;
    reader->state = memory_zeroed(choice->plugin->state_size);
    if (!reader->state)
        return -ENOMEM;
    reader->traits.alignment = 1;
    reader->traits.is_passthrough = reader->ops->is_passthrough;
    reader->traits.is_client = reader->ops->scheme != NULL;
    code = reader->ops->open(reader->state, choice->settings, &reader->config, &reader->traits);
    assert(code || (reader->traits.alignment > 0 &&
                    (reader->traits.alignment & (reader->traits.alignment - 1)) == 0));
    return code;
}

/* Wait for every request in flight, so that its memory is the caller's again. Keeps the reason why
 * the caller closes. Returns 0 or the errno of a broken reader. */
static int drain(struct reader *reader)
{
    const uint64_t start_ns = clock_now_ns(), patience_ns = reader_patience_ns(reader);
    struct read_request *done[32];
    int count = 0;

    fail_hold();
    while (reader->in_flight) {
        count = reader_reap(reader, done, 32, WAIT_NS);
        if (count < 0 || (count == 0 && clock_now_ns() - start_ns > patience_ns))
            break;
        for (int i = 0; i < count; i++)
            reader_release(reader, done[i]);
    }
    fail_release();
    return count < 0 ? count : 0;
}

int reader_settle(struct reader *reader)
{
    if (!reader->ops->settle)
        return 0;
    const int code = drain(reader);
    return code || reader->in_flight ? code : reader->ops->settle(reader->state);
}

void reader_close(struct reader *reader)
{
    if (!reader->state)
        return;
    const int broken = drain(reader);
    if (reader->in_flight && !broken) {
        reader->held += reader->in_flight;
        catalog_keep(reader->config.catalog);
        memory_keep(reader->state);
    } else {
        reader->ops->close(reader->state);
        free(reader->state);
    }
    reader->state = NULL;
}

static void start_prepared(struct reader *reader, uint64_t now_ns)
{
    for (struct read_request *request; (request = reader->prepared);) {
        reader->prepared = request->next_prepared;
        request->submit_ns = now_ns;
        if (request->issue_ns == 0) /* else passed on */
            request->issue_ns = now_ns;
    }
}

static int start_request(struct reader *reader, struct read_request *request, uint64_t now_ns)
{
    assert(request->bytes > 0 && request->needed <= request->bytes);
    assert(request->shard < reader->config.catalog->shard_count);
    assert(request->offset % reader->traits.alignment == 0);
    assert(reader->traits.zero_copy || reader->traits.no_bytes || request->buffer);
    assert(request->part_count == 0 || reader->traits.scatters);
    assert(request->part_count <= READER_PARTS_MAX);

    if (reader->in_flight == reader->config.depth)
        return -EAGAIN;
    request->submit_ns = now_ns;
    request->data = NULL;
    request->result = 0;
    request->why = NULL;
    request->short_reads = 0;
    request->held = false;
    request->mapping = NULL;
    int code = reader->ops->submit(reader->state, request);
    if (code < 0)
        return code;
    reader->in_flight++;
    if (reader->traits.batches) {
        request->next_prepared = reader->prepared;
        reader->prepared = request;
    }
    if (code > 0)
        start_prepared(reader, request->submit_ns);
    return 0;
}

int reader_submit(struct reader *reader, struct read_request *request)
{
    request->issue_ns = reader->traits.batches ? 0 : clock_now_ns();
    return start_request(reader, request, request->issue_ns);
}

int reader_reap(struct reader *reader, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct reader_figures *figures = &reader->figures;
    struct histogram_run latencies = {0};

    if (reader->prepared) /* one clock for all that this reap starts */
        start_prepared(reader, clock_now_ns());
    const int count = reader->ops->reap(reader->state, done, max, wait_ns);
    if (count <= 0)
        return count;
    const uint64_t now_ns = clock_now_ns();
    assert((uint32_t)count <= reader->in_flight);
    reader->in_flight -= (uint32_t)count;
    for (int i = 0; i < count; i++) {
        struct read_request *request = done[i];
        request->complete_ns = now_ns;
        if (request->result == -EAGAIN) /* it was not started */
            continue;
        figures->requests++;
        figures->short_reads += request->short_reads;
        if (request->result < 0) {
            figures->errors++;
            reader->held += request->held;
            reader_explain(reader, request);
            continue;
        }
        assert((uint32_t)request->result >= request->needed);
        assert(request->data || reader->traits.no_bytes);
        figures->bytes += (uint32_t)request->result;
        if (reader->traits.zero_copy)
            reader->borrowed++;
        histogram_run_add(&latencies, &figures->latency_ns, now_ns - request->issue_ns);
    }
    histogram_run_end(&latencies);
    return count;
}

int request_ring_open(struct request_ring *ring, uint32_t depth)
{
    *ring = (struct request_ring){.entries = memory_array(depth, sizeof(struct read_request *)),
                                  .depth = depth};
    return ring->entries ? 0 : -ENOMEM;
}

uint32_t request_ring_take(struct request_ring *ring, struct read_request **done, uint32_t max)
{
    const uint32_t count = ring->count < max ? ring->count : max;

    for (uint32_t i = 0; i < count; i++) {
        done[i] = ring->entries[ring->at];
        ring->at = ring->at + 1 < ring->depth ? ring->at + 1 : 0;
    }
    ring->count -= count;
    return count;
}

void reader_wake(const struct reader *reader)
{
    if (reader->ops->wake)
        reader->ops->wake(reader->state);
}

static void release_pages(const struct reader *reader, struct read_request *request)
{
    if (reader->ops->release)
        reader->ops->release(reader->state, request);
}

void reader_release(struct reader *reader, struct read_request *request)
{
    if (!reader->traits.zero_copy || request->result < 0)
        return;
    assert(reader->borrowed > 0);
    reader->borrowed--;
    release_pages(reader, request);
    request->data = NULL;
}

int reader_explain(const struct reader *reader, const struct read_request *request)
{
    const struct shard *shard = &reader->config.catalog->shards[request->shard];
    unsigned long long offset = request->offset;
    struct store_status now;

    assert(request->result < 0);
    if (request->why)
        return fail(-request->result, "%s: offset %llu: %s", shard->path, offset, request->why);
    switch (request->result) {
    case -ESTALE:
        if (store_stat(shard->path, &now))
            return fail(ESTALE, "%s: offset %llu: the file was removed during the run", shard->path,
                        offset);
        if (now.bytes != shard->bytes)
            return fail(ESTALE,
                        "%s: offset %llu: the file changed: it had %llu bytes when it was indexed "
                        "and has %llu now; stop changing the data and index it again",
                        shard->path, offset, (unsigned long long)shard->bytes,
                        (unsigned long long)now.bytes);
        return fail(ESTALE,
                    "%s: offset %llu: the file was written to or replaced since it was indexed; "
                    "stop changing the data and index it again",
                    shard->path, offset);
    case -ETIMEDOUT:
        return fail(
            ETIMEDOUT,
            "%s: offset %llu: no answer for %.1f s; check the storage or raise --io-timeout",
            shard->path, offset, (double)reader->config.timeout_ns / 1e9);
    case -ENOMEM:
        return fail(ENOMEM,
                    "%s: offset %llu: out of memory or, for a mapped file, of mappings (sysctl "
                    "vm.max_map_count) or address space (ulimit -v)",
                    shard->path, offset);
    case -EBADMSG:
        return fail(EBADMSG,
                    "%s: offset %llu of the inflated stream: the compressed data is damaged; "
                    "run `iobench verify` to locate it",
                    shard->path, offset);
    case -ENOENT:
    case -EACCES:
    case -EMFILE:
    case -ENFILE:
        return fail(-request->result, "%s: cannot open: %s", shard->path,
                    fail_errno_text(request->result));
    default:
        return fail(-request->result, "%s: offset %llu: cannot read %u bytes: %s", shard->path,
                    offset, request->bytes, fail_errno_text(request->result));
    }
}

/* ---- parallel_reader ---- */

enum { GROUP = 64 };
#define FOR_EVER UINT64_MAX /* every read ends, and new requests wake the thread */

struct io_thread {
    struct parallel *parallel;
    uint32_t number;
    struct thread thread;
    struct reader reader;
    struct reader_config config;
    struct queue *inbox; /* requests; holds a full depth, so pushing never waits */
    struct flag waits;   /* set before the last look at the inbox that precedes a wait for reads */
    bool has_new;        /* the caller's: work was added since the last wake-up */
};

struct parallel {
    const struct parallel_reader_settings *settings;
    uint32_t regions; /* per thread */
    bool in_order;
    struct queue *opened; /* one entry per thread */
    struct queue *done;   /* requests of all threads */
    struct io_thread *threads;
};

/* Run until the inbox is closed and nothing is in flight. The thread waits for reads only after it
 * has set `waits` and looked at the inbox again, so a later request wakes it. */
static int serve(struct io_thread *io)
{
    struct parallel *parallel = io->parallel;
    struct read_request *group[GROUP], *done[GROUP];
    uint32_t at = 0, count = 0; /* group[at .. count) have been popped but not submitted */
    int code = 0;

    for (;;) {
        /* Submit requests from the inbox until the reader is full. */
        if (at == count) {
            const int popped = queue_pop_many(io->inbox, group, GROUP, io->reader.in_flight == 0);
            if (popped < 0)
                return popped;
            at = 0;
            count = (uint32_t)popped;
        }
        for (; at < count; at++) {
            code = start_request(&io->reader, group[at],
                                 io->reader.traits.batches ? 0 : clock_now_ns());
            if (code)
                break;
        }
        if (at < count && code != -EAGAIN)
            return code;
        if (io->reader.in_flight == 0 && at == count)
            return 0;
        if (io->reader.in_flight == 0) {
            /* The reader can begin it only after the caller releases mapped pages. */
            struct read_request *request = group[at++];
            if (request->buffer && !parallel->in_order)
                request->region += io->number * parallel->regions; /* the caller's numbering */
            request->result = -EAGAIN;
            code = queue_push(parallel->done, &request);
            if (code)
                return code;
            continue;
        }
        const bool waits = flag_get(&io->waits);
        const int reaped = reader_reap(&io->reader, done, GROUP, waits ? FOR_EVER : 0);
        if (reaped < 0)
            return reaped;
        if (waits)
            flag_clear(&io->waits);
        else if (reaped == 0)
            flag_set(&io->waits);
        for (int i = 0; i < reaped; i++) {
            code = queue_push(parallel->done, &done[i]);
            if (code)
                return code;
        }
    }
}

static int io_thread_body(void *argument)
{
    struct io_thread *io = argument;
    const struct parallel_reader_settings *settings = io->parallel->settings;
    struct read_request *unread[GROUP];

    numa_run_on(settings->numa, io->number % settings->numa->count);
    int code = reader_open(&io->reader, settings->reader, &io->config);
    queue_push(io->parallel->opened, &code);
    if (code == 0) {
        code = serve(io);
        if (code)
            queue_cancel(io->parallel->done);
        /* The caller may release pages and wake this reader until it closes the inbox. */
        while (queue_pop_many(io->inbox, unread, GROUP, true) > 0)
            ;
    }
    if (code == 0)
        code = reader_settle(&io->reader);
    reader_close(&io->reader);
    return code;
}

/* Stop and join all threads. Returns the first failure other than -ECANCELED, if any, or 0. */
static int end_threads(void *state)
{
    struct parallel *parallel = state;
    int code = 0;

    for (uint32_t i = 0; i < parallel->settings->count && parallel->threads; i++)
        if (parallel->threads[i].inbox)
            queue_close(parallel->threads[i].inbox);
    for (uint32_t i = 0; i < parallel->settings->count && parallel->threads; i++)
        code = thread_join_next(&parallel->threads[i].thread, code);
    return code;
}

static int parallel_open(void *state, const void *chosen, const struct reader_config *config,
                         struct reader_traits *traits)
{
    struct parallel *parallel = state;
    const struct parallel_reader_settings *settings = chosen;
    const struct numa *numa = settings->numa;
    const size_t room = sizeof traits->engine;
    char name[16];

    parallel->settings = settings;
    parallel->regions = config->region_count / settings->count;
    parallel->opened = queue_create(1, sizeof(int));
    parallel->done = queue_create(config->depth, sizeof(struct read_request *));
    parallel->threads = memory_array(settings->count, sizeof *parallel->threads);
    if (!parallel->opened || !parallel->done || !parallel->threads)
        return -ENOMEM;
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < settings->count; i++) {
        struct io_thread *io = &parallel->threads[i];
        *io = (struct io_thread){.parallel = parallel, .number = i, .config = *config};
        io->config.regions += i * parallel->regions;
        io->config.region_count = parallel->regions;
        io->config.in_order = false; /* a read goes to the thread with the most memory */
        io->inbox = queue_create(config->depth, sizeof(struct read_request *));
        if (!io->inbox)
            return -ENOMEM;
        snprintf(name, sizeof name, "loader%u", i % 1000u);
        code = thread_start(&io->thread, name, io_thread_body, io);
        if (code)
            break;
        queue_pop_many(parallel->opened, &code, 1, true);
        if (code)
            code = thread_join(&io->thread);
    }
    *traits = parallel->threads[0].reader.traits;
    traits->batches = false; /* a thread may start a read at once */
    parallel->in_order = traits->in_order;
    /* "; 2 I/O threads on NUMA nodes 0, 1" */
    size_t used = strlen(traits->engine);
    used +=
        (size_t)snprintf(traits->engine + used, room - used, "; %u I/O threads", settings->count);
    for (uint32_t i = 0; numa->count > 1 && i < settings->count && i < numa->count && used < room;
         i++)
        used += (size_t)snprintf(traits->engine + used, room - used, "%s%d",
                                 i ? ", " : " on NUMA nodes ", numa->nodes[i]);
    return code;
}

static void parallel_close(void *state)
{
    struct parallel *parallel = state;

    end_threads(parallel);
    for (uint32_t i = 0; parallel->threads && i < parallel->settings->count; i++)
        queue_destroy(parallel->threads[i].inbox);
    free(parallel->threads);
    queue_destroy(parallel->opened);
    queue_destroy(parallel->done);
}

static int parallel_submit(void *state, struct read_request *request)
{
    struct parallel *parallel = state;
    const bool by_region = request->buffer && !parallel->in_order;
    struct io_thread *io =
        &parallel->threads[by_region ? request->region / parallel->regions
                                     : request->shard % parallel->settings->count];

    if (by_region)
        request->region %= parallel->regions; /* the thread's numbering */
    io->has_new = true;
    return queue_push(io->inbox, &request);
}

static int parallel_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct parallel *parallel = state;

    /* Wake each thread at most once for everything submitted and released since the last reap. */
    for (uint32_t i = 0; i < parallel->settings->count; i++) {
        struct io_thread *io = &parallel->threads[i];
        if (io->has_new && flag_get(&io->waits))
            reader_wake(&io->reader);
        io->has_new = false;
    }
    const int count = queue_pop_within(parallel->done, done, max, wait_ns);
    if (count >= 0)
        return count;
    const int code = end_threads(parallel);
    return code ? code : -EIO; /* called again after the failure was reported */
}

static void parallel_release(void *state, struct read_request *request)
{
    struct parallel *parallel = state;
    struct io_thread *io = &parallel->threads[request->shard % parallel->settings->count];

    release_pages(&io->reader, request);
    io->has_new = true;
}

static void parallel_wake(void *state)
{
    queue_wake(((struct parallel *)state)->done);
}

const struct reader_ops reader_parallel = {
    .plugin = {.name = "parallel",
               .summary = "a reader on several threads",
               .settings_size = sizeof(struct parallel_reader_settings),
               .state_size = sizeof(struct parallel)},
    .open = parallel_open,
    .close = parallel_close,
    .settle = end_threads,
    .submit = parallel_submit,
    .reap = parallel_reap,
    .release = parallel_release,
    .wake = parallel_wake,
};

/* ---- service ---- */

struct serving {
    const struct service *service;
    struct reader reader;
    struct random random;
    uint64_t *first_place; /* of each file, and at the end their number */
    struct read_request *requests;
};

uint64_t service_places(const struct catalog *catalog, uint32_t read_bytes)
{
    uint64_t places = 0;

    for (uint32_t i = 0; i < catalog->shard_count; i++)
        places += catalog->shards[i].bytes / read_bytes;
    return places;
}

/* Submit a read of a place drawn at random. */
static int submit_draw(struct serving *serving, uint32_t slot)
{
    const struct service *service = serving->service;
    struct read_request *request = &serving->requests[slot];
    uint32_t low = 0, high = service->catalog->shard_count;
    const uint64_t place = random_below(&serving->random, serving->first_place[high]);

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (serving->first_place[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    *request = (struct read_request){
        .shard = low,
        .offset = (place - serving->first_place[low]) * service->read_bytes,
        .bytes = service->read_bytes,
        .needed = service->read_bytes,
        .buffer = (uint8_t *)service->memory.iov_base + (size_t)slot * service->read_bytes,
    };
    return reader_submit(&serving->reader, request);
}

static int read_at_random(struct serving *serving, struct service_figures *figures)
{
    const struct service *service = serving->service;
    struct read_request *done[GROUP];
    uint64_t start_ns = 0, reads = 0, bytes = 0; /* while the clock runs, but for the first reads */
    double latency_sum = 0, latency_squares = 0;
    bool is_timed = false;
    int code = 0;

    for (uint32_t i = 0; i < service->depth && code == 0; i++)
        code = submit_draw(serving, i);
    while (code == 0) {
        const uint64_t now_ns = clock_now_ns();
        if (is_timed && now_ns - start_ns >= service->duration_ns &&
            reads >= 2 * (uint64_t)service->depth)
            break;
        if (!is_timed && reads >= service->depth) {
            is_timed = true;
            start_ns = now_ns;
            reads = 0;
        }
        const int got = reader_reap(&serving->reader, done, GROUP, WAIT_NS);
        code = flag_get(&stop_asked) ? fail(EINTR, "interrupted") : got < 0 ? got : 0;
        for (int i = 0; i < got && code == 0; i++) {
            code = done[i]->result < 0 ? done[i]->result : 0;
            if (code == 0) {
                const uint64_t result = (uint64_t)done[i]->result;
                const double latency = (double)(done[i]->complete_ns - done[i]->issue_ns) * 1e-9;
                reads++;
                figures->bytes += result;
                bytes += is_timed ? result : 0;
                latency_sum += is_timed ? latency : 0;
                latency_squares += is_timed ? latency * latency : 0;
            }
            reader_release(&serving->reader, done[i]);
            if (code == 0)
                code = submit_draw(serving, (uint32_t)(done[i] - serving->requests));
        }
    }
    if (code)
        return code;
    const double mean = latency_sum / (double)reads;
    figures->bytes_per_s = (double)bytes / ((double)(clock_now_ns() - start_ns) * 1e-9);
    figures->latency_s = mean;
    figures->latency_cv = sqrt(fmax(0, latency_squares / (double)reads - mean * mean)) / mean;
    return 0;
}

int service_measure(const struct service *service, struct service_figures *figures)
{
    const struct catalog *catalog = service->catalog;
    const struct reader_config config = {.catalog = catalog,
                                         .regions = &service->memory,
                                         .region_count = 1,
                                         .depth = service->depth,
                                         .timeout_ns = service->timeout_ns};
    struct serving serving = {
        .service = service,
        .random = random_start(service->seed),
        .first_place = memory_array((size_t)catalog->shard_count + 1, sizeof(uint64_t)),
        .requests = memory_array(service->depth, sizeof *serving.requests),
    };
    int code = serving.first_place && serving.requests ? 0 : -ENOMEM;

    *figures = (struct service_figures){0};
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++)
        serving.first_place[i + 1] =
            serving.first_place[i] + catalog->shards[i].bytes / service->read_bytes;
    if (code == 0 && serving.first_place[catalog->shard_count] == 0)
        code = fail(ENODATA, "%s: no file is as large as a read of %u bytes", catalog->root,
                    service->read_bytes);
    if (code == 0) {
        code = reader_open(&serving.reader, service->reader, &config);
        if (code == 0 && service->read_bytes % serving.reader.traits.alignment)
            code = fail(EINVAL, "reads of %u bytes: the storage needs multiples of %u",
                        service->read_bytes, serving.reader.traits.alignment);
        if (code == 0)
            code = read_at_random(&serving, figures);
        snprintf(figures->engine, sizeof figures->engine, "%s", serving.reader.traits.engine);
        reader_close(&serving.reader);
    }
    free(serving.first_place);
    if (serving.reader.held == 0)
        free(serving.requests);
    return code;
}
