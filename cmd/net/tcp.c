/* SPDX-License-Identifier: Apache-2.0
 *
 * The tcp transport: sockets between all ranks, each over several connections if wanted. It has no
 * collectives of its own.
 */
#include "cmd/net/tcp.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "cmd/net/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADDRESS_BYTES = 64 };

struct tcp_settings {
    uint64_t connections;
    char *interface, *engine;
};

#define FIELD(field) .offset = offsetof(struct tcp_settings, field)
/* clang-format off */
static const struct option_spec tcp_options[] = {
    {"connections", 0, OPTION_COUNT, FIELD(connections), .fallback = "1", .minimum = 1,
     .maximum = TCP_CONNECTIONS_MAX, .summary = "between two ranks; messages are divided"},
    {"interface", 0, OPTION_TEXT, FIELD(interface), .metavar = "NAME",
     .summary = "network interface whose address is used, such as eth1"},
    {"engine", 0, OPTION_TEXT, FIELD(engine), .fallback = "auto", .metavar = "NAME",
     .summary = "uring, plain, or auto: uring between nodes, where it works"},
    {0},
};
/* clang-format on */

struct transport_tcp_state {
    struct transport_config config;
    uint32_t connections, socket_count;
    int *sockets;
    struct tcp_flow *flows; /* two for each socket: receives, sends */
    struct tcp_flow **active;
    uint32_t active_count;
    const struct tcp_engine *engine;
    void *engine_state;
    char address[ADDRESS_BYTES];
};

void tcp_advance(struct tcp_flow *flow, uint64_t bytes)
{
    struct tcp_segment *segment = &flow->segments[flow->first];

    segment->data += bytes;
    segment->bytes -= bytes;
    if (segment->bytes == 0) {
        flow->first = (flow->first + 1) % TCP_SEGMENTS;
        flow->count--;
    }
}

int tcp_fail(const struct tcp_flow *flow, int error)
{
    return error
               ? fail(error, "transport tcp: %s rank %u: %s",
                      flow->sends ? "send to" : "receive from", flow->peer, fail_errno_text(error))
               : fail(ECONNRESET, "transport tcp: rank %u closed the connection", flow->peer);
}

static int transport_tcp_open(void *state, const void *wanted,
                              const struct transport_config *config)
{
    struct transport_tcp_state *tcp = state;
    const struct tcp_settings *settings = wanted;
    const uint32_t ranks = config->ranks->place.ranks;

    tcp->config = *config;
    tcp->connections = (uint32_t)settings->connections;
    tcp->sockets = memory_array((size_t)ranks * tcp->connections, sizeof *tcp->sockets);
    tcp->flows = memory_array((size_t)2 * ranks * tcp->connections, sizeof *tcp->flows);
    tcp->active = memory_array((size_t)2 * ranks * tcp->connections, sizeof(struct tcp_flow *));
    tcp->socket_count = tcp->sockets ? ranks * tcp->connections : 0;
    for (uint32_t i = 0; i < tcp->socket_count; i++)
        tcp->sockets[i] = -1;
    int code =
        ranks_meet(config->ranks, tcp->sockets && tcp->flows && tcp->active ? 0 : -ENOMEM, NULL);
    if (code == 0)
        code = tcp_connect_all(config->ranks, settings->interface, tcp->connections, tcp->sockets,
                               tcp->address);
    if (code)
        return code;
    for (uint32_t i = 0; i < 2 * tcp->socket_count; i++) {
        tcp->flows[i].socket = tcp->sockets[i / 2];
        tcp->flows[i].peer = i / 2 / tcp->connections;
        tcp->flows[i].sends = i % 2;
    }
    /* On a loopback the kernel copies what is sent in any case, and plain calls cost least. */
    const bool is_auto = strcmp(settings->engine, "auto") == 0;
    const bool is_local = tcp->config.ranks->place.nodes == 1;
    code =
        fail(EINVAL, "transport tcp: unknown engine '%s'; known: uring, plain", settings->engine);
    for (int i = 0; tcp_engines[i] && code; i++) {
        if (is_auto ? is_local && tcp_engines[i + 1]
                    : strcmp(settings->engine, tcp_engines[i]->name) != 0)
            continue;
        tcp->engine = tcp_engines[i];
        code = tcp->engine->open(&tcp->engine_state, tcp->flows, 2 * tcp->socket_count);
    }
    return code;
}

