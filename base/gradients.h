/* SPDX-License-Identifier: Apache-2.0
 *
 * gradients: what an all-reduce moves. The only place that knows: training compares it with the
 * counters, sizing predicts with it, `net` divides by it. Pure; any thread.
 */
#ifndef IOBENCH_BASE_GRADIENTS_H
#define IOBENCH_BASE_GRADIENTS_H

enum { GRADIENTS_BUCKETS = 4 }; /* parts that a step's gradients are sent in, unless told */

/* Of one rank and step. number_bytes: of each on the wire: 4, whatever the network computes in, if
 * the exchange was not told otherwise. */
static inline double gradients_bytes(double parameters, unsigned number_bytes)
{
    return parameters * number_bytes;
}

/* Bytes that each member sends to others, and receives, so that all have the sum of everyone's
 * `bytes`: 2 (members - 1) / members of them, the least possible. In a ring exactly these pass each
 * member; trees need the same total, unevenly divided. One member sends nothing. */
static inline double gradients_sent_bytes(double bytes, double members)
{
    return members > 1 ? 2 * (members - 1) / members * bytes : 0;
}

#endif
