/* SPDX-License-Identifier: Apache-2.0
 *
 * pread: one blocking read on an io_pool thread; also the fall-back of io_uring.
 */
#ifndef IOBENCH_READERS_PREAD_H
#define IOBENCH_READERS_PREAD_H

#include "readers/io_pool.h"

void pread_task(struct io_task *task);

#endif
