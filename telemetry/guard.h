/* SPDX-License-Identifier: Apache-2.0
 *
 * guard: disturbances of this process during a measurement that are no property of what it
 * measured. Every measurement is between guard_begin() and guard_end(), as a lint checks, and
 * guard_judge() says what its rates are worth. Meanwhile a thread checks ten times a second. One
 * thread at a time begins and ends.
 */
#ifndef IOBENCH_TELEMETRY_GUARD_H
#define IOBENCH_TELEMETRY_GUARD_H

#include "base/clock.h"

struct guard_moment {
    struct clock_moment clock;
    uint64_t pauses, still_ns; /* stops ended by SIGCONT; the guard's thread slept on */
    uint64_t delayed_ns;       /* the thread that waited most for a CPU */
    /* Sums over CPUs: by quotas of this control group and those above, by the hypervisor, used. */
    uint64_t throttled_ns, stolen_ns, used_ns;
    uint64_t drops; /* of the page cache by others */
    uint32_t cpus;
};

/* Over intervals and ranks: the worst of each, or the sum of what is counted. */
struct guard_counts {
    int64_t passed_ns, other_ns; /* on two clocks that disagree; equal: none do */
    uint64_t pauses, shortages, drops;
    double throttled_percent, delayed_percent, stolen_percent; /* of the time */
    double used_percent; /* of all CPUs, by the ranks of the node on which one waited most */
    bool is_throttled, is_starved; /* by a quota; by others: no rate is that of storage */
};

void guard_begin(struct guard_moment *from);
void guard_end(const struct guard_moment *from, struct guard_counts *sum); /* adds to it */
void guard_note_drop(void);                                                /* by this program */
/* Ranks of this job on this node, this one included: the others are assumed to use the CPUs as much
 * as this one. */
void guard_note_ranks(uint32_t ranks);

/* Parts of these; roots: "/proc" and "/sys". */
void guard_read(struct guard_moment *moment, const char *proc, const char *sys);
void guard_between(const struct guard_moment *from, const struct guard_moment *to,
                   struct guard_counts *counts);
void guard_add(struct guard_counts *sum, const struct guard_counts *counts);

/* Returns 0, or -EPROTO with a reason. */
int guard_check_clock(const struct guard_counts *counts);

enum guard_grade { GUARD_NOTICE, GUARD_DEGRADED, GUARD_INVALID };
typedef void guard_tell(void *context, enum guard_grade grade, const char *text);
/* Returns the worst grade told. */
enum guard_grade guard_judge(const struct guard_counts *counts, guard_tell *tell, void *context);

#endif
