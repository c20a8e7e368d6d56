/* SPDX-License-Identifier: Apache-2.0
 *
 * libnfs: one interface to versions 4 and 5 and to 6 and later. From version 6 on a read stores its
 * bytes in the caller's buffer as they arrive, perhaps after the caller has given up. */
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

/* Copy the bytes of a read, in its callback. */
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

/* Copy the bytes of a read, in its callback. */
static inline void libnfs_take(void *buffer, const void *body, size_t bytes)
{
    memcpy(buffer, body, bytes);
}
#endif

#endif
