/* SPDX-License-Identifier: Apache-2.0
 * What cmocka wants included before it, in one place. */
#ifndef IOBENCH_TESTS_UNIT_H
#define IOBENCH_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#undef fail /* ours is a function: base/fail.h */
#undef fail_msg
#undef stop                 /* a macro of cmocka 2; tests have functions of that name */
#ifdef assert_uint_in_range /* cmocka 2: the name of both versions is deprecated */
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif
#define fail_msg(...)                       \
    do {                                    \
        print_error("ERROR: " __VA_ARGS__); \
        print_error("\n");                  \
        _fail(__FILE__, __LINE__);          \
    } while (0)

/* How long a test waits for an event that a bug would delay forever: a busy machine is slow. */
#define PATIENCE_NS UINT64_C(120000000000)
enum { PATIENCE_S = 600 }; /* of alarm(), for all tests of a program */

#endif
