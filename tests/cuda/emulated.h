/* SPDX-License-Identifier: Apache-2.0
 * What stands in for a device's streams, for those who put other work on them than copies. */
#ifndef IOBENCH_TESTS_CUDA_EMULATED_H
#define IOBENCH_TESTS_CUDA_EMULATED_H

#include <stddef.h>
#include <stdint.h>

/* run(work, count) in the order of the stream, by its thread, with a copy of the work; at once
 * where there is no stream. What is made of several kernels, with memory of its own or computation
 * between them, is started as one; its kernels are given no stream. */
#ifdef __cplusplus
extern "C"
#endif
    int
    emulated_start(void (*run)(const void *work, uint64_t count), const void *work, size_t bytes,
                   uint64_t count, void *stream);

#endif
