/* SPDX-License-Identifier: Apache-2.0
 * The module's front end has loaded the library from wherever it is (base/module.h). */
#include "decode/cuda/library.h"

#include "base/fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
    {"nvjpegCreateEx", offsetof(struct library, create)},
    {"nvjpegDestroy", offsetof(struct library, destroy)},
    {"nvjpegJpegStateCreate", offsetof(struct library, state_create)},
    {"nvjpegJpegStateDestroy", offsetof(struct library, state_destroy)},
    {"nvjpegJpegStreamCreate", offsetof(struct library, parsed_create)},
    {"nvjpegJpegStreamDestroy", offsetof(struct library, parsed_destroy)},
    {"nvjpegJpegStreamParseHeader", offsetof(struct library, parse_header)},
    {"nvjpegDecodeBatchedSupported", offsetof(struct library, supported)},
    {"nvjpegDecodeBatchedInitialize", offsetof(struct library, batch_begin)},
    {"nvjpegDecodeBatched", offsetof(struct library, batch)},
};

int library_open(struct library *library)
{
    static const char *const names[] = {"libnvjpeg.so.13", "libnvjpeg.so.12"};
    void *loaded = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !loaded; i++)
        loaded = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (!loaded)
        return fail(ENOENT,
                    "%s or %s is not found: install it (it is in the CUDA toolkit, and in the "
                    "Python package nvidia-nvjpeg), or add its folder to LD_LIBRARY_PATH",
                    names[0], names[1]);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(loaded, symbols[i].symbol);
        if (!found)
            return fail(EINVAL, "libnvjpeg lacks %s: it is older than CUDA 11.4's",
                        symbols[i].symbol);
        memcpy((char *)library + symbols[i].offset, &found, sizeof found);
    }
    return 0;
}

const char *library_status_text(int status)
{
    static const char *const texts[] = {
        "success",          "not initialised",     "invalid parameter",
        "bad JPEG",         "JPEG not supported",  "out of memory",
        "execution failed", "not on this GPU",     "internal error",
        "not implemented",  "incomplete bitstream"};

    return status >= 0 && (size_t)status < sizeof texts / sizeof *texts ? texts[status]
                                                                        : "unknown status";
}
