/* SPDX-License-Identifier: Apache-2.0
 * The readers, in the order users see them; --reader auto picks the first that works. */
#include "readers/plugins.h"

const struct plugin *const reader_registry[] = {
#ifdef HAVE_URING
    &reader_uring.plugin,
#endif
#ifdef HAVE_NVME
    &reader_nvme.plugin, /* after uring: --reader auto never means it */
#endif
    &reader_pread.plugin,   &reader_mmap.plugin,
    &reader_inflate.plugin,
#ifdef HAVE_NFS
    &reader_nfs.plugin,
#endif
#ifdef HAVE_LMDB
    &reader_lmdb.plugin,
#endif
    &reader_null.plugin,    NULL,
};
