/* SPDX-License-Identifier: Apache-2.0
 *
 * student: Student's t distribution, of whole degrees of freedom. Pure; any thread.
 */
#ifndef IOBENCH_BASE_STUDENT_H
#define IOBENCH_BASE_STUDENT_H

#include <stddef.h>

/* Two-sided p of t: how often chance gives |T| >= |t|. freedom: at least 1. To within 1e-14. */
double student_p(double t, size_t freedom);

/* The t beyond which so much lies on both sides together: student_p(t) = p. p: above 1e-12. */
double student_quantile(double p, size_t freedom);

#endif
