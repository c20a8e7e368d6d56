/* SPDX-License-Identifier: Apache-2.0
 *
 * size_recording: what a job read from storage while `iobench monitor --json` recorded it, as
 * inputs of a simulated cluster. Main thread.
 */
#ifndef IOBENCH_CMD_SIZE_RECORDING_H
#define IOBENCH_CMD_SIZE_RECORDING_H

#include "cmd/size/inputs.h"

struct size_recording {
    double seconds;
    struct quantity bytes_per_s; /* mean; spread: half the difference between the halves */
    double peak_bytes_per_s;     /* of one interval */
    double read_bytes;           /* mean size of a read; 0: not known of most bytes */
};

/* Returns 0 or a negative errno with a reason. */
int size_recording_load(const char *path, struct size_recording *recording);

/* Set the rate of a GPU so that it reads what one of the recorded job's GPUs read. */
void size_recording_apply(const struct size_recording *recording, double gpus,
                          struct sizing_inputs *inputs);

#endif
