/* SPDX-License-Identifier: Apache-2.0
 * The readers. Only for readers/registry.c. */
#ifndef IOBENCH_READERS_PLUGINS_H
#define IOBENCH_READERS_PLUGINS_H

#include "readers/reader.h"

extern const struct reader_ops reader_null;
extern const struct reader_ops reader_uring;
extern const struct reader_ops reader_nvme;
extern const struct reader_ops reader_inflate;
extern const struct reader_ops reader_pread;
extern const struct reader_ops reader_mmap;
extern const struct reader_ops reader_nfs;
extern const struct reader_ops reader_lmdb;

#endif
