/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/service.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REAP_MOST = 64 };
static const uint64_t wait_ns = 100000000;

struct serving {
    const struct service *service;
    struct reader reader;
    struct random random;
    uint64_t *first_place; /* of each file, and at the end their number */
    struct read_request *requests;
    uint64_t all_bytes; /* also before the clock runs */
    /* While the clock runs: */
    bool is_timed;
    uint64_t start_ns, reads, bytes;
    double latency_sum, latency_squares;
};

uint64_t service_places(const struct catalog *catalog, uint32_t read_bytes)
{
    uint64_t places = 0;

    for (uint32_t i = 0; i < catalog->shard_count; i++)
        places += catalog->shards[i].bytes / read_bytes;
    return places;
}

static int number_places(struct serving *serving)
{
    const struct catalog *catalog = serving->service->catalog;
    uint64_t place = 0;

    serving->first_place = memory_array(catalog->shard_count + 1, sizeof(uint64_t));
    serving->requests = memory_array(serving->service->depth, sizeof *serving->requests);
    if (!serving->first_place || !serving->requests)
        return -ENOMEM;
    for (uint32_t i = 0; i < catalog->shard_count; i++) {
        serving->first_place[i] = place;
        place += catalog->shards[i].bytes / serving->service->read_bytes;
    }
    serving->first_place[catalog->shard_count] = place;
    return place ? 0
                 : fail(ENODATA, "%s: no file is as large as a read of %u bytes", catalog->root,
                        serving->service->read_bytes);
}

static void draw(struct serving *serving, struct read_request *request)
{
    const struct service *service = serving->service;
    uint32_t low = 0, high = service->catalog->shard_count;
    const uint64_t place = random_below(&serving->random, serving->first_place[high]);

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (serving->first_place[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    request->shard = low;
    request->offset = (place - serving->first_place[low]) * service->read_bytes;
}

static int submit(struct serving *serving, uint32_t slot)
{
    const struct service *service = serving->service;
    struct read_request *request = &serving->requests[slot];

    *request = (struct read_request){
        .bytes = service->read_bytes,
        .needed = service->read_bytes,
        .buffer = (uint8_t *)service->memory.iov_base + (size_t)slot * service->read_bytes,
    };
    draw(serving, request);
    return reader_submit(&serving->reader, request);
}

static void count(struct serving *serving, const struct read_request *request)
{
    const double latency = (double)(request->complete_ns - request->issue_ns) * 1e-9;

    serving->reads++;
    serving->all_bytes += (uint64_t)request->result;
    if (!serving->is_timed)
        return;
    serving->bytes += (uint64_t)request->result;
    serving->latency_sum += latency;
    serving->latency_squares += latency * latency;
}

/* Start the clock, or return whether it may stop. */
static bool is_over(struct serving *serving)
{
    const struct service *service = serving->service;
    const uint64_t now_ns = clock_now_ns();

    if (serving->is_timed)
        return now_ns - serving->start_ns >= service->duration_ns &&
               serving->reads >= 2 * (uint64_t)service->depth;
    if (serving->reads >= service->depth) {
        serving->is_timed = true;
        serving->start_ns = now_ns;
        serving->reads = 0;
    }
    return false;
}

static int serve(struct serving *serving, struct service_figures *figures)
{
    struct read_request *done[REAP_MOST];
    int code = 0;

    for (uint32_t i = 0; i < serving->service->depth && code == 0; i++)
        code = submit(serving, i);
    while (code == 0 && !is_over(serving)) {
        const int got = reader_reap(&serving->reader, done, REAP_MOST, wait_ns);
        code = flag_get(&stop_asked) ? fail(EINTR, "interrupted") : got < 0 ? got : 0;
        for (int i = 0; i < got && code == 0; i++) {
            code = done[i]->result < 0 ? done[i]->result : 0;
            if (code == 0)
                count(serving, done[i]);
            reader_release(&serving->reader, done[i]);
            if (code == 0)
                code = submit(serving, (uint32_t)(done[i] - serving->requests));
        }
    }
    if (code)
        return code;
    const double seconds = (double)(clock_now_ns() - serving->start_ns) * 1e-9;
    const double reads = (double)serving->reads, mean = serving->latency_sum / reads;
    figures->bytes = serving->all_bytes;
    figures->bytes_per_s = (double)serving->bytes / seconds;
    figures->latency_s = mean;
    figures->latency_cv = sqrt(fmax(0, serving->latency_squares / reads - mean * mean)) / mean;
    return 0;
}

int service_measure(const struct service *service, struct service_figures *figures)
{
    const struct reader_config config = {.catalog = service->catalog,
                                         .regions = &service->memory,
                                         .region_count = 1,
                                         .depth = service->depth,
                                         .bytes_max = service->read_bytes,
                                         .timeout_ns = service->timeout_ns};
    struct serving serving = {.service = service, .random = random_start(service->seed)};
    int code = number_places(&serving);

    *figures = (struct service_figures){0};
    if (code == 0) {
        code = reader_open(&serving.reader, service->reader, &config);
        if (code == 0 && service->read_bytes % serving.reader.traits.alignment)
            code = fail(EINVAL, "reads of %u bytes: the storage needs multiples of %u",
                        service->read_bytes, serving.reader.traits.alignment);
        if (code == 0)
            code = serve(&serving, figures);
        snprintf(figures->engine, sizeof figures->engine, "%s", serving.reader.traits.engine);
        reader_close(&serving.reader);
    }
    free(serving.first_place);
    if (serving.reader.held == 0)
        free(serving.requests);
    return code;
}
