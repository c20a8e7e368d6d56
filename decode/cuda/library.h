/* SPDX-License-Identifier: Apache-2.0
 *
 * library: the part of nvJPEG that is used, loaded at run time, so building needs nothing of it.
 * Its ABI is the same in libnvjpeg.so.12 and .13.
 */
#ifndef IOBENCH_DECODE_CUDA_LIBRARY_H
#define IOBENCH_DECODE_CUDA_LIBRARY_H

#include <stddef.h>

enum library_status {
    LIBRARY_SUCCESS,
    LIBRARY_ALLOCATOR_FAILURE = 5,
    LIBRARY_ARCH_MISMATCH = 7,
    LIBRARY_NOT_IMPLEMENTED = 9,
};
enum { LIBRARY_BACKEND_GPU = 2, LIBRARY_BACKEND_HARDWARE = 3 };
enum { LIBRARY_RGB_INTERLEAVED = 5 };
enum { LIBRARY_CHANNELS = 4 };

/* Where a decoded image goes; interleaved ones use the first channel alone. */
struct library_image {
    unsigned char *channel[LIBRARY_CHANNELS];
    size_t pitch[LIBRARY_CHANNELS];
};

/* Handles, states and parsed streams are opaque. Statuses are enum library_status. */
struct library {
    int (*create)(int backend, void *device_allocator, void *pinned_allocator, unsigned flags,
                  void **handle);
    int (*destroy)(void *handle);
    int (*state_create)(void *handle, void **state);
    int (*state_destroy)(void *state);
    int (*parsed_create)(void *handle, void **parsed);
    int (*parsed_destroy)(void *parsed);
    int (*parse_header)(void *handle, const unsigned char *data, size_t length, void *parsed);
    /* unsupported: 0 if a batch may have this image. */
    int (*supported)(void *handle, void *parsed, int *unsupported);
    int (*batch_begin)(void *handle, void *state, int images, int cpu_threads, int format);
    int (*batch)(void *handle, void *state, const unsigned char *const *data, const size_t *lengths,
                 struct library_image *images, void *stream);
};

/* Returns 0, or -ENOENT or -EINVAL with a reason. The library stays loaded. */
int library_open(struct library *library);

const char *library_status_text(int status);

#endif
