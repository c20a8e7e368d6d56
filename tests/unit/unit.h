/* SPDX-License-Identifier: Apache-2.0
 * What cmocka wants included before it, and what tests assert, in one place. */
#ifndef IOBENCH_TESTS_UNIT_H
#define IOBENCH_TESTS_UNIT_H

/* cmocka gives each test a state, plugins give stand-ins more than they need. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#include "base/fail.h"

#define assert_near(value, wanted, within)                            \
    do {                                                              \
        const double is_ = (value), wanted_ = (wanted);               \
        if (!(fabs(is_ - wanted_) <= (within)))                       \
            fail_msg("%s is %.17g, not %.17g", #value, is_, wanted_); \
    } while (0)
/* But for rounding. */
#define assert_equal(value, wanted) assert_near(value, wanted, 1e-9 * fabs((double)(wanted)))
#define assert_share(value, wanted, share) \
    assert_near(value, wanted, (share)*fabs((double)(wanted)))

static inline void assert_reason(const char *part)
{
    if (!strstr(fail_reason(), part))
        fail_msg("'%s' does not say '%s'", fail_reason(), part);
}

#define assert_refused(call, code, reason) \
    do {                                   \
        assert_int_equal(call, code);      \
        assert_reason(reason);             \
    } while (0)

/* How long a test waits for an event that a bug would delay forever: a busy machine is slow. */
#define PATIENCE_NS UINT64_C(120000000000)
enum { PATIENCE_S = 600 }; /* of alarm(), for all tests of a program */

#endif
