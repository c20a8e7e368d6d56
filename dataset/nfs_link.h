/* SPDX-License-Identifier: Apache-2.0
 *
 * nfs_link: connections to NFS servers, one call at a time each, kept for the next user. libnfs
 * itself waits for a dead server for ever; here every wait has an end.
 *
 * Any thread; a link belongs to one thread from take to give.
 */
#ifndef IOBENCH_DATASET_NFS_LINK_H
#define IOBENCH_DATASET_NFS_LINK_H

#include "dataset/libnfs.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { NFS_SERVER_BYTES = 256 };

/* What is mounted of a server, and how: found by trying, once. */
struct nfs_place {
    char server[NFS_SERVER_BYTES];
    char folder[PATH_MAX]; /* as the server calls it; no slash at its end unless it is "/" */
    int version;           /* 3 or 4 */
};

struct nfs_link {
    struct nfs_context *context;
    const struct nfs_place *place;
    struct nfs_link *next;
};

struct nfs_call {
    int status; /* >= 0, or a negative errno */
    bool done;
    void *body;     /* the answer where it outlives the callback: an open file, a folder */
    void *into;     /* else it is copied to here */
    size_t bytes;   /* how much of it; 0: status bytes, what a read brought */
    char text[160]; /* why it failed, as libnfs says it */
};

/* The folder to mount for url: itself, or the next one up that is there. version: 3, 4 or 0 for
 * 3 where the server has it. The place is kept for good. 0 or a negative errno with a reason. */
int nfs_place_find(const char *url, int version, const struct nfs_place **place);
/* The part of url below what is mounted, "/" for that itself. url must lie in the place. */
const char *nfs_place_below(const struct nfs_place *place, const char *url);

bool nfs_place_holds(const struct nfs_place *place, const char *url);

/* Name of an NFS 4 client, which no other connection of this or another machine has. */
void nfs_client_name(char *name, size_t bytes, const void *connection);

/* A link to the place, waiting for a server that is away until deadline_ns. 0 or a negative
 * errno with a reason. */
int nfs_link_take(const struct nfs_place *place, uint64_t deadline_ns, struct nfs_link **link);
void nfs_link_give(struct nfs_link *link);
void nfs_link_drop(struct nfs_link *link); /* it is broken; NULL is fine */

/* Does this status from libnfs mean that the connection was lost, not that the file has a fault? */
bool nfs_link_is_lost(int status);

/* Tell libnfs that a call answers here. */
void nfs_call_answer(int status, struct nfs_context *context, void *body, void *private);

/* Wait for a call that was started. Its status; -ETIMEDOUT or -ECONNRESET (the connection is lost)
 * without a reason: then the link is dead and is to be dropped. */
int nfs_link_wait(struct nfs_link *link, struct nfs_call *call, uint64_t deadline_ns);

#endif
