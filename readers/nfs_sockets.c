/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/nfs_sockets.h"

#include "base/fail.h"
#include "dataset/libnfs.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

/* libnfs speaks of poll()'s events. */
_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
                   EPOLLHUP == POLLHUP,
               "epoll has the events of poll");

enum { EVENTS_MOST = 65 };

int nfs_sockets_open(struct nfs_sockets *sockets, struct waker *waker)
{
    struct epoll_event event = {.events = EPOLLIN}; /* data.ptr NULL: the waker */

    *sockets = (struct nfs_sockets){.epoll = epoll_create1(EPOLL_CLOEXEC), .waker = waker};
    if (sockets->epoll < 0)
        return fail(errno, "epoll_create1: %s", fail_errno_text(errno));
    if (epoll_ctl(sockets->epoll, EPOLL_CTL_ADD, waker->fd, &event))
        return fail(errno, "epoll_ctl: %s", fail_errno_text(errno));
    return 0;
}

void nfs_sockets_close(struct nfs_sockets *sockets)
{
    if (sockets->epoll > 0)
        close(sockets->epoll);
    sockets->epoll = -1;
}

void nfs_socket_mark(struct nfs_sockets *sockets, struct nfs_socket *socket)
{
    if (socket->is_marked)
        return;
    socket->is_marked = true;
    socket->next_marked = sockets->marked;
    sockets->marked = socket;
}

void nfs_sockets_settle(struct nfs_sockets *sockets, void (*look)(struct nfs_socket *socket))
{
    struct nfs_socket *socket = sockets->marked;

    sockets->marked = NULL;
    while (socket) {
        struct nfs_socket *next = socket->next_marked;
        look(socket);
        socket->is_marked = false; /* calls made by look() were flushed by it */
        if (socket->context && socket->is_mounting)
            nfs_socket_mark(sockets, socket);
        socket = next;
    }
}

/* A closed socket has left the epoll set, and its number may be in use again. */
static bool watch(const struct nfs_sockets *sockets, struct nfs_socket *socket, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = socket};
    int fd = nfs_get_fd(socket->context);

    if (!socket->is_mounting && fd == socket->fd && events == socket->events)
        return true;
    socket->fd = fd;
    socket->events = events;
    if (fd < 0 || epoll_ctl(sockets->epoll, EPOLL_CTL_MOD, fd, &event) == 0)
        return true; /* without a socket libnfs will open one, or the mount times out */
    return errno == ENOENT && epoll_ctl(sockets->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool nfs_socket_flush(struct nfs_sockets *sockets, struct nfs_socket *socket)
{
    uint32_t events = (uint32_t)nfs_which_events(socket->context);

    /* While it mounts, POLLOUT would tell libnfs that the socket is connected. */
    if (events & EPOLLOUT && !socket->is_mounting) {
        if (nfs_service(socket->context, POLLOUT) < 0)
            return false;
        events = (uint32_t)nfs_which_events(socket->context);
    }
    return watch(sockets, socket, events);
}

void nfs_sockets_wait(struct nfs_sockets *sockets, int wait_ms,
                      void (*lost)(struct nfs_socket *socket))
{
    struct epoll_event events[EVENTS_MOST];
    int ready = epoll_wait(sockets->epoll, events, EVENTS_MOST, wait_ms);

    for (int i = 0; i < ready; i++) {
        struct nfs_socket *socket = events[i].data.ptr;
        if (!socket) {
            waker_silence(sockets->waker);
            continue;
        }
        nfs_socket_mark(sockets, socket);
        if (nfs_service(socket->context, (int)events[i].events) < 0)
            lost(socket);
    }
}
