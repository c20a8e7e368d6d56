/* SPDX-License-Identifier: Apache-2.0
 *
 * nfs_sockets: waits for the sockets of many libnfs contexts. A turn costs as much as the sockets
 * with events or new calls, however many others there are. One thread.
 *
 * libnfs queues calls and sends them in nfs_service(). The owner marks a socket when it has made
 * calls; nfs_socket_flush() sends them at once, so that epoll has to watch for room only when the
 * socket is full. While libnfs mounts it may close the socket and open another one with the same
 * number, so until then a socket stays marked and is registered again in every turn.
 */
#ifndef IOBENCH_READERS_NFS_SOCKETS_H
#define IOBENCH_READERS_NFS_SOCKETS_H

#include "readers/waker.h"

#include <stdbool.h>
#include <stdint.h>

struct nfs_context;

struct nfs_socket {
    struct nfs_context *context; /* NULL: none */
    bool is_mounting;
    /* private */
    bool is_marked;
    int fd;          /* as registered, with these events */
    uint32_t events; /* 0: not registered */
    struct nfs_socket *next_marked;
};

struct nfs_sockets {
    int epoll;
    struct waker *waker; /* ends a wait */
    struct nfs_socket *marked;
};

/* Returns 0 or a negative errno with a reason; call nfs_sockets_close() either way. */
int nfs_sockets_open(struct nfs_sockets *sockets, struct waker *waker);
void nfs_sockets_close(struct nfs_sockets *sockets);

/* Let the next nfs_sockets_settle() look at the socket. */
void nfs_socket_mark(struct nfs_sockets *sockets, struct nfs_socket *socket);
/* Call look() once for each marked socket; what that marks is for the next call. */
void nfs_sockets_settle(struct nfs_sockets *sockets, void (*look)(struct nfs_socket *socket));
/* For look(): send the calls made and wait for what libnfs waits for. Returns false if the
 * connection broke. */
bool nfs_socket_flush(struct nfs_sockets *sockets, struct nfs_socket *socket);

/* Wait for events, at most wait_ms, and hand them to libnfs. Sockets with events become marked;
 * lost() is called for those whose connection broke. */
void nfs_sockets_wait(struct nfs_sockets *sockets, int wait_ms,
                      void (*lost)(struct nfs_socket *socket));

#endif
