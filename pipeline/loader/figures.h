/* SPDX-License-Identifier: Apache-2.0
 *
 * figures: what a loader measures of one epoch.
 */
#ifndef IOBENCH_PIPELINE_LOADER_FIGURES_H
#define IOBENCH_PIPELINE_LOADER_FIGURES_H

#include <stdint.h>

struct loader_figures {
    uint64_t requests, request_bytes;
    uint64_t plan_ns; /* to make the epoch's order */
    uint64_t idle_ns; /* storage idle since the last read of the previous epoch */
    uint64_t
        read_end_ns; /* end of its last read, monotonic clock; 0: the next epoch's reads followed */
    uint64_t quarter_ns; /* when a quarter of its bytes had arrived, same clock; 0: unknown */
    uint64_t head_ns;    /* duration of the first quarter, from the end of the first read */
};

#endif
