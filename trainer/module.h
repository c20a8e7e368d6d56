/* SPDX-License-Identifier: Apache-2.0
 *
 * module: parts of the trainer that need rare libraries, as shared objects next to the program,
 * loaded on demand. The program starts without them. Main thread.
 */
#ifndef IOBENCH_TRAINER_MODULE_H
#define IOBENCH_TRAINER_MODULE_H

struct module {
    const char *file;     /* "iobench-cuda.so" */
    const char *variable; /* environment variable that names another file to load */
    const char *symbol;   /* to look up */
    /* Required libraries by soname, NULL-terminated: searched for in the loader's paths, CUDA
     * toolkits and Python's site-packages, where PyTorch installs its own. */
    const char *const *libraries;
};

/* Returns the symbol's address, or NULL with a reason. The module stays loaded. */
const void *module_find(const struct module *module);

#endif
