/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes: one reader on several threads. Each lane is a thread with a reader of its own (ring, open
 * files, pool, ...) and a share of the memory, both on one NUMA node; the nodes are dealt in turn.
 * To its user the whole is a reader as any other. It is in no registry: --io-threads chooses it.
 *
 * A request goes to the lane whose memory it has; without memory, or where a shard must be read in
 * order, all requests of a shard go to one lane. reap() wakes the lanes that wait for storage while
 * there is something new for them, so that a read never waits for another one to end.
 */
#ifndef IOBENCH_READERS_LANES_H
#define IOBENCH_READERS_LANES_H

#include "base/numa.h"
#include "readers/reader.h"

struct lanes_settings {
    const struct plugin_choice *reader; /* of each lane */
    uint32_t count;                     /* at least 1 */
    const struct numa *numa;
};

/* Opened with lanes_settings. The site's regions are count equal groups, one lane after the other;
 * no two lanes share one. */
extern const struct reader_ops reader_lanes;

#endif
