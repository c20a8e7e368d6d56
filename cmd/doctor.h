/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: checks of what a measurement needs of this machine. Main thread only.
 */
#ifndef IOBENCH_CMD_DOCTOR_H
#define IOBENCH_CMD_DOCTOR_H

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

/* path: of the data, or NULL. */
struct doctor_check {
    const char *name;
    void (*look)(const char *path, struct doctor_finding *finding);
};

extern const struct doctor_check doctor_machine[]; /* both end with a NULL name */
extern const struct doctor_check doctor_path[];

void finding_say(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_advise(struct doctor_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
