/* SPDX-License-Identifier: Apache-2.0
 *
 * gradients: what an all-reduce moves. The only place that knows: training compares it with the
 * counters, sizing predicts with it, `net` divides by it. Pure; any thread.
 */
#ifndef IOBENCH_BASE_GRADIENTS_H
#define IOBENCH_BASE_GRADIENTS_H

enum { GRADIENTS_BUCKETS = 4 }; /* default number of parts in which a step's gradients are sent */

/* Return the bytes of one rank's gradients in one step. number_bytes: size of a number on the wire:
 * 4 by default, whatever type the network computes in. */
static inline double gradients_bytes(double parameters, unsigned number_bytes)
{
    return parameters * number_bytes;
}

/* Return the bytes that each member sends, and receives, to sum everyone's `bytes` on all members:
 * 2 (members - 1) / members of them, the least possible. In a ring exactly these pass each member;
 * trees need the same total, unevenly divided. One member sends nothing. */
static inline double gradients_sent_bytes(double bytes, double members)
{
    return members > 1 ? 2 * (members - 1) / members * bytes : 0;
}

#endif