static void transport_tcp_close(void *state, bool failed)
{
    struct transport_tcp_state *tcp = state;

    (void)failed;
    if (tcp->engine_state)
        tcp->engine->close(tcp->engine_state);
    for (uint32_t i = 0; i < tcp->socket_count; i++)
        if (tcp->sockets[i] >= 0)
            close(tcp->sockets[i]);
    free(tcp->sockets);
    free(tcp->flows);
    free(tcp->active);
}

static void transport_tcp_describe(void *state, char *text, size_t bytes)
{
    const struct transport_tcp_state *tcp = state;

    snprintf(text, bytes, "TCP from %s, %u connection%s per pair, %s", tcp->address,
             tcp->connections, tcp->connections == 1 ? "" : "s",
             tcp->engine->describe(tcp->engine_state));
}

static int append(struct transport_tcp_state *tcp, struct tcp_flow *flow, unsigned char *data,
                  uint64_t bytes)
{
    if (bytes == 0)
        return 0;
    if (flow->count == TCP_SEGMENTS)
        return fail(EBUSY, "transport tcp: too many messages in flight");
    flow->segments[(flow->first + flow->count++) % TCP_SEGMENTS] =
        (struct tcp_segment){.data = data, .bytes = bytes};
    if (flow->count > 1)
        return 0;
    if (!flow->is_busy) /* else it waits for notices */
        tcp->active[tcp->active_count++] = flow;
    return tcp->engine->start(tcp->engine_state, flow);
}

/* Divide a message over the connections. Small ones use the first only. */
static int begin(struct transport_tcp_state *tcp, uint32_t peer, bool sends, uint64_t at,
                 uint64_t bytes)
{
    enum { DIVIDED_BYTES = 65536 };
    const uint64_t parts = bytes < DIVIDED_BYTES ? 1 : tcp->connections;
    int code = 0;

    for (uint64_t i = 0; i < parts && code == 0; i++) {
        const uint64_t from = bytes * i / parts, to = bytes * (i + 1) / parts;
        code = append(tcp, &tcp->flows[2 * (peer * tcp->connections + i) + sends],
                      tcp->config.arena + at + from, to - from);
    }
    return code;
}

static int transport_tcp_send(void *state, const struct transport_message *message)
{
    return begin(state, message->peer, true, message->from, message->bytes);
}

static int transport_tcp_receive(void *state, const struct transport_message *message)
{
    return begin(state, message->peer, false, message->to, message->bytes);
}

static int transport_tcp_test(void *state, bool *done)
{
    struct transport_tcp_state *tcp = state;
    bool moved = tcp->active_count > 0;
    int code = 0;

    while (moved && code == 0) {
        moved = false;
        code = tcp->engine->progress(tcp->engine_state, tcp->active, tcp->active_count, &moved);
        for (uint32_t i = 0; i < tcp->active_count;) {
            struct tcp_flow *flow = tcp->active[i];
            if (flow->count || flow->notices) {
                i++;
                continue;
            }
            flow->is_busy = false;
            tcp->active[i] = tcp->active[--tcp->active_count];
        }
        moved = moved && tcp->active_count;
    }
    *done = tcp->active_count == 0;
    return code;
}

/* TCP itself holds up a sender. */
static uint32_t transport_tcp_pending(const void *state)
{
    const struct transport_tcp_state *tcp = state;
    uint32_t most = 0;

    for (uint32_t i = 0; i < tcp->active_count; i++)
        most = tcp->active[i]->count > most ? tcp->active[i]->count : most;
    return most;
}

const struct transport_ops transport_tcp = {
    .plugin = {.name = "tcp",
               .summary = "TCP between all ranks; collectives are rings of messages",
               .options = tcp_options,
               .settings_size = sizeof(struct tcp_settings),
               .state_size = sizeof(struct transport_tcp_state)},
    .open = transport_tcp_open,
    .close = transport_tcp_close,
    .describe = transport_tcp_describe,
    .send = transport_tcp_send,
    .receive = transport_tcp_receive,
    .test = transport_tcp_test,
    .pending = transport_tcp_pending,
};
