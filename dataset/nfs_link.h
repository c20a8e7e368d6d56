/* SPDX-License-Identifier: Apache-2.0
 *
 * nfs_link: a pool of connections to NFS servers, one call at a time each. libnfs itself waits for
 * a dead server forever; here every wait times out.
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

/* A mounted export and its protocol version, found once by trying. */
struct nfs_place {
    char server[NFS_SERVER_BYTES];
    char folder[PATH_MAX]; /* the path on the server; no trailing slash unless "/" */
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
    void *body;     /* a reply that outlives the callback: an open file, a folder */
    void *into;     /* any other reply is copied here */
    size_t bytes;   /* its size; 0: status bytes, of a read */
    char text[160]; /* libnfs's reason */
};

/* Find the folder to mount for url: itself or its nearest existing parent. version: 3, 4, or 0 for
 * 3 if the server has it. The place is never freed. Returns 0 or a negative errno with a reason. */
int nfs_place_find(const char *url, int version, const struct nfs_place **place);
/* Return the part of url below the mount, "/" for the mount itself. url must be in the place. */
const char *nfs_place_below(const struct nfs_place *place, const char *url);

bool nfs_place_holds(const struct nfs_place *place, const char *url);

/* A context of libnfs for the place, to be mounted; as an NFS 4 client it has a name that no other
 * one of this or another machine has. NULL without memory. */
struct nfs_context *nfs_new_context(const struct nfs_place *place);

/* Acquire a link to the place, waiting for an unreachable server until deadline_ns. Returns 0 or a
 * negative errno with a reason. */
int nfs_link_take(const struct nfs_place *place, uint64_t deadline_ns, struct nfs_link **link);
void nfs_link_give(struct nfs_link *link);
void nfs_link_drop(struct nfs_link *link); /* it is broken; NULL is fine */

/* Return whether this status from libnfs means that the connection was lost, not that the file has
 * a fault. */
bool nfs_link_is_lost(int status);

/* Completion callback for libnfs. */
void nfs_call_answer(int status, struct nfs_context *context, void *body, void *private);

/* Wait for a started call. Returns its status, or -ETIMEDOUT or -ECONNRESET (connection lost)
 * without a reason: then the link is dead; drop it. */
int nfs_link_wait(struct nfs_link *link, struct nfs_call *call, uint64_t deadline_ns);

#endif
