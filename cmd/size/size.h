/* SPDX-License-Identifier: Apache-2.0
 *
 * size_recording: what a job read from storage while `iobench monitor --json` recorded it, as
 * inputs of a simulated cluster. Main thread.
 */
#ifndef IOBENCH_CMD_SIZE_SIZE_H
#define IOBENCH_CMD_SIZE_SIZE_H

#include "cmd/command.h"
#include "cmd/size/model.h"

#include <jansson.h>

struct size_recording {
    double seconds;
    struct quantity bytes_per_s; /* mean; spread: half the difference between the halves */
    double peak_bytes_per_s;     /* of one interval */
    double read_bytes;           /* mean size of a read; 0: not known of most bytes */
};

/* Returns 0 or a negative errno with a reason. */
int size_recording_load(const char *path, struct size_recording *recording);

#endif
