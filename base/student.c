/* SPDX-License-Identifier: Apache-2.0 */
#include "base/student.h"

#include <math.h>

/* Abramowitz and Stegun 26.7.3 and 26.7.4: for whole degrees of freedom P(|T| < t) is a finite sum
 * in the sine and cosine of atan(t / sqrt(freedom)). */
double student_p(double t, size_t freedom)
{
    const double angle = atan(fabs(t) / sqrt((double)freedom));
    const double sine = sin(angle), cosine = cos(angle);
    const size_t first = freedom % 2 ? 1 : 0; /* the power of the cosine in the first term */
    double term = first ? cosine : 1, sum = 0;

    if (isnan(t))
        return NAN;
    for (size_t power = first; power + 2 <= freedom; power += 2) {
        sum += term;
        term *= cosine * cosine * (double)(power + 1) / (double)(power + 2);
    }
    return fmax(0, 1 - (first ? (angle + sine * sum) * M_2_PI : sine * sum));
}

double student_quantile(double p, size_t freedom)
{
    double low = 0, high = 1;

    while (student_p(high, freedom) > p)
        high *= 2;
    while (high - low > 1e-14 * high) {
        double middle = (low + high) / 2;
        if (student_p(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
