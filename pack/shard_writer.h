/* SPDX-License-Identifier: Apache-2.0
 *
 * lane: writes one shard: producers bring samples in any order, the lane's own thread appends them
 * in theirs. A ring of slots bounds the memory. Private to pack.
 */
#ifndef IOBENCH_PACK_SHARD_WRITER_H
#define IOBENCH_PACK_SHARD_WRITER_H

#include "base/atomic.h"
#include "formats/format.h"
#include "pack/source.h"

#include <pthread.h>

/* What the lanes of one pack share. */
struct shard_writer_common {
    struct source *source;
    const struct plugin_choice *format;
    const struct permutation *order; /* NULL: as the source has it */
    uint32_t producers;              /* of each lane */
    int quality;
    bool skip; /* leave damaged samples out */
    struct flag stop;
    struct counter samples, bytes, skipped;
    pthread_mutex_t lock; /* of first_skipped */
    char first_skipped[512];
};

/* Write the samples at places begin .. end as a shard. 0, -ECANCELED when site->stop was set (no
 * reason), or a negative errno. On failure nothing is left of the shard. */
int shard_writer_run(struct shard_writer_common *site, const char *path, uint64_t begin,
                     uint64_t end);

#endif
