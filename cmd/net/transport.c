/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/transport.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

/* Polls between two looks at the clock, and the time between two looks at the other ranks: latency
 * is not to be disturbed. */
enum { POLLS = 64 };
static const uint64_t look_ns = 1000000;

int transport_choose(struct transport *transport, const char *text)
{
    *transport = (struct transport){0};
    int code = plugin_choose("transport", transport_registry, text, &transport->choice);
    if (code)
        return code;
    const struct plugin *plugin = transport->choice.plugin;
    transport->ops = (const struct transport_ops *)(const void *)plugin;
    code = plugin_usable(plugin);
    if (code)
        return code;
    plugin = module_plugin(plugin);
    transport->ops = (const struct transport_ops *)(const void *)plugin;
    return plugin ? 0 : -ENODEV;
}

int transport_open(struct transport *transport, const struct transport_config *config)
{
    assert(!transport->state);
    transport->config = *config;
    transport->state = memory_zeroed(transport->ops->plugin.state_size + 1);
    int code = ranks_meet(config->ranks, transport->state ? 0 : -ENOMEM, NULL);
    if (code == 0)
        code = transport->ops->open(transport->state, transport->choice.settings, config);
    return ranks_meet(config->ranks, code, NULL);
}

void transport_close(struct transport *transport, bool failed)
{
    if (transport->state)
        transport->ops->close(transport->state, failed);
    free(transport->state);
    transport->state = NULL;
    plugin_release(&transport->choice);
}

const char *transport_describe(const struct transport *transport, char *text)
{
    text[0] = '\0';
    transport->ops->describe(transport->state, text, TRANSPORT_TEXT_BYTES);
    return text;
}

int transport_send(struct transport *transport, const struct transport_message *message)
{
    return transport->ops->start(transport->state, message, true);
}

int transport_receive(struct transport *transport, const struct transport_message *message)
{
    return transport->ops->start(transport->state, message, false);
}

int transport_put(struct transport *transport, uint64_t at, uint64_t bytes)
{
    return transport->ops->copy ? transport->ops->copy(transport->state, false, at, bytes) : 0;
}

int transport_get(struct transport *transport, uint64_t at, uint64_t bytes)
{
    return transport->ops->copy ? transport->ops->copy(transport->state, true, at, bytes) : 0;
}

bool transport_allows_collectives(const struct transport *transport)
{
    return transport->ops->collective || !transport->ops->copy;
}

int transport_start_collective(struct transport *transport, enum collective kind, uint64_t out,
                               uint64_t in, uint64_t bytes)
{
    assert(bytes % transport->config.ranks->place.ranks == 0);
    return transport->ops->collective(transport->state, kind, out, in, bytes);
}

/* most: pending when done. */
static int wait_until(struct transport *transport, uint32_t most)
{
    uint64_t start_ns = 0;
    int code = 0;

    while (code == 0) {
        for (int i = 0; i < POLLS && code == 0; i++) {
            bool done = false;
            code = transport->ops->test(transport->state, &done);
            if (code == 0 && (done || (most && transport->ops->pending(transport->state) <= most)))
                return 0;
        }
        const uint64_t now_ns = clock_now_ns();
        if (start_ns == 0)
            start_ns = now_ns;
        if (code == 0 && now_ns - transport->looked_ns > look_ns) {
            code = ranks_watch(transport->config.ranks, start_ns);
            transport->looked_ns = now_ns;
        }
        sched_yield(); /* ranks may share CPUs */
    }
    transport->config.ranks->is_broken = true; /* what is pending cannot be cancelled */
    return code;
}

int transport_wait(struct transport *transport)
{
    return wait_until(transport, 0);
}

int transport_make_room(struct transport *transport, uint32_t window)
{
    assert(window > 0 && window <= TRANSPORT_DEPTH);
    return transport->ops->pending(transport->state) < window ? 0
                                                              : wait_until(transport, window / 2);
}
