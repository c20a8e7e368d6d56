/* SPDX-License-Identifier: Apache-2.0
 *
 * control_group: the folder of the control group in which this process counts for a controller, and
 * what the group and each ancestor allow of the CPUs. The roots are arguments ("/proc", "/sys").
 * Any thread.
 */
#ifndef IOBENCH_BASE_CONTROL_GROUP_H
#define IOBENCH_BASE_CONTROL_GROUP_H

#include <stdbool.h>

enum { CONTROL_GROUP_BYTES = 2048 }; /* length of a path: nested containers have long ones */

struct control_group {
    char root[512],
        folder[CONTROL_GROUP_BYTES]; /* of the hierarchy; in or below it, of the group */
    bool version1;
};

/* controller: "memory", "cpu". In a container the group's path may be one of the host that is not
 * visible: then the root is used. Returns false if no group has the controller. */
bool control_group_find(struct control_group *group, const char *controller, const char *proc,
                        const char *sys);
/* Go to the group above. Returns false at the root. */
bool control_group_up(struct control_group *group);

/* Return the smallest quota of CPUs, rounded down but at least 1; 0: none. */
unsigned control_group_cpus(const char *proc, const char *sys);

#endif
