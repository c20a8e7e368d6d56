/* SPDX-License-Identifier: Apache-2.0
 *
 * service: measures how fast a storage serves random reads of one size with a fixed number in
 * flight. Reads start at multiples of their size, equally often anywhere in all files. The clock
 * starts once as many reads have completed as are in flight, and stops after the given time, but
 * not before twice as many more have. One thread.
 */
#ifndef IOBENCH_READERS_SERVICE_H
#define IOBENCH_READERS_SERVICE_H

#include "readers/reader.h"

enum { SERVICE_ENGINE_BYTES = 192 };

struct service {
    const struct catalog *catalog;      /* files; those smaller than a read are left out */
    const struct plugin_choice *reader; /* one that reads into buffers */
    uint32_t read_bytes, depth;
    uint64_t duration_ns, timeout_ns, seed;
    struct iovec memory; /* page-aligned, at least depth x read_bytes */
};

struct service_figures {
    double bytes_per_s;
    uint64_t bytes;               /* of all reads that completed, before the clock started, too */
    double latency_s, latency_cv; /* of a read: mean, and deviation over the mean */
    char engine[SERVICE_ENGINE_BYTES];
};

/* How many reads of this size fit. */
uint64_t service_places(const struct catalog *catalog, uint32_t read_bytes);

/* Returns 0; -EINTR; -ENODATA if no file is as large as a read; or another negative errno with a
 * reason. */
int service_measure(const struct service *service, struct service_figures *figures);

#endif
