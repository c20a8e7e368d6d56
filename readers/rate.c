/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/rate.h"

uint64_t rate_wait_ns(struct rate *rate, uint64_t now_ns)
{
    if (!rate->bytes_per_s)
        return 0;
    if (!rate->next_ns)
        rate->next_ns = now_ns;
    if (now_ns > rate->next_ns + RATE_CREDIT_NS)
        rate->next_ns = now_ns - RATE_CREDIT_NS;
    return rate->next_ns > now_ns ? rate->next_ns - now_ns : 0;
}

void rate_spend(struct rate *rate, uint64_t bytes)
{
    if (rate->bytes_per_s)
        rate->next_ns += (uint64_t)((double)bytes * 1e9 / (double)rate->bytes_per_s);
}
