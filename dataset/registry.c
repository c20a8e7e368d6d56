/* SPDX-License-Identifier: Apache-2.0
 * The kinds of storage. The first one whose scheme is a prefix of the path serves it. */
#include "dataset/store.h"

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
