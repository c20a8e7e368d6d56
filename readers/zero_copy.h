/* SPDX-License-Identifier: Apache-2.0
 *
 * zero_copy: reads of mapped files without a copy. Pages that may fault are faulted in on the
 * threads of an io_pool; resident ones need no thread.
 */
#ifndef IOBENCH_READERS_ZERO_COPY_H
#define IOBENCH_READERS_ZERO_COPY_H

#include "readers/io_pool.h"

/* Fault in [first, first + bytes) and make it the task's data. A page that cannot be read fails the
 * task instead of raising SIGBUS: -ESTALE if the file is shorter than when indexed, else -EIO. */
void borrow_pages(struct io_task *task, const uint8_t *first, uint32_t bytes);

/* Call first: files may be truncated, so mapped pages are used under fault_guard_begin(). Returns a
 * descriptor for borrow_resident(), or -1 if the kernel cannot tell which pages are resident. */
int zero_copy_open(void);

/* Make the pages at `first` the task's data if none would fault. Returns false if one might. */
bool borrow_resident(int pagemap, struct io_task *task, const uint8_t *first);

#endif
