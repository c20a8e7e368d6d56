/* SPDX-License-Identifier: Apache-2.0
 *
 * module: a part of the trainer that needs rare libraries, as a shared object beside the program.
 * The program starts where they are missing; it is loaded when it is asked for. Main thread.
 */
#ifndef IOBENCH_TRAINER_MODULE_H
#define IOBENCH_TRAINER_MODULE_H

struct module {
    const char *file;     /* "iobench-cuda.so" */
    const char *variable; /* of the environment; names another file to take in its place */
    const char *symbol;   /* what is wanted of it */
    /* Libraries that it needs, by soname, NULL-terminated. They are looked for where the loader
     * looks, in CUDA toolkits and in Python's site-packages, where PyTorch brings its own. */
    const char *const *libraries;
};

/* What lies at the symbol, or NULL with a reason. The module stays loaded. */
const void *module_find(const struct module *module);

#endif
