/* SPDX-License-Identifier: Apache-2.0
 *
 * provenance: where the bytes of an interval came from, derived from a series: how much of what the
 * reader delivered was served by the page cache, local disks and the fabric. Pure; any thread.
 */
#ifndef IOBENCH_TELEMETRY_PROVENANCE_H
#define IOBENCH_TELEMETRY_PROVENANCE_H

#include "telemetry/series.h"

/* Source of the figure for bytes over the fabric. */
enum provenance_witness {
    PROVENANCE_NOTHING,  /* neither disk nor network serves the data: it is in memory */
    PROVENANCE_DISK,     /* no fabric: only block devices beneath the data */
    PROVENANCE_SERVER,   /* NFS or Lustre client counters */
    PROVENANCE_RECEIVED, /* received - sent: no client counters, as with BeeGFS */
};

/* Provenance in bytes; NAN: unknown.
 *   read + ahead = page_cache + local + fabric, and ahead or page_cache is 0. */
struct provenance {
    double read;           /* delivered by the reader */
    double local;          /* from local disks, for this process */
    double fabric;         /* from a storage server */
    double page_cache;     /* the rest */
    double ahead;          /* read by storage but not requested: kernel read-ahead, or the rest of a
                              block */
    double received, sent; /* by all fabrics of this node: InfiniBand, and interfaces that no port
                              counts (IPoIB, soft-RoCE) */
    double excess;         /* received - sent: storage reads, if gradient traffic is symmetric */
    double gradients;      /* expected from the trainer's exchange */
    enum provenance_witness witness;
};

void provenance_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                     struct provenance *provenance);

/* The byte counts, `read` first, and their names in a result. */
enum { PROVENANCE_PARTS = 9 };
extern const char *const provenance_keys[PROVENANCE_PARTS];
double *provenance_part(struct provenance *provenance, int part);

/* Add part to *sum, whose witness becomes the part's. */
void provenance_add(struct provenance *sum, const struct provenance *part);

const char *provenance_witness_text(enum provenance_witness witness);

#endif
