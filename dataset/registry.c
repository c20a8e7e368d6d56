/* SPDX-License-Identifier: Apache-2.0
 * The kinds of storage. The first one whose scheme is a prefix of the path serves it. */
#include "dataset/inflate.h"
#include "dataset/store.h"

#ifdef HAVE_ZSTD
const struct zstd_ops *const zstd_present = &zstd_stream;
#else
const struct zstd_ops *const zstd_present = NULL;
#endif

#ifndef HAVE_NFS
static const struct store_ops no_nfs = {
    .scheme = "nfs://",
    .missing = "built without libnfs: mount the export and use its path, or "
               "install libnfs-dev and rebuild",
};
#endif

const struct store_ops *const store_registry[] = {
#ifdef HAVE_NFS
    &store_nfs,
#else
    &no_nfs,
#endif
    &store_local,
};
