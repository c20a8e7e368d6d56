/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_live: what a sweep shows while it runs, on stderr: on a terminal the table so far with the
 * time left, else a line per measurement. Main thread.
 */
#ifndef IOBENCH_CMD_SWEEP_LIVE_H
#define IOBENCH_CMD_SWEEP_LIVE_H

#include "cmd/sweep/sweep.h"

struct sweep_live {
    const struct sweep *sweep;
    struct line line;
    unsigned drawn;                  /* table lines now on the screen */
    uint32_t cell, round;            /* being measured */
    size_t done, total;              /* measurements */
    bool told_replaced;              /* that a data set was replaced */
    uint64_t cell_start_ns, left_ns; /* left_ns: 0 while unknown */
};

struct sweep_live sweep_live_start(const struct sweep *sweep);
void sweep_live_begin(struct sweep_live *live, uint32_t cell, uint32_t round, uint64_t left_ns);
/* Tick for sweep_cell_run(); never stops it. */
bool sweep_live_tick(void *live);
/* Report the end of a measurement, whose figures are in the table. */
void sweep_live_end(struct sweep_live *live);
/* Clear the screen before anything else is printed. */
void sweep_live_clear(struct sweep_live *live);

#endif
