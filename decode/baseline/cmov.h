/* SPDX-License-Identifier: Apache-2.0
 *
 * What compilers make a branch, mispredicted at every block's end: moves if byte 0 of the entry is
 * negative.
 */
#ifndef IOBENCH_DECODE_BASELINE_CMOV_H
#define IOBENCH_DECODE_BASELINE_CMOV_H

#if defined __x86_64__
#define BASELINE_CMOVS(entry, a, x, b, y, c, z)                              \
    __asm__("testb %b3, %b3\n\tcmovs %4, %0\n\tcmovs %5, %1\n\tcmovs %6, %2" \
            : "+&r"(a), "+&r"(b), "+r"(c)                                    \
            : "q"(entry), "rm"(x), "r"(y), "r"(z)                            \
            : "cc")
#elif defined __aarch64__
#define BASELINE_CMOVS(entry, a, x, b, y, c, z)                                 \
    __asm__("tst %w3, #0x80\n\t"                                                \
            "csel %0, %4, %0, ne\n\tcsel %1, %5, %1, ne\n\tcsel %2, %6, %2, ne" \
            : "+&r"(a), "+&r"(b), "+r"(c)                                       \
            : "r"(entry), "r"(x), "r"(y), "r"(z)                                \
            : "cc")
#endif

#endif
