/* SPDX-License-Identifier: Apache-2.0
 *
 * module: parts of the trainer that need rare libraries, as shared objects next to the program,
 * loaded on demand. The program starts without them. Main thread.
 */
#ifndef IOBENCH_TRAINER_MODULE_H
#define IOBENCH_TRAINER_MODULE_H

struct module;

extern const struct module module_cuda, module_nccl; /* iobench-cuda.so, iobench-nccl.so */

/* Return the address of a symbol, or NULL with a reason. The module stays loaded. */
const void *module_find(const struct module *module, const char *symbol);

#endif
