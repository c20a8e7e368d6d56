/* SPDX-License-Identifier: Apache-2.0
 *
 * store_nfs: what the store and the nfs reader share: one interface to versions 4 and 5 of libnfs
 * and to 6 and later, and the places to mount. Any thread.
 *
 * From version 6 on a read stores its bytes in the caller's buffer as they arrive, perhaps after
 * the caller has given up.
 */
#ifndef IOBENCH_DATASET_STORE_NFS_H
#define IOBENCH_DATASET_STORE_NFS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>

#include <nfsc/libnfs.h>

#ifdef LIBNFS_API_V2
static const bool libnfs_writes_late = true;
#else
static const bool libnfs_writes_late = false;
#endif

static inline int libnfs_pread_async(struct nfs_context *context, struct nfsfh *file, void *buffer,
                                     size_t bytes, uint64_t offset, nfs_cb done, void *private)
{
#ifdef LIBNFS_API_V2
    return nfs_pread_async(context, file, buffer, bytes, offset, done, private);
#else
    (void)buffer;
    return nfs_pread_async(context, file, offset, bytes, done, private);
#endif
}

/* Copy the bytes of a read, in its callback. */
static inline void libnfs_take(void *buffer, const void *body, size_t bytes)
{
    if (!libnfs_writes_late)
        memcpy(buffer, body, bytes);
}

enum { NFS_SERVER_BYTES = 256 };

/* A mounted export and its protocol version, found once by trying. */
struct nfs_place {
    char server[NFS_SERVER_BYTES];
    char folder[PATH_MAX]; /* the path on the server; no trailing slash unless "/" */
    int version;           /* 3 or 4 */
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

/* Return whether this status from libnfs means that the connection was lost, not that the file has
 * a fault. */
bool nfs_link_is_lost(int status);

#endif
