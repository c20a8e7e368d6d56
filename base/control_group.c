/* SPDX-License-Identifier: Apache-2.0 */
#include "base/control_group.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "4:cpu,cpuacct:/path"; in version 2 "0::/path". controller NULL: version 2. */
static bool find_path(const char *proc, const char *controller, char *path, size_t path_bytes)
{
    char text[16384], name[512], *lines = text, *line;
    bool found = false;

    snprintf(name, sizeof name, "%s/self/cgroup", proc);
    file_read_begin(name, text, sizeof text);
    while (!found && lines && (line = strsep(&lines, "\n")) && lines) {
        char *controllers = strchr(line, ':');
        char *place = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!place || strlen(place) > path_bytes) /* longer paths cannot be used */
            continue;
        *place++ = '\0';
        char *rest = controllers + 1, *word;
        found = !controller && !*rest;
        while (controller && !found && (word = strsep(&rest, ",")))
            found = strcmp(word, controller) == 0;
        if (found)
            snprintf(path, path_bytes, "%s", strcmp(place, "/") ? place : "");
    }
    return found;
}

bool control_group_find(struct control_group *group, const char *controller, const char *proc,
                        const char *sys)
{
    char path[CONTROL_GROUP_BYTES - sizeof group->root];

    group->version1 = find_path(proc, controller, path, sizeof path);
    if (!group->version1 && !find_path(proc, NULL, path, sizeof path))
        return false;
    snprintf(group->root, sizeof group->root, "%.400s/fs/cgroup%s%.32s", sys,
             group->version1 ? "/" : "", group->version1 ? controller : "");
    snprintf(group->folder, sizeof group->folder, "%s%s", group->root, path);
    if (strstr(path, "/..") || !file_is_folder(group->folder))
        snprintf(group->folder, sizeof group->folder, "%s", group->root);
    return true;
}

bool control_group_up(struct control_group *group)
{
    if (strlen(group->folder) <= strlen(group->root))
        return false;
    *strrchr(group->folder, '/') = '\0';
    return true;
}

unsigned control_group_cpus(const char *proc, const char *sys)
{
    static const double most = 1 << 20;
    struct control_group group;
    double least = most;

    if (!control_group_find(&group, "cpu", proc, sys))
        return 0;
    do {
        double quota = 0, period = 0; /* a word ("max") stays 0 */
        char text[128], *rest = text;
        if (group.version1) {
            if (file_peek(text, sizeof text, "%s/cpu.cfs_quota_us", group.folder))
                quota = strtod(text, NULL);
            if (file_peek(text, sizeof text, "%s/cpu.cfs_period_us", group.folder))
                period = strtod(text, NULL);
        } else if (file_peek(text, sizeof text, "%s/cpu.max", group.folder)) {
            quota = strtod(text, &rest);
            period = strtod(rest, NULL);
        }
        if (quota > 0 && period > 0 && quota / period < least)
            least = quota / period;
    } while (control_group_up(&group));
    return least == most ? 0 : least >= 1 ? (unsigned)least : 1;
}
