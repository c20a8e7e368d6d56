/* SPDX-License-Identifier: Apache-2.0
 *
 * libnfs: its interface of versions 4 and 5, and the one of 6 and later, seen as one. From 6 on a
 * read puts its bytes where they belong by itself, when they come: perhaps after the caller has
 * given up. */
#ifndef IOBENCH_DATASET_LIBNFS_H
#define IOBENCH_DATASET_LIBNFS_H

#include <stdbool.h>
#include <string.h>
#include <sys/time.h>

#include <nfsc/libnfs.h>

#ifdef LIBNFS_API_V2
static const bool libnfs_writes_late = true;

static inline int libnfs_pread_async(struct nfs_context *context, struct nfsfh *file, void *buffer,
                                     size_t bytes, uint64_t offset, nfs_cb done, void *private)
{
    return nfs_pread_async(context, file, buffer, bytes, offset, done, private);
}

static inline int libnfs_pwrite_async(struct nfs_context *context, struct nfsfh *file,
                                      const void *buffer, size_t bytes, uint64_t offset,
                                      nfs_cb done, void *private)
{
    return nfs_pwrite_async(context, file, buffer, bytes, offset, done, private);
}

/* What a read brought, in its callback. */
static inline void libnfs_take(void *buffer, const void *body, size_t bytes)
{
    (void)buffer, (void)body, (void)bytes;
}
#else
static const bool libnfs_writes_late = false;

static inline int libnfs_pread_async(struct nfs_context *context, struct nfsfh *file, void *buffer,
                                     size_t bytes, uint64_t offset, nfs_cb done, void *private)
{
    (void)buffer;
    return nfs_pread_async(context, file, offset, bytes, done, private);
}

static inline int libnfs_pwrite_async(struct nfs_context *context, struct nfsfh *file,
                                      const void *buffer, size_t bytes, uint64_t offset,
                                      nfs_cb done, void *private)
{
    return nfs_pwrite_async(context, file, offset, bytes, (void *)(uintptr_t)buffer, done, private);
}

/* What a read brought, in its callback. */
static inline void libnfs_take(void *buffer, const void *body, size_t bytes)
{
    memcpy(buffer, body, bytes);
}
#endif

#endif
