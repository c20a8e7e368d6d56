/* SPDX-License-Identifier: Apache-2.0
 *
 * The tcp transport: sockets between all ranks, each over several connections if wanted. It has no
 * collectives of its own.
 */
#include "cmd/net/tcp.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Each rank listens and publishes its addresses through the control plane; then it connects to the
 * ranks above it, which tell it from strangers by a random number. */
enum { ADDRESSES = 8, BACKLOG = 4096, TRY_MS = 3000 };
static const uint64_t all_ns = UINT64_C(60000000000);

/* An IPv4 address of a rank, and its network; as sent to the other ranks. */
struct tcp_address {
    uint32_t host, mask; /* in network order */
};

struct tcp_card {
    struct tcp_address addresses[ADDRESSES];
    uint64_t secret;
    uint16_t port; /* in network order */
    uint16_t count;
};

struct tcp_hello {
    uint64_t secret; /* of the rank that is called */
    uint32_t rank, connection;
};

struct transport_tcp_state {
    struct transport_config config;
    const struct tcp_settings *settings;
    uint32_t connections, flow_count;
    struct tcp_flow *flows;   /* receives and sends, of each connection, of each rank */
    struct tcp_flow **active; /* that have segments */
    uint32_t active_count;
    const struct tcp_engine *engine;
    void *engine_state;
    int listener;
    struct tcp_card mine, *cards;
};

/* The receives of a connection; the sends follow. */
static struct tcp_flow *flow_of(const struct transport_tcp_state *tcp, uint32_t peer,
                                uint64_t connection)
{
    assert(connection < tcp->connections && peer < tcp->config.ranks->place.ranks);
    return &tcp->flows[2 * (peer * tcp->connections + connection)];
}

static int listen_here(struct transport_tcp_state *tcp)
{
    struct tcp_card *mine = &tcp->mine;
    const char *interface = tcp->settings->interface;
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t length = sizeof any;
    struct ifaddrs *list;

    if (getifaddrs(&list))
        return fail(errno, "transport tcp: no addresses: %s", fail_errno_text(errno));
    for (int loopback = 0; loopback < 2 && mine->count == 0; loopback++)
        for (const struct ifaddrs *at = list; at && mine->count < ADDRESSES; at = at->ifa_next) {
            struct sockaddr_in address, mask;
            if (!(at->ifa_addr && at->ifa_netmask && at->ifa_addr->sa_family == AF_INET &&
                  at->ifa_flags & IFF_UP && !(at->ifa_flags & IFF_LOOPBACK) == !loopback &&
                  (!interface || strcmp(at->ifa_name, interface) == 0)))
                continue;
            memcpy(&address, at->ifa_addr, sizeof address);
            memcpy(&mask, at->ifa_netmask, sizeof mask);
            mine->addresses[mine->count++] =
                (struct tcp_address){.host = address.sin_addr.s_addr, .mask = mask.sin_addr.s_addr};
        }
    freeifaddrs(list);
    if (mine->count == 0)
        return fail(ENODEV, "transport tcp: interface %s has no IPv4 address: see 'ip addr'",
                    interface ? interface : "(any)");
    if (interface)
        any.sin_addr.s_addr = mine->addresses[0].host;
    tcp->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (tcp->listener < 0 || bind(tcp->listener, (struct sockaddr *)&any, sizeof any) ||
        listen(tcp->listener, BACKLOG) ||
        getsockname(tcp->listener, (struct sockaddr *)&any, &length) ||
        getrandom(&mine->secret, sizeof mine->secret, 0) < 0)
        return fail(errno, "transport tcp: cannot listen: %s", fail_errno_text(errno));
    mine->port = any.sin_port;
    return 0;
}

/* Returns a socket or a negative errno. */
static int call(const struct transport_tcp_state *tcp, uint32_t host, uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = host};
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = tcp->mine.addresses[0].host};
    const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd polled = {.fd = handle, .events = POLLOUT};
    int code = handle < 0 ? -errno : 0, error = 0;
    socklen_t length = sizeof error;

    if (code == 0 && tcp->settings->interface &&
        bind(handle, (const struct sockaddr *)&from, sizeof from))
        code = -errno;
    if (code == 0 && connect(handle, (const struct sockaddr *)&to, sizeof to))
        code = -errno;
    if (code == -EINPROGRESS && poll(&polled, 1, TRY_MS) <= 0)
        code = -ETIMEDOUT;
    else if (code == -EINPROGRESS) {
        getsockopt(handle, SOL_SOCKET, SO_ERROR, &error, &length);
        code = -error;
    }
    if (code && handle >= 0)
        close(handle);
    return code ? code : handle;
}

