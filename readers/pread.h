/* SPDX-License-Identifier: Apache-2.0
 *
 * pread: one blocking read, for io_pool.h; also what io_uring falls back to. On a pool's thread.
 */
#ifndef IOBENCH_READERS_PREAD_H
#define IOBENCH_READERS_PREAD_H

#include "readers/io_pool.h"

void pread_task(struct io_task *task);

#endif
