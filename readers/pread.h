/* SPDX-License-Identifier: Apache-2.0
 *
 * pread: one blocking read, for pool.h; also what io_uring falls back to. On a pool's thread.
 */
#ifndef IOBENCH_READERS_PREAD_H
#define IOBENCH_READERS_PREAD_H

#include "readers/pool.h"

void pread_job(struct pool_job *job);

#endif
