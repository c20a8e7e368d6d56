/* SPDX-License-Identifier: Apache-2.0
 *
 * vector: for a .c whose loops over bytes shall become vector code whatever -O level the rest is
 * built with. Include it last. gcc vectorises freely at -O3 only (clang does at -O2), and
 * VECTOR_CLONES builds a function for several levels of x86-64, of which the loader picks one.
 * Not under the sanitizers, whose run time is not ready when the loader picks.
 */
#ifndef IOBENCH_BASE_VECTOR_H
#define IOBENCH_BASE_VECTOR_H

#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#pragma GCC optimize("O3")
#if defined(__x86_64__) && defined(__linux__) && __GNUC__ >= 12
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#elif defined(__x86_64__) && defined(__linux__) /* gcc 11 cannot tell v4 at run time */
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2")))
#endif
#endif

#ifndef VECTOR_CLONES
#define VECTOR_CLONES
#endif

#endif
