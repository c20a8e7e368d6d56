/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects all ranks. Each rank listens and publishes its addresses through the control plane; then
 * it connects to the ranks above it, which tell it from strangers by a random number.
 */
#include "cmd/net/tcp.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

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

struct connecting {
    struct ranks *ranks;
    const char *interface;
    uint32_t connections;
    int *sockets;
    int listener;
    uint64_t deadline_ns;
    struct tcp_card mine, *cards;
};

/* ---- own addresses ---- */

static void add_addresses(struct tcp_card *card, const struct ifaddrs *list, const char *interface,
                          bool loopback)
{
    for (; list && card->count < ADDRESSES; list = list->ifa_next) {
        struct sockaddr_in address, mask;
        if (!(list->ifa_addr && list->ifa_netmask && list->ifa_addr->sa_family == AF_INET &&
              list->ifa_flags & IFF_UP && !(list->ifa_flags & IFF_LOOPBACK) == !loopback &&
              (!interface || strcmp(list->ifa_name, interface) == 0)))
            continue;
        memcpy(&address, list->ifa_addr, sizeof address);
        memcpy(&mask, list->ifa_netmask, sizeof mask);
        card->addresses[card->count++] =
            (struct tcp_address){.host = address.sin_addr.s_addr, .mask = mask.sin_addr.s_addr};
    }
}

static int listen_here(struct connecting *connecting)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t length = sizeof any;
    const char *interface = connecting->interface;
    struct ifaddrs *list;
    if (getifaddrs(&list))
        return fail(errno, "transport tcp: no addresses: %s", fail_errno_text(errno));
    add_addresses(&connecting->mine, list, interface, false);
    if (connecting->mine.count == 0)
        add_addresses(&connecting->mine, list, interface, true);
    freeifaddrs(list);
    int code = connecting->mine.count
                   ? 0
                   : fail(ENODEV, "transport tcp: interface %s has no IPv4 address: see 'ip addr'",
                          interface ? interface : "(any)");

    if (code)
        return code;
    if (connecting->interface)
        any.sin_addr.s_addr = connecting->mine.addresses[0].host;
    connecting->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connecting->listener < 0 ||
        bind(connecting->listener, (struct sockaddr *)&any, sizeof any) ||
        listen(connecting->listener, BACKLOG) ||
        getsockname(connecting->listener, (struct sockaddr *)&any, &length) ||
        getrandom(&connecting->mine.secret, sizeof connecting->mine.secret, 0) < 0)
        return fail(errno, "transport tcp: cannot listen: %s", fail_errno_text(errno));
    connecting->mine.port = any.sin_port;
    return 0;
}

/* ---- calling ---- */

/* Wait for a connection that is being made. Returns 0 or a negative errno. */
static int await_connection(int handle)
{
    struct pollfd polled = {.fd = handle, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;

    if (poll(&polled, 1, TRY_MS) <= 0)
        return -ETIMEDOUT;
    getsockopt(handle, SOL_SOCKET, SO_ERROR, &error, &length);
    return -error;
}

/* Returns a socket or a negative errno. */
static int call(const struct connecting *connecting, uint32_t host, uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = host};
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = connecting->mine.addresses[0].host};
    const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int code = handle < 0 ? -errno : 0;

    if (code == 0 && connecting->interface &&
        bind(handle, (const struct sockaddr *)&from, sizeof from))
        code = -errno;
    if (code == 0 && connect(handle, (const struct sockaddr *)&to, sizeof to))
        code = errno == EINPROGRESS ? await_connection(handle) : -errno;
    if (code && handle >= 0)
        close(handle);
    return code ? code : handle;
}

/* Are both in one network? */
static bool is_near(const struct tcp_card *mine, const struct tcp_address *address)
{
    for (uint32_t i = 0; i < mine->count; i++)
        if (((mine->addresses[i].host ^ address->host) & mine->addresses[i].mask) == 0)
            return true;
    return false;
}

