/* SPDX-License-Identifier: Apache-2.0
 *
 * student: Student's t distribution with whole degrees of freedom. Pure; any thread.
 */
#ifndef IOBENCH_BASE_STUDENT_H
#define IOBENCH_BASE_STUDENT_H

#include <stddef.h>

/* Return the two-sided p of t: P(|T| >= |t|), within 1e-14. freedom: at least 1. */
double student_p(double t, size_t freedom);

/* Return the t with student_p(t) = p. p: above 1e-12. */
double student_quantile(double p, size_t freedom);

#endif
