/* SPDX-License-Identifier: Apache-2.0
 *
 * signal_at.so: sends SIGTERM to a program that makes its $SIGNAL_AT-th primitive of oneDNN, and
 * says at the end how many it made. With $SIGNAL_NAP it sleeps that many ms before each. For
 * LD_PRELOAD, with glibc.
 */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int dnnl_primitive_create(void *primitive, const void *desc);

static unsigned made; /* by the main thread alone */

/* The library belongs to a module: it is not among those that RTLD_NEXT searches. */
static int open_library(struct dl_phdr_info *info, size_t bytes, void *library)
{
    (void)bytes;
    if (!strstr(info->dlpi_name, "libdnnl.so"))
        return 0;
    *(void **)library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return 1;
}

int dnnl_primitive_create(void *primitive, const void *desc)
{
    static int (*create)(void *, const void *);
    void *library = NULL;

    if (!create && dl_iterate_phdr(open_library, &library) && library)
        *(void **)&create = dlsym(library, "dnnl_primitive_create");
    if (!create)
        abort();
    const char *at = getenv("SIGNAL_AT");
    const char *nap = getenv("SIGNAL_NAP");
    if (at && ++made == (unsigned)atoi(at))
        raise(SIGTERM);
    if (nap)
        usleep((unsigned)atoi(nap) * 1000);
    return create(primitive, desc);
}

__attribute__((destructor)) static void tell(void)
{
    if (made)
        fprintf(stderr, "%u primitives\n", made);
}
