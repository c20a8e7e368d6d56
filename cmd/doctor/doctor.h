/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: checks of what a measurement needs of this machine. Main thread only.
 */
#ifndef IOBENCH_CMD_DOCTOR_H
#define IOBENCH_CMD_DOCTOR_H

#include "readers/reader.h"
#include "telemetry/counters.h"

#include <stddef.h>

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_WARN, /* works, but not as well as it could */
    DOCTOR_NO,   /* absent or not working */
};

struct doctor_finding {
    enum doctor_state state;
    char what[200];   /* finding */
    char advice[300]; /* remedy; "" if none is needed */
};

/* Where the findings of a part without a fixed list go. */
struct doctor_report {
    void (*add)(void *context, const char *name, const struct doctor_finding *finding);
    void *context;
};

void doctor_look_fabric(const struct telemetry_roots *roots, const struct doctor_report *report);
/* Join the processes that a launcher started and look at the job; only rank 0 reports. Returns 0 or
 * a negative errno with a reason, also where the processes do not find each other. */
int doctor_look_launch(const struct doctor_report *report);

void finding_say(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_advise(struct doctor_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
