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

#endif
