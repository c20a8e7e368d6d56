/* SPDX-License-Identifier: Apache-2.0
 *
 * sizing: computes what a number of GPUs needs from storage, and how many nodes like the measured
 * ones that takes. Pure; any thread.
 */
#ifndef IOBENCH_REPORT_SIZING_H
#define IOBENCH_REPORT_SIZING_H

struct sizing_basis {
    double sample_bytes;       /* bytes per record */
    double amplification;      /* bytes read over bytes delivered, at least 1 */
    double node_samples_per_s; /* throughput of each node; 0: not measured */
};

struct sizing_need {
    double samples_per_s;
    double bytes_per_s; /* read from storage */
    double bits_per_s;  /* the same on a network, payload only */
    double nodes;       /* need over the throughput of one node; NAN if not measured */
};

/* gpu_samples_per_s: rate of one GPU; busy: target utilisation, 0..1. */
struct sizing_need sizing_of(const struct sizing_basis *basis, double gpu_samples_per_s,
                             double gpus, double busy);

#endif