/* Addresses in a network of our own come first. */
static int call_rank(const struct connecting *connecting, uint32_t peer)
{
    const struct tcp_card *card = &connecting->cards[peer];
    char text[INET_ADDRSTRLEN] = "none";
    int handle = -EHOSTUNREACH;

    for (int near = 1; near >= 0; near--)
        for (uint32_t i = 0; i < card->count && handle < 0; i++)
            if (is_near(&connecting->mine, &card->addresses[i]) == (near == 1)) {
                inet_ntop(AF_INET, &card->addresses[i].host, text, sizeof text);
                handle = call(connecting, card->addresses[i].host, card->port);
            }
    return handle >= 0
               ? handle
               : fail(-handle,
                      "transport tcp: no connection to rank %u on %s, last tried %s: %s; "
                      "choose tcp:interface=NAME, or open the firewall between the nodes",
                      peer, connecting->ranks->peers[peer].host, text, fail_errno_text(handle));
}

static int call_all(const struct connecting *connecting)
{
    const uint32_t rank = connecting->ranks->place.rank;
    int code = 0;

    for (uint32_t peer = rank + 1; peer < connecting->ranks->place.ranks; peer++)
        for (uint32_t i = 0; i < connecting->connections && code == 0; i++) {
            const struct tcp_hello hello = {
                .secret = connecting->cards[peer].secret, .rank = rank, .connection = i};
            const int handle = call_rank(connecting, peer);
            if (handle < 0)
                return handle;
            connecting->sockets[peer * connecting->connections + i] = handle;
            if (send(handle, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
                code = fail(EIO, "transport tcp: rank %u does not listen: %s", peer,
                            fail_errno_text(errno));
        }
    return code;
}

/* ---- being called ---- */

/* Returns whether the caller is a rank that is still missing. */
static bool admit(const struct connecting *connecting, int handle)
{
    struct pollfd polled = {.fd = handle, .events = POLLIN};
    struct tcp_hello hello;

    if (poll(&polled, 1, TRY_MS) <= 0 ||
        recv(handle, &hello, sizeof hello, MSG_DONTWAIT) != (ssize_t)sizeof hello ||
        hello.secret != connecting->mine.secret || hello.rank >= connecting->ranks->place.rank ||
        hello.connection >= connecting->connections)
        return false;
    int *place = &connecting->sockets[hello.rank * connecting->connections + hello.connection];
    if (*place >= 0)
        return false;
    *place = handle;
    return true;
}

static int answer_all(const struct connecting *connecting)
{
    uint32_t left = connecting->ranks->place.rank * connecting->connections;
    struct pollfd polled = {.fd = connecting->listener, .events = POLLIN};

    while (left) {
        if (clock_now_ns() > connecting->deadline_ns)
            return fail(ETIMEDOUT, "transport tcp: %u connections from other ranks are missing",
                        left);
        poll(&polled, 1, 100);
        const int handle = accept4(connecting->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (handle < 0)
            continue;
        if (admit(connecting, handle))
            left--;
        else
            close(handle);
    }
    return 0;
}

static int connect_body(void *context)
{
    const struct connecting *connecting = context;
    const uint32_t count = connecting->ranks->place.ranks * connecting->connections;
    int code = call_all(connecting);

    if (code == 0)
        code = answer_all(connecting);
    for (uint32_t i = 0; i < count && code == 0; i++)
        if (connecting->sockets[i] >= 0)
            setsockopt(connecting->sockets[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return code;
}

int tcp_connect_all(struct ranks *ranks, const char *interface, uint32_t connections, int *sockets,
                    char *address)
{
    struct connecting connecting = {.ranks = ranks,
                                    .interface = interface,
                                    .connections = connections,
                                    .sockets = sockets,
                                    .listener = -1,
                                    .deadline_ns = clock_now_ns() + all_ns};

    connecting.cards = memory_array(ranks->place.ranks, sizeof *connecting.cards);
    int code = connecting.cards ? listen_here(&connecting) : -ENOMEM;
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = ranks_gather(ranks, &connecting.mine, sizeof connecting.mine, connecting.cards);
    if (code == 0)
        code = ranks_do(ranks, "connecting all ranks", connect_body, &connecting);
    if (connecting.mine.count)
        inet_ntop(AF_INET, &connecting.mine.addresses[0].host, address, INET_ADDRSTRLEN);
    if (connecting.listener >= 0)
        close(connecting.listener);
    free(connecting.cards);
    return code;
}
