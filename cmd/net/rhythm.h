/* SPDX-License-Identifier: Apache-2.0
 *
 * rhythm: all-reduces as data parallel training makes them. A step computes for a given time; in
 * the last two thirds of it, the backward pass, its gradients become final a bucket at a time, and
 * each bucket is added up over the ranks while the next one is computed. The step ends with the
 * later of computing and the last bucket. Nothing is computed: the time passes. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_RHYTHM_H
#define IOBENCH_CMD_NET_RHYTHM_H

#include "cmd/net/transport.h"

enum { RHYTHM_BUCKETS = 256 };

struct rhythm {
    struct transport *transport;
    uint64_t buckets[RHYTHM_BUCKETS]; /* bytes, in the order in which they become final; a multiple
                                         of 4 for each rank */
    uint32_t count;
    uint64_t bytes;   /* of all buckets */
    uint64_t step_ns; /* of computing */
    uint64_t damage;  /* flip a bit before this run's comparison, from 1: shows that it is caught */
    uint64_t turn;    /* runs so far: the data differ from one run to the next */
};

/* Of the slowest rank. */
struct rhythm_figures {
    uint64_t steps;
    double time_s; /* of all steps */
    double late_s; /* in which all-reduces went on after computing had ended */
    double busy_s; /* in which an all-reduce was under way */
};

/* Add a bucket of about this many bytes: whole words for each rank. Returns 0, or -EINVAL with a
 * reason. */
int rhythm_add(struct rhythm *rhythm, uint64_t bytes, uint32_t ranks);
/* Collective, with an arena of twice rhythm->bytes: make steps until ended() is true on all ranks,
 * at least one; then compare the sums of the last step with what was sent. Returns 0, -EBADMSG for
 * wrong data, or as transport_wait(). */
int rhythm_run(struct rhythm *rhythm, bool (*ended)(void *context), void *context,
               struct rhythm_figures *figures);

#endif
