/* SPDX-License-Identifier: Apache-2.0
 *
 * provenance: where bytes came from between two moments, out of a series: what the reader brought,
 * and how much of that the page cache, the machine's own disks and the fabric served. A pure
 * function; any thread.
 */
#ifndef IOBENCH_TELEMETRY_PROVENANCE_H
#define IOBENCH_TELEMETRY_PROVENANCE_H

#include "telemetry/series.h"

/* How the bytes over the fabric are known. */
enum provenance_witness {
    PROVENANCE_NOTHING,  /* neither disk nor network serves the data: it lies in memory */
    PROVENANCE_DISK,     /* none came over a fabric: block devices alone lie beneath the data */
    PROVENANCE_SERVER,   /* NFS or Lustre client counters */
    PROVENANCE_RECEIVED, /* received less sent: no client counters, as with BeeGFS */
};

/* In bytes; NAN: not known.
 *   read + ahead = page_cache + local + fabric, where ahead or page_cache is 0. */
struct provenance {
    double read;       /* the reader brought */
    double local;      /* of local disks, for this process */
    double fabric;     /* of a storage server */
    double page_cache; /* the rest */
    double ahead;      /* storage gave more than was asked for: the kernel read ahead, or a block
                          was read for a part of it */
    double received, sent; /* by all fabrics of this node: InfiniBand, and interfaces that no port
                              counts (IPoIB, soft-RoCE) */
    double excess;         /* received - sent: storage reads, when gradients go both ways alike */
    double gradients;      /* what the trainer's exchange should have sent */
    enum provenance_witness witness;
};

void provenance_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                     struct provenance *provenance);

/* The witness of the sum is that of the part. */
void provenance_add(struct provenance *sum, const struct provenance *part);

const char *provenance_witness_text(enum provenance_witness witness);

#endif
