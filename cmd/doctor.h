/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: what of this machine a measurement needs, looked at one by one. Main thread only.
 */
#ifndef IOBENCH_CMD_DOCTOR_H
#define IOBENCH_CMD_DOCTOR_H

#include <stddef.h>

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_WARN, /* it works, but not as well as it could */
    DOCTOR_NO,   /* it is not there, or does not work */
};

struct finding {
    enum doctor_state state;
    char what[200];   /* what was found */
    char advice[300]; /* what to do; "" when nothing is to be done */
};

/* path: of the data, NULL for none. */
struct doctor_check {
    const char *name;
    void (*look)(const char *path, struct finding *finding);
};

extern const struct doctor_check doctor_machine[]; /* these end with a row whose name is NULL */
extern const struct doctor_check doctor_path[];

void finding_say(struct finding *finding, enum doctor_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_advise(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
