/* SPDX-License-Identifier: Apache-2.0
 *
 * clones: a function that the compiler builds for several levels of x86-64; the loader picks one.
 * Not under the sanitizers, whose run time is not ready when the loader picks.
 */
#ifndef IOBENCH_KERNELS_CLONES_H
#define IOBENCH_KERNELS_CLONES_H

#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define KERNEL_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define KERNEL_CLONES
#endif

#endif