/* Addresses in a network of our own come first. */
static int call_rank(const struct transport_tcp_state *tcp, uint32_t peer)
{
    const struct tcp_card *mine = &tcp->mine, *card = &tcp->cards[peer];
    char text[INET_ADDRSTRLEN] = "none";
    int handle = -EHOSTUNREACH;

    for (int far = 0; far < 2; far++)
        for (uint32_t i = 0; i < card->count && handle < 0; i++) {
            const uint32_t host = card->addresses[i].host;
            bool is_far = true;
            for (uint32_t k = 0; k < mine->count && is_far; k++)
                is_far = (mine->addresses[k].host ^ host) & mine->addresses[k].mask;
            if (is_far != far)
                continue;
            inet_ntop(AF_INET, &host, text, sizeof text);
            handle = call(tcp, host, card->port);
        }
    return handle >= 0
               ? handle
               : fail(-handle,
                      "transport tcp: no connection to rank %u on %s, last tried %s: %s; "
                      "choose tcp:interface=NAME, or open the firewall between the nodes",
                      peer, tcp->config.ranks->peers[peer].host, text, fail_errno_text(handle));
}

static void connect_flows(struct tcp_flow *flows, int handle)
{
    flows[0].socket = flows[1].socket = handle;
    setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* Call the ranks above this one, and wait for the calls of those below. */
static int connect_all(void *context)
{
    const struct transport_tcp_state *tcp = context;
    const struct ranks_place *place = &tcp->config.ranks->place;
    const uint64_t deadline_ns = clock_now_ns() + all_ns;

    for (uint32_t peer = place->rank + 1; peer < place->ranks; peer++)
        for (uint32_t i = 0; i < tcp->connections; i++) {
            const struct tcp_hello hello = {
                .secret = tcp->cards[peer].secret, .rank = place->rank, .connection = i};
            const int handle = call_rank(tcp, peer);
            if (handle < 0)
                return handle;
            connect_flows(flow_of(tcp, peer, i), handle);
            if (send(handle, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
                return fail(EIO, "transport tcp: rank %u does not listen: %s", peer,
                            fail_errno_text(errno));
        }
    for (uint32_t left = place->rank * tcp->connections; left > 0;) {
        struct pollfd polled = {.fd = tcp->listener, .events = POLLIN};
        struct tcp_hello hello;
        if (clock_now_ns() > deadline_ns)
            return fail(ETIMEDOUT, "transport tcp: %u connections from other ranks are missing",
                        left);
        poll(&polled, 1, 100);
        const int handle = accept4(tcp->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (handle < 0)
            continue;
        /* Is the caller a rank that is still missing? */
        polled.fd = handle;
        if (poll(&polled, 1, TRY_MS) > 0 &&
            recv(handle, &hello, sizeof hello, MSG_DONTWAIT) == (ssize_t)sizeof hello &&
            hello.secret == tcp->mine.secret && hello.rank < place->rank &&
            hello.connection < tcp->connections &&
            flow_of(tcp, hello.rank, hello.connection)->socket < 0) {
            connect_flows(flow_of(tcp, hello.rank, hello.connection), handle);
            left--;
        } else
            close(handle);
    }
    return 0;
}

/* Plain non-blocking calls. */

enum { IDLE_MAX = 128, POLLED_MAX = 256 };

static int plain_progress(void *state, struct tcp_flow *const *active, uint32_t count, bool *moved)
{
    static uint32_t still; /* calls in a row that moved nothing */
    int code = 0;

    (void)state;
    for (uint32_t i = 0; i < count && code == 0; i++) {
        struct tcp_flow *flow = active[i];
        while (flow->count && code == 0) {
            const struct tcp_segment *segment = &flow->segments[flow->first];
            const ssize_t bytes =
                flow->sends
                    ? send(flow->socket, segment->data, segment->bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                    : recv(flow->socket, segment->data, segment->bytes, MSG_DONTWAIT);
            if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
                break;
            if (bytes > 0)
                tcp_advance(flow, (uint64_t)bytes);
            else
                code = tcp_fail(flow, bytes ? errno : 0);
            *moved |= bytes > 0;
        }
    }
    still = *moved ? 0 : still + 1;
    if (code == 0 && still > IDLE_MAX) {
        /* Ranks may share CPUs. */
        struct pollfd polled[POLLED_MAX];
        nfds_t polled_count = 0;
        for (uint32_t i = 0; i < count && polled_count < POLLED_MAX; i++)
            if (active[i]->count)
                polled[polled_count++] = (struct pollfd){
                    .fd = active[i]->socket, .events = active[i]->sends ? POLLOUT : POLLIN};
        poll(polled, polled_count, 1);
    }
    return code;
}

const struct tcp_engine tcp_plain = {
    .name = "plain",
    .progress = plain_progress,
};

void tcp_advance(struct tcp_flow *flow, uint64_t bytes)
{
    struct tcp_segment *segment = &flow->segments[flow->first];

    assert(flow->count > 0 && bytes <= segment->bytes);
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
    const struct tcp_settings *settings = tcp->settings = wanted;
    const uint32_t connections = (uint32_t)settings->connections;
    const uint32_t count = 2 * config->ranks->place.ranks * connections;

    tcp->config = *config;
    tcp->connections = connections;
    tcp->listener = -1;
    tcp->flows = memory_array(count, sizeof *tcp->flows);
    tcp->active = memory_array(count, sizeof(struct tcp_flow *));
    tcp->flow_count = tcp->flows ? count : 0;
    for (uint32_t i = 0; i < tcp->flow_count; i++)
        tcp->flows[i] =
            (struct tcp_flow){.socket = -1, .peer = i / 2 / connections, .sends = i % 2};
    int code = tcp->flows && tcp->active ? listen_here(tcp) : -ENOMEM;
    tcp->cards = ranks_collect(config->ranks, &code, &tcp->mine, sizeof tcp->mine);
    if (code == 0)
        code = ranks_do(config->ranks, "connecting all ranks", connect_all, tcp);
    if (tcp->listener >= 0)
        close(tcp->listener);
    free(tcp->cards);
    if (code)
        return code;
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
        code = tcp->engine->open ? tcp->engine->open(&tcp->engine_state) : 0;
    }
    return code;
}

static void transport_tcp_close(void *state, bool failed)
{
    struct transport_tcp_state *tcp = state;

    (void)failed;
    if (tcp->engine_state)
        tcp->engine->close(tcp->engine_state);
    for (uint32_t i = 0; i < tcp->flow_count; i += 2)
        if (tcp->flows[i].socket >= 0)
            close(tcp->flows[i].socket);
    free(tcp->flows);
    free(tcp->active);
}

static void transport_tcp_describe(void *state, char *text, size_t bytes)
{
    const struct transport_tcp_state *tcp = state;
    char address[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &tcp->mine.addresses[0].host, address, sizeof address);
    snprintf(text, bytes, "TCP from %s, %u connection%s per pair, %s", address, tcp->connections,
             tcp->connections == 1 ? "" : "s",
             tcp->engine->describe ? tcp->engine->describe(tcp->engine_state)
                                   : "plain send and recv");
}

/* Divide a message over the connections. Small ones use the first only. */
static int transport_tcp_start(void *state, const struct transport_message *message, bool sends)
{
    enum { DIVIDED_BYTES = 65536 };
    struct transport_tcp_state *tcp = state;
    const uint64_t parts = message->bytes < DIVIDED_BYTES ? 1 : tcp->connections;
    unsigned char *data = tcp->config.arena + (sends ? message->from : message->to);
    int code = 0;

    for (uint64_t i = 0; i < parts && code == 0; i++) {
        const uint64_t from = message->bytes * i / parts, to = message->bytes * (i + 1) / parts;
        struct tcp_flow *flow = flow_of(tcp, message->peer, i) + sends;
        if (from == to)
            continue;
        assert(flow->count < TCP_SEGMENTS);
        flow->segments[(flow->first + flow->count++) % TCP_SEGMENTS] =
            (struct tcp_segment){.data = data + from, .bytes = to - from};
        if (flow->count > 1)
            continue;
        if (!flow->is_busy) /* else it waits for notices */
            tcp->active[tcp->active_count++] = flow;
        assert(tcp->active_count <= tcp->flow_count);
        flow->is_busy = true;
        code = tcp->engine->start ? tcp->engine->start(tcp->engine_state, flow) : 0;
    }
    return code;
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
    .start = transport_tcp_start,
    .test = transport_tcp_test,
    .pending = transport_tcp_pending,
};
