/* SPDX-License-Identifier: Apache-2.0
 *
 * parallel_reader: one reader run on several I/O threads. Each thread has its own instance of the
 * reader (ring, open files, ...) and its own share of the memory, both on one NUMA node; nodes are
 * assigned round robin. Callers see one ordinary reader. It is not registered: --io-threads selects
 * it.
 *
 * A request goes to the thread that owns its buffer's region, or, without a buffer or if shards
 * must be read in order, to the thread that owns its shard. reap() wakes threads that wait for
 * storage when they have new requests, so no read waits for another one to finish.
 */
#ifndef IOBENCH_READERS_PARALLEL_READER_H
#define IOBENCH_READERS_PARALLEL_READER_H

#include "base/thread.h"
#include "readers/reader.h"

struct parallel_reader_settings {
    const struct plugin_choice *reader; /* run on each thread */
    uint32_t count;                     /* threads; >= 1 */
    const struct numa *numa;
};

/* Takes parallel_reader_settings. The regions in its config are `count` equal groups, one per
 * thread. */
extern const struct reader_ops reader_parallel;

#endif
