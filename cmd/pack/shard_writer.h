/* SPDX-License-Identifier: Apache-2.0
 *
 * shard_writer: writes one shard. Producers read samples in any order; the caller's thread appends
 * them in order. A ring of slots bounds the memory. Private to pack.
 */
#ifndef IOBENCH_PACK_SHARD_WRITER_H
#define IOBENCH_PACK_SHARD_WRITER_H

#include "base/atomic.h"
#include "formats/format.h"
#include "cmd/pack/recoder.h"
#include "cmd/pack/source.h"

#include <pthread.h>

/* Shared by the writers of one pack. */
struct shard_writer_common {
    struct source *source;
    const struct plugin_choice *format;
    const struct permutation *order; /* NULL: source order */
    uint32_t producers;              /* per shard */
    struct recode recode;
    bool skip; /* skip damaged samples */
    struct flag stop;
    struct counter samples, bytes, skipped;
    struct counter recoded, unrecoded_bytes; /* images changed, and their bytes before */
    struct counter encoded;                  /* pixels that became JPEGs */
    struct counter damaged; /* images copied as they are, though cut short or of no known kind */
    pthread_mutex_t lock;   /* of the two below */
    char first_skipped[512], first_damaged[512];
};

/* Write the samples at places [begin, end) as a shard. Returns 0, -ECANCELED without a reason if
 * common->stop was set, or a negative errno; then nothing is left of the shard. */
int shard_writer_run(struct shard_writer_common *common, const char *path, uint64_t begin,
                     uint64_t end);

#endif
