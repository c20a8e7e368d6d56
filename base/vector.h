/* SPDX-License-Identifier: Apache-2.0
 *
 * vector: include last where byte loops must be vectorised at any -O level. gcc vectorises freely
 * only at -O3 (clang at -O2); VECTOR_CLONES compiles a function for several levels of x86-64, of
 * which the dynamic linker picks one. Disabled under the sanitizers, whose run time is not ready by
 * then.
 */
#ifndef IOBENCH_BASE_VECTOR_H
#define IOBENCH_BASE_VECTOR_H

#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#pragma GCC optimize("O3")
#if defined(__x86_64__) && defined(__linux__) && __GNUC__ >= 12
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#elif defined(__x86_64__) && defined(__linux__) /* gcc 11 cannot detect v4 at run time */
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2")))
#endif
#endif

#ifndef VECTOR_CLONES
#define VECTOR_CLONES
#endif

#endif
