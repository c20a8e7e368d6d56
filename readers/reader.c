/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/reader.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int reader_open(struct reader *reader, const struct plugin_choice *choice,
                const struct reader_site *site)
{
    *reader = (struct reader){.ops = (const struct reader_ops *)(const void *)choice->plugin,
                              .site = *site};
    int code = plugin_usable(choice->plugin);
    if (code)
        return code;
    reader->state = memory_zeroed(choice->plugin->state_size);
    if (!reader->state)
        return -ENOMEM;
    reader->traits.alignment = 1;
    code = reader->ops->open(reader->state, choice->settings, &reader->site, &reader->traits);
    assert(code || (reader->traits.alignment > 0 &&
                    (reader->traits.alignment & (reader->traits.alignment - 1)) == 0));
    return code;
}

void reader_close(struct reader *reader)
{
    if (reader->state)
        reader->ops->close(reader->state);
    free(reader->state);
    reader->state = NULL;
}

int reader_submit(struct reader *reader, struct read_request *request)
{
    assert(request->bytes > 0 && request->needed <= request->bytes);
    assert(request->shard < reader->site.catalog->shard_count);
    assert(request->offset % reader->traits.alignment == 0);
    assert(reader->traits.lends || reader->traits.no_bytes || request->buffer);

    if (reader->in_flight == reader->site.depth)
        return -EAGAIN;
    request->submit_ns = clock_now_ns();
    request->data = NULL;
    request->result = 0;
    int code = reader->ops->submit(reader->state, request);
    if (code == 0)
        reader->in_flight++;
    return code;
}

static void account(struct reader *reader, struct read_request *request, uint64_t now_ns)
{
    struct reader_figures *figures = &reader->figures;

    request->complete_ns = now_ns;
    figures->requests++;
    if (request->result < 0) {
        figures->errors++;
        return;
    }
    assert((uint32_t)request->result >= request->needed);
    assert(request->data || reader->traits.no_bytes);
    figures->bytes += (uint32_t)request->result;
    if (reader->traits.lends)
        reader->loans++;
    histogram_add(&figures->latency_ns, now_ns - request->submit_ns);
}

int reader_reap(struct reader *reader, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    int count = reader->ops->reap(reader->state, done, max, wait_ns);

    if (count <= 0)
        return count;
    uint64_t now_ns = clock_now_ns();
    assert((uint32_t)count <= reader->in_flight);
    reader->in_flight -= (uint32_t)count;
    for (int i = 0; i < count; i++)
        account(reader, done[i], now_ns);
    return count;
}

void reader_release(struct reader *reader, struct read_request *request)
{
    if (!reader->traits.lends || request->result < 0)
        return;
    assert(reader->loans > 0);
    reader->loans--;
    reader->ops->release(reader->state, request);
    request->data = NULL;
}
