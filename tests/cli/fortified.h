/* SPDX-License-Identifier: Apache-2.0
 * For preloaded libraries: a program that was compiled with _FORTIFY_SOURCE, the default of
 * Ubuntu's compilers, calls a function by another name, with an argument more or less that these
 * functions do not read. */
#ifndef IOBENCH_TESTS_FORTIFIED_H
#define IOBENCH_TESTS_FORTIFIED_H

/* name: that other name, of a function of this file. */
#define FORTIFIED(name, function) __asm__(".globl " #name "\n.set " #name ", " #function)

#endif
