/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/reader.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DRAIN_WAIT_NS = 100000000 };
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
        count = reader_reap(reader, done, 32, DRAIN_WAIT_NS);
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

int reader_pass_submit(struct reader *reader, struct read_request *request)
{
    return start_request(reader, request, reader->traits.batches ? 0 : clock_now_ns());
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

void reader_wake(const struct reader *reader)
{
    if (reader->ops->wake)
        reader->ops->wake(reader->state);
}

void reader_pass_release(const struct reader *reader, struct read_request *request)
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
    reader_pass_release(reader, request);
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
