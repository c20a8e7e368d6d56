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

static int serve(struct serving *serving, struct service_figures *figures)
{
    const struct service *service = serving->service;
    struct read_request *done[REAP_MOST];
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
        const int got = reader_reap(&serving->reader, done, REAP_MOST, wait_ns);
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
            code = serve(&serving, figures);
        snprintf(figures->engine, sizeof figures->engine, "%s", serving.reader.traits.engine);
        reader_close(&serving.reader);
    }
    free(serving.first_place);
    if (serving.reader.held == 0)
        free(serving.requests);
    return code;
}
