/* SPDX-License-Identifier: Apache-2.0
 *
 * module: parts of the program that need rare libraries, as shared objects next to it, loaded on
 * demand. The program starts without them. Main thread.
 */
#ifndef IOBENCH_BASE_MODULE_H
#define IOBENCH_BASE_MODULE_H

#include "base/plugin.h"

#include <jansson.h>

struct module {
    const char *file;
    const char *variable; /* environment variable that names another file to load */
    /* Required libraries by soname: searched for in the loader's paths, CUDA toolkits and Python's
     * site-packages, where PyTorch installs its own. */
    const char *libraries[4];
    bool is_global;     /* plug-ins of its libraries take symbols from the process */
    const char *remedy; /* when one of them is missing */
};

/* Return the plug-in to call instead of `front`, with the same settings; `front` itself if it is no
 * front end. NULL with a reason. The module stays loaded. */
const struct plugin *module_plugin(const struct plugin *front);
/* List the libraries loaded since the start: "path", and the "version" in that name or null. */
json_t *module_list(void);

#endif
