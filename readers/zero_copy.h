/* SPDX-License-Identifier: Apache-2.0
 *
 * lend: what readers that lend mapped pages do: on the threads of a pool where page faults must be
 * taken, else without.
 */
#ifndef IOBENCH_READERS_ZERO_COPY_H
#define IOBENCH_READERS_ZERO_COPY_H

#include "readers/io_pool.h"

/* Take the page faults of [first, first + bytes), and lend it as the task's data. A page that
 * cannot be read is an error of the task, where touching it would end the program by SIGBUS:
 * -ESTALE when the file has become shorter than it was indexed, else -EIO. */
void borrow_pages(struct io_task *task, const uint8_t *first, uint32_t bytes);

/* Before any other call: whoever uses loans does so under base/fault_guard.h, as files may be cut.
 * A descriptor for borrow_resident(), or -1: the kernel cannot tell which pages take no fault. */
int zero_copy_open(void);

/* Lend the task's bytes, which lie at first, if touching them takes no page fault, else false. */
bool borrow_resident(int pagemap, struct io_task *task, const uint8_t *first);

#endif
